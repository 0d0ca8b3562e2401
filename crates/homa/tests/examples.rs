//! Every example, end to end, as the user would run it.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail the test"
)]
#![cfg(feature = "tokio")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

/// Cargo builds the examples before it runs the tests, next to them.
fn example(name: &str) -> Command {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    if path.ends_with("deps") {
        path.pop();
    }
    Command::new(path.join("examples").join(name))
}

fn run(name: &str, arguments: &[&str]) -> Output {
    let output = example(name).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{name} {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

fn text(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

/// A server that is ended when dropped.
struct Serving {
    child: Child,
    address: String,
}

impl Serving {
    fn start(name: &str) -> Self {
        let mut child = example(name)
            .args(["serve", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let port = line.trim().rsplit(' ').next().unwrap();
        Self {
            address: format!("127.0.0.1:{port}"),
            child,
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn echo__sends_back() {
    let server = Serving::start("echo");
    let output = run("echo", &["call", &server.address, "hello, world"]);
    assert_eq!(text(&output), "hello, world\n");
    // Nobody there: the cause is named, and at once.
    drop(Serving::start("echo"));
    let output = example("echo")
        .args(["call", "127.0.0.1:1", "x"])
        .output()
        .unwrap();
    assert!(!output.status.success());
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("PortClosed"), "{error}");
}

#[test]
fn key_value__remembers() {
    let server = Serving::start("key_value");
    let at = server.address.as_str();
    assert_eq!(
        text(&run("key_value", &["get", at, "colour"])),
        "(nothing)\n"
    );
    assert_eq!(
        text(&run("key_value", &["set", at, "colour", "deep blue"])),
        "(nothing)\n"
    );
    assert_eq!(
        text(&run("key_value", &["get", at, "colour"])),
        "deep blue\n"
    );
    assert_eq!(
        text(&run("key_value", &["set", at, "colour", "red"])),
        "deep blue\n"
    );
}

#[test]
fn fan_out__says_who_missed_the_deadline() {
    let output = run("fan_out", &["8", "200"]);
    let text = text(&output);
    assert!(text.contains("7 parts"), "{text}");
    assert_eq!(text.matches("missed it").count(), 1, "{text}");
    assert_eq!(text.matches("failed: 127.0.0.1:1: ").count(), 1, "{text}");
}

#[test]
fn ping_pong__reports_all_three() {
    let output = run("ping_pong", &["500"]);
    let lines: Vec<_> = text(&output).lines().map(|line| &line[..4]).collect();
    assert_eq!(lines, ["homa", "tcp ", "udp "]);
}
