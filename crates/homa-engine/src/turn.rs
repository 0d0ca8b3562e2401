//! One bounded turn: errors, packets, timers, events, packets to send. What
//! every driver does, whoever it is.

use std::sync::atomic::Ordering;

use homa_core::MoreDue;
use homa_datapath::{ReceiveBatch, Rest};

use crate::arrivals::Arrival;
use crate::events::{MoreEvents, Report};
use crate::flush::Flushed;
use crate::inner::{Inner, lock};
use crate::state::Life;

/// Packets handled before the lock is released for others.
const PACKETS_AT_ONCE: usize = 64;
/// Timers that fire in one turn, of the core and of calls each.
const TIMERS_AT_ONCE: u32 = 64;
/// Events of the core in one turn.
const EVENTS_AT_ONCE: u32 = 1024;
/// Requests to closed ports answered below Homa in one turn.
const REFUSALS_AT_ONCE: usize = 8;
/// Network errors looked at in one turn.
const ERRORS_AT_ONCE: usize = 256;
/// Every so many turns errors are looked for in any case, for drivers that do
/// not learn of them from a descriptor.
const ERRORS_EVERY: u64 = 64;

/// Whether the network may have something to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// A descriptor says so.
    Likely,
    /// Look when nothing arrives.
    Unknown,
}

/// What a turn did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) received: usize,
    /// Something is left to do at once.
    pub(crate) more: bool,
    pub(crate) flushed: Flushed,
}

/// What the packets of a turn left to do.
#[derive(Clone, Copy, Debug, Default)]
struct After {
    more: bool,
    /// Somebody is to be woken.
    wakes: bool,
    /// The datapath held packets back.
    holds: bool,
    /// Turns so far.
    turns: u64,
}

impl Inner {
    pub(crate) fn turn(&self, trouble: Trouble) -> Done {
        let after;
        let (received, rest) = {
            let mut batch = lock(&self.receiving);
            let received = match self.datapath.receive(&mut batch) {
                Ok(received) => received,
                Err(error) => {
                    tracing::error!(%error, "the datapath is broken");
                    drop(batch);
                    self.close();
                    return Done {
                        received: 0,
                        more: false,
                        flushed: Flushed::All,
                    };
                }
            };
            after = self.take_packets(&batch);
            (received, batch.rest())
        };
        if trouble == Trouble::Likely
            || (received == 0 && after.turns.is_multiple_of(ERRORS_EVERY))
            || (self.errors_wanted.load(Ordering::Relaxed)
                && self.errors_wanted.swap(false, Ordering::Relaxed))
        {
            self.take_errors();
        }
        if after.wakes {
            // Before anything is sent: who waits may be on another core.
            self.settle();
        }
        let flushed = self.flush();
        let release = self.datapath.next_release();
        if after.holds || release.is_some() {
            self.timelessly(|state| state.release_at = release.map(|at| self.clock.time(at)));
        }
        self.settle();
        Done {
            received,
            more: after.more || flushed == Flushed::More || (received > 0 && rest == Rest::Unknown),
            flushed,
        }
    }

    /// Handles a received batch and what is due.
    fn take_packets(&self, batch: &ReceiveBatch) -> After {
        let mut packets = batch.iter();
        let mut left = batch.len();
        let mut refused = [const { None }; REFUSALS_AT_ONCE];
        let mut refusals = 0;
        loop {
            let last = left <= PACKETS_AT_ONCE;
            let after = self.quietly(|state, now| {
                for (bytes, meta) in packets.by_ref().take(PACKETS_AT_ONCE) {
                    if state.arrive(now, bytes, meta) == Arrival::Refuse
                        && let Some(place) = refused.get_mut(refusals)
                    {
                        *place = Some((bytes, meta.path));
                        refusals += 1;
                    }
                }
                if !last {
                    return After::default();
                }
                state.counters.turns += 1;
                state.counters.empty_turns += u64::from(batch.is_empty());
                let timers = state.core.timeout(now, TIMERS_AT_ONCE);
                state.expire_calls(now, TIMERS_AT_ONCE);
                let events = state.take_events(now, EVENTS_AT_ONCE);
                state.counters.packets_refused += refusals as u64;
                After {
                    more: timers == MoreDue::Yes || events == MoreEvents::Yes,
                    wakes: !state.wakes.is_empty(),
                    holds: state.release_at.is_some(),
                    turns: state.counters.turns,
                }
            });
            if last {
                for (bytes, path) in refused.iter().flatten() {
                    let _ = self.datapath.refuse(path, bytes);
                }
                return after;
            }
            left -= PACKETS_AT_ONCE;
            // Grants must not wait for the rest of a long batch.
            self.flush();
        }
    }

    fn take_errors(&self) {
        let mut reports = Vec::new();
        let mut lost = 0_u64;
        self.datapath.errors(&mut |error| {
            if reports.len() < ERRORS_AT_ONCE {
                reports.push(Report::new(error.remote, error.kind, error.quoted));
            } else {
                lost += 1;
            }
        });
        if reports.is_empty() {
            return;
        }
        self.quietly(|state, now| {
            for report in &reports {
                state.network_error(now, report);
            }
            state.counters.network_errors += lost;
            state.counters.network_errors_ignored += lost;
            let _ = state.take_events(now, u32::MAX);
        });
    }

    /// A turn for a driver outside: it looks at errors whenever nothing
    /// arrives, since that is what a woken driver without packets has come for.
    pub(crate) fn outside_turn(&self) -> Done {
        let done = self.turn(Trouble::Unknown);
        if done.received == 0 && self.timelessly(|state| state.life != Life::Closed) {
            self.take_errors();
            self.settle();
            let flushed = self.flush();
            return Done {
                more: done.more || flushed == Flushed::More,
                flushed,
                ..done
            };
        }
        done
    }
}
