//! Queues of slots, any number of them over one array of nodes.
//!
//! Owns the nodes ([`Links`]); each [`List`] is a head that lives wherever its
//! owner likes and must always be passed together with the same `Links`.
//!
//! Invariants: a slot is in at most one list of a `Links`; a node is all zero
//! exactly while its slot is in none; the ends of a list point at themselves,
//! so that being linked can be read off the node. A list is the only copy of
//! itself in use (it is `Copy` so that it can sit in other plain records).

use super::{Link, link_to, slot_of};
use alloc::{vec, vec::Vec};

/// The head of a queue of slots; empty by default.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct List {
    front: Link,
    back: Link,
    len: u32,
}

impl List {
    /// How many slots are in the list.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Whether no slot is in the list.
    pub(crate) fn is_empty(&self) -> bool {
        self.front.is_none()
    }

    /// The first slot.
    pub(crate) fn front(&self) -> Option<u32> {
        slot_of(self.front)
    }

    /// The last slot.
    pub(crate) fn back(&self) -> Option<u32> {
        slot_of(self.back)
    }
}

/// The nodes of all lists over the slots below a fixed capacity.
pub(crate) struct Links {
    /// Previous and next of each slot. Plain arrays, not a struct: those are
    /// what the allocator can hand out as untouched zero pages.
    nodes: Vec<[Link; 2]>,
}

const PREVIOUS: usize = 0;
const NEXT: usize = 1;

impl Links {
    /// Nodes for the slots `0..capacity`, none of them linked.
    pub(crate) fn with_capacity(capacity: u32) -> Self {
        Self {
            nodes: vec![[None; 2]; capacity as usize],
        }
    }

    /// Appends `slot`; false (and nothing done) if it is in a list already or
    /// out of range.
    pub(crate) fn push_back(&mut self, list: &mut List, slot: u32) -> bool {
        let this = link_to(slot);
        let old = list.back;
        let Some(node) = self.unlinked(slot) else {
            return false;
        };
        *node = [old.or(this), this];
        match slot_of(old) {
            Some(back) => self.join(back, NEXT, this),
            None => list.front = this,
        }
        list.back = this;
        list.len += 1;
        true
    }

    /// Puts `slot` before all others; false (and nothing done) if it is in a
    /// list already or out of range.
    pub(crate) fn push_front(&mut self, list: &mut List, slot: u32) -> bool {
        let this = link_to(slot);
        let old = list.front;
        let Some(node) = self.unlinked(slot) else {
            return false;
        };
        *node = [this, old.or(this)];
        match slot_of(old) {
            Some(front) => self.join(front, PREVIOUS, this),
            None => list.back = this,
        }
        list.front = this;
        list.len += 1;
        true
    }

    /// Takes `slot` out of `list`, which must be the one it is in; false if it
    /// is in none.
    pub(crate) fn remove(&mut self, list: &mut List, slot: u32) -> bool {
        let this = link_to(slot);
        let Some(&[previous, next]) = self.nodes.get(slot as usize) else {
            return false;
        };
        let (first, last) = (previous == this, next == this);
        // An end of some other list, or not linked: the cheap part of
        // noticing that the caller mixed up its lists.
        if previous.is_none() || first != (list.front == this) || last != (list.back == this) {
            debug_assert!(previous.is_none(), "slot {slot} is in another list");
            return false;
        }
        match slot_of(previous) {
            Some(before) if !first => {
                self.join(before, NEXT, if last { previous } else { next });
            }
            _ => list.front = next.filter(|_| !last),
        }
        match slot_of(next) {
            Some(after) if !last => {
                self.join(after, PREVIOUS, if first { next } else { previous });
            }
            _ => list.back = previous.filter(|_| !first),
        }
        if let Some(node) = self.nodes.get_mut(slot as usize) {
            *node = [None; 2];
        }
        list.len = list.len.saturating_sub(1);
        true
    }

    /// Takes out and returns the first slot.
    pub(crate) fn pop_front(&mut self, list: &mut List) -> Option<u32> {
        let slot = list.front()?;
        self.remove(list, slot).then_some(slot)
    }

    /// The slot after `slot` in its list.
    pub(crate) fn next(&self, slot: u32) -> Option<u32> {
        let next = self.nodes.get(slot as usize)?[NEXT];
        slot_of(next).filter(|next| *next != slot)
    }

    /// Whether `slot` is in some list of these links.
    pub(crate) fn contains(&self, slot: u32) -> bool {
        self.nodes
            .get(slot as usize)
            .is_some_and(|node| node[PREVIOUS].is_some())
    }

    /// The node of a slot that is in no list.
    fn unlinked(&mut self, slot: u32) -> Option<&mut [Link; 2]> {
        self.nodes
            .get_mut(slot as usize)
            .filter(|node| node[PREVIOUS].is_none())
    }

    fn join(&mut self, slot: u32, side: usize, to: Link) {
        if let Some(end) = self
            .nodes
            .get_mut(slot as usize)
            .and_then(|node| node.get_mut(side))
        {
            *end = to;
        }
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
#[allow(clippy::unwrap_used, reason = "tests must be able to fail")]
mod tests {
    extern crate std;

    use super::*;
    use proptest::prelude::*;

    use std::collections::VecDeque;

    const LISTS: usize = 3;
    const SLOTS: u32 = 12;

    #[derive(Clone, Debug)]
    enum Op {
        PushBack(usize, u32),
        PushFront(usize, u32),
        Remove(u32),
        PopFront(usize),
    }

    fn op() -> impl Strategy<Value = Op> {
        let slot = 0..SLOTS + 2;
        prop_oneof![
            3 => (0..LISTS, slot.clone()).prop_map(|(list, slot)| Op::PushBack(list, slot)),
            3 => (0..LISTS, slot.clone()).prop_map(|(list, slot)| Op::PushFront(list, slot)),
            3 => slot.prop_map(Op::Remove),
            1 => (0..LISTS).prop_map(Op::PopFront),
        ]
    }

    proptest! {
        #[test]
        fn links__agree_with_deques(ops in prop::collection::vec(op(), 0..300)) {
            let mut links = Links::with_capacity(SLOTS);
            let mut lists = [List::default(); LISTS];
            let mut model: [VecDeque<u32>; LISTS] = Default::default();
            for op in ops {
                let owner = |slot: u32, model: &[VecDeque<u32>; LISTS]| {
                    model.iter().position(|list| list.contains(&slot))
                };
                match op {
                    Op::PushBack(list, slot) => {
                        let fits = slot < SLOTS && owner(slot, &model).is_none();
                        prop_assert_eq!(links.push_back(&mut lists[list], slot), fits);
                        if fits {
                            model[list].push_back(slot);
                        }
                    }
                    Op::PushFront(list, slot) => {
                        let fits = slot < SLOTS && owner(slot, &model).is_none();
                        prop_assert_eq!(links.push_front(&mut lists[list], slot), fits);
                        if fits {
                            model[list].push_front(slot);
                        }
                    }
                    Op::Remove(slot) => {
                        let list = owner(slot, &model);
                        let removed = links.remove(&mut lists[list.unwrap_or(0)], slot);
                        prop_assert_eq!(removed, list.is_some());
                        if let Some(list) = list {
                            model[list].retain(|other| *other != slot);
                        }
                    }
                    Op::PopFront(list) => {
                        prop_assert_eq!(links.pop_front(&mut lists[list]), model[list].pop_front());
                    }
                }
                for (list, model) in lists.iter().zip(&model) {
                    prop_assert_eq!(list.front(), model.front().copied());
                    prop_assert_eq!(list.back(), model.back().copied());
                    prop_assert_eq!(list.len() as usize, model.len());
                    prop_assert_eq!(list.is_empty(), model.is_empty());
                    let walked = core::iter::successors(list.front(), |slot| links.next(*slot));
                    prop_assert!(walked.take(SLOTS as usize + 1).eq(model.iter().copied()));
                }
                for slot in 0..SLOTS + 2 {
                    prop_assert_eq!(links.contains(slot), owner(slot, &model).is_some());
                }
            }
        }
    }
}
