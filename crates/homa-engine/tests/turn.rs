//! A turn is bounded, whatever has piled up; what is left is said to be left.
#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant};

use homa_engine::{CallOptions, Drive, Engine};
use support::*;

/// Datagrams of one system call, each of which GRO may have made of 64.
const MOST_PACKETS: u64 = 16 * 64;
const MOST_TIMERS: u64 = 64;

fn external() -> Arc<Engine> {
    let mut config = config();
    config.drive = Drive::External;
    Engine::new(config, udp()).unwrap()
}

#[test]
fn drive__packets_of_one_turn_are_bounded() {
    const SENT: u64 = 3000;
    let engine = external();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..SENT {
        socket.send_to(&[0xff; 64], address(&engine)).unwrap();
    }
    let mut seen = 0;
    let mut turns = 0;
    while seen < SENT {
        let turn = engine.drive();
        turns += 1;
        let now = engine.stats().engine.packets_of_unknown_type;
        assert!(now - seen <= MOST_PACKETS, "{} in one turn", now - seen);
        assert!(now > seen, "a turn that did nothing");
        assert!(turn.more || now == SENT, "{} are left", SENT - now);
        seen = now;
    }
    assert!(turns >= SENT / MOST_PACKETS, "{turns} turns");
    assert!(!engine.drive().more);
}

#[test]
fn drive__timers_of_one_turn_are_bounded() {
    const CALLS: u64 = 500;
    let engine = external();
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let to = silent.local_addr().unwrap();
    let deadline = Instant::now() + Duration::from_millis(100);
    let calls: Vec<_> = (0..CALLS)
        .map(|_| engine.call(to, "x", CallOptions::until(deadline)).unwrap())
        .collect();
    std::thread::sleep(deadline.saturating_duration_since(Instant::now()));
    let mut passed = 0;
    while passed < CALLS {
        let turn = engine.drive();
        let now = engine.stats().engine.deadlines_exceeded;
        assert!(now - passed <= MOST_TIMERS, "{} in one turn", now - passed);
        assert!(turn.more || now == CALLS, "{} are left", CALLS - now);
        passed = now;
    }
    drop(calls);
}
