//! What a packet says after the common header: one type for each packet type
//! of `docs/protocol.md` §3 and §20, in host order.

use core::fmt;

use crate::SenderId;

/// Priority levels on the wire.
pub const PRIORITIES: usize = 8;

/// Acknowledgements an ACK packet carries besides that of its own sender id.
pub const MAX_ACKS: usize = 5;

/// The packet types known to this version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum PacketType {
    /// A range of a message.
    Data = 0x10,
    /// Permission to send up to an offset.
    Grant = 0x11,
    /// A request to send a range again.
    Resend = 0x12,
    /// The answer to a RESEND for an RPC that is not known.
    RpcUnknown = 0x13,
    /// Alive, but not sending now what was asked for.
    Busy = 0x14,
    /// The unscheduled priorities to use towards the sender of this packet.
    Cutoffs = 0x15,
    /// A debugging aid of the reference module; accepted and ignored.
    Freeze = 0x16,
    /// A server asks whether it may forget an RPC.
    NeedAck = 0x17,
    /// A client says which RPCs a server may forget.
    Ack = 0x18,
    /// Ends an RPC with an error (an extension of this project).
    Abort = 0x60,
}

impl PacketType {
    /// Every type, in wire order.
    pub const ALL: [Self; 10] = [
        Self::Data,
        Self::Grant,
        Self::Resend,
        Self::RpcUnknown,
        Self::Busy,
        Self::Cutoffs,
        Self::Freeze,
        Self::NeedAck,
        Self::Ack,
        Self::Abort,
    ];

    /// The type with this number on the wire, if there is one.
    pub const fn from_wire(value: u8) -> Option<Self> {
        Some(match value {
            0x10 => Self::Data,
            0x11 => Self::Grant,
            0x12 => Self::Resend,
            0x13 => Self::RpcUnknown,
            0x14 => Self::Busy,
            0x15 => Self::Cutoffs,
            0x16 => Self::Freeze,
            0x17 => Self::NeedAck,
            0x18 => Self::Ack,
            0x60 => Self::Abort,
            _ => return None,
        })
    }

    /// The name as documents and captures write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Data => "DATA",
            Self::Grant => "GRANT",
            Self::Resend => "RESEND",
            Self::RpcUnknown => "RPC_UNKNOWN",
            Self::Busy => "BUSY",
            Self::Cutoffs => "CUTOFFS",
            Self::Freeze => "FREEZE",
            Self::NeedAck => "NEED_ACK",
            Self::Ack => "ACK",
            Self::Abort => "ABORT",
        }
    }
}

/// What a packet says, by type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// A range of a message; the payload follows the header.
    Data(Data),
    /// Permission to send.
    Grant(Grant),
    /// A request for a range.
    Resend(Resend),
    /// The RPC of the RESEND is not known here.
    RpcUnknown(Option<Capabilities>),
    /// Alive, but not sending that range now.
    Busy,
    /// New unscheduled priorities.
    Cutoffs(Cutoffs, Option<Capabilities>),
    /// Ignored.
    Freeze,
    /// May the RPC be forgotten?
    NeedAck,
    /// RPCs that may be forgotten.
    Ack(Ack, Option<Capabilities>),
    /// The RPC has ended with an error.
    Abort(AbortCode),
}

impl Body {
    /// The packet's type.
    pub const fn packet_type(&self) -> PacketType {
        match self {
            Self::Data(_) => PacketType::Data,
            Self::Grant(_) => PacketType::Grant,
            Self::Resend(_) => PacketType::Resend,
            Self::RpcUnknown(_) => PacketType::RpcUnknown,
            Self::Busy => PacketType::Busy,
            Self::Cutoffs(..) => PacketType::Cutoffs,
            Self::Freeze => PacketType::Freeze,
            Self::NeedAck => PacketType::NeedAck,
            Self::Ack(..) => PacketType::Ack,
            Self::Abort(_) => PacketType::Abort,
        }
    }

    /// Whether this type may carry the capability trailer.
    pub const fn may_have_capabilities(&self) -> bool {
        matches!(
            self,
            Self::RpcUnknown(_) | Self::Cutoffs(..) | Self::Ack(..)
        )
    }

    /// The capability trailer, where this type may carry one.
    pub const fn capabilities(&self) -> Option<Capabilities> {
        match self {
            Self::RpcUnknown(c) | Self::Cutoffs(_, c) | Self::Ack(_, c) => *c,
            _ => None,
        }
    }
}

/// DATA: a range of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Data {
    /// Total bytes of the message, the same in all its packets.
    pub message_length: u32,
    /// Bytes the sender will send without further grants; in a retransmission
    /// the end of the requested range.
    pub incoming: u32,
    /// An RPC of which the sender was the client, now complete.
    pub ack: Option<AckEntry>,
    /// Version of the receiver's CUTOFFS that the sender used; 0 means none.
    pub cutoff_version: u16,
    /// Whether the bytes were sent before.
    pub retransmit: bool,
    /// Extension: base-two logarithm of the unscheduled limit that the client
    /// asks the server to keep in the response; 0 means no limit.
    pub response_limit_log2: u8,
    /// Extension: the message has no response.
    pub one_way: bool,
    /// The `sequence` field of the common header: offset of the first payload
    /// byte, except in segments that a NIC cut.
    pub sequence: u32,
    /// The offset as the segment header has it; `None` (0xffffffff on the
    /// wire) says to take `sequence`.
    pub segment_offset: Option<u32>,
}

impl Data {
    /// Offset in the message of the first payload byte.
    pub const fn offset(&self) -> u32 {
        match self.segment_offset {
            Some(offset) => offset,
            None => self.sequence,
        }
    }

    /// Sets the offset in both places that carry it: receivers differ in which
    /// they read (`docs/protocol.md` §3).
    #[must_use]
    pub const fn at(mut self, offset: u32) -> Self {
        self.sequence = offset;
        self.segment_offset = Some(offset);
        self
    }
}

/// GRANT: permission to send a message up to an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Absolute offset; senders round up to a whole packet.
    pub offset: u32,
    /// Priority of the granted packets, 0..=7.
    pub priority: u8,
}

/// RESEND: asks for a range again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resend {
    /// First byte asked for.
    pub offset: u32,
    /// Bytes asked for; `None` (0xffffffff on the wire) means up to the first
    /// byte not yet sent.
    pub length: Option<u32>,
    /// Priority of the retransmitted packets, 0..=7.
    pub priority: u8,
}

/// CUTOFFS: which unscheduled priority a message gets, by its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cutoffs {
    /// A message of length L uses the largest index i with `cutoffs[i] >= L`.
    /// Entry 0 counts as unlimited; the list need not be monotone.
    pub cutoffs: [u32; PRIORITIES],
    /// Version of the list; 0 is never used.
    pub version: u16,
}

impl Cutoffs {
    /// The unscheduled priority of a message of `length` bytes.
    pub fn priority(&self, length: u32) -> u8 {
        let mut level = PRIORITIES as u8 - 1;
        for cutoff in self.cutoffs.iter().rev() {
            if *cutoff >= length || level == 0 {
                break;
            }
            level -= 1;
        }
        level
    }
}

/// One acknowledged RPC: the client's id and the port of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckEntry {
    /// The id as the client knows it; never 0.
    pub client_id: SenderId,
    /// The server port of the RPC.
    pub server_port: u16,
}

/// ACK: RPCs that the server may forget, besides that of the sender id.
///
/// Ids and ports are kept apart: every packet of the core is as large as the
/// largest body, and this is it.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Ack {
    ids: [u64; MAX_ACKS],
    ports: [u16; MAX_ACKS],
    len: u8,
}

impl Ack {
    /// An ACK with the given entries; those beyond [`MAX_ACKS`] are left out.
    pub fn new(entries: impl IntoIterator<Item = AckEntry>) -> Self {
        let mut ack = Self::default();
        let places = ack.ids.iter_mut().zip(&mut ack.ports);
        for ((id, port), entry) in places.zip(entries) {
            *id = entry.client_id.0;
            *port = entry.server_port;
            ack.len += 1;
        }
        ack
    }

    /// The entries, in wire order.
    pub fn entries(&self) -> impl Iterator<Item = AckEntry> + '_ {
        self.ids
            .iter()
            .zip(&self.ports)
            .take(self.len())
            .map(|(&id, &server_port)| AckEntry {
                client_id: SenderId(id),
                server_port,
            })
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Whether only the sender id is acknowledged.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl fmt::Debug for Ack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.entries()).finish()
    }
}

/// Why an RPC was ended by ABORT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AbortCode {
    /// The server refused the request.
    Refused,
    /// The server dropped the request without an answer.
    Dropped,
    /// The client no longer wants the response.
    Cancelled,
    /// The message is longer than the receiver accepts.
    TooLarge,
    /// No server on that port.
    PortClosed,
    /// The endpoint is shutting down.
    ShuttingDown,
    /// The request is so late that its execution cannot be ruled out.
    Stale,
    /// A code of a later version.
    Other(u8),
}

impl AbortCode {
    /// The code with this number on the wire.
    pub const fn from_wire(code: u8) -> Self {
        match code {
            1 => Self::Refused,
            2 => Self::Dropped,
            3 => Self::Cancelled,
            4 => Self::TooLarge,
            5 => Self::PortClosed,
            6 => Self::ShuttingDown,
            7 => Self::Stale,
            other => Self::Other(other),
        }
    }

    /// The number on the wire.
    pub const fn to_wire(self) -> u8 {
        match self {
            Self::Refused => 1,
            Self::Dropped => 2,
            Self::Cancelled => 3,
            Self::TooLarge => 4,
            Self::PortClosed => 5,
            Self::ShuttingDown => 6,
            Self::Stale => 7,
            Self::Other(code) => code,
        }
    }
}

/// The capability trailer: who the sender is, and which extensions it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Version of the trailer.
    pub version: u8,
    /// What the sender understands.
    pub features: Features,
    /// Drawn at random when the endpoint started; never 0.
    pub instance: u64,
}

impl Capabilities {
    /// The trailer version of this implementation.
    pub const VERSION: u8 = 1;
}

/// A set of extensions (`docs/protocol.md` §20).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub struct Features(pub u8);

impl Features {
    /// No extension.
    pub const NONE: Self = Self(0);
    /// Honours the unscheduled limit that a request carries for its response.
    pub const RESPONSE_LIMIT: Self = Self(1);
    /// Fills the checksum of raw packets and verifies it.
    pub const CHECKSUM: Self = Self(2);
    /// Accepts messages above 1,000,000 bytes.
    pub const LARGE_MESSAGES: Self = Self(4);
    /// Accepts one-way messages.
    pub const ONE_WAY: Self = Self(8);
    /// Understands ABORT.
    pub const ABORT: Self = Self(16);

    /// Whether every feature of `other` is in this set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets together.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}
