//! Whether raw packets are as they were sent (`docs/protocol.md` §2, §20).
//!
//! Over UDP the kernel has looked. Over raw IP nobody has: a peer that says so
//! in its capabilities fills the checksum in, and then a wrong one is a packet
//! damaged on its way. Of a peer that has not said anything yet, which may not
//! know of checksums at all, a packet passes also without one (0, or the sum
//! over the addresses that a network card was to complete). A peer that has
//! said to have no features is not looked at: the module's receivers do not
//! either, so its senders need not be right.

use homa_core::PeerHandle;
use homa_datapath::Path;
use homa_wire::Features;
use homa_wire::checksum::{self, Addresses, Checksum, FIELD_OFFSET, PSEUDO_PROTOCOL};

use crate::state::State;

/// What a packet's checksum says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Integrity {
    /// It was not changed, as far as can be told.
    Good,
    /// It was.
    Bad,
}

/// What is known of the sender's checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Promise {
    Filled,
    None,
    Unknown,
}

impl State {
    /// Looks at a raw packet of a peer, or of somebody who is none yet.
    pub(crate) fn integrity(
        &self,
        peer: Option<PeerHandle>,
        bytes: &[u8],
        path: &Path,
    ) -> Integrity {
        // What it said it may have said to another of our addresses.
        let asked = self.peers.server(self.peers.key(path.remote));
        let features = [peer, asked]
            .into_iter()
            .flatten()
            .find_map(|peer| self.core.peer_features(peer));
        let promise = match features {
            Some(features) if features.contains(Features::CHECKSUM) => Promise::Filled,
            Some(_) => Promise::None,
            None => Promise::Unknown,
        };
        judge(promise, bytes, path)
    }
}

fn judge(promise: Promise, bytes: &[u8], path: &Path) -> Integrity {
    let addresses = path
        .local
        .and_then(|local| Addresses::new(path.remote.ip(), local));
    let (Some(addresses), true) = (addresses, promise != Promise::None) else {
        return Integrity::Good;
    };
    if checksum::is_valid(&addresses, &[bytes]) {
        return Integrity::Good;
    }
    let field = bytes
        .get(FIELD_OFFSET..)
        .and_then(|rest| rest.first_chunk())
        .map_or(0, |field| u16::from_be_bytes(*field));
    // What a sender leaves to its card is not inverted yet.
    let unfinished =
        !Checksum::pseudo_header(&addresses, PSEUDO_PROTOCOL, bytes.len() as u32).finish();
    if promise == Promise::Unknown && (field == 0 || field == unfinished) {
        return Integrity::Good;
    }
    Integrity::Bad
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    fn path() -> Path {
        Path {
            remote: "10.0.0.1:0".parse().unwrap(),
            local: Some("10.0.0.2".parse().unwrap()),
        }
    }

    fn packet() -> Vec<u8> {
        let mut packet: Vec<u8> = (0..200).collect();
        let path = path();
        let addresses = Addresses::new(path.remote.ip(), path.local.unwrap()).unwrap();
        checksum::fill(&addresses, &mut packet, &[]).unwrap();
        packet
    }

    #[test]
    fn judge__every_flipped_bit_is_seen() {
        for promise in [Promise::Filled, Promise::Unknown] {
            assert_eq!(judge(promise, &packet(), &path()), Integrity::Good);
            for bit in 0..200 * 8 {
                let mut packet = packet();
                packet[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(judge(promise, &packet, &path()), Integrity::Bad, "{bit}");
            }
        }
        let mut packet = packet();
        packet[100] ^= 1;
        assert_eq!(judge(Promise::None, &packet, &path()), Integrity::Good);
    }

    #[test]
    fn judge__no_checksum_is_believed_until_the_peer_promises_one() {
        let path = path();
        let addresses = Addresses::new(path.remote.ip(), path.local.unwrap()).unwrap();
        let unfinished = !Checksum::pseudo_header(&addresses, PSEUDO_PROTOCOL, 200).finish();
        for field in [0, unfinished] {
            let mut packet = packet();
            packet[FIELD_OFFSET..][..2].copy_from_slice(&field.to_be_bytes());
            assert_eq!(judge(Promise::Unknown, &packet, &path), Integrity::Good);
            assert_eq!(judge(Promise::Filled, &packet, &path), Integrity::Bad);
        }
    }
}
