//! An idle endpoint sleeps. Alone in its process, since it looks at threads.
#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::fs;
use std::time::Duration;

use support::*;

/// Sums over the threads of this process, but not this one: nanoseconds on a
/// processor, and times they were put there.
fn effort() -> (u64, u64) {
    let me = fs::read_to_string("/proc/thread-self/stat").unwrap();
    let me = me.split(' ').next().unwrap().to_owned();
    let mut sum = (0, 0);
    for task in fs::read_dir("/proc/self/task").unwrap() {
        let task = task.unwrap();
        if task.file_name().to_str() == Some(&me) {
            continue;
        }
        let stat = fs::read_to_string(task.path().join("schedstat")).unwrap();
        let mut numbers = stat.split_whitespace().map(|n| n.parse::<u64>().unwrap());
        sum.0 += numbers.next().unwrap();
        sum.1 += numbers.nth(1).unwrap();
    }
    sum
}

#[test]
fn engine__uses_no_processor_while_idle() {
    let (client, server) = (engine(udp()), engine(udp()));
    let answering = echo(server.listen(0).unwrap());
    for size in [1, 100_000, 1_000_000] {
        call(&client, address(&server), pattern(size)).unwrap();
    }
    // Nobody waits at the client, one thread waits at the server. Let the
    // timers of the last calls pass.
    std::thread::sleep(Duration::from_millis(500));
    let before = effort();
    std::thread::sleep(Duration::from_secs(1));
    let after = effort();
    let (ns, times) = (after.0 - before.0, after.1 - before.1);
    assert!(times <= 1, "ran {times} times in a second, {ns} ns");
    assert!(ns < 1_000_000, "ran {ns} ns in a second");
    // And wakes up again.
    call(&client, address(&server), "x").unwrap();
    server.close();
    answering.join().unwrap();
}
