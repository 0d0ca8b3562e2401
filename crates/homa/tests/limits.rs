//! Limits and what happens at them: waiting, getting the message back, and
//! memory that stays bounded.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail the test"
)]
#![cfg(feature = "tokio")]

mod common;

use std::time::Duration;

use common::{bytes, echo_endpoint, pattern, serve, soon, spawn_echo};
use homa::{Endpoint, Error, TryError};

#[tokio::test]
async fn empty__is_an_error_at_once() {
    let (_server, address) = echo_endpoint().await;
    let endpoint = Endpoint::client_only().await.unwrap();
    let client = endpoint.client();
    let error = soon(client.call(address, "")).await.unwrap_err();
    assert!(matches!(error, Error::Empty), "{error}");
    let error = soon(client.send(address, "")).await.unwrap_err();
    assert!(matches!(error, Error::Empty), "{error}");
}

#[tokio::test]
async fn too_large__names_the_limit() {
    let (_server, address) = echo_endpoint().await;
    let endpoint = Endpoint::client_only().await.unwrap();
    let call = endpoint.client().call(address, vec![0; 1_000_001]);
    let error = soon(call).await.unwrap_err();
    assert!(
        matches!(
            error,
            Error::TooLarge {
                bytes: 1_000_001,
                limit: 1_000_000
            }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn reply__empty_or_too_large_is_an_error_and_the_client_is_told() {
    let server = Endpoint::bind("127.0.0.1:0").await.unwrap();
    let accepting = serve(&server);
    let endpoint = Endpoint::client_only().await.unwrap();
    let address = server.local_addresses()[0];
    for (reply, empty) in [(Vec::new(), true), (vec![0; 1_000_001], false)] {
        let call = tokio::spawn(endpoint.client().call(address, "x").into_future());
        let error = soon(accepting.accept())
            .await
            .unwrap()
            .reply(reply)
            .unwrap_err();
        assert_eq!(matches!(error, Error::Empty), empty, "{error}");
        assert_eq!(matches!(error, Error::TooLarge { .. }), !empty, "{error}");
        let error = soon(call).await.unwrap().unwrap_err();
        assert!(
            matches!(error, Error::DroppedWithoutAnswer { .. }),
            "{error}"
        );
    }
}

#[tokio::test]
async fn large_messages__go_where_both_ends_allow_them() {
    let allowing = || Endpoint::builder().max_message_bytes(4_000_000);
    let server = allowing().bind("127.0.0.1:0").build().await.unwrap();
    spawn_echo(serve(&server));
    let endpoint = allowing().build().await.unwrap();
    let sent = pattern(4_000_000);
    let address = server.local_addresses()[0];
    let reply = soon(endpoint.client().call(address, sent.clone()))
        .await
        .unwrap();
    assert!(bytes(reply) == sent);
    // A server with the standard limit says no, and at once.
    let (_standard, address) = echo_endpoint().await;
    let error = soon(endpoint.client().call(address, sent))
        .await
        .unwrap_err();
    assert!(
        matches!(
            error,
            Error::TooLarge { .. } | Error::TooLargeForPeer { .. } | Error::Unsupported { .. }
        ),
        "{error}"
    );
}

#[tokio::test]
async fn in_flight__try_call_gives_the_message_back_and_call_waits() {
    let server = Endpoint::bind("127.0.0.1:0").await.unwrap();
    let accepting = serve(&server);
    let address = server.local_addresses()[0];
    let endpoint = Endpoint::builder()
        .max_rpcs_in_flight(2)
        .build()
        .await
        .unwrap();
    let client = endpoint.client();
    let first = client.try_call(address, "1").unwrap();
    let second = client.try_call(address, "2").unwrap();
    match client.try_call(address, "3") {
        Err(TryError::Full(message)) => assert_eq!(bytes(message), b"3"),
        other => panic!("expected Full, not {:?}", other.map(|_| ())),
    }
    let third = tokio::spawn(client.call(address, "3").into_future());
    let mut requests = Vec::new();
    for _ in 0..2 {
        requests.push(soon(accepting.accept()).await.unwrap());
    }
    let more = tokio::time::timeout(Duration::from_millis(50), accepting.accept()).await;
    assert!(more.is_err(), "the third call did not wait");
    for request in requests {
        request.reply("ok").unwrap();
    }
    soon(first).await.unwrap();
    soon(second).await.unwrap();
    soon(accepting.accept()).await.unwrap().reply("ok").unwrap();
    soon(third).await.unwrap().unwrap();
}

#[tokio::test]
async fn in_flight__bytes_are_limited_and_one_message_always_goes() {
    let server = Endpoint::bind("127.0.0.1:0").await.unwrap();
    let accepting = serve(&server);
    let address = server.local_addresses()[0];
    let endpoint = Endpoint::builder()
        .max_bytes_in_flight(10_000)
        .build()
        .await
        .unwrap();
    let client = endpoint.client();
    let large = client.try_call(address, pattern(50_000)).unwrap();
    assert!(matches!(
        client.try_call(address, "x"),
        Err(TryError::Full(_))
    ));
    soon(accepting.accept()).await.unwrap().reply("ok").unwrap();
    soon(large).await.unwrap();
    soon(client.ready()).await.unwrap();
    drop(client.try_call(address, "x").unwrap());
}

#[tokio::test]
async fn in_flight__a_call_that_waits_has_its_deadline_and_may_be_dropped() {
    let server = Endpoint::bind("127.0.0.1:0").await.unwrap();
    let _never_answers = serve(&server);
    let address = server.local_addresses()[0];
    let endpoint = Endpoint::builder()
        .max_rpcs_in_flight(1)
        .build()
        .await
        .unwrap();
    let client = endpoint.client();
    let first = client.try_call(address, "1").unwrap();
    let waits = client
        .call(address, "2")
        .deadline(Duration::from_millis(20));
    let error = soon(waits).await.unwrap_err();
    assert!(matches!(error, Error::DeadlineExceeded { .. }), "{error}");
    let abandoned = tokio::spawn(client.call(address, "3").into_future());
    tokio::task::yield_now().await;
    abandoned.abort();
    let waits = tokio::spawn(
        client
            .call(address, "4")
            .deadline(Duration::from_millis(200))
            .into_future(),
    );
    tokio::task::yield_now().await;
    drop(first);
    // The place of the first is free: the fourth goes out, and nobody answers.
    let error = soon(waits).await.unwrap().unwrap_err();
    assert!(matches!(error, Error::DeadlineExceeded { .. }), "{error}");
    assert_eq!(endpoint.stats().core.requests_started, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn buffers__full_of_large_requests_all_complete() {
    let server = Endpoint::builder()
        .bind("127.0.0.1:0")
        .buffer_bytes(2_000_000)
        .build()
        .await
        .unwrap();
    spawn_echo(serve(&server));
    let address = server.local_addresses()[0];
    let endpoint = Endpoint::client_only().await.unwrap();
    let calls: Vec<_> = (0..64)
        .map(|_| {
            tokio::spawn(
                endpoint
                    .client()
                    .call(address, pattern(500_000))
                    .into_future(),
            )
        })
        .collect();
    for call in calls {
        assert_eq!(soon(call).await.unwrap().unwrap().len(), 500_000);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_thousand__calls_at_once_all_end() {
    const CALLS: usize = 100_000;
    let (server, address) = echo_endpoint().await;
    let endpoint = Endpoint::builder()
        .max_rpcs_in_flight(10_000)
        .build()
        .await
        .unwrap();
    let before = resident_bytes();
    let client = endpoint.client();
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..CALLS {
        calls.spawn(client.call(address, "x").into_future());
    }
    let mut peak = 0;
    let mut ended = 0;
    while let Some(call) = soon(calls.join_next()).await {
        call.unwrap().unwrap();
        ended += 1;
        if ended % 10_000 == 0 {
            peak = peak.max(resident_bytes());
        }
    }
    assert_eq!(ended, CALLS);
    let grown = peak.saturating_sub(before);
    assert!(grown < 512 << 20, "grew by {grown} bytes");
    let gauges = endpoint.stats().core_gauges;
    assert_eq!(gauges.client_outgoing + gauges.client_incoming, 0);
    drop(server);
}

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}
