//! Arbitrary packets: every repr that the types' documentation allows.

use std::ops::Range;

use homa_wire::{
    AbortCode, Ack, AckEntry, Body, Capabilities, Cutoffs, Data, Features, Grant, Packet, Resend,
    SenderId, TcpFields,
};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

/// The bytes of a packet that must be zero, whatever it says.
pub(crate) fn zero_ranges(packet: &Packet) -> Vec<Range<usize>> {
    let mut ranges = vec![8..11, 14..16];
    match &packet.body {
        Body::Data(_) => ranges.push(51..52),
        Body::Ack(ack, _) => ranges.push(30 + 10 * ack.len()..80),
        _ => {}
    }
    if !matches!(packet.body, Body::Data(_)) {
        ranges.push(4..8);
    }
    if packet.body.capabilities().is_some() {
        let at = packet.header_length() - 16;
        ranges.push(at + 6..at + 8);
    }
    ranges
}

prop_compose! {
    fn any_entry()(client_id in 1u64.., server_port: u16) -> AckEntry {
        AckEntry { client_id: SenderId(client_id), server_port }
    }
}

prop_compose! {
    fn any_data()(
        message_length: u32, incoming: u32, ack in of(any_entry()), cutoff_version: u16,
        retransmit: bool, response_limit_log2: u8, one_way: bool, sequence: u32,
        segment_offset in of(0..u32::MAX),
    ) -> Data {
        Data {
            message_length, incoming, ack, cutoff_version, retransmit, response_limit_log2,
            one_way, sequence, segment_offset,
        }
    }
}

prop_compose! {
    fn any_capabilities()(version in 1u8.., features: u8, instance in 1u64..) -> Capabilities {
        Capabilities { version, features: Features(features), instance }
    }
}

fn any_body() -> impl Strategy<Value = Body> {
    prop_oneof![
        any_data().prop_map(Body::Data),
        (any::<u32>(), 0u8..8)
            .prop_map(|(offset, priority)| Body::Grant(Grant { offset, priority })),
        (any::<u32>(), of(0..u32::MAX), 0u8..8).prop_map(|(offset, length, priority)| {
            Body::Resend(Resend {
                offset,
                length,
                priority,
            })
        }),
        of(any_capabilities()).prop_map(Body::RpcUnknown),
        Just(Body::Busy),
        (any::<[u32; 8]>(), any::<u16>(), of(any_capabilities())).prop_map(
            |(cutoffs, version, capabilities)| {
                Body::Cutoffs(Cutoffs { cutoffs, version }, capabilities)
            }
        ),
        Just(Body::Freeze),
        Just(Body::NeedAck),
        (vec(any_entry(), 0..=5), of(any_capabilities()))
            .prop_map(|(entries, capabilities)| Body::Ack(Ack::new(entries), capabilities)),
        any::<u8>().prop_map(|code| Body::Abort(AbortCode::from_wire(code))),
    ]
}

prop_compose! {
    /// Any packet.
    pub(crate) fn any_packet()(
        source_port: u16, destination_port: u16, sender_id: u64, doff: u8, flags: u8,
        checksum: u16, urgent: u16, body in any_body(),
    ) -> Packet {
        Packet {
            source_port,
            destination_port,
            sender_id: SenderId(sender_id),
            tcp: TcpFields { doff, flags, checksum, urgent },
            body,
        }
    }
}
