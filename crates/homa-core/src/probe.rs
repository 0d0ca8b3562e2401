//! Asking about silence (`docs/protocol.md` §7, §14, §16): RESENDs by a
//! receiver that misses bytes, NEED_ACKs by a server that wants to forget.
//!
//! Each peer has a queue of RPCs to ask about and a number of probes it may be
//! sent per interval, so that a thousand RPCs to a dead peer cost what a few
//! do; the RPCs take turns.

use homa_wire::{Body, Packet, Resend};

use crate::config::Settings;
use crate::endpoint::{Control, Endpoint};
use crate::incoming::Memory;
use crate::mechanism::Mechanisms;
use crate::rpc::{Phase, Ties};
use crate::table::{Links, List};
use crate::time::Time;

pub(crate) struct Probes {
    /// RPCs in the queues of their peers.
    rpc_links: Links,
    peer_links: Links,
    /// Peers that may be sent probes.
    ready: List,
    /// Peers that have had their share of this interval.
    deferred: List,
    /// When the deferred get their next share.
    share_at: Time,
    interval_ns: u64,
}

impl Probes {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            rpc_links: Links::with_capacity(settings.max_rpcs),
            peer_links: Links::with_capacity(settings.max_peers),
            ready: List::default(),
            deferred: List::default(),
            share_at: Time::ZERO,
            interval_ns: settings.resend_interval_ns,
        }
    }

    /// Whether an RPC is in the queue of its peer.
    pub(crate) fn contains(&self, slot: u32) -> bool {
        self.rpc_links.contains(slot)
    }

    /// An RPC is over.
    pub(crate) fn forget(&mut self, slot: u32, queue: &mut List) {
        self.rpc_links.remove(queue, slot);
    }

    /// A peer is forgotten; it has no RPCs.
    pub(crate) fn forget_peer(&mut self, peer: u32) {
        if !self.peer_links.contains(peer) {
            return;
        }
        // It is in one of the two lists; popping until it is gone would lose
        // others, so look where it is.
        let in_ready = self.peer_links.iter(&self.ready).any(|at| at == peer);
        let list = if in_ready {
            &mut self.ready
        } else {
            &mut self.deferred
        };
        self.peer_links.remove(list, peer);
    }

    /// Whether no peer may be sent a probe now.
    pub(crate) fn is_quiet(&self) -> bool {
        self.ready.is_empty()
    }

    /// When the peers that were deferred get their next share.
    pub(crate) fn next_share_at(&self) -> Option<Time> {
        (!self.deferred.is_empty()).then_some(self.share_at)
    }

    fn defer(&mut self, now: Time, peer: u32) {
        let epoch = now.as_nanos() / self.interval_ns + 1;
        self.share_at = Time::from_nanos(epoch.saturating_mul(self.interval_ns));
        self.peer_links.remove(&mut self.ready, peer);
        self.peer_links.push_back(&mut self.deferred, peer);
    }

    /// If a new interval has begun, everybody may be asked again. Says whether
    /// anybody had to wait for that.
    pub(crate) fn new_share(&mut self, now: Time) -> bool {
        if self.deferred.is_empty() || now < self.share_at {
            return false;
        }
        while let Some(peer) = self.peer_links.pop_front(&mut self.deferred) {
            self.peer_links.push_back(&mut self.ready, peer);
        }
        true
    }
}

impl Endpoint {
    /// Puts an RPC into the queue of those to ask its peer about.
    pub(crate) fn ask(&mut self, now: Time, slot: u32) {
        let rotate = self.uses(Mechanisms::RESEND_ROTATION);
        let Some(rpc) = self.rpcs.slot_mut(slot) else {
            return;
        };
        if self.probes.rpc_links.contains(slot) {
            return;
        }
        let Some(peer) = self.peers.slot_mut(rpc.peer) else {
            return;
        };
        self.control = Control::Possible;
        rpc.ties = Ties::Perhaps;
        rpc.silence.cursor = 0;
        rpc.silence.probed_at = now;
        rpc.silence.arrived_by_then = self.counters.received_bytes;
        if rotate {
            self.probes.rpc_links.push_back(&mut peer.probes, slot);
        } else {
            self.probes.rpc_links.push_front(&mut peer.probes, slot);
        }
        self.probes
            .peer_links
            .push_back(&mut self.probes.ready, rpc.peer);
    }

    /// The next probe that may be sent.
    pub(crate) fn probe_packet(&mut self, now: Time) -> Option<(u32, Packet)> {
        loop {
            let at = self.probes.ready.front()?;
            let Some(slot) = self.peers.slot(at).and_then(|peer| peer.probes.front()) else {
                self.probes.peer_links.remove(&mut self.probes.ready, at);
                continue;
            };
            if !self.take_probe_token(now, at) {
                self.counters.probes_deferred += 1;
                self.probes.defer(now, at);
                continue;
            }
            if let Some(body) = self.probe_body(slot)
                && let Some(rpc) = self.rpcs.slot(slot)
            {
                let packet = Packet::new(rpc.local_port, rpc.remote_port, rpc.id.to_sender(), body);
                return Some((at, packet));
            }
            self.return_probe_token(at);
        }
    }

    fn take_probe_token(&mut self, now: Time, at: u32) -> bool {
        if !self.uses(Mechanisms::RESEND_LIMIT) {
            return true;
        }
        let epoch = now.as_nanos() / self.settings.resend_interval_ns;
        let share = self.settings.peer_probes;
        let Some(peer) = self.peers.slot_mut(at) else {
            return false;
        };
        if peer.probe_epoch != epoch {
            peer.probe_epoch = epoch;
            peer.probe_tokens = share;
        }
        let left = peer.probe_tokens.checked_sub(1);
        peer.probe_tokens = left.unwrap_or(0);
        left.is_some()
    }

    fn return_probe_token(&mut self, at: u32) {
        if let Some(peer) = self.peers.slot_mut(at) {
            peer.probe_tokens += 1;
        }
    }

    /// What to ask about the RPC now; `None` if there is nothing to ask. The
    /// RPC leaves the queue with its last packet.
    fn probe_body(&mut self, slot: u32) -> Option<Body> {
        let rpc = self.rpcs.slot_mut(slot)?;
        let (client, phase) = (rpc.is_client(), rpc.phase);
        let asks_for_ack = !client && phase == Phase::Outgoing;
        let body = if asks_for_ack {
            self.settings
                .mechanisms
                .has(Mechanisms::NEED_ACK)
                .then_some(Body::NeedAck)
        } else if self.settings.mechanisms.has(Mechanisms::RESEND) {
            self.next_resend(slot).map(Body::Resend)
        } else {
            None
        };
        if body.is_none() {
            self.leave_queue(slot);
        } else if asks_for_ack || self.next_resend_is_last(slot) {
            self.leave_queue(slot);
            self.count_unanswered(slot);
        }
        body
    }

    /// The next range of the RPC's RESEND set; moves the cursor behind it.
    fn next_resend(&mut self, slot: u32) -> Option<Resend> {
        let highest = self.settings.control_priority();
        let rpc = self.rpcs.slot_mut(slot)?;
        let priority = rpc.silence.priority.min(highest);
        let message = &rpc.incoming;
        if message.memory == Memory::Awaited {
            return None;
        }
        if rpc.phase == Phase::Outgoing || (rpc.phase == Phase::Incoming && message.received == 0) {
            rpc.silence.cursor = u32::MAX;
            return Some(Resend {
                offset: 0,
                length: None,
                priority,
            });
        }
        let missing = message.missing_from(rpc.silence.cursor, &self.ranges)?;
        rpc.silence.cursor = missing.end;
        Some(Resend {
            offset: missing.start,
            length: Some(missing.end - missing.start),
            priority,
        })
    }

    fn next_resend_is_last(&self, slot: u32) -> bool {
        self.rpcs.slot(slot).is_none_or(|rpc| {
            rpc.silence.cursor == u32::MAX
                || rpc
                    .incoming
                    .missing_from(rpc.silence.cursor, &self.ranges)
                    .is_none()
        })
    }

    fn leave_queue(&mut self, slot: u32) {
        let Some(rpc) = self.rpcs.slot(slot) else {
            return;
        };
        if let Some(peer) = self.peers.slot_mut(rpc.peer) {
            self.probes.rpc_links.remove(&mut peer.probes, slot);
        }
    }

    /// All of an RPC's probe is sent: from now on silence is an answer.
    fn count_unanswered(&mut self, slot: u32) {
        let highest = self.settings.control_priority();
        let Some(rpc) = self.rpcs.slot_mut(slot) else {
            return;
        };
        rpc.silence.unanswered = rpc.silence.unanswered.saturating_add(1);
        rpc.silence.priority = highest;
        if let Some(peer) = self.peers.slot_mut(rpc.peer) {
            peer.unanswered = peer.unanswered.saturating_add(1);
        }
    }
}
