//! One capture file of either format, record by record.

use std::io::Read;

use crate::error::{CaptureError, Part, Problem};
use crate::link::LinkType;
use crate::pcap::Pcap;
use crate::pcapng::Pcapng;
use crate::source::Source;

/// Bytes of the longest record that is read: 16 MiB. Capture tools keep at
/// most 256 KiB of a frame by default, and the largest packets that Linux can
/// show (big TCP) have 512 KiB.
pub const MAX_RECORD_LENGTH: u64 = 16 << 20;

/// Interfaces that one section of a pcapng file may describe, so that a file
/// of nothing but descriptions cannot take all memory.
pub const MAX_INTERFACES: usize = 4096;

/// One frame of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Number of the record in its file, from 1.
    pub number: u64,
    /// When it was captured, in ns since 1970 (UTC); `None` where the file
    /// does not say.
    pub time_ns: Option<i64>,
    /// The interface, by its number in the file.
    pub interface: u32,
    /// What the bytes begin with.
    pub link_type: LinkType,
    /// The frame, as far as it was kept.
    pub bytes: &'a [u8],
    /// Bytes the frame had on the wire.
    pub original_length: u32,
}

/// Reads a capture, pcap or pcapng as its first bytes say.
pub struct Capture<R> {
    source: Source<R>,
    format: Format,
    /// The current record, or the block it is in; reused.
    buffer: Vec<u8>,
    records: u64,
}

enum Format {
    /// Nothing has been read yet.
    Unknown,
    Pcap(Pcap),
    Pcapng(Pcapng),
    /// The end, or an error, has been met.
    Ended,
}

/// Where in the buffer a record's frame is, and what is known about it.
pub(crate) struct Found {
    pub(crate) time_ns: Option<i64>,
    pub(crate) interface: u32,
    pub(crate) link_type: LinkType,
    pub(crate) start: usize,
    pub(crate) length: usize,
    pub(crate) original_length: u32,
}

impl<R: Read> Capture<R> {
    /// A capture in these bytes. Nothing is read yet. Any reader will do; no
    /// buffering is needed.
    pub fn new(reader: R) -> Self {
        Self {
            source: Source::new(reader),
            format: Format::Unknown,
            buffer: Vec::new(),
            records: 0,
        }
    }

    /// The next record, or `None` at the end. After an error there are no
    /// further records.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, CaptureError> {
        match self.advance() {
            Ok(Some(found)) => {
                self.records += 1;
                let frame = self.buffer.get(found.start..).unwrap_or_default();
                Ok(Some(Record {
                    number: self.records,
                    time_ns: found.time_ns,
                    interface: found.interface,
                    link_type: found.link_type,
                    bytes: frame.get(..found.length).unwrap_or(frame),
                    original_length: found.original_length,
                }))
            }
            Ok(None) => {
                self.format = Format::Ended;
                Ok(None)
            }
            Err(error) => {
                self.format = Format::Ended;
                Err(error)
            }
        }
    }

    fn advance(&mut self) -> Result<Option<Found>, CaptureError> {
        if let Format::Unknown = self.format {
            self.format = recognize(&mut self.source, &mut self.buffer)?;
        }
        match &mut self.format {
            Format::Pcap(pcap) => pcap.advance(&mut self.source, &mut self.buffer),
            Format::Pcapng(pcapng) => pcapng.advance(&mut self.source, &mut self.buffer),
            Format::Unknown | Format::Ended => Ok(None),
        }
    }
}

fn recognize<R: Read>(
    source: &mut Source<R>,
    buffer: &mut Vec<u8>,
) -> Result<Format, CaptureError> {
    let error = |problem| Err(CaptureError { offset: 0, problem });
    buffer.clear();
    source.read(buffer, 4)?;
    let Some(magic) = buffer.first_chunk().copied() else {
        return error(match buffer.len() as u64 {
            0 => Problem::Empty,
            found => Problem::Truncated {
                part: Part::FileHeader,
                wanted: 24,
                found,
            },
        });
    };
    match magic {
        [0x0a, 0x0d, 0x0d, 0x0a] => Ok(Format::Pcapng(Pcapng::begin(source, buffer)?)),
        [0xd4, 0xc3, 0xb2, 0xa1]
        | [0xa1, 0xb2, 0xc3, 0xd4]
        | [0x4d, 0x3c, 0xb2, 0xa1]
        | [0xa1, 0xb2, 0x3c, 0x4d]
        | [0x34, 0xcd, 0xb2, 0xa1] => Ok(Format::Pcap(Pcap::begin(source, buffer)?)),
        [0x1f, 0x8b, ..] => error(Problem::Compressed("gzip")),
        [0x28, 0xb5, 0x2f, 0xfd] => error(Problem::Compressed("zstd")),
        [0x04, 0x22, 0x4d, 0x18] => error(Problem::Compressed("lz4")),
        [0xfd, b'7', b'z', b'X'] => error(Problem::Compressed("xz")),
        magic => error(Problem::NotACapture(magic)),
    }
}
