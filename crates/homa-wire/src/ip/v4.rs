//! The IPv4 header. Options are skipped by `parse` and never emitted: Homa
//! sends none (`docs/protocol.md` §1).

use core::net::Ipv4Addr;

use zerocopy::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{Captured, Fragment, IPV4_HEADER_LENGTH, IpError};
use crate::checksum::Checksum;

const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET_MASK: u16 = 0x1fff;

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct View {
    version_and_words: u8,
    tos: u8,
    total_length: U16,
    identification: U16,
    flags_and_offset: U16,
    ttl: u8,
    protocol: u8,
    checksum: U16,
    source: [u8; 4],
    destination: [u8; 4],
}

const _: () = assert!(size_of::<View>() == IPV4_HEADER_LENGTH);

/// An IPv4 header without options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4 {
    /// The sender's address.
    pub source: Ipv4Addr,
    /// The receiver's address.
    pub destination: Ipv4Addr,
    /// DSCP and ECN; see [`crate::priority_to_tos`].
    pub tos: u8,
    /// Time to live, in hops.
    pub ttl: u8,
    /// Identification; the reference sends 0.
    pub identification: u16,
    /// Whether routers must not fragment the packet.
    pub dont_fragment: bool,
    /// The part that this packet carries, where it is a fragment.
    pub fragment: Option<Fragment>,
    /// Protocol number of what follows.
    pub protocol: u8,
    /// Bytes after the header (65,515 at most).
    pub payload_length: u16,
}

impl Ipv4 {
    /// A header as this implementation sends it: DF, TTL 64, id 0.
    pub const fn new(
        source: Ipv4Addr,
        destination: Ipv4Addr,
        tos: u8,
        protocol: u8,
        payload_length: u16,
    ) -> Self {
        Self {
            source,
            destination,
            tos,
            ttl: 64,
            identification: 0,
            dont_fragment: true,
            fragment: None,
            protocol,
            payload_length,
        }
    }

    /// Parses a header, and returns with it what follows the header and its
    /// options up to the packet's length.
    ///
    /// A total length of 0, which Linux shows for packets that the NIC will
    /// cut, is taken as "all bytes there are". The header's checksum is not
    /// looked at; see [`Ipv4::checksum_is_valid`].
    pub fn parse(bytes: &[u8]) -> Result<(Self, Captured<'_>), IpError> {
        let length = bytes.len();
        let (view, _) = View::ref_from_prefix(bytes).map_err(|_| IpError::Short { length })?;
        if view.version_and_words >> 4 != 4 {
            return Err(IpError::Version(view.version_and_words >> 4));
        }
        let header_length = usize::from(view.version_and_words & 0xf) * 4;
        if header_length < IPV4_HEADER_LENGTH {
            return Err(IpError::LengthField(header_length as u16));
        }
        let total_length = match view.total_length.get() {
            0 => length.max(header_length),
            total => usize::from(total),
        };
        if total_length < header_length {
            return Err(IpError::LengthField(view.total_length.get()));
        }
        let payload = Captured::new(bytes, total_length)
            .after(header_length)
            .ok_or(IpError::Short { length })?;
        let offset = (view.flags_and_offset.get() & OFFSET_MASK) << 3;
        let more = view.flags_and_offset.get() & MORE_FRAGMENTS != 0;
        let header = Self {
            source: view.source.into(),
            destination: view.destination.into(),
            tos: view.tos,
            ttl: view.ttl,
            identification: view.identification.get(),
            dont_fragment: view.flags_and_offset.get() & DONT_FRAGMENT != 0,
            fragment: (offset != 0 || more).then_some(Fragment { offset, more }),
            protocol: view.protocol,
            payload_length: u16::try_from(payload.length).unwrap_or(u16::MAX),
        };
        Ok((header, payload))
    }

    /// Writes the header with its checksum to the start of `buffer` and says
    /// how many bytes it has, or returns `None` where `buffer` is shorter
    /// than [`IPV4_HEADER_LENGTH`] or the payload too long for an IPv4 packet.
    #[must_use]
    pub fn emit(&self, buffer: &mut [u8]) -> Option<usize> {
        let header = buffer.get_mut(..IPV4_HEADER_LENGTH)?;
        let total_length = self.payload_length.checked_add(IPV4_HEADER_LENGTH as u16)?;
        let mut flags_and_offset = if self.dont_fragment { DONT_FRAGMENT } else { 0 };
        if let Some(fragment) = self.fragment {
            flags_and_offset |= fragment.offset >> 3;
            flags_and_offset |= if fragment.more { MORE_FRAGMENTS } else { 0 };
        }
        let mut view = View {
            version_and_words: 0x45,
            tos: self.tos,
            total_length: total_length.into(),
            identification: self.identification.into(),
            flags_and_offset: flags_and_offset.into(),
            ttl: self.ttl,
            protocol: self.protocol,
            checksum: 0.into(),
            source: self.source.octets(),
            destination: self.destination.octets(),
        };
        view.checksum = Checksum::new().with(view.as_bytes()).finish().into();
        view.write_to(header).ok()?;
        Some(IPV4_HEADER_LENGTH)
    }

    /// Whether the checksum of the header at the start of `bytes`, options
    /// included, is right; `false` also where the header is not all there.
    pub fn checksum_is_valid(bytes: &[u8]) -> bool {
        let header_length = bytes
            .first()
            .map_or(0, |first| usize::from(first & 0xf) * 4);
        header_length >= IPV4_HEADER_LENGTH
            && bytes
                .get(..header_length)
                .is_some_and(|header| Checksum::new().with(header).finish() == 0)
    }
}
