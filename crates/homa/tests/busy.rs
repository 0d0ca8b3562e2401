//! Applications that do something else meanwhile: an endpoint on a runtime that
//! is busy is not deaf.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail the test"
)]
#![cfg(feature = "tokio")]

mod common;

use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use common::{bytes, pattern, serve, soon};
use homa::{Endpoint, blocking};

fn current_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// The only thread of the server's runtime sleeps for a second in a handler. A
/// request of 1 MB needs grants meanwhile, and twenty others must be told that
/// somebody is there: silence of 100 ms would be a time-out.
#[test]
fn handler__that_blocks_its_runtime_for_a_second_makes_nobody_deaf() {
    let (started, address) = mpsc::channel();
    let serving = thread::spawn(move || {
        current_thread().block_on(async {
            let endpoint = Endpoint::bind("127.0.0.1:0").await.unwrap();
            let server = serve(&endpoint);
            started.send(endpoint.local_addresses()[0]).unwrap();
            let mut first = true;
            for _ in 0..22 {
                let mut request = soon(server.accept()).await.unwrap();
                if std::mem::take(&mut first) {
                    thread::sleep(Duration::from_secs(1));
                    let stats = endpoint.stats();
                    assert_eq!(stats.engine_gauges.waiting_requests, 21);
                    assert!(stats.engine.takeovers > 0);
                }
                let message = request.take_message();
                request.reply(message).unwrap();
            }
            soon(endpoint.shutdown(Duration::from_secs(5))).await;
        });
    });
    let address = address.recv().unwrap();
    let endpoint = blocking::Endpoint::client_only().unwrap();
    let client = endpoint.client();
    let began = Instant::now();
    let first = client.call(address, "first").start().unwrap();
    thread::sleep(Duration::from_millis(50));
    let mut others: Vec<_> = (0..20)
        .map(|_| (client.call(address, "short").start().unwrap(), 5))
        .collect();
    let large = client.call(address, pattern(1_000_000)).start().unwrap();
    others.push((large, 1_000_000));
    assert_eq!(bytes(first.wait().unwrap()), b"first");
    assert!(began.elapsed() > Duration::from_millis(900));
    for (call, length) in others {
        assert_eq!(call.wait().unwrap().len(), length);
    }
    serving.join().unwrap();
}

/// The same for a client: its runtime computes while a response of 1 MB comes.
#[test]
fn client__that_computes_still_grants_and_acknowledges() {
    let server = blocking::Endpoint::bind("127.0.0.1:0").unwrap();
    let address = server.local_addresses()[0];
    let accepting = server.server(address.port()).unwrap();
    let answering = thread::spawn(move || {
        let request = accepting.accept().unwrap();
        request.reply(pattern(1_000_000)).unwrap();
        accepting
    });
    current_thread().block_on(async {
        let endpoint = Endpoint::client_only().await.unwrap();
        let call = tokio::spawn(endpoint.client().call(address, "x").into_future());
        tokio::task::yield_now().await;
        let end = Instant::now() + Duration::from_secs(10);
        while endpoint.stats().core.responses_received == 0 {
            assert!(Instant::now() < end, "nobody grants");
            thread::sleep(Duration::from_millis(5));
        }
        assert!(bytes(soon(call).await.unwrap().unwrap()) == pattern(1_000_000));
    });
    answering.join().unwrap();
}
