//! What the reference module sent must decode completely, and encode again to
//! the same bytes from the typed repr alone (`docs/protocol.md` §2 and §3,
//! `tests/golden/README.md`).

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod common;

use std::collections::BTreeMap;

use homa_wire::ip::{Encapsulation, IpHeader, Ipv4};
use homa_wire::{Body, PacketType, ParseError, TcpFields, checksum};

/// The NIC of capture 46 adds a header-only runt behind each packet it cuts.
fn is_runt(capture: &str, error: ParseError) -> bool {
    let runt = ParseError::ShortForType {
        packet_type: PacketType::Data,
        length: 52,
    };
    capture == "46_v4_gso_interleaved" && error == runt
}

#[test]
fn parse__every_golden_packet_and_emit_gives_its_bytes_back() {
    let mut by_type = BTreeMap::new();
    let mut runts = 0;
    for capture in common::captures() {
        for (index, packet) in capture.packets.iter().enumerate() {
            let place = format!("{} frame {}", capture.name, index + 1);
            let Some(homa) = common::homa(packet) else {
                continue;
            };
            let (parsed, rest) = match homa.parse() {
                Ok(parsed) => parsed,
                Err(error) => {
                    assert!(is_runt(&capture.name, error), "{place}: {error}");
                    runts += 1;
                    continue;
                }
            };
            let mut bytes = vec![0xee; parsed.header_length()];
            assert_eq!(parsed.emit(&mut bytes), Some(bytes.len()), "{place}");
            bytes.extend_from_slice(rest);
            let (kept, cut) = bytes.split_at(homa.packet.bytes.len());
            assert_eq!(kept, homa.packet.bytes, "{place}");
            assert!(cut.iter().all(|byte| *byte == 0), "{place}");
            match parsed.body {
                Body::Data(data) => {
                    let end = data.offset() as usize + homa.payload_length(&parsed);
                    assert!(end <= data.message_length as usize, "{place}");
                    // `_snap` captures keep the headers only.
                    let snapped = capture.name.ends_with("_snap");
                    assert!(snapped || !homa.packet.is_cut(), "{place}");
                }
                // An ACK is just above what `_snap` captures keep.
                Body::Ack(..) => assert!(rest.is_empty(), "{place}"),
                _ => assert!(rest.is_empty() && !homa.packet.is_cut(), "{place}"),
            }
            *by_type
                .entry(parsed.body.packet_type().name().to_owned())
                .or_insert(0) += 1;
        }
    }
    assert_eq!(runts, 4);
    assert_eq!(by_type, common::types_in_decoded_captures());
}

#[test]
fn emit__the_fields_that_imitate_tcp_are_those_of_the_module() {
    for capture in common::captures() {
        for (index, packet) in capture.packets.iter().enumerate() {
            let place = format!("{} frame {}", capture.name, index + 1);
            let Some(homa) = common::homa(packet) else {
                continue;
            };
            let Ok((parsed, _)) = homa.parse() else {
                continue;
            };
            let mut expected = TcpFields::of(parsed.body.packet_type());
            expected.checksum = parsed.tcp.checksum;
            match (&*capture.name, parsed.body) {
                ("57_host_handmade", _) if parsed.source_port == 40000 => continue,
                // Segments of the NIC without hijacking say 13 words.
                ("46_v4_gso_interleaved", Body::Data(_)) => expected.doff = 0xd0,
                _ => {}
            }
            assert_eq!(parsed.tcp, expected, "{place}");
        }
    }
}

#[test]
fn checksum__of_every_complete_packet_that_a_kernel_sent_is_valid() {
    let (mut valid, mut runts) = (0, 0);
    for capture in common::captures() {
        for (index, packet) in capture.packets.iter().enumerate() {
            let place = format!("{} frame {}", capture.name, index + 1);
            let Some(homa) = common::homa(packet) else {
                continue;
            };
            if homa.packet.is_cut() {
                assert_eq!(homa.checksum_is_valid(), None, "{place}");
                continue;
            }
            let handmade = capture.name == "57_host_handmade";
            let from_kernel = homa.packet.bytes[18..20] == [0xb9, 0x7d];
            assert!(from_kernel || handmade, "{place}");
            assert_eq!(homa.checksum_is_valid(), Some(from_kernel), "{place}");
            runts += usize::from(homa.parse().is_err());
            valid += usize::from(from_kernel);

            // Emitting the same packet without its checksum and filling that
            // in gives the same field, however the payload is cut.
            let Ok((mut parsed, payload)) = homa.parse() else {
                continue;
            };
            let expected = parsed.tcp.checksum;
            parsed.tcp.checksum = 0;
            let mut header = vec![0; parsed.header_length()];
            parsed.emit(&mut header).unwrap();
            let (first, second) = payload.split_at(payload.len() / 3);
            let filled = checksum::fill(&homa.ip.addresses(), &mut header, &[first, second]);
            if from_kernel {
                assert_eq!(filled, Some(expected), "{place}");
            }
            assert!(checksum::is_valid(
                &homa.ip.addresses(),
                &[&header, first, second]
            ));
        }
    }
    assert_eq!((valid, runts), (1079, 4));
}

#[test]
fn ip_headers__of_every_golden_packet_are_what_emit_makes() {
    for capture in common::captures() {
        for (index, packet) in capture.packets.iter().enumerate() {
            let place = format!("{} frame {}", capture.name, index + 1);
            let (header, payload) = IpHeader::parse(packet).unwrap();
            let mut bytes = vec![0xee; header.header_length()];
            assert_eq!(header.emit(&mut bytes), Some(bytes.len()), "{place}");
            if header.version() == 4 {
                assert!(Ipv4::checksum_is_valid(packet), "{place}");
            }
            assert_eq!(bytes, packet[..bytes.len()], "{place}");
            assert_eq!(payload.bytes.len(), packet.len() - bytes.len(), "{place}");
        }
    }
}

#[test]
fn locate__hijacked_packets_are_those_of_captures_48_and_50() {
    for capture in common::captures() {
        let hijacked = capture.name.contains("hijack");
        for packet in &capture.packets {
            let Some(homa) = common::homa(packet) else {
                continue;
            };
            let expected = if hijacked {
                Encapsulation::TcpHijacked
            } else {
                Encapsulation::Raw
            };
            assert_eq!(homa.encapsulation, expected, "{}", capture.name);
        }
    }
}
