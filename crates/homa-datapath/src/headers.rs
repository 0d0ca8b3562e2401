//! The headers that the kernel put, or will put, before a Homa packet: made
//! again where somebody wants to see them (captures, ICMP).

use std::net::{IpAddr, SocketAddr};

use homa_wire::checksum::Addresses;
use homa_wire::ip::{Ipv4, Ipv6, PROTOCOL_UDP, Udp};

use crate::Kind;

/// The longest: IPv6 and UDP.
pub(crate) const MAX_BYTES: usize = 48;

/// Writes the IP header, and the UDP header unless `kind` is raw, of a packet
/// to the start of `buffer`, and returns their length. `None` if the addresses
/// are of two families, or something is too long.
pub(crate) fn write(
    buffer: &mut [u8],
    kind: Kind,
    source: &SocketAddr,
    destination: &SocketAddr,
    tos: u8,
    packet: &[u8],
) -> Option<usize> {
    let addresses = Addresses::new(source.ip(), destination.ip())?;
    let (protocol, udp_bytes) = match kind {
        Kind::Raw => (homa_wire::IP_PROTOCOL, 0),
        Kind::Udp | Kind::Mem => (PROTOCOL_UDP, 8),
    };
    let payload = u16::try_from(packet.len() + udp_bytes).ok()?;
    let ip_bytes = match (source.ip(), destination.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            Ipv4::new(from, to, tos, protocol, payload).emit(buffer)?
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            Ipv6::new(from, to, tos, protocol, payload).emit(buffer)?
        }
        _ => return None,
    };
    if udp_bytes > 0 {
        Udp::new(&addresses, source.port(), destination.port(), &[packet])?
            .emit(buffer.get_mut(ip_bytes..)?)?;
    }
    Some(ip_bytes + udp_bytes)
}
