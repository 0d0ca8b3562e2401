//! Every kind of capture file that is supported, built byte by byte.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod build;

use std::io::{self, Read};

use build::{
    Order, block, busy, enhanced, ethernet, interface, option, pcap, raw, section, simple,
};
use homa_capture::{Capture, LinkType};

/// What a test looks at of a record.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    number: u64,
    time_ns: Option<i64>,
    interface: u32,
    link_type: LinkType,
    bytes: Vec<u8>,
    original_length: u32,
}

fn read(reader: impl Read) -> Vec<Seen> {
    let mut capture = Capture::new(reader);
    let mut seen = Vec::new();
    while let Some(record) = capture.next_record().unwrap() {
        seen.push(Seen {
            number: record.number,
            time_ns: record.time_ns,
            interface: record.interface,
            link_type: record.link_type,
            bytes: record.bytes.to_vec(),
            original_length: record.original_length,
        });
    }
    assert!(
        capture.next_record().unwrap().is_none(),
        "the end stays the end"
    );
    seen
}

const BOTH: [Order; 2] = [Order::Little, Order::Big];

#[test]
fn pcap__both_orders_and_both_resolutions() {
    let frame = ethernet(&[], &raw(&busy()));
    for order in BOTH {
        for (magic, unit_ns) in [(build::MICRO, 1000), (build::NANO, 1)] {
            let frames = [
                (1_796_090_483, 659_498, &frame[..]),
                (1_796_090_484, 5, &[1, 2]),
            ];
            // The upper half of the link type says how long the FCS is.
            let seen = read(&pcap(order, magic, 0x1400_0001, &frames)[..]);
            let expected = [
                Seen {
                    number: 1,
                    time_ns: Some(1_796_090_483_000_000_000 + 659_498 * unit_ns),
                    interface: 0,
                    link_type: LinkType::Ethernet,
                    bytes: frame.clone(),
                    original_length: frame.len() as u32,
                },
                Seen {
                    number: 2,
                    time_ns: Some(1_796_090_484_000_000_000 + 5 * unit_ns),
                    interface: 0,
                    link_type: LinkType::Ethernet,
                    bytes: vec![1, 2],
                    original_length: 2,
                },
            ];
            assert_eq!(seen, expected, "{order:?} {magic:#x}");
        }
    }
}

#[test]
fn pcap__modified_format_has_longer_record_headers() {
    let file = pcap(
        Order::Little,
        build::MODIFIED,
        101,
        &[(1, 2, &[3, 4, 5]), (6, 7, &[8])],
    );
    let seen = read(&file[..]);
    assert_eq!(seen.len(), 2);
    assert_eq!(
        (seen[0].bytes.as_slice(), seen[0].time_ns),
        (&[3, 4, 5][..], Some(1_000_002_000))
    );
    assert_eq!(seen[1].bytes, [8]);
}

#[test]
fn pcapng__interfaces_have_their_own_link_types_and_clocks() {
    for order in BOTH {
        let resolution = |value| option(order, 9, &[value]);
        let offset = |value| option(order, 14, &order.i64(value));
        let file = [
            section(order),
            interface(order, 1, 0, &[]),
            interface(order, 101, 0, &[option(order, 2, b"eth0"), resolution(9)]),
            block(order, 0x0bad, &[1; 20]), // an unknown block
            interface(
                order,
                276,
                0,
                &[resolution(0x80 | 0x14), option(order, 0, &[])],
            ),
            interface(order, 1, 0, &[resolution(3), offset(-2)]),
            interface(order, 1, 0, &[resolution(120)]),
            enhanced(order, 0, 5_000_007, &[1]),
            enhanced(order, 1, 5_000_000_007, &[2, 2]),
            enhanced(order, 2, 5 << 20 | 1 << 19, &[3, 3, 3]),
            enhanced(order, 3, 7_001, &[4, 4, 4, 4]),
            enhanced(order, 4, u64::MAX, &[]),
        ]
        .concat();
        let seen: Vec<_> = read(&file[..])
            .into_iter()
            .map(|seen| (seen.interface, seen.link_type, seen.time_ns, seen.bytes))
            .collect();
        let expected = [
            (0, LinkType::Ethernet, Some(5_000_007_000), vec![1]),
            (1, LinkType::Raw, Some(5_000_000_007), vec![2, 2]),
            (2, LinkType::LinuxSll2, Some(5_500_000_000), vec![3, 3, 3]),
            (3, LinkType::Ethernet, Some(5_001_000_000), vec![4, 4, 4, 4]),
            (4, LinkType::Ethernet, Some(0), vec![]),
        ];
        assert_eq!(seen, expected, "{order:?}");
    }
}

#[test]
fn pcapng__times_beyond_64_bits_are_clamped() {
    let order = Order::Big;
    let file = [
        section(order),
        interface(
            order,
            1,
            0,
            &[
                option(order, 9, &[0]),
                option(order, 14, &order.i64(i64::MIN)),
            ],
        ),
        interface(
            order,
            1,
            0,
            &[
                option(order, 9, &[0]),
                option(order, 14, &order.i64(i64::MAX)),
            ],
        ),
        enhanced(order, 0, 0, &[]),
        enhanced(order, 1, u64::MAX, &[]),
    ]
    .concat();
    let times: Vec<_> = read(&file[..])
        .into_iter()
        .map(|seen| seen.time_ns)
        .collect();
    assert_eq!(times, [Some(i64::MIN), Some(i64::MAX)]);
}

#[test]
fn pcapng__simple_packets_have_no_time_and_end_at_the_snap_length() {
    for order in BOTH {
        let file = [
            section(order),
            interface(order, 101, 6, &[]),
            simple(order, 5, &[1, 2, 3, 4, 5]),
            simple(order, 1500, &[1, 2, 3, 4, 5, 6]),
        ]
        .concat();
        let seen = read(&file[..]);
        assert_eq!(
            (seen[0].time_ns, seen[0].bytes.as_slice()),
            (None, &[1, 2, 3, 4, 5][..])
        );
        assert_eq!((seen[1].original_length, seen[1].bytes.len()), (1500, 6));
    }
}

#[test]
fn pcapng__a_section_begins_anew_with_its_own_order() {
    let file = [
        section(Order::Little),
        interface(Order::Little, 1, 0, &[]),
        interface(Order::Little, 101, 0, &[]),
        enhanced(Order::Little, 1, 1, &[1]),
        section(Order::Big),
        interface(Order::Big, 113, 0, &[]),
        enhanced(Order::Big, 0, 2, &[2]),
    ]
    .concat();
    let seen = read(&file[..]);
    assert_eq!(seen[0].link_type, LinkType::Raw);
    assert_eq!((seen[1].link_type, seen[1].number), (LinkType::LinuxSll, 2));
    assert_eq!(seen[1].time_ns, Some(2000));
}

/// A pipe that hands over one byte at a time.
struct Drip<'a>(&'a [u8]);

impl Read for Drip<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = buffer.len().min(1);
        self.0.read(&mut buffer[..count])
    }
}

#[test]
fn read__a_slow_pipe_is_as_good_as_a_file() {
    let frame = ethernet(&[], &raw(&busy()));
    let files = [
        pcap(
            Order::Big,
            build::NANO,
            1,
            &[(1, 2, &frame), (3, 4, &frame)],
        ),
        [
            section(Order::Little),
            interface(Order::Little, 1, 0, &[]),
            enhanced(Order::Little, 0, 1, &frame),
        ]
        .concat(),
    ];
    for file in files {
        assert_eq!(read(Drip(&file)), read(&file[..]));
    }
}
