//! Waiting threads drive the engine themselves: one of them, the *leader*,
//! sleeps on the descriptors, so that nothing is handed over between the
//! arrival of a response and the thread that waits for it.
//!
//! The others, *followers*, are parked. When the leader has what it waits for
//! it makes one of them the leader, and only that one wakes. When there is
//! none, the seat is empty, and the engine's own thread takes over if it stays
//! so for [`PATIENCE_NS`].

use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use homa_core::{MILLISECOND_NS, Time};

use crate::Drive;
use crate::flush::Flushed;
use crate::inner::Inner;
use crate::park::Parker;
use crate::sleep::{Woken, sleep};
use crate::state::{Block, Interrupt, Seat, State};
use crate::turn::Trouble;

/// How long the engine's own thread waits for the next leader.
pub(crate) const PATIENCE_NS: u64 = MILLISECOND_NS;

/// Time later than any.
pub(crate) const NEVER: Time = Time::from_nanos(u64::MAX);

/// What a waiting thread is.
enum Part {
    Leader,
    Follower(u64),
}

impl State {
    fn take_part(&mut self, now: Time, drive: Drive, parker: &Arc<Parker>) -> Part {
        let may_lead = !matches!(drive, Drive::Polling { .. });
        if may_lead && self.lead.seat == Seat::Empty {
            self.lead.seat = Seat::Awake;
            self.lead.taken_at = now;
            self.lead.active_at = now;
            self.counters.leads += 1;
            return Part::Leader;
        }
        let ticket = self.lead.next_ticket;
        self.lead.next_ticket += 1;
        if may_lead {
            self.lead.followers.insert(ticket, parker.clone());
        }
        Part::Follower(ticket)
    }

    /// The leader leaves: says who is to be promoted, or else interrupted.
    fn resign(&mut self, now: Time) -> (Option<Arc<Parker>>, Interrupt) {
        self.lead.active_at = now;
        if let Some((_, next)) = self.lead.followers.pop_first() {
            self.lead.seat = Seat::Awake;
            self.counters.successions += 1;
            return (Some(next), Interrupt::Nobody);
        }
        self.lead.seat = Seat::Empty;
        if self.fallback == Seat::Resting {
            self.fallback = Seat::Awake;
            return (None, Interrupt::Fallback);
        }
        (None, Interrupt::Nobody)
    }

    /// Until when the leader may sleep; `None` if something is due now.
    fn lead_until(&mut self, now: Time, deadline: Time, flushed: Flushed) -> Option<Time> {
        let due = self.next_due(now).unwrap_or(NEVER);
        let until = flushed.postpone(now, due).min(deadline);
        if until <= now {
            return None;
        }
        self.lead.seat = Seat::Asleep(until);
        Some(until)
    }
}

impl Inner {
    /// Blocks the thread until `poll` is ready, driving if nobody else does;
    /// `None` when the deadline came first.
    pub(crate) fn block_on<T>(
        &self,
        deadline: Option<Instant>,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Option<T> {
        let parker = Parker::new(self.leader_alarm.clone());
        let waker = Waker::from(parker.clone());
        let mut context = Context::from_waker(&waker);
        let mut waiter = Waiter {
            inner: self,
            parker: &parker,
            deadline,
            leads: false,
        };
        loop {
            parker.take_notice();
            if let Poll::Ready(ready) = poll(&mut context) {
                return Some(ready);
            }
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return None;
            }
            waiter.wait();
        }
    }
}

/// A thread in [`Inner::block_on`]. However it leaves, by a panic of `poll`
/// too, the next one leads.
struct Waiter<'a> {
    inner: &'a Inner,
    parker: &'a Arc<Parker>,
    deadline: Option<Instant>,
    leads: bool,
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        if self.leads {
            let (next, interrupt) = self.inner.with(State::resign);
            if let Some(next) = next {
                next.promote();
            }
            self.inner.interrupt(interrupt);
        }
    }
}

impl Waiter<'_> {
    /// Until the thread is notified, or its deadline.
    fn wait(&mut self) {
        while !self.leads {
            let part = self
                .inner
                .quietly(|state, now| state.take_part(now, self.inner.drive, self.parker));
            let Part::Follower(ticket) = part else {
                self.leads = true;
                break;
            };
            self.spin_until_notified();
            self.parker.park(self.deadline);
            // Whoever took it out of the list has made it the leader.
            self.leads = !matches!(self.inner.drive, Drive::Polling { .. })
                && self
                    .inner
                    .timelessly(|state| state.lead.followers.remove(&ticket).is_none());
            if self.parker.is_notified() || self.is_late() {
                return;
            }
        }
        self.lead();
    }

    fn is_late(&self) -> bool {
        self.deadline
            .is_some_and(|deadline| deadline <= Instant::now())
    }

    /// For a follower: somebody else's turns may be short of its answer.
    fn spin_until_notified(&self) {
        if self.inner.spin.is_zero() {
            return;
        }
        let until = Instant::now() + self.inner.spin;
        while !self.parker.is_notified() && Instant::now() < until {
            // Whoever is waited for may need this very processor.
            std::thread::yield_now();
        }
    }

    fn lead(&self) {
        let inner = self.inner;
        self.spin();
        let deadline = self
            .deadline
            .map_or(NEVER, |deadline| inner.clock.time(deadline));
        let mut flushed = Flushed::All;
        while !self.parker.is_notified() {
            let trouble = match self.sleep(deadline, flushed) {
                Some(Woken::Trouble) => Trouble::Likely,
                Some(Woken::Alarm) if self.parker.is_notified() => return,
                _ => Trouble::Unknown,
            };
            let mut done = inner.turn(trouble);
            while done.more && !self.parker.is_notified() && !self.is_late() {
                done = inner.turn(Trouble::Unknown);
            }
            flushed = done.flushed;
            if self.is_late() {
                return;
            }
        }
    }

    fn spin(&self) {
        if self.inner.spin.is_zero() {
            return;
        }
        let until = Instant::now() + self.inner.spin;
        while !self.parker.is_notified() && Instant::now() < until {
            let done = self.inner.turn(Trouble::Unknown);
            if !done.more {
                // As above.
                std::thread::yield_now();
            }
        }
    }

    /// Sleeps until something is to be done; `None` if something is already.
    fn sleep(&self, deadline: Time, flushed: Flushed) -> Option<Woken> {
        let inner = self.inner;
        let (until, now, writable) = inner.quietly(|state, now| {
            let writable = match state.blocked {
                Some(Block::Writable(descriptor)) => Some(descriptor),
                _ => None,
            };
            (state.lead_until(now, deadline, flushed), now, writable)
        });
        let until = until?;
        if !self.parker.begin_sleep() {
            return Some(Woken::Alarm);
        }
        let timeout = (until < NEVER).then(|| Duration::from_nanos(until.since(now)));
        let woken = sleep(&*inner.datapath, &inner.leader_alarm, writable, timeout);
        self.parker.end_sleep();
        inner.timelessly(|state| {
            state.lead.seat = Seat::Awake;
            if woken == Woken::Time {
                state.fired(inner.clock.now(), until);
            }
        });
        Some(woken)
    }
}

impl State {
    /// A driver woke up for a timer.
    pub(crate) fn fired(&mut self, now: Time, due: Time) {
        let late = now.since(due);
        self.counters.late_timers += u64::from(late > MILLISECOND_NS);
        self.lateness.observe(late, &mut self.core);
    }
}
