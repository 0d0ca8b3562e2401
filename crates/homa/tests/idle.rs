//! Endpoints that have nothing to do cost nothing. Alone in its process, since
//! it looks at threads.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail the test"
)]
#![cfg(feature = "tokio")]

mod common;

use std::fs;
use std::time::Duration;

use common::{pattern, serve, soon, spawn_echo};
use homa::{Endpoint, blocking};

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

/// One test, since the threads of another would be counted too.
#[test]
fn endpoints__sleep_when_idle_on_tokio_and_when_they_poll() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let (server, client) = runtime.block_on(async {
        let server = Endpoint::bind("127.0.0.1:0").await.unwrap();
        spawn_echo(serve(&server));
        (server, Endpoint::client_only().await.unwrap())
    });
    let address = server.local_addresses()[0];
    let polling = blocking::Endpoint::builder().polling().build().unwrap();
    let call = || {
        let call = client.client().call(address, pattern(100_000));
        runtime.block_on(async { soon(call).await.unwrap() });
        polling.client().call(address, "x").wait().unwrap();
    };
    call();
    // The timers of these calls pass, and the polling thread gives up.
    std::thread::sleep(Duration::from_millis(500));
    let before = effort();
    std::thread::sleep(Duration::from_secs(1));
    let after = effort();
    let (ns, times) = (after.0 - before.0, after.1 - before.1);
    assert!(times <= 1, "ran {times} times in a second, {ns} ns");
    assert!(ns < 1_000_000, "ran {ns} ns in a second");
    call();
}
