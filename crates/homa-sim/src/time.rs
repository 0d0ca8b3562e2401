//! The virtual clock: picoseconds, since a byte on a 40 Gbit/s link takes 200
//! of them and 2^64 are seven months.

use std::fmt;
use std::ops::Add;

use homa_core::Time;

/// Picoseconds per nanosecond.
pub const NANOSECOND_PS: u64 = 1_000;
/// Picoseconds per microsecond.
pub const MICROSECOND_PS: u64 = 1_000_000;
/// Picoseconds per second.
pub const SECOND_PS: u64 = 1_000_000_000_000;

/// An instant of virtual time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SimTime(u64);

impl SimTime {
    /// The beginning.
    pub const ZERO: Self = Self(0);
    /// After everything.
    pub const NEVER: Self = Self(u64::MAX);

    /// `ps` picoseconds after the beginning.
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// `seconds` after the beginning, rounded to the picosecond; 0 if negative.
    pub fn from_secs_f64(seconds: f64) -> Self {
        Self((seconds * SECOND_PS as f64).round() as u64)
    }

    /// The first instant at which the core's clock shows `time`.
    pub const fn from_core(time: Time) -> Self {
        Self(time.as_nanos().saturating_mul(NANOSECOND_PS))
    }

    /// What the core's clock shows.
    pub const fn to_core(self) -> Time {
        Time::from_nanos(self.0 / NANOSECOND_PS)
    }

    /// Picoseconds since the beginning.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Seconds since the beginning.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / SECOND_PS as f64
    }

    /// The instant `ps` picoseconds earlier, or the beginning.
    #[must_use]
    pub const fn before(self, ps: u64) -> Self {
        Self(self.0.saturating_sub(ps))
    }

    /// Picoseconds since `earlier`, or 0 if that is later.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<u64> for SimTime {
    type Output = Self;

    fn add(self, ps: u64) -> Self {
        Self(self.0.saturating_add(ps))
    }
}

impl fmt::Display for SimTime {
    /// Microseconds with picoseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}.{:06} us",
            self.0 / MICROSECOND_PS,
            self.0 % MICROSECOND_PS
        )
    }
}

/// Picoseconds that a byte takes on a link of `rate_bps`; at least 1. Exact
/// for rates that divide 8 Tbit/s, which all common ones do.
pub const fn byte_ps(rate_bps: u64) -> u64 {
    let ps = 8 * SECOND_PS / if rate_bps == 0 { 1 } else { rate_bps };
    if ps == 0 { 1 } else { ps }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn byte_ps__common_rates_are_exact() {
        assert_eq!(byte_ps(10_000_000_000), 800);
        assert_eq!(byte_ps(25_000_000_000), 320);
        assert_eq!(byte_ps(40_000_000_000), 200);
        assert_eq!(byte_ps(100_000_000_000), 80);
        assert_eq!(byte_ps(400_000_000_000), 20);
    }

    #[test]
    fn to_core__rounds_down_and_comes_back_no_later() {
        let time = SimTime::from_ps(1_234_567);
        assert_eq!(time.to_core().as_nanos(), 1234);
        assert_eq!(SimTime::from_core(time.to_core()).as_ps(), 1_234_000);
        assert_eq!(time.to_string(), "1.234567 us");
    }
}
