//! The Internet checksum, and its two uses here: the TCP checksum that raw
//! Homa packets imitate (`docs/protocol.md` §2) and the checksums of IPv4 and
//! UDP headers ([`crate::ip`]).
//!
//! The reference module fills in a complete TCP checksum over header and
//! payload with a pseudo-header that names protocol 6, although the IP header
//! says 146; receivers ignore the field unless both ends have announced
//! [`Features::CHECKSUM`](crate::Features::CHECKSUM).
//!
//! A sum may be fed in slices of any length, odd ones included, so payload
//! that is scattered over buffers need not be copied together.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where the checksum is in a Homa packet: bytes 16 and 17.
pub const FIELD_OFFSET: usize = 16;

/// The protocol number in the pseudo-header of a Homa checksum: TCP's.
pub const PSEUDO_PROTOCOL: u8 = 6;

/// Both addresses of an IP packet, as the pseudo-header needs them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Addresses {
    /// Of an IPv4 packet.
    V4 {
        /// The sender's.
        source: Ipv4Addr,
        /// The receiver's.
        destination: Ipv4Addr,
    },
    /// Of an IPv6 packet.
    V6 {
        /// The sender's.
        source: Ipv6Addr,
        /// The receiver's.
        destination: Ipv6Addr,
    },
}

impl Addresses {
    /// The pair, or `None` where the two are not of one family.
    pub const fn new(source: IpAddr, destination: IpAddr) -> Option<Self> {
        match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => Some(Self::V4 {
                source,
                destination,
            }),
            (IpAddr::V6(source), IpAddr::V6(destination)) => Some(Self::V6 {
                source,
                destination,
            }),
            _ => None,
        }
    }

    /// The sender's address.
    pub const fn source(&self) -> IpAddr {
        match *self {
            Self::V4 { source, .. } => IpAddr::V4(source),
            Self::V6 { source, .. } => IpAddr::V6(source),
        }
    }

    /// The receiver's address.
    pub const fn destination(&self) -> IpAddr {
        match *self {
            Self::V4 { destination, .. } => IpAddr::V4(destination),
            Self::V6 { destination, .. } => IpAddr::V6(destination),
        }
    }
}

/// An Internet checksum (RFC 1071) in the making.
#[derive(Clone, Copy, Debug, Default)]
pub struct Checksum {
    sum: u64,
    /// Whether an odd number of bytes has been added so far.
    odd: bool,
}

impl Checksum {
    /// The sum of nothing.
    pub const fn new() -> Self {
        Self { sum: 0, odd: false }
    }

    /// The sum of a pseudo-header for `length` bytes of `protocol`.
    pub fn pseudo_header(addresses: &Addresses, protocol: u8, length: u32) -> Self {
        let mut checksum = match addresses {
            Addresses::V4 {
                source,
                destination,
            } => Self::new()
                .with(&source.octets())
                .with(&destination.octets()),
            Addresses::V6 {
                source,
                destination,
            } => Self::new()
                .with(&source.octets())
                .with(&destination.octets()),
        };
        // IPv4 has 16 bits for the length and IPv6 has 32; the sums agree, as
        // the upper half is zero for anything that fits an IPv4 packet.
        checksum.sum += u64::from(length >> 16) + u64::from(length & 0xffff) + u64::from(protocol);
        checksum
    }

    /// Adds the next bytes.
    #[must_use]
    pub fn with(mut self, bytes: &[u8]) -> Self {
        let part = sum_of(bytes);
        self.sum += u64::from(if self.odd { part.swap_bytes() } else { part });
        self.odd ^= bytes.len() % 2 == 1;
        self
    }

    /// The checksum: what makes the sum of everything 0xffff.
    pub fn finish(self) -> u16 {
        !fold(self.sum)
    }
}

/// The checksum of a Homa packet, header and payload in any number of slices,
/// whose checksum field is zero.
pub fn compute(addresses: &Addresses, packet: &[&[u8]]) -> u16 {
    let length: usize = packet.iter().map(|slice| slice.len()).sum();
    let start = Checksum::pseudo_header(addresses, PSEUDO_PROTOCOL, length as u32);
    packet
        .iter()
        .fold(start, |sum, slice| sum.with(slice))
        .finish()
}

/// Whether the checksum of a Homa packet, given complete in any number of
/// slices, is right.
pub fn is_valid(addresses: &Addresses, packet: &[&[u8]]) -> bool {
    compute(addresses, packet) == 0
}

/// Computes the checksum of an emitted Homa packet and writes it into its
/// header, or returns `None` where `header` ends before the field does.
#[must_use]
pub fn fill(addresses: &Addresses, header: &mut [u8], payload: &[&[u8]]) -> Option<u16> {
    header.get_mut(FIELD_OFFSET..FIELD_OFFSET + 2)?.fill(0);
    let payload_length: usize = payload.iter().map(|slice| slice.len()).sum();
    let length = header.len() + payload_length;
    let start = Checksum::pseudo_header(addresses, PSEUDO_PROTOCOL, length as u32).with(header);
    let checksum = payload
        .iter()
        .fold(start, |sum, slice| sum.with(slice))
        .finish();
    header
        .get_mut(FIELD_OFFSET..FIELD_OFFSET + 2)?
        .copy_from_slice(&checksum.to_be_bytes());
    Some(checksum)
}

/// The ones' complement sum of `bytes` as big-endian words, an odd last byte
/// padded with zero. Words of four bytes in native order are added, which
/// vectorizes; RFC 1071 says why byte order and word size may differ.
fn sum_of(bytes: &[u8]) -> u16 {
    let mut chunks = bytes.chunks_exact(4);
    let mut sum: u64 = 0;
    for chunk in &mut chunks {
        sum += u64::from(u32::from_ne_bytes([chunk[0], chunk[1], chunk[2], chunk[3]]));
    }
    let mut last = [0; 4];
    for (to, from) in last.iter_mut().zip(chunks.remainder()) {
        *to = *from;
    }
    sum += u64::from(u32::from_ne_bytes(last));
    u16::from_be(fold(sum))
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    sum as u16
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn checksum__example_of_rfc_1071() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Checksum::new().with(&bytes).finish(), !0xddf2);
    }

    #[test]
    fn checksum__any_split_gives_the_same() {
        let bytes: std::vec::Vec<u8> = (0..97u32).map(|i| (i * 37 + 11) as u8).collect();
        let whole = Checksum::new().with(&bytes).finish();
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let split = Checksum::new()
                    .with(&bytes[..first])
                    .with(&bytes[first..second])
                    .with(&bytes[second..])
                    .finish();
                assert_eq!(split, whole, "split at {first} and {second}");
            }
        }
    }

    #[test]
    fn addresses__of_two_families_are_no_pair() {
        let v4 = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let v6 = IpAddr::V6(Ipv6Addr::LOCALHOST);
        assert_eq!(Addresses::new(v4, v6), None);
        assert_eq!(Addresses::new(v6, v4), None);
        assert_eq!(Addresses::new(v6, v6).map(|pair| pair.source()), Some(v6));
    }

    #[test]
    fn fill__makes_the_packet_valid() {
        let addresses = Addresses::V4 {
            source: Ipv4Addr::new(10, 0, 0, 1),
            destination: Ipv4Addr::new(10, 0, 0, 2),
        };
        let mut header = [0x5a; 56];
        let payload: [&[u8]; 2] = [&[1, 2, 3], &[4, 5]];
        let checksum = fill(&addresses, &mut header, &payload);
        assert_eq!(checksum, Some(u16::from_be_bytes([header[16], header[17]])));
        assert!(is_valid(&addresses, &[&header, payload[0], payload[1]]));
        header[20] ^= 1;
        assert!(!is_valid(&addresses, &[&header, payload[0], payload[1]]));
        assert_eq!(fill(&addresses, &mut [0; 17], &[]), None);
    }
}
