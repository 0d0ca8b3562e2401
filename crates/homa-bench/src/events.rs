//! Readiness events with a deadline in nanoseconds.
//!
//! epoll as the standard crates offer it rounds time-outs up to milliseconds,
//! far too coarse for requests that are due every few microseconds; a timerfd
//! in the same epoll set has the kernel's precision.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Registry, Token};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

const TIMER: Token = Token(usize::MAX);
const EVENTS_PER_CALL: usize = 256;

/// An epoll set with a timer. Tokens up to `usize::MAX - 1` are the owner's.
#[derive(Debug)]
pub(crate) struct EventSet {
    poll: Poll,
    events: Events,
    timer: OwnedFd,
}

impl EventSet {
    pub(crate) fn new() -> io::Result<Self> {
        let poll = Poll::new()?;
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        poll.registry()
            .register(&mut SourceFd(&timer.as_raw_fd()), TIMER, Interest::READABLE)?;
        Ok(Self {
            poll,
            events: Events::with_capacity(EVENTS_PER_CALL),
            timer,
        })
    }

    pub(crate) fn registry(&self) -> &Registry {
        self.poll.registry()
    }

    /// Makes whatever happens in another set an event of this one.
    pub(crate) fn watch(&self, other: &Self) -> io::Result<()> {
        self.poll.registry().register(
            &mut SourceFd(&other.poll.as_raw_fd()),
            Token(0),
            Interest::READABLE,
        )
    }

    /// Collects what is ready now.
    pub(crate) fn collect_now(&mut self) -> io::Result<()> {
        self.collect(Duration::ZERO)
    }

    /// Sleeps until something is ready or `deadline` has passed.
    pub(crate) fn collect_until(&mut self, deadline: Instant) -> io::Result<()> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return self.collect_now();
        }
        // An expired timer stays readable, and setting it again clears that:
        // it never has to be read.
        let timer = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: Timespec {
                tv_sec: left.as_secs().min(86_400).cast_signed(),
                tv_nsec: i64::from(left.subsec_nanos()),
            },
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &timer)?;
        self.collect(left)
    }

    fn collect(&mut self, timeout: Duration) -> io::Result<()> {
        match self.poll.poll(&mut self.events, Some(timeout)) {
            // A signal: its handler has raised a flag that the loop looks at.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                self.events.clear();
                Ok(())
            }
            other => other,
        }
    }

    /// What the last call collected, without the timer.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Event> {
        self.events.iter().filter(|event| event.token() != TIMER)
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn collect_until__shorter_than_a_millisecond_again_and_again() {
        let mut set = EventSet::new().unwrap();
        let mut least_late = Duration::MAX;
        for _ in 0..50 {
            let deadline = Instant::now() + Duration::from_micros(100);
            set.collect_until(deadline).unwrap();
            least_late = least_late.min(deadline.elapsed());
            assert!(Instant::now() >= deadline);
            assert_eq!(set.iter().count(), 0);
        }
        // Millisecond time-outs would be 900 µs late every time.
        assert!(least_late < Duration::from_micros(800), "{least_late:?}");
    }
}
