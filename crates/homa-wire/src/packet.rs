//! Parsing and emitting a whole packet: the one place where bytes become a
//! [`Packet`] and a [`Packet`] becomes bytes.

use core::fmt;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::body::{
    AbortCode, Ack, AckEntry, Body, Capabilities, Cutoffs, Data, Features, Grant, MAX_ACKS,
    PacketType, Resend,
};
use crate::{SenderId, layout};

/// The longest header any packet has: an ACK with the capability trailer.
pub const MAX_HEADER_LENGTH: usize = 28 + 52 + 16;

const TRAILER_MAGIC: [u8; 4] = *b"HOMx";
const NO_OFFSET: u32 = u32::MAX;
const ONE_WAY_FLAG: u8 = 1;

/// A Homa packet without its payload: the common header and what follows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Homa port of the sender.
    pub source_port: u16,
    /// Homa port of the receiver.
    pub destination_port: u16,
    /// The RPC as the sender knows it.
    pub sender_id: SenderId,
    /// The fields that only imitate TCP.
    pub tcp: TcpFields,
    /// What the packet says.
    pub body: Body,
}

/// Fields that make a packet look like TCP to NICs; receivers ignore them
/// (`docs/protocol.md` §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TcpFields {
    /// Header words in the high nibble.
    pub doff: u8,
    /// TCP flags.
    pub flags: u8,
    /// TCP checksum, or 0 where a datapath does not fill it in.
    pub checksum: u16,
    /// Urgent pointer.
    pub urgent: u16,
}

impl TcpFields {
    /// What this implementation sends with a packet of this type, before a
    /// datapath fills in the checksum.
    pub const fn of(packet_type: PacketType) -> Self {
        Self {
            doff: match packet_type {
                PacketType::Data => 0xe0,
                _ => 0x50,
            },
            flags: 0x06,
            checksum: 0,
            urgent: 0xb97d,
        }
    }
}

/// Why bytes are not a Homa packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// Fewer bytes than the common header has.
    Short {
        /// Bytes there were.
        length: usize,
    },
    /// The type's own header is cut off.
    ShortForType {
        /// The type that the common header names.
        packet_type: PacketType,
        /// Bytes there were.
        length: usize,
    },
    /// A type that this version does not know.
    UnknownType(u8),
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { length } => {
                write!(f, "{length} bytes are shorter than the common header (28)")
            }
            Self::ShortForType {
                packet_type,
                length,
            } => {
                write!(f, "{length} bytes are too short for {}", packet_type.name())
            }
            Self::UnknownType(value) => write!(f, "unknown packet type {value:#04x}"),
        }
    }
}

impl core::error::Error for ParseError {}

impl Packet {
    /// A packet with the TCP-like fields that this implementation sends.
    pub const fn new(
        source_port: u16,
        destination_port: u16,
        sender_id: SenderId,
        body: Body,
    ) -> Self {
        let tcp = TcpFields::of(body.packet_type());
        Self {
            source_port,
            destination_port,
            sender_id,
            tcp,
            body,
        }
    }

    /// Parses a packet; for DATA the second value is the payload, otherwise it
    /// is whatever trails the header and is of no meaning.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let length = bytes.len();
        let (common, rest) =
            layout::Common::ref_from_prefix(bytes).map_err(|_| ParseError::Short { length })?;
        let packet_type = PacketType::from_wire(common.packet_type)
            .ok_or(ParseError::UnknownType(common.packet_type))?;
        let short = ParseError::ShortForType {
            packet_type,
            length,
        };
        let (body, rest) = match packet_type {
            PacketType::Data => {
                let (view, rest) = split::<layout::Data>(rest, short)?;
                (Body::Data(data_from(view, common.sequence.get())), rest)
            }
            PacketType::Grant => {
                let (view, rest) = split::<layout::Grant>(rest, short)?;
                let grant = Grant {
                    offset: view.offset.get(),
                    priority: view.priority.min(7),
                };
                (Body::Grant(grant), rest)
            }
            PacketType::Resend => {
                let (view, rest) = split::<layout::Resend>(rest, short)?;
                let length = view.length.get();
                let resend = Resend {
                    offset: view.offset.get(),
                    length: (length != NO_OFFSET).then_some(length),
                    priority: view.priority.min(7),
                };
                (Body::Resend(resend), rest)
            }
            PacketType::RpcUnknown => (Body::RpcUnknown(trailer_from(rest)), rest),
            PacketType::Busy => (Body::Busy, rest),
            PacketType::Cutoffs => {
                let (view, rest) = split::<layout::Cutoffs>(rest, short)?;
                let cutoffs = Cutoffs {
                    cutoffs: view.cutoffs.map(zerocopy::network_endian::U32::get),
                    version: view.version.get(),
                };
                (Body::Cutoffs(cutoffs, trailer_from(rest)), rest)
            }
            PacketType::Freeze => (Body::Freeze, rest),
            PacketType::NeedAck => (Body::NeedAck, rest),
            PacketType::Ack => {
                let (view, rest) = split::<layout::Ack>(rest, short)?;
                (Body::Ack(ack_from(view), trailer_from(rest)), rest)
            }
            PacketType::Abort => {
                let (view, rest) = split::<layout::Abort>(rest, short)?;
                (Body::Abort(AbortCode::from_wire(view.code)), rest)
            }
        };
        let packet = Self {
            source_port: common.source_port.get(),
            destination_port: common.destination_port.get(),
            sender_id: SenderId(common.sender_id.get()),
            tcp: TcpFields {
                doff: common.doff,
                flags: common.flags,
                checksum: common.checksum.get(),
                urgent: common.urgent.get(),
            },
            body,
        };
        Ok((packet, rest))
    }

    /// Bytes that [`Packet::emit`] writes; the payload of DATA comes after.
    pub const fn header_length(&self) -> usize {
        let trailer = if self.body.capabilities().is_some() {
            size_of::<layout::Trailer>()
        } else {
            0
        };
        size_of::<layout::Common>()
            + trailer
            + match self.body {
                Body::Data(_) => size_of::<layout::Data>(),
                Body::Grant(_) => size_of::<layout::Grant>(),
                Body::Resend(_) => size_of::<layout::Resend>(),
                Body::Cutoffs(..) => size_of::<layout::Cutoffs>(),
                Body::Ack(..) => size_of::<layout::Ack>(),
                Body::Abort(_) => size_of::<layout::Abort>(),
                Body::RpcUnknown(_) | Body::Busy | Body::Freeze | Body::NeedAck => 0,
            }
    }

    /// Writes the header to the start of `buffer` and says how many bytes it
    /// has, or returns `None` where `buffer` is shorter than
    /// [`Packet::header_length`] (never more than [`MAX_HEADER_LENGTH`]).
    #[must_use]
    pub fn emit(&self, buffer: &mut [u8]) -> Option<usize> {
        let header = buffer.get_mut(..self.header_length())?;
        let sequence = match &self.body {
            Body::Data(data) => data.sequence,
            _ => 0,
        };
        let common = layout::Common {
            source_port: self.source_port.into(),
            destination_port: self.destination_port.into(),
            sequence: sequence.into(),
            zero: [0; 3],
            packet_type: self.body.packet_type() as u8,
            doff: self.tcp.doff,
            flags: self.tcp.flags,
            window: 0.into(),
            checksum: self.tcp.checksum.into(),
            urgent: self.tcp.urgent.into(),
            sender_id: self.sender_id.0.into(),
        };
        let rest = put(&common, header)?;
        let rest = match &self.body {
            Body::Data(data) => put(&data_view(data), rest)?,
            Body::Grant(grant) => put(
                &layout::Grant {
                    offset: grant.offset.into(),
                    priority: grant.priority,
                },
                rest,
            )?,
            Body::Resend(resend) => {
                let view = layout::Resend {
                    offset: resend.offset.into(),
                    length: resend.length.unwrap_or(NO_OFFSET).into(),
                    priority: resend.priority,
                };
                put(&view, rest)?
            }
            Body::Cutoffs(cutoffs, _) => {
                let view = layout::Cutoffs {
                    cutoffs: cutoffs.cutoffs.map(Into::into),
                    version: cutoffs.version.into(),
                };
                put(&view, rest)?
            }
            Body::Ack(ack, _) => put(&ack_view(ack), rest)?,
            Body::Abort(code) => put(
                &layout::Abort {
                    code: code.to_wire(),
                },
                rest,
            )?,
            Body::RpcUnknown(_) | Body::Busy | Body::Freeze | Body::NeedAck => rest,
        };
        if let Some(capabilities) = self.body.capabilities() {
            let view = layout::Trailer {
                magic: TRAILER_MAGIC,
                version: capabilities.version,
                features: capabilities.features.0,
                zero: 0.into(),
                instance: capabilities.instance.into(),
            };
            put(&view, rest)?;
        }
        Some(self.header_length())
    }
}

fn split<T>(bytes: &[u8], error: ParseError) -> Result<(&T, &[u8]), ParseError>
where
    T: FromBytes + KnownLayout + Immutable + Unaligned,
{
    T::ref_from_prefix(bytes).map_err(|_| error)
}

/// Writes a view to the start of `buffer` and returns what is left of it.
fn put<'a, T: IntoBytes + Immutable>(view: &T, buffer: &'a mut [u8]) -> Option<&'a mut [u8]> {
    let (head, rest) = buffer.split_at_mut_checked(size_of::<T>())?;
    view.write_to(head).ok()?;
    Some(rest)
}

fn data_from(view: &layout::Data, sequence: u32) -> Data {
    let ack = AckEntry {
        client_id: SenderId(view.ack_client_id.get()),
        server_port: view.ack_server_port.get(),
    };
    let offset = view.segment_offset.get();
    Data {
        message_length: view.message_length.get(),
        incoming: view.incoming.get(),
        ack: (ack.client_id.0 != 0).then_some(ack),
        cutoff_version: view.cutoff_version.get(),
        retransmit: view.retransmit != 0,
        response_limit_log2: view.response_limit_log2,
        one_way: view.message_flags & ONE_WAY_FLAG != 0,
        sequence,
        segment_offset: (offset != NO_OFFSET).then_some(offset),
    }
}

fn data_view(data: &Data) -> layout::Data {
    let (ack_client_id, ack_server_port) = data
        .ack
        .map_or((0, 0), |ack| (ack.client_id.0, ack.server_port));
    layout::Data {
        message_length: data.message_length.into(),
        incoming: data.incoming.into(),
        ack_client_id: ack_client_id.into(),
        ack_server_port: ack_server_port.into(),
        cutoff_version: data.cutoff_version.into(),
        retransmit: u8::from(data.retransmit),
        response_limit_log2: data.response_limit_log2,
        message_flags: if data.one_way { ONE_WAY_FLAG } else { 0 },
        zero: 0,
        segment_offset: data.segment_offset.unwrap_or(NO_OFFSET).into(),
    }
}

fn ack_from(view: &layout::Ack) -> Ack {
    let count = usize::from(view.count.get()).min(MAX_ACKS);
    Ack::new(view.entries.iter().take(count).map(|entry| AckEntry {
        client_id: SenderId(entry.client_id.get()),
        server_port: entry.server_port.get(),
    }))
}

fn ack_view(ack: &Ack) -> layout::Ack {
    let empty = layout::AckEntry {
        client_id: 0.into(),
        server_port: 0.into(),
    };
    let mut view = layout::Ack {
        count: (ack.len() as u16).into(),
        entries: [empty; MAX_ACKS],
    };
    for (slot, entry) in view.entries.iter_mut().zip(ack.entries()) {
        *slot = layout::AckEntry {
            client_id: entry.client_id.0.into(),
            server_port: entry.server_port.into(),
        };
    }
    view
}

fn trailer_from(bytes: &[u8]) -> Option<Capabilities> {
    let (view, _) = layout::Trailer::ref_from_prefix(bytes).ok()?;
    (view.magic == TRAILER_MAGIC && view.version != 0).then(|| Capabilities {
        version: view.version,
        features: Features(view.features),
        instance: view.instance.get(),
    })
}
