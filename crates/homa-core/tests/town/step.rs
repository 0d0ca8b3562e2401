//! What may happen: packets of the peers that do as they like, and what the
//! application does.

use homa_core::{Kind, Unreachable};
use homa_wire::{
    AbortCode, Ack, AckEntry, Body, Capabilities, Cutoffs, Data, Features, Grant, Resend, SenderId,
};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

/// How a packet gets its id.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Id {
    /// Of the n-th request of the endpoint to this peer, as its server knows it.
    Ours(usize),
    /// Of a request of this peer.
    Theirs(u64),
    /// As it is.
    Literal(u64),
}

#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    /// 0 or 1.
    pub(crate) peer: usize,
    pub(crate) source_port: u16,
    pub(crate) destination_port: u16,
    pub(crate) id: Id,
    pub(crate) body: Body,
    pub(crate) payload: u32,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Arrive(Arrival),
    /// A request of the endpoint to a peer that does as it likes.
    Request(usize, u32, Kind),
    /// A call between the endpoint and the honest peer, `true`: of the latter.
    Honest(bool, u32, u32),
    Take(usize),
    Respond(usize, u32),
    Abort(usize, AbortCode),
    Ready(usize, u32),
    Flush(usize),
    Listen(bool),
    Unreachable(usize, Unreachable, Option<Id>),
    Wait(u64),
    /// From now on the endpoint is not asked for packets, or is again; it is
    /// when time passes, too.
    Hold(bool),
}

fn number() -> impl Strategy<Value = u32> {
    prop_oneof![
        Just(0),
        Just(1),
        Just(100),
        Just(1423),
        Just(1424),
        Just(2848),
        Just(39_999),
        Just(40_000),
        Just(999_999),
        Just(1_000_000),
        Just(1_000_001),
        Just(u32::MAX - 1),
        Just(u32::MAX),
        0u32..5000,
        any::<u32>(),
    ]
}

/// Lengths that are accepted, more often than not.
fn length() -> impl Strategy<Value = u32> {
    prop_oneof![4 => 1u32..6000, 2 => 6000u32..=1_000_000, 1 => number()]
}

fn id() -> impl Strategy<Value = Id> {
    prop_oneof![
        8 => (0usize..4).prop_map(Id::Ours),
        10 => (0u64..7).prop_map(|n| Id::Theirs(100 + 2 * n)),
        4 => (0u64..60).prop_map(|n| Id::Theirs(100 + 2 * n)),
        1 => prop_oneof![Just(0), Just(1), Just(u64::MAX), Just(u64::MAX - 1), any::<u64>()]
            .prop_map(Id::Literal),
    ]
}

fn entry() -> impl Strategy<Value = AckEntry> {
    let ids = prop_oneof![(0u64..7).prop_map(|n| 100 + 2 * n), any::<u64>()];
    (ids, port(4000)).prop_map(|(id, server_port)| AckEntry {
        client_id: SenderId(id),
        server_port,
    })
}

fn port(usual: u16) -> impl Strategy<Value = u16> {
    prop_oneof![30 => Just(usual), 1 => Just(0), 1 => Just(4001), 1 => Just(40_000)]
}

fn trailer() -> impl Strategy<Value = Option<Capabilities>> {
    of(
        (0u8..4, any::<u8>(), 0u64..4).prop_map(|(version, features, instance)| Capabilities {
            version,
            features: Features(features),
            instance,
        }),
    )
}

/// Message lengths by id, so that packets of one RPC mostly agree.
const LENGTHS: [u32; 5] = [100, 2000, 6000, 100_000, 1_000_000];

prop_compose! {
    fn data()(
        agreed in prop::bool::weighted(0.9), other in length(), incoming in number(),
        ack in of(entry()), cutoff_version in 0u16..3, retransmit: bool,
        limit in prop_oneof![4 => Just(0u8), 1 => any::<u8>()],
        one_way in prop::bool::weighted(0.1), offset in number(), packet in 0u32..8,
        payload in number(), how in 0u32..10,
    ) -> (Data, Option<u32>, u32, u32, u32) {
        let data = Data {
            message_length: other, incoming, ack, cutoff_version, retransmit,
            response_limit_log2: limit, one_way, ..Data::default()
        };
        (data, agreed.then_some(packet), offset, payload, how)
    }
}

/// A range of a message: mostly one that lies in it, often a whole packet.
fn ranged(
    (data, agreed, offset, payload, how): (Data, Option<u32>, u32, u32, u32),
    id: Id,
) -> (Body, u32) {
    let n = match id {
        Id::Ours(n) => n,
        Id::Theirs(id) => (id / 2) as usize,
        Id::Literal(id) => (id % 5) as usize,
    };
    let message_length = agreed.map_or(data.message_length, |_| LENGTHS[n % LENGTHS.len()]);
    let data = Data {
        message_length,
        ..data
    };
    let most = message_length.max(1);
    let (start, length) = match how {
        0 => (offset, payload.min(65_535)),
        1..=2 => (offset % most, payload.min(1424)),
        3..=4 => (agreed.unwrap_or(0) * 60_000 % most, 60_000),
        _ => (agreed.unwrap_or(0) * 1424 % most, 1424),
    };
    let length = if how == 0 {
        length
    } else {
        length.min(message_length.saturating_sub(start))
    };
    (Body::Data(data.at(start)), length)
}

fn control() -> impl Strategy<Value = Body> {
    prop_oneof![
        2 => (number(), 0u8..8)
            .prop_map(|(offset, priority)| Body::Grant(Grant { offset, priority })),
        3 => (number(), of(number()), 0u8..8).prop_map(|(offset, length, priority)| {
            Body::Resend(Resend { offset, length, priority })
        }),
        1 => trailer().prop_map(Body::RpcUnknown),
        1 => Just(Body::Busy),
        1 => (any::<[u32; 8]>(), any::<u16>(), trailer()).prop_map(
            |(cutoffs, version, trailer)| Body::Cutoffs(Cutoffs { cutoffs, version }, trailer)
        ),
        1 => Just(Body::Freeze),
        1 => Just(Body::NeedAck),
        2 => (vec(entry(), 0..=5), trailer())
            .prop_map(|(entries, trailer)| Body::Ack(Ack::new(entries), trailer)),
        1 => (0u8..10).prop_map(|code| Body::Abort(AbortCode::from_wire(code))),
    ]
}

prop_compose! {
    fn arrival()(peer in 0usize..2, their in port(40_000), our in port(4000), id in id(), body in of(control()), data in data())
    -> Arrival {
        // Packets about our requests come from the server's port.
        let (source_port, destination_port) = match id {
            Id::Ours(_) => (our, their),
            Id::Theirs(_) | Id::Literal(_) => (their, our),
        };
        let (body, payload) = body.map_or_else(|| ranged(data, id), |body| (body, 0));
        Arrival { peer, source_port, destination_port, id, body, payload }
    }
}

fn unreachable() -> impl Strategy<Value = Unreachable> {
    prop_oneof![
        Just(Unreachable::Port),
        Just(Unreachable::Protocol),
        Just(Unreachable::Host)
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => arrival().prop_map(Step::Arrive),
        2 => (0usize..2, length(), prop::bool::weighted(0.2)).prop_map(|(peer, length, one_way)| {
            Step::Request(peer, length, if one_way { Kind::OneWay } else { Kind::Call })
        }),
        2 => (any::<bool>(), 1u32..20_000, 1u32..20_000)
            .prop_map(|(theirs, there, back)| Step::Honest(theirs, there, back)),
        3 => (0usize..8).prop_map(Step::Take),
        2 => (0usize..8, length()).prop_map(|(rpc, length)| Step::Respond(rpc, length)),
        1 => (0usize..8, 0u8..10).prop_map(|(rpc, code)| Step::Abort(rpc, AbortCode::from_wire(code))),
        1 => (0usize..8, number()).prop_map(|(rpc, bytes)| Step::Ready(rpc, bytes)),
        1 => (0usize..2).prop_map(Step::Flush),
        1 => any::<bool>().prop_map(Step::Listen),
        1 => (0usize..2, unreachable(), of(id()))
            .prop_map(|(peer, what, id)| Step::Unreachable(peer, what, id)),
        4 => prop_oneof![0u64..1000, 0u64..20_000_000, 0u64..400_000_000].prop_map(Step::Wait),
        1 => any::<bool>().prop_map(Step::Hold),
    ]
}

/// Lists of at most `most` steps.
pub(crate) fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 0..most)
}
