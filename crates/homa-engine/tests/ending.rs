//! How things end: closed ports, hosts that are not there, drops, shutdown.
#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use homa_core::Identity;
use homa_datapath::{MemNetwork, Udp, UdpOptions};
use homa_engine::{AbortCode, CallError, CallOptions, Drained, Engine, ListenError, SubmitCause};
use support::*;

fn quickly<T>(what: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let result = what();
    // Well below the 100 ms of silence that would end a call otherwise.
    let took = began.elapsed();
    assert!(took < Duration::from_millis(80), "took {took:?}");
    result
}

#[test]
fn call__to_a_closed_port_fails_at_once() {
    let client = engine(udp());
    let nobody = {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.local_addr().unwrap()
    };
    for size in [1, 500_000] {
        let error = quickly(|| call(&client, nobody, pattern(size))).unwrap_err();
        assert_eq!(error, CallError::PortClosed);
    }
    // The same where nobody waits as the leader does.
    let endpoint_without_server = engine(udp());
    let to = address(&endpoint_without_server);
    let error = quickly(|| call(&client, to, pattern(100))).unwrap_err();
    assert_eq!(error, CallError::PortClosed);
    let network = MemNetwork::new();
    let client = engine(mem(&network));
    let error = quickly(|| call(&client, "10.9.9.9:9".parse().unwrap(), "x")).unwrap_err();
    assert_eq!(error, CallError::PortClosed);
}

#[test]
fn call__to_an_unreachable_host_fails_at_once() {
    // Bound to loopback: the kernel refuses to send anywhere else.
    let client = engine(udp());
    let error = quickly(|| call(&client, "192.0.2.1:9".parse().unwrap(), "x")).unwrap_err();
    assert_eq!(error, CallError::HostUnreachable);
}

#[test]
fn call__to_a_silent_host_times_out() {
    let client = engine(udp());
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let began = Instant::now();
    let error = call(&client, silent.local_addr().unwrap(), "x").unwrap_err();
    assert_eq!(error, CallError::Timeout);
    let took = began.elapsed().as_millis();
    assert!((100..400).contains(&took), "took {took} ms");
}

#[test]
fn responder__dropped_or_aborted_tells_the_client() {
    let (client, server) = (engine(udp()), engine(udp()));
    let listener = server.listen(0).unwrap();
    let options = CallOptions::until(patience());
    let one = client.call(address(&server), "x", options).unwrap();
    drop(listener.accept().wait().unwrap());
    assert_eq!(one.wait().unwrap_err(), CallError::Dropped);
    let two = client.call(address(&server), "x", options).unwrap();
    let request = listener.accept().wait().unwrap();
    request.responder.unwrap().abort(AbortCode::Refused);
    assert_eq!(two.wait().unwrap_err(), CallError::Refused);
    assert_eq!(server.stats().engine.requests_dropped, 1);
}

#[test]
fn listen__one_listener_a_port() {
    let server = engine(udp());
    let port = address(&server).port();
    let listener = server.listen(0).unwrap();
    assert_eq!(listener.port(), port);
    let twice = server.listen(port);
    assert!(matches!(twice, Err(ListenError::InUse { .. })), "{twice:?}");
    let other = server.listen(port ^ 1);
    assert!(
        matches!(other, Err(ListenError::NotOurs { .. })),
        "{other:?}"
    );
    let clone = listener.clone();
    drop(listener);
    let client = engine(udp());
    let options = CallOptions::until(patience());
    let waiting = client.call(address(&server), "x", options).unwrap();
    eventually("the request waits", || {
        server.stats().engine_gauges.waiting_requests == 1
    });
    drop(clone);
    // If it was asked about in between, the client cannot know what went before.
    let error = waiting.wait().unwrap_err();
    let closed = [CallError::PortClosed, CallError::ServerGone];
    assert!(closed.contains(&error), "{error}");
    server.listen(port).unwrap();
}

#[test]
fn shutdown__finishes_what_is_under_way() {
    let (client, server) = (engine(udp()), engine(udp()));
    let listener = server.listen(0).unwrap();
    let to = address(&server);
    let options = CallOptions::until(patience());
    let in_service = client.call(to, pattern(1000), options).unwrap();
    let request = listener.accept().wait().unwrap();
    let unseen = client.call(to, "unseen", options).unwrap();
    eventually("it waits", || {
        server.stats().engine_gauges.waiting_requests == 1
    });
    let handler = thread::spawn(move || {
        thread::sleep(Duration::from_millis(150));
        let response = pattern(700_000);
        request.responder.unwrap().respond(response).unwrap();
    });
    server.begin_shutdown();
    assert!(listener.accept().wait().is_none());
    assert_eq!(unseen.wait().unwrap_err(), CallError::PeerShuttingDown);
    let late = call(&client, to, pattern(200_000)).unwrap_err();
    assert_eq!(late, CallError::PeerShuttingDown);
    let client_waits = thread::spawn(move || in_service.wait());
    assert_eq!(server.shutdown(patience()), Drained::Yes);
    handler.join().unwrap();
    let response = client_waits.join().unwrap().unwrap();
    assert!(response == pattern(700_000)[..]);
    let refused = server.call(to, "x", options).unwrap_err();
    assert_eq!(refused.cause, SubmitCause::ShutDown);
    assert!(matches!(server.listen(0), Err(ListenError::ShutDown)));
}

#[test]
fn shutdown__the_deadline_ends_the_rest() {
    let (client, server) = (engine(udp()), engine(udp()));
    let listener = server.listen(0).unwrap();
    let to = address(&server);
    let options = CallOptions::until(patience());
    let call = client.call(to, "x", options).unwrap();
    let request = listener.accept().wait().unwrap();
    let began = Instant::now();
    let drained = server.shutdown(began + Duration::from_millis(50));
    assert_eq!(drained, Drained::No);
    assert!(began.elapsed() < Duration::from_millis(500));
    assert_eq!(call.wait().unwrap_err(), CallError::PeerShuttingDown);
    let refused = request.responder.unwrap().respond("late").unwrap_err();
    assert_eq!(refused.cause, homa_engine::RespondCause::ShutDown);
}

#[test]
fn close__wakes_every_waiter() {
    let (client, server) = (
        {
            let mut config = config();
            config.max_calls = 2;
            Engine::new(config, udp()).unwrap()
        },
        engine(udp()),
    );
    let _listener = server.listen(0).unwrap();
    let listener = client.listen(0).unwrap();
    let to = address(&server);
    let calls: Vec<_> = (0..2)
        .map(|_| client.call(to, "x", CallOptions::default()).unwrap())
        .collect();
    let mut threads: Vec<_> = calls
        .into_iter()
        .map(|call| thread::spawn(move || call.wait().unwrap_err() == CallError::ShutDown))
        .collect();
    let reserve = client.reserve(1);
    threads.push(thread::spawn(move || {
        reserve.wait().err() == Some(SubmitCause::ShutDown)
    }));
    let accept = listener.accept();
    threads.push(thread::spawn(move || accept.wait().is_none()));
    thread::sleep(Duration::from_millis(20));
    client.close();
    for thread in threads {
        assert!(thread.join().unwrap());
    }
    eventually("the server forgets the calls", || {
        server.stats().core_gauges.server_incoming == 0
    });
}

#[test]
fn drop__does_not_hang_and_frees_the_port() {
    let peer = engine(udp());
    let _listener = peer.listen(0).unwrap();
    for _ in 0..10 {
        let engine = engine(udp());
        let own = address(&engine);
        let call = engine.call(address(&peer), pattern(1_000_000), CallOptions::default());
        let began = Instant::now();
        drop(call);
        drop(engine);
        assert!(began.elapsed() < Duration::from_millis(150));
        Udp::bind(&UdpOptions::on(own)).unwrap();
    }
}

#[test]
fn new__wall_clock_steps_back_between_two_lives() {
    let server = engine(udp());
    let answering = echo(server.listen(0).unwrap());
    let own = {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.local_addr().unwrap()
    };
    for life in 0..3_u64 {
        let mut config = config();
        config.identity = Some(Identity {
            first_id: 1_700_000_000_000_000_000 - life * 3_600_000_000_000,
            instance: life + 1,
            hash_seed: life,
        });
        let datapath = Udp::bind(&UdpOptions::on(own)).unwrap();
        let client = Engine::new(config, Box::new(datapath)).unwrap();
        for size in [1, 100_000] {
            let response = call(&client, address(&server), pattern(size));
            assert!(response.unwrap() == pattern(size)[..], "life {life}");
        }
    }
    server.close();
    assert_eq!(answering.join().unwrap(), 6);
}

#[test]
fn call__server_crashes_and_another_life_of_it_starts() {
    let client = engine(udp());
    let silent = Arc::new(AtomicBool::new(false));
    // From some moment on its packets vanish, as those of a killed process.
    let server = engine(Hooked::udp({
        let silent = silent.clone();
        move |batch| {
            if silent.load(Ordering::SeqCst) {
                batch.clear();
            }
        }
    }));
    let own = address(&server);
    let listener = server.listen(0).unwrap();
    // The client learns which life this is from the first CUTOFFS.
    let options = CallOptions::until(patience());
    for _ in 0..2 {
        let call = client.call(own, "x", options).unwrap();
        let request = listener.accept().wait().unwrap();
        request.responder.unwrap().respond("y").unwrap();
        call.wait().unwrap();
    }
    let in_service = client.call(own, "lost", options).unwrap();
    let request = listener.accept().wait().unwrap();
    silent.store(true, Ordering::SeqCst);
    server.close();
    drop((request, listener, server));
    let server = Engine::new(config(), Box::new(Udp::bind(&UdpOptions::on(own)).unwrap())).unwrap();
    let answering = echo(server.listen(0).unwrap());
    let error = in_service.wait().unwrap_err();
    assert_eq!(error, CallError::PeerRestarted);
    assert!(error.may_have_executed());
    assert!(call(&client, own, "again").unwrap() == b"again"[..]);
    server.close();
    assert_eq!(
        answering.join().unwrap(),
        1,
        "the lost one was not repeated"
    );
}

#[test]
fn call__server_restarts_in_between() {
    let client = engine(udp());
    let server = engine(udp());
    let own = address(&server);
    let listener = server.listen(0).unwrap();
    let answering = echo(listener.clone());
    call(&client, own, pattern(100_000)).unwrap();
    server.close();
    answering.join().unwrap();
    drop(listener);
    drop(server);
    let server = Engine::new(config(), Box::new(Udp::bind(&UdpOptions::on(own)).unwrap())).unwrap();
    let answering = echo(server.listen(0).unwrap());
    let response = call(&client, own, pattern(100_000)).unwrap();
    assert!(response == pattern(100_000)[..]);
    server.close();
    answering.join().unwrap();
}
