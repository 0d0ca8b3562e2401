//! The containers of the protocol core, and the only generic code in it.
//!
//! Every container takes all its memory when it is made and never asks for
//! more: a full table is a value ([`Full`]) the caller sees, not a failure
//! inside. Memory is zeroed or pushed lazily, so a large table costs address
//! space until its entries are used. Except for [`Slab`], a container holds no
//! values of its own but orders *slots*: indices below its capacity that
//! somebody else (usually a slab) gave out.
//!
//! Invariants: no call panics, recurses or allocates after construction; every
//! call is O(log n) or better (amortised for [`Forest`]; [`Ranges`] is linear
//! in the ranges of one list, which the caller limits).
//!
//! Not here: anything that knows about packets, messages or time.

#![allow(
    dead_code,
    unused_imports,
    reason = "containers are complete in themselves; not every method has a caller"
)]
#![allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "heads of lists and trees are identities: a copy of one must not be passed by accident"
)]

mod forest;
mod heap;
mod index;
mod list;
mod queue;
mod ranges;
mod slab;

pub(crate) use forest::{Forest, Tree};
pub(crate) use heap::Heap;
pub(crate) use index::{Index, Seed};
pub(crate) use list::{Links, List};
pub(crate) use queue::Queue;
pub(crate) use ranges::{RangeList, Ranges};
pub(crate) use slab::Handle;
pub(crate) use slab::Slab;

use core::num::NonZeroU32;

/// The container has no room for another entry; nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Full;

/// A reference to a slot that may be absent, in four bytes. All-zero memory
/// reads as absent, which is what lets tables start as untouched zero pages.
type Link = Option<NonZeroU32>;

/// The link to `slot`. `u32::MAX` is never a slot (slots are below a capacity
/// that is itself a `u32`) and has no link.
fn link_to(slot: u32) -> Link {
    NonZeroU32::new(slot.wrapping_add(1))
}

/// The slot a link leads to.
fn slot_of(link: Link) -> Option<u32> {
    link.map(|link| link.get() - 1)
}
