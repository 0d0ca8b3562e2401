//! The pcapng format: sections of either byte order, several interfaces with
//! their own link types and clocks. Blocks that hold no packets are skipped
//! unread.
//!
//! The options for time are read here and not taken from `pcap-parser`: its
//! 0.17 reads `if_tsoffset` as little endian in big-endian files and refuses
//! resolutions that are powers of two.

use std::io::Read;

use pcap_parser::pcapng::{
    parse_enhancedpacketblock_be, parse_enhancedpacketblock_le, parse_interfacedescriptionblock_be,
    parse_interfacedescriptionblock_le, parse_simplepacketblock_be, parse_simplepacketblock_le,
};
use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{OptionCode, PcapNGOption};

use crate::capture::Found;
use crate::error::{CaptureError, Part, Problem};
use crate::link::LinkType;
use crate::source::Source;
use crate::{MAX_INTERFACES, MAX_RECORD_LENGTH};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;

const BYTE_ORDER_MAGIC: [u8; 4] = [0x1a, 0x2b, 0x3c, 0x4d];

/// Type and length in front of a block, and the length again behind it.
const BLOCK_START_LENGTH: u64 = 8;
const BLOCK_FRAME_LENGTH: u64 = 12;

/// Where the frame is in the packet blocks.
const ENHANCED_PACKET_START: usize = 28;
const SIMPLE_PACKET_START: usize = 12;

pub(crate) struct Pcapng {
    order: Order,
    interfaces: Vec<Interface>,
}

#[derive(Clone, Copy)]
enum Order {
    LittleEndian,
    BigEndian,
}

impl Order {
    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let bytes = bytes
            .get(at..)
            .and_then(|bytes| bytes.first_chunk())
            .copied();
        match (self, bytes) {
            (Self::LittleEndian, Some(bytes)) => u32::from_le_bytes(bytes),
            (Self::BigEndian, Some(bytes)) => u32::from_be_bytes(bytes),
            (_, None) => 0,
        }
    }
}

struct Interface {
    link_type: LinkType,
    /// Bytes kept of a frame at most; `None` for all.
    snap_length: Option<u32>,
    resolution: Resolution,
    offset_seconds: i64,
}

/// Units of time per second.
#[derive(Clone, Copy)]
enum Resolution {
    PowerOfTen(u8),
    PowerOfTwo(u8),
}

impl Resolution {
    fn from_wire(value: u8) -> Self {
        if value & 0x80 == 0 {
            Self::PowerOfTen(value)
        } else {
            Self::PowerOfTwo(value & 0x7f)
        }
    }

    /// Nanoseconds in `units`, rounded down.
    fn nanoseconds(self, units: u64) -> i128 {
        let per_second = match self {
            Self::PowerOfTen(exponent) => 10u128.checked_pow(u32::from(exponent)),
            Self::PowerOfTwo(exponent) => 2u128.checked_pow(u32::from(exponent)),
        };
        // Finer than a u128 can say: 64 bits of such units are less than 1 ns.
        per_second.map_or(0, |per_second| {
            i128::try_from(u128::from(units) * 1_000_000_000 / per_second).unwrap_or(i128::MAX)
        })
    }
}

impl Interface {
    fn time_ns(&self, units: u64) -> i64 {
        let offset = i128::from(self.offset_seconds) * 1_000_000_000;
        let time = offset.saturating_add(self.resolution.nanoseconds(units));
        time.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
    }
}

impl Pcapng {
    /// Reads the first section header, of which `buffer` has the block type.
    pub(crate) fn begin<R: Read>(
        source: &mut Source<R>,
        buffer: &mut Vec<u8>,
    ) -> Result<Self, CaptureError> {
        source.read_exact(buffer, 4, Part::SectionHeader, 0)?;
        let mut pcapng = Self {
            order: Order::LittleEndian,
            interfaces: Vec::new(),
        };
        pcapng.begin_section(source, buffer, 0)?;
        Ok(pcapng)
    }

    /// Reads a section header, of which `buffer` has the first 8 bytes.
    fn begin_section<R: Read>(
        &mut self,
        source: &mut Source<R>,
        buffer: &mut Vec<u8>,
        offset: u64,
    ) -> Result<(), CaptureError> {
        let part = Part::SectionHeader;
        source.read_exact(buffer, 4, part, offset)?;
        let mut magic = buffer.get(8..12).unwrap_or_default().to_vec();
        self.order = if magic == BYTE_ORDER_MAGIC {
            Order::BigEndian
        } else {
            magic.reverse();
            if magic != BYTE_ORDER_MAGIC {
                return Err(CaptureError {
                    offset,
                    problem: Problem::BadBlock(part),
                });
            }
            Order::LittleEndian
        };
        self.interfaces.clear();
        let length = u64::from(self.order.u32(buffer, 4));
        // Byte-order magic, version and section length are mandatory.
        if length < BLOCK_FRAME_LENGTH + 16 || length % 4 != 0 {
            let problem = Problem::BadLength { part, length };
            return Err(CaptureError { offset, problem });
        }
        source.skip(length - BLOCK_FRAME_LENGTH, part, offset)
    }

    pub(crate) fn advance<R: Read>(
        &mut self,
        source: &mut Source<R>,
        buffer: &mut Vec<u8>,
    ) -> Result<Option<Found>, CaptureError> {
        loop {
            let offset = source.offset();
            buffer.clear();
            match source.read(buffer, BLOCK_START_LENGTH)? {
                0 => return Ok(None),
                BLOCK_START_LENGTH => {}
                found => {
                    let wanted = BLOCK_FRAME_LENGTH;
                    let problem = Problem::Truncated {
                        part: Part::Block,
                        wanted,
                        found,
                    };
                    return Err(CaptureError { offset, problem });
                }
            }
            let block_type = self.order.u32(buffer, 0);
            let part = match block_type {
                SECTION_HEADER => {
                    self.begin_section(source, buffer, offset)?;
                    continue;
                }
                INTERFACE_DESCRIPTION => Part::InterfaceDescription,
                SIMPLE_PACKET | ENHANCED_PACKET => Part::PacketBlock,
                _ => Part::Block,
            };
            let length = u64::from(self.order.u32(buffer, 4));
            let error = |problem| CaptureError { offset, problem };
            if length < BLOCK_FRAME_LENGTH || length % 4 != 0 {
                return Err(error(Problem::BadLength { part, length }));
            }
            if part == Part::Block {
                source.skip(length - BLOCK_START_LENGTH, part, offset)?;
                continue;
            }
            if length > MAX_RECORD_LENGTH {
                return Err(error(Problem::TooLong { part, length }));
            }
            source.read_exact(buffer, length - BLOCK_START_LENGTH, part, offset)?;
            match block_type {
                INTERFACE_DESCRIPTION => self.describe(buffer).map_err(error)?,
                SIMPLE_PACKET => return self.simple_packet(buffer).map(Some).map_err(error),
                _ => return self.enhanced_packet(buffer).map(Some).map_err(error),
            }
        }
    }

    fn describe(&mut self, block: &[u8]) -> Result<(), Problem> {
        let parsed = match self.order {
            Order::LittleEndian => parse_interfacedescriptionblock_le(block),
            Order::BigEndian => parse_interfacedescriptionblock_be(block),
        };
        let (_, block) = parsed.map_err(|_| Problem::BadBlock(Part::InterfaceDescription))?;
        if self.interfaces.len() >= MAX_INTERFACES {
            return Err(Problem::TooManyInterfaces);
        }
        let option = |code| {
            block
                .options
                .iter()
                .find(|option: &&PcapNGOption<'_>| option.code == code)
        };
        let resolution = option(OptionCode::IfTsresol)
            .and_then(|option| option.value.first().copied())
            .map_or(Resolution::PowerOfTen(6), Resolution::from_wire);
        let offset_seconds = option(OptionCode::IfTsoffset)
            .and_then(|option| option.value.first_chunk().copied())
            .map_or(0, |bytes| match self.order {
                Order::LittleEndian => i64::from_le_bytes(bytes),
                Order::BigEndian => i64::from_be_bytes(bytes),
            });
        self.interfaces.push(Interface {
            link_type: LinkType::from_wire(block.linktype.0.cast_unsigned() as u16),
            snap_length: (block.snaplen != 0).then_some(block.snaplen),
            resolution,
            offset_seconds,
        });
        Ok(())
    }

    fn interface(&self, number: u32) -> Result<&Interface, Problem> {
        self.interfaces
            .get(number as usize)
            .ok_or(Problem::UnknownInterface(number))
    }

    fn enhanced_packet(&self, block: &[u8]) -> Result<Found, Problem> {
        let parsed = match self.order {
            Order::LittleEndian => parse_enhancedpacketblock_le(block),
            Order::BigEndian => parse_enhancedpacketblock_be(block),
        };
        let (_, block) = parsed.map_err(|_| Problem::BadBlock(Part::PacketBlock))?;
        let interface = self.interface(block.if_id)?;
        let units = u64::from(block.ts_high) << 32 | u64::from(block.ts_low);
        Ok(Found {
            time_ns: Some(interface.time_ns(units)),
            interface: block.if_id,
            link_type: interface.link_type,
            start: ENHANCED_PACKET_START,
            length: block.packet_data().len(),
            original_length: block.origlen,
        })
    }

    fn simple_packet(&self, block: &[u8]) -> Result<Found, Problem> {
        let parsed = match self.order {
            Order::LittleEndian => parse_simplepacketblock_le(block),
            Order::BigEndian => parse_simplepacketblock_be(block),
        };
        let (_, block) = parsed.map_err(|_| Problem::BadBlock(Part::PacketBlock))?;
        let interface = self.interface(0)?;
        let kept = block.origlen.min(interface.snap_length.unwrap_or(u32::MAX));
        Ok(Found {
            time_ns: None,
            interface: 0,
            link_type: interface.link_type,
            start: SIMPLE_PACKET_START,
            length: block.data.len().min(kept as usize),
            original_length: block.origlen,
        })
    }
}
