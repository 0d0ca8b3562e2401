//! What the tests share.

#![allow(dead_code, reason = "each test program uses a part of it")]

pub(crate) mod calls;

use std::process::{Command, Stdio};

use homa_testbed::{Host, Options, Testbed, in_user_namespace};

/// In the program that runs one test in a user namespace.
const INSIDE: &str = "HOMA_TESTBED_TEST_INSIDE";

/// A testbed, or `None` if the test is to return: it was run in a user
/// namespace instead, or it cannot run here, and why was said.
pub(crate) fn testbed(test: &str, options: &Options) -> Option<Testbed> {
    let Err(why) = Testbed::check(options) else {
        return Some(Testbed::new(options).unwrap());
    };
    let permitted = in_user_namespace("true").output();
    let permitted = permitted.is_ok_and(|output| output.status.success());
    if std::env::var_os(INSIDE).is_some() || !permitted {
        homa_test::skip(test, &why.to_string());
        return None;
    }
    let output = in_user_namespace(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    // Also if no test has that name.
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}"
    );
    None
}

/// Its first two hosts: one that calls and one that serves.
pub(crate) fn pair(testbed: &Testbed) -> [&Host; 2] {
    [&testbed.hosts()[0], &testbed.hosts()[1]]
}

/// A counter of a host's kernel, such as `Udp` or `Udp6` and `InCsumErrors`.
pub(crate) fn kernel_counter(host: &Host, protocol: &str, name: &str) -> u64 {
    let read = |file: &str| {
        let mut command = Command::new("cat");
        command.arg(file);
        host.output(command).unwrap()
    };
    let found = if protocol.ends_with('6') {
        let text = read("/proc/self/net/snmp6");
        let counter = format!("{protocol}{name}");
        let mut lines = text.lines().map(str::split_whitespace);
        lines.find_map(|mut words| (words.next()? == counter).then(|| words.next().map(str::parse)))
    } else {
        // A line of names, and one of values.
        let text = read("/proc/self/net/snmp");
        let head = format!("{protocol}:");
        let mut lines = text.lines().filter(|line| line.starts_with(&head));
        let [names, values] = [lines.next().unwrap(), lines.next().unwrap()];
        let mut pairs = names.split_whitespace().zip(values.split_whitespace());
        pairs.find_map(|(known, value)| (known == name).then(|| Some(value.parse())))
    };
    found.unwrap().unwrap().unwrap()
}
