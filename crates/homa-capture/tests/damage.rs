//! Damaged files: an error that names the offset, everything before it, and
//! never a panic.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod build;

use std::fs;
use std::io::{self, Read};
use std::path::PathBuf;

use build::{Order, block, busy, enhanced, ethernet, interface, pcap, raw, section};
use homa_capture::{
    Capture, CaptureError, Frame, MAX_INTERFACES, Part, Problem, UdpGuess, UdpRule,
};
use proptest::prelude::*;

/// Records before the error, and the error.
fn fail(file: impl Read) -> (u64, CaptureError) {
    let mut capture = Capture::new(file);
    let mut records = 0;
    let error = loop {
        match capture.next_record() {
            Ok(Some(_)) => records += 1,
            Ok(None) => panic!("no error after {records} records"),
            Err(error) => break error,
        }
    };
    assert!(
        capture.next_record().unwrap().is_none(),
        "an error ends the records"
    );
    (records, error)
}

fn two_records() -> Vec<u8> {
    let frame = ethernet(&[], &raw(&busy()));
    pcap(
        Order::Little,
        build::MICRO,
        1,
        &[(1, 2, &frame), (3, 4, &frame)],
    )
}

const LENGTH: u64 = 14 + 20 + 28;

#[test]
fn pcap__a_file_cut_anywhere_says_where() {
    let file = two_records();
    assert_eq!(file.len() as u64, 24 + 2 * (16 + LENGTH));
    for cut in 0..file.len() {
        let at_boundary = [24, 24 + 16 + LENGTH].contains(&(cut as u64));
        if at_boundary {
            continue;
        }
        let (records, error) = fail(&file[..cut]);
        let record = cut as u64 > 24 + 16 + LENGTH;
        let expected_offset = match cut {
            0..24 => 0,
            _ => 24 + (16 + LENGTH) * u64::from(record),
        };
        assert_eq!(error.offset, expected_offset, "cut at {cut}");
        assert_eq!(records, u64::from(record), "cut at {cut}");
        match (cut, error.problem) {
            (0, Problem::Empty) => {}
            (
                _,
                Problem::Truncated {
                    part,
                    wanted,
                    found,
                },
            ) => {
                assert_eq!(found, cut as u64 - expected_offset);
                assert!(wanted > found);
                let expected = if cut < 24 {
                    Part::FileHeader
                } else {
                    Part::Record
                };
                assert_eq!(part, expected);
            }
            (_, problem) => panic!("cut at {cut}: {problem}"),
        }
    }
}

#[test]
fn pcap__an_absurd_length_is_not_believed() {
    let mut file = two_records();
    let second = 24 + 16 + LENGTH as usize;
    file[second + 8..second + 12].fill(0xff);
    let (records, error) = fail(&file[..]);
    assert_eq!((records, error.offset), (1, second as u64));
    assert!(matches!(
        error.problem,
        Problem::TooLong {
            part: Part::Record,
            length: 0xffff_ffff
        }
    ));
    assert_eq!(
        error.to_string(),
        "at byte 102: a record claims 4294967295 bytes, and no frame has more than 16777216; \
         the file is damaged from here on"
    );
}

#[test]
fn new__other_files_are_recognized() {
    let message = |bytes: &[u8]| fail(bytes).1.to_string();
    assert!(message(b"").contains("empty"));
    assert!(message(b"#!/bin/sh\n").contains("(23 21 2f 62) begin neither"));
    assert!(message(&[0x1f, 0x8b, 8, 0, 0]).contains("gzip -dc"));
    assert!(message(&[0x28, 0xb5, 0x2f, 0xfd]).contains("zstd -dc"));
    assert!(message(&[0xfd, b'7', b'z', b'X', b'Z', 0]).contains("xz -dc"));
    assert!(message(&[0x04, 0x22, 0x4d, 0x18]).contains("lz4 -dc"));
}

#[test]
fn pcapng__damage_of_each_kind() {
    let order = Order::Little;
    let start = [section(order), interface(order, 1, 0, &[])].concat();
    let at = start.len() as u64;
    let check = |bytes: &[u8]| {
        let (records, error) = fail(&[&start, bytes].concat()[..]);
        assert_eq!((records, error.offset), (0, at), "{error}");
        error.problem
    };
    let problem = check(&enhanced(order, 1, 0, &[1]));
    assert!(matches!(problem, Problem::UnknownInterface(1)), "{problem}");

    let mut packet = enhanced(order, 0, 0, &[1, 2, 3, 4]);
    let cut = packet.len() - 1;
    let problem = check(&packet[..cut]);
    assert!(
        matches!(
            problem,
            Problem::Truncated {
                part: Part::PacketBlock,
                ..
            }
        ),
        "{problem}"
    );
    let problem = check(&packet[..7]);
    assert!(
        matches!(
            problem,
            Problem::Truncated {
                part: Part::Block,
                ..
            }
        ),
        "{problem}"
    );
    // The frame longer than its block.
    packet[20] = 200;
    let problem = check(&packet);
    assert!(
        matches!(problem, Problem::BadBlock(Part::PacketBlock)),
        "{problem}"
    );

    for length in [0u32, 11, 13, 8] {
        let mut packet = enhanced(order, 0, 0, &[1]);
        packet[4..8].copy_from_slice(&length.to_le_bytes());
        let problem = check(&packet);
        assert!(
            matches!(problem, Problem::BadLength { .. }),
            "{length}: {problem}"
        );
    }
    let mut packet = enhanced(order, 0, 0, &[1]);
    packet[4..8].copy_from_slice(&0xffff_fffcu32.to_le_bytes());
    let problem = check(&packet);
    assert!(matches!(problem, Problem::TooLong { .. }), "{problem}");
    // A block that is skipped may be of any length, but must be there.
    let mut unknown = block(order, 0x1234, &[0; 8]);
    unknown[4..8].copy_from_slice(&0xffff_fffcu32.to_le_bytes());
    let problem = check(&unknown);
    assert!(
        matches!(
            problem,
            Problem::Truncated {
                part: Part::Block,
                found: 20,
                ..
            }
        ),
        "{problem}"
    );
    let mut section = section(order);
    section[8] = 0;
    let problem = check(&section);
    assert!(
        matches!(problem, Problem::BadBlock(Part::SectionHeader)),
        "{problem}"
    );
}

#[test]
fn pcapng__interfaces_are_limited() {
    let order = Order::Big;
    let one = interface(order, 1, 0, &[]);
    let mut file = section(order);
    let before = file.len() + MAX_INTERFACES * one.len();
    for _ in 0..=MAX_INTERFACES {
        file.extend_from_slice(&one);
    }
    let (_, error) = fail(&file[..]);
    assert_eq!(error.offset, before as u64);
    assert!(matches!(error.problem, Problem::TooManyInterfaces));
}

#[test]
fn read__an_error_of_the_reader_is_passed_on_with_its_offset() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("cable unplugged"))
        }
    }
    let file = two_records();
    let (records, error) = fail(file[..50].chain(Broken));
    assert_eq!(records, 0);
    assert!(
        error
            .to_string()
            .contains("reading failed: cable unplugged"),
        "{error}"
    );
}

/// Reads everything there is, and looks for Homa in it.
fn drain(file: &[u8]) {
    let rule = UdpRule {
        ports: vec![4000],
        guess: UdpGuess::AnyPlausible,
    };
    let mut capture = Capture::new(file);
    while let Ok(Some(record)) = capture.next_record() {
        assert!(record.bytes.len() <= file.len());
        if let Some(frame) = Frame::parse(&record, &rule) {
            let _ = format!("{frame:?}");
        }
    }
}

fn golden() -> Vec<Vec<u8>> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    [
        "01_v4_short_cold",
        "11_v6_request_grants",
        "36_v4_no_such_port",
        "48_v4_hijack",
    ]
    .iter()
    .map(|name| fs::read(directory.join(name).with_extension("pcap")).unwrap())
    .collect()
}

fn all_sorts() -> Vec<Vec<u8>> {
    let mut files = golden();
    for order in [Order::Little, Order::Big] {
        let frame = ethernet(&[0x8100], &build::udp(40000, 4000, &busy()));
        files.push(
            [
                section(order),
                interface(order, 1, 0, &[build::option(order, 9, &[9])]),
                interface(order, 276, 96, &[]),
                enhanced(order, 0, 77, &frame),
                build::simple(order, 2000, &frame),
                enhanced(order, 1, 78, &[0; 60]),
                enhanced(
                    order,
                    0,
                    79,
                    &ethernet(&[], &build::icmp(3, 3, 0, &raw(&busy()))),
                ),
            ]
            .concat(),
        );
    }
    files
}

std::thread_local! {
    static FILES: Vec<Vec<u8>> = all_sorts();
}

proptest! {
    #[test]
    fn read__damaged_files_never_panic(
        choice: prop::sample::Index,
        cut: prop::sample::Index,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
    ) {
        let mut file = FILES.with(|files| choice.get(files).clone());
        for (index, value) in changes {
            // Mostly the first blocks: later ones are only reached through them.
            let index = index.index(file.len().min(600));
            file[index] = value;
        }
        file.truncate(cut.index(file.len()) + 1);
        drain(&file);
    }

    #[test]
    fn read__any_bytes_behind_a_magic_never_panic(
        magic in prop_oneof![
            Just([0xd4, 0xc3, 0xb2, 0xa1]), Just([0xa1, 0xb2, 0x3c, 0x4d]),
            Just([0x34, 0xcd, 0xb2, 0xa1]), Just([0x0a, 0x0d, 0x0d, 0x0a]),
        ],
        link in prop_oneof![Just(1u8), Just(101), Just(113), Just(0), Just(108)],
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
        small in any::<bool>(),
    ) {
        let mut file = magic.to_vec();
        file.extend(bytes);
        if file.len() > 24 {
            file[20..24].copy_from_slice(&[link, 0, 0, 0]);
            if small {
                // Lengths that make sense now and then.
                for byte in &mut file[24..] {
                    *byte &= 0x3f;
                }
            }
        }
        drain(&file);
    }

    #[test]
    fn read__any_blocks_of_a_section_never_panic(
        blocks in proptest::collection::vec(
            (prop_oneof![0u32..8, Just(0x0a0d_0d0a)], proptest::collection::vec(any::<u8>(), 0..80)),
            0..8,
        ),
        big: bool,
    ) {
        let order = if big { Order::Big } else { Order::Little };
        let mut file = [section(order), interface(order, 1, 0, &[])].concat();
        for (block_type, content) in blocks {
            file.extend(block(order, block_type, &content));
        }
        drain(&file);
    }
}
