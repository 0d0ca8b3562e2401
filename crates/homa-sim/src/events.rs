//! What will happen, in order of time; at one instant, in the order in which
//! it was planned, so that runs repeat.
//!
//! A heap with four children a node, on entries of 16 bytes: four of them are
//! one cache line. An event is a kind and a small number packed into 32 bits.

use crate::time::SimTime;

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A packet (slot) has arrived at the node it was sent to.
    Arrive(u32),
    /// A port has finished a packet, and others wait.
    PortFree(u32),
    /// A host's NIC can take a packet.
    HostReady(u32),
    /// A host's transport wanted to be called.
    HostTimer(u32),
    /// A host starts a message.
    HostStart(u32),
}

/// Largest number an event can have.
pub const MOST_INDEX: u32 = (1 << KIND_SHIFT) - 1;
const KIND_SHIFT: u32 = 29;

impl Event {
    const fn pack(self) -> u32 {
        let (kind, index) = match self {
            Self::Arrive(index) => (0, index),
            Self::PortFree(index) => (1, index),
            Self::HostReady(index) => (2, index),
            Self::HostTimer(index) => (3, index),
            Self::HostStart(index) => (4, index),
        };
        kind << KIND_SHIFT | index & MOST_INDEX
    }

    const fn unpack(bits: u32) -> Self {
        let index = bits & MOST_INDEX;
        match bits >> KIND_SHIFT {
            0 => Self::Arrive(index),
            1 => Self::PortFree(index),
            2 => Self::HostReady(index),
            3 => Self::HostTimer(index),
            _ => Self::HostStart(index),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    at: u64,
    /// Order of planning in the high half (it wraps, which only matters to
    /// events that are planned 2^32 apart for one instant), event in the low.
    order: u64,
}

/// The events to come.
#[derive(Default)]
pub struct Events {
    heap: Vec<Entry>,
    planned: u32,
}

const CHILDREN: usize = 4;

impl Events {
    /// Plans an event.
    pub fn push(&mut self, at: SimTime, event: Event) {
        self.planned = self.planned.wrapping_add(1);
        let entry = Entry {
            at: at.as_ps(),
            order: u64::from(self.planned) << 32 | u64::from(event.pack()),
        };
        let mut hole = self.heap.len();
        self.heap.push(entry);
        while hole > 0 {
            let parent = (hole - 1) / CHILDREN;
            if self.heap[parent] <= entry {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        self.heap[hole] = entry;
    }

    /// Takes the next event.
    pub fn pop(&mut self) -> Option<(SimTime, Event)> {
        let last = self.heap.pop()?;
        let Some(&first) = self.heap.first() else {
            return Some(Self::open(last));
        };
        let heap = self.heap.as_mut_slice();
        let mut hole = 0;
        loop {
            let from = CHILDREN * hole + 1;
            let Some(children) = heap.get(from..heap.len().min(from + CHILDREN)) else {
                break;
            };
            let mut best = from;
            let Some((&least, rest)) = children.split_first() else {
                break;
            };
            let mut least = least;
            for (offset, &child) in rest.iter().enumerate() {
                if child < least {
                    least = child;
                    best = from + 1 + offset;
                }
            }
            if least >= last {
                break;
            }
            heap[hole] = least;
            hole = best;
        }
        heap[hole] = last;
        Some(Self::open(first))
    }

    /// When the next event happens.
    pub fn next_at(&self) -> Option<SimTime> {
        self.heap.first().map(|entry| SimTime::from_ps(entry.at))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }

    const fn open(entry: Entry) -> (SimTime, Event) {
        (
            SimTime::from_ps(entry.at),
            Event::unpack(entry.order as u32),
        )
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pop__sorted_by_time_then_by_planning(
            steps in prop::collection::vec((0_u64..50, any::<bool>()), 0..400),
        ) {
            let mut events = Events::default();
            let mut model: Vec<(u64, u32)> = Vec::new();
            for (number, (at, push)) in steps.into_iter().enumerate() {
                let number = number as u32;
                if push || model.is_empty() {
                    events.push(SimTime::from_ps(at), Event::Arrive(number));
                    model.push((at, number));
                    model.sort_unstable();
                } else {
                    let (at, number) = model.remove(0);
                    prop_assert_eq!(
                        events.pop(),
                        Some((SimTime::from_ps(at), Event::Arrive(number)))
                    );
                }
                prop_assert_eq!(events.len(), model.len());
                prop_assert_eq!(
                    events.next_at(),
                    model.first().map(|(at, _)| SimTime::from_ps(*at))
                );
            }
        }
    }

    #[test]
    fn push__every_kind_comes_back() {
        let all = [
            Event::Arrive(MOST_INDEX),
            Event::PortFree(1),
            Event::HostReady(2),
            Event::HostTimer(3),
            Event::HostStart(0),
        ];
        let mut events = Events::default();
        for event in all {
            events.push(SimTime::ZERO, event);
        }
        for event in all {
            assert_eq!(events.pop(), Some((SimTime::ZERO, event)));
        }
        assert!(events.is_empty() && events.pop().is_none());
    }
}
