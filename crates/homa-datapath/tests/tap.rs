//! The tap: faults that follow from a seed, and captures that others can read.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test program"
)]

mod common;

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use homa_datapath::{
    Blocked, Counters, Datapath, Faults, Kind, Mem, MemNetwork, NetworkError, Path, ReceiveBatch,
    SendBatch, SendOutcome, Tap, TapOptions, Udp, UdpOptions,
};
use pcap_parser::{Block, PcapBlockOwned, PcapNGReader, traits::PcapReaderIterator};

const PACKETS: u32 = 2000;

fn address(host: u8) -> SocketAddr {
    ([10, 0, 0, host], 4000).into()
}

/// An endpoint that sends through a tap, and one that receives through another.
fn pair(options: &TapOptions) -> (Tap<Mem>, Tap<Mem>) {
    let network = MemNetwork::new();
    let only = |transmit, receive| TapOptions {
        transmit,
        receive,
        ..options.clone()
    };
    let sender = network.endpoint(address(1)).unwrap();
    let receiver = network.endpoint(address(2)).unwrap();
    (
        Tap::new(sender, &only(options.transmit.clone(), Faults::default())).unwrap(),
        Tap::new(receiver, &only(Faults::default(), options.receive.clone())).unwrap(),
    )
}

fn packet(number: u32) -> [u8; 64] {
    let mut bytes = [0x55; 64];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn drain(receiver: &dyn Datapath, into: &mut Vec<Vec<u8>>) {
    let mut received = ReceiveBatch::default();
    while receiver.receive(&mut received).unwrap() > 0 {
        into.extend(received.iter().map(|(bytes, _)| bytes.to_vec()));
    }
}

/// Sends numbered packets in batches of 100 and returns what arrived.
fn exchange(sender: &dyn Datapath, receiver: &dyn Datapath) -> Vec<Vec<u8>> {
    let mut batch = SendBatch::default();
    let mut arrived = Vec::new();
    for number in 0..PACKETS {
        batch
            .push(&Path::to(address(2)), 0, 64)
            .unwrap()
            .copy_from_slice(&packet(number));
        if batch.len() == 100 {
            let outcome = sender.send(&mut batch);
            assert_eq!((outcome.sent, outcome.still_queued), (100, 0));
            drain(receiver, &mut arrived);
        }
    }
    // What is still held goes within its time.
    while let Some(due) = sender.next_release().max(receiver.next_release()) {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        sender.send(&mut batch);
        drain(receiver, &mut arrived);
    }
    drain(receiver, &mut arrived);
    arrived
}

fn both(faults: &Faults, seed: u64) -> [TapOptions; 2] {
    let options = TapOptions {
        seed: Some(seed),
        ..TapOptions::default()
    };
    [
        TapOptions {
            transmit: faults.clone(),
            ..options.clone()
        },
        TapOptions {
            receive: faults.clone(),
            ..options
        },
    ]
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes(bytes[..4].try_into().unwrap())
}

#[test]
fn loss__within_bounds_counted_and_repeatable() {
    let faults = Faults {
        loss: 0.1,
        ..Faults::default()
    };
    for options in both(&faults, 11) {
        let (sender, receiver) = pair(&options);
        let first = exchange(&sender, &receiver);
        let lost = PACKETS as usize - first.len();
        assert!((130..270).contains(&lost), "{lost} of {PACKETS} lost");
        let counters = sender.counters().plus(&receiver.counters());
        assert_eq!((counters.tap_tx_lost + counters.tap_rx_lost) as usize, lost);
        let (sender, receiver) = pair(&options);
        assert_eq!(sender.seed(), 11);
        assert_eq!(exchange(&sender, &receiver), first, "same seed");
        let other = TapOptions {
            seed: Some(12),
            ..options
        };
        let (sender, receiver) = pair(&other);
        assert_ne!(exchange(&sender, &receiver), first, "other seed");
    }
}

#[test]
fn duplicate__each_copy_right_after() {
    let faults = Faults {
        duplicate: 0.2,
        ..Faults::default()
    };
    for options in both(&faults, 5) {
        let (sender, receiver) = pair(&options);
        let arrived = exchange(&sender, &receiver);
        let counters = sender.counters().plus(&receiver.counters());
        let copies = counters.tap_tx_duplicated + counters.tap_rx_duplicated;
        // A full receive batch has no room for a copy; that is counted too.
        let tried = copies + counters.tap_overflow;
        assert!((300..500).contains(&tried), "{tried} of {PACKETS} twice");
        assert_eq!(arrived.len() as u64, u64::from(PACKETS) + copies);
        assert!(arrived.is_sorted_by_key(|bytes| number(bytes)));
    }
}

#[test]
fn corrupt__one_bit_each() {
    let faults = Faults {
        corrupt: 0.3,
        ..Faults::default()
    };
    for options in both(&faults, 6) {
        let (sender, receiver) = pair(&options);
        let arrived = exchange(&sender, &receiver);
        assert_eq!(arrived.len(), PACKETS as usize);
        let mut damaged = 0;
        for (bytes, sent) in arrived.iter().zip((0..PACKETS).map(packet)) {
            let bits: u32 = bytes
                .iter()
                .zip(sent)
                .map(|(a, b)| (a ^ b).count_ones())
                .sum();
            assert!(bits <= 1);
            damaged += u64::from(bits);
        }
        let counters = sender.counters().plus(&receiver.counters());
        assert_eq!(
            counters.tap_tx_corrupted + counters.tap_rx_corrupted,
            damaged
        );
        assert!((500..700).contains(&damaged), "{damaged} of {PACKETS}");
    }
}

#[test]
fn reorder__overtaken_and_none_lost() {
    let faults = Faults {
        reorder: 0.1,
        reorder_packets: 3,
        // Long, so that only overtaking lets them go; but not the last ones.
        reorder_hold: Duration::from_millis(200),
        ..Faults::default()
    };
    for options in both(&faults, 7) {
        let (sender, receiver) = pair(&options);
        let numbers: Vec<_> = exchange(&sender, &receiver)
            .iter()
            .map(|bytes| number(bytes))
            .collect();
        let mut sorted = numbers.clone();
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..PACKETS), "each arrives once");
        let counters = sender.counters().plus(&receiver.counters());
        let held = counters.tap_tx_reordered + counters.tap_rx_reordered;
        assert!((130..270).contains(&held), "{held} of {PACKETS} held");
        let inversions = numbers.windows(2).filter(|pair| pair[0] > pair[1]).count();
        assert!(inversions as u64 > held / 2, "{inversions} inversions");
    }
}

#[test]
fn delay__not_before_its_time() {
    let faults = Faults {
        delay: 1.0,
        delay_min: Duration::from_millis(20),
        delay_max: Duration::from_millis(30),
        ..Faults::default()
    };
    for options in both(&faults, 8) {
        let (sender, receiver) = pair(&options);
        let mut batch = SendBatch::default();
        let start = Instant::now();
        batch
            .push(&Path::to(address(2)), 0, 64)
            .unwrap()
            .copy_from_slice(&packet(1));
        assert_eq!(sender.send(&mut batch).sent, 1);
        let mut arrived = Vec::new();
        drain(&receiver, &mut arrived);
        assert!(arrived.is_empty());
        let due = sender
            .next_release()
            .or(receiver.next_release())
            .expect("somebody holds it");
        assert!(due >= start + Duration::from_millis(20));
        assert!(due <= Instant::now() + Duration::from_millis(30));
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        sender.send(&mut batch);
        drain(&receiver, &mut arrived);
        assert_eq!(arrived, [packet(1)]);
        let both = [sender.next_release(), receiver.next_release()];
        assert_eq!(both, [None, None]);
    }
}

#[test]
fn hold__bounded() {
    let mut options = both(
        &Faults {
            delay: 1.0,
            ..Faults::default()
        },
        9,
    )[0]
    .clone();
    options.held_packets = 10;
    let (sender, receiver) = pair(&options);
    assert_eq!(exchange(&sender, &receiver).len(), PACKETS as usize);
    assert!(sender.counters().tap_overflow > 0);
}

/// A sink with room for some packets.
struct Sink {
    room: AtomicUsize,
}

impl Datapath for Sink {
    fn kind(&self) -> Kind {
        Kind::Mem
    }

    fn local_addresses(&self) -> Vec<SocketAddr> {
        vec![address(1)]
    }

    fn max_packet(&self, _path: &Path) -> usize {
        1000
    }

    fn send(&self, batch: &mut SendBatch) -> SendOutcome {
        let sent = batch.len().min(self.room.load(Ordering::Relaxed));
        self.room.fetch_sub(sent, Ordering::Relaxed);
        batch.consume(sent);
        SendOutcome {
            sent,
            dropped: 0,
            still_queued: batch.len(),
            blocked: (!batch.is_empty()).then_some(Blocked::NoBuffers),
        }
    }

    fn receive(&self, batch: &mut ReceiveBatch) -> io::Result<usize> {
        batch.clear();
        Ok(0)
    }

    fn errors(&self, _report: &mut dyn FnMut(NetworkError<'_>)) {}

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    fn next_release(&self) -> Option<Instant> {
        None
    }

    fn counters(&self) -> Counters {
        Counters::default()
    }
}

#[test]
fn send__what_the_datapath_below_does_not_take_goes_later() {
    let sink = Sink {
        room: AtomicUsize::new(10),
    };
    let tap = Tap::new(sink, &TapOptions::default()).unwrap();
    let mut batch = SendBatch::with_capacity(600, 600_000);
    for number in 0..600 {
        batch
            .push(&Path::to(address(2)), 0, 64)
            .unwrap()
            .copy_from_slice(&packet(number));
    }
    let outcome = tap.send(&mut batch);
    assert_eq!(outcome.sent + outcome.still_queued, 600);
    assert_eq!(outcome.blocked, Some(Blocked::NoBuffers));
    assert!(tap.next_release().is_some(), "it has more to send");
    let next = batch.first().unwrap();
    assert_eq!(number(next.bytes) as usize, outcome.sent);
    tap.inner().room.store(1000, Ordering::Relaxed);
    assert_eq!(tap.send(&mut batch).still_queued, 0);
    assert_eq!(tap.inner().room.load(Ordering::Relaxed), 1000 - 590);
    assert_eq!(tap.next_release(), None);
}

/// A capture in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl io::Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One packet of a capture.
#[derive(Debug)]
struct Captured {
    bytes: Vec<u8>,
    time_ns: u64,
    flags: u32,
    comment: Option<String>,
}

fn read_capture(file: &[u8]) -> Vec<Captured> {
    let mut reader = PcapNGReader::new(1 << 20, file).unwrap();
    let mut packets = Vec::new();
    let (mut interfaces, mut refills) = (0, 0);
    loop {
        let (offset, block) = match reader.next() {
            Ok(next) => next,
            Err(pcap_parser::PcapError::Eof) => break,
            // The reader has not looked into the file again yet.
            Err(pcap_parser::PcapError::Incomplete(_)) if refills < 100 => {
                reader.refill().unwrap();
                refills += 1;
                continue;
            }
            Err(error) => panic!("{error:?}"),
        };
        refills = 0;
        match block {
            PcapBlockOwned::NG(Block::InterfaceDescription(block)) => {
                assert_eq!(block.linktype, pcap_parser::Linktype::RAW);
                assert_eq!(block.if_tsresol, 9);
                interfaces += 1;
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(block)) => {
                let option = |code: u16| {
                    block
                        .options
                        .iter()
                        .find(|option| option.code.0 == code)
                        .map(|option| option.as_bytes().unwrap().to_vec())
                };
                packets.push(Captured {
                    bytes: block.data[..block.caplen as usize].to_vec(),
                    time_ns: u64::from(block.ts_high) << 32 | u64::from(block.ts_low),
                    flags: u32::from_le_bytes(option(2).unwrap().try_into().unwrap()),
                    comment: option(1).map(|text| String::from_utf8(text).unwrap()),
                });
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => {}
            _ => panic!("another kind of block"),
        }
        reader.consume(offset);
    }
    assert_eq!(interfaces, 1);
    packets
}

#[test]
fn capture__readable_with_headers_direction_and_comments() {
    let memory = Memory::default();
    let network = MemNetwork::new();
    let options = TapOptions {
        seed: Some(2),
        transmit: Faults {
            loss: 0.2,
            duplicate: 0.1,
            corrupt: 0.1,
            reorder: 0.1,
            ..Faults::default()
        },
        ..TapOptions::default()
    };
    let inner = network.endpoint(address(1)).unwrap();
    let tap = Tap::recording_into(inner, &options, Box::new(memory.clone())).unwrap();
    let peer = network.endpoint(address(2)).unwrap();
    exchange(&tap, &peer);
    common::send(&peer, &Path::to(address(1)), 0x20, &packet(7));
    assert_eq!(common::receive(&tap, 1).len(), 1);
    let counters = tap.counters();
    drop(tap);
    let packets = read_capture(&memory.0.lock().unwrap());
    assert_eq!(packets.len() as u64, counters.tap_recorded);
    assert!(packets.is_sorted_by_key(|packet| packet.time_ns));
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    let age = now.as_nanos() as u64 - packets[0].time_ns;
    assert!(age < 60_000_000_000, "{age} ns old");
    let with = |text: &str| {
        let matches = |packet: &&Captured| packet.comment.as_deref() == Some(text);
        packets.iter().filter(matches).count() as u64
    };
    assert_eq!(with("tap: lost"), counters.tap_tx_lost);
    // The copy of a packet that is held is held too.
    assert!(with("tap: duplicate") <= counters.tap_tx_duplicated);
    assert!(with("tap: held back") >= counters.tap_tx_reordered);
    assert!(with("tap: corrupted") > 0);
    let (last, sent) = packets.split_last().unwrap();
    for packet in sent {
        assert_eq!(packet.flags, 2, "outbound");
        assert_eq!(packet.bytes[..2], [0x45, 0]);
        assert_eq!(packet.bytes[9], 17);
        assert_eq!(packet.bytes[12..20], [10, 0, 0, 1, 10, 0, 0, 2]);
        assert_eq!(packet.bytes[20..24], [15, 160, 15, 160]);
        assert_eq!(packet.bytes.len(), 28 + 64);
    }
    assert_eq!(last.flags, 1, "inbound");
    assert_eq!((last.bytes[1], &last.bytes[28..]), (0x20, &packet(7)[..]));
    assert_eq!(last.bytes[12..20], [10, 0, 0, 2, 10, 0, 0, 1]);
}

#[test]
fn capture__of_udp_v6_into_a_file() {
    let directory = std::env::temp_dir().join(format!("homa-tap-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("capture.pcapng");
    let on = || Udp::bind(&UdpOptions::on("[::1]:0".parse().unwrap())).unwrap();
    let options = TapOptions {
        capture: Some(file.clone()),
        ..TapOptions::default()
    };
    // A pointer to any datapath is one, too.
    let tap = Tap::new(Box::new(on()) as Box<dyn Datapath>, &options).unwrap();
    let peer = on();
    let (here, there) = (tap.local_addresses()[0], peer.local_addresses()[0]);
    common::send(&tap, &Path::to(there), 0xe0, &common::pattern(1, 501));
    assert_eq!(common::receive(&peer, 1).len(), 1);
    tap.flush();
    let packets = read_capture(&std::fs::read(&file).unwrap());
    std::fs::remove_dir_all(&directory).unwrap();
    let bytes = &packets[0].bytes;
    assert_eq!(packets.len(), 1);
    assert_eq!(bytes[..2], [0x6e, 0], "version 6, traffic class 0xe0");
    assert_eq!(bytes[6], 17);
    assert_eq!(bytes[40..42], here.port().to_be_bytes());
    assert_eq!(bytes[42..44], there.port().to_be_bytes());
    assert_eq!(bytes[48..], common::pattern(1, 501));
}

#[test]
fn new__capture_that_cannot_be_written_is_an_error() {
    let options = TapOptions {
        capture: Some("/nonexistent/capture.pcapng".into()),
        ..TapOptions::default()
    };
    let inner = MemNetwork::new().endpoint(address(1)).unwrap();
    assert!(Tap::new(inner, &options).is_err());
}
