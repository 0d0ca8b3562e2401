//! The classic pcap format: both byte orders, micro- and nanoseconds, and the
//! "modified" variant with longer record headers.

use std::io::Read;

use pcap_parser::pcap::{
    LegacyPcapBlock, parse_pcap_frame, parse_pcap_frame_be, parse_pcap_frame_modified,
    parse_pcap_header,
};

use crate::MAX_RECORD_LENGTH;
use crate::capture::Found;
use crate::error::{CaptureError, Part, Problem};
use crate::link::LinkType;
use crate::source::Source;

const FILE_HEADER_LENGTH: u64 = 24;
const RECORD_HEADER_LENGTH: u64 = 16;
const MODIFIED_RECORD_HEADER_LENGTH: u64 = 24;

pub(crate) struct Pcap {
    link_type: LinkType,
    layout: Layout,
    /// Nanoseconds per unit of a record's fraction of a second.
    fraction_ns: i64,
}

#[derive(Clone, Copy)]
enum Layout {
    LittleEndian,
    BigEndian,
    Modified,
}

impl Pcap {
    /// Reads the rest of the file header, of which `buffer` has the magic.
    pub(crate) fn begin<R: Read>(
        source: &mut Source<R>,
        buffer: &mut Vec<u8>,
    ) -> Result<Self, CaptureError> {
        source.read_exact(buffer, FILE_HEADER_LENGTH - 4, Part::FileHeader, 0)?;
        let (_, header) = parse_pcap_header(buffer).map_err(|_| CaptureError {
            offset: 0,
            problem: Problem::BadBlock(Part::FileHeader),
        })?;
        Ok(Self {
            // The upper half may say how long the frame check sequences are.
            link_type: LinkType::from_wire(header.network.0.cast_unsigned() as u16),
            layout: if header.is_modified_format() {
                Layout::Modified
            } else if header.is_bigendian() {
                Layout::BigEndian
            } else {
                Layout::LittleEndian
            },
            fraction_ns: if header.is_nanosecond_precision() {
                1
            } else {
                1000
            },
        })
    }

    pub(crate) fn advance<R: Read>(
        &mut self,
        source: &mut Source<R>,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Found>, CaptureError> {
        let offset = source.offset();
        let header_length = match self.layout {
            Layout::Modified => MODIFIED_RECORD_HEADER_LENGTH,
            Layout::LittleEndian | Layout::BigEndian => RECORD_HEADER_LENGTH,
        };
        buffer.clear();
        match source.read(buffer, header_length)? {
            0 => return Ok(None),
            found if found < header_length => {
                let problem = Problem::Truncated {
                    part: Part::Record,
                    wanted: header_length,
                    found,
                };
                return Err(CaptureError { offset, problem });
            }
            _ => {}
        }
        let length = self.frame_length(buffer);
        if length > MAX_RECORD_LENGTH {
            let problem = Problem::TooLong {
                part: Part::Record,
                length,
            };
            return Err(CaptureError { offset, problem });
        }
        source.read_exact(buffer, length, Part::Record, offset)?;
        let block = self.parse(buffer).ok_or(CaptureError {
            offset,
            problem: Problem::BadBlock(Part::Record),
        })?;
        let seconds = i64::from(block.ts_sec);
        let fraction = i64::from(block.ts_usec);
        Ok(Some(Found {
            time_ns: Some(seconds * 1_000_000_000 + fraction * self.fraction_ns),
            interface: 0,
            link_type: self.link_type,
            start: header_length as usize,
            length: block.data.len(),
            original_length: block.origlen,
        }))
    }

    fn frame_length(&self, header: &[u8]) -> u64 {
        let Some(bytes) = header.get(8..).and_then(|bytes| bytes.first_chunk()) else {
            return 0;
        };
        u64::from(match self.layout {
            Layout::LittleEndian | Layout::Modified => u32::from_le_bytes(*bytes),
            Layout::BigEndian => u32::from_be_bytes(*bytes),
        })
    }

    fn parse<'a>(&self, record: &'a [u8]) -> Option<LegacyPcapBlock<'a>> {
        let parsed = match self.layout {
            Layout::LittleEndian => parse_pcap_frame(record),
            Layout::BigEndian => parse_pcap_frame_be(record),
            Layout::Modified => parse_pcap_frame_modified(record),
        };
        parsed.ok().map(|(_, block)| block)
    }
}
