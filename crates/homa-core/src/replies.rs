//! Control packets that answer a packet and belong to no RPC of ours: a short
//! queue, bounded in total and for each peer, so that a peer that provokes
//! many only loses its own. Every one of them is asked for again if lost.

use alloc::collections::VecDeque;

use homa_wire::Packet;

use crate::config::Settings;
use crate::peer::Peer;
use crate::table::Slab;

pub(crate) struct Replies {
    queue: VecDeque<(u32, Packet)>,
    max: usize,
    max_per_peer: u32,
}

impl Replies {
    pub(crate) fn new(settings: &Settings) -> Self {
        let max = settings.max_replies as usize;
        Self {
            queue: VecDeque::with_capacity(max),
            max,
            max_per_peer: settings.max_peer_replies,
        }
    }

    /// Queues a packet, or says that it was lost.
    pub(crate) fn push(&mut self, peers: &mut Slab<Peer>, slot: u32, packet: Packet) -> Queued {
        let Some(peer) = peers.slot_mut(slot) else {
            return Queued::Lost;
        };
        if self.queue.len() >= self.max || peer.replies >= self.max_per_peer {
            return Queued::Lost;
        }
        peer.replies += 1;
        self.queue.push_back((slot, packet));
        Queued::Yes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(crate) fn pop(&mut self, peers: &mut Slab<Peer>) -> Option<(u32, Packet)> {
        let (slot, packet) = self.queue.pop_front()?;
        if let Some(peer) = peers.slot_mut(slot) {
            peer.replies = peer.replies.saturating_sub(1);
        }
        Some((slot, packet))
    }
}

/// Whether a reply found room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queued {
    Yes,
    Lost,
}
