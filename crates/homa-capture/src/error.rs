//! What can be wrong with a capture file, and where.

use std::fmt;
use std::io;

use crate::{MAX_INTERFACES, MAX_RECORD_LENGTH};

/// Why a capture cannot be read (any further).
#[derive(Debug, thiserror::Error)]
#[error("at byte {offset}: {problem}")]
pub struct CaptureError {
    /// Where in the file the part that is wrong begins.
    pub offset: u64,
    /// What is wrong with it.
    #[source]
    pub problem: Problem,
}

/// What is wrong with a capture.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// There are no bytes at all.
    #[error("the file is empty")]
    Empty,
    /// The first bytes belong to no capture format.
    #[error("these bytes ({}) begin neither a pcap nor a pcapng file; \
         other formats can be converted with: editcap -F pcapng IN OUT", Hex(*.0))]
    NotACapture([u8; 4]),
    /// A compressed file.
    #[error(
        "the file is compressed; decompress it first, for instance with `{0} -dc FILE | homa decode -`"
    )]
    Compressed(&'static str),
    /// The file ends within something.
    #[error(
        "the file ends within a {part} ({found} of {wanted} bytes are there); \
         the capture was cut off or is still being written"
    )]
    Truncated {
        /// What is cut off.
        part: Part,
        /// Bytes it should have.
        wanted: u64,
        /// Bytes there are.
        found: u64,
    },
    /// A length beyond anything that captures contain.
    #[error(
        "a {part} claims {length} bytes, and no frame has more than {MAX_RECORD_LENGTH}; \
         the file is damaged from here on"
    )]
    TooLong {
        /// What claims it.
        part: Part,
        /// Its length.
        length: u64,
    },
    /// A length that cannot be right.
    #[error("a {part} claims {length} bytes, which cannot be; the file is damaged from here on")]
    BadLength {
        /// What claims it.
        part: Part,
        /// Its length.
        length: u64,
    },
    /// The inside of a pcapng block contradicts itself.
    #[error("a {0} contradicts itself; the file is damaged from here on")]
    BadBlock(Part),
    /// A packet of an interface that no block has described.
    #[error("a packet of interface {0}, which the file has not described")]
    UnknownInterface(u32),
    /// More interfaces than [`MAX_INTERFACES`].
    #[error("more than {MAX_INTERFACES} interfaces")]
    TooManyInterfaces,
    /// The operating system could not read the file.
    #[error("reading failed: {0}")]
    Read(#[source] io::Error),
}

/// A part of a capture file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The beginning of a pcap file.
    FileHeader,
    /// A pcap record.
    Record,
    /// A pcapng block of any kind.
    Block,
    /// The pcapng block that begins a section.
    SectionHeader,
    /// The pcapng block that describes an interface.
    InterfaceDescription,
    /// A pcapng block with a packet.
    PacketBlock,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FileHeader => "pcap file header",
            Self::Record => "record",
            Self::Block => "block",
            Self::SectionHeader => "section header block",
            Self::InterfaceDescription => "interface description block",
            Self::PacketBlock => "packet block",
        })
    }
}

struct Hex([u8; 4]);

impl fmt::Display for Hex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [first, rest @ ..] = self.0;
        write!(f, "{first:02x}")?;
        rest.iter().try_for_each(|byte| write!(f, " {byte:02x}"))
    }
}
