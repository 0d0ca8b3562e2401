//! The blocking half: the same promises without a runtime.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail the test"
)]

use std::thread;
use std::time::{Duration, Instant};

use homa::blocking::{Accepted, Endpoint};
use homa::{Drained, Error, Kind, TryError};

const MS: Duration = Duration::from_millis(1);

fn echo() -> (Endpoint, std::net::SocketAddr) {
    let endpoint = Endpoint::bind("127.0.0.1:0").unwrap();
    let address = endpoint.local_addresses()[0];
    let server = endpoint.server(address.port()).unwrap();
    thread::spawn(move || {
        for mut request in &server {
            let message = request.take_message();
            let _ = request.reply(message);
        }
    });
    (endpoint, address)
}

#[test]
fn call__every_interesting_length_comes_back() {
    let (_server, address) = echo();
    let client = Endpoint::client_only().unwrap().client();
    for length in [1, 1417, 40_001, 1_000_000] {
        let sent: Vec<u8> = (0..length)
            .map(|at: u32| at.to_be_bytes()[2] ^ at as u8)
            .collect();
        let reply = client.call(address, sent.clone()).wait().unwrap();
        assert!(reply.to_vec() == sent, "{length}");
    }
}

#[test]
fn call__many_threads_on_one_endpoint() {
    let (_server, address) = echo();
    let endpoint = Endpoint::client_only().unwrap();
    let threads: Vec<_> = (0..8_u8)
        .map(|n| {
            let client = endpoint.client();
            thread::spawn(move || {
                for round in 0..200_u8 {
                    let sent = vec![n ^ round; 1 + usize::from(round) * 40];
                    let reply = client.call(address, sent.clone()).wait().unwrap();
                    assert_eq!(reply.to_vec(), sent);
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn start__many_at_once_then_wait() {
    let (_server, address) = echo();
    let client = Endpoint::client_only().unwrap().client();
    let pending: Vec<_> = (0..50_u8)
        .map(|n| client.call(address, vec![n; 10]).start().unwrap())
        .collect();
    for (n, pending) in (0..50_u8).zip(pending) {
        assert_eq!(pending.peer(), address);
        assert_eq!(pending.wait().unwrap().to_vec(), [n; 10]);
    }
}

#[test]
fn deadline__and_wait_within() {
    let endpoint = Endpoint::bind("127.0.0.1:0").unwrap();
    let address = endpoint.local_addresses()[0];
    let server = endpoint.server(address.port()).unwrap();
    let client = Endpoint::client_only().unwrap().client();
    let start = Instant::now();
    let pending = client.call(address, "x").deadline(30 * MS).start().unwrap();
    let abandoned = server.accept().unwrap();
    let error = pending.wait().unwrap_err();
    assert!(matches!(error, Error::DeadlineExceeded { .. }), "{error}");
    assert!(start.elapsed() >= 30 * MS);
    let end = Instant::now() + Duration::from_secs(10);
    while !abandoned.is_cancelled() && Instant::now() < end {
        thread::sleep(MS);
    }
    assert!(matches!(abandoned.reply("x"), Err(Error::ClientGone)));

    let mut pending = client.call(address, "y").start().unwrap();
    assert!(pending.wait_within(20 * MS).is_none());
    let request = server.accept().unwrap();
    request.reply("z").unwrap();
    let reply = pending
        .wait_within(Duration::from_secs(10))
        .unwrap()
        .unwrap();
    assert_eq!(reply.to_vec(), b"z");
}

#[test]
fn cancel__tells_the_server() {
    let endpoint = Endpoint::bind("127.0.0.1:0").unwrap();
    let address = endpoint.local_addresses()[0];
    let server = endpoint.server(address.port()).unwrap();
    let client = Endpoint::client_only().unwrap().client();
    for drops in [true, false] {
        let pending = client.call(address, "x").start().unwrap();
        let request = server.accept().unwrap();
        if drops {
            drop(pending);
        } else {
            pending.cancel();
        }
        let end = Instant::now() + Duration::from_secs(10);
        while !request.is_cancelled() {
            assert!(Instant::now() < end);
            thread::sleep(MS);
        }
    }
}

#[test]
fn send__one_way() {
    let endpoint = Endpoint::bind("127.0.0.1:0").unwrap();
    let address = endpoint.local_addresses()[0];
    let server = endpoint.server(address.port()).unwrap();
    let client = Endpoint::client_only().unwrap().client();
    let pending = client.send(address, "news").start().unwrap();
    let request = server.accept().unwrap();
    assert_eq!(request.kind(), Kind::OneWay);
    assert_eq!(request.message().to_vec(), b"news");
    pending.wait().unwrap();
}

#[test]
fn try_call__full_gives_the_message_back() {
    let endpoint = Endpoint::bind("127.0.0.1:0").unwrap();
    let address = endpoint.local_addresses()[0];
    let _never_answers = endpoint.server(address.port()).unwrap();
    let client = Endpoint::builder()
        .max_rpcs_in_flight(1)
        .build()
        .unwrap()
        .client();
    let first = client.try_call(address, "1").unwrap();
    let Err(TryError::Full(message)) = client.try_call(address, "2") else {
        panic!("there was room");
    };
    assert_eq!(message.to_vec(), b"2");
    let error = client
        .call(address, message)
        .deadline(20 * MS)
        .wait()
        .unwrap_err();
    assert!(matches!(error, Error::DeadlineExceeded { .. }), "{error}");
    drop(first);
}

#[test]
fn errors__name_their_cause() {
    let endpoint = Endpoint::bind("127.0.0.1:0").unwrap();
    let client = endpoint.client();
    let error = client.call("127.0.0.1:1", "x").wait().unwrap_err();
    assert!(matches!(error, Error::PortClosed { .. }), "{error}");
    let error = client.call("127.0.0.1:1", "").wait().unwrap_err();
    assert!(matches!(error, Error::Empty), "{error}");
    let error = client
        .call("no.such.host.invalid:1", "x")
        .wait()
        .unwrap_err();
    assert!(matches!(error, Error::Resolve { .. }), "{error}");
    let error = client.call("[::1]:1", "x").wait().unwrap_err();
    assert!(matches!(error, Error::NoAddress { .. }), "{error}");
    let own = endpoint.port().unwrap();
    let error = endpoint.server(own ^ 1).unwrap_err();
    assert!(matches!(error, Error::WrongPort { .. }), "{error}");
    assert_eq!(
        endpoint.resolve(("localhost", 7)).unwrap(),
        ([127, 0, 0, 1], 7).into()
    );
}

#[test]
fn accept__within_and_shutdown() {
    let endpoint = Endpoint::bind("127.0.0.1:0").unwrap();
    let server = endpoint.server(endpoint.port().unwrap()).unwrap();
    assert!(server.try_accept().is_none());
    assert!(matches!(server.accept_within(10 * MS), Accepted::TimedOut));
    let waiting = thread::spawn({
        let server = server.clone();
        move || server.accept().is_none()
    });
    thread::sleep(20 * MS);
    assert_eq!(endpoint.shutdown(Duration::from_secs(5)), Drained::Yes);
    assert!(waiting.join().unwrap());
    assert!(matches!(server.accept_within(10 * MS), Accepted::ShutDown));
}

#[test]
fn drop__a_reply_handed_in_still_gets_there() {
    let endpoint = Endpoint::bind("127.0.0.1:0").unwrap();
    let address = endpoint.local_addresses()[0];
    let server = endpoint.server(address.port()).unwrap();
    let client = Endpoint::client_only().unwrap().client();
    let pending = client.call(address, "x").start().unwrap();
    let request = server.accept().unwrap();
    drop((endpoint, server));
    request.reply(vec![1; 900_000]).unwrap();
    assert_eq!(pending.wait().unwrap().len(), 900_000);
    // And the port is free at once.
    Endpoint::bind(address).unwrap();
}

#[test]
fn polling__a_thread_that_never_sleeps() {
    let server = Endpoint::builder()
        .bind("127.0.0.1:0")
        .polling()
        .build()
        .unwrap();
    let address = server.local_addresses()[0];
    let accepting = server.server(address.port()).unwrap();
    thread::spawn(move || {
        for mut request in &accepting {
            let message = request.take_message();
            let _ = request.reply(message);
        }
    });
    let client = Endpoint::builder()
        .spin_before_sleep(Duration::from_micros(50))
        .build()
        .unwrap()
        .client();
    for _ in 0..100 {
        assert_eq!(client.call(address, "x").wait().unwrap().to_vec(), b"x");
    }
}
