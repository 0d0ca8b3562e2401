//! Every number of priority levels works, and each level leaves as the TOS byte
//! that it should.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may fail the test"
)]
#![cfg(feature = "tokio")]

mod common;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use common::{bytes, pattern, serve, soon, spawn_echo};
use homa::Endpoint;
use homa::datapath::{Datapath, ReceiveBatch, Udp, UdpOptions};
use homa_wire::{Packet, PacketType};

#[tokio::test]
async fn priorities__from_one_to_eight_work() {
    for levels in 1..=8 {
        let with = || Endpoint::builder().priorities(levels);
        let server = with().bind("127.0.0.1:0").build().await.unwrap();
        spawn_echo(serve(&server));
        let endpoint = with().build().await.unwrap();
        for length in [1, 20_000, 300_000] {
            let sent = pattern(length);
            let call = endpoint
                .client()
                .call(server.local_addresses()[0], sent.clone());
            assert!(bytes(soon(call).await.unwrap()) == sent, "{levels} levels");
        }
        let sent = endpoint.stats().core.sent_bytes_by_priority;
        let above = &sent[usize::from(levels)..];
        assert!(above.iter().all(|bytes| *bytes == 0), "{levels}: {sent:?}");
    }
}

/// TOS bytes of the first DATA and the first RESEND of a call that nobody
/// answers.
async fn tos_of(endpoint: &Endpoint) -> (u8, u8) {
    let silent = Udp::bind(&UdpOptions::on("127.0.0.1:0".parse().unwrap())).unwrap();
    let to: SocketAddr = silent.local_addresses()[0];
    let call = endpoint.client().call(to, "x");
    let call = tokio::spawn(call.into_future());
    let (mut data, mut resend) = (None, None);
    let mut batch = ReceiveBatch::default();
    let end = Instant::now() + Duration::from_secs(10);
    while (data.is_none() || resend.is_none()) && Instant::now() < end {
        silent.receive(&mut batch).unwrap();
        for (bytes, meta) in batch.iter() {
            match Packet::parse(bytes).unwrap().0.body.packet_type() {
                PacketType::Data => data = Some(meta.tos),
                PacketType::Resend => resend = Some(meta.tos),
                other => panic!("{}", other.name()),
            }
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    call.abort();
    (data.unwrap(), resend.unwrap())
}

#[tokio::test]
async fn tos__is_the_priority_in_the_top_three_bits() {
    for levels in 1..=8_u8 {
        let endpoint = Endpoint::builder()
            .priorities(levels)
            .build()
            .await
            .unwrap();
        // Before a peer has sent its cutoffs: the second highest level.
        let unscheduled = levels.saturating_sub(2);
        let expected = (unscheduled << 5, (levels - 1) << 5);
        assert_eq!(tos_of(&endpoint).await, expected, "{levels} levels");
    }
}

#[tokio::test]
async fn dscp__each_level_has_the_code_point_given() {
    let endpoint = Endpoint::builder()
        .dscp([8, 0, 10, 18, 26, 34, 40, 46])
        .build()
        .await
        .unwrap();
    assert_eq!(tos_of(&endpoint).await, (40 << 2, 46 << 2));
}
