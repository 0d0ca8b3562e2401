//! `homa bench --local`: the server it starts, the comparison, its end.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed step of a test's set-up is a failed test"
)]

mod common;

use std::io::{BufRead, BufReader};
use std::process::Command;

use common::{finish, homa, run, signal, start};

#[test]
fn local__both_protocols_in_turn_with_the_same_requests() {
    let ran = run(&[
        "bench",
        "--local",
        "--workload",
        "w2",
        "--rate",
        "500",
        "-t",
        "0.8",
        "--rounds",
        "2",
        "--warmup",
        "0.1",
        "--drain",
        "20",
        "--json",
    ]);
    assert_eq!((ran.code, &ran.err[..]), (0, ""), "{}", ran.out);
    let comparison = ran.json();
    assert_eq!(comparison["rounds"], 2);
    let reports = comparison["reports"].as_array().unwrap();
    let due: Vec<_> = reports
        .iter()
        .map(|report| {
            (
                report["setup"]["protocol"].as_str().unwrap(),
                report["totals"]["due"].as_u64().unwrap(),
            )
        })
        .collect();
    let [("homa", homa), ("tcp", tcp)] = due[..] else {
        panic!("{due:?}");
    };
    assert_eq!(homa, tcp);
    assert!(homa > 200, "{homa}");
}

/// The first command of the README, shorter.
#[test]
fn local__the_table_has_both_and_says_what_it_shows() {
    let ran = run(&[
        "bench",
        "--local",
        "--workload",
        "w4",
        "--gbps",
        "0.1",
        "-t",
        "0.8",
        "--rounds",
        "2",
        "--warmup",
        "0.1",
        "--drain",
        "20",
    ]);
    assert_eq!((ran.code, &ran.err[..]), (0, ""), "{}", ran.out);
    for text in [
        "Workload w4: requests of 53 to 1000000 B",
        "Homa: to 127.0.0.1:",
        "TCP: to 127.0.0.1:",
        "congestion control: ",
        "TCP/Homa",
        "up to 1000000 B (10 %)",
        "goodput of requests, Gbit/s",
        "sent again",
        "client has work, % of the time",
        "server has work, % of the time",
        "The processor was",
        "Over loopback this shows",
    ] {
        assert!(ran.out.contains(text), "{text}: {}", ran.out);
    }
}

/// Before anything was measured.
#[test]
fn local__interrupted_at_once() {
    let client = start(&mut homa(&["bench", "--local", "-t", "60"]));
    std::thread::sleep(std::time::Duration::from_millis(300));
    let ran = common::interrupt(client);
    assert_eq!(ran.code, 130, "{ran:?}");
    assert!(ran.out.contains("interrupted"), "{ran:?}");
}

#[test]
fn local__one_protocol_is_a_run_of_its_own() {
    let ran = run(&[
        "bench",
        "--local",
        "--protocol",
        "tcp",
        "--workload",
        "1k",
        "--outstanding",
        "2",
        "-t",
        "0.2",
        "--warmup",
        "0",
        "--unloaded",
        "0",
        "--json",
    ]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.json()["setup"]["protocol"], "tcp");
}

/// Ctrl-C in the second of two turns, sent as a terminal does it and as `kill`
/// does.
#[test]
fn local__interrupted_prints_what_it_has_and_leaves_no_server() {
    let mut client = start(&mut homa(&[
        "bench",
        "--local",
        "--workload",
        "100",
        "--rate",
        "200",
        "-t",
        "100",
        "--rounds",
        "100",
        "--warmup",
        "0",
        "-i",
        "0.2",
    ]));
    let mut lines = BufReader::new(client.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("tcp") {
        line.clear();
        assert_ne!(lines.read_line(&mut line).unwrap(), 0);
    }
    let pid = client.id().to_string();
    let children = children_of(&pid);
    assert_eq!(children.len(), 1, "{children:?}");
    signal("-INT", &pid);
    let ran = finish(client);
    assert_eq!(ran.code, 130, "{ran:?}");
    assert!(
        ran.out.contains("interrupted") && ran.out.contains("Homa"),
        "{}",
        ran.out
    );
    assert!(!is_alive(&children[0]));
}

#[test]
fn local__killed_leaves_no_server() {
    let mut client = start(&mut homa(&[
        "bench",
        "--local",
        "--workload",
        "100",
        "--rate",
        "200",
        "-t",
        "100",
        "--warmup",
        "0",
        "-i",
        "0.2",
    ]));
    let mut line = String::new();
    let mut lines = BufReader::new(client.stderr.take().unwrap());
    lines.read_line(&mut line).unwrap();
    let pid = client.id().to_string();
    let children = children_of(&pid);
    signal("-KILL", &pid);
    drop(lines);
    let _ = finish(client);
    for _ in 0..100 {
        if children.iter().all(|child| !is_alive(child)) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("{children:?} still run");
}

fn children_of(pid: &str) -> Vec<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    text.split_whitespace().map(str::to_owned).collect()
}

/// A zombie whose parent has gone is not.
fn is_alive(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn settings__are_printed_without_a_server() {
    for arguments in [
        &["bench", "--settings", "--link-gbps", "25", "--rtt-us", "10"][..],
        &["ping", "--settings"],
        &["server", "--settings"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_homa"))
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("unscheduled"), "{text}");
    }
}

#[test]
fn settings__follow_from_the_link() {
    let unscheduled = |arguments: &[&str]| {
        let ran = run(arguments);
        ran.out
            .lines()
            .find(|line| line.contains("unscheduled"))
            .unwrap()
            .to_owned()
    };
    let slow = unscheduled(&["bench", "--settings", "--link-gbps", "1", "--rtt-us", "40"]);
    let fast = unscheduled(&["bench", "--settings", "--link-gbps", "5", "--rtt-us", "40"]);
    assert_ne!(slow, fast);
}
