//! Sets of byte positions as sorted ranges, any number of sets over one pool:
//! which bytes of a message have come, which must be sent again.
//!
//! Owns the nodes ([`Ranges`]); each [`RangeList`] is a head that lives with
//! its message and must always be passed together with the same pool, and
//! cleared before it is dropped. The ranges of one list are disjoint, in
//! order, not empty, and never touch (they would have been merged).
//!
//! Every call is linear in the ranges of one list at most; `limit` bounds that
//! (and what one peer can take from the pool). A message that arrives in order
//! has one range.

use super::{Full, Link, link_to, slot_of};
use alloc::vec::Vec;
use core::ops::Range;

/// The head of a set of ranges; empty by default.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RangeList {
    first: Link,
    len: u32,
}

impl RangeList {
    /// No byte.
    pub(crate) const EMPTY: Self = Self {
        first: None,
        len: 0,
    };

    /// How many ranges (not bytes) the set consists of.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Whether no byte is in the set.
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }
}

#[derive(Clone, Copy)]
struct Node {
    start: u32,
    end: u32,
    next: Link,
}

/// The pool all lists take their ranges from.
pub(crate) struct Ranges {
    nodes: Vec<Node>,
    capacity: u32,
    spare: Link,
    free: u32,
}

impl Ranges {
    /// A pool of `capacity` ranges.
    pub(crate) fn with_capacity(capacity: u32) -> Self {
        Self {
            nodes: Vec::with_capacity(capacity as usize),
            capacity,
            spare: None,
            free: capacity,
        }
    }

    /// Adds `range` to the set. `Full`, and nothing changed, if that needs
    /// another range and the list has `limit` of them or the pool is empty.
    pub(crate) fn insert(
        &mut self,
        list: &mut RangeList,
        range: Range<u32>,
        limit: u32,
    ) -> Result<(), Full> {
        if range.is_empty() {
            return Ok(());
        }
        // Skip what ends before the new range without touching it.
        let mut before: Link = None;
        let mut at = list.first;
        while let Some(node) = self.node(at).filter(|node| node.end < range.start) {
            before = at;
            at = node.next;
        }
        let Some(mut merged) = self.node(at).filter(|node| node.start <= range.end) else {
            let node = Node {
                start: range.start,
                end: range.end,
                next: at,
            };
            return self.add_after(list, before, node, limit);
        };
        merged.start = merged.start.min(range.start);
        merged.end = merged.end.max(range.end);
        while let Some(next) = self
            .node(merged.next)
            .filter(|next| next.start <= merged.end)
        {
            let absorbed = merged.next;
            merged.end = merged.end.max(next.end);
            merged.next = next.next;
            self.release(list, absorbed);
        }
        self.write(at, merged);
        Ok(())
    }

    /// Takes `range` out of the set and returns how many bytes of it were
    /// there. `Full`, and nothing changed, if a range would be split in two
    /// and the list has `limit` of them or the pool is empty.
    pub(crate) fn remove(
        &mut self,
        list: &mut RangeList,
        range: Range<u32>,
        limit: u32,
    ) -> Result<u32, Full> {
        if range.is_empty() {
            return Ok(0);
        }
        let mut before: Link = None;
        let mut at = list.first;
        let mut removed = 0;
        while let Some(node) = self.node(at).filter(|node| node.start < range.end) {
            let cut = node.start.max(range.start)..node.end.min(range.end);
            if cut.is_empty() {
                before = at;
                at = node.next;
                continue;
            }
            let (keeps_head, keeps_tail) = (node.start < cut.start, cut.end < node.end);
            if keeps_head && keeps_tail {
                // Only one range can contain all of the cut, so nothing was
                // changed before this may fail.
                let tail = Node {
                    start: cut.end,
                    ..node
                };
                self.add_after(list, at, tail, limit)?;
                if let Some(head) = self.node_mut(at) {
                    head.end = cut.start;
                }
                return Ok(cut.end - cut.start);
            }
            removed += cut.end - cut.start;
            if keeps_head {
                self.write(
                    at,
                    Node {
                        end: cut.start,
                        ..node
                    },
                );
                before = at;
            } else if keeps_tail {
                self.write(
                    at,
                    Node {
                        start: cut.end,
                        ..node
                    },
                );
                break;
            } else {
                self.set_next(list, before, node.next);
                self.release(list, at);
            }
            at = node.next;
        }
        Ok(removed)
    }

    /// How many bytes of `range` are in the set.
    pub(crate) fn overlap(&self, list: &RangeList, range: &Range<u32>) -> u32 {
        self.iter(list)
            .take_while(|other| other.start < range.end)
            .map(|other| {
                let start = other.start.max(range.start);
                other.end.min(range.end).saturating_sub(start)
            })
            .sum()
    }

    /// The range with the lowest bytes.
    pub(crate) fn first(&self, list: &RangeList) -> Option<Range<u32>> {
        self.iter(list).next()
    }

    /// The range with the highest bytes.
    pub(crate) fn last(&self, list: &RangeList) -> Option<Range<u32>> {
        self.iter(list).last()
    }

    /// The first range that ends after `offset`, without its bytes below
    /// `offset`.
    pub(crate) fn next_from(&self, list: &RangeList, offset: u32) -> Option<Range<u32>> {
        self.iter(list)
            .find(|range| range.end > offset)
            .map(|range| range.start.max(offset)..range.end)
    }

    /// Makes the set empty and gives its ranges back to the pool.
    pub(crate) fn clear(&mut self, list: &mut RangeList) {
        while let Some(node) = self.node(list.first) {
            let first = list.first;
            list.first = node.next;
            self.release(list, first);
        }
        *list = RangeList::default();
    }

    /// How many bytes are in the set.
    pub(crate) fn total(&self, list: &RangeList) -> u32 {
        self.iter(list).map(|range| range.end - range.start).sum()
    }

    /// How many ranges the pool still has.
    pub(crate) fn free(&self) -> u32 {
        self.free
    }

    /// The ranges of a set in order.
    fn iter(&self, list: &RangeList) -> impl Iterator<Item = Range<u32>> {
        let mut at = list.first;
        core::iter::from_fn(move || {
            let node = self.node(at)?;
            at = node.next;
            Some(node.start..node.end)
        })
    }

    fn node(&self, link: Link) -> Option<Node> {
        self.nodes.get(slot_of(link)? as usize).copied()
    }

    fn node_mut(&mut self, link: Link) -> Option<&mut Node> {
        self.nodes.get_mut(slot_of(link)? as usize)
    }

    fn write(&mut self, link: Link, value: Node) {
        if let Some(node) = self.node_mut(link) {
            *node = value;
        }
    }

    /// Makes `next` follow the node `before`, or the head if that is absent.
    fn set_next(&mut self, list: &mut RangeList, before: Link, next: Link) {
        match self.node_mut(before) {
            Some(node) => node.next = next,
            None => list.first = next,
        }
    }

    fn add_after(
        &mut self,
        list: &mut RangeList,
        before: Link,
        node: Node,
        limit: u32,
    ) -> Result<(), Full> {
        if list.len >= limit {
            return Err(Full);
        }
        let link = self.take(node)?;
        self.set_next(list, before, link);
        list.len += 1;
        Ok(())
    }

    /// A node from the pool, filled.
    fn take(&mut self, value: Node) -> Result<Link, Full> {
        let link = self.spare;
        if let Some(node) = self.node_mut(link) {
            let next = node.next;
            *node = value;
            self.spare = next;
            self.free -= 1;
            return Ok(link);
        }
        let fresh = self.nodes.len() as u32;
        if fresh >= self.capacity {
            return Err(Full);
        }
        self.nodes.push(value);
        self.free -= 1;
        Ok(link_to(fresh))
    }

    /// Gives a node of `list` that is already out of the chain back.
    fn release(&mut self, list: &mut RangeList, link: Link) {
        let spare = self.spare;
        if let Some(node) = self.node_mut(link) {
            node.next = spare;
            self.spare = link;
            self.free += 1;
            list.len = list.len.saturating_sub(1);
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

    const BYTES: u32 = 48;
    const LISTS: usize = 2;

    type Bitmap = [bool; BYTES as usize];

    #[derive(Clone, Debug)]
    enum Op {
        Insert(usize, Range<u32>, u32),
        Remove(usize, Range<u32>, u32),
        Clear(usize),
    }

    fn range() -> impl Strategy<Value = Range<u32>> {
        // Sometimes empty, sometimes inverted.
        prop_oneof![
            3 => (0..BYTES, 0u32..8).prop_map(|(start, len)| start..(start + len).min(BYTES)),
            1 => (0..BYTES, 0..=BYTES).prop_map(|(start, end)| start..end),
        ]
    }

    fn op() -> impl Strategy<Value = Op> {
        let limit = || prop_oneof![3 => Just(u32::MAX), 1 => 0u32..6];
        prop_oneof![
            6 => (0..LISTS, range(), limit()).prop_map(|(list, range, limit)| Op::Insert(list, range, limit)),
            4 => (0..LISTS, range(), limit()).prop_map(|(list, range, limit)| Op::Remove(list, range, limit)),
            1 => (0..LISTS).prop_map(Op::Clear),
        ]
    }

    fn runs(bitmap: &Bitmap) -> Vec<Range<u32>> {
        let mut runs: Vec<Range<u32>> = Vec::new();
        for (at, _) in (0u32..).zip(bitmap).filter(|(_, set)| **set) {
            match runs.last_mut() {
                Some(last) if last.end == at => last.end += 1,
                _ => runs.push(at..at + 1),
            }
        }
        runs
    }

    fn marked(bitmap: &Bitmap, range: &Range<u32>) -> u32 {
        range.clone().filter(|at| bitmap[*at as usize]).count() as u32
    }

    proptest! {
        #[test]
        fn ranges__agree_with_bitmaps(
            capacity in 0u32..10,
            ops in prop::collection::vec(op(), 0..200),
            probe in range(),
        ) {
            let mut ranges = Ranges::with_capacity(capacity);
            let storage = ranges.nodes.capacity();
            let mut lists = [RangeList::default(); LISTS];
            let mut model = [[false; BYTES as usize]; LISTS];
            for op in ops {
                let free = ranges.free();
                // Full exactly if one more range is needed than allowed.
                let lacks = |old: &Bitmap, new: &Bitmap, limit: u32| {
                    let (old, new) = (runs(old).len() as u32, runs(new).len() as u32);
                    new > old && (old >= limit || free == 0)
                };
                match op {
                    Op::Insert(list, range, limit) => {
                        let mut after = model[list];
                        range.clone().for_each(|at| after[at as usize] = true);
                        let result = ranges.insert(&mut lists[list], range, limit);
                        if lacks(&model[list], &after, limit) {
                            prop_assert_eq!(result, Err(Full));
                        } else {
                            prop_assert_eq!(result, Ok(()));
                            model[list] = after;
                        }
                    }
                    Op::Remove(list, range, limit) => {
                        let mut after = model[list];
                        range.clone().for_each(|at| after[at as usize] = false);
                        let bytes = marked(&model[list], &range);
                        let result = ranges.remove(&mut lists[list], range, limit);
                        if lacks(&model[list], &after, limit) {
                            prop_assert_eq!(result, Err(Full));
                        } else {
                            prop_assert_eq!(result, Ok(bytes));
                            model[list] = after;
                        }
                    }
                    Op::Clear(list) => {
                        ranges.clear(&mut lists[list]);
                        model[list] = [false; BYTES as usize];
                    }
                }
                let mut used = 0;
                for (list, model) in lists.iter().zip(&model) {
                    let runs = runs(model);
                    used += runs.len() as u32;
                    prop_assert!(ranges.iter(list).eq(runs.iter().cloned()));
                    prop_assert_eq!(list.len() as usize, runs.len());
                    prop_assert_eq!(list.is_empty(), runs.is_empty());
                    prop_assert_eq!(ranges.first(list), runs.first().cloned());
                    prop_assert_eq!(ranges.last(list), runs.last().cloned());
                    prop_assert_eq!(ranges.total(list), marked(model, &(0..BYTES)));
                    prop_assert_eq!(ranges.overlap(list, &probe), marked(model, &probe));
                    let offset = probe.start;
                    let next = runs.iter().find(|run| run.end > offset);
                    let next = next.map(|run| run.start.max(offset)..run.end);
                    prop_assert_eq!(ranges.next_from(list, offset), next);
                }
                prop_assert_eq!(ranges.free(), capacity - used);
            }
            prop_assert_eq!(ranges.nodes.capacity(), storage);
        }
    }

    #[test]
    fn insert__reaches_the_largest_offset() {
        let mut ranges = Ranges::with_capacity(3);
        let mut list = RangeList::default();
        ranges.insert(&mut list, u32::MAX - 1..u32::MAX, 8).unwrap();
        ranges.insert(&mut list, 0..1, 8).unwrap();
        ranges.insert(&mut list, 1..u32::MAX - 1, 8).unwrap();
        assert_eq!(ranges.first(&list), Some(0..u32::MAX));
        assert_eq!(ranges.total(&list), u32::MAX);
        assert_eq!(ranges.remove(&mut list, 5..u32::MAX, 8), Ok(u32::MAX - 5));
        assert_eq!(ranges.next_from(&list, 5), None);
        assert_eq!(ranges.free(), 2);
    }
}
