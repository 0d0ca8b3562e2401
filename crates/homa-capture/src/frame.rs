//! What a captured frame says about Homa.

use homa_wire::ip::{Fragment, HomaBytes, IpHeader, Located, locate};
use homa_wire::{IP_PROTOCOL, Packet, PacketType, ParseError, SenderId};

use crate::capture::Record;
use crate::icmp::{IcmpError, PROTOCOL_ICMP, PROTOCOL_ICMPV6};
use crate::udp_rule::UdpRule;

/// A frame that has to do with Homa.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The IP header; of an ICMP error its own, not the quoted one.
    pub ip: IpHeader,
    /// What is in the packet.
    pub content: Content<'a>,
}

/// What an IP packet that has to do with Homa contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// A Homa packet, or bytes that claim to be one.
    Homa(Homa<'a>),
    /// An ICMP error about a Homa packet.
    Icmp(IcmpError<'a>),
    /// A fragment of a Homa packet that does not have its beginning.
    Fragment(Fragment),
}

/// A Homa packet, or bytes that claim to be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Homa<'a> {
    /// The bytes, and how they came.
    pub bytes: HomaBytes<'a>,
    /// The packet, or why it cannot be parsed.
    pub packet: Result<Packet, Unparsed>,
}

/// Why bytes that claim to be Homa cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unparsed {
    /// The sender sent nonsense.
    #[error(transparent)]
    Malformed(ParseError),
    /// The capture (or the fragment, or the ICMP error that quotes the
    /// packet) has only the beginning of the header.
    #[error("the header is cut off after {captured} bytes")]
    Cut {
        /// Bytes there are.
        captured: usize,
    },
}

/// What can be told of a packet that cannot be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Glimpse {
    /// Source and destination port.
    pub ports: Option<(u16, u16)>,
    /// The number of the packet type.
    pub packet_type: Option<u8>,
    /// The RPC as the sender knows it.
    pub sender_id: Option<SenderId>,
}

impl<'a> Frame<'a> {
    /// Looks for Homa in a record; `None` where there is none.
    pub fn parse(record: &Record<'a>, udp: &UdpRule) -> Option<Self> {
        let bytes = record.link_type.ip_packet(record.bytes)?;
        match locate(bytes, |header, packet| udp.accepts(header, packet)).ok()? {
            Located::Homa(homa) => Some(Self {
                ip: homa.ip,
                content: Content::Homa(Homa::new(homa)),
            }),
            Located::Fragment {
                ip,
                protocol: IP_PROTOCOL,
                fragment,
            } => Some(Self {
                ip,
                content: Content::Fragment(fragment),
            }),
            Located::Other {
                ip,
                protocol: PROTOCOL_ICMP | PROTOCOL_ICMPV6,
                payload,
            } => {
                let content = Content::Icmp(IcmpError::parse(&ip, payload, udp)?);
                Some(Self { ip, content })
            }
            Located::Fragment { .. } | Located::Other { .. } => None,
        }
    }
}

impl<'a> Homa<'a> {
    pub(crate) fn new(bytes: HomaBytes<'a>) -> Self {
        let packet = match bytes.parse() {
            Ok((packet, _)) => Ok(packet),
            Err(ParseError::Short { .. } | ParseError::ShortForType { .. })
                if bytes.packet.is_cut() || bytes.fragment.is_some() =>
            {
                Err(Unparsed::Cut {
                    captured: bytes.packet.bytes.len(),
                })
            }
            Err(error) => Err(Unparsed::Malformed(error)),
        };
        Self { bytes, packet }
    }

    /// What follows the header of a packet that was parsed, as far as it was
    /// captured; of DATA it is the payload.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.parse().map_or(&[], |(_, rest)| rest)
    }

    /// Bytes that followed the header on the wire.
    pub fn rest_length(&self) -> usize {
        self.packet
            .map_or(0, |packet| self.bytes.payload_length(&packet))
    }

    /// What can be told without parsing.
    pub fn glimpse(&self) -> Glimpse {
        let bytes = self.bytes.packet.bytes;
        let u16_at = |at: usize| {
            bytes
                .get(at..)?
                .first_chunk()
                .copied()
                .map(u16::from_be_bytes)
        };
        Glimpse {
            ports: u16_at(0).zip(u16_at(2)),
            packet_type: bytes.get(11).copied(),
            sender_id: bytes
                .get(20..)
                .and_then(|bytes| bytes.first_chunk().copied())
                .map(|bytes| SenderId(u64::from_be_bytes(bytes))),
        }
    }
}

impl Glimpse {
    /// The packet type, if it is one that exists.
    pub fn known_type(&self) -> Option<PacketType> {
        self.packet_type.and_then(PacketType::from_wire)
    }
}
