//! What happens when nothing does (`docs/protocol.md` §7, §14, §16).
//!
//! Every RPC has at most one timer, set to the next time at which it could
//! need a look. Packets do not move it: when it fires, the RPC's own times say
//! whether something is due, and it is set again only if it may ever be. So a
//! timer costs per expiry, not per packet and not per RPC alive.

use crate::config::{Settings, time_for};
use crate::endpoint::{Control, Endpoint};
use crate::mechanism::Mechanisms;
use crate::rpc::{Client, Ending, Failure, Kind, Phase, Rpc};
use crate::time::Time;
use crate::tombstone::Epitaph;

/// How many times longer than usual silence may last on a link that is full.
/// By then the three RESENDs that a time-out needs still take less than half a
/// second at the defaults.
const MOST_EXCUSED: u64 = 8;

/// Why the endpoint wants to be called again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerReason {
    /// An RPC may have been silent for too long.
    Silence,
    /// The NIC will have room for DATA.
    Pacer,
    /// The oldest incoming message gets its share.
    FifoGrant,
    /// Peers may be asked again.
    ProbeShare,
}

impl Endpoint {
    /// When the next timer fires, and why; the host then calls
    /// [`Endpoint::timeout`] and asks for outputs. May be in the past.
    pub fn next_timeout(&self, now: Time) -> Option<(Time, TimerReason)> {
        [
            self.timers.peek().map(|(_, at)| (at, TimerReason::Silence)),
            self.sending
                .wait_until(now, &self.pacer)
                .map(|at| (at, TimerReason::Pacer)),
            self.fifo_grant_at().map(|at| (at, TimerReason::FifoGrant)),
            self.probes
                .next_share_at()
                .map(|at| (at, TimerReason::ProbeShare)),
        ]
        .into_iter()
        .flatten()
        .min_by_key(|(at, _)| *at)
    }

    /// Time has passed. Costs one step for each timer that fires; at most
    /// `most` fire in one call, so that a host can bound its turn. Says
    /// whether more are due.
    pub fn timeout(&mut self, now: Time, most: u32) -> MoreDue {
        if self.probes.new_share(now) {
            self.control = Control::Possible;
        }
        for _ in 0..most {
            match self.timers.peek() {
                Some((slot, at)) if at <= now => {
                    self.timers.pop();
                    if let Some(next) = self.look_at(now, slot) {
                        self.arm(slot, next);
                    }
                }
                _ => return MoreDue::No,
            }
        }
        MoreDue::Yes
    }

    /// The RPC's timer fired: does what is due and says when to look again.
    fn look_at(&mut self, now: Time, slot: u32) -> Option<Time> {
        let rpc = self.rpcs.slot(slot)?;
        match (rpc.is_client(), rpc.phase) {
            (_, Phase::Ended) | (false, Phase::InService) => None,
            (false, Phase::Outgoing) => self.look_for_ack(now, slot),
            (true, _) if self.is_held(rpc) => self.look_at_held(now, slot),
            _ => self.look_for_data(now, slot),
        }
    }

    /// A receiver: asks again after silence, gives up after more of it.
    fn look_for_data(&mut self, now: Time, slot: u32) -> Option<Time> {
        let rpc = self.rpcs.slot(slot)?;
        if !rpc.expects() {
            // Whoever makes it expect something sets the timer again.
            return self.look_at_waiting(now, slot);
        }
        let (since, probed_at) = (rpc.silence.since, rpc.silence.probed_at);
        if let Some(ending) = self.has_timed_out(now, slot) {
            if ending == Ending::Released {
                self.counters.requests_discarded += 1;
            }
            self.end(slot, ending);
            return None;
        }
        let (from, wait) = if probed_at > since {
            (probed_at, self.settings.resend_interval_ns)
        } else {
            (since, self.settings.resend_ns)
        };
        if from + wait > now {
            return Some(from + wait);
        }
        if let Some(later) = self.excused_until(now, slot, from, wait) {
            self.counters.resends_put_off += 1;
            return Some(later);
        }
        self.counters.resend_rounds += 1;
        self.ask(now, slot);
        Some(now + self.settings.resend_interval_ns)
    }

    /// What is missing since `from` may be in the queues of the network behind
    /// other messages, which go first: time in which these took up the link does
    /// not count as silence, within bounds. Says when to look again, if there
    /// was less silence than `wait`.
    fn excused_until(&self, now: Time, slot: u32, from: Time, wait: u64) -> Option<Time> {
        let rate = self.settings.link_rate_bps?;
        let silence = &self.rpcs.slot(slot)?.silence;
        let bound = from + wait.saturating_mul(MOST_EXCUSED);
        if now >= bound || !self.uses(Mechanisms::BUSY_LINK) {
            return None;
        }
        let arrived = self.counters.received_bytes - silence.arrived_by_then;
        let silent = now.since(from).saturating_sub(time_for(arrived, rate));
        let missing = wait.checked_sub(silent).filter(|missing| *missing > 0)?;
        Some((now + missing).min(bound))
    }

    /// A request that waits for memory or for its turn to be granted is asked
    /// about nothing and may wait for long; it ends when its whole peer is
    /// presumed dead. A client that lives is heard: it asks, and is told that we
    /// are busy. (A server that waits for our grants need not be heard, so no
    /// response ends like this.)
    fn look_at_waiting(&mut self, now: Time, slot: u32) -> Option<Time> {
        let rpc = self.rpcs.slot(slot)?;
        let waits = !rpc.is_client() && !rpc.incoming.is_complete();
        if !waits || !self.uses(Mechanisms::TIMEOUT) {
            return None;
        }
        let peer = self.peers.slot(rpc.peer)?;
        if now.since(peer.last_heard) < self.settings.reclaim_ns {
            return Some(now + self.settings.timeout_ns);
        }
        self.counters.requests_discarded += 1;
        self.end(slot, Ending::Released);
        None
    }

    /// Whether silence has lasted long enough and was really asked about: by
    /// this RPC, or by others while the whole peer was silent.
    ///
    /// A peer that is heard of is not dead, whatever it owes this RPC: with
    /// ten thousand RPCs under way an answer can wait in queues for longer
    /// than `timeout_ns`. Of such a peer an RPC is given up after `patience_ns`.
    fn has_timed_out(&mut self, now: Time, slot: u32) -> Option<Ending> {
        let rpc = self.rpcs.slot(slot)?;
        let timeout = self.settings.timeout_ns;
        let silence = now.since(rpc.silence.since);
        if !self.uses(Mechanisms::TIMEOUT) || silence < timeout {
            return None;
        }
        let peer = self.peers.slot(rpc.peer)?;
        let asked = rpc.silence.unanswered >= self.settings.timeout_resends;
        if self.uses(Mechanisms::PEER_SILENCE) {
            let silent = now.since(peer.last_heard) >= timeout;
            let all_asked = peer.unanswered >= self.settings.timeout_resends;
            let over = if silent {
                asked || all_asked
            } else {
                asked && silence >= self.settings.patience_ns
            };
            if !over {
                return None;
            }
        } else if !asked {
            return None;
        }
        if !asked {
            self.counters.peer_timeouts += 1;
        }
        let client = rpc.is_client();
        self.counters.timeouts += u64::from(client);
        Some(if client {
            Ending::Failed(Failure::Timeout)
        } else {
            Ending::Released
        })
    }

    /// A server: asks for the ack less and less often, forgets the response of
    /// a client that is presumed dead.
    fn look_for_ack(&mut self, now: Time, slot: u32) -> Option<Time> {
        let rpc = self.rpcs.slot(slot)?;
        let peer = self.peers.slot(rpc.peer)?;
        let settings = &self.settings;
        let silent = now.since(peer.last_heard) >= settings.reclaim_ns
            && rpc.silence.unanswered >= settings.timeout_resends;
        let stalled = now.since(rpc.silence.since) >= settings.stall_ns;
        if (silent || stalled) && self.uses(Mechanisms::RECLAIM) {
            self.counters.reclaimed += 1;
            self.bury(now, slot, Epitaph::Silent);
            self.end(slot, Ending::Released);
            return None;
        }
        if !rpc.outgoing.fully_sent() {
            // It waits for grants. A peer that lives will send them; one that
            // is silent as a whole is asked whether it is still there.
            if now.since(peer.last_heard) >= settings.timeout_ns {
                self.ask(now, slot);
            }
            return Some(now + self.settings.timeout_ns);
        }
        let wait = self.need_ack_interval(rpc.silence.unanswered);
        let ask_at = if rpc.silence.probed_at > rpc.silence.sent_at {
            rpc.silence.probed_at + wait
        } else {
            rpc.silence.sent_at + settings.request_ack_ns
        };
        if ask_at > now {
            return Some(ask_at);
        }
        self.counters.need_acks_repeated += u64::from(rpc.silence.unanswered > 0);
        self.ask(now, slot);
        Some(now + wait)
    }

    fn need_ack_interval(&self, asked: u32) -> u64 {
        let first = self.settings.request_ack_ns;
        if !self.uses(Mechanisms::NEED_ACK_BACKOFF) {
            return first;
        }
        first
            .saturating_mul(1 << asked.min(16))
            .min(self.settings.timeout_ns)
    }

    /// A message that waits to learn what its peer accepts: asks again.
    fn look_at_held(&mut self, now: Time, slot: u32) -> Option<Time> {
        if let Some(ending) = self.has_timed_out(now, slot) {
            self.end(slot, ending);
            return None;
        }
        self.ask_features(slot);
        Some(now + self.settings.resend_interval_ns)
    }

    /// Something is expected from now on: silence begins.
    pub(crate) fn expect(&mut self, now: Time, slot: u32) {
        let Some(rpc) = self.rpcs.slot_mut(slot) else {
            return;
        };
        rpc.silence.heard(now);
        rpc.silence.arrived_by_then = self.counters.received_bytes;
        self.arm(slot, now + self.settings.resend_ns);
    }
}

impl Rpc {
    /// The whole request or response has been handed to the network. Says
    /// after how many nanoseconds to look whether the peer was silent.
    pub(crate) fn sent_whole(&mut self, now: Time, settings: &Settings) -> u64 {
        if self.is_client() {
            self.silence.heard(now);
            return settings.resend_ns;
        }
        debug_assert!(self.client == Client::Waiting && self.kind == Kind::Call);
        self.silence.sent_at = now;
        self.silence.since = now;
        settings.request_ack_ns
    }
}

/// Whether timers are left that are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoreDue {
    /// None is.
    No,
    /// Call [`Endpoint::timeout`] again.
    Yes,
}
