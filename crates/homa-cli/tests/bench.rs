//! `homa bench` against `homa server`, as processes on loopback.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed step of a test's set-up is a failed test"
)]

mod common;

use std::io::{BufRead, BufReader};

use common::{Ran, Server, finish, homa, run, signal, start};
use serde_json::Value;

/// A short run of a workload.
fn workload(protocol: &str, address: &str, more: &[&str]) -> Ran {
    let common = [
        "bench",
        address,
        "--protocol",
        protocol,
        "--workload",
        "w3",
        "--rate",
        "1k",
        "-t",
        "0.6",
        "--warmup",
        "0.1",
        "--unloaded",
        "5",
        "--verify",
        "--drain",
        "20",
    ];
    run(&[&common[..], more].concat())
}

fn assert_balanced(report: &Value) {
    assert_eq!(report["schema"], "homa-bench");
    let totals = &report["totals"];
    let count = |name: &str| totals[name].as_u64().unwrap();
    assert_eq!(
        count("due"),
        count("finished") + count("unfinished"),
        "{totals}"
    );
    let samples: u64 = report["classes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["samples"].as_u64().unwrap())
        .sum();
    assert_eq!(samples, count("due"), "{totals}");
    assert_eq!(report["all"]["samples"].as_u64(), Some(count("due")));
}

#[test]
fn bench__workload_as_json_and_as_a_table() {
    for protocol in ["homa", "tcp"] {
        let server = Server::of(protocol);
        let file = std::env::temp_dir().join(format!(
            "homa-bench-test-{}-{protocol}.json",
            std::process::id()
        ));
        let ran = workload(protocol, server.address(), &["--json"]);
        assert_eq!((ran.code, &ran.err[..]), (0, ""), "{}", ran.out);
        let report = ran.json();
        assert_balanced(&report);
        assert_eq!(report["end"], "complete");
        assert_eq!(report["setup"]["protocol"], protocol);
        let due = report["totals"]["due"].as_u64().unwrap();
        assert!((450..750).contains(&due), "{due}");

        let to_file = format!("--json={}", file.display());
        let ran = workload(protocol, server.address(), &[&to_file]);
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(
            ran.out.contains("Slowdown B: over the unloaded median"),
            "{}",
            ran.out
        );
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        let again: Value = serde_json::from_str(&text).unwrap();
        // The same seed offers the same requests.
        assert_eq!(again["totals"]["due"].as_u64().unwrap(), due);
    }
}

#[test]
fn bench__every_workload_of_the_papers_and_a_file() {
    let server = Server::of("homa");
    let file = std::env::temp_dir().join(format!("homa-sizes-{}.csv", std::process::id()));
    std::fs::write(&file, "size_bytes,cumulative_fraction\n100,0.5\n20000,1\n").unwrap();
    let own = file.to_str().unwrap().to_owned();
    for name in ["w1", "w2", "w3", "w4", "w5", &own] {
        let ran = run(&[
            "bench",
            server.address(),
            "--workload",
            name,
            "--gbps",
            "0.02",
            "-t",
            "0.4",
            "--warmup",
            "0",
            "--unloaded",
            "0",
            "--drain",
            "30",
            "--verify",
            "--json",
        ]);
        assert!(ran.code == 0 || ran.out.contains("\"due\": 0"), "{ran:?}");
        assert_balanced(&ran.json());
    }
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn bench__basics_are_three_runs() {
    let server = Server::of("homa");
    let ran = run(&[
        "bench",
        server.address(),
        "-t",
        "0.2",
        "--warmup",
        "0",
        "--drain",
        "20",
        "--json",
    ]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let reports: Vec<Value> = serde_json::from_str(&ran.out).unwrap();
    let titles: Vec<_> = reports
        .iter()
        .map(|report| report["title"].as_str().unwrap())
        .collect();
    assert_eq!(titles, ["latency", "throughput", "rate"]);
    for report in &reports {
        assert_balanced(report);
    }
}

#[test]
fn bench__interrupted_says_what_it_has() {
    let server = Server::of("homa");
    let mut client = start(&mut homa(&[
        "bench",
        server.address(),
        "--workload",
        "100",
        "--outstanding",
        "1",
        "-t",
        "60",
        "--warmup",
        "0",
        "-i",
        "0.2",
        "--unloaded",
        "0",
    ]));
    let mut line = String::new();
    BufReader::new(client.stderr.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.contains("Kops/s"), "{line}");
    signal("-INT", &client.id().to_string());
    let ran = finish(client);
    assert_eq!(ran.code, 130, "{ran:?}");
    assert!(ran.out.contains("note: interrupted"), "{}", ran.out);
    assert!(ran.out.contains("RPCs finished"), "{}", ran.out);
}

#[test]
fn bench__losses_are_counted_as_bytes_sent_again() {
    let server = Server::of("homa");
    let ran = run(&[
        "bench",
        server.address(),
        "--workload",
        "20k",
        "--outstanding",
        "8",
        "-t",
        "1",
        "--warmup",
        "0",
        "--unloaded",
        "0",
        "--drain",
        "20",
        "--loss",
        "0.02",
        "--fault-seed",
        "1",
        "--verify",
        "--json",
    ]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let report = ran.json();
    assert_balanced(&report);
    assert!(
        report["counters"]["core.retransmitted_bytes"]
            .as_u64()
            .unwrap()
            > 0
    );
}
