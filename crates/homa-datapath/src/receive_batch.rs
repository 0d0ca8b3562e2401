//! Packets that have arrived: one arena of fixed places, read in place.
//!
//! A *message* is what one receive gives: one packet, or a super-packet that
//! the kernel put together (UDP GRO), which the iterator cuts into its
//! packets. Every message has a place of 64 KiB, since a super-packet can be
//! that long. The default of 16 places is 1 MiB of address space, but a place
//! costs memory only as far as it was ever written: 4 KiB each while packets
//! are small. 16 packets a call is enough to hide the system call (0.25 µs in
//! 16 × 5 µs), and with GRO it is up to 1024 packets.
//!
//! Invariant: `arena[start..start + length]` of each message lies inside the
//! arena. Allocates when made, never later.

use std::fmt;

use crate::Path;

/// Bytes of a message's place.
pub(crate) const PLACE_BYTES: usize = 65_536;

/// What is known about a packet besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    /// The path back: where it came from and which address it was sent to.
    pub path: Path,
    /// IPv4 TOS byte or IPv6 traffic class.
    pub tos: u8,
    /// Index of the interface it arrived on; 0 if unknown.
    pub interface: u32,
}

impl Meta {
    const UNUSED: Self = Self {
        path: Path::UNUSED,
        tos: 0,
        interface: 0,
    };
}

#[derive(Clone, Copy)]
pub(crate) struct Message {
    pub(crate) meta: Meta,
    pub(crate) start: usize,
    pub(crate) length: usize,
    /// Length of all its packets but the last, in bytes; at least 1.
    pub(crate) segment: usize,
}

impl Message {
    const UNUSED: Self = Self {
        meta: Meta::UNUSED,
        start: 0,
        length: 0,
        segment: 1,
    };
}

/// A reusable batch of received packets.
pub struct ReceiveBatch {
    arena: Box<[u8]>,
    messages: Box<[Message]>,
    count: usize,
    /// First place of the arena that no message is in, nor in any after it.
    next_place: usize,
    packets: usize,
    rest: Rest,
}

/// What a datapath knows of the packets that it did not put into a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rest {
    /// There may be some: call again.
    #[default]
    Unknown,
    /// There were none when the batch was filled: calling again at once is of
    /// no use, a descriptor will tell.
    Nothing,
}

/// The batch has no room for another message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchFull;

impl fmt::Display for BatchFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the receive batch is full")
    }
}

impl std::error::Error for BatchFull {}

impl Default for ReceiveBatch {
    /// Room for 16 messages.
    fn default() -> Self {
        Self::with_messages(16)
    }
}

impl ReceiveBatch {
    /// Room for `messages` messages (at least one) of 64 KiB.
    pub fn with_messages(messages: usize) -> Self {
        let messages = messages.max(1);
        Self {
            arena: vec![0; messages * PLACE_BYTES].into_boxed_slice(),
            messages: vec![Message::UNUSED; messages].into_boxed_slice(),
            count: 0,
            next_place: 0,
            packets: 0,
            rest: Rest::Unknown,
        }
    }

    /// What is left that is not in the batch.
    pub fn rest(&self) -> Rest {
        self.rest
    }

    /// Says what is left: for datapaths, when they have filled the batch.
    pub fn set_rest(&mut self, rest: Rest) {
        self.rest = rest;
    }

    /// Number of packets.
    pub fn len(&self) -> usize {
        self.packets
    }

    /// Whether nothing has arrived.
    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Most messages it can hold.
    pub fn message_capacity(&self) -> usize {
        self.messages.len()
    }

    /// Forgets all packets.
    pub fn clear(&mut self) {
        self.count = 0;
        self.next_place = 0;
        self.packets = 0;
        self.rest = Rest::Unknown;
    }

    /// The packets, in the order they arrived.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &Meta)> {
        self.messages[..self.count].iter().flat_map(|message| {
            self.arena[message.start..message.start + message.length]
                .chunks(message.segment)
                .map(|bytes| (bytes, &message.meta))
        })
    }

    /// Adds a copy of a packet: for datapaths that have it elsewhere.
    ///
    /// # Errors
    ///
    /// [`BatchFull`] when no place is left, or the packet is longer than a
    /// place (64 KiB).
    pub fn push(&mut self, meta: &Meta, bytes: &[u8]) -> Result<(), BatchFull> {
        self.push_parts(meta, [bytes, &[]])
    }

    /// [`ReceiveBatch::push`] of a packet that lies in two parts.
    pub(crate) fn push_parts(&mut self, meta: &Meta, parts: [&[u8]; 2]) -> Result<(), BatchFull> {
        let length = parts[0].len() + parts[1].len();
        if self.next_place == self.messages.len() || length > PLACE_BYTES {
            return Err(BatchFull);
        }
        let start = self.next_place * PLACE_BYTES;
        let middle = start + parts[0].len();
        self.arena[start..middle].copy_from_slice(parts[0]);
        self.arena[middle..start + length].copy_from_slice(parts[1]);
        self.commit(Message {
            meta: *meta,
            start,
            length,
            segment: length.max(1),
        });
        Ok(())
    }

    /// Whether another message fits.
    pub(crate) fn has_room(&self) -> bool {
        self.next_place < self.messages.len()
    }

    /// The places that are free, one after the other from the first, as one
    /// slice of a multiple of [`PLACE_BYTES`] bytes, and its start in the arena.
    pub(crate) fn free_places(&mut self) -> (usize, &mut [u8]) {
        let start = self.next_place * PLACE_BYTES;
        (start, &mut self.arena[start..])
    }

    /// Adds a message whose bytes are in a free place already; it need not be
    /// the first free one (when what was in between is dropped).
    pub(crate) fn commit(&mut self, message: Message) {
        debug_assert!(message.segment >= 1);
        debug_assert!(message.start + message.length <= self.arena.len());
        if let Some(place) = self.messages.get_mut(self.count) {
            *place = message;
            self.count += 1;
            self.next_place = message.start / PLACE_BYTES + 1;
            self.packets += message.length.div_ceil(message.segment);
        }
    }

    /// The bytes of a message not yet committed.
    pub(crate) fn bytes_at(&self, start: usize, length: usize) -> &[u8] {
        self.arena.get(start..start + length).unwrap_or_default()
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    fn meta(port: u16) -> Meta {
        Meta {
            path: Path::to(([127, 0, 0, 1], port).into()),
            tos: 0x40,
            interface: 1,
        }
    }

    #[test]
    fn iter__cuts_super_packets() {
        let mut batch = ReceiveBatch::with_messages(2);
        let (start, place) = batch.free_places();
        place[..250].fill(7);
        batch.commit(Message {
            meta: meta(9),
            start,
            length: 250,
            segment: 100,
        });
        batch.push(&meta(8), &[1, 2, 3]).unwrap();
        assert_eq!(batch.push(&meta(8), &[1]), Err(BatchFull));
        let seen: Vec<_> = batch
            .iter()
            .map(|(bytes, meta)| (bytes.len(), meta.path.remote.port()))
            .collect();
        assert_eq!(seen, [(100, 9), (100, 9), (50, 9), (3, 8)]);
        assert_eq!(batch.len(), 4);
        batch.clear();
        assert!(batch.is_empty() && batch.iter().next().is_none());
    }

    #[test]
    fn commit__skipped_place_is_not_overwritten() {
        let mut batch = ReceiveBatch::with_messages(3);
        let (start, place) = batch.free_places();
        place[PLACE_BYTES] = 5;
        batch.commit(Message {
            meta: meta(1),
            start: start + PLACE_BYTES,
            length: 1,
            segment: 1,
        });
        batch.push(&meta(2), &[6]).unwrap();
        assert_eq!(batch.push(&meta(3), &[7]), Err(BatchFull));
        let seen: Vec<_> = batch.iter().map(|(bytes, _)| bytes[0]).collect();
        assert_eq!(seen, [5, 6]);
    }
}
