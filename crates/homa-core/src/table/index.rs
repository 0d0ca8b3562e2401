//! Finds a slot by a key that lives elsewhere: a hash index.
//!
//! Owns (hash, slot) pairs only; the caller hashes the key ([`Seed::hash`])
//! and compares it with what the slot holds. Open addressing, linear probing,
//! deletion by shifting back (no tombstones, so a table never ages), at most
//! half full.
//!
//! Invariants: between an entry's home cell and the entry there is no empty
//! cell; `len` is at most half the cells.

use super::{Full, link_to, slot_of};
use alloc::{vec, vec::Vec};
use core::num::NonZeroU32;

/// The secret of a hash: without it, peers that choose their ids and ports
/// cannot choose where these end up. Random for each endpoint.
#[derive(Clone, Copy)]
pub(crate) struct Seed {
    first: u64,
    second: u64,
}

impl Seed {
    /// The secret from which the factors of the hash are derived: odd
    /// constants with about as many ones as zeros in every part (digits of pi
    /// and e), so that a zero seed still mixes.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            first: seed ^ 0x2992_1531_3fa2_8dc7,
            second: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2430_8d31_3198_a2e1,
        }
    }

    /// A well mixed hash of two words: folded 128-bit products, the first of
    /// factors that depend on the seed. Fast rather than cryptographic; whoever does
    /// not know the seed and does not see hashes cannot aim for collisions.
    pub(crate) fn hash(self, a: u64, b: u64) -> u64 {
        fold(fold(a ^ self.first, b ^ self.second), 0xd6e8_feb8_6659_fd93)
    }
}

/// Both halves of the product, so that each output bit depends on each input
/// bit.
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product >> 64) as u64 ^ product as u64
}

/// A hash index of at most a fixed number of slots.
pub(crate) struct Index {
    /// The short hash and the link of each entry; all zero while empty.
    cells: Vec<[u32; 2]>,
    max_entries: u32,
    len: u32,
}

impl Index {
    /// An index for `max_entries` entries. Takes 16 to 32 bytes for each.
    pub(crate) fn with_capacity(max_entries: u32) -> Self {
        let cells = (max_entries as usize).max(1).saturating_mul(2);
        Self {
            cells: vec![[0; 2]; cells.next_power_of_two()],
            max_entries,
            len: 0,
        }
    }

    /// Adds an entry. The same (hash, slot) must not be in the index already;
    /// the same hash with other slots may.
    pub(crate) fn insert(&mut self, hash: u64, slot: u32) -> Result<(), Full> {
        let link = link_to(slot).map_or(0, NonZeroU32::get);
        if self.len >= self.max_entries || link == 0 {
            return Err(Full);
        }
        let short = shorten(hash);
        let mut at = self.home(short);
        // Ends: at least half of the cells are empty.
        loop {
            let cell = self.cells.get_mut(at).ok_or(Full)?;
            if cell[1] == 0 {
                *cell = [short, link];
                self.len += 1;
                return Ok(());
            }
            at = self.after(at);
        }
    }

    /// The slot of an entry with this hash for which `matches` holds.
    pub(crate) fn find(&self, hash: u64, matches: impl Fn(u32) -> bool) -> Option<u32> {
        self.locate(shorten(hash), matches).map(|(_, slot)| slot)
    }

    /// Takes out the entry; false if it is not there.
    pub(crate) fn remove(&mut self, hash: u64, slot: u32) -> bool {
        let Some((mut hole, _)) = self.locate(shorten(hash), |other| other == slot) else {
            return false;
        };
        // Everything up to the next empty cell that may sit nearer to its home
        // moves into the hole, so that no search stops too early.
        let mut at = hole;
        loop {
            at = self.after(at);
            let Some(&cell) = self.cells.get(at).filter(|cell| cell[1] != 0) else {
                break;
            };
            let displaced = self.distance(self.home(cell[0]), at);
            if displaced >= self.distance(hole, at) {
                self.write(hole, cell);
                hole = at;
            }
        }
        self.write(hole, [0; 2]);
        self.len -= 1;
        true
    }

    /// Gives the entry of one slot to another that has the same hash; false if
    /// it is not there.
    pub(crate) fn replace(&mut self, hash: u64, slot: u32, with: u32) -> bool {
        let link = link_to(with).map_or(0, NonZeroU32::get);
        let Some((at, _)) = self.locate(shorten(hash), |other| other == slot) else {
            return false;
        };
        match self.cells.get_mut(at) {
            Some(cell) if link != 0 => cell[1] = link,
            _ => return false,
        }
        true
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    fn locate(&self, short: u32, matches: impl Fn(u32) -> bool) -> Option<(usize, u32)> {
        let mut at = self.home(short);
        // Ends: at least half of the cells are empty.
        loop {
            let &[other, link] = self.cells.get(at)?;
            let slot = slot_of(NonZeroU32::new(link))?;
            if other == short && matches(slot) {
                return Some((at, slot));
            }
            at = self.after(at);
        }
    }

    fn mask(&self) -> usize {
        self.cells.len().wrapping_sub(1)
    }

    fn home(&self, short: u32) -> usize {
        short as usize & self.mask()
    }

    fn after(&self, at: usize) -> usize {
        at.wrapping_add(1) & self.mask()
    }

    /// Cells from `from` forward to `to`.
    fn distance(&self, from: usize, to: usize) -> usize {
        to.wrapping_sub(from) & self.mask()
    }

    fn write(&mut self, at: usize, value: [u32; 2]) {
        if let Some(cell) = self.cells.get_mut(at) {
            *cell = value;
        }
    }
}

/// The part of a hash that is stored: it gives the home cell again when
/// entries shift, and spares most comparisons of keys that do not match.
fn shorten(hash: u64) -> u32 {
    (hash ^ (hash >> 32)) as u32
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
#[allow(clippy::unwrap_used, reason = "tests must be able to fail")]
mod tests {
    extern crate std;

    use super::*;
    use proptest::prelude::*;

    use std::collections::BTreeSet;

    const MAX: u32 = 8;

    #[derive(Clone, Debug)]
    enum Op {
        Insert(u64, u32),
        Remove(u64, u32),
        Replace(u64, u32, u32),
    }

    /// Hashes that share few home cells, some at the end of the table, some
    /// with equal homes but different short hashes.
    fn hash() -> impl Strategy<Value = u64> {
        prop_oneof![0u64..3, 13u64..16, Just(31u64), Just(47u64), Just(1 << 40)]
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            (hash(), 0u32..6).prop_map(|(hash, slot)| Op::Insert(hash, slot)),
            (hash(), 0u32..6).prop_map(|(hash, slot)| Op::Remove(hash, slot)),
            (hash(), 0u32..6, 0u32..6).prop_map(|(hash, slot, with)| Op::Replace(hash, slot, with)),
        ]
    }

    fn check(index: &Index) {
        let mut used = 0;
        for (at, cell) in index.cells.iter().enumerate() {
            if cell[1] != 0 {
                used += 1;
                let mut probe = index.home(cell[0]);
                while probe != at {
                    assert_ne!(index.cells[probe][1], 0, "a search would stop at {probe}");
                    probe = index.after(probe);
                }
            }
        }
        assert_eq!(used, index.len());
    }

    proptest! {
        #[test]
        fn index__agrees_with_a_set(ops in prop::collection::vec(op(), 0..300)) {
            let mut index = Index::with_capacity(MAX);
            let storage = index.cells.capacity();
            let mut model: BTreeSet<(u64, u32)> = BTreeSet::new();
            for op in ops {
                match op {
                    Op::Insert(hash, slot) => if !model.contains(&(hash, slot)) {
                        let fits = model.len() < MAX as usize;
                        prop_assert_eq!(index.insert(hash, slot), if fits { Ok(()) } else { Err(Full) });
                        if fits {
                            model.insert((hash, slot));
                        }
                    },
                    Op::Replace(hash, slot, with) => if !model.contains(&(hash, with)) {
                        let was_there = model.remove(&(hash, slot));
                        prop_assert_eq!(index.replace(hash, slot, with), was_there);
                        if was_there {
                            model.insert((hash, with));
                        }
                    },
                    Op::Remove(hash, slot) => {
                        prop_assert_eq!(index.remove(hash, slot), model.remove(&(hash, slot)));
                    }
                }
                check(&index);
                prop_assert_eq!(index.len() as usize, model.len());
                for &(hash, slot) in &model {
                    prop_assert_eq!(index.find(hash, |other| other == slot), Some(slot));
                    prop_assert_eq!(index.find(hash, |_| false), None);
                }
                for slot in 0..6 {
                    let found = index.find(31, |other| other == slot);
                    prop_assert_eq!(found.is_some(), model.contains(&(31, slot)));
                }
            }
            prop_assert_eq!(index.cells.capacity(), storage);
        }
    }

    #[test]
    fn insert__of_no_capacity_is_full() {
        assert_eq!(Index::with_capacity(0).insert(1, 1), Err(Full));
        assert_eq!(Index::with_capacity(0).find(1, |_| true), None);
    }

    #[test]
    fn hash__changes_half_of_its_bits_with_any_input_bit() {
        for seed in [0, 1, u64::MAX, 0x1234_5678_9abc_def0, 1 << 63] {
            let mut changed = [[0u32; 64]; 2];
            for sample in 0..400u64 {
                let (a, b) = (sample << 1, sample.wrapping_mul(0x1_0001_0001) ^ 0x63);
                let before = Seed::new(seed).hash(a, b);
                for bit in 0..64 {
                    let flipped = [
                        Seed::new(seed).hash(a ^ (1 << bit), b),
                        Seed::new(seed).hash(a, b ^ (1 << bit)),
                    ];
                    for (changed, after) in changed.iter_mut().zip(flipped) {
                        changed[bit] += (before ^ after).count_ones();
                    }
                }
            }
            for total in changed.as_flattened() {
                let mean = f64::from(*total) / 400.0;
                assert!((30.5..33.5).contains(&mean), "seed {seed:x}: {mean} bits");
            }
        }
    }

    #[test]
    fn hash__spreads_consecutive_ids_like_chance() {
        // 2^14 RPC ids in steps of two, over 2^14 cells: 37 % stay empty if
        // cells are drawn at random, and no cell gets more than a dozen.
        for seed in 0..20u64 {
            let mut cells = vec![0u32; 1 << 14];
            for id in 0..1u64 << 14 {
                let hash = Seed::new(seed).hash(id * 2, ((id % 7) << 16) | 0xfa0);
                cells[shorten(hash) as usize & 0x3fff] += 1;
            }
            let empty = cells.iter().filter(|count| **count == 0).count();
            assert!((5800..6250).contains(&empty), "seed {seed}: {empty} empty");
            assert!(cells.iter().all(|count| *count <= 12));
        }
    }

    #[test]
    fn hash__collisions_of_one_seed_are_none_of_another() {
        let cell = |seed: u64, id: u64| shorten(Seed::new(seed).hash(id, 9)) & 0xfff;
        let target = cell(1, 0);
        let colliding: Vec<u64> = (0..1 << 20).filter(|id| cell(1, *id) == target).collect();
        assert!(colliding.len() > 150);
        let mut elsewhere: Vec<u32> = colliding.iter().map(|id| cell(2, *id)).collect();
        elsewhere.sort_unstable();
        elsewhere.dedup();
        assert!(elsewhere.len() * 10 > colliding.len() * 9);
    }

    #[test]
    fn hash__takes_the_order_of_its_words_into_account() {
        let seed = Seed::new(77);
        let swapped = (0..1000u64).filter(|n| seed.hash(*n, n + 1) == seed.hash(n + 1, *n));
        assert_eq!(swapped.count(), 0);
    }
}
