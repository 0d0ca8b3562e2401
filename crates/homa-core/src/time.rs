//! Time as an argument: nanoseconds on a clock that only the host knows.
//!
//! The core compares and adds; it never asks what time it is. A host whose
//! clock steps back hands in the largest time it has seen.

use core::fmt;
use core::ops::Add;

/// Nanoseconds per millisecond.
pub const MILLISECOND_NS: u64 = 1_000_000;
/// Nanoseconds per second.
pub const SECOND_NS: u64 = 1_000_000_000;

/// An instant, in nanoseconds since an origin that the host chooses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// The origin.
    pub const ZERO: Self = Self(0);
    /// Later than all that happens.
    pub(crate) const NEVER: Self = Self(u64::MAX);

    /// The instant `ns` nanoseconds after the origin.
    pub const fn from_nanos(ns: u64) -> Self {
        Self(ns)
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Nanoseconds since `earlier`, or 0 if that is later.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<u64> for Time {
    type Output = Self;

    fn add(self, ns: u64) -> Self {
        Self(self.0.saturating_add(ns))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03} us", self.0 / 1000, self.0 % 1000)
    }
}
