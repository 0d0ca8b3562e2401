//! Applications that do something else meanwhile: handlers that compute, and
//! callers that wait for nothing.
#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::time::{Duration, Instant};

use homa_engine::CallOptions;
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
    std::thread::sleep(Duration::from_secs(1).saturating_sub(arrived));
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
