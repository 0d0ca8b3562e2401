//! The Homa packet formats, and nothing else.
//!
//! Two types a format, as everywhere in this project's model codebases: a
//! *view* (`layout`, private: byte-exact, alignment one, big endian) and a
//! *repr* ([`Packet`], closed world, host order). [`Packet::parse`] checks
//! every length once and never panics on any bytes; after it nothing in the
//! other crates looks at a length again. [`Packet::emit`] is its inverse: the
//! bytes come from the repr alone, and every unused byte is zero.
//!
//! What it owns: the layouts of `docs/protocol.md` §2, §3 and §20, the id
//! types that make forgetting to flip the low bit a compile error
//! ([`SenderId`], [`RpcId`]), IP and UDP encapsulation ([`ip`]), and the
//! TCP-like checksum of raw packets ([`checksum`]).
//!
//! What is *not* here: the meaning of a packet. Whether an offset lies inside
//! its message or an acknowledgement names a live RPC is `homa-core`'s to
//! judge. No allocation, no clock, no sockets.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod body;
mod id;
mod layout;
mod packet;

pub mod checksum;
pub mod ip;

pub use body::{
    AbortCode, Ack, AckEntry, Body, Capabilities, Cutoffs, Data, Features, Grant, MAX_ACKS,
    PRIORITIES, PacketType, Resend,
};
pub use id::{RpcId, SenderId};
pub use packet::{MAX_HEADER_LENGTH, Packet, ParseError, TcpFields};

/// IP protocol number of Homa (IANA).
pub const IP_PROTOCOL: u8 = 146;

/// Bytes of header before the payload of a DATA packet.
pub const DATA_HEADER_LENGTH: usize = 56;

/// Priority levels map to the top three bits of the IPv4 TOS byte and of the
/// IPv6 traffic class byte (`docs/protocol.md` §1). Larger is more urgent.
pub const fn priority_to_tos(priority: u8) -> u8 {
    (if priority > 7 { 7 } else { priority }) << 5
}

/// The inverse of [`priority_to_tos`]; the low five bits are ignored.
pub const fn tos_to_priority(tos: u8) -> u8 {
    tos >> 5
}
