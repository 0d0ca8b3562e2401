//! Which UDP datagrams count as Homa. Homa has no UDP port of its own: the
//! UDP ports are the Homa ports (`docs/protocol.md` §1), so this is a rule
//! about ports, a guess from the bytes, or both.

use homa_wire::ip::{Captured, Udp};
use homa_wire::{Packet, PacketType, ParseError};

/// Which UDP datagrams count as Homa.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpRule {
    /// A datagram from or to one of these ports always counts.
    pub ports: Vec<u16>,
    /// Whether others count is told from their bytes.
    pub guess: UdpGuess,
}

impl Default for UdpRule {
    fn default() -> Self {
        Self {
            ports: Vec::new(),
            guess: UdpGuess::SamePorts,
        }
    }
}

/// How to tell from its bytes whether a datagram is Homa.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdpGuess {
    /// No datagram is.
    Nothing,
    /// One whose UDP ports are repeated where Homa has its ports, with a
    /// packet type that exists: next to never wrong, but blind behind NAT.
    SamePorts,
    /// One that parses as Homa with everything zero that has to be zero and
    /// with sensible lengths: finds Homa behind NAT, and now and then
    /// something else.
    AnyPlausible,
}

impl UdpRule {
    /// Whether a datagram counts as Homa.
    pub fn accepts(&self, udp: Udp, packet: Captured<'_>) -> bool {
        let named = |port| self.ports.contains(&port);
        if named(udp.source_port) || named(udp.destination_port) {
            return true;
        }
        match self.guess {
            UdpGuess::Nothing => false,
            UdpGuess::SamePorts => has_ports_of(udp, packet.bytes),
            UdpGuess::AnyPlausible => has_ports_of(udp, packet.bytes) || is_plausible(packet),
        }
    }
}

fn has_ports_of(udp: Udp, bytes: &[u8]) -> bool {
    let ports = [
        udp.source_port.to_be_bytes(),
        udp.destination_port.to_be_bytes(),
    ]
    .concat();
    bytes.starts_with(&ports) && has_known_type(bytes)
}

fn has_known_type(bytes: &[u8]) -> bool {
    bytes
        .get(11)
        .copied()
        .and_then(PacketType::from_wire)
        .is_some()
}

fn is_plausible(packet: Captured<'_>) -> bool {
    let zero = |range| {
        packet
            .bytes
            .get(range)
            .is_some_and(|b: &[u8]| b.iter().all(|b| *b == 0))
    };
    let ports_are_set = packet
        .bytes
        .get(..4)
        .is_some_and(|ports| ports[..2] != [0, 0] && ports[2..] != [0, 0]);
    if !ports_are_set || !zero(8..11) || !zero(14..16) {
        return false;
    }
    match Packet::parse(packet.bytes) {
        Ok((parsed, _)) => match parsed.body {
            homa_wire::Body::Data(data) => {
                let payload = packet.length.saturating_sub(parsed.header_length()) as u64;
                data.message_length != 0
                    && u64::from(data.offset()) + payload <= u64::from(data.message_length)
            }
            _ => zero(4..8),
        },
        Err(ParseError::ShortForType { .. }) => packet.is_cut(),
        Err(_) => false,
    }
}
