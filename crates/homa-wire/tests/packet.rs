//! Each field of each packet type is where `docs/protocol.md` §3 and §20 say,
//! and nowhere else; parsing inverts emitting and never panics.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;
mod packet_strategy;

use std::ops::Range;

use homa_wire::{
    AbortCode, Ack, AckEntry, Body, Capabilities, Cutoffs, Data, Features, Grant,
    MAX_HEADER_LENGTH, Packet, PacketType, ParseError, Resend, SenderId,
};
use packet_strategy::{any_packet, zero_ranges};
use proptest::prelude::*;

fn emit(packet: &Packet) -> Vec<u8> {
    let mut buffer = [0xee; MAX_HEADER_LENGTH];
    let length = packet.emit(&mut buffer).unwrap();
    assert_eq!(length, packet.header_length());
    assert!(
        buffer[length..].iter().all(|byte| *byte == 0xee),
        "wrote beyond its length"
    );
    buffer[..length].to_vec()
}

fn packet(body: Body) -> Packet {
    let mut packet = Packet::new(0, 0, SenderId(0), body);
    (packet.tcp.doff, packet.tcp.flags, packet.tcp.urgent) = (0, 0, 0);
    packet
}

fn entry(client_id: u64, server_port: u16) -> AckEntry {
    AckEntry {
        client_id: SenderId(client_id),
        server_port,
    }
}

const TRAILER: Capabilities = Capabilities {
    version: 1,
    features: Features(0),
    instance: 0,
};

/// Changing the field must change all bytes of its range, and only those.
#[track_caller]
fn check(base: Body, name: &str, range: Range<usize>, change: impl FnOnce(&mut Packet)) {
    let before = packet(base);
    let mut after = before;
    change(&mut after);
    let (before, after) = (emit(&before), emit(&after));
    assert_eq!(before.len(), after.len(), "{name}");
    let changed: Vec<usize> = (0..before.len())
        .filter(|i| before[*i] != after[*i])
        .collect();
    assert_eq!(changed, range.collect::<Vec<_>>(), "{name} of {base:?}");
}

/// [`check`] for a field of one body type.
macro_rules! check_field {
    ($base:expr, $range:expr, $pattern:pat => $place:expr, $value:expr) => {
        check(
            $base,
            stringify!($place),
            $range,
            |packet| match &mut packet.body {
                $pattern => $place = $value,
                other => panic!("{other:?}"),
            },
        )
    };
}

const WORD: u32 = 0xa5b6_c7d8;
const LONG: u64 = 0xa5b6_c7d8_e9fa_0b1c;

fn every_body() -> [Body; 13] {
    let cutoffs = Cutoffs {
        cutoffs: [0; 8],
        version: 0,
    };
    [
        Body::Data(Data::default().at(0)),
        Body::Grant(Grant {
            offset: 0,
            priority: 0,
        }),
        Body::Resend(Resend {
            offset: 0,
            length: Some(0),
            priority: 0,
        }),
        Body::RpcUnknown(None),
        Body::RpcUnknown(Some(TRAILER)),
        Body::Busy,
        Body::Cutoffs(cutoffs, None),
        Body::Cutoffs(cutoffs, Some(TRAILER)),
        Body::Freeze,
        Body::NeedAck,
        Body::Ack(Ack::default(), None),
        Body::Ack(Ack::default(), Some(TRAILER)),
        Body::Abort(AbortCode::Other(0)),
    ]
}

#[test]
fn emit__each_field_of_the_common_header_is_in_its_place() {
    for base in every_body() {
        check(base, "source port", 0..2, |packet| {
            packet.source_port = 0xa5b6;
        });
        check(base, "destination port", 2..4, |packet| {
            packet.destination_port = 0xa5b6;
        });
        check(base, "doff", 12..13, |packet| {
            packet.tcp.doff = 0xa5;
        });
        check(base, "flags", 13..14, |packet| {
            packet.tcp.flags = 0xa5;
        });
        check(base, "checksum", 16..18, |packet| {
            packet.tcp.checksum = 0xa5b6;
        });
        check(base, "urgent", 18..20, |packet| {
            packet.tcp.urgent = 0xa5b6;
        });
        check(base, "sender id", 20..28, |packet| {
            packet.sender_id = SenderId(LONG);
        });
        assert_eq!(emit(&packet(base))[11], base.packet_type() as u8);
    }
}

#[test]
fn emit__each_field_of_data_is_in_its_place() {
    let base = Body::Data(Data {
        ack: Some(entry(1, 0)),
        ..Data::default().at(0)
    });
    check_field!(base, 4..8, Body::Data(data) => data.sequence, WORD);
    check_field!(base, 28..32, Body::Data(data) => data.message_length, WORD);
    check_field!(base, 32..36, Body::Data(data) => data.incoming, WORD);
    check_field!(base, 36..44, Body::Data(data) => data.ack, Some(entry(LONG, 0)));
    check_field!(base, 44..46, Body::Data(data) => data.ack, Some(entry(1, 0xa5b6)));
    check_field!(base, 43..44, Body::Data(data) => data.ack, None);
    check_field!(base, 46..48, Body::Data(data) => data.cutoff_version, 0xa5b6);
    check_field!(base, 48..49, Body::Data(data) => data.retransmit, true);
    check_field!(base, 49..50, Body::Data(data) => data.response_limit_log2, 16);
    check_field!(base, 50..51, Body::Data(data) => data.one_way, true);
    check_field!(base, 52..56, Body::Data(data) => data.segment_offset, Some(WORD));
    check_field!(base, 52..56, Body::Data(data) => data.segment_offset, None);
    let none = emit(&packet(Body::Data(Data::default())));
    assert_eq!(none[52..56], [0xff; 4]);
    let all = Data {
        retransmit: true,
        one_way: true,
        ..Data::default()
    };
    assert_eq!(emit(&packet(Body::Data(all)))[48..52], [1, 0, 1, 0]);
}

#[test]
fn emit__each_field_of_grant_and_resend_is_in_its_place() {
    let base = Body::Grant(Grant {
        offset: 0,
        priority: 0,
    });
    check_field!(base, 28..32, Body::Grant(grant) => grant.offset, WORD);
    check_field!(base, 32..33, Body::Grant(grant) => grant.priority, 7);
    let base = Body::Resend(Resend {
        offset: 0,
        length: Some(0),
        priority: 0,
    });
    check_field!(base, 28..32, Body::Resend(resend) => resend.offset, WORD);
    check_field!(base, 32..36, Body::Resend(resend) => resend.length, Some(WORD));
    check_field!(base, 32..36, Body::Resend(resend) => resend.length, None);
    check_field!(base, 36..37, Body::Resend(resend) => resend.priority, 7);
}

#[test]
fn emit__each_field_of_cutoffs_is_in_its_place() {
    let base = Body::Cutoffs(
        Cutoffs {
            cutoffs: [0; 8],
            version: 0,
        },
        None,
    );
    for index in 0..8 {
        let at = 28 + 4 * index;
        check_field!(base, at..at + 4, Body::Cutoffs(c, _) => c.cutoffs[index], WORD);
    }
    check_field!(base, 60..62, Body::Cutoffs(cutoffs, _) => cutoffs.version, 0xa5b6);
}

#[test]
fn emit__each_field_of_ack_is_in_its_place() {
    let empty = Body::Ack(Ack::new([entry(0, 0); 5]), None);
    for index in 0..5 {
        let at = 30 + 10 * index;
        let mut entries = [entry(0, 0); 5];
        entries[index].client_id = SenderId(LONG);
        check_field!(empty, at..at + 8, Body::Ack(ack, _) => *ack, Ack::new(entries));
        entries[index] = entry(0, 0xa5b6);
        check_field!(empty, at + 8..at + 10, Body::Ack(ack, _) => *ack, Ack::new(entries));
        let fewer = Ack::new(entries.into_iter().take(index));
        let bytes = emit(&packet(Body::Ack(fewer, None)));
        assert_eq!((bytes.len(), &bytes[28..30]), (80, &[0, index as u8][..]));
    }
}

#[test]
fn emit__abort_is_29_bytes_with_its_code_last() {
    let codes = [
        (AbortCode::Refused, 1),
        (AbortCode::Dropped, 2),
        (AbortCode::Cancelled, 3),
        (AbortCode::TooLarge, 4),
        (AbortCode::PortClosed, 5),
        (AbortCode::ShuttingDown, 6),
        (AbortCode::Stale, 7),
        (AbortCode::Other(200), 200),
    ];
    for (code, number) in codes {
        let bytes = emit(&packet(Body::Abort(code)));
        assert_eq!((bytes.len(), bytes[11], bytes[28]), (29, 0x60, number));
        assert_eq!(Packet::parse(&bytes).unwrap().0.body, Body::Abort(code));
    }
}

#[test]
fn emit__the_trailer_follows_the_types_own_header() {
    let capabilities = Capabilities {
        version: Capabilities::VERSION,
        features: Features::RESPONSE_LIMIT.with(Features::ABORT),
        instance: LONG,
    };
    let expected = [
        b'H', b'O', b'M', b'x', 1, 0x11, 0, 0, 0xa5, 0xb6, 0xc7, 0xd8, 0xe9, 0xfa, 0x0b, 0x1c,
    ];
    let cutoffs = Cutoffs {
        cutoffs: [1; 8],
        version: 1,
    };
    for (body, at) in [
        (Body::RpcUnknown(Some(capabilities)), 28),
        (Body::Cutoffs(cutoffs, Some(capabilities)), 62),
        (Body::Ack(Ack::default(), Some(capabilities)), 80),
    ] {
        let bytes = emit(&packet(body));
        assert_eq!(bytes[at..], expected, "{body:?}");
        let (parsed, _) = Packet::parse(&bytes).unwrap();
        assert_eq!(parsed.body, body);
        // One byte less, another magic, version 0: no trailer, but a packet.
        let cut = Packet::parse(&bytes[..bytes.len() - 1]).unwrap().0;
        assert_eq!(cut.body.capabilities(), None);
        for (index, value) in [(0, b'h'), (3, b'X'), (4, 0)] {
            let mut other = bytes.clone();
            other[at + index] = value;
            assert_eq!(Packet::parse(&other).unwrap().0.body.capabilities(), None);
        }
        // A later version keeps the first 16 bytes and may say more.
        let mut later = bytes.clone();
        later[at + 4] = 2;
        later.extend([9; 8]);
        let later = Packet::parse(&later).unwrap().0.body.capabilities();
        assert_eq!(
            later,
            Some(Capabilities {
                version: 2,
                ..capabilities
            })
        );
    }
    assert_eq!(MAX_HEADER_LENGTH, 96);
    for feature in [
        (Features::RESPONSE_LIMIT, 1),
        (Features::CHECKSUM, 2),
        (Features::LARGE_MESSAGES, 4),
        (Features::ONE_WAY, 8),
        (Features::ABORT, 16),
    ] {
        assert_eq!(feature.0.0, feature.1);
    }
}

#[test]
fn parse__only_three_types_have_a_trailer() {
    let mut trailer = emit(&packet(Body::RpcUnknown(Some(TRAILER))))[28..].to_vec();
    trailer[4] = 1;
    for body in every_body()
        .into_iter()
        .filter(|body| body.capabilities().is_none())
    {
        let mut bytes = emit(&packet(body));
        bytes.extend_from_slice(&trailer);
        let (parsed, rest) = Packet::parse(&bytes).unwrap();
        assert_eq!(
            rest, trailer,
            "the trailer is not part of the rest: {body:?}"
        );
        let carries = matches!(
            body.packet_type(),
            PacketType::RpcUnknown | PacketType::Cutoffs | PacketType::Ack
        );
        assert_eq!(parsed.body.capabilities().is_some(), carries, "{body:?}");
    }
}

#[test]
fn parse__lengths_of_every_type() {
    let lengths = [
        (PacketType::Data, 56),
        (PacketType::Grant, 33),
        (PacketType::Resend, 37),
        (PacketType::RpcUnknown, 28),
        (PacketType::Busy, 28),
        (PacketType::Cutoffs, 62),
        (PacketType::Freeze, 28),
        (PacketType::NeedAck, 28),
        (PacketType::Ack, 80),
        (PacketType::Abort, 29),
    ];
    assert_eq!(lengths.map(|(packet_type, _)| packet_type), PacketType::ALL);
    for (packet_type, minimum) in lengths {
        let mut bytes = [0; 100];
        bytes[11] = packet_type as u8;
        for length in 0..100 {
            let result = Packet::parse(&bytes[..length]);
            match result {
                Err(ParseError::Short { length: found }) => {
                    assert!(length < 28 && found == length);
                }
                Err(error) => {
                    assert_eq!(
                        error,
                        ParseError::ShortForType {
                            packet_type,
                            length
                        }
                    );
                    assert!((28..minimum).contains(&length), "{packet_type:?} {length}");
                }
                Ok((packet, rest)) => {
                    assert!(length >= minimum, "{packet_type:?} {length}");
                    assert_eq!(packet.body.packet_type(), packet_type);
                    assert_eq!(rest.len(), length - minimum);
                }
            }
        }
    }
    for value in (0..=255).filter(|value| !matches!(value, 0x10..=0x18 | 0x60)) {
        let mut bytes = [0; 28];
        bytes[11] = value;
        assert_eq!(Packet::parse(&bytes), Err(ParseError::UnknownType(value)));
        assert_eq!(PacketType::from_wire(value), None);
    }
}

#[test]
fn parse__an_ack_count_above_five_is_five() {
    let mut bytes = emit(&packet(Body::Ack(Ack::new([entry(2, 1); 5]), None)));
    (bytes[28], bytes[29]) = (0xff, 0xff);
    let Body::Ack(ack, None) = Packet::parse(&bytes).unwrap().0.body else {
        panic!()
    };
    assert_eq!(ack.len(), 5);
    let many = Ack::new((0..9).map(|id| entry(id, 1)));
    assert_eq!(
        (many.len(), many.is_empty(), Ack::default().is_empty()),
        (5, false, true)
    );
}

#[test]
fn parse__priorities_are_clamped_to_seven() {
    let mut bytes = emit(&packet(Body::Grant(Grant {
        offset: 0,
        priority: 0,
    })));
    bytes[32] = 8;
    let Body::Grant(grant) = Packet::parse(&bytes).unwrap().0.body else {
        panic!()
    };
    assert_eq!(grant.priority, 7);
    let resend = Resend {
        offset: 0,
        length: None,
        priority: 0,
    };
    let mut bytes = emit(&packet(Body::Resend(resend)));
    bytes[36] = 255;
    let Body::Resend(resend) = Packet::parse(&bytes).unwrap().0.body else {
        panic!()
    };
    assert_eq!(resend.priority, 7);
}

#[test]
fn emit__needs_room_for_the_whole_header() {
    for body in every_body() {
        let packet = packet(body);
        let mut buffer = [0; MAX_HEADER_LENGTH];
        for length in 0..MAX_HEADER_LENGTH {
            let expected = (length >= packet.header_length()).then(|| packet.header_length());
            assert_eq!(packet.emit(&mut buffer[..length]), expected);
        }
    }
}

#[test]
fn parse__golden_packets_cut_anywhere_do_not_panic() {
    for bytes in common::homa_packets() {
        for length in 0..bytes.len().min(120) {
            if let Ok((packet, rest)) = Packet::parse(&bytes[..length]) {
                assert_eq!(packet.header_length() + rest.len(), length);
            }
        }
    }
}

proptest! {
    #[test]
    fn packet__parse_inverts_emit(
        packet in any_packet(),
        payload in proptest::collection::vec(1u8..=255, 0..40),
    ) {
        let mut bytes = emit(&packet);
        for range in zero_ranges(&packet) {
            prop_assert!(bytes[range.clone()].iter().all(|byte| *byte == 0), "{:?}", range);
        }
        bytes.extend_from_slice(&payload);
        let (parsed, _) = Packet::parse(&bytes).unwrap();
        prop_assert_eq!(parsed, packet);
        if let Body::Data(_) = packet.body {
            prop_assert_eq!(Packet::parse(&bytes).unwrap().1, &payload[..]);
        }
    }

    #[test]
    fn parse__never_panics(
        packet_type in prop_oneof![0x10u8..0x19, Just(0x60), any::<u8>()],
        mut bytes in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        if let Some(byte) = bytes.get_mut(11) {
            *byte = packet_type;
        }
        if let Ok((packet, _)) = Packet::parse(&bytes) {
            // What was parsed can be sent, and is then the same packet.
            let (again, _) = Packet::parse(&emit(&packet)).map(|(p, r)| (p, r.len())).unwrap();
            prop_assert_eq!(again, packet);
        }
    }

    #[test]
    fn parse__mutated_golden_packets_do_not_panic(
        choice: prop::sample::Index,
        cut in 0usize..1500,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
    ) {
        let mut bytes = GOLDEN.with(|golden| choice.get(golden).clone());
        bytes.truncate(cut);
        for (index, value) in changes {
            if !bytes.is_empty() {
                let index = index.index(bytes.len().min(100));
                bytes[index] = value;
            }
        }
        if let Ok((packet, _)) = Packet::parse(&bytes) {
            let (again, _) = Packet::parse(&emit(&packet)).map(|(p, r)| (p, r.len())).unwrap();
            prop_assert_eq!(again, packet);
        }
    }
}

std::thread_local! {
    static GOLDEN: Vec<Vec<u8>> = common::homa_packets();
}
