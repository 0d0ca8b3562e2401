//! How endpoints end: in good order, by dropping, with their runtime.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail the test"
)]
#![cfg(feature = "tokio")]

mod common;

use std::time::{Duration, Instant};

use common::{bytes, echo_endpoint, pattern, serve, soon};
use homa::{Drained, Endpoint, Error};

const MS: Duration = Duration::from_millis(1);

#[tokio::test]
async fn shutdown__waits_for_replies_and_refuses_the_rest() {
    let server = Endpoint::bind("127.0.0.1:0").await.unwrap();
    let accepting = serve(&server);
    let address = server.local_addresses()[0];
    let endpoint = Endpoint::client_only().await.unwrap();
    let client = endpoint.client();
    let call = tokio::spawn(client.call(address, "early").into_future());
    let request = soon(accepting.accept()).await.unwrap();
    let shutting = tokio::spawn({
        let server = server.clone();
        async move { server.shutdown(Duration::from_secs(10)).await }
    });
    let end = Instant::now() + Duration::from_secs(10);
    let late = loop {
        // Shutting down is not instant: the spawned task must have run.
        let late = soon(client.call(address, "late").deadline(500 * MS)).await;
        match late {
            Err(Error::DeadlineExceeded { .. }) if Instant::now() < end => {}
            late => break late,
        }
    };
    let error = late.unwrap_err();
    assert!(matches!(error, Error::PeerShutDown { .. }), "{error}");
    assert!(!shutting.is_finished());
    request.reply(pattern(300_000)).unwrap();
    assert_eq!(soon(call).await.unwrap().unwrap().len(), 300_000);
    assert_eq!(soon(shutting).await.unwrap(), Drained::Yes);
    assert!(soon(accepting.accept()).await.is_none());
}

#[tokio::test]
async fn shutdown__wakes_everything_that_waits() {
    let other = Endpoint::bind("127.0.0.1:0").await.unwrap();
    let _never_answers = serve(&other);
    let address = other.local_addresses()[0];
    let endpoint = Endpoint::builder()
        .bind("127.0.0.1:0")
        .max_rpcs_in_flight(1)
        .build()
        .await
        .unwrap();
    let server = serve(&endpoint);
    let client = endpoint.client();
    let under_way = tokio::spawn(client.call(address, "x").into_future());
    tokio::task::yield_now().await;
    let waits_for_room = tokio::spawn(client.call(address, "x").into_future());
    let accepts = tokio::spawn(async move { server.accept().await.is_none() });
    tokio::time::sleep(20 * MS).await;
    assert_eq!(soon(endpoint.shutdown(20 * MS)).await, Drained::No);
    for call in [under_way, waits_for_room] {
        let error = soon(call).await.unwrap().unwrap_err();
        assert!(matches!(error, Error::ShutDown), "{error}");
    }
    assert!(soon(accepts).await.unwrap());
    let error = soon(client.call(address, "x")).await.unwrap_err();
    assert!(matches!(error, Error::ShutDown), "{error}");
    let error = endpoint
        .server(endpoint.port().unwrap())
        .map(drop)
        .unwrap_err();
    assert!(matches!(error, Error::ShutDown), "{error}");
    // Twice is no harm.
    soon(endpoint.shutdown(20 * MS)).await;
}

#[tokio::test]
async fn drop__a_reply_handed_in_still_gets_there() {
    let server = Endpoint::bind("127.0.0.1:0").await.unwrap();
    let accepting = serve(&server);
    let address = server.local_addresses()[0];
    let endpoint = Endpoint::client_only().await.unwrap();
    let call = tokio::spawn(endpoint.client().call(address, "x").into_future());
    let request = soon(accepting.accept()).await.unwrap();
    drop((server, accepting));
    // The request alone keeps the endpoint; the reply needs many grants.
    request.reply(pattern(900_000)).unwrap();
    assert!(bytes(soon(call).await.unwrap().unwrap()) == pattern(900_000));
}

#[tokio::test]
async fn drop__gives_the_port_back() {
    let (endpoint, address) = echo_endpoint().await;
    let other = Endpoint::client_only().await.unwrap();
    soon(other.client().call(address, "x")).await.unwrap();
    soon(endpoint.shutdown(Duration::from_secs(1))).await;
    drop(endpoint);
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        match Endpoint::bind(address).await {
            Ok(_) => return,
            Err(Error::PortInUse { .. }) if Instant::now() < end => {
                tokio::time::sleep(5 * MS).await;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn runtime__dropped_with_calls_under_way() {
    for threads in [0, 2] {
        let runtime = match threads {
            0 => tokio::runtime::Builder::new_current_thread(),
            _ => tokio::runtime::Builder::new_multi_thread(),
        }
        .enable_all()
        .build()
        .unwrap();
        let (endpoint, client, address) = runtime.block_on(async {
            let (endpoint, address) = echo_endpoint().await;
            let client = endpoint.client();
            client.call(address, "x").await.unwrap();
            for _ in 0..100 {
                tokio::spawn(client.call(address, pattern(100_000)).into_future());
            }
            tokio::task::yield_now().await;
            (endpoint, client, address)
        });
        drop(runtime);
        // The endpoint has outlived its runtime: it says so.
        let other = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let error = other
            .block_on(async { soon(client.call(address, "x")).await })
            .unwrap_err();
        assert!(matches!(error, Error::ShutDown), "{error}");
        drop((endpoint, client));
    }
}

#[test]
fn runtime__none_is_an_error() {
    let mut build = std::pin::pin!(Endpoint::client_only());
    let waker = std::task::Waker::noop();
    let polled = build
        .as_mut()
        .poll(&mut std::task::Context::from_waker(waker));
    match polled {
        std::task::Poll::Ready(Err(Error::NoRuntime)) => {}
        other => panic!("{other:?}"),
    }
}

#[test]
fn runtime__that_computes_for_long_still_answers_afterwards() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let (_server, address) = echo_endpoint().await;
        let endpoint = Endpoint::client_only().await.unwrap();
        let client = endpoint.client();
        soon(client.call(address, "x")).await.unwrap();
        let call = tokio::spawn(client.call(address, pattern(200_000)).into_future());
        tokio::task::yield_now().await;
        // Three times the time-out, with both ends stuck: nobody is to blame
        // the other for it.
        std::thread::sleep(300 * MS);
        assert_eq!(soon(call).await.unwrap().unwrap().len(), 200_000);
    });
}
