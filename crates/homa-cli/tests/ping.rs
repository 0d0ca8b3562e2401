//! `homa server` and `homa ping` as processes on loopback.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed step of a test's set-up is a failed test"
)]

mod common;

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use common::{Server, finish, homa, run, signal, start};
use serde_json::Value;

#[test]
fn ping__lines_summary_and_the_server_s_totals() {
    for protocol in ["homa", "tcp"] {
        let server = Server::of(protocol);
        let ran = run(&[
            "ping",
            "-c",
            "3",
            "-i",
            "0",
            "--verify",
            "--protocol",
            protocol,
            server.address(),
        ]);
        assert_eq!((ran.code, &ran.err[..]), (0, ""), "{}", ran.out);
        assert!(ran.out.contains("rpc=3 time="), "{}", ran.out);
        assert!(
            ran.out.contains("3 RPCs, 3 answered, 0 lost"),
            "{}",
            ran.out
        );
        let total = server.interrupt().pop().unwrap();
        assert_eq!(total["protocol"], protocol);
        // Homa's client says hello with a call of 8 B.
        let hello = i32::from(protocol == "homa");
        assert_eq!(total["totals"]["requests"], 3 + hello);
        assert_eq!(total["totals"]["response_bytes"], 300 + 8 * hello);
    }
}

#[test]
fn ping__sizes_from_the_shortest_to_the_longest_in_json() {
    let server = Server::of("homa");
    for (size, response) in [("8", "1"), ("1m", "100"), ("100", "3m"), ("20m", "echo")] {
        let ran = run(&[
            "ping",
            "-c",
            "2",
            "-i",
            "0",
            "-W",
            "20",
            "-s",
            size,
            "--response-size",
            response,
            "--verify",
            "--json",
            server.address(),
        ]);
        assert_eq!(ran.code, 0, "{size} {response}: {ran:?}");
        let lines: Vec<Value> = ran
            .out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let [first, _, summary] = &lines[..] else {
            panic!("{ran:?}");
        };
        assert_eq!(first["event"], "rpc");
        assert!(first["rtt_us"].as_f64().unwrap() > 0.0);
        assert_eq!(summary["summary"]["answered"], 2);
    }
}

#[test]
fn ping__a_lossy_way_is_mended_and_a_dead_one_is_said() {
    let server = Server::of("homa");
    let ran = run(&[
        "ping",
        "-c",
        "50",
        "-i",
        "0",
        "-s",
        "20k",
        "-W",
        "20",
        "-q",
        "--loss",
        "5%",
        "--reorder",
        "0.05",
        "--dup",
        "0.05",
        "--fault-seed",
        "3",
        "--verify",
        server.address(),
    ]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("50 answered"), "{}", ran.out);
    let ran = run(&["ping", "-c", "1", "--loss", "1", server.address()]);
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        ran.err.contains("is silent") && ran.err.contains("UDP port"),
        "{}",
        ran.err
    );
}

#[test]
fn ping__interrupted_says_what_it_has() {
    let server = Server::of("homa");
    let mut client = start(&mut homa(&["ping", "-i", "0.05", server.address()]));
    let mut lines = BufReader::new(client.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("rpc=2 ") {
        line.clear();
        assert_ne!(lines.read_line(&mut line).unwrap(), 0);
    }
    signal("-INT", &client.id().to_string());
    let rest: Vec<String> = lines.lines().map(Result::unwrap).collect();
    assert_eq!(finish(client).code, 0, "{rest:?}");
    assert!(rest.iter().any(|line| line.contains(" 0 lost")), "{rest:?}");
}

#[test]
fn server__both_protocols_and_totals_that_balance() {
    let server = Server::start(&["--listen", "127.0.0.1:0", "--protocol", "both"], 2);
    for (address, protocol) in server.addresses.iter().zip(["homa", "tcp"]) {
        let ran = run(&[
            "ping",
            "-q",
            "-c",
            "5",
            "-i",
            "0",
            "-s",
            "1000",
            "--response-size",
            "10",
            "--protocol",
            protocol,
            address,
        ]);
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    let totals: Vec<Value> = server
        .interrupt()
        .into_iter()
        .filter(|line| line["event"] == "total")
        .collect();
    assert_eq!(totals.len(), 2);
    for total in totals {
        let hello = u64::from(total["protocol"] == "homa");
        assert_eq!(total["totals"]["requests"], 5 + hello, "{total}");
        assert_eq!(total["totals"]["request_bytes"], 5_000 + 8 * hello);
        assert_eq!(total["totals"]["response_bytes"], 50 + 8 * hello);
        assert_eq!(total["totals"]["refused"], 0);
    }
}

#[test]
fn server__ends_with_its_standard_input_if_asked_to() {
    let server = homa(&["server", "--listen", "127.0.0.1:0", "--until-stdin-closes"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // Waiting for it closes its standard input first.
    let ran = finish(server);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("0 requests answered"), "{}", ran.out);
}

#[test]
fn all__ipv6() {
    let server = Server::start(&["--listen", "[::1]:0"], 1);
    let ran = run(&["ping", "-c", "2", "-i", "0", server.address()]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("from [::1]:"), "{}", ran.out);
}
