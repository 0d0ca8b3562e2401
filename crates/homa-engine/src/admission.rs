//! How much may be under way at once, and who is next when there is room:
//! first come, first served.
//!
//! Room that comes back is given to the one who waits longest before it is
//! woken, so that nobody can slip in between, each room wakes one waiter, and
//! a waiter that gives up passes its room on.

use std::collections::BTreeMap;
use std::task::{Poll, Waker};

pub(crate) struct Admission {
    max_calls: u32,
    max_bytes: u64,
    calls: u32,
    bytes: u64,
    next_ticket: u64,
    waiting: BTreeMap<Ticket, Waiting>,
    /// Given room, not picked up yet; with its bytes.
    granted: BTreeMap<Ticket, u64>,
}

/// A place in the queue.
pub(crate) type Ticket = u64;

struct Waiting {
    bytes: u64,
    waker: Waker,
}

impl Admission {
    pub(crate) fn new(max_calls: u32, max_bytes: u64) -> Self {
        Self {
            max_calls,
            max_bytes,
            calls: 0,
            bytes: 0,
            next_ticket: 0,
            waiting: BTreeMap::new(),
            granted: BTreeMap::new(),
        }
    }

    pub(crate) fn calls(&self) -> u32 {
        self.calls
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    fn fits(&self, bytes: u64) -> bool {
        self.calls < self.max_calls && (self.bytes == 0 || self.bytes + bytes <= self.max_bytes)
    }

    fn charge(&mut self, bytes: u64) {
        self.calls += 1;
        self.bytes += bytes;
    }

    /// Takes room now, if there is any that nobody waits for.
    pub(crate) fn take(&mut self, bytes: u64) -> bool {
        let fits = self.waiting.is_empty() && self.fits(bytes);
        if fits {
            self.charge(bytes);
        }
        fits
    }

    /// Room for `bytes`, or a place in the queue for it, kept in `ticket`.
    pub(crate) fn poll(
        &mut self,
        ticket: &mut Option<Ticket>,
        bytes: u64,
        waker: &Waker,
    ) -> Poll<()> {
        match *ticket {
            None => {
                if self.take(bytes) {
                    return Poll::Ready(());
                }
                let place = self.next_ticket;
                self.next_ticket += 1;
                *ticket = Some(place);
                let waker = waker.clone();
                self.waiting.insert(place, Waiting { bytes, waker });
                Poll::Pending
            }
            Some(place) => {
                if self.granted.remove(&place).is_some() {
                    *ticket = None;
                    return Poll::Ready(());
                }
                if let Some(waiting) = self.waiting.get_mut(&place) {
                    waiting.waker.clone_from(waker);
                }
                Poll::Pending
            }
        }
    }

    /// Gives up a place, and the room if it was given.
    pub(crate) fn leave(&mut self, ticket: Ticket, wakes: &mut Vec<Waker>) {
        if let Some(bytes) = self.granted.remove(&ticket) {
            self.release(bytes, wakes);
        } else if self.waiting.remove(&ticket).is_some() {
            // Those behind may fit where this one did not.
            self.serve(wakes);
        }
    }

    /// Room comes back.
    pub(crate) fn release(&mut self, bytes: u64, wakes: &mut Vec<Waker>) {
        self.calls = self.calls.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
        self.serve(wakes);
    }

    fn serve(&mut self, wakes: &mut Vec<Waker>) {
        while let Some(first) = self.waiting.first_entry() {
            let bytes = first.get().bytes;
            if self.calls >= self.max_calls
                || (self.bytes != 0 && self.bytes + bytes > self.max_bytes)
            {
                return;
            }
            let (ticket, waiting) = first.remove_entry();
            self.charge(bytes);
            self.granted.insert(ticket, bytes);
            wakes.push(waiting.waker);
        }
    }

    /// Wakes everybody: there will be no more room.
    pub(crate) fn close(&mut self, wakes: &mut Vec<Waker>) {
        while let Some((_, waiting)) = self.waiting.pop_first() {
            wakes.push(waiting.waker);
        }
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    fn wait(admission: &mut Admission, bytes: u64) -> Ticket {
        let mut ticket = None;
        let polled = admission.poll(&mut ticket, bytes, Waker::noop());
        assert_eq!(polled, Poll::Pending);
        ticket.unwrap()
    }

    fn is_granted(admission: &mut Admission, ticket: Ticket) -> bool {
        let mut ticket = Some(ticket);
        admission.poll(&mut ticket, 0, Waker::noop()).is_ready()
    }

    #[test]
    fn release__room_goes_to_the_first_and_wakes_one() {
        let mut admission = Admission::new(1, 1000);
        let mut wakes = Vec::new();
        assert!(admission.take(10));
        let first = wait(&mut admission, 10);
        let second = wait(&mut admission, 10);
        admission.release(10, &mut wakes);
        assert_eq!(wakes.len(), 1);
        assert!(!admission.take(1), "nobody slips in between");
        assert!(!is_granted(&mut admission, second));
        assert!(is_granted(&mut admission, first));
    }

    #[test]
    fn leave__passes_the_room_on() {
        let mut admission = Admission::new(1, 1000);
        let mut wakes = Vec::new();
        assert!(admission.take(10));
        let first = wait(&mut admission, 10);
        let second = wait(&mut admission, 10);
        admission.release(10, &mut wakes);
        admission.leave(first, &mut wakes);
        assert_eq!(wakes.len(), 2);
        assert!(is_granted(&mut admission, second));
        admission.release(10, &mut wakes);
        assert_eq!((admission.calls(), admission.bytes()), (0, 0));
    }

    #[test]
    fn leave__the_large_one_in_front_lets_small_ones_pass() {
        let mut admission = Admission::new(10, 100);
        let mut wakes = Vec::new();
        assert!(admission.take(60));
        let large = wait(&mut admission, 90);
        let small = wait(&mut admission, 10);
        assert!(
            !is_granted(&mut admission, small),
            "first come first served"
        );
        admission.leave(large, &mut wakes);
        assert!(is_granted(&mut admission, small));
    }

    #[test]
    fn take__a_message_above_the_limit_goes_alone() {
        let mut admission = Admission::new(10, 100);
        let mut wakes = Vec::new();
        assert!(admission.take(500));
        assert!(!admission.take(1));
        admission.release(500, &mut wakes);
        assert!(admission.take(1));
        assert!(!admission.take(500));
    }
}
