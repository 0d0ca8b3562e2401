//! `homa compare` as a process: short runs on a slow emulated network.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed step of a test's set-up is a failed test"
)]

mod common;

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use common::{Ran, finish, homa, interrupt, run, start};
use serde_json::Value;

/// As little as gives numbers: two hosts, 100 Mbit/s.
const SHORT: [&str; 9] = [
    "compare", "--hosts", "2", "--rate", "0.1", "--warmup", "0.3", "--mtu", "1500",
];

/// What is measured here is the time of processes that share processors: one
/// test at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{name}", std::process::id()))
}

/// Runs it with these arguments too; nothing where there can be no testbed.
fn short(test: &str, more: &[&str]) -> Option<Ran> {
    let arguments: Vec<&str> = SHORT.iter().chain(more).copied().collect();
    let ran = run(&arguments);
    if ran.code == 2 {
        homa_test::skip(test, ran.err.trim());
        return None;
    }
    Some(ran)
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is not a number"))
}

#[test]
fn compare__a_short_run_has_everything() {
    let _alone = alone();
    let (json, page) = (file("short.json"), file("short.html"));
    let more = [
        "--rounds",
        "1",
        "-t",
        "1.5",
        "--json",
        json.to_str().unwrap(),
        "--report",
        page.to_str().unwrap(),
    ];
    let Some(ran) = short("compare__a_short_run_has_everything", &more) else {
        return;
    };
    let found: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
    let html = std::fs::read_to_string(&page).unwrap();
    std::fs::remove_file(json).unwrap();
    std::fs::remove_file(page).unwrap();
    // A network that TCP did not fill is no result, and it says so.
    assert_eq!(ran.code == 0, found["loaded"] == true, "{ran:?}");
    assert!(ran.code == 0 || ran.err.contains("not loaded"), "{ran:?}");
    for key in ["tcp", "tcp_prio", "homa", "homa_one_priority"] {
        let row = &found["rows"][key];
        assert!(number(&row["short_us"]["p50"]) > 0.0, "{key}: {row}");
        assert!(number(&row["short_samples"]) >= 10.0, "{key}: {row}");
        assert!(number(&row["goodput_bps"]) > 1e6, "{key}: {row}");
        assert!(row["failed"] == 0, "{key}: {row}");
        let classes = row["digest"]["classes"].as_array().unwrap();
        assert_eq!(classes.len(), 10, "{key}");
        assert!(classes[0]["slowdown_unloaded"]["p50"].is_number(), "{key}");
        let name = row["name"].as_str().unwrap();
        assert!(html.contains(name) && ran.out.contains(name), "{name}");
    }
    // Homa uses the priorities of the switch, and plain TCP only the lowest.
    let bytes = |key: &str| found["rows"][key]["bytes_by_priority"].clone();
    assert!(number(&bytes("homa")[7]) > 0.0);
    assert!(number(&bytes("tcp_prio")[7]) > 0.0);
    let tcp = bytes("tcp");
    let raised: f64 = (1..7).map(|priority| number(&tcp[priority])).sum();
    assert!(raised.abs() < 1.0, "{tcp}");
    for ratio in [
        "short_p99_ratio",
        "short_p99_ratio_vs_tcp_prio",
        "large_p99_ratio",
        "goodput_ratio",
    ] {
        assert!(found["headline"].get(ratio).is_some(), "{ratio}");
    }
    assert!(found["cpu_limited"].is_boolean());
    for key in [
        "command",
        "buffer_bytes",
        "rate_bps",
        "load",
        "seed",
        "machine",
    ] {
        assert!(!found["setup"][key].is_null(), "{key}");
    }
    assert!(html.starts_with("<!DOCTYPE html>"), "{}", &html[..40]);
}

#[test]
fn compare__tcp_beside_itself_is_alike() {
    let _alone = alone();
    let json = file("itself.json");
    let more = [
        "--tcp-against-itself",
        "--workload",
        "20k",
        "--rounds",
        "2",
        "-t",
        "2",
        "--json",
        json.to_str().unwrap(),
        "--report",
        "none",
    ];
    let alike = |value: &Value| value.as_f64().is_some_and(|x| (0.8..=1.25).contains(&x));
    let mut seen = Vec::new();
    // What else the machine does can hit one of the two.
    for _ in 0..4 {
        let Some(_) = short("compare__tcp_beside_itself_is_alike", &more) else {
            return;
        };
        let found: Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
        let headline = &found["headline"];
        if alike(&headline["short_p99_ratio"]) && alike(&headline["goodput_ratio"]) {
            std::fs::remove_file(json).unwrap();
            return;
        }
        seen.push(headline.to_string());
    }
    panic!("{seen:#?}");
}

#[test]
fn compare__interrupted_leaves_no_process() {
    let _alone = alone();
    let mut command = homa(&[]);
    let long = ["-t", "60", "--report", "none"];
    let process = start(command.args(SHORT).args(long).process_group(0));
    let group = process.id();
    thread::sleep(Duration::from_secs(2));
    let ran = interrupt(process);
    if ran.code == 2 {
        homa_test::skip("compare__interrupted_leaves_no_process", ran.err.trim());
        return;
    }
    assert_eq!(ran.code, 130, "{ran:?}");
    assert!(ran.err.contains("interrupted"), "{ran:?}");
    let begin = Instant::now();
    while processes_of(group) > 0 {
        assert!(begin.elapsed() < Duration::from_secs(5), "processes stay");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Processes of a process group, zombies aside.
fn processes_of(group: u32) -> usize {
    let stats = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        // They come and go.
        std::fs::read_to_string(entry.ok()?.path().join("stat")).ok()
    });
    stats
        .filter(|stat| {
            let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
            let fields: Vec<&str> = after_name.split_whitespace().collect();
            fields.first() != Some(&"Z") && fields.get(2) == Some(&&*group.to_string())
        })
        .count()
}

#[test]
fn compare__bad_options_and_missing_programs() {
    for (arguments, says) in [
        (&["--load", "2"][..], "at most 0.95"),
        (&["--buffer", "much"], "256Ki"),
        (&["--hosts", "1"], "--hosts"),
        (&["--workload", "w9"], "w1, w2, w3"),
        (&["--mtu", "100"], "--mtu"),
    ] {
        let all: Vec<&str> = ["compare"].iter().chain(arguments).copied().collect();
        let ran = run(&all);
        assert_eq!(ran.code, 2, "{arguments:?}: {ran:?}");
        assert!(ran.err.contains(says), "{arguments:?}: {ran:?}");
    }
    let nothing = finish(start(homa(&["compare"]).env("PATH", "/nonexistent")));
    assert_eq!(nothing.code, 2, "{nothing:?}");
    assert_eq!(nothing.err.lines().count(), 1, "{nothing:?}");
}
