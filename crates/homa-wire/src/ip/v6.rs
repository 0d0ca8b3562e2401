//! The fixed IPv6 header. Extension headers are [`super::locate`]'s to skip;
//! none is ever emitted: Homa sends none (`docs/protocol.md` §1).

use core::net::Ipv6Addr;

use zerocopy::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{Captured, IPV6_HEADER_LENGTH, IpError};

const FLOW_LABEL_MASK: u32 = 0xf_ffff;

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct View {
    version_tos_label: U32,
    payload_length: U16,
    protocol: u8,
    hop_limit: u8,
    source: [u8; 16],
    destination: [u8; 16],
}

const _: () = assert!(size_of::<View>() == IPV6_HEADER_LENGTH);

/// An IPv6 header without extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6 {
    /// The sender's address.
    pub source: Ipv6Addr,
    /// The receiver's address.
    pub destination: Ipv6Addr,
    /// Traffic class: DSCP and ECN; see [`crate::priority_to_tos`].
    pub tos: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Flow label, 20 bits; higher bits are not emitted.
    pub flow_label: u32,
    /// Protocol number of what follows, perhaps an extension header.
    pub protocol: u8,
    /// Bytes after the header.
    pub payload_length: u16,
}

impl Ipv6 {
    /// A header as this implementation sends it: hop limit 64. The flow label
    /// is 0 and the caller's to choose.
    pub const fn new(
        source: Ipv6Addr,
        destination: Ipv6Addr,
        tos: u8,
        protocol: u8,
        payload_length: u16,
    ) -> Self {
        Self {
            source,
            destination,
            tos,
            hop_limit: 64,
            flow_label: 0,
            protocol,
            payload_length,
        }
    }

    /// Parses a header, and returns with it what follows up to the packet's
    /// length. A payload length of 0 (jumbograms, and packets that the NIC
    /// will cut) is taken as "all bytes there are".
    pub fn parse(bytes: &[u8]) -> Result<(Self, Captured<'_>), IpError> {
        let length = bytes.len();
        let (view, rest) = View::ref_from_prefix(bytes).map_err(|_| IpError::Short { length })?;
        let first = view.version_tos_label.get();
        if first >> 28 != 6 {
            return Err(IpError::Version((first >> 28) as u8));
        }
        let payload_length = match view.payload_length.get() {
            0 => rest.len(),
            length => usize::from(length),
        };
        let header = Self {
            source: view.source.into(),
            destination: view.destination.into(),
            tos: (first >> 20) as u8,
            hop_limit: view.hop_limit,
            flow_label: first & FLOW_LABEL_MASK,
            protocol: view.protocol,
            payload_length: u16::try_from(payload_length).unwrap_or(u16::MAX),
        };
        Ok((header, Captured::new(rest, payload_length)))
    }

    /// Writes the header to the start of `buffer` and says how many bytes it
    /// has, or returns `None` where `buffer` is shorter than
    /// [`IPV6_HEADER_LENGTH`].
    #[must_use]
    pub fn emit(&self, buffer: &mut [u8]) -> Option<usize> {
        let header = buffer.get_mut(..IPV6_HEADER_LENGTH)?;
        let first = 6 << 28 | u32::from(self.tos) << 20 | self.flow_label & FLOW_LABEL_MASK;
        let view = View {
            version_tos_label: first.into(),
            payload_length: self.payload_length.into(),
            protocol: self.protocol,
            hop_limit: self.hop_limit,
            source: self.source.octets(),
            destination: self.destination.octets(),
        };
        view.write_to(header).ok()?;
        Some(IPV6_HEADER_LENGTH)
    }
}
