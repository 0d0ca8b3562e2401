//! Values at stable slots, named by handles that go stale on removal.
//!
//! Owns the values. Invariants: a slot is live or on the free list, never
//! both; entries are pushed one by one up to the capacity and reused last-in
//! first-out, so only as much memory is touched as was ever live at once; a
//! handle finds its value and nothing that came to the slot later (until the
//! slot was reused 2^32 times while somebody kept the handle).
//!
//! Not here: lookup by anything but slot or handle (see `index`).

use super::{Full, Link, link_to, slot_of};
use alloc::vec::Vec;

/// Names one entry of a table: its slot and how often the slot was given out
/// before. A handle kept after its entry was removed finds nothing. One word,
/// so that it travels in a register.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Handle(u64);

impl Handle {
    /// The slot, below the capacity of the table.
    pub(crate) fn index(self) -> u32 {
        self.0 as u32
    }

    /// Which use of the slot this is; it wraps after 2^32 uses.
    pub(crate) fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn new(index: u32, generation: u32) -> Self {
        Self(u64::from(generation) << 32 | u64::from(index))
    }
}

enum State<T> {
    Live(T),
    Free { next: Link },
}

struct Entry<T> {
    /// Of the live value, or of the next one to come.
    generation: u32,
    state: State<T>,
}

/// A table of at most `capacity` values.
pub(crate) struct Slab<T> {
    entries: Vec<Entry<T>>,
    capacity: u32,
    free: Link,
    len: u32,
}

impl<T> Slab<T> {
    /// A table for `capacity` values, all memory taken now.
    pub(crate) fn with_capacity(capacity: u32) -> Self {
        Self {
            entries: Vec::with_capacity(capacity as usize),
            capacity,
            free: None,
            len: 0,
        }
    }

    /// Stores `value` in the slot freed last, or in a new one.
    #[inline]
    pub(crate) fn insert(&mut self, value: T) -> Result<Handle, Full> {
        if self.free.is_none() {
            self.grow();
        }
        let index = slot_of(self.free).ok_or(Full)?;
        let entry = self.entries.get_mut(index as usize).ok_or(Full)?;
        let State::Free { next } = entry.state else {
            return Err(Full);
        };
        entry.state = State::Live(value);
        self.free = next;
        self.len += 1;
        Ok(Handle::new(index, entry.generation))
    }

    /// Adds a free slot, if the capacity allows another.
    #[inline(never)]
    fn grow(&mut self) {
        let index = self.entries.len() as u32;
        if index < self.capacity {
            self.entries.push(Entry {
                generation: 0,
                state: State::Free { next: None },
            });
            self.free = link_to(index);
        }
    }

    /// Drops the value in place, without moving it out; from now on `handle`
    /// finds nothing. False if it found nothing before.
    pub(crate) fn free(&mut self, handle: Handle) -> bool {
        let live = self.get(handle).is_some();
        if live {
            self.free_slot(handle.index());
        }
        live
    }

    /// As [`free`](Self::free), of whatever value is live in a slot.
    #[inline]
    pub(crate) fn free_slot(&mut self, index: u32) {
        if let Some(entry) = self.entries.get_mut(index as usize)
            && matches!(entry.state, State::Live(_))
        {
            entry.generation = entry.generation.wrapping_add(1);
            entry.state = State::Free { next: self.free };
            self.free = link_to(index);
            self.len -= 1;
        }
    }

    /// Takes the value out; from now on `handle` finds nothing.
    pub(crate) fn remove(&mut self, handle: Handle) -> Option<T> {
        let entry = self.entries.get_mut(handle.index() as usize)?;
        if entry.generation != handle.generation() || matches!(entry.state, State::Free { .. }) {
            return None;
        }
        entry.generation = entry.generation.wrapping_add(1);
        let freed = State::Free { next: self.free };
        let State::Live(value) = core::mem::replace(&mut entry.state, freed) else {
            return None;
        };
        self.free = link_to(handle.index());
        self.len -= 1;
        Some(value)
    }

    /// The value `handle` was given for, if it is still there.
    pub(crate) fn get(&self, handle: Handle) -> Option<&T> {
        match self.entries.get(handle.index() as usize)? {
            Entry {
                generation,
                state: State::Live(value),
            } if *generation == handle.generation() => Some(value),
            _ => None,
        }
    }

    /// As [`get`](Self::get), to change it.
    pub(crate) fn get_mut(&mut self, handle: Handle) -> Option<&mut T> {
        match self.entries.get_mut(handle.index() as usize)? {
            Entry {
                generation,
                state: State::Live(value),
            } if *generation == handle.generation() => Some(value),
            _ => None,
        }
    }

    /// The live value in a slot, whichever use of the slot it is.
    pub(crate) fn slot(&self, index: u32) -> Option<&T> {
        match &self.entries.get(index as usize)?.state {
            State::Live(value) => Some(value),
            State::Free { .. } => None,
        }
    }

    /// As [`slot`](Self::slot), to change it.
    pub(crate) fn slot_mut(&mut self, index: u32) -> Option<&mut T> {
        match &mut self.entries.get_mut(index as usize)?.state {
            State::Live(value) => Some(value),
            State::Free { .. } => None,
        }
    }

    /// The live value in a slot, to change it, with its handle.
    #[inline]
    pub(crate) fn entry_mut(&mut self, index: u32) -> Option<(Handle, &mut T)> {
        let entry = self.entries.get_mut(index as usize)?;
        let handle = Handle::new(index, entry.generation);
        match &mut entry.state {
            State::Live(value) => Some((handle, value)),
            State::Free { .. } => None,
        }
    }

    /// The handle of the live value in a slot.
    pub(crate) fn handle(&self, index: u32) -> Option<Handle> {
        let entry = self.entries.get(index as usize)?;
        match entry.state {
            State::Live(_) => Some(Handle::new(index, entry.generation)),
            State::Free { .. } => None,
        }
    }

    /// How many values are live.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    /// Whether the next insert would fail.
    pub(crate) fn is_full(&self) -> bool {
        self.len >= self.capacity
    }

    /// How many values fit.
    pub(crate) fn capacity(&self) -> u32 {
        self.capacity
    }

    /// The live values in the order of their slots. Linear in the most values
    /// that were ever live at once: not for the packet path.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0u32..)
            .zip(&self.entries)
            .filter_map(|(index, entry)| match &entry.state {
                State::Live(value) => Some((index, value)),
                State::Free { .. } => None,
            })
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
        Insert(u16),
        /// The n-th handle ever given out, live or not.
        Remove(usize),
        Change(usize, u16),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            any::<u16>().prop_map(Op::Insert),
            (0usize..64).prop_map(Op::Remove),
            (0usize..64, any::<u16>()).prop_map(|(n, value)| Op::Change(n, value)),
        ]
    }

    proptest! {
        #[test]
        fn slab__agrees_with_a_map(capacity in 0u32..6, ops in prop::collection::vec(op(), 0..200)) {
            let mut slab = Slab::with_capacity(capacity);
            let storage = slab.entries.capacity();
            let mut model: BTreeMap<u32, (Handle, u16)> = BTreeMap::new();
            let mut given: Vec<Handle> = Vec::new();
            for op in ops {
                match op {
                    Op::Insert(value) => {
                        let inserted = slab.insert(value);
                        prop_assert_eq!(inserted.is_err(), model.len() as u32 == capacity);
                        if let Ok(handle) = inserted {
                            prop_assert!(handle.index() < capacity);
                            prop_assert!(!given.contains(&handle));
                            prop_assert!(model.insert(handle.index(), (handle, value)).is_none());
                            given.push(handle);
                        }
                    }
                    Op::Remove(n) => if let Some(&handle) = given.get(n) {
                        let expected = match model.get(&handle.index()) {
                            Some(&(live, value)) if live == handle => Some(value),
                            _ => None,
                        };
                        prop_assert_eq!(slab.remove(handle), expected);
                        if expected.is_some() {
                            model.remove(&handle.index());
                        }
                    },
                    Op::Change(n, value) => if let Some(&handle) = given.get(n) {
                        let mut live = model.values_mut().find(|(live, _)| *live == handle);
                        prop_assert_eq!(slab.get_mut(handle).copied(), live.as_ref().map(|live| live.1));
                        if let (Some(place), Some(live)) = (slab.get_mut(handle), live.as_mut()) {
                            *place = value;
                            live.1 = value;
                        }
                    },
                }
                for handle in &given {
                    let live = model.values().find(|(live, _)| live == handle);
                    prop_assert_eq!(slab.get(*handle), live.map(|(_, value)| value));
                }
                for index in 0..capacity + 2 {
                    let live = model.get(&index);
                    prop_assert_eq!(slab.slot(index), live.map(|(_, value)| value));
                    prop_assert_eq!(slab.slot_mut(index).copied(), live.map(|&(_, value)| value));
                    let entry = slab.entry_mut(index).map(|(handle, value)| (handle, *value));
                    prop_assert_eq!(entry, live.copied());
                    prop_assert_eq!(slab.handle(index), live.map(|&(handle, _)| handle));
                }
                prop_assert_eq!(slab.len() as usize, model.len());
                prop_assert_eq!(slab.is_full(), slab.len() == capacity);
                prop_assert!(slab.iter().eq(model.iter().map(|(&index, (_, value))| (index, value))));
            }
            prop_assert_eq!(slab.entries.capacity(), storage);
        }
    }

    #[test]
    fn insert__touches_only_what_was_live_at_once() {
        let mut slab = Slab::with_capacity(1_000_000);
        for round in 0..1000 {
            let first = slab.insert(round).unwrap();
            let second = slab.insert(round).unwrap();
            assert_eq!(slab.remove(first), Some(round));
            assert_eq!(slab.remove(second), Some(round));
        }
        assert_eq!(slab.entries.len(), 2);
    }
}
