//! Finding the Homa packet in an IP packet: raw, in UDP, or disguised as TCP.

use super::{Captured, Fragment, IpError, IpHeader, PROTOCOL_TCP, PROTOCOL_UDP, Udp};
use crate::{Body, IP_PROTOCOL, MAX_HEADER_LENGTH, Packet, ParseError, checksum};

/// IPv6 extension headers that are skipped in one packet. Real packets have
/// one or two; the limit keeps the work per packet small.
pub const MAX_EXTENSION_HEADERS: usize = 16;

/// By these a Homa packet in an IP packet of protocol 6 differs from TCP
/// (flags SYN and RST together, never seen in TCP; the module's urgent value).
const HIJACK_FLAGS: u8 = 0x06;
const HIJACK_URGENT: [u8; 2] = [0xb9, 0x7d];
const FLAGS_OFFSET: usize = 13;
const URGENT_OFFSET: usize = 18;

const ACK_ENTRIES_OFFSET: usize = 30;
const ACK_ENTRY_LENGTH: usize = 10;

/// How a Homa packet travels in its IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encapsulation {
    /// Directly, IP protocol 146.
    Raw,
    /// In UDP.
    Udp(Udp),
    /// Directly, but as IP protocol 6, so that NICs segment it (an option of
    /// the reference module).
    TcpHijacked,
}

/// The bytes of a Homa packet, and how they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HomaBytes<'a> {
    /// The IP header.
    pub ip: IpHeader,
    /// How the packet travels.
    pub encapsulation: Encapsulation,
    /// Whether the IP packet is the first of several fragments, so that the
    /// end of the Homa packet is in others.
    pub fragment: Option<Fragment>,
    /// The Homa packet, as far as it is there.
    pub packet: Captured<'a>,
}

impl<'a> HomaBytes<'a> {
    /// Parses the packet. A payload that the capture cut is short here;
    /// [`HomaBytes::payload_length`] knows what it was. An ACK of which the
    /// capture cut only unused entries is parsed as well.
    pub fn parse(&self) -> Result<(Packet, &'a [u8]), ParseError> {
        match Packet::parse(self.packet.bytes) {
            Err(error) if self.packet.is_cut() => self.parse_cut_ack().ok_or(error),
            result => result,
        }
    }

    fn parse_cut_ack(&self) -> Option<(Packet, &'a [u8])> {
        let mut padded = [0; MAX_HEADER_LENGTH];
        let padded = padded.get_mut(..self.packet.length.min(MAX_HEADER_LENGTH))?;
        padded
            .get_mut(..self.packet.bytes.len())?
            .copy_from_slice(self.packet.bytes);
        let (packet, _) = Packet::parse(padded).ok()?;
        let Body::Ack(ack, _) = packet.body else {
            return None;
        };
        let used = ACK_ENTRIES_OFFSET + ack.len() * ACK_ENTRY_LENGTH;
        (self.packet.bytes.len() >= used).then_some((packet, &[]))
    }

    /// Bytes that followed the header of `packet` on the wire.
    pub const fn payload_length(&self, packet: &Packet) -> usize {
        self.packet.length.saturating_sub(packet.header_length())
    }

    /// Whether the TCP-like checksum is right, where the packet is complete.
    pub fn checksum_is_valid(&self) -> Option<bool> {
        let whole = !self.packet.is_cut() && self.fragment.is_none();
        whole.then(|| checksum::is_valid(&self.ip.addresses(), &[self.packet.bytes]))
    }
}

/// What is in an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Located<'a> {
    /// A Homa packet (or what claims to be one).
    Homa(HomaBytes<'a>),
    /// A fragment that is not the first: what it carries cannot be told.
    Fragment {
        /// The IP header.
        ip: IpHeader,
        /// Protocol number of the whole.
        protocol: u8,
        /// Which part this is.
        fragment: Fragment,
    },
    /// Something else.
    Other {
        /// The IP header.
        ip: IpHeader,
        /// Its protocol number.
        protocol: u8,
        /// What follows the IP header and extension headers.
        payload: Captured<'a>,
    },
}

/// Finds the Homa packet in an IP packet.
///
/// `is_homa` decides whether a UDP datagram counts as Homa, from its header
/// and its payload as far as that is there. Never panics on any bytes.
pub fn locate<'a>(
    bytes: &'a [u8],
    is_homa: impl FnOnce(Udp, Captured<'a>) -> bool,
) -> Result<Located<'a>, IpError> {
    let (ip, payload) = IpHeader::parse(bytes)?;
    let upper = match ip {
        IpHeader::V4(header) => Upper {
            protocol: header.protocol,
            fragment: header.fragment,
            payload,
        },
        IpHeader::V6(header) => skip_extensions(header.protocol, payload)?,
    };
    let Upper {
        protocol,
        fragment,
        payload,
    } = upper;
    if let Some(fragment) = fragment.filter(|fragment| fragment.offset != 0) {
        return Ok(Located::Fragment {
            ip,
            protocol,
            fragment,
        });
    }
    let homa = |encapsulation, packet| {
        Located::Homa(HomaBytes {
            ip,
            encapsulation,
            fragment,
            packet,
        })
    };
    Ok(match protocol {
        IP_PROTOCOL => homa(Encapsulation::Raw, payload),
        PROTOCOL_TCP if is_hijacked(payload.bytes) => homa(Encapsulation::TcpHijacked, payload),
        PROTOCOL_UDP => match Udp::parse(payload) {
            Ok((udp, packet)) if is_homa(udp, packet) => homa(Encapsulation::Udp(udp), packet),
            _ => Located::Other {
                ip,
                protocol,
                payload,
            },
        },
        _ => Located::Other {
            ip,
            protocol,
            payload,
        },
    })
}

fn is_hijacked(bytes: &[u8]) -> bool {
    bytes.get(FLAGS_OFFSET) == Some(&HIJACK_FLAGS)
        && bytes.get(URGENT_OFFSET..URGENT_OFFSET + 2) == Some(&HIJACK_URGENT)
}

/// The upper-layer protocol of an IP packet, behind all extension headers.
struct Upper<'a> {
    protocol: u8,
    fragment: Option<Fragment>,
    payload: Captured<'a>,
}

fn skip_extensions(first: u8, mut payload: Captured<'_>) -> Result<Upper<'_>, IpError> {
    let mut protocol = first;
    let mut fragment = None;
    for _ in 0..MAX_EXTENSION_HEADERS {
        let error = IpError::Extension { protocol };
        let byte = |index: usize| payload.bytes.get(index).copied().ok_or(error);
        let length = match protocol {
            HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | MOBILITY | HOST_IDENTITY | SHIM6 => {
                (usize::from(byte(1)?) + 1) * 8
            }
            AUTHENTICATION => (usize::from(byte(1)?) + 2) * 4,
            FRAGMENT => {
                let word = u16::from_be_bytes([byte(2)?, byte(3)?]);
                let found = Fragment {
                    offset: word & 0xfff8,
                    more: word & 1 != 0,
                };
                // An "atomic" fragment (offset 0, nothing follows) is whole.
                fragment = (found.offset != 0 || found.more).then_some(found);
                8
            }
            _ => {
                return Ok(Upper {
                    protocol,
                    fragment,
                    payload,
                });
            }
        };
        let next = byte(0)?;
        payload = payload.after(length).ok_or(error)?;
        protocol = next;
        if fragment.is_some_and(|fragment| fragment.offset != 0) {
            // What follows is the middle of something: no headers to skip.
            return Ok(Upper {
                protocol,
                fragment,
                payload,
            });
        }
    }
    Err(IpError::TooManyExtensions)
}

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;
const MOBILITY: u8 = 135;
const HOST_IDENTITY: u8 = 139;
const SHIM6: u8 = 140;
