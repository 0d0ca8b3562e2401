//! Queues of slots, any number of them over one array of nodes.
//!
//! Owns the nodes ([`Links`]); each [`List`] is a head that lives wherever its
//! owner likes and must always be passed together with the same `Links`.
//!
//! The nodes of a list form a ring and the head is its first slot, so that
//! putting in and taking out are the same few writes wherever in the list.
//!
//! Invariants: a slot is in at most one list of a `Links`; a node is all zero
//! exactly while its slot is in none. A list is the only copy of itself in use
//! (it is `Copy` so that it can sit in other plain records).

use super::{Link, link_to, slot_of};
use alloc::{vec, vec::Vec};

/// The head of a queue of slots; empty by default.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct List {
    front: Link,
}

impl List {
    /// Whether no slot is in the list.
    pub(crate) fn is_empty(&self) -> bool {
        self.front.is_none()
    }

    /// The first slot.
    pub(crate) fn front(&self) -> Option<u32> {
        slot_of(self.front)
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
    #[inline]
    pub(crate) fn push_back(&mut self, list: &mut List, slot: u32) -> bool {
        let this = link_to(slot);
        let front = list.front.or(this);
        if self.contains(slot) || !self.insert_before(slot, front) {
            return false;
        }
        list.front = front;
        true
    }

    /// Puts `slot` before all others; false (and nothing done) if it is in a
    /// list already or out of range.
    pub(crate) fn push_front(&mut self, list: &mut List, slot: u32) -> bool {
        let pushed = self.push_back(list, slot);
        if pushed {
            // The last of a ring is also what comes before its first.
            list.front = link_to(slot);
        }
        pushed
    }

    /// Takes `slot` out of `list`, which must be the one it is in; false if it
    /// is in none.
    #[inline]
    pub(crate) fn remove(&mut self, list: &mut List, slot: u32) -> bool {
        let this = link_to(slot);
        let Some(node) = self.nodes.get_mut(slot as usize) else {
            return false;
        };
        let [previous, next] = *node;
        if previous.is_none() {
            return false;
        }
        *node = [None; 2];
        if next == this {
            debug_assert!(list.front == this, "slot {slot} is in another list");
            list.front = None;
            return true;
        }
        self.join(previous, NEXT, next);
        self.join(next, PREVIOUS, previous);
        if list.front == this {
            list.front = next;
        }
        true
    }

    /// Takes out and returns the first slot.
    pub(crate) fn pop_front(&mut self, list: &mut List) -> Option<u32> {
        let slot = list.front()?;
        self.remove(list, slot).then_some(slot)
    }

    /// The last slot of a list.
    #[inline]
    pub(crate) fn back(&self, list: &List) -> Option<u32> {
        slot_of(self.nodes.get(list.front()? as usize)?[PREVIOUS])
    }

    /// The slot after `slot` in `list`, which must be the one it is in.
    pub(crate) fn next(&self, list: &List, slot: u32) -> Option<u32> {
        let next = self.nodes.get(slot as usize)?[NEXT];
        slot_of(next.filter(|_| next != list.front))
    }

    /// The slots of a list in order.
    pub(crate) fn iter(&self, list: &List) -> impl Iterator<Item = u32> + '_ {
        let list = *list;
        core::iter::successors(list.front(), move |slot| self.next(&list, *slot))
    }

    /// Whether `slot` is in some list of these links.
    #[inline]
    pub(crate) fn contains(&self, slot: u32) -> bool {
        self.nodes
            .get(slot as usize)
            .is_some_and(|node| node[PREVIOUS].is_some())
    }

    /// Puts a slot into the ring in front of `next`, which may be itself;
    /// false if it is out of range.
    fn insert_before(&mut self, slot: u32, next: Link) -> bool {
        let this = link_to(slot);
        let last = match slot_of(next).and_then(|next| self.nodes.get(next as usize)) {
            Some(node) => node[PREVIOUS].or(this),
            None => return false,
        };
        match self.nodes.get_mut(slot as usize) {
            Some(node) => *node = [last, next],
            None => return false,
        }
        self.join(last, NEXT, this);
        self.join(next, PREVIOUS, this);
        true
    }

    fn join(&mut self, link: Link, side: usize, to: Link) {
        if let Some(node) = slot_of(link).and_then(|slot| self.nodes.get_mut(slot as usize))
            && let Some(end) = node.get_mut(side)
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
                    prop_assert_eq!(links.back(list), model.back().copied());
                    prop_assert_eq!(list.is_empty(), model.is_empty());
                    let walked = links.iter(list).take(SLOTS as usize + 1);
                    prop_assert!(walked.eq(model.iter().copied()));
                }
                for slot in 0..SLOTS + 2 {
                    prop_assert_eq!(links.contains(slot), owner(slot, &model).is_some());
                }
            }
        }
    }
}
