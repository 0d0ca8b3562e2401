//! Sending what the core wants to send: chosen under the state's lock, sent
//! after its release.
//!
//! One thread sends at a time, so that the packets of a peer leave in the
//! order in which they were chosen. A thread that finds another one sending
//! leaves its packets to it and does not wait; the other looks again before it
//! stops, so nothing is left behind.

use std::sync::TryLockError;
use std::sync::atomic::Ordering;

use homa_core::Time;
use homa_datapath::{Blocked, SendBatch};

use crate::config::Sending;
use crate::inner::Inner;
use crate::state::Block;

/// Batches that one flush sends; what is left goes with the next turn.
const BATCHES: usize = 8;

/// How long to wait after the kernel had no memory for a packet: a device
/// queue of 1000 packets at 10 Gbit/s drains in a millisecond.
const RETRY_NS: u64 = 100_000;

/// Whether anything is left that could be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flushed {
    All,
    More,
    /// Another thread sends, and will look again before it stops.
    Elsewhere,
}

/// For how long a driver leaves what is due to a thread that sends: it may have
/// been put off its processor in the middle, and to look again and again would
/// keep it off. It tells the driver when it has sent and something is left.
const SENDER_NS: u64 = 200_000;

impl Flushed {
    /// When to act on what is due at `due`.
    pub(crate) fn postpone(self, now: Time, due: Time) -> Time {
        match self {
            Self::Elsewhere => due.max(now + SENDER_NS),
            Self::All | Self::More => due,
        }
    }
}

impl Inner {
    /// Sends what there is. When other locks are free, [`Inner::settle`] must
    /// follow.
    pub(crate) fn flush(&self) -> Flushed {
        self.send_wanted.store(true, Ordering::SeqCst);
        let mut flushed = Flushed::All;
        while self.send_wanted.load(Ordering::SeqCst) {
            let mut batch = match self.sending.try_lock() {
                Ok(batch) => batch,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return Flushed::Elsewhere,
            };
            self.send_wanted.store(false, Ordering::SeqCst);
            flushed = self.send_batches(&mut batch);
            if flushed == Flushed::More {
                break;
            }
        }
        flushed
    }

    /// A flush by a thread that does not drive: what it leaves is for the
    /// driver, and so is all with [`Sending::NextTurn`]. Then does what must
    /// follow.
    pub(crate) fn flush_and_settle(&self) {
        if self.when == Sending::NextTurn {
            self.settle();
            self.rouse();
            return;
        }
        let flushed = self.flush();
        self.settle();
        if flushed == Flushed::More {
            self.rouse();
        }
    }

    fn send_batches(&self, batch: &mut SendBatch) -> Flushed {
        for _ in 0..BATCHES {
            let mut held_is_due = false;
            let blocked = self.quietly(|state, now| {
                held_is_due = state.release_at.is_some_and(|at| at <= now);
                // Later packets must not overtake what could not be sent.
                let retry_later = matches!(state.blocked, Some(Block::RetryAt(at)) if at > now);
                if batch.is_empty() {
                    state.blocked = None;
                    state.fill(now, batch, self.tos);
                }
                retry_later
            });
            if blocked || (batch.is_empty() && !held_is_due) {
                return Flushed::All;
            }
            self.datapath.seal(batch);
            let outcome = self.datapath.send(batch);
            if outcome.dropped > 0 {
                self.errors_wanted.store(true, Ordering::Relaxed);
            }
            let release = self.datapath.next_release();
            if outcome.blocked.is_none() && release.is_none() && !held_is_due {
                continue;
            }
            let stuck = self.quietly(|state, now| {
                state.release_at = release.map(|at| self.clock.time(at));
                state.blocked = outcome.blocked.map(|blocked| match blocked {
                    Blocked::UntilWritable(descriptor) => Block::Writable(descriptor),
                    Blocked::NoBuffers => Block::RetryAt(now + RETRY_NS),
                    Blocked::UntilReleased => {
                        Block::RetryAt(state.release_at.unwrap_or(now + RETRY_NS))
                    }
                });
                state.counters.sends_blocked += u64::from(state.blocked.is_some());
                state.blocked
            });
            match stuck {
                // A sleeping driver does not wait for this yet.
                Some(Block::Writable(_)) => {
                    self.rouse();
                    return Flushed::All;
                }
                Some(Block::RetryAt(_)) => return Flushed::All,
                None if batch.is_empty() && held_is_due => return Flushed::More,
                None => {}
            }
        }
        Flushed::More
    }
}
