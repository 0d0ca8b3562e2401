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
pub(crate) struct Seed(pub(crate) u64);

impl Seed {
    /// A well mixed hash of two words: folded 128-bit products with factors
    /// that depend on the seed. Fast rather than cryptographic; whoever does
    /// not know the seed and does not see hashes cannot aim for collisions.
    pub(crate) fn hash(self, a: u64, b: u64) -> u64 {
        let Self(seed) = self;
        // Odd constants with about as many ones as zeros in every part
        // (digits of pi and e); a zero seed still mixes.
        let second = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2430_8d31_3198_a2e1;
        let third =
            seed.rotate_left(32).wrapping_mul(0xb7e1_5162_8aed_2a6b) ^ 0x1370_7344_a409_3823;
        let mixed = fold(a ^ seed ^ 0x2992_1531_3fa2_8dc7, second);
        fold(fold(mixed ^ b, third) ^ second, 0xd6e8_feb8_6659_fd93)
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
        for _ in 0..self.cells.len() {
            match self.cells.get_mut(at) {
                Some(cell) if cell[1] == 0 => {
                    *cell = [short, link];
                    self.len += 1;
                    return Ok(());
                }
                _ => at = self.after(at),
            }
        }
        Err(Full)
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
        for _ in 0..self.cells.len() {
            at = self.after(at);
            let Some(&cell) = self.cells.get(at) else {
                break;
            };
            if cell[1] == 0 {
                break;
            }
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

    /// How many entries there are.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }

    fn locate(&self, short: u32, matches: impl Fn(u32) -> bool) -> Option<(usize, u32)> {
        let mut at = self.home(short);
        for _ in 0..self.cells.len() {
            let &[other, link] = self.cells.get(at)?;
            let slot = slot_of(NonZeroU32::new(link))?;
            if other == short && matches(slot) {
                return Some((at, slot));
            }
            at = self.after(at);
        }
        None
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
