//! What goes wrong is said, with what to do about it.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed step of a test's set-up is a failed test"
)]

mod common;

use std::net::{TcpListener, UdpSocket};
use std::process::Command;

use common::{Server, finish, run, start};

/// Asserts the exit code, and that each text is in the message.
fn assert_says(arguments: &[&str], code: i32, texts: &[&str]) {
    let ran = run(arguments);
    assert_eq!(ran.code, code, "{arguments:?}: {ran:?}");
    for text in texts {
        assert!(ran.err.contains(text), "{arguments:?}: {text:?}: {ran:?}");
    }
}

#[test]
fn usage__workloads_and_loads() {
    let host = "127.0.0.1";
    assert_says(
        &["bench", host, "--workload", "w9", "--gbps", "1"],
        2,
        &["w1, w2, w3, w4, w5, starve"],
    );
    assert_says(
        &["bench", host, "--workload", "w4"],
        2,
        &["needs a load: --gbps"],
    );
    assert_says(&["bench", host, "--gbps", "1", "--rate", "5"], 2, &[]);
    assert_says(
        &["bench", host, "--mode", "basic", "--gbps", "1"],
        2,
        &["leave --workload"],
    );
    assert_says(
        &["bench", host, "--workload", "8", "--gbps", "1000"],
        2,
        &["more than one client can offer"],
    );
    assert_says(&["bench"], 2, &["Give HOST", "--local"]);
    assert_says(
        &["bench", "--local", "--datapath", "raw"],
        2,
        &["one endpoint", "another namespace"],
    );
    assert_says(&["bench", host, "--local"], 2, &["cannot be used with"]);
    assert_says(&["ping", "-s", "3", host], 2, &["at least 8 bytes"]);
    assert_says(
        &["ping", "--loss", "2", host],
        2,
        &["share of packets from 0 to 1"],
    );
}

#[test]
fn usage__a_bad_workload_file_is_named_with_its_line() {
    let file = std::env::temp_dir().join(format!("homa-bad-{}.csv", std::process::id()));
    std::fs::write(
        &file,
        "size_bytes,cumulative_fraction\n100,0.5\nmany,0.7\n200,1\n",
    )
    .unwrap();
    let name = file.to_str().unwrap();
    assert_says(
        &["bench", "127.0.0.1", "--workload", name, "--gbps", "1"],
        2,
        &[name, "line 3"],
    );
    std::fs::remove_file(&file).unwrap();
    assert_says(
        &["bench", "127.0.0.1", "--workload", name, "--gbps", "1"],
        2,
        &[name],
    );
}

#[test]
fn log__events_on_stderr_and_a_bad_filter() {
    let ping = |filter: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_homa"))
            .args(["ping", "127.0.0.1:1", "-c", "1"])
            .env("HOMA_LOG", filter)
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
    };
    let (code, events) = ping("debug");
    assert_eq!(code, Some(1));
    assert!(events.contains("homa_engine::state: new peer"), "{events}");
    let (_, quiet) = ping("error");
    assert!(!quiet.contains("new peer"), "{quiet}");
    let (code, refused) = ping("[");
    assert_eq!(code, Some(2));
    assert!(refused.contains("HOMA_LOG is `[`"), "{refused}");
}

#[test]
fn usage__hosts() {
    assert_says(
        &["ping", "no-such-host.invalid"],
        2,
        &["cannot resolve `no-such-host.invalid`"],
    );
    assert_says(&["ping", "127.0.0.1:99999"], 2, &["is not a port"]);
}

#[test]
fn server__a_port_in_use() {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (tcp, udp) = (
        tcp.local_addr().map(|address| (tcp, address)).unwrap(),
        udp.local_addr().map(|address| (udp, address)).unwrap(),
    );
    for (protocol, address) in [("tcp", tcp.1), ("homa", udp.1), ("both", tcp.1)] {
        assert_says(
            &[
                "server",
                "--protocol",
                protocol,
                "--listen",
                &address.to_string(),
            ],
            1,
            &["is in use", "--listen"],
        );
    }
}

#[test]
fn clients__a_closed_port() {
    let free = {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.local_addr().unwrap().to_string()
    };
    for protocol in ["homa", "tcp"] {
        for command in ["ping", "bench"] {
            assert_says(
                &[command, "--protocol", protocol, &free],
                1,
                &[
                    "nobody listens",
                    &format!("is `homa server --protocol {protocol}` running there"),
                ],
            );
        }
    }
}

#[test]
fn clients__a_silent_peer() {
    // Takes packets and never answers.
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    assert_says(
        &["ping", &address],
        1,
        &["is silent", "firewall", "UDP port"],
    );
}

/// A network namespace of its own has one interface, loopback, which is down.
#[test]
fn clients__an_interface_that_is_down() {
    let alone = |arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command
            .args(["--map-root-user", "--net", env!("CARGO_BIN_EXE_homa")])
            .args(arguments);
        finish(start(&mut command))
    };
    if !Command::new("unshare")
        .args(["--map-root-user", "--net", "true"])
        .status()
        .is_ok_and(|status| status.success())
    {
        homa_test::skip(
            "clients__an_interface_that_is_down",
            "no right to make a network namespace with unshare",
        );
        return;
    }
    for protocol in ["homa", "tcp"] {
        for address in ["127.0.0.1", "192.0.2.1", "[::1]"] {
            let ran = alone(&["ping", "-c", "1", "--protocol", protocol, address]);
            assert_eq!(ran.code, 1, "{ran:?}");
            assert!(
                ran.err.contains("cannot be reached") && ran.err.contains("interface up"),
                "{ran:?}"
            );
        }
    }
}

#[test]
fn clients__a_server_of_the_other_protocol() {
    let server = Server::of("tcp");
    assert_says(
        &["ping", server.address()],
        1,
        &["is `homa server --protocol homa` running there"],
    );
}

#[test]
fn clients__messages_that_are_too_long() {
    let server = Server::of("homa");
    let address = server.address();
    assert_says(
        &["ping", "-s", "100m", "-c", "1", address],
        2,
        &["longer than the 67108864 B that homa carries", "--size"],
    );
    assert_says(
        &["bench", address, "--workload", "100m", "--outstanding", "1"],
        1,
        &["longer than the 67108864 B that homa carries", "--workload"],
    );
}

/// Root may, others may not.
#[test]
fn raw__without_the_right_to() {
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=65534", "--clear-groups", "--bounding-set=-all"])
        .arg(env!("CARGO_BIN_EXE_homa"))
        .args(["ping", "--datapath", "raw", "127.0.0.1"]);
    if !Command::new("setpriv")
        .args(["--reuid=65534", "--clear-groups", "--bounding-set=-all"])
        .args([env!("CARGO_BIN_EXE_homa"), "--version"])
        .output()
        .is_ok_and(|output| output.status.success())
    {
        homa_test::skip(
            "raw__without_the_right_to",
            "no root that setpriv could take rights from, or the program cannot be read by others",
        );
        return;
    }
    let ran = finish(start(&mut command));
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        ran.err.contains("CAP_NET_RAW") && ran.err.contains("UDP"),
        "{ran:?}"
    );
}

#[test]
fn bench__a_report_that_cannot_be_written() {
    assert_says(
        &[
            "bench",
            "--local",
            "--protocol",
            "homa",
            "--mode",
            "latency",
            "-t",
            "0.1",
            "--warmup",
            "0",
            "--json=/nowhere/report.json",
        ],
        1,
        &["cannot write /nowhere/report.json"],
    );
}
