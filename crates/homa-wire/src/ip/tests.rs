//! Headers against an independent implementation (etherparse), and `locate`
//! on well-formed, unusual and broken packets. The golden captures are in
//! `tests/golden.rs`.

#![allow(non_snake_case, reason = "test names are function__case")]

use core::net::{Ipv4Addr, Ipv6Addr};
use std::vec;
use std::vec::Vec;

use etherparse::PacketBuilder;
use proptest::prelude::*;

use super::*;
use crate::{Ack, AckEntry, Body, IP_PROTOCOL, Packet, SenderId};

const SOURCE_V4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const DESTINATION_V4: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const SOURCE_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 1, 0, 0, 0, 0, 0, 1);
const DESTINATION_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 1, 0, 0, 0, 0, 0, 2);

fn busy() -> Vec<u8> {
    let mut bytes = vec![0; 28];
    Packet::new(40000, 4000, SenderId(2), Body::Busy)
        .emit(&mut bytes)
        .unwrap();
    bytes
}

fn v4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; IPV4_HEADER_LENGTH];
    let header = Ipv4::new(
        SOURCE_V4,
        DESTINATION_V4,
        0xe0,
        protocol,
        payload.len() as u16,
    );
    header.emit(&mut bytes).unwrap();
    bytes.extend_from_slice(payload);
    bytes
}

fn v6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; IPV6_HEADER_LENGTH];
    let header = Ipv6::new(
        SOURCE_V6,
        DESTINATION_V6,
        0xe0,
        protocol,
        payload.len() as u16,
    );
    header.emit(&mut bytes).unwrap();
    bytes.extend_from_slice(payload);
    bytes
}

fn udp_v4(payload: &[u8]) -> Vec<u8> {
    let addresses = Addresses::V4 {
        source: SOURCE_V4,
        destination: DESTINATION_V4,
    };
    let mut datagram = vec![0; UDP_HEADER_LENGTH];
    Udp::new(&addresses, 40000, 4000, &[payload])
        .unwrap()
        .emit(&mut datagram)
        .unwrap();
    datagram.extend_from_slice(payload);
    v4(PROTOCOL_UDP, &datagram)
}

/// Any UDP datagram is Homa.
fn any_port(_: Udp, _: Captured<'_>) -> bool {
    true
}

fn found(bytes: &[u8]) -> HomaBytes<'_> {
    match locate(bytes, any_port) {
        Ok(Located::Homa(homa)) => homa,
        other => panic!("not located: {other:?}"),
    }
}

#[test]
fn ipv4_emit__is_what_another_implementation_reads() {
    let bytes = v4(IP_PROTOCOL, &[1, 2, 3]);
    let (theirs, payload) = etherparse::Ipv4Header::from_slice(&bytes).unwrap();
    assert_eq!(theirs.source, SOURCE_V4.octets());
    assert_eq!(theirs.destination, DESTINATION_V4.octets());
    assert_eq!(theirs.dscp.value() << 2 | theirs.ecn.value(), 0xe0);
    assert_eq!((theirs.time_to_live, theirs.protocol.0), (64, 146));
    assert_eq!(
        (
            theirs.dont_fragment,
            theirs.more_fragments,
            theirs.identification
        ),
        (true, false, 0)
    );
    assert_eq!(theirs.header_checksum, theirs.calc_header_checksum());
    assert_eq!(
        (usize::from(theirs.total_len), payload),
        (23, &[1, 2, 3][..])
    );
    assert!(Ipv4::checksum_is_valid(&bytes));
    for index in 0..IPV4_HEADER_LENGTH {
        let mut broken = bytes.clone();
        broken[index] ^= 0x10;
        assert!(!Ipv4::checksum_is_valid(&broken), "byte {index}");
    }
    assert!(!Ipv4::checksum_is_valid(&bytes[..19]));
}

#[test]
fn ipv6_emit__is_what_another_implementation_reads() {
    let mut bytes = [0; IPV6_HEADER_LENGTH];
    let header = Ipv6 {
        flow_label: 0xabcde,
        ..Ipv6::new(SOURCE_V6, DESTINATION_V6, 0xa3, IP_PROTOCOL, 28)
    };
    assert_eq!(header.emit(&mut bytes), Some(IPV6_HEADER_LENGTH));
    let (theirs, _) = etherparse::Ipv6Header::from_slice(&bytes).unwrap();
    assert_eq!(theirs.source, SOURCE_V6.octets());
    assert_eq!(theirs.destination, DESTINATION_V6.octets());
    assert_eq!(
        (theirs.traffic_class, theirs.flow_label.value()),
        (0xa3, 0xabcde)
    );
    assert_eq!(
        (
            theirs.hop_limit,
            theirs.next_header.0,
            theirs.payload_length
        ),
        (64, 146, 28)
    );
}

#[test]
fn udp_new__has_the_checksum_another_implementation_computes() {
    let payload = busy();
    let mut theirs = Vec::new();
    PacketBuilder::ipv6(SOURCE_V6.octets(), DESTINATION_V6.octets(), 64)
        .udp(40000, 4000)
        .write(&mut theirs, &payload)
        .unwrap();
    let addresses = Addresses::V6 {
        source: SOURCE_V6,
        destination: DESTINATION_V6,
    };
    let ours = Udp::new(&addresses, 40000, 4000, &[&payload[..5], &payload[5..]]).unwrap();
    let mut header = [0; UDP_HEADER_LENGTH];
    ours.emit(&mut header).unwrap();
    assert_eq!(
        header[..],
        theirs[IPV6_HEADER_LENGTH..][..UDP_HEADER_LENGTH]
    );
    assert_eq!(ours.check(&addresses, &[&payload]), UdpChecksum::Valid);
    assert_eq!(ours.check(&addresses, &[&payload[1..]]), UdpChecksum::Wrong);
}

#[test]
fn udp__a_checksum_of_zero_is_sent_as_ffff_and_is_no_checksum_otherwise() {
    let v4 = Addresses::V4 {
        source: SOURCE_V4,
        destination: DESTINATION_V4,
    };
    let v6 = Addresses::V6 {
        source: SOURCE_V6,
        destination: DESTINATION_V6,
    };
    for addresses in [v4, v6] {
        // The word that makes the computed checksum zero: the checksum of a
        // datagram that has zero in its place.
        let word = Udp::new(&addresses, 1, 2, &[&[0, 0]])
            .unwrap()
            .checksum
            .to_be_bytes();
        let header = Udp::new(&addresses, 1, 2, &[&word]).unwrap();
        assert_eq!(header.checksum, 0xffff);
        assert_eq!(header.check(&addresses, &[&word]), UdpChecksum::Valid);
    }
    let absent = Udp {
        source_port: 1,
        destination_port: 2,
        payload_length: 0,
        checksum: 0,
    };
    assert_eq!(absent.check(&v4, &[]), UdpChecksum::Absent);
    assert_eq!(absent.check(&v6, &[]), UdpChecksum::Wrong);
}

#[test]
fn emit__needs_room_and_a_length_that_fits() {
    let header = Ipv4::new(SOURCE_V4, DESTINATION_V4, 0, 146, 65_515);
    assert_eq!(header.emit(&mut [0; 19]), None);
    assert_eq!(header.emit(&mut [0; 20]), Some(20));
    assert_eq!(
        Ipv4 {
            payload_length: 65_516,
            ..header
        }
        .emit(&mut [0; 20]),
        None
    );
    assert_eq!(
        Ipv6::new(SOURCE_V6, DESTINATION_V6, 0, 146, 1).emit(&mut [0; 39]),
        None
    );
    let udp = Udp {
        source_port: 1,
        destination_port: 2,
        payload_length: 65_527,
        checksum: 0,
    };
    assert_eq!(udp.emit(&mut [0; 7]), None);
    assert_eq!(udp.emit(&mut [0; 8]), Some(8));
    assert_eq!(
        Udp {
            payload_length: 65_528,
            ..udp
        }
        .emit(&mut [0; 8]),
        None
    );
    let addresses = Addresses::V4 {
        source: SOURCE_V4,
        destination: DESTINATION_V4,
    };
    assert_eq!(Udp::new(&addresses, 1, 2, &[&vec![0; 65_528]]), None);
}

#[test]
fn locate__raw_of_both_versions() {
    for bytes in [v4(IP_PROTOCOL, &busy()), v6(IP_PROTOCOL, &busy())] {
        let homa = found(&bytes);
        assert_eq!(homa.encapsulation, Encapsulation::Raw);
        assert_eq!(
            homa.packet,
            Captured {
                bytes: &busy(),
                length: 28
            }
        );
        assert_eq!(
            (homa.ip.tos(), homa.ip.priority(), homa.ip.ttl()),
            (0xe0, 7, 64)
        );
    }
}

#[test]
fn locate__padding_of_the_frame_is_not_payload() {
    let mut bytes = v4(IP_PROTOCOL, &busy());
    bytes.extend_from_slice(&[0xee; 9]);
    assert_eq!(found(&bytes).packet.bytes, busy());
    let mut bytes = v6(IP_PROTOCOL, &busy());
    bytes.push(0xee);
    assert_eq!(found(&bytes).packet.bytes, busy());
}

#[test]
fn locate__udp_is_the_callers_decision() {
    let bytes = udp_v4(&busy());
    let homa = found(&bytes);
    let Encapsulation::Udp(udp) = homa.encapsulation else {
        panic!("{homa:?}")
    };
    assert_eq!(
        (udp.source_port, udp.destination_port, udp.payload_length),
        (40000, 4000, 28)
    );
    assert_eq!(homa.packet.bytes, busy());
    let mut asked = None;
    let located = locate(&bytes, |udp, packet| {
        asked = Some((udp.destination_port, packet.length));
        false
    });
    assert!(matches!(
        located,
        Ok(Located::Other {
            protocol: PROTOCOL_UDP,
            ..
        })
    ));
    assert_eq!(asked, Some((4000, 28)));
}

#[test]
fn locate__tcp_only_with_the_marks_of_hijacking() {
    let bytes = v4(PROTOCOL_TCP, &busy());
    assert_eq!(found(&bytes).encapsulation, Encapsulation::TcpHijacked);
    for (index, value) in [(13, 0x02), (13, 0x16), (18, 0), (19, 0x7c)] {
        let mut tcp = busy();
        tcp[index] = value;
        let bytes = v4(PROTOCOL_TCP, &tcp);
        let located = locate(&bytes, any_port);
        assert!(
            matches!(located, Ok(Located::Other { protocol: 6, .. })),
            "{located:?}"
        );
    }
}

#[test]
fn locate__ipv4_options_are_skipped() {
    let mut bytes = v4(IP_PROTOCOL, &busy());
    bytes.splice(20..20, [0x94, 4, 0, 0, 1, 1, 1, 1]);
    bytes[0] = 0x47;
    bytes[3] += 8;
    let homa = found(&bytes);
    assert_eq!(homa.packet.bytes, busy());
    let IpHeader::V4(header) = homa.ip else {
        panic!("{homa:?}")
    };
    assert_eq!(header.payload_length, 28);
}

#[test]
fn locate__ipv6_extension_headers_are_skipped() {
    let mut payload = vec![43, 0, 5, 2, 0, 0, 0, 0]; // hop-by-hop
    payload.extend([60, 1]); // routing, 16 bytes
    payload.extend([0; 14]);
    payload.extend([51, 0, 1, 4, 0, 0, 0, 0]); // destination options
    payload.extend([44, 1]); // authentication, 12 bytes
    payload.extend([0; 10]);
    payload.extend([146, 0, 0, 0, 0, 0, 0, 7]); // atomic fragment
    payload.extend(busy());
    let bytes = v6(0, &payload);
    let homa = found(&bytes);
    assert_eq!(homa.packet.bytes, busy());
    assert_eq!(homa.fragment, None);
    for cut in IPV6_HEADER_LENGTH..bytes.len() - 28 {
        let cut = locate(&bytes[..cut], any_port);
        assert!(
            matches!(cut, Err(IpError::Extension { .. }) | Ok(Located::Homa(_))),
            "{cut:?}"
        );
    }
}

#[test]
fn locate__an_extension_header_longer_than_its_packet_is_an_error() {
    let mut payload = vec![146, 9, 0, 0, 0, 0, 0, 0];
    payload.extend(busy());
    let error = locate(&v6(60, &payload), any_port).unwrap_err();
    assert_eq!(error, IpError::Extension { protocol: 60 });
}

#[test]
fn locate__endless_extension_headers_are_given_up() {
    let payload: Vec<u8> = [60, 0, 0, 0, 0, 0, 0, 0].repeat(MAX_EXTENSION_HEADERS);
    let bytes = v6(60, &payload);
    assert_eq!(locate(&bytes, any_port), Err(IpError::TooManyExtensions));
}

#[test]
fn locate__fragments() {
    let mut first = v4(IP_PROTOCOL, &busy());
    first[6] = 0x20;
    let homa = found(&first);
    assert_eq!(
        homa.fragment,
        Some(Fragment {
            offset: 0,
            more: true
        })
    );
    assert_eq!(homa.checksum_is_valid(), None);

    let mut second = v4(IP_PROTOCOL, &busy());
    (second[6], second[7]) = (0x00, 0xb9);
    let located = locate(&second, any_port).unwrap();
    let Located::Fragment {
        protocol, fragment, ..
    } = located
    else {
        panic!("{located:?}")
    };
    assert_eq!(
        (protocol, fragment),
        (
            146,
            Fragment {
                offset: 0xb9 * 8,
                more: false
            }
        )
    );

    let mut payload = vec![146, 0, 0x05, 0xc9, 0, 0, 0, 7];
    payload.extend(busy());
    let bytes = v6(44, &payload);
    let located = locate(&bytes, any_port).unwrap();
    let Located::Fragment {
        protocol, fragment, ..
    } = located
    else {
        panic!("{located:?}")
    };
    assert_eq!(
        (protocol, fragment),
        (
            146,
            Fragment {
                offset: 0x5c8,
                more: true
            }
        )
    );
}

#[test]
fn locate__what_the_capture_cut_is_still_counted() {
    let data = Body::Data(crate::Data {
        message_length: 1400,
        ..Default::default()
    });
    let mut packet = vec![0; 56 + 1400];
    let header = Packet::new(40000, 4000, SenderId(2), data);
    header.emit(&mut packet).unwrap();
    for bytes in [v4(IP_PROTOCOL, &packet), udp_v4(&packet)] {
        let homa = found(&bytes[..112]);
        assert!(homa.packet.is_cut());
        assert_eq!(homa.packet.length, 1456);
        let (parsed, payload) = homa.parse().unwrap();
        assert_eq!(homa.payload_length(&parsed), 1400);
        assert!(payload.len() < 100);
        assert_eq!(homa.checksum_is_valid(), None);
    }
}

#[test]
fn parse__an_ack_may_lack_unused_entries_where_the_capture_cut_it() {
    let entry = AckEntry {
        client_id: SenderId(8),
        server_port: 4000,
    };
    let ack = Packet::new(
        40000,
        4000,
        SenderId(2),
        Body::Ack(Ack::new([entry; 2]), None),
    );
    let mut packet = vec![0; 80];
    ack.emit(&mut packet).unwrap();
    let bytes = v4(IP_PROTOCOL, &packet);
    for length in 28..80 {
        let result = found(&bytes[..IPV4_HEADER_LENGTH + length]).parse();
        match length {
            0..50 => assert!(result.is_err(), "{length}"),
            _ => assert_eq!(result, Ok((ack, &[][..])), "{length}"),
        }
    }
    // The same bytes as a whole packet are no ACK.
    assert!(found(&v4(IP_PROTOCOL, &packet[..79])).parse().is_err());
}

#[test]
fn parse__lengths_of_zero_mean_all_there_is() {
    let mut bytes = v4(IP_PROTOCOL, &busy());
    (bytes[2], bytes[3]) = (0, 0);
    assert_eq!(
        found(&bytes).packet,
        Captured {
            bytes: &busy(),
            length: 28
        }
    );
    let mut bytes = v6(IP_PROTOCOL, &busy());
    (bytes[4], bytes[5]) = (0, 0);
    assert_eq!(
        found(&bytes).packet,
        Captured {
            bytes: &busy(),
            length: 28
        }
    );
}

#[test]
fn parse__says_what_is_wrong() {
    assert_eq!(locate(&[], any_port), Err(IpError::Short { length: 0 }));
    assert_eq!(
        locate(&[0x45; 19], any_port),
        Err(IpError::Short { length: 19 })
    );
    assert_eq!(
        locate(&[0x60; 39], any_port),
        Err(IpError::Short { length: 39 })
    );
    assert_eq!(locate(&[0x55; 60], any_port), Err(IpError::Version(5)));
    let mut bytes = v4(146, &busy());
    bytes[0] = 0x44;
    assert_eq!(locate(&bytes, any_port), Err(IpError::LengthField(16)));
    let mut bytes = v4(146, &busy());
    bytes[3] = 19;
    assert_eq!(locate(&bytes, any_port), Err(IpError::LengthField(19)));
    let mut bytes = v4(146, &[]);
    bytes[0] = 0x46;
    bytes[3] = 24;
    assert_eq!(locate(&bytes, any_port), Err(IpError::Short { length: 20 }));
    let short = Captured::new(&[0; 7], 7);
    assert_eq!(Udp::parse(short), Err(IpError::Short { length: 7 }));
    let lying = Captured::new(&[0, 1, 0, 2, 0, 7, 0, 0], 8);
    assert_eq!(Udp::parse(lying), Err(IpError::LengthField(7)));
}

prop_compose! {
    fn any_v4()(
        source: u32, destination: u32, tos: u8, ttl: u8, identification: u16,
        dont_fragment: bool, offset in 0u16..0x2000, more: bool, protocol: u8,
        payload_length in 0u16..=65_515,
    ) -> Ipv4 {
        let offset = offset << 3;
        Ipv4 {
            source: source.into(),
            destination: destination.into(),
            tos, ttl, identification, dont_fragment,
            fragment: (offset != 0 || more).then_some(Fragment { offset, more }),
            protocol, payload_length,
        }
    }
}

prop_compose! {
    fn any_v6()(
        source: u128, destination: u128, tos: u8, hop_limit: u8, flow_label in 0u32..1 << 20,
        protocol: u8, payload_length in 1u16..,
    ) -> Ipv6 {
        Ipv6 {
            source: source.into(),
            destination: destination.into(),
            tos, hop_limit, flow_label, protocol, payload_length,
        }
    }
}

proptest! {
    #[test]
    fn ipv4__parse_inverts_emit(header in any_v4()) {
        let mut bytes = [0x5a; IPV4_HEADER_LENGTH];
        prop_assert_eq!(header.emit(&mut bytes), Some(IPV4_HEADER_LENGTH));
        prop_assert!(Ipv4::checksum_is_valid(&bytes));
        let (parsed, payload) = Ipv4::parse(&bytes).unwrap();
        prop_assert_eq!(parsed, header);
        prop_assert_eq!(payload.length, usize::from(header.payload_length));
        prop_assert!(payload.bytes.is_empty());
    }

    #[test]
    fn ipv6__parse_inverts_emit(header in any_v6()) {
        let mut bytes = [0x5a; IPV6_HEADER_LENGTH];
        prop_assert_eq!(header.emit(&mut bytes), Some(IPV6_HEADER_LENGTH));
        let (parsed, payload) = Ipv6::parse(&bytes).unwrap();
        prop_assert_eq!(parsed, header);
        prop_assert_eq!(payload.length, usize::from(header.payload_length));
    }

    #[test]
    fn udp__parse_inverts_emit(
        source_port: u16, destination_port: u16, payload_length in 0u16..=65_527, checksum: u16,
    ) {
        let header = Udp { source_port, destination_port, payload_length, checksum };
        let mut bytes = [0x5a; UDP_HEADER_LENGTH];
        prop_assert_eq!(header.emit(&mut bytes), Some(UDP_HEADER_LENGTH));
        let datagram = Captured::new(&bytes, usize::from(payload_length) + UDP_HEADER_LENGTH);
        let (parsed, payload) = Udp::parse(datagram).unwrap();
        prop_assert_eq!(parsed, header);
        prop_assert_eq!(payload.length, usize::from(payload_length));
    }

    #[test]
    fn locate__never_panics_and_never_reads_beyond(
        version in prop_oneof![Just(0x45u8), Just(0x4f), Just(0x60), any::<u8>()],
        protocol in prop_oneof![
            Just(146u8), Just(6), Just(17), Just(0), Just(43), Just(44), Just(51), Just(60),
            any::<u8>(),
        ],
        mut bytes in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        for (index, value) in [(0, version), (6, protocol), (9, protocol)] {
            if let Some(byte) = bytes.get_mut(index) {
                *byte = value;
            }
        }
        if let Ok(Located::Homa(homa)) = locate(&bytes, any_port) {
            prop_assert!(homa.packet.bytes.len() <= homa.packet.length);
            prop_assert!(homa.packet.bytes.len() <= bytes.len());
            let _ = homa.checksum_is_valid();
            if let Ok((packet, payload)) = homa.parse() {
                prop_assert!(payload.len() <= homa.packet.length);
                let _ = homa.payload_length(&packet);
            }
        }
    }
}
