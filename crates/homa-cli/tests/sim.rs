//! `homa sim` as a process.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed step of a test's set-up is a failed test"
)]

mod common;

use std::path::PathBuf;

use common::{Ran, run};
use serde_json::Value;

/// A file of this test process, removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let name = format!("homa-sim-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn text(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A test that failed early has written none.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A run that is over in a moment.
fn tiny(more: &[&str]) -> Ran {
    let common = [
        "sim",
        "run",
        "sigcomm18-w3",
        "--seconds",
        "0.0002",
        "--warm-up",
        "0.00005",
    ];
    run(&[&common[..], more].concat())
}

#[test]
fn list__names_every_scenario() {
    let ran = run(&["sim", "list"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    for number in 1..=5 {
        let name = format!("sigcomm18-w{number} ");
        assert_eq!(
            ran.out
                .lines()
                .filter(|line| line.starts_with(&name))
                .count(),
            1,
            "{ran:?}"
        );
    }
}

#[test]
fn run__a_name_that_does_not_exist_is_answered_with_those_that_do() {
    let ran = run(&["sim", "run", "sigcomm18-w6"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.out.is_empty(), "{ran:?}");
    assert!(ran.err.contains("sigcomm18-w6"), "{ran:?}");
    assert!(
        ran.err.contains("sigcomm18-w1, sigcomm18-w2, sigcomm18-w3"),
        "{ran:?}"
    );
}

#[test]
fn run__bad_values_are_bad_usage() {
    for more in [
        ["--load", "1.5"],
        ["--load", "0"],
        ["--seeds", "0"],
        ["--seconds", "0"],
    ] {
        let ran = tiny(&more);
        assert_eq!(ran.code, 2, "{more:?}: {ran:?}");
        assert!(ran.err.contains(more[0]), "{more:?}: {ran:?}");
    }
}

#[test]
fn run__table_with_published_numbers_and_trace() {
    let ran = tiny(&[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        ran.out.contains("(1.46)"),
        "the published mean of W3: {ran:?}"
    );
    assert!(ran.out.contains("seed 1: trace "), "{ran:?}");
    assert!(
        ran.out.contains("million packet hops per second of CPU"),
        "{ran:?}"
    );
}

#[test]
fn run__json_has_what_is_promised_and_repeats() {
    let ran = tiny(&["--json", "-"]);
    let report = ran.json();
    let homa = &report["protocols"]["homa"];
    let slowdown = &homa["slowdown"];
    assert!(slowdown["mean"].as_f64().unwrap() > 1.0, "{report}");
    assert!(
        slowdown["spread"].is_null(),
        "a single seed has none: {report}"
    );
    for name in ["p99_short_half", "p99_any"] {
        assert!(slowdown.get(name).is_some(), "{name}");
    }
    assert!(homa["short_p99_us"].as_f64().unwrap() > 1.0, "{report}");
    assert!(homa.get("large_p99_us").is_some(), "{report}");
    for row in slowdown["by_size"].as_array().unwrap() {
        let enough = row["messages"].as_u64().unwrap() >= 1000;
        assert_eq!(!row["p99"].is_null(), enough, "{row}");
        assert!(row["published"]["p99"].as_f64().is_some(), "{row}");
    }
    let shares: f64 = homa["share_by_priority"]
        .as_array()
        .unwrap()
        .iter()
        .map(|share| share.as_f64().unwrap())
        .sum();
    assert!((shares - 1.0).abs() < 1e-9, "{report}");
    assert!(report["packet_hops_per_s"].as_f64().unwrap() > 0.0);
    let hash = report["trace_hash"].as_str().unwrap();
    assert_eq!(report["runs"][0]["trace_hash"], hash);
    assert_eq!(tiny(&["--json", "-"]).json()["trace_hash"], hash);
    assert_ne!(
        tiny(&["--json", "-", "--seed", "2"]).json()["trace_hash"],
        hash
    );
}

#[test]
fn run__seeds_together_with_their_spread_as_file_and_page() {
    let (json, page) = (Scratch::new("seeds.json"), Scratch::new("seeds.html"));
    let ran = tiny(&[
        "--seeds",
        "2",
        "--json",
        json.text(),
        "--report",
        page.text(),
    ]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&json.0).unwrap()).unwrap();
    let [least, most] = [0, 1].map(|end| {
        let spread = &report["protocols"]["homa"]["slowdown"]["spread"];
        spread["mean"][end].as_f64().unwrap()
    });
    let mean = report["protocols"]["homa"]["slowdown"]["mean"]
        .as_f64()
        .unwrap();
    assert!(least < most, "{report}");
    assert!((least..=most).contains(&mean), "{report}");
    let page = std::fs::read_to_string(&page.0).unwrap();
    for text in [
        "sigcomm18-w3 at load 0.8",
        "published",
        "priority 7",
        "leaf to host",
        "homa sim run sigcomm18-w3 --load 0.8 --warm-up 0.00005",
    ] {
        assert!(page.contains(text), "`{text}` is missing");
    }
}

#[test]
fn run__a_file_that_cannot_be_written_is_a_failure() {
    let ran = tiny(&["--json", "/nonexistent/report.json"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.err.contains("/nonexistent/report.json"), "{ran:?}");
}
