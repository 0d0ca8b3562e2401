//! Packets on their way, in a table of reused slots.
//!
//! A slot is also a link: a packet waits in at most one queue, so the queues
//! need no memory of their own.

use crate::time::SimTime;

/// A host, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u16);

/// A message of the run: its slot in the world's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MessageSlot(pub u32);

impl MessageSlot {
    /// Of packets that belong to no message.
    pub const NONE: Self = Self(u32::MAX);
}

/// No packet.
pub(crate) const NIL: u32 = u32::MAX;

/// A packet; `H` is the header that the transport made.
#[derive(Clone, Copy, Debug)]
pub struct Packet<H> {
    /// Where it comes from.
    pub from: HostId,
    /// Where it goes.
    pub to: HostId,
    /// Bytes that it takes on a link: headers, preamble and gap included.
    pub wire_bytes: u32,
    /// 0..=7, larger is more urgent.
    pub priority: u8,
    /// Whether a switch has marked it.
    pub congested: Congested,
    /// Message it belongs to.
    pub message: MessageSlot,
    /// What the transport made and will read.
    pub header: H,
    /// When its last bit arrives at that node.
    pub(crate) tail_at: SimTime,
    /// Node that it is being sent to.
    pub(crate) node: u32,
    /// The next packet in the queue that it waits in.
    pub(crate) next: u32,
}

/// Whether a packet was marked because a queue was long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Congested {
    /// It was not.
    No,
    /// It was.
    Yes,
}

/// All packets.
pub struct Packets<H> {
    slots: Vec<Packet<H>>,
    free: Vec<u32>,
}

impl<H> Default for Packets<H> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<H: Copy> Packets<H> {
    /// Stores a packet.
    pub fn insert(&mut self, packet: Packet<H>) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = packet;
            slot
        } else {
            self.slots.push(packet);
            self.slots.len() as u32 - 1
        }
    }

    /// Gives the slot to another packet.
    pub fn remove(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// The packet in a slot.
    pub fn get(&self, slot: u32) -> &Packet<H> {
        &self.slots[slot as usize]
    }

    /// The packet in a slot.
    pub fn get_mut(&mut self, slot: u32) -> &mut Packet<H> {
        &mut self.slots[slot as usize]
    }

    /// Packets that are somewhere.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
