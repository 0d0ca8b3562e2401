//! Random bits for choices that are no secret: the port of a client.

use std::hash::{BuildHasher, Hasher, RandomState};

/// 64 bits, different at every call.
pub(crate) fn bits() -> u64 {
    RandomState::new().build_hasher().finish()
}
