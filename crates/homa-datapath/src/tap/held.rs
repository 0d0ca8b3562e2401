//! Packets that a tap holds back.

use std::time::Instant;

use crate::Meta;

/// A packet held back.
pub(super) struct Packet {
    pub(super) meta: Meta,
    pub(super) bytes: Vec<u8>,
    /// When it goes at the latest.
    due: Instant,
    /// Packets that must still overtake it; `None` if only time counts.
    overtakers: Option<u32>,
}

/// A bounded set of held packets, in the order they came. Scanned: it is small,
/// and a tap that holds packets is not there for speed. Buffers are reused.
pub(super) struct Held {
    packets: Vec<Packet>,
    free: Vec<Vec<u8>>,
    limit: usize,
}

impl Held {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            packets: Vec::new(),
            free: Vec::new(),
            limit,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.packets.len() >= self.limit
    }

    pub(super) fn hold(
        &mut self,
        meta: &Meta,
        bytes: &[u8],
        due: Instant,
        overtakers: Option<u32>,
    ) {
        let mut buffer = self.free.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(bytes);
        self.packets.push(Packet {
            meta: *meta,
            bytes: buffer,
            due,
            overtakers,
        });
    }

    /// A packet has passed all that are held.
    pub(super) fn overtake(&mut self) {
        for packet in &mut self.packets {
            packet.overtakers = packet.overtakers.map(|count| count.saturating_sub(1));
        }
    }

    /// When the next packet goes at the latest.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.packets.iter().map(|packet| packet.due).min()
    }

    /// The packet to let go first of those whose time has come: the one due
    /// first, and of several that were overtaken the one that came first.
    pub(super) fn ready(&self, now: Instant) -> Option<usize> {
        (0..self.packets.len())
            .filter(|index| {
                let packet = &self.packets[*index];
                packet.due <= now || packet.overtakers == Some(0)
            })
            .min_by_key(|index| self.packets[*index].due)
    }

    pub(super) fn get(&self, index: usize) -> &Packet {
        &self.packets[index]
    }

    pub(super) fn remove(&mut self, index: usize) {
        let packet = self.packets.remove(index);
        self.free.push(packet.bytes);
    }
}
