//! Finding Homa in frames: link types, VLAN tags, UDP rules, ICMP errors,
//! fragments, and the golden captures.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]
#![allow(clippy::large_types_passed_by_value, reason = "shorter tests")]

mod build;

use std::fs;
use std::path::PathBuf;

use build::{busy, ethernet, ethertype, icmp, raw, udp, v4, v6};
use homa_capture::{Capture, Content, Frame, Homa, LinkType, Record, UdpGuess, UdpRule, Unparsed};
use homa_wire::ip::Encapsulation;
use homa_wire::{Body, Data, IP_PROTOCOL, Packet, PacketType, ParseError, SenderId};

fn record(link: u16, bytes: &[u8]) -> Record<'_> {
    Record {
        number: 1,
        time_ns: None,
        interface: 0,
        link_type: LinkType::from_wire(link),
        bytes,
        original_length: bytes.len() as u32,
    }
}

fn find(link: u16, bytes: &[u8]) -> Option<Frame<'_>> {
    Frame::parse(&record(link, bytes), &UdpRule::default())
}

fn homa_of(frame: Frame<'_>) -> Homa<'_> {
    match frame.content {
        Content::Homa(homa) => homa,
        other => panic!("{other:?}"),
    }
}

fn is_busy(frame: Option<Frame<'_>>) -> bool {
    frame.is_some_and(|frame| homa_of(frame).packet.unwrap().body == Body::Busy)
}

#[test]
fn link__every_supported_type() {
    for packet in [raw(&busy()), v6(IP_PROTOCOL, &busy())] {
        let ethertype = ethertype(&packet).to_be_bytes();
        let sll = [&[0; 14][..], &ethertype, &packet].concat();
        let sll2 = [&ethertype[..], &[0; 18], &packet].concat();
        for (link, frame) in [(1, ethernet(&[], &packet)), (113, sll), (276, sll2)] {
            assert!(is_busy(find(link, &frame)), "{link}");
            for cut in 0..frame.len() - packet.len() {
                assert_eq!(find(link, &frame[..cut]), None, "{link} cut at {cut}");
            }
        }
        for link in [12, 14, 101, 228, 229] {
            assert!(is_busy(find(link, &packet)), "{link}");
        }
        let families: &[u32] = if packet[0] >> 4 == 4 {
            &[2]
        } else {
            &[10, 24, 28, 30]
        };
        for family in families {
            let little = [&family.to_le_bytes()[..], &packet].concat();
            let big = [&family.to_be_bytes()[..], &packet].concat();
            assert!(
                is_busy(find(0, &little)) && is_busy(find(0, &big)),
                "{family}"
            );
            assert!(is_busy(find(108, &big)), "{family}");
        }
    }
}

#[test]
fn link__others_and_other_protocols_have_no_homa() {
    let packet = raw(&busy());
    assert_eq!(LinkType::from_wire(105), LinkType::Other(105));
    assert_eq!(find(105, &packet), None);
    let mut arp = ethernet(&[], &packet);
    (arp[12], arp[13]) = (8, 6);
    assert_eq!(find(1, &arp), None);
    assert_eq!(find(0, &[&7u32.to_le_bytes()[..], &packet].concat()), None);
    assert_eq!(find(101, &v4(6, &[0; 40])), None);
    assert_eq!(find(101, &[0xff; 40]), None);
    assert_eq!(find(101, &[]), None);
}

#[test]
fn link__vlan_tags_are_skipped_also_stacked() {
    for packet in [raw(&busy()), v6(IP_PROTOCOL, &busy())] {
        let eight = [
            0x88a8, 0x9100, 0x9200, 0x8100, 0x8100, 0x8100, 0x8100, 0x8100,
        ];
        for tags in [
            &[0x8100][..],
            &[0x88a8, 0x8100],
            &[0x8100, 0x8100, 0x8100],
            &eight,
        ] {
            let frame = ethernet(tags, &packet);
            assert!(is_busy(find(1, &frame)), "{tags:x?}");
        }
        assert_eq!(find(1, &ethernet(&[0x8100; 9], &packet)), None);
        let tagged = ethernet(&[0x8100], &packet);
        let sll = [&[0; 14][..], &tagged[12..]].concat();
        assert!(is_busy(find(113, &sll)));
    }
}

#[test]
fn udp__ports_in_both_headers_are_enough_evidence() {
    let frame = udp(40000, 4000, &busy());
    let homa = homa_of(find(101, &frame).unwrap());
    assert!(
        matches!(homa.bytes.encapsulation, Encapsulation::Udp(udp) if udp.source_port == 40000)
    );
    assert_eq!(homa.packet.unwrap().body, Body::Busy);
    // Behind NAT the source port is another.
    assert_eq!(find(101, &udp(1234, 4000, &busy())), None);
    // The ports alone, with a type that does not exist.
    let mut other = busy();
    other[11] = 0x42;
    assert_eq!(find(101, &udp(40000, 4000, &other)), None);
    // A Homa packet that is too short for its type claims to be Homa.
    let mut short = busy();
    short[11] = PacketType::Grant as u8;
    let frame = udp(40000, 4000, &short);
    let error = ParseError::ShortForType {
        packet_type: PacketType::Grant,
        length: 28,
    };
    let homa = homa_of(find(101, &frame).unwrap());
    assert_eq!(homa.packet, Err(Unparsed::Malformed(error)));
}

#[test]
fn udp__named_ports_count_whatever_is_inside() {
    let named = |port| UdpRule {
        ports: vec![9, port],
        guess: UdpGuess::Nothing,
    };
    let frame = udp(1234, 53, b"not Homa at all");
    for port in [1234, 53] {
        let found = Frame::parse(&record(101, &frame), &named(port));
        let short = Unparsed::Malformed(ParseError::Short { length: 15 });
        assert_eq!(homa_of(found.unwrap()).packet, Err(short));
    }
    let frame = udp(40000, 4000, &busy());
    assert_eq!(Frame::parse(&record(101, &frame), &named(53)), None);
}

#[test]
fn udp__any_plausible_sees_through_nat_and_not_everything() {
    let rule = UdpRule {
        ports: vec![],
        guess: UdpGuess::AnyPlausible,
    };
    let parses = |payload: &[u8]| {
        let frame = udp(1234, 4321, payload);
        Frame::parse(&record(101, &frame), &rule).is_some()
    };
    assert!(parses(&busy()));
    let data = |message_length, payload: &[u8]| {
        let body = Body::Data(Data {
            message_length,
            ..Data::default().at(0)
        });
        build::homa(&Packet::new(40000, 4000, SenderId(2), body), payload)
    };
    assert!(parses(&data(5, &[1; 5])));
    assert!(!parses(&data(4, &[1; 5])), "payload beyond the message");
    assert!(!parses(&data(0, &[])), "empty message");
    for (index, value) in [(8, 1), (14, 1), (4, 1), (11, 0x42)] {
        let mut other = busy();
        other[index] = value;
        assert!(!parses(&other), "byte {index}");
    }
    let mut no_port = busy();
    no_port[2..4].fill(0);
    assert!(!parses(&no_port));
    assert!(!parses(&busy()[..27]));
}

#[test]
fn icmp__errors_quote_homa() {
    let original = raw(&busy());
    let frame = icmp(3, 3, 0, &original);
    let Content::Icmp(error) = find(101, &frame).unwrap().content else {
        panic!()
    };
    assert_eq!((error.icmp_type, error.code, error.mtu), (3, 3, None));
    assert_eq!(error.quoted.packet.unwrap().destination_port, 4000);
    assert_eq!(error.quoted.bytes.ip.destination().to_string(), "10.0.0.2");

    // RFC 792 asks for 8 bytes of the payload: the ports, no more.
    let frame = icmp(3, 2, 0, &original[..28]);
    let Content::Icmp(error) = find(101, &frame).unwrap().content else {
        panic!()
    };
    assert_eq!(error.quoted.packet, Err(Unparsed::Cut { captured: 8 }));
    assert_eq!(error.quoted.glimpse().ports, Some((40000, 4000)));
    assert_eq!(error.quoted.glimpse().sender_id, None);

    let frame = icmp(3, 4, 1400, &original);
    let Content::Icmp(error) = find(101, &frame).unwrap().content else {
        panic!()
    };
    assert_eq!(error.mtu, Some(1400));

    let too_big = [&[2, 0, 0, 0, 0, 0, 5, 0][..], &v6(IP_PROTOCOL, &busy())].concat();
    let frame = v6(58, &too_big);
    let Content::Icmp(error) = find(101, &frame).unwrap().content else {
        panic!()
    };
    assert_eq!((error.icmp_type, error.mtu), (2, Some(1280)));

    let frame = icmp(3, 3, 0, &udp(40000, 4000, &busy()));
    assert!(matches!(
        find(101, &frame).unwrap().content,
        Content::Icmp(_)
    ));
}

#[test]
fn icmp__other_messages_are_none_of_our_business() {
    let original = raw(&busy());
    assert_eq!(
        find(101, &icmp(8, 0, 0, &original)),
        None,
        "an echo request"
    );
    assert_eq!(
        find(101, &v6(58, &[&[135, 0, 0, 0][..], &[0; 20]].concat())),
        None
    );
    assert_eq!(
        find(101, &icmp(3, 3, 0, &v4(6, &[0; 20]))),
        None,
        "quotes TCP"
    );
    assert_eq!(find(101, &v4(1, &[3, 3, 0, 0])), None, "cut off");
}

#[test]
fn fragment__of_homa_is_reported_and_of_others_not() {
    let mut second = raw(&[0; 64]);
    (second[6], second[7]) = (0x20, 0xb9);
    let Content::Fragment(fragment) = find(101, &second).unwrap().content else {
        panic!()
    };
    assert_eq!((fragment.offset, fragment.more), (1480, true));
    second[9] = 17;
    assert_eq!(find(101, &second), None);
    let mut first = raw(&busy()[..24]);
    first[6] = 0x20;
    let homa = homa_of(find(101, &first).unwrap());
    assert_eq!(homa.packet, Err(Unparsed::Cut { captured: 24 }));
}

#[test]
fn homa__cut_by_the_capture_is_not_the_senders_fault() {
    let body = Body::Data(Data {
        message_length: 1000,
        ..Data::default().at(0)
    });
    let packet = build::homa(&Packet::new(40000, 4000, SenderId(6), body), &[7; 1000]);
    let whole = ethernet(&[], &raw(&packet));
    for kept in 34..whole.len() {
        let homa = homa_of(find(1, &whole[..kept]).unwrap());
        match homa.packet {
            Ok(_) => {
                assert!(kept >= 34 + 56);
                assert_eq!((homa.rest_length(), homa.rest().len()), (1000, kept - 90));
            }
            Err(error) => assert_eq!(
                error,
                Unparsed::Cut {
                    captured: kept - 34
                }
            ),
        }
        let id = homa.glimpse().sender_id;
        assert_eq!(id, (kept >= 34 + 28).then_some(SenderId(6)));
    }
}

#[test]
fn golden__every_frame_is_homa_or_an_error_about_it() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    let (mut frames, mut icmp) = (0, 0);
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "pcap") {
            continue;
        }
        let mut capture = Capture::new(fs::File::open(&path).unwrap());
        while let Some(record) = capture.next_record().unwrap() {
            let place = format!("{} frame {}", path.display(), record.number);
            let frame = Frame::parse(&record, &UdpRule::default());
            match frame.unwrap_or_else(|| panic!("{place}")).content {
                Content::Homa(homa) => {
                    let runt = path.ends_with("46_v4_gso_interleaved.pcap");
                    assert!(homa.packet.is_ok() || runt, "{place}: {homa:?}");
                }
                Content::Icmp(error) => {
                    icmp += 1;
                    assert_eq!(
                        error.quoted.packet.unwrap().destination_port,
                        4555,
                        "{place}"
                    );
                }
                other @ Content::Fragment(_) => panic!("{place}: {other:?}"),
            }
            frames += 1;
        }
    }
    assert!(frames > 3000, "{frames}");
    assert_eq!(icmp, 2);
}
