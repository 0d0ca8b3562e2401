//! A priority queue over slots whose keys can change: smallest key first.
//!
//! Owns one key per queued slot. A 4-ary heap in one array (shallower than a
//! binary one, and the four children share a cache line or two), plus the
//! position of each slot so that re-keying and removal need no search.
//!
//! Invariants: no key is smaller than its parent's; `position[slot]` is the
//! place of the slot in the array plus one, or 0. The order among equal keys
//! is unspecified but the same in every run: put a tie-breaker into the key.

use alloc::{vec, vec::Vec};

const ARITY: usize = 4;

#[derive(Clone, Copy)]
struct Item<K> {
    key: K,
    slot: u32,
}

/// A queue of slots below a fixed capacity, each at most once.
pub(crate) struct Heap<K> {
    items: Vec<Item<K>>,
    position: Vec<u32>,
}

impl<K: Ord + Copy> Heap<K> {
    /// A queue for the slots `0..capacity`.
    pub(crate) fn with_capacity(capacity: u32) -> Self {
        Self {
            items: Vec::with_capacity(capacity as usize),
            position: vec![0; capacity as usize],
        }
    }

    /// Queues `slot` under `key`, or gives it a new key. O(log n). A slot out
    /// of range is a bug of the caller and ignored.
    #[inline(always)]
    pub(crate) fn set(&mut self, slot: u32, key: K) {
        match self.position.get_mut(slot as usize) {
            Some(position) if *position == 0 && self.items.is_empty() => {
                // Often the only one: nothing to compare with.
                *position = 1;
                self.items.push(Item { key, slot });
            }
            _ => self.set_among_others(Item { key, slot }),
        }
    }

    /// Queues `slot` under `key` unless it is queued under a smaller one.
    #[inline(always)]
    pub(crate) fn lower(&mut self, slot: u32, key: K) {
        if self.key(slot).is_none_or(|queued| key < queued) {
            self.set_among_others(Item { key, slot });
        }
    }

    #[inline(never)]
    fn set_among_others(&mut self, item: Item<K>) {
        let Some(&position) = self.position.get(item.slot as usize) else {
            debug_assert!(false, "slot {} out of range", item.slot);
            return;
        };
        let Some(at) = (position as usize).checked_sub(1) else {
            let at = self.items.len();
            self.items.push(item);
            self.sift_up(at, item);
            return;
        };
        if self.items.get(at).is_some_and(|old| item.key < old.key) {
            self.sift_up(at, item);
        } else {
            self.sift_down(at, item);
        }
    }

    /// Takes `slot` out; false if it is not queued. O(log n).
    #[inline(always)]
    pub(crate) fn remove(&mut self, slot: u32) -> bool {
        let Some(position) = self.position.get_mut(slot as usize) else {
            return false;
        };
        let at = core::mem::take(position) as usize;
        if at == 0 {
            return false;
        }
        if at == self.items.len() {
            // The last leaf, and often the only item: nothing moves.
            self.items.pop();
        } else {
            self.remove_inner(at - 1);
        }
        true
    }

    /// Takes out an item that is not the last.
    fn remove_inner(&mut self, at: usize) {
        let removed = self.items.get(at).map(|item| item.key);
        if let (Some(removed), Some(last)) = (removed, self.items.pop()) {
            self.fill(at, removed, last);
        }
    }

    /// Puts `item` into the hole that `removed` left.
    fn fill(&mut self, at: usize, removed: K, item: Item<K>) {
        if item.key < removed {
            self.sift_up(at, item);
        } else {
            self.sift_down(at, item);
        }
    }

    /// The slot with the smallest key.
    pub(crate) fn peek(&self) -> Option<(u32, K)> {
        self.items.first().map(|item| (item.slot, item.key))
    }

    /// Takes out the slot with the smallest key. O(log n).
    pub(crate) fn pop(&mut self) -> Option<(u32, K)> {
        let (slot, key) = self.peek()?;
        self.remove(slot);
        Some((slot, key))
    }

    /// The key `slot` is queued under.
    #[inline(always)]
    pub(crate) fn key(&self, slot: u32) -> Option<K> {
        let at = (*self.position.get(slot as usize)? as usize).checked_sub(1)?;
        self.items.get(at).map(|item| item.key)
    }

    /// Whether `slot` is queued.
    pub(crate) fn contains(&self, slot: u32) -> bool {
        self.position
            .get(slot as usize)
            .is_some_and(|position| *position != 0)
    }

    /// How many slots are queued.
    pub(crate) fn len(&self) -> u32 {
        self.items.len() as u32
    }

    /// Whether no slot is queued.
    pub(crate) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Puts `item` where the hole at `at` ends up when larger ancestors move
    /// down into it.
    fn sift_up(&mut self, mut at: usize, item: Item<K>) {
        while let Some(below) = at.checked_sub(1) {
            let parent = below / ARITY;
            match self.items.get(parent) {
                Some(&above) if item.key < above.key => self.place(at, above),
                _ => break,
            }
            at = parent;
        }
        self.place(at, item);
    }

    /// Puts `item` where the hole at `at` ends up when smaller descendants
    /// move up into it.
    fn sift_down(&mut self, mut at: usize, item: Item<K>) {
        loop {
            let first = at * ARITY + 1;
            let children = self.items.iter().skip(first).take(ARITY);
            let Some((best, &child)) = (first..).zip(children).min_by_key(|(_, child)| child.key)
            else {
                break;
            };
            if child.key >= item.key {
                break;
            }
            self.place(at, child);
            at = best;
        }
        self.place(at, item);
    }

    fn place(&mut self, at: usize, item: Item<K>) {
        if let Some(cell) = self.items.get_mut(at) {
            *cell = item;
        }
        if let Some(position) = self.position.get_mut(item.slot as usize) {
            *position = at as u32 + 1;
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

    use std::collections::BTreeMap;

    #[derive(Clone, Debug)]
    enum Op {
        Set(u32, u8),
        Remove(u32),
        Pop,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            4 => (0u32..40, any::<u8>()).prop_map(|(slot, key)| Op::Set(slot, key)),
            1 => (0u32..44).prop_map(Op::Remove),
            1 => Just(Op::Pop),
        ]
    }

    fn check(heap: &Heap<u8>) {
        for (at, item) in heap.items.iter().enumerate() {
            assert_eq!(heap.position[item.slot as usize] as usize, at + 1);
            if at > 0 {
                assert!(heap.items[(at - 1) / ARITY].key <= item.key);
            }
        }
        let placed = heap.position.iter().filter(|at| **at != 0).count();
        assert_eq!(placed, heap.items.len());
    }

    proptest! {
        #[test]
        fn heap__agrees_with_a_map(ops in prop::collection::vec(op(), 0..300)) {
            let mut heap = Heap::with_capacity(40);
            let storage = heap.items.capacity();
            let mut model: BTreeMap<u32, u8> = BTreeMap::new();
            for op in ops {
                match op {
                    Op::Set(slot, key) => {
                        heap.set(slot, key);
                        model.insert(slot, key);
                    }
                    Op::Remove(slot) => {
                        prop_assert_eq!(heap.remove(slot), model.remove(&slot).is_some());
                    }
                    Op::Pop => {
                        let popped = heap.pop();
                        prop_assert_eq!(popped.map(|(_, key)| key), model.values().min().copied());
                        if let Some((slot, key)) = popped {
                            prop_assert_eq!(model.remove(&slot), Some(key));
                        }
                    }
                }
                check(&heap);
                prop_assert_eq!(heap.peek().map(|(_, key)| key), model.values().min().copied());
                prop_assert_eq!(heap.len() as usize, model.len());
                prop_assert_eq!(heap.is_empty(), model.is_empty());
                for slot in 0..44 {
                    prop_assert_eq!(heap.key(slot), model.get(&slot).copied());
                    prop_assert_eq!(heap.contains(slot), model.contains_key(&slot));
                }
            }
            prop_assert_eq!(heap.items.capacity(), storage);
        }
    }

    #[test]
    fn pop__gives_keys_in_order() {
        let mut heap = Heap::with_capacity(1000);
        for slot in 0..1000u32 {
            heap.set(slot, (slot * 7919 % 1000, slot));
        }
        let mut last = None;
        while let Some((_, key)) = heap.pop() {
            assert!(last < Some(key));
            last = Some(key);
        }
        assert_eq!(last.map(|(key, _)| key), Some(999));
    }
}
