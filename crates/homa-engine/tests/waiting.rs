//! Who is woken, how often, and that nobody is forgotten.
#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use homa_engine::{CallOptions, Engine, RequestId};
use support::*;

#[test]
fn poll__a_thousand_calls_half_of_them_dropped() {
    let (client, server) = (engine(udp()), engine(udp()));
    let listener = server.listen(0).unwrap();
    let options = CallOptions::until(patience());
    let mut calls: Vec<_> = (0..1000_u32)
        .map(|number| {
            let request = number.to_be_bytes().to_vec();
            let call = client.call(address(&server), request, options).unwrap();
            let bell = Arc::new(Bell::default());
            (number, Some(Box::pin(call)), bell)
        })
        .collect();
    for (_, call, bell) in &mut calls {
        let waker = Waker::from(bell.clone());
        let mut cx = Context::from_waker(&waker);
        let call = call.as_mut().unwrap().as_mut();
        assert!(call.poll(&mut cx).is_pending());
    }
    let requests: Vec<_> = (0..1000)
        .map(|_| listener.accept().wait().unwrap())
        .collect();
    // A half that has no pattern.
    let dropped = |number: u32| number.wrapping_mul(2_654_435_761) >> 31 == 0;
    for (number, call, _) in &mut calls {
        if dropped(*number) {
            *call = None;
        }
    }
    for request in requests {
        let message = request.message;
        // Those whose clients are gone are refused; that is no error here.
        let _ = request.responder.unwrap().respond(message);
    }
    let mut left = 0;
    for (number, call, bell) in &mut calls {
        let Some(call) = call else { continue };
        left += 1;
        eventually("a waiting call is woken", || bell.rung() > 0);
        let waker = Waker::from(bell.clone());
        match call.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(response) => assert!(response.unwrap() == number.to_be_bytes()[..]),
            Poll::Pending => panic!("call {number} was woken for nothing"),
        }
        assert_eq!(bell.rung(), 1, "call {number}");
    }
    assert!((400..600).contains(&left), "{left} were not dropped");
    let stats = client.stats();
    assert_eq!(stats.engine.calls_cancelled, 1000 - left);
    assert_eq!(stats.engine_gauges.calls, 0);
    assert_eq!(
        stats.engine.wakeups, left,
        "one wake-up a response, no herd"
    );
    eventually("the server forgets all", || {
        server.stats().engine_gauges.response_bytes == 0
    });
}

#[test]
fn wait__many_threads_on_one_engine() {
    const THREADS: u64 = 16;
    const CALLS: u64 = 200;
    let (client, server) = (engine(udp()), engine(udp()));
    let answering = echo(server.listen(0).unwrap());
    let to = address(&server);
    let threads: Vec<_> = (0..THREADS)
        .map(|thread| {
            let client = client.clone();
            thread::spawn(move || {
                for number in 0..CALLS {
                    let request = (thread << 32 | number).to_be_bytes();
                    let response = call(&client, to, request.to_vec()).unwrap();
                    assert!(response == request[..]);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    let counters = client.stats().engine;
    // Each response wakes the one that waits for it, and nobody else.
    assert!(counters.wakeups <= THREADS * CALLS, "{counters:?}");
    assert!(counters.successions <= counters.wakeups, "{counters:?}");
    server.close();
    assert_eq!(u64::from(answering.join().unwrap()), THREADS * CALLS);
}

#[test]
fn accept__each_request_wakes_one_of_many_waiters() {
    let (client, server) = (engine(udp()), engine(udp()));
    let listener = server.listen(0).unwrap();
    let bells: Vec<_> = (0..10).map(|_| Arc::new(Bell::default())).collect();
    let mut waiting: Vec<_> = bells
        .iter()
        .map(|bell| {
            let mut accept = Box::pin(listener.accept());
            let waker = Waker::from(bell.clone());
            let polled = accept.as_mut().poll(&mut Context::from_waker(&waker));
            assert!(polled.is_pending());
            Some(accept)
        })
        .collect();
    let rung = || bells.iter().map(|bell| bell.rung()).sum::<usize>();
    let _one = client.call(address(&server), "x", CallOptions::until(patience()));
    eventually("one is woken", || rung() == 1);
    // It goes away without looking: the next one gets the request.
    assert_eq!(bells[0].rung(), 1);
    waiting[0] = None;
    assert_eq!((rung(), bells[1].rung()), (2, 1));
    let waker = Waker::noop();
    let mut cx = Context::from_waker(waker);
    let next = waiting[1].as_mut().unwrap().as_mut();
    assert!(matches!(next.poll(&mut cx), Poll::Ready(Some(_))));
    drop(waiting);
    assert_eq!(rung(), 2);
}

#[test]
fn poll_cancelled__tells_when_the_client_is_gone() {
    let (client, server) = (engine(udp()), engine(udp()));
    let listener = server.listen(0).unwrap();
    let options = CallOptions::until(patience());
    for _ in 0..3 {
        let call = client.call(address(&server), "x", options).unwrap();
        let responder = listener.accept().wait().unwrap().responder.unwrap();
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(bell.clone());
        let mut cx = Context::from_waker(&waker);
        assert!(responder.poll_cancelled(&mut cx).is_pending());
        drop(call);
        eventually("the handler is told", || bell.rung() == 1);
        assert!(responder.poll_cancelled(&mut cx).is_ready());
        let refused = responder.respond("y").unwrap_err();
        assert_eq!(refused.cause, homa_engine::RespondCause::Gone);
        assert!(refused.message == b"y"[..]);
    }
}

#[test]
fn respond__twice() {
    let (client, server) = (engine(udp()), engine(udp()));
    let listener = server.listen(0).unwrap();
    let options = CallOptions::until(patience());
    let call = client.call(address(&server), "x", options).unwrap();
    let request = listener.accept().wait().unwrap();
    let id: RequestId = request.responder.unwrap().into_id();
    let respond = |engine: &Engine| engine.respond(id, "y".into()).map_err(|e| e.cause);
    assert_eq!(
        engine_respond_empty(&server, id),
        Err(homa_engine::RespondCause::Empty)
    );
    assert_eq!(respond(&server), Ok(()));
    assert_eq!(respond(&server), Err(homa_engine::RespondCause::Answered));
    assert!(call.wait().unwrap() == b"y"[..]);
    eventually("the acknowledgement arrives", || {
        respond(&server) == Err(homa_engine::RespondCause::Gone)
    });
}

fn engine_respond_empty(engine: &Engine, id: RequestId) -> Result<(), homa_engine::RespondCause> {
    engine
        .respond(id, homa_engine::Message::new())
        .map_err(|error| error.cause)
}

#[test]
fn block_on__drives_for_whatever_it_waits_for() {
    let (client, server) = (engine(udp()), engine(udp()));
    let answering = echo(server.listen(0).unwrap());
    let options = CallOptions::until(patience());
    let one = client.call(address(&server), "one", options).unwrap();
    let two = client.call(address(&server), "two", options).unwrap();
    let (mut one, mut two) = (pin!(one), pin!(two));
    let mut answers = Vec::new();
    let (mut has_one, mut has_two) = (false, false);
    let both = client.block_on(Some(patience()), |cx| {
        if !has_one && let Poll::Ready(answer) = one.as_mut().poll(cx) {
            has_one = true;
            answers.push(answer.unwrap());
        }
        if !has_two && let Poll::Ready(answer) = two.as_mut().poll(cx) {
            has_two = true;
            answers.push(answer.unwrap());
        }
        if has_one && has_two {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    });
    assert_eq!(both, Some(()));
    assert_eq!(answers.len(), 2);
    let began = Instant::now();
    let until = began + Duration::from_millis(20);
    assert_eq!(client.block_on(Some(until), |_| Poll::<()>::Pending), None);
    assert!((20..200).contains(&began.elapsed().as_millis()));
    server.close();
    answering.join().unwrap();
}
