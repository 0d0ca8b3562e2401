//! The engine's own thread: the driver of last resort, the one that polls, or
//! the one that looks after a driver outside (`watch`).
//!
//! As the driver of last resort it costs nothing while others drive: it rests
//! for a millisecond at a time while waiting threads come and go, and without
//! an end while one of them stays. Once none has been there for a millisecond
//! it sleeps on the descriptors itself. An idle endpoint has no timer, so then
//! it does not wake at all.

use std::num::NonZeroU64;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use homa_core::Time;

use crate::flush::Flushed;
use crate::inner::{Inner, lock};
use crate::lead::{NEVER, PATIENCE_NS};
use crate::sleep::{Woken, rest, sleep};
use crate::state::{Block, Seat, State};
use crate::turn::Trouble;
use crate::{Drive, StartError};

/// How long an engine that goes away waits for its thread. It is longer only
/// if a waker that the thread runs does not return.
const PATIENT: Duration = Duration::from_millis(200);

impl Inner {
    /// Starts the thread, if this engine is to have one.
    pub(crate) fn start(self: &Arc<Self>) -> Result<(), StartError> {
        let run = match self.drive {
            Drive::External => return Ok(()),
            Drive::Inline => Self::stand_by as fn(&Self),
            Drive::Polling { .. } => Self::poll as fn(&Self),
            Drive::Watched => Self::watch,
        };
        let inner = self.clone();
        let thread = std::thread::Builder::new().name("homa".to_owned());
        thread
            .spawn(move || {
                // Without it the kernel may fire our timers 50 µs late.
                let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
                // Dropped in this order: the sockets are closed by then.
                let _ended = Ended(inner.parting.clone());
                let inner = inner;
                run(&inner);
            })
            .map_err(|source| StartError::System {
                what: "starting a thread",
                source,
            })?;
        Ok(())
    }

    /// Ends the thread, unless it is the one that asks, and waits for that.
    pub(crate) fn end_thread(&self) {
        self.stop.store(true, Ordering::Release);
        self.thread_alarm.ring();
        if self.drive == Drive::External || std::thread::current().name() == Some("homa") {
            return;
        }
        self.parting.wait(Instant::now() + PATIENT);
    }

    /// The driver of last resort.
    fn stand_by(&self) {
        while !self.is_stopped() {
            match self.quietly(State::stand_by) {
                StandBy::Rest(timeout) => {
                    rest(&self.thread_alarm, timeout);
                }
                StandBy::Drive => self.take_over(),
            }
        }
    }

    /// Drives until a waiting thread does.
    fn take_over(&self) {
        self.timelessly(|state| state.counters.takeovers += 1);
        let mut trouble = Trouble::Unknown;
        while !self.is_stopped() {
            let mut done = self.turn(trouble);
            while done.more && !self.is_stopped() {
                done = self.turn(Trouble::Unknown);
            }
            trouble = Trouble::Unknown;
            match self.sleep_as_fallback(done.flushed) {
                None => {}
                Some(woken) => {
                    trouble = match woken {
                        Woken::Trouble => Trouble::Likely,
                        _ => Trouble::Unknown,
                    };
                    if self.timelessly(|state| state.lead.seat != Seat::Empty) {
                        return;
                    }
                }
            }
        }
    }

    /// Sleeps until something is to be done; `None` if something is already.
    fn sleep_as_fallback(&self, flushed: Flushed) -> Option<Woken> {
        let (until, now, writable) = self.quietly(|state, now| {
            let writable = match state.blocked {
                Some(Block::Writable(descriptor)) => Some(descriptor),
                _ => None,
            };
            let due = state.next_due(now).unwrap_or(NEVER);
            let until = flushed.postpone(now, due);
            if until > now {
                state.fallback = Seat::Asleep(until);
            }
            (until, now, writable)
        });
        if until <= now {
            return None;
        }
        let timeout = (until < NEVER).then(|| Duration::from_nanos(until.since(now)));
        let woken = sleep(&*self.datapath, &self.thread_alarm, writable, timeout);
        self.timelessly(|state| {
            state.fallback = Seat::Awake;
            if woken == Woken::Time && state.lead.seat == Seat::Empty {
                state.fired(self.clock.now(), until);
            }
        });
        Some(woken)
    }

    /// Polls without sleeping while there is anything to do, and for a while
    /// after.
    fn poll(&self) {
        let Drive::Polling { idle } = self.drive else {
            return;
        };
        self.timelessly(|state| state.fallback = Seat::Awake);
        let mut busy_at = Instant::now();
        while !self.is_stopped() {
            let done = self.turn(Trouble::Unknown);
            if done.more || done.received > 0 {
                busy_at = Instant::now();
                continue;
            }
            if busy_at.elapsed() < idle {
                // Those that wait may need this very processor.
                std::thread::yield_now();
                continue;
            }
            if self.sleep_as_fallback(done.flushed) == Some(Woken::Trouble) {
                self.turn(Trouble::Likely);
            }
            busy_at = Instant::now();
        }
    }
}

/// What the driver of last resort does next.
enum StandBy {
    Rest(Option<Duration>),
    Drive,
}

impl State {
    fn stand_by(&mut self, now: Time) -> StandBy {
        self.fallback = Seat::Awake;
        let since = match self.lead.seat {
            Seat::Empty => self.lead.active_at,
            _ => self.lead.taken_at,
        };
        let waited = now.since(since);
        if waited < PATIENCE_NS {
            return StandBy::Rest(Some(Duration::from_nanos(PATIENCE_NS - waited)));
        }
        if self.lead.seat == Seat::Empty {
            return StandBy::Drive;
        }
        self.fallback = Seat::Resting;
        StandBy::Rest(None)
    }
}

/// Says that the thread has ended, however it does.
struct Ended(Arc<Parting>);

impl Drop for Ended {
    fn drop(&mut self) {
        *lock(&self.0.ended) = true;
        self.0.ended_now.notify_all();
    }
}

/// Where an engine that goes away waits for its thread.
#[derive(Default)]
pub(crate) struct Parting {
    ended: Mutex<bool>,
    ended_now: Condvar,
}

impl Parting {
    fn wait(&self, until: Instant) {
        let mut ended = lock(&self.ended);
        while !*ended {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            ended = match self.ended_now.wait_timeout(ended, left) {
                Ok((guard, _)) => guard,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }
}
