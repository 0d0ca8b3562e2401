//! `homa server`, `homa ping` and `homa bench` as processes on loopback.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed step of a test's set-up is a failed test"
)]

use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use serde_json::Value;

struct Server {
    process: Child,
    stdout: BufReader<ChildStdout>,
    address: String,
}

impl Server {
    /// On a free port, which its first line tells.
    fn start() -> Self {
        let mut process = homa(&["server", "--listen", "127.0.0.1:0", "--json"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let listening: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(listening["event"], "listening");
        let address = listening["address"].as_str().unwrap().to_owned();
        Self {
            process,
            stdout,
            address,
        }
    }

    /// Ctrl-C; returns the last line it says.
    fn interrupt(mut self) -> Value {
        let pid = self.process.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-INT", &pid])
                .status()
                .unwrap()
                .success()
        );
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        assert_eq!(self.process.wait().unwrap().code(), Some(0));
        serde_json::from_str(rest.lines().last().unwrap()).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn homa(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_homa"));
    command.args(arguments);
    command
}

fn output(arguments: &[&str]) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = homa(arguments).output().unwrap();
    (
        status.code().unwrap(),
        String::from_utf8(stdout).unwrap(),
        String::from_utf8(stderr).unwrap(),
    )
}

#[test]
fn ping__lines_summary_and_the_server_s_totals() {
    let server = Server::start();
    let (code, out, err) = output(&["ping", "-c", "3", "-i", "0", "--verify", &server.address]);
    assert_eq!((code, &err[..]), (0, ""));
    assert!(out.contains("rpc=3 time="), "{out}");
    assert!(out.contains("3 RPCs, 3 answered, 0 lost"), "{out}");
    let total = server.interrupt();
    assert_eq!(total["totals"]["requests"], 3);
    assert_eq!(total["totals"]["response_bytes"], 300);
}

#[test]
fn bench__workload_as_json_and_as_a_table() {
    let server = Server::start();
    let file = std::env::temp_dir().join(format!("homa-bench-test-{}.json", std::process::id()));
    let to_file = format!("--json={}", file.display());
    let common = [
        "bench",
        &server.address,
        "--workload",
        "w3",
        "--rate",
        "2k",
        "-t",
        "0.6",
        "--warmup",
        "0.1",
        "--unloaded",
        "5",
        "--verify",
        "--drain",
        "10",
    ];
    let (code, out, err) = output(&[&common[..], &["--json"]].concat());
    assert_eq!((code, &err[..]), (0, ""), "{out}");
    let report: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(report["schema"], "homa-bench");
    assert_eq!(report["end"], "complete");
    let due = report["totals"]["due"].as_u64().unwrap();
    assert!((1_000..1_400).contains(&due), "{due}");
    assert!(report["classes"].as_array().unwrap().len() >= 9);

    let (code, table, _) = output(&[&common[..], &[to_file.as_str()]].concat());
    assert_eq!(code, 0, "{table}");
    assert!(
        table.contains("Slowdown B: over the unloaded median"),
        "{table}"
    );
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let again: Value = serde_json::from_str(&text).unwrap();
    // The same seed offers the same requests.
    assert_eq!(again["totals"]["due"].as_u64().unwrap(), due);
}

#[test]
fn bench__basics_are_three_runs() {
    let server = Server::start();
    let (code, out, _) = output(&[
        "bench",
        &server.address,
        "-t",
        "0.2",
        "--warmup",
        "0",
        "--json",
        "--drain",
        "10",
    ]);
    assert_eq!(code, 0, "{out}");
    let reports: Vec<Value> = serde_json::from_str(&out).unwrap();
    let titles: Vec<_> = reports
        .iter()
        .map(|report| report["title"].as_str().unwrap())
        .collect();
    assert_eq!(titles, ["latency", "throughput", "rate"]);
}

#[test]
fn bench__interrupted_says_what_it_has() {
    let server = Server::start();
    let mut client = homa(&[
        "bench",
        &server.address,
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
    ])
    .stdout(Stdio::piped())
    .stderr(Stdio::piped())
    .spawn()
    .unwrap();
    let mut line = String::new();
    BufReader::new(client.stderr.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert!(line.contains("Kops/s"), "{line}");
    let pid = client.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    let result = client.wait_with_output().unwrap();
    let table = String::from_utf8(result.stdout).unwrap();
    assert_eq!(result.status.code(), Some(1), "{table}");
    assert!(table.contains("note: interrupted"), "{table}");
}

#[test]
fn all__bad_usage_is_2_and_teaches() {
    let (code, _, err) = output(&["bench", "127.0.0.1", "--workload", "w9", "--gbps", "1"]);
    assert_eq!(code, 2);
    assert!(err.contains("w1, w2, w3, w4, w5, starve"), "{err}");
    let (code, _, err) = output(&["bench", "127.0.0.1", "--workload", "w4"]);
    assert_eq!(code, 2);
    assert!(err.contains("needs a load: --gbps"), "{err}");
    let (code, _, err) = output(&["ping", "no-such-host.invalid"]);
    assert_eq!(code, 2);
    assert!(err.contains("cannot resolve"), "{err}");
    assert_eq!(
        output(&["bench", "127.0.0.1", "--gbps", "1", "--rate", "5"]).0,
        2
    );
    assert_eq!(output(&["ping", "-s", "3", "127.0.0.1"]).0, 2);
}

#[test]
fn all__failures_are_1_and_say_what_to_do() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (code, _, err) = output(&["server", "--listen", &address]);
    assert_eq!(code, 1);
    assert!(
        err.contains("is in use") && err.contains("--listen"),
        "{err}"
    );
    drop(listener);
    for command in ["ping", "bench"] {
        let (code, _, err) = output(&[command, &address]);
        assert_eq!(code, 1);
        assert!(
            err.contains("is `homa server --protocol tcp` running there"),
            "{err}"
        );
    }
}
