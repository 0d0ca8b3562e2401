//! One incoming message: what has arrived of it, and what may still come
//! (`docs/protocol.md` §4, §5).
//!
//! Bytes below `highest` have arrived except those in `holes`. Packets may come
//! in any order, twice, or overlapping; new bytes are taken, old ones are not
//! counted again. The payload itself is never here.

use core::ops::Range;

use crate::counters::DropReason;
use crate::table::{RangeList, Ranges};

/// Whether a message has memory to arrive in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    Available,
    /// It waits for some; its DATA is dropped and its timers rest.
    Awaited,
}

#[derive(Clone, Copy)]
pub(crate) struct Incoming {
    /// Bytes of the message; 0 until its first packet has come.
    pub(crate) length: u32,
    /// Bytes that may come: the unscheduled ones, then what was granted.
    pub(crate) granted: u32,
    /// Bytes that have come.
    pub(crate) received: u32,
    /// End of the highest byte that has come.
    pub(crate) highest: u32,
    pub(crate) holes: RangeList,
    pub(crate) memory: Memory,
    /// Bytes of it that count as held here.
    pub(crate) charged: u32,
    /// Its part in the total of incoming bytes.
    pub(crate) counted: u32,
    /// Whether the grant machinery knows it.
    pub(crate) scheduling: Scheduling,
    /// Payload of the largest packet seen: the least useful grant.
    pub(crate) payload_bytes: u32,
}

/// Whether a message needs grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheduling {
    /// It does not, or not now.
    Free,
    /// It does.
    Managed,
    /// It does, and found no room at its last turn.
    Blocked,
}

/// What a packet brought.
pub(crate) struct Arrival {
    pub(crate) new_bytes: u32,
    pub(crate) opened_hole: bool,
}

impl Incoming {
    pub(crate) const NONE: Self = Self {
        length: 0,
        granted: 0,
        received: 0,
        highest: 0,
        holes: RangeList::EMPTY,
        memory: Memory::Available,
        charged: 0,
        counted: 0,
        scheduling: Scheduling::Free,
        payload_bytes: 0,
    };

    pub(crate) fn begin(&mut self, length: u32, unscheduled: u32) {
        *self = Self {
            length,
            granted: unscheduled.min(length),
            ..Self::NONE
        };
    }

    /// A message all of which came in one packet, and is charged for.
    pub(crate) fn whole(length: u32) -> Self {
        Self {
            length,
            granted: length,
            received: length,
            highest: length,
            charged: length,
            payload_bytes: length,
            ..Self::NONE
        }
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.length > 0
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.length > 0 && self.received == self.length
    }

    pub(crate) fn is_managed(&self) -> bool {
        self.scheduling != Scheduling::Free
    }

    /// Bytes are due to arrive. What lies in a hole was sent, whether it was
    /// granted here or not.
    pub(crate) fn expects(&self) -> bool {
        let missing = self.received < self.granted || !self.holes.is_empty();
        self.memory == Memory::Available && missing
    }

    /// From where on a grant makes bytes come. More may have come than was
    /// granted here: the sender may have had grants of a former life of this
    /// endpoint, or taken RESENDs for grants.
    pub(crate) fn grant_base(&self) -> u32 {
        self.granted.max(self.received)
    }

    /// Marks a range as arrived. `range` lies within the message.
    pub(crate) fn place(
        &mut self,
        range: Range<u32>,
        ranges: &mut Ranges,
        max_holes: u32,
    ) -> Result<Arrival, DropReason> {
        let mut arrival = Arrival {
            new_bytes: 0,
            opened_hole: false,
        };
        if range.start < self.highest {
            let end = range.end.min(self.highest);
            arrival.new_bytes = ranges
                .remove(&mut self.holes, range.start..end, max_holes)
                .map_err(|_| DropReason::TooManyHoles)?;
        } else if range.start > self.highest {
            ranges
                .insert(&mut self.holes, self.highest..range.start, max_holes)
                .map_err(|_| DropReason::TooManyHoles)?;
            arrival.opened_hole = true;
        }
        if range.end > self.highest {
            arrival.new_bytes += range.end - self.highest.max(range.start);
            self.highest = range.end;
        }
        if arrival.new_bytes == 0 {
            return Err(DropReason::Duplicate);
        }
        self.received += arrival.new_bytes;
        Ok(arrival)
    }

    /// New bytes that a range would bring.
    pub(crate) fn new_bytes(&self, range: &Range<u32>, ranges: &Ranges) -> u32 {
        let beyond = range.end.saturating_sub(self.highest.max(range.start));
        beyond + ranges.overlap(&self.holes, range)
    }

    /// The first range at or after `cursor` that was to come and has not.
    pub(crate) fn missing_from(&self, cursor: u32, ranges: &Ranges) -> Option<Range<u32>> {
        ranges.next_from(&self.holes, cursor).or_else(|| {
            let start = self.highest.max(cursor);
            (start < self.granted).then_some(start..self.granted)
        })
    }
}
