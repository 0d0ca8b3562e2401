//! Homa over raw IP, in namespaces of its own: an endpoint calls itself over
//! the loopback device, since there is one a namespace.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail the test"
)]
#![cfg(feature = "tokio")]

mod common;

use std::net::SocketAddr;

use common::{bytes, in_namespace, pattern, soon, spawn_echo};
use homa::datapath::{Faults, Raw, RawOptions, Tap, TapOptions};
use homa::{Endpoint, Error};

const PORT: u16 = 4000;

async fn raw(tap: &TapOptions) -> Endpoint {
    let raw = Raw::open(&RawOptions::default()).unwrap();
    let tap = Tap::new(raw, tap).unwrap();
    let endpoint = Endpoint::builder().datapath(tap).build().await.unwrap();
    spawn_echo(endpoint.server(PORT).unwrap());
    endpoint
}

fn hosts() -> [SocketAddr; 2] {
    [
        SocketAddr::from(([127, 0, 0, 1], PORT)),
        SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], PORT)),
    ]
}

#[test]
fn call__every_size_and_family() {
    in_namespace("call__every_size_and_family", || async {
        let endpoint = raw(&TapOptions::default()).await;
        for host in hosts() {
            for length in [1, 1424, 1425, 100_000, 1_000_000] {
                let sent = pattern(length);
                let reply = soon(endpoint.client().call(host, sent.clone())).await;
                assert!(bytes(reply.unwrap()) == sent, "{length} bytes to {host}");
            }
        }
        let error = soon(endpoint.client().call(("127.0.0.1", PORT + 1), "x"))
            .await
            .unwrap_err();
        assert!(matches!(error, Error::PortClosed { .. }), "{error}");
        assert_eq!(endpoint.stats().engine.packets_corrupt, 0);
    });
}

/// A bit flips somewhere in a packet, on its way out or in. Not both: a sum of
/// 16 bits misses one in 32 pairs of flips.
async fn calls_while_bits_flip(tap: TapOptions) {
    let endpoint = raw(&tap).await;
    let client = endpoint.client();
    for round in 0..300_usize {
        let host = hosts()[round % 2];
        let sent = pattern(1 + round * 331);
        let reply = soon(client.call(host, sent.clone())).await.unwrap();
        assert!(bytes(reply) == sent, "round {round}");
    }
    let stats = endpoint.stats();
    let damaged = stats.datapath.tap_tx_corrupted + stats.datapath.tap_rx_corrupted;
    assert!(damaged > 200, "{damaged} packets were damaged");
    // Of a type that there is not any more, some never get to their checksum.
    let dropped = stats.engine.packets_corrupt + stats.engine.packets_of_unknown_type;
    let under_way = damaged / 50;
    assert!(
        dropped <= damaged && dropped + under_way >= damaged,
        "{damaged} were damaged, {dropped} dropped"
    );
}

fn flips() -> Faults {
    Faults {
        corrupt: 0.03,
        corrupt_bits: 1,
        ..Faults::default()
    }
}

#[test]
fn corrupt__outgoing_is_a_counted_drop_and_never_wrong_bytes() {
    let test = "corrupt__outgoing_is_a_counted_drop_and_never_wrong_bytes";
    in_namespace(test, || {
        calls_while_bits_flip(TapOptions {
            transmit: flips(),
            ..TapOptions::default()
        })
    });
}

#[test]
fn corrupt__incoming_is_a_counted_drop_and_never_wrong_bytes() {
    let test = "corrupt__incoming_is_a_counted_drop_and_never_wrong_bytes";
    in_namespace(test, || {
        calls_while_bits_flip(TapOptions {
            receive: flips(),
            ..TapOptions::default()
        })
    });
}
