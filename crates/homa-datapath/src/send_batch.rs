//! Packets on their way out: one arena, filled in place.
//!
//! Consecutive packets to the same [`Path`] with the same TOS and length (the
//! last may be shorter, and then ends it) lie next to each other and form a
//! *group*, which UDP sends as one super-packet. Other datapaths just see
//! packets. A group never mixes peers, priorities or sizes, since the kernel
//! sends all segments of a super-packet with one header.
//!
//! Invariants: groups are in the order of the pushes and do not overlap in the
//! arena; a group has at most [`MAX_GROUP_PACKETS`] packets and
//! [`MAX_PACKET_BYTES`] bytes; all its packets but the last have the segment's
//! length. Allocates when made, never later.

use std::ops::Range;

use crate::{MAX_GROUP_PACKETS, MAX_PACKET_BYTES, Path};

/// A reusable batch of packets to send.
pub struct SendBatch {
    arena: Box<[u8]>,
    groups: Box<[Group]>,
    /// Groups that hold packets.
    live: Range<usize>,
    /// End of the used part of the arena.
    used: usize,
    packets: usize,
    packet_limit: usize,
}

#[derive(Clone, Copy)]
pub(crate) struct Group {
    pub(crate) path: Path,
    pub(crate) tos: u8,
    start: usize,
    end: usize,
    /// Length of all packets but the last, in bytes.
    pub(crate) segment: usize,
}

impl Group {
    const UNUSED: Self = Self {
        path: Path::UNUSED,
        tos: 0,
        start: 0,
        end: 0,
        segment: 1,
    };

    pub(crate) fn packets(&self) -> usize {
        (self.end - self.start).div_ceil(self.segment)
    }

    pub(crate) fn bytes(&self) -> Range<usize> {
        self.start..self.end
    }

    fn takes(&self, path: &Path, tos: u8, length: usize) -> bool {
        let bytes = self.end - self.start;
        bytes.is_multiple_of(self.segment)
            && length <= self.segment
            && bytes + length <= MAX_PACKET_BYTES
            && bytes / self.segment < MAX_GROUP_PACKETS
            && self.tos == tos
            && self.path == *path
    }
}

/// One packet of a [`SendBatch`], as a datapath sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing<'a> {
    /// Where to, and where from.
    pub path: &'a Path,
    /// IPv4 TOS byte or IPv6 traffic class.
    pub tos: u8,
    /// The Homa packet.
    pub bytes: &'a [u8],
}

impl Default for SendBatch {
    /// Room for 256 packets and 260,000 bytes: four full super-packets.
    fn default() -> Self {
        Self::with_capacity(256, 4 * MAX_PACKET_BYTES)
    }
}

impl SendBatch {
    /// A batch of at most `packets` packets and `bytes` bytes; raised to 1
    /// packet and [`MAX_PACKET_BYTES`] bytes, so that an empty batch takes any
    /// packet. The memory costs nothing until used.
    pub fn with_capacity(packets: usize, bytes: usize) -> Self {
        let packet_limit = packets.max(1);
        Self {
            arena: vec![0; bytes.max(MAX_PACKET_BYTES)].into_boxed_slice(),
            groups: vec![Group::UNUSED; packet_limit].into_boxed_slice(),
            live: 0..0,
            used: 0,
            packets: 0,
            packet_limit,
        }
    }

    /// Adds a packet of `length` bytes and hands out its place, which the
    /// caller must fill wholly (it holds bytes of earlier packets). `None`: the
    /// batch is full; send, then push again.
    ///
    /// A length of 0 or above [`MAX_PACKET_BYTES`] is never taken: that is the
    /// caller's mistake, and asserted in debug builds.
    pub fn push(&mut self, path: &Path, tos: u8, length: usize) -> Option<&mut [u8]> {
        debug_assert!(
            (1..=MAX_PACKET_BYTES).contains(&length),
            "a packet of {length} bytes"
        );
        if !(1..=MAX_PACKET_BYTES).contains(&length) || self.packets == self.packet_limit {
            return None;
        }
        if self.arena.len() - self.used < length {
            self.compact();
            if self.arena.len() - self.used < length {
                return None;
            }
        }
        let start = self.used;
        let end = start + length;
        match self.groups[self.live.clone()].last_mut() {
            Some(group) if group.takes(path, tos, length) => group.end = end,
            _ => {
                if self.live.end == self.groups.len() {
                    self.compact();
                }
                return self.push_group(path, tos, length);
            }
        }
        self.used = end;
        self.packets += 1;
        Some(&mut self.arena[start..end])
    }

    fn push_group(&mut self, path: &Path, tos: u8, length: usize) -> Option<&mut [u8]> {
        let start = self.used;
        let end = start + length;
        *self.groups.get_mut(self.live.end)? = Group {
            path: *path,
            tos,
            start,
            end,
            segment: length,
        };
        self.live.end += 1;
        self.used = end;
        self.packets += 1;
        Some(&mut self.arena[start..end])
    }

    /// Moves what is left to the start of arena and table.
    fn compact(&mut self) {
        let Some(first) = self.groups[self.live.clone()].first() else {
            return;
        };
        let shift = first.start;
        self.arena.copy_within(shift..self.used, 0);
        self.groups.copy_within(self.live.clone(), 0);
        self.live = 0..self.live.len();
        for group in &mut self.groups[self.live.clone()] {
            group.start -= shift;
            group.end -= shift;
        }
        self.used -= shift;
    }

    /// Number of packets.
    pub fn len(&self) -> usize {
        self.packets
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Bytes of all packets.
    pub fn bytes(&self) -> usize {
        self.groups[self.live.clone()]
            .iter()
            .map(|group| group.end - group.start)
            .sum()
    }

    /// Whether a packet of `length` bytes fits whatever its path.
    pub fn has_room(&self, length: usize) -> bool {
        let first = self.groups[self.live.clone()].first();
        let held = first.map_or(0, |group| self.used - group.start);
        self.packets < self.packet_limit && self.arena.len() - held >= length
    }

    /// Forgets all packets.
    pub fn clear(&mut self) {
        self.live = 0..0;
        self.used = 0;
        self.packets = 0;
    }

    /// The packets in order.
    pub fn iter(&self) -> impl Iterator<Item = Outgoing<'_>> {
        self.groups[self.live.clone()].iter().flat_map(|group| {
            self.arena[group.bytes()]
                .chunks(group.segment)
                .map(|bytes| Outgoing {
                    path: &group.path,
                    tos: group.tos,
                    bytes,
                })
        })
    }

    /// The first packet.
    pub fn first(&self) -> Option<Outgoing<'_>> {
        self.iter().next()
    }

    /// Takes the first `packets` packets out; more than there are is all.
    pub fn consume(&mut self, packets: usize) {
        let mut left = packets;
        while left > 0 {
            let Some(group) = self.groups[self.live.clone()].first_mut() else {
                break;
            };
            let count = group.packets();
            if left < count {
                group.start += left * group.segment;
                self.packets -= left;
                return;
            }
            left -= count;
            self.packets -= count;
            self.live.start += 1;
        }
        if self.live.is_empty() {
            self.clear();
        }
    }

    /// The groups in order.
    pub(crate) fn groups(&self) -> &[Group] {
        &self.groups[self.live.clone()]
    }

    /// The bytes of a group of this batch.
    pub(crate) fn group_bytes(&self, group: &Group) -> &[u8] {
        &self.arena[group.bytes()]
    }

    /// The groups, and the arena that their [`Group::bytes`] index.
    pub(crate) fn groups_and_arena(&mut self) -> (&[Group], &mut [u8]) {
        (&self.groups[self.live.clone()], &mut self.arena)
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    fn path(port: u16) -> Path {
        Path::to(([127, 0, 0, 1], port).into())
    }

    fn shape(batch: &SendBatch) -> Vec<(usize, usize)> {
        batch
            .groups()
            .iter()
            .map(|group| (group.packets(), group.bytes().len()))
            .collect()
    }

    #[test]
    fn push__equal_packets_form_one_group() {
        let mut batch = SendBatch::default();
        for index in 0..44 {
            batch.push(&path(1), 0x20, 1472).unwrap().fill(index);
        }
        assert_eq!(shape(&batch), [(44, 44 * 1472)]);
        assert!(
            batch
                .iter()
                .zip(0..)
                .all(|(packet, index)| packet.bytes == [index; 1472])
        );
    }

    #[test]
    fn push__shorter_packet_closes_the_group() {
        let mut batch = SendBatch::default();
        for length in [100, 100, 60, 60, 100] {
            batch.push(&path(1), 0, length).unwrap();
        }
        assert_eq!(shape(&batch), [(3, 260), (1, 60), (1, 100)]);
        assert_eq!(batch.len(), 5);
        assert_eq!(batch.bytes(), 420);
    }

    #[test]
    fn push__groups_never_mix_paths_priorities_or_sources() {
        let mut batch = SendBatch::default();
        batch.push(&path(1), 0, 100).unwrap();
        batch.push(&path(2), 0, 100).unwrap();
        batch.push(&path(2), 0x20, 100).unwrap();
        let from = Path {
            local: Some([127, 0, 0, 2].into()),
            ..path(2)
        };
        batch.push(&from, 0x20, 100).unwrap();
        assert_eq!(shape(&batch), [(1, 100); 4]);
    }

    #[test]
    fn push__group_ends_at_64_packets_and_65000_bytes() {
        let mut batch = SendBatch::with_capacity(300, 300_000);
        for _ in 0..65 {
            batch.push(&path(1), 0, 28).unwrap();
        }
        assert_eq!(shape(&batch), [(64, 64 * 28), (1, 28)]);
        batch.clear();
        for _ in 0..45 {
            batch.push(&path(1), 0, 1472).unwrap();
        }
        assert_eq!(shape(&batch), [(44, 44 * 1472), (1, 1472)]);
    }

    #[test]
    fn push__full_is_none_and_room_comes_back() {
        let mut batch = SendBatch::with_capacity(3, 0);
        for port in 1..=3 {
            batch.push(&path(port), 0, 20_000).unwrap().fill(port as u8);
        }
        assert!(batch.push(&path(4), 0, 1).is_none());
        assert!(!batch.has_room(1));
        batch.consume(1);
        assert!(batch.has_room(25_000) && !batch.has_room(25_001));
        assert!(batch.push(&path(4), 0, 25_001).is_none());
        batch.push(&path(4), 0, 25_000).unwrap().fill(4);
        let seen: Vec<_> = batch
            .iter()
            .map(|packet| {
                (
                    packet.bytes.len(),
                    packet.bytes[0],
                    packet.path.remote.port(),
                )
            })
            .collect();
        assert_eq!(seen, [(20_000, 2, 2), (20_000, 3, 3), (25_000, 4, 4)]);
        assert!(
            batch
                .iter()
                .all(|packet| packet.bytes.iter().all(|byte| *byte == packet.bytes[0]))
        );
    }

    #[test]
    fn consume__inside_a_group_keeps_the_rest() {
        let mut batch = SendBatch::default();
        for (index, length) in [50, 50, 50, 20, 70].into_iter().enumerate() {
            batch.push(&path(1), 0, length).unwrap().fill(index as u8);
        }
        batch.consume(2);
        assert_eq!(shape(&batch), [(2, 70), (1, 70)]);
        assert_eq!(batch.len(), 3);
        assert_eq!(batch.first().unwrap().bytes, [2; 50]);
        batch.consume(9);
        assert!(batch.is_empty() && batch.first().is_none());
        assert_eq!(batch.bytes(), 0);
    }
}
