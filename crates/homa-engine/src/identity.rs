//! What tells one life of an endpoint from another.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use homa_core::Identity;

/// The highest first id that this process has drawn: if the wall clock steps
/// back, the endpoints of one process still have growing ids.
static LATEST: AtomicU64 = AtomicU64::new(0);

/// Ids kept for each endpoint of a process where the clock does not keep them
/// apart: 500 million RPCs.
const SPACING: u64 = 1_000_000_000;

/// Random numbers as good as hash tables need: keyed by the system's.
fn random(about: u64) -> u64 {
    RandomState::new().hash_one(about)
}

/// Draws an identity. The first id is the wall clock in nanoseconds, so that
/// ids grow over restarts (`docs/protocol.md` §2).
pub(crate) fn draw() -> Identity {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let wall = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX / 2);
    Identity {
        first_id: first_id(wall),
        instance: random(1).max(1),
        hash_seed: random(2),
    }
}

fn first_id(wall_ns: u64) -> u64 {
    let above = |before: u64| wall_ns.max(before.saturating_add(SPACING)).max(2) & !1;
    let mut before = LATEST.load(Ordering::Relaxed);
    loop {
        let first = above(before);
        match LATEST.compare_exchange(before, first, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return first,
            Err(other) => before = other,
        }
    }
}

/// A client port of the upper half.
pub(crate) fn ephemeral_port() -> u16 {
    32_768 | (random(3) as u16 & 0x7fff)
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn first_id__never_falls_when_the_clock_steps_back() {
        let now = draw().first_id;
        assert!(now.is_multiple_of(2));
        assert!(first_id(now - 5_000_000_000) >= now + SPACING);
        assert!(draw().first_id >= now + 2 * SPACING);
    }

    #[test]
    fn draw__two_lives_differ() {
        let (one, two) = (draw(), draw());
        assert_ne!(one.instance, two.instance);
        assert_ne!(one.hash_seed, two.hash_seed);
        assert!(ephemeral_port() >= 32_768);
    }
}
