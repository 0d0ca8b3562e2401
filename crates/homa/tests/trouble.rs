//! What peers, networks and users do wrong. Each case ends in an error that
//! names its cause, or in a counted drop; nothing hangs and nothing panics.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail the test"
)]
#![cfg(feature = "tokio")]

mod common;

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{HandMade, bytes, data, echo_endpoint, pattern, serve, soon, spawn_echo};
use homa::datapath::Faults;
use homa::{Endpoint, Error};
use homa_wire::{AbortCode, Body, PacketType};

const MS: Duration = Duration::from_millis(1);

/// Nobody accepts requests there; if the network or this machine was slow and
/// the client had to ask again, it cannot know about the time before.
fn is_closed(error: &Error) -> bool {
    matches!(error, Error::PortClosed { .. } | Error::ServerGone { .. })
}

#[tokio::test]
async fn closed_port__fails_at_once() {
    let endpoint = Endpoint::bind("127.0.0.1:0").await.unwrap();
    // Nobody has this port: it was just given back.
    let closed = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let start = Instant::now();
    let error = soon(endpoint.client().call(closed, "x")).await.unwrap_err();
    assert!(
        matches!(error, Error::PortClosed { peer } if peer == closed),
        "{error}"
    );
    assert!(!error.may_have_executed());
    assert!(start.elapsed() < 50 * MS, "{:?}", start.elapsed());
    // Told by the network, not found out by a RESEND after 5 ms.
    let mut times = Vec::new();
    for _ in 0..21 {
        let start = Instant::now();
        let error = soon(endpoint.client().call(closed, "x")).await.unwrap_err();
        assert!(matches!(error, Error::PortClosed { .. }), "{error}");
        times.push(start.elapsed());
    }
    times.sort();
    assert!(times[10] < 2 * MS, "{times:?}");
}

#[tokio::test]
async fn no_server__on_a_port_that_an_endpoint_has() {
    let other = Endpoint::bind("127.0.0.1:0").await.unwrap();
    let endpoint = Endpoint::client_only().await.unwrap();
    let start = Instant::now();
    let call = endpoint.client().call(other.local_addresses()[0], "x");
    let error = soon(call).await.unwrap_err();
    assert!(is_closed(&error), "{error}");
    assert!(start.elapsed() < 50 * MS, "{:?}", start.elapsed());
}

#[tokio::test]
async fn server_dropped__closes_the_port() {
    let other = Endpoint::bind("127.0.0.1:0").await.unwrap();
    let address = other.local_addresses()[0];
    let endpoint = Endpoint::client_only().await.unwrap();
    let client = endpoint.client();
    let server = serve(&other);
    let waiting = tokio::spawn(client.call(address, "nobody takes it").into_future());
    while other.stats().engine_gauges.waiting_requests == 0 {
        tokio::time::sleep(MS).await;
    }
    drop(server);
    let error = soon(waiting).await.unwrap().unwrap_err();
    assert!(
        matches!(
            error,
            Error::PortClosed { .. }
                | Error::ServerGone { .. }
                | Error::DroppedWithoutAnswer { .. }
                | Error::Refused { .. }
        ),
        "{error}"
    );
    let error = soon(client.call(address, "x")).await.unwrap_err();
    assert!(is_closed(&error), "{error}");
    // And it can be opened again.
    spawn_echo(serve(&other));
    assert_eq!(bytes(soon(client.call(address, "x")).await.unwrap()), b"x");
}

#[tokio::test]
async fn silent_host__times_out() {
    let silent = HandMade::new();
    let endpoint = Endpoint::client_only().await.unwrap();
    let start = Instant::now();
    let call = endpoint.client().call(silent.address(), "x");
    let error = soon(call).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
    assert!(error.may_have_executed());
    let took = start.elapsed();
    assert!(took >= 100 * MS && took < 2000 * MS, "{took:?}");
    // It was asked for the response before it was given up.
    silent.expect(PacketType::Data);
    silent.expect(PacketType::Resend);
}

/// In a namespace without routes, so that no packet leaves this host.
#[test]
fn unreachable_host__names_the_cause() {
    common::in_namespace("unreachable_host__names_the_cause", || async {
        let endpoint = Endpoint::client_only().await.unwrap();
        for nowhere in ["192.0.2.1:4000", "[2001:db8::1]:4000"] {
            let start = Instant::now();
            let error = soon(endpoint.client().call(nowhere, "x"))
                .await
                .unwrap_err();
            assert!(matches!(error, Error::HostUnreachable { .. }), "{error}");
            assert!(error.to_string().contains(nowhere), "{error}");
            assert!(start.elapsed() < 50 * MS, "{:?}", start.elapsed());
        }
    });
}

#[tokio::test]
async fn port_zero__is_an_error() {
    let endpoint = Endpoint::bind("127.0.0.1:0").await.unwrap();
    let error = soon(endpoint.client().call("127.0.0.1:0", "x"))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::PortZero { .. }), "{error}");
    let error = endpoint.server(0).unwrap_err();
    assert!(matches!(error, Error::WrongPort { port: 0, .. }), "{error}");
}

#[tokio::test]
async fn server__port_taken_or_not_ours() {
    let endpoint = Endpoint::bind("127.0.0.1:0").await.unwrap();
    let port = endpoint.port().unwrap();
    let error = endpoint.server(port ^ 1).unwrap_err();
    assert!(
        matches!(error, Error::WrongPort { own: Some(own), .. } if own == port),
        "{error}"
    );
    let _server = endpoint.server(port).unwrap();
    let error = endpoint.server(port).unwrap_err();
    assert!(matches!(error, Error::ServerExists { .. }), "{error}");
    let error = Endpoint::bind(("127.0.0.1", port)).await.unwrap_err();
    assert!(
        matches!(error, Error::PortInUse { address } if address.port() == port),
        "{error}"
    );
    let error = Endpoint::bind("192.0.2.1:4000").await.unwrap_err();
    assert!(matches!(error, Error::NotLocal { .. }), "{error}");
}

#[tokio::test]
async fn settings__that_cannot_be() {
    let built = Endpoint::builder().priorities(9).build().await;
    assert!(matches!(built, Err(Error::Config(_))));
    let built = Endpoint::builder().buffer_bytes(1).build().await;
    assert!(matches!(built, Err(Error::Config(_))));
    let built = Endpoint::builder().dscp([64; 8]).build().await;
    assert!(matches!(built, Err(Error::Option { option: "dscp", .. })));
    let built = Endpoint::builder().max_rpcs_in_flight(0).build().await;
    assert!(matches!(built, Err(Error::Option { .. })));
    let built = Endpoint::builder()
        .record_into("/nowhere/at/all")
        .build()
        .await;
    assert!(matches!(built, Err(Error::System { .. })));
}

#[tokio::test]
async fn peer__that_restarts() {
    let server = Endpoint::builder()
        .bind("127.0.0.1:0")
        .linger(Duration::ZERO)
        .build()
        .await
        .unwrap();
    let address = server.local_addresses()[0];
    let accepting = serve(&server);
    let endpoint = Endpoint::client_only().await.unwrap();
    let client = endpoint.client();
    // So that the client knows this instance.
    for _ in 0..10 {
        let call = tokio::spawn(client.call(address, "x").into_future());
        soon(accepting.accept()).await.unwrap().reply("y").unwrap();
        soon(call).await.unwrap().unwrap();
    }
    let lost = tokio::spawn(client.call(address, "in service").into_future());
    let request = soon(accepting.accept()).await.unwrap();
    // Its memory is gone without a word.
    std::mem::forget(request);
    server.shutdown(Duration::ZERO).await;
    let error = soon(lost).await.unwrap().unwrap_err();
    assert!(
        matches!(
            error,
            Error::PeerShutDown { .. }
                | Error::PeerRestarted { .. }
                | Error::DroppedWithoutAnswer { .. }
                | Error::PortClosed { .. }
                | Error::Timeout { .. }
        ),
        "{error}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn peer__that_acks_nothing_is_forgotten() {
    let (server, address) = echo_endpoint().await;
    let peer = HandMade::new();
    peer.send_data(address, 2, 5, 0, b"hello");
    let (packet, payload, _) = peer.expect(PacketType::Data);
    assert_eq!(packet.sender_id.0, 3);
    assert_eq!(payload, b"hello");
    peer.expect(PacketType::NeedAck);
    let end = Instant::now() + Duration::from_secs(20);
    while server.stats().core_gauges.server_outgoing > 0 {
        assert!(Instant::now() < end, "its response is kept for ever");
        tokio::time::sleep(20 * MS).await;
    }
}

#[tokio::test]
async fn peer__that_never_grants_lets_the_call_end() {
    let peer = HandMade::new();
    let endpoint = Endpoint::client_only().await.unwrap();
    let call = endpoint.client().call(peer.address(), pattern(500_000));
    let error = soon(call).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error}");
    assert_eq!(endpoint.stats().engine_gauges.outgoing_bytes, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn peer__whose_message_never_comes_is_forgotten() {
    let (server, address) = echo_endpoint().await;
    let peer = HandMade::new();
    for id in 0..100 {
        // A megabyte is announced, a hundred bytes come.
        peer.send_data(address, 2 + 2 * id, 1_000_000, 0, &[1; 100]);
    }
    peer.expect(PacketType::Resend);
    let gauges = server.stats().core_gauges;
    assert!(gauges.server_incoming > 0);
    assert!(gauges.buffer_bytes <= 100 * 100, "{}", gauges.buffer_bytes);
    let end = Instant::now() + Duration::from_secs(20);
    while server.stats().core_gauges.server_incoming > 0 {
        assert!(Instant::now() < end, "they are kept for ever");
        tokio::time::sleep(20 * MS).await;
    }
    assert_eq!(server.stats().core_gauges.buffer_bytes, 0);
}

#[tokio::test]
async fn peer__that_sends_nonsense_is_counted() {
    let (server, address) = echo_endpoint().await;
    let peer = HandMade::new();
    peer.send_data(address, 2, 0, 0, b"");
    peer.send_data(address, 4, 2_000_000_000, 0, b"x");
    peer.send_data(address, 6, 10, 8, b"beyond");
    peer.send(address, 8, data(10, 5, 0), b"ab");
    peer.send(address, 8, data(20, 5, 2), b"cd");
    peer.send(address, 9, Body::Abort(AbortCode::Other(200)), b"");
    peer.socket.send_to(&[0; 10], address).unwrap();
    peer.socket.send_to(&[0xff; 100], address).unwrap();
    peer.socket.send_to(&[], address).unwrap();
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        let stats = server.stats();
        let dropped: u64 = stats.core.dropped.iter().sum();
        let unparsed = stats.engine.packets_short
            + stats.engine.packets_short_for_type
            + stats.engine.packets_of_unknown_type;
        if dropped >= 4 && unparsed >= 2 {
            break;
        }
        assert!(Instant::now() < end, "{stats:?}");
        tokio::time::sleep(5 * MS).await;
    }
    // And the server still serves.
    let endpoint = Endpoint::client_only().await.unwrap();
    soon(endpoint.client().call(address, "x")).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn garbage__at_full_speed_while_calls_go_on() {
    let (server, address) = echo_endpoint().await;
    let stop = Arc::new(AtomicBool::new(false));
    let garbage = std::thread::spawn({
        let stop = stop.clone();
        move || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            let noise = pattern(4096);
            let mut sent = 0_usize;
            while !stop.load(Ordering::Relaxed) && sent < 5_000_000 {
                let length = sent * 7 % 200;
                let from = sent * 13 % 3000;
                let mut packet = noise[from..from + length].to_vec();
                if let Some(kind) = packet.get_mut(11) {
                    // Half of them look like a type that there is.
                    *kind = if sent.is_multiple_of(2) {
                        0x10 + (sent % 9) as u8
                    } else {
                        *kind
                    };
                }
                let _ = socket.send_to(&packet, address);
                sent += 1;
            }
            sent
        }
    });
    let endpoint = Endpoint::client_only().await.unwrap();
    let client = endpoint.client();
    let end = Instant::now() + Duration::from_secs(2);
    let mut calls = 0;
    while Instant::now() < end {
        let sent = pattern(1 + calls * 997 % 20_000);
        let reply = soon(client.call(address, sent.clone())).await.unwrap();
        assert!(bytes(reply) == sent);
        calls += 1;
    }
    stop.store(true, Ordering::Relaxed);
    let sent = garbage.join().unwrap();
    assert!(sent > 1000 && calls > 10, "{sent} packets, {calls} calls");
    let peers = server.stats().core_gauges.peers;
    assert!(peers <= 16_384, "{peers}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_network__every_call_ends_and_nothing_is_executed_twice() {
    let faults = Faults {
        loss: 0.05,
        duplicate: 0.05,
        reorder: 0.05,
        ..Faults::default()
    };
    let server = Endpoint::builder()
        .bind("127.0.0.1:0")
        .faults(1, faults)
        .build()
        .await
        .unwrap();
    let address = server.local_addresses()[0];
    let accepting = serve(&server);
    let seen = tokio::spawn(async move {
        let mut seen = std::collections::HashSet::new();
        while let Some(mut request) = accepting.accept().await {
            let body = bytes(request.take_message());
            assert!(seen.insert(body.clone()), "executed twice");
            let _ = request.reply(body);
        }
        seen.len()
    });
    let endpoint = Endpoint::client_only().await.unwrap();
    let mut calls = tokio::task::JoinSet::new();
    for n in 0..300_u32 {
        let mut sent = n.to_be_bytes().to_vec();
        sent.extend(pattern((n as usize * 331) % 50_000));
        let call = endpoint.client().call(address, sent.clone());
        calls.spawn(async move { (sent, call.await) });
    }
    let mut answered = 0;
    while let Some(call) = soon(calls.join_next()).await {
        let (sent, reply) = call.unwrap();
        match reply {
            Ok(reply) => {
                assert!(bytes(reply) == sent);
                answered += 1;
            }
            Err(error) => assert!(error.is_timeout(), "{error}"),
        }
    }
    assert!(answered >= 290, "{answered}");
    soon(server.shutdown(Duration::from_secs(5))).await;
    assert!(soon(seen).await.unwrap() >= answered);
}
