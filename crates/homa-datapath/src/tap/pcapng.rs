//! The pcapng format, as much as a capture of packets needs: one section, one
//! interface of raw IP with times in nanoseconds, and packets with direction
//! and comment.

use std::io::{self, Write};

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
/// Packets begin with the IPv4 or IPv6 header.
const LINKTYPE_RAW: u16 = 101;

const OPTION_END: u16 = 0;
const OPTION_COMMENT: u16 = 1;
const SHB_USER_APPLICATION: u16 = 4;
const IDB_NAME: u16 = 2;
const IDB_TIME_RESOLUTION: u16 = 9;
const EPB_FLAGS: u16 = 2;

/// Which way a packet went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Inbound,
    Outbound,
}

/// Writes a capture.
pub(super) struct Writer<W> {
    output: W,
    /// The block being made; reused.
    block: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Writes what comes before the packets.
    pub(super) fn new(output: W, interface: &str) -> io::Result<Self> {
        let mut writer = Self {
            output,
            block: Vec::with_capacity(70_000),
        };
        writer.begin(SECTION_HEADER);
        writer.word(BYTE_ORDER_MAGIC);
        writer.half(1);
        writer.half(0);
        // The section's length is not known.
        writer.word(u32::MAX);
        writer.word(u32::MAX);
        writer.option(SHB_USER_APPLICATION, b"homa");
        writer.end()?;
        writer.begin(INTERFACE_DESCRIPTION);
        writer.half(LINKTYPE_RAW);
        writer.half(0);
        // No limit on a packet's length.
        writer.word(0);
        writer.option(IDB_NAME, interface.as_bytes());
        // 10⁻⁹ s.
        writer.option(IDB_TIME_RESOLUTION, &[9]);
        writer.end()?;
        Ok(writer)
    }

    /// Writes a packet that lies in `parts`; `time_ns` since 1970.
    pub(super) fn packet(
        &mut self,
        time_ns: u64,
        direction: Direction,
        parts: &[&[u8]],
        comment: Option<&str>,
    ) -> io::Result<()> {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        self.begin(ENHANCED_PACKET);
        self.word(0);
        self.word((time_ns >> 32) as u32);
        self.word(time_ns as u32);
        self.word(length as u32);
        self.word(length as u32);
        for part in parts {
            self.block.extend_from_slice(part);
        }
        self.pad();
        if let Some(comment) = comment {
            self.option(OPTION_COMMENT, comment.as_bytes());
        }
        let flags: u32 = match direction {
            Direction::Inbound => 1,
            Direction::Outbound => 2,
        };
        self.option(EPB_FLAGS, &flags.to_le_bytes());
        self.end()
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.word(kind);
        // The length, when it is known.
        self.word(0);
    }

    /// Ends options and block, and writes the block out.
    fn end(&mut self) -> io::Result<()> {
        self.option(OPTION_END, &[]);
        let length = (self.block.len() + 4) as u32;
        self.block[4..8].copy_from_slice(&length.to_le_bytes());
        self.word(length);
        self.output.write_all(&self.block)
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.half(code);
        self.half(value.len() as u16);
        self.block.extend_from_slice(value);
        self.pad();
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn word(&mut self, value: u32) {
        self.block.extend_from_slice(&value.to_le_bytes());
    }

    fn half(&mut self, value: u16) {
        self.block.extend_from_slice(&value.to_le_bytes());
    }
}
