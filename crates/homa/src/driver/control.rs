//! What callers say to the driver: wake me at a time, end when all is done.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// Shared by a driver and the endpoint that it drives.
#[derive(Default)]
pub(crate) struct Control {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    driver: Option<Waker>,
    /// Who is to be woken when, in order of time; the number tells equal times
    /// apart. Only callers that the engine does not know yet are here.
    alarms: BTreeMap<(Instant, u64), Waker>,
    alarms_made: u64,
    /// The last handle is gone: the driver ends when all is done, or then.
    close_at: Option<Instant>,
    ended: bool,
}

impl Control {
    /// Locks, also after a panic of another holder: each change is one step.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whom to wake when something is said.
    pub(super) fn register(&self, waker: &Waker) {
        let mut state = self.state();
        if !state
            .driver
            .as_ref()
            .is_some_and(|old| old.will_wake(waker))
        {
            state.driver = Some(waker.clone());
        }
    }

    /// Wakes whose time has come. Says when the next one's comes, and when to
    /// close.
    pub(super) fn look(&self) -> (Option<Instant>, Option<Instant>) {
        let mut due = Vec::new();
        let mut state = self.state();
        if !state.alarms.is_empty() {
            let now = Instant::now();
            while let Some(first) = state.alarms.first_entry()
                && first.key().0 <= now
            {
                due.push(first.remove());
            }
        }
        let next = state.alarms.first_key_value().map(|((at, _), _)| *at);
        let close_at = state.close_at;
        drop(state);
        due.into_iter().for_each(Waker::wake);
        (next, close_at)
    }

    /// Lets the driver end when nothing is under way, or at `at`.
    pub(crate) fn close_at(&self, at: Instant) {
        let mut state = self.state();
        state.close_at = Some(at);
        wake(state);
    }

    /// The driver ends now, or has ended: everybody who waits for a time looks
    /// again.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        let alarms = std::mem::take(&mut state.alarms);
        wake(state);
        alarms.into_values().for_each(Waker::wake);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.state().ended
    }
}

/// Wakes the driver, without the lock.
fn wake(mut state: MutexGuard<'_, State>) {
    let driver = state.driver.take();
    drop(state);
    if let Some(driver) = driver {
        driver.wake();
    }
}

/// Ready at a time, or when there is no driver any more.
pub(crate) struct Alarm {
    control: Arc<Control>,
    at: Instant,
    /// Its place among the alarms, once it has one.
    key: Option<(Instant, u64)>,
}

impl Alarm {
    pub(crate) fn new(control: Arc<Control>, at: Instant) -> Self {
        Self {
            control,
            at,
            key: None,
        }
    }
}

impl Future for Alarm {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if Instant::now() >= self.at {
            return Poll::Ready(());
        }
        let control = self.control.clone();
        let mut state = control.state();
        if state.ended {
            return Poll::Ready(());
        }
        let key = self.key.unwrap_or_else(|| {
            state.alarms_made += 1;
            (self.at, state.alarms_made)
        });
        self.key = Some(key);
        state.alarms.insert(key, cx.waker().clone());
        let is_first = state
            .alarms
            .first_key_value()
            .is_some_and(|(first, _)| *first == key);
        if is_first {
            wake(state);
        }
        Poll::Pending
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.control.state().alarms.remove(&key);
        }
    }
}
