//! Applications that do something else meanwhile: handlers that compute, and
//! callers that wait for nothing.
#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::net::UdpSocket;
use std::thread;
use std::time::{Duration, Instant};

use homa_engine::CallOptions;
use homa_wire::{Body, Data, MAX_HEADER_LENGTH, Packet, SenderId};
use support::*;

#[test]
fn accept__others_go_on_while_the_only_handler_sleeps() {
    let server = engine(udp());
    let to = address(&server);
    let listener = server.listen(0).unwrap();
    let (large, small) = (engine(udp()), engine(udp()));
    // A second of silence must not look like death: deadlines are ours here.
    let options = CallOptions::until(patience());

    let first = large.call(to, "first", options).unwrap();
    let request = listener.accept().wait().unwrap();
    assert!(request.message == b"first"[..]);

    let began = Instant::now();
    let bulk = large.call(to, pattern(1_000_000), options).unwrap();
    let calls: Vec<_> = (0..20)
        .map(|_| small.call(to, "short", options).unwrap())
        .collect();
    eventually("all requests arrive while the handler sleeps", || {
        server.stats().engine_gauges.waiting_requests == 21
    });
    let arrived = began.elapsed();
    assert!(
        arrived < Duration::from_millis(900),
        "took {arrived:?}: somebody waited for the handler"
    );
    thread::sleep(Duration::from_secs(1).saturating_sub(arrived));
    // All this time nobody has called into the server's engine.
    request.responder.unwrap().respond("first").unwrap();
    assert!(first.wait().unwrap() == b"first"[..]);

    for _ in 0..21 {
        let request = listener.accept().wait().unwrap();
        let message = request.message;
        request.responder.unwrap().respond(message).unwrap();
    }
    for call in calls {
        assert!(call.wait().unwrap() == b"short"[..]);
    }
    assert!(bulk.wait().unwrap() == pattern(1_000_000)[..]);
    assert!(server.stats().engine.takeovers > 0);
}

#[test]
fn call__completes_though_nobody_waits() {
    let (client, server) = (engine(udp()), engine(udp()));
    let answering = echo(server.listen(0).unwrap());
    let options = CallOptions::until(patience());
    let call = client.call(address(&server), pattern(300_000), options);
    let call = call.unwrap();
    eventually("the response arrives by itself", || {
        client.stats().core.responses_received == 1
    });
    assert!(call.wait().unwrap() == pattern(300_000)[..]);
    server.close();
    answering.join().unwrap();
}

#[test]
fn accept__takes_over_within_a_millisecond_or_so() {
    let (client, server) = (engine(udp()), engine(udp()));
    let listener = server.listen(0).unwrap();
    let options = CallOptions::until(patience());
    let mut slowest = Duration::MAX;
    // The best of several: other tests share the cores.
    for _ in 0..5 {
        let call = client.call(address(&server), "x", options).unwrap();
        let request = listener.accept().wait().unwrap();
        // The leader has just left; a large request needs grants now.
        let began = Instant::now();
        let bulk = client.call(address(&server), pattern(200_000), options);
        let bulk = bulk.unwrap();
        eventually("the large request arrives", || {
            server.stats().engine_gauges.waiting_requests == 1
        });
        slowest = slowest.min(began.elapsed());
        request.responder.unwrap().respond("y").unwrap();
        call.wait().unwrap();
        let request = listener.try_accept().unwrap();
        request.responder.unwrap().respond("y").unwrap();
        bulk.wait().unwrap();
    }
    assert!(slowest < Duration::from_millis(5), "took {slowest:?}");
}

/// A thread that sends may be put off its processor in the middle. Meanwhile
/// a grant is due that only it can send: a driver that looked for that again
/// and again would keep it off.
#[test]
fn drive__nobody_spins_while_another_thread_sends() {
    const STUCK: Duration = Duration::from_millis(300);
    let gets_stuck = thread::current().id();
    let engine = engine(Hooked::udp(move |_| {
        if thread::current().id() == gets_stuck {
            thread::sleep(STUCK);
        }
    }));
    let _listener = engine.listen(0).unwrap();
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (to, own) = (address(&engine), peer.local_addr().unwrap());
    // The oldest message that needs grants gets one several times a
    // millisecond, until it has been granted too much.
    let body = Body::Data(Data {
        message_length: 1_000_000,
        incoming: 1,
        ..Data::default()
    });
    let packet = Packet::new(own.port(), to.port(), SenderId(2), body);
    let mut bytes = vec![0; MAX_HEADER_LENGTH];
    let header = packet.emit(&mut bytes).unwrap();
    peer.send_to(&bytes[..=header], to).unwrap();
    eventually("it is granted", || engine.stats().core.fifo_grants > 0);
    let before = engine.stats().engine.turns;
    let began = Instant::now();
    let _call = engine.call(own, "x", CallOptions::until(patience()));
    let (turns, took) = (engine.stats().engine.turns - before, began.elapsed());
    assert!(took >= STUCK, "{took:?}");
    let most = took.as_micros() as u64 / 50;
    assert!(turns < most, "{turns} turns in {took:?}");
}
