//! A queue of slots that are only ever taken from its front.
//!
//! Unlike a list it cannot give up a slot from its middle: whatever a slot was
//! queued for may be over when its turn comes, and whoever takes it looks. In
//! return it links one way only, and a slot that goes away costs nothing here.
//!
//! Invariants: a slot is in the queue at most once; its link is empty exactly
//! while it is not; the last slot points at itself.

use super::{Link, link_to, slot_of};
use alloc::{vec, vec::Vec};

/// A queue of slots below a fixed capacity.
pub(crate) struct Queue {
    next: Vec<Link>,
    front: Link,
    back: Link,
}

impl Queue {
    /// An empty queue for the slots `0..capacity`.
    pub(crate) fn with_capacity(capacity: u32) -> Self {
        Self {
            next: vec![None; capacity as usize],
            front: None,
            back: None,
        }
    }

    /// Whether no slot is queued.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.front.is_none()
    }

    /// Appends `slot`; one that is queued already keeps its place, and one out
    /// of range is ignored.
    #[inline]
    pub(crate) fn push(&mut self, slot: u32) {
        let this = link_to(slot);
        match self.next.get_mut(slot as usize) {
            Some(next) if next.is_none() => *next = this,
            _ => return,
        }
        match slot_of(self.back).and_then(|back| self.next.get_mut(back as usize)) {
            Some(next) => *next = this,
            None => self.front = this,
        }
        self.back = this;
    }

    /// Takes out the first slot.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<u32> {
        let slot = slot_of(self.front)?;
        let next = self.next.get_mut(slot as usize)?.take();
        if next == self.front {
            self.front = None;
            self.back = None;
        } else {
            self.front = next;
        }
        Some(slot)
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    extern crate std;

    use super::*;
    use proptest::prelude::*;

    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn queue__agrees_with_a_deque(ops in prop::collection::vec(prop::option::of(0u32..10), 0..300)) {
            let mut queue = Queue::with_capacity(8);
            let mut model: VecDeque<u32> = VecDeque::new();
            for op in ops {
                if let Some(slot) = op {
                    queue.push(slot);
                    if slot < 8 && !model.contains(&slot) {
                        model.push_back(slot);
                    }
                } else {
                    prop_assert_eq!(queue.pop(), model.pop_front());
                }
                prop_assert_eq!(queue.is_empty(), model.is_empty());
            }
        }
    }
}
