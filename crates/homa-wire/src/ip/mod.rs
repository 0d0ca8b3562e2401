//! IP and UDP headers, and where in an IP packet the Homa packet is
//! (`docs/protocol.md` §1).
//!
//! As for Homa packets there is a repr for each header ([`Ipv4`], [`Ipv6`],
//! [`Udp`]) with `parse` and `emit`. [`locate`] puts them together for whoever
//! meets whole IP packets: captures, raw IPv4 sockets, XDP.
//!
//! Invariants: nothing here panics on any bytes; nothing reads beyond the
//! length that the IP header gives, so Ethernet padding is never taken for
//! payload; what a capture has cut off stays countable ([`Captured`]).
//!
//! What is *not* here: reassembly of fragments (Homa never sends any), the
//! final destination of IPv6 routing headers, and ICMP.

mod locate;
mod udp;
mod v4;
mod v6;

#[cfg(test)]
mod tests;

use core::fmt;
use core::net::IpAddr;

pub use crate::checksum::Addresses;
pub use locate::{Encapsulation, HomaBytes, Located, MAX_EXTENSION_HEADERS, locate};
pub use udp::{Udp, UdpChecksum};
pub use v4::Ipv4;
pub use v6::Ipv6;

/// IP protocol number of TCP.
pub const PROTOCOL_TCP: u8 = 6;

/// IP protocol number of UDP.
pub const PROTOCOL_UDP: u8 = 17;

/// Bytes of a UDP header.
pub const UDP_HEADER_LENGTH: usize = 8;

/// Bytes of an IPv4 header without options.
pub const IPV4_HEADER_LENGTH: usize = 20;

/// Bytes of an IPv6 header without extension headers.
pub const IPV6_HEADER_LENGTH: usize = 40;

/// Bytes as far as they are there, and how many there were on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured<'a> {
    /// What is there; never longer than `length`.
    pub bytes: &'a [u8],
    /// Bytes on the wire.
    pub length: usize,
}

impl<'a> Captured<'a> {
    /// `length` bytes on the wire, of which `bytes` has the beginning and
    /// perhaps something after the end, which is left out.
    pub fn new(bytes: &'a [u8], length: usize) -> Self {
        Self {
            bytes: bytes.get(..length).unwrap_or(bytes),
            length,
        }
    }

    /// Whether bytes are missing at the end.
    pub const fn is_cut(&self) -> bool {
        self.bytes.len() < self.length
    }

    /// What follows the first `count` bytes, or `None` where those are not
    /// all there.
    fn after(self, count: usize) -> Option<Self> {
        let bytes = self.bytes.get(count..)?;
        Some(Self {
            bytes,
            length: self.length - count,
        })
    }
}

/// The part of an IP packet that a fragment carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Where in the payload the fragment starts, in bytes; a multiple of 8.
    pub offset: u16,
    /// Whether further fragments follow.
    pub more: bool,
}

/// An IP header of either version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpHeader {
    /// Version 4.
    V4(Ipv4),
    /// Version 6.
    V6(Ipv6),
}

impl IpHeader {
    /// Parses the header that the version in the first byte says, and returns
    /// with it what follows (in IPv6 the extension headers come first).
    pub fn parse(bytes: &[u8]) -> Result<(Self, Captured<'_>), IpError> {
        match bytes.first().map(|first| first >> 4) {
            Some(4) => Ipv4::parse(bytes).map(|(header, rest)| (Self::V4(header), rest)),
            Some(6) => Ipv6::parse(bytes).map(|(header, rest)| (Self::V6(header), rest)),
            Some(version) => Err(IpError::Version(version)),
            None => Err(IpError::Short { length: 0 }),
        }
    }

    /// Bytes that [`IpHeader::emit`] writes.
    pub const fn header_length(&self) -> usize {
        match self {
            Self::V4(_) => IPV4_HEADER_LENGTH,
            Self::V6(_) => IPV6_HEADER_LENGTH,
        }
    }

    /// Writes the header to the start of `buffer` and says how many bytes it
    /// has; `None` as for [`Ipv4::emit`] and [`Ipv6::emit`].
    #[must_use]
    pub fn emit(&self, buffer: &mut [u8]) -> Option<usize> {
        match self {
            Self::V4(header) => header.emit(buffer),
            Self::V6(header) => header.emit(buffer),
        }
    }

    /// Both addresses.
    pub const fn addresses(&self) -> Addresses {
        match *self {
            Self::V4(Ipv4 {
                source,
                destination,
                ..
            }) => Addresses::V4 {
                source,
                destination,
            },
            Self::V6(Ipv6 {
                source,
                destination,
                ..
            }) => Addresses::V6 {
                source,
                destination,
            },
        }
    }

    /// The sender's address.
    pub const fn source(&self) -> IpAddr {
        self.addresses().source()
    }

    /// The receiver's address.
    pub const fn destination(&self) -> IpAddr {
        self.addresses().destination()
    }

    /// 4 or 6.
    pub const fn version(&self) -> u8 {
        match self {
            Self::V4(_) => 4,
            Self::V6(_) => 6,
        }
    }

    /// The TOS byte or the traffic class: priority in the top three bits, ECN
    /// in the lowest two.
    pub const fn tos(&self) -> u8 {
        match self {
            Self::V4(header) => header.tos,
            Self::V6(header) => header.tos,
        }
    }

    /// The Homa priority that the TOS byte stands for, 0..=7.
    pub const fn priority(&self) -> u8 {
        crate::tos_to_priority(self.tos())
    }

    /// Time to live or hop limit.
    pub const fn ttl(&self) -> u8 {
        match self {
            Self::V4(header) => header.ttl,
            Self::V6(header) => header.hop_limit,
        }
    }
}

/// Why bytes are not an IP packet (or UDP datagram) that can be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpError {
    /// Fewer bytes than the header has.
    Short {
        /// Bytes there were.
        length: usize,
    },
    /// Neither version 4 nor 6.
    Version(u8),
    /// A length field that is smaller than the header it is in.
    LengthField(u16),
    /// An IPv6 extension header that is cut off or lies about its length.
    Extension {
        /// Its protocol number.
        protocol: u8,
    },
    /// More extension headers than [`MAX_EXTENSION_HEADERS`].
    TooManyExtensions,
}

impl fmt::Display for IpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { length } => write!(f, "{length} bytes are shorter than the header"),
            Self::Version(version) => write!(f, "IP version {version}"),
            Self::LengthField(length) => {
                write!(f, "a length field of {length} is shorter than its header")
            }
            Self::Extension { protocol } => {
                write!(f, "IPv6 extension header {protocol} is cut off")
            }
            Self::TooManyExtensions => {
                write!(
                    f,
                    "more than {MAX_EXTENSION_HEADERS} IPv6 extension headers"
                )
            }
        }
    }
}

impl core::error::Error for IpError {}
