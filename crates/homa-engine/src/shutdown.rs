//! The end: gracefully, by finishing what is under way, or at once.

use std::task::{Context, Poll};
use std::time::Instant;

use homa_wire::AbortCode;

use crate::calls::Stage;
use crate::flush::Flushed;
use crate::inner::Inner;
use crate::rpcs::{Role, ServiceStage};
use crate::state::{Life, State};
use crate::{CallError, Drained};

/// RPCs ended between two flushes: the core keeps at most 64 replies waiting
/// for one peer.
const ENDS_AT_ONCE: usize = 32;

/// Flushes that a full socket may hold up the end.
const LAST_FLUSHES: usize = 16;

impl State {
    /// Takes no more requests, and refuses those that no application has.
    fn begin_shutdown(&mut self, now: homa_core::Time) {
        if self.life != Life::Open {
            return;
        }
        self.life = Life::Draining;
        tracing::debug!("draining");
        self.listeners.drain();
        for rpc in self.rpcs.server_handles() {
            let unseen = self.rpcs.service_mut(rpc).is_some_and(|service| {
                matches!(service.stage, ServiceStage::Arriving | ServiceStage::Queued)
            });
            if unseen {
                self.counters.requests_shut_out += 1;
                self.refuse(now, rpc, AbortCode::ShuttingDown);
            }
        }
        self.listeners.wake_all(&mut self.wakes);
        self.check_drained();
    }
}

impl Inner {
    pub(crate) fn begin_shutdown(&self) {
        self.with(State::begin_shutdown);
        self.flush_and_settle();
    }

    pub(crate) fn poll_drained(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.timelessly(|state| {
            if state.is_drained() {
                return Poll::Ready(());
            }
            let waiters = &mut state.drain_waiters;
            if !waiters.iter().any(|known| known.will_wake(cx.waker())) {
                waiters.push(cx.waker().clone());
            }
            Poll::Pending
        })
    }

    pub(crate) fn shutdown(&self, deadline: Instant) -> Drained {
        self.begin_shutdown();
        let drained = self.block_on(Some(deadline), |cx| self.poll_drained(cx));
        self.close();
        match drained {
            Some(()) => Drained::Yes,
            None => Drained::No,
        }
    }

    /// Ends everything now. The other ends are told as far as the socket takes
    /// it.
    pub(crate) fn close(&self) {
        let (calls, services, peers) = self.quietly(|state, now| {
            state.begin_shutdown(now);
            if state.life == Life::Closed {
                return Default::default();
            }
            state.life = Life::Closed;
            state.listeners.wake_all(&mut state.wakes);
            state.admission.close(&mut state.wakes);
            state.wakes.append(&mut state.drain_waiters);
            let calls = state.calls.keys();
            (calls, state.rpcs.server_handles(), state.peers.handles())
        });
        for some in calls.chunks(ENDS_AT_ONCE) {
            self.quietly(|state, now| {
                for key in some {
                    if let Some(entry) = state.calls.get_mut(*key)
                        && let Stage::Waiting(_) = entry.stage
                    {
                        state.fail_call(now, *key, CallError::ShutDown);
                    }
                }
            });
            self.last_flush();
        }
        for some in services.chunks(ENDS_AT_ONCE) {
            self.quietly(|state, now| {
                for rpc in some {
                    if let Some(entry) = state.rpcs.get(*rpc)
                        && let Role::Server(_) = entry.role
                    {
                        state.refuse(now, *rpc, AbortCode::ShuttingDown);
                    }
                }
            });
            self.last_flush();
        }
        for some in peers.chunks(ENDS_AT_ONCE) {
            self.timelessly(|state| {
                for peer in some {
                    state.core.flush_acks(*peer, state.own.port);
                }
            });
            self.last_flush();
        }
        self.settle();
    }

    fn last_flush(&self) {
        for _ in 0..LAST_FLUSHES {
            if self.flush() == Flushed::All {
                return;
            }
        }
    }
}
