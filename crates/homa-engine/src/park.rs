//! A thread that waits for something, and may have to drive meanwhile.
//!
//! It is either parked (another thread drives), asleep on the descriptors (it
//! drives), or neither; being woken ends the first two and is remembered in
//! the third, so that no wake-up is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Wake;
use std::thread::{self, Thread};
use std::time::Instant;

use crate::sleep::Alarm;

/// What the thread waits for may have happened.
const NOTIFIED: u8 = 1;
/// The thread is to drive.
const PROMOTED: u8 = 2;
/// It sleeps on the descriptors and the leader's alarm.
const SLEEPS: u8 = 4;
/// It is parked.
const PARKED: u8 = 8;

#[derive(Debug)]
pub(crate) struct Parker {
    state: AtomicU8,
    thread: Thread,
    /// The alarm that wakes whichever thread drives.
    alarm: Arc<Alarm>,
}

impl Parker {
    pub(crate) fn new(alarm: Arc<Alarm>) -> Arc<Self> {
        Arc::new(Self {
            state: AtomicU8::new(0),
            thread: thread::current(),
            alarm,
        })
    }

    /// Takes the notification, if there is one.
    pub(crate) fn take_notice(&self) -> bool {
        self.state.fetch_and(!NOTIFIED, Ordering::AcqRel) & NOTIFIED != 0
    }

    pub(crate) fn is_notified(&self) -> bool {
        self.state.load(Ordering::Acquire) & NOTIFIED != 0
    }

    /// Makes a parked thread the one that drives.
    pub(crate) fn promote(&self) {
        self.signal(PROMOTED);
    }

    fn signal(&self, what: u8) {
        let before = self.state.fetch_or(what, Ordering::AcqRel);
        if before & PARKED != 0 {
            self.thread.unpark();
        } else if before & SLEEPS != 0 && before & NOTIFIED == 0 {
            self.alarm.ring();
        }
    }

    /// Says that the thread is about to sleep on the descriptors; `false` if
    /// it must not since it has been notified.
    pub(crate) fn begin_sleep(&self) -> bool {
        let before = self.state.fetch_or(SLEEPS, Ordering::AcqRel);
        if before & NOTIFIED != 0 {
            self.end_sleep();
            return false;
        }
        true
    }

    pub(crate) fn end_sleep(&self) {
        self.state.fetch_and(!SLEEPS, Ordering::AcqRel);
    }

    /// Parks the thread until it is notified or promoted, or until then. Takes
    /// the promotion.
    pub(crate) fn park(&self, until: Option<Instant>) {
        self.state.fetch_or(PARKED, Ordering::AcqRel);
        while self.state.load(Ordering::Acquire) & (NOTIFIED | PROMOTED) == 0 {
            match until {
                None => thread::park(),
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        break;
                    }
                    thread::park_timeout(left);
                }
            }
        }
        self.state.fetch_and(!(PARKED | PROMOTED), Ordering::AcqRel);
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.signal(NOTIFIED);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.signal(NOTIFIED);
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::sleep::{Woken, rest};

    #[test]
    fn wake__before_sleeping_is_not_lost() {
        let alarm = Arc::new(Alarm::new().unwrap());
        let parker = Parker::new(alarm.clone());
        parker.clone().wake();
        assert!(!parker.begin_sleep());
        parker.park(None);
        assert!(parker.take_notice());
        assert!(!parker.take_notice());
        assert_eq!(rest(&alarm, Some(Duration::ZERO)), Woken::Time);
    }

    #[test]
    fn wake__while_asleep_rings_the_alarm() {
        let alarm = Arc::new(Alarm::new().unwrap());
        let parker = Parker::new(alarm.clone());
        assert!(parker.begin_sleep());
        parker.wake_by_ref();
        assert_eq!(rest(&alarm, None), Woken::Alarm);
        parker.end_sleep();
        assert!(parker.is_notified());
    }

    #[test]
    fn park__ends_by_promotion_from_another_thread() {
        let alarm = Arc::new(Alarm::new().unwrap());
        let parker = Parker::new(alarm);
        let other = parker.clone();
        let thread = thread::spawn(move || {
            thread::sleep(Duration::from_millis(5));
            other.promote();
        });
        parker.park(None);
        assert!(!parker.is_notified());
        thread.join().unwrap();
        let until = Instant::now() + Duration::from_millis(2);
        parker.park(Some(until));
        assert!(Instant::now() >= until, "the promotion was taken");
    }
}
