//! The monotonic clock, in the core's time.

use std::time::{Duration, Instant};

use homa_core::{SECOND_NS, Time};

/// Turns instants into the core's time and back.
///
/// The clock's first instant is one second after the core's origin, which the
/// core uses for "never"; the wall clock plays no part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self {
            origin: Instant::now(),
        }
    }

    pub(crate) fn now(&self) -> Time {
        self.time(Instant::now())
    }

    pub(crate) fn time(&self, instant: Instant) -> Time {
        let since = instant.saturating_duration_since(self.origin);
        let ns = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        Time::from_nanos(SECOND_NS.saturating_add(ns))
    }

    /// `None` beyond what an [`Instant`] can say, which is never.
    pub(crate) fn instant(&self, time: Time) -> Option<Instant> {
        let ns = time.as_nanos().saturating_sub(SECOND_NS);
        self.origin.checked_add(Duration::from_nanos(ns))
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn time__starts_after_never_and_comes_back() {
        let clock = Clock::new();
        assert!(clock.now() >= Time::from_nanos(SECOND_NS));
        let instant = clock.origin + Duration::from_micros(7);
        assert_eq!(clock.instant(clock.time(instant)), Some(instant));
        let before = clock.origin.checked_sub(Duration::from_secs(1)).unwrap();
        assert_eq!(clock.time(before), Time::from_nanos(SECOND_NS));
        assert!(clock.instant(Time::from_nanos(u64::MAX)) > Some(instant));
    }
}
