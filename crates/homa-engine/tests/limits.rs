//! Limits are values that the caller sees, and room goes to who waits.
#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use homa_engine::{CallError, CallOptions, Engine, SubmitCause};
use support::*;

fn small_engine(calls: u32, bytes: u64) -> Arc<Engine> {
    let mut config = config();
    config.max_calls = calls;
    config.max_outgoing_bytes = bytes;
    Engine::new(config, udp()).unwrap()
}

#[test]
fn call__beyond_the_limit_gives_the_message_back() {
    let (client, server) = (small_engine(2, 1000), engine(udp()));
    let listener = server.listen(0).unwrap();
    let to = address(&server);
    let options = CallOptions::until(patience());
    let _first = client.call(to, pattern(400), options).unwrap();
    let refused = client.call(to, pattern(601), options).unwrap_err();
    assert_eq!(refused.cause, SubmitCause::Full);
    assert!(refused.message == pattern(601)[..]);
    let second = client.call(to, pattern(600), options).unwrap();
    let refused = client.call(to, "x", options).unwrap_err();
    assert_eq!(refused.cause, SubmitCause::Full);
    assert_eq!(client.stats().engine.calls_not_taken, 2);
    drop(second);
    let _third = client.call(to, "x", options).unwrap();
    drop(listener);
}

#[test]
fn call__what_makes_no_sense_is_refused() {
    let client = engine(udp());
    let to = "127.0.0.1:4000".parse().unwrap();
    let refused = |to: &str, length: usize, options: CallOptions| {
        let to = to.parse().unwrap();
        let error = client.call(to, pattern(length), options).unwrap_err();
        assert_eq!(error.message.len(), length);
        error.cause
    };
    let plain = CallOptions::default();
    assert_eq!(refused("127.0.0.1:4000", 0, plain), SubmitCause::Empty);
    assert_eq!(
        refused("127.0.0.1:4000", 1_000_001, plain),
        SubmitCause::TooLong { most: 1_000_000 }
    );
    assert_eq!(refused("127.0.0.1:0", 1, plain), SubmitCause::PortZero);
    assert_eq!(refused("[::1]:4000", 1, plain), SubmitCause::Address);
    assert_eq!(refused("224.0.0.1:4000", 1, plain), SubmitCause::Address);
    let late = CallOptions::until(Instant::now());
    assert_eq!(
        refused("127.0.0.1:4000", 1, late),
        SubmitCause::DeadlineExceeded
    );
    let port = CallOptions {
        local_port: Some(1),
        ..plain
    };
    assert_eq!(refused("127.0.0.1:4000", 1, port), SubmitCause::LocalPort);
    client.close();
    let error = client.call(to, "x", plain).unwrap_err();
    assert_eq!(error.cause, SubmitCause::ShutDown);
    assert_eq!(client.stats().engine_gauges.calls, 0);
}

#[test]
fn reserve__first_come_first_served_and_one_wake_up_each() {
    let (client, server) = (small_engine(1, 1000), engine(udp()));
    let listener = server.listen(0).unwrap();
    let to = address(&server);
    let options = CallOptions::until(patience());
    let held = client.call(to, "held", options).unwrap();
    let bells: Vec<_> = (0..5).map(|_| Arc::new(Bell::default())).collect();
    let poll = |reserve: &mut std::pin::Pin<Box<homa_engine::Reserve>>, bell: &Arc<Bell>| {
        let waker = Waker::from(bell.clone());
        reserve.as_mut().poll(&mut Context::from_waker(&waker))
    };
    let mut waiting: Vec<_> = (0..5).map(|_| Box::pin(client.reserve(1))).collect();
    for (reserve, bell) in waiting.iter_mut().zip(&bells) {
        assert!(poll(reserve, bell).is_pending());
    }
    let refused = client.call(to, "barges in", options).unwrap_err();
    assert_eq!(refused.cause, SubmitCause::Full);
    drop(held);
    let rung = || bells.iter().map(|bell| bell.rung()).collect::<Vec<_>>();
    assert_eq!(rung(), [1, 0, 0, 0, 0]);
    assert!(poll(&mut waiting[1], &bells[1]).is_pending());
    // The first gives up: its room goes to the second.
    drop(waiting.remove(0));
    assert_eq!(rung(), [1, 1, 0, 0, 0]);
    let Poll::Ready(permit) = poll(&mut waiting[0], &bells[1]) else {
        panic!("the second has no room");
    };
    let permit = permit.unwrap();
    let refused = permit.call(to, "too long", options).unwrap_err();
    assert_eq!(refused.cause, SubmitCause::Full);
    // The permit went back with the error.
    assert_eq!(rung(), [1, 1, 1, 0, 0]);
    drop(waiting);
    assert_eq!(client.stats().engine_gauges.calls, 0);
    drop(listener);
}

#[test]
fn reserve__many_threads_and_few_rooms() {
    let (client, server) = (small_engine(3, 1_000_000), engine(udp()));
    let answering = echo(server.listen(0).unwrap());
    let to = address(&server);
    let threads: Vec<_> = (0..20)
        .map(|_| {
            let client = client.clone();
            thread::spawn(move || {
                for _ in 0..20 {
                    let permit = client.reserve(100).wait().unwrap();
                    let options = CallOptions::until(patience());
                    let call = permit.call(to, pattern(100), options).unwrap();
                    assert!(call.wait().unwrap() == pattern(100)[..]);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(client.stats().engine_gauges.calls, 0);
    server.close();
    assert_eq!(answering.join().unwrap(), 400);
}

#[test]
fn deadline__ends_the_call_and_tells_the_server() {
    let (client, server) = (engine(udp()), engine(udp()));
    let listener = server.listen(0).unwrap();
    let to = address(&server);
    for blocking in [true, false] {
        let began = Instant::now();
        let deadline = began + Duration::from_millis(20);
        let call = client.call(to, "x", CallOptions::until(deadline)).unwrap();
        let request = listener.accept().wait().unwrap();
        let error = if blocking {
            call.wait().unwrap_err()
        } else {
            // Nobody waits: the engine's thread sees to it.
            let bell = Arc::new(Bell::default());
            let waker = Waker::from(bell.clone());
            let mut call = pin!(call);
            let mut cx = Context::from_waker(&waker);
            assert!(call.as_mut().poll(&mut cx).is_pending());
            eventually("the call is woken", || bell.rung() == 1);
            match call.as_mut().poll(&mut cx) {
                Poll::Ready(outcome) => outcome.unwrap_err(),
                Poll::Pending => panic!("woken for nothing"),
            }
        };
        assert_eq!(error, CallError::DeadlineExceeded);
        let took = began.elapsed().as_millis();
        assert!((20..120).contains(&took), "took {took} ms");
        let responder = request.responder.unwrap();
        server.block_on(Some(patience()), |cx| responder.poll_cancelled(cx));
        assert!(responder.respond("y").is_err());
    }
    assert_eq!(client.stats().engine.deadlines_exceeded, 2);
}

#[test]
fn max_waiting_requests__more_are_refused_and_told() {
    let server = {
        let mut config = config();
        config.max_waiting_requests = 3;
        Engine::new(config, udp()).unwrap()
    };
    let client = engine(udp());
    let listener = server.listen(0).unwrap();
    let options = CallOptions::until(patience());
    let mut calls: Vec<_> = (0..3)
        .map(|_| client.call(address(&server), "x", options).unwrap())
        .collect();
    eventually("three wait", || {
        server.stats().engine_gauges.waiting_requests == 3
    });
    let error = call(&client, address(&server), "y").unwrap_err();
    assert_eq!(error, CallError::Refused);
    assert!(!error.may_have_executed());
    let request = listener.accept().wait().unwrap();
    request.responder.unwrap().respond("z").unwrap();
    // One of the others gives up: its place in the queue is empty.
    assert!(calls.remove(0).wait().unwrap() == b"z"[..]);
    drop(calls.remove(0));
    eventually("two are in service or wait", || {
        server.stats().core_gauges.server_incoming == 1
    });
    assert!(listener.accept().wait().is_some());
    assert!(listener.try_accept().is_none());
    assert_eq!(server.stats().engine_gauges.waiting_requests, 0);
}

#[test]
fn respond__beyond_the_limit_waits_for_acknowledgements() {
    let server = {
        let mut config = config();
        config.max_response_bytes = 1000;
        Engine::new(config, udp()).unwrap()
    };
    let client = engine(udp());
    let listener = server.listen(0).unwrap();
    let call = client
        .call(address(&server), "x", CallOptions::until(patience()))
        .unwrap();
    let id = listener
        .accept()
        .wait()
        .unwrap()
        .responder
        .unwrap()
        .into_id();
    let refused = server.respond(id, pattern(1001).into()).unwrap_err();
    assert_eq!(refused.cause, homa_engine::RespondCause::Full);
    assert_eq!(refused.message.len(), 1001);
    server.respond(id, pattern(1000).into()).unwrap();
    assert_eq!(server.stats().engine_gauges.response_bytes, 1000);
    assert_eq!(call.wait().unwrap().len(), 1000);
    eventually("the acknowledgement makes room", || {
        server.stats().engine_gauges.response_bytes == 0
    });
}
