//! Binding and addressing: wildcards, both families, several addresses on one
//! host, ports for clients.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail the test"
)]
#![cfg(feature = "tokio")]

mod common;

use common::{bytes, serve, soon, spawn_echo};
use homa::{Endpoint, Error};

#[tokio::test]
async fn bind__wildcard_serves_both_families() {
    let server = Endpoint::bind("[::]:0").await.unwrap();
    let families: Vec<_> = server
        .local_addresses()
        .iter()
        .map(std::net::SocketAddr::is_ipv6)
        .collect();
    assert_eq!(families, [false, true]);
    let port = server.port().unwrap();
    spawn_echo(serve(&server));
    let endpoint = Endpoint::client_only().await.unwrap();
    for host in ["127.0.0.1", "::1"] {
        let reply = soon(endpoint.client().call((host, port), "x")).await;
        assert_eq!(bytes(reply.unwrap()), b"x", "{host}");
    }
}

#[tokio::test]
async fn bind__no_port_is_a_client_port() {
    for address in ["127.0.0.1:0", "[::1]:0", "[::]:0", "0.0.0.0:0"] {
        let endpoint = Endpoint::bind(address).await.unwrap();
        let port = endpoint.port().unwrap();
        assert!(port >= 32_768, "{address} got {port}");
        assert!(
            endpoint
                .local_addresses()
                .iter()
                .all(|at| at.port() == port),
            "one port for both"
        );
    }
}

#[tokio::test]
async fn reply__leaves_from_the_address_that_was_asked() {
    let server = Endpoint::bind("0.0.0.0:0").await.unwrap();
    let port = server.port().unwrap();
    let accepting = serve(&server);
    let endpoint = Endpoint::client_only().await.unwrap();
    // All of 127/8 is this host; the kernel by itself would answer from .1.
    for host in [1, 2, 77] {
        let address = std::net::SocketAddr::from(([127, 0, 0, host], port));
        let call = tokio::spawn(endpoint.client().call(address, "x").into_future());
        let request = soon(accepting.accept()).await.unwrap();
        assert_eq!(request.local_address(), address);
        // Long enough that the reply needs grants, which must match too.
        request.reply(common::pattern(200_000)).unwrap();
        assert_eq!(soon(call).await.unwrap().unwrap().len(), 200_000);
    }
}

#[tokio::test]
async fn call__to_a_family_that_the_endpoint_does_not_have() {
    let endpoint = Endpoint::bind("127.0.0.1:0").await.unwrap();
    let error = soon(endpoint.client().call("[::1]:4000", "x"))
        .await
        .unwrap_err();
    assert!(matches!(error, Error::NoAddress { .. }), "{error}");
    assert!(error.to_string().contains("IPv4 only"), "{error}");
    assert!(
        endpoint
            .client()
            .try_call("[::1]:4000".parse().unwrap(), "x")
            .is_err()
    );
}

#[tokio::test]
async fn bind__two_addresses_of_one_family_are_too_many() {
    let built = Endpoint::builder()
        .bind("127.0.0.1:4567")
        .bind("127.0.0.2:4567")
        .build()
        .await;
    assert!(matches!(built, Err(Error::BadAddresses { .. })));
}

#[tokio::test]
async fn bind__a_name() {
    let endpoint = Endpoint::bind(("localhost", 0)).await.unwrap();
    assert!(
        endpoint
            .local_addresses()
            .iter()
            .all(|at| at.ip().is_loopback())
    );
    let error = Endpoint::bind("no.such.host.invalid:1").await.unwrap_err();
    assert!(matches!(error, Error::Resolve { .. }), "{error}");
}
