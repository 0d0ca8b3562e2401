//! Which calls are worth a look: their wakers say so.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};

/// Slots whose calls were woken since the last look, in that order. A slot may
/// be in it twice, or for a call that is over: a look at it finds nothing.
#[derive(Debug, Default)]
pub(super) struct Ready(Mutex<Vec<usize>>);

impl Ready {
    /// The waker for a slot, good for every call that will be in it.
    pub(super) fn waker(self: &Arc<Self>, slot: usize) -> Waker {
        Waker::from(Arc::new(Bell {
            slot,
            ready: self.clone(),
        }))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Moves all slots to `out`, which is empty.
    pub(super) fn take(&self, out: &mut Vec<usize>) {
        std::mem::swap(&mut *self.lock(), out);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<usize>> {
        // A list of numbers is consistent whatever happened to a holder.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Bell {
    slot: usize,
    ready: Arc<Ready>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ready.lock().push(self.slot);
    }
}

/// Rung when the engine must be driven earlier than its last turn said.
#[derive(Debug, Default)]
pub(super) struct Doorbell(AtomicBool);

impl Doorbell {
    /// Whether it rang since the last time.
    pub(super) fn rang(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

impl Wake for Doorbell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn take__slots_in_the_order_of_their_wakers() {
        let ready = Arc::new(Ready::default());
        let (three, five) = (ready.waker(3), ready.waker(5));
        five.wake_by_ref();
        three.wake();
        five.wake_by_ref();
        let mut out = Vec::new();
        ready.take(&mut out);
        assert_eq!(out, [5, 3, 5]);
        assert!(ready.is_empty());
        five.wake();
        assert!(!ready.is_empty());
    }

    #[test]
    fn rang__once_for_each_time() {
        let bell = Arc::new(Doorbell::default());
        assert!(!bell.rang());
        Waker::from(bell.clone()).wake();
        assert!(bell.rang());
        assert!(!bell.rang());
    }
}
