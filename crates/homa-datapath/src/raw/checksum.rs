//! The TCP-like checksum of raw packets: everything else in the crate leaves a
//! packet's bytes alone (`docs/protocol.md` §2).

use std::net::IpAddr;

use homa_wire::checksum::Addresses;

use crate::{Path, SendBatch};

/// Fills the checksum of all packets in. Packets that are too short to have
/// one, or whose source nobody knows (and which cannot be sent then), stay as
/// they are. Doing it twice is harmless.
pub(super) fn fill(batch: &mut SendBatch, source: impl Fn(&Path) -> Option<IpAddr>) {
    let (groups, arena) = batch.groups_and_arena();
    for group in groups {
        let addresses =
            source(&group.path).and_then(|source| Addresses::new(source, group.path.remote.ip()));
        let Some(addresses) = addresses else {
            continue;
        };
        for packet in arena[group.bytes()].chunks_mut(group.segment) {
            // None: too short.
            let _checksum = homa_wire::checksum::fill(&addresses, packet, &[]);
        }
    }
}
