//! An output port of a switch: a link, and packets that wait for it in eight
//! queues of strict priority.

use crate::packet::{NIL, Packets};
use crate::time::SimTime;

/// Priority levels.
pub const LEVELS: usize = 8;

#[derive(Clone, Copy)]
struct Queue {
    head: u32,
    tail: u32,
}

/// An output port.
pub struct Port {
    /// Picoseconds a byte.
    pub(crate) byte_ps: u64,
    /// From the last bit on the link to the packet's arrival at the other end.
    pub(crate) delay_ps: u64,
    /// Node at the other end.
    pub(crate) to: u32,
    /// Switch that it belongs to.
    pub(crate) switch: u32,
    /// When the link is idle.
    pub(crate) free_at: SimTime,
    /// Whether an event will tell when it is.
    pub(crate) alarm: Alarm,
    queues: [Queue; LEVELS],
    occupied: u8,
    /// Bytes that wait.
    pub(crate) waiting_bytes: u64,
    /// Since when it has been so many.
    waiting_since: SimTime,
    /// Bytes times picoseconds that they waited, until then.
    waited_byte_ps: u128,
    /// What happened here.
    pub counters: PortCounters,
}

/// Whether an event is planned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alarm {
    Off,
    Set,
}

/// What happened at a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Packets sent.
    pub packets: u64,
    /// Bytes sent, as on the wire.
    pub wire_bytes: u64,
    /// Packets that found no room.
    pub dropped: u64,
    /// Packets marked.
    pub marked: u64,
    /// Most bytes that waited at a time.
    pub most_waiting_bytes: u64,
}

impl Port {
    /// An idle port towards node `to`.
    pub(crate) fn new(switch: u32, to: u32, byte_ps: u64, delay_ps: u64) -> Self {
        Self {
            byte_ps,
            delay_ps,
            to,
            switch,
            free_at: SimTime::ZERO,
            alarm: Alarm::Off,
            queues: [Queue {
                head: NIL,
                tail: NIL,
            }; LEVELS],
            occupied: 0,
            waiting_bytes: 0,
            waiting_since: SimTime::ZERO,
            waited_byte_ps: 0,
            counters: PortCounters::default(),
        }
    }

    /// Whether a packet that comes now can be sent at once.
    pub(crate) fn is_idle(&self, now: SimTime) -> bool {
        self.occupied == 0 && self.free_at <= now
    }

    /// Whether packets wait.
    pub(crate) fn has_waiting(&self) -> bool {
        self.occupied != 0
    }

    /// Bytes times picoseconds that they have waited here until `now`.
    pub(crate) fn waited_byte_ps(&self, now: SimTime) -> u128 {
        let ps = now.since(self.waiting_since);
        self.waited_byte_ps + u128::from(self.waiting_bytes) * u128::from(ps)
    }

    fn book_waiting(&mut self, now: SimTime) {
        self.waited_byte_ps = self.waited_byte_ps(now);
        self.waiting_since = now;
    }

    /// Makes a packet wait behind those of its priority.
    pub(crate) fn push<H: Copy>(&mut self, now: SimTime, packets: &mut Packets<H>, slot: u32) {
        self.book_waiting(now);
        let packet = packets.get_mut(slot);
        packet.next = NIL;
        let level = usize::from(packet.priority & 7);
        self.waiting_bytes += u64::from(packet.wire_bytes);
        self.counters.most_waiting_bytes = self.counters.most_waiting_bytes.max(self.waiting_bytes);
        let queue = &mut self.queues[level];
        if queue.head == NIL {
            queue.head = slot;
            self.occupied |= 1 << level;
        } else {
            packets.get_mut(queue.tail).next = slot;
        }
        queue.tail = slot;
    }

    /// The most urgent packet, the longest waiting of its level.
    pub(crate) fn pop<H: Copy>(&mut self, now: SimTime, packets: &mut Packets<H>) -> Option<u32> {
        let level = self.occupied.checked_ilog2()?;
        self.book_waiting(now);
        let queue = &mut self.queues[level as usize];
        let slot = queue.head;
        let packet = packets.get(slot);
        queue.head = packet.next;
        self.waiting_bytes -= u64::from(packet.wire_bytes);
        if queue.head == NIL {
            self.occupied &= !(1 << level);
        }
        Some(slot)
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;
    use crate::packet::{Congested, HostId, MessageSlot, Packet};

    fn packet(priority: u8, wire_bytes: u32) -> Packet<u32> {
        Packet {
            from: HostId(0),
            to: HostId(1),
            wire_bytes,
            priority,
            congested: Congested::No,
            message: MessageSlot::NONE,
            header: wire_bytes,
            node: 0,
            next: NIL,
            tail_at: SimTime::ZERO,
        }
    }

    #[test]
    fn pop__strict_priority_then_first_in_first_out() {
        let mut packets = Packets::default();
        let mut port = Port::new(0, 0, 800, 0);
        for (priority, name) in [(0, 1), (7, 2), (3, 3), (7, 4), (0, 5), (3, 6)] {
            let slot = packets.insert(packet(priority, name));
            port.push(SimTime::ZERO, &mut packets, slot);
        }
        assert_eq!(port.waiting_bytes, 21);
        let mut order = Vec::new();
        while let Some(slot) = port.pop(SimTime::from_ps(10), &mut packets) {
            order.push(packets.get(slot).header);
            packets.remove(slot);
        }
        assert_eq!(order, [2, 4, 3, 6, 1, 5]);
        assert_eq!(port.waiting_bytes, 0);
        assert_eq!(port.waited_byte_ps(SimTime::from_ps(50)), 21 * 10);
        assert_eq!(port.counters.most_waiting_bytes, 21);
        assert!(!port.has_waiting() && packets.is_empty());
    }
}
