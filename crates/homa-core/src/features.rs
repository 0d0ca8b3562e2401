//! The extensions (`docs/protocol.md` §20): which a peer has, messages that
//! must wait until that is known, and what a peer's restart means.
//!
//! A peer's features come with its first CUTOFFS, ACK or RPC_UNKNOWN. A message
//! that the standard does not allow (above 1,000,000 bytes, or one-way) waits
//! for that; a NEED_ACK for an RPC that never was makes any peer send an ACK.

use homa_wire::{Body, Features, Packet, RpcId, SenderId};

use crate::config::{STANDARD_MESSAGE_BYTES, Settings};
use crate::endpoint::Endpoint;
use crate::mechanism::Mechanisms;
use crate::peer::{Peer, PeerHandle};
use crate::rpc::{Ending, Failure, Kind, Phase, Rpc, Ties};
use crate::time::Time;
use crate::tombstone::Epitaph;

/// What a message needs its receiver to have.
pub(crate) fn needed(length: u32, kind: Kind) -> Features {
    let large = length > STANDARD_MESSAGE_BYTES;
    let mut features = Features::NONE;
    if large {
        features = features.with(Features::LARGE_MESSAGES);
    }
    if kind == Kind::OneWay {
        features = features.with(Features::ONE_WAY);
    }
    features
}

impl Endpoint {
    /// What a peer said it has; `None` if it has not said anything yet.
    pub fn peer_features(&self, peer: PeerHandle) -> Option<Features> {
        self.peers.get(peer.0)?.features
    }

    /// Whether an RPC waits to learn its peer's features.
    pub(crate) fn is_held(&self, rpc: &Rpc) -> bool {
        rpc.is_client()
            && rpc.outgoing.next == 0
            && needed(rpc.outgoing.length, rpc.kind) != Features::NONE
            && self
                .peers
                .slot(rpc.peer)
                .is_some_and(|peer| peer.features.is_none())
    }

    /// Makes a request wait until its peer has said what it accepts.
    pub(crate) fn hold(&mut self, slot: u32) {
        let Some(rpc) = self.rpcs.slot_mut(slot) else {
            return;
        };
        rpc.ties = Ties::Perhaps;
        if let Some(peer) = self.peers.slot_mut(rpc.peer) {
            self.held_links.push_back(&mut peer.held, slot);
        }
        self.ask_features(slot);
    }

    /// Asks the peer for a packet that tells its features.
    pub(crate) fn ask_features(&mut self, slot: u32) {
        let Some(rpc) = self.rpcs.slot_mut(slot) else {
            return;
        };
        rpc.silence.unanswered = rpc.silence.unanswered.saturating_add(1);
        // Id 0 is never used: the peer does not know it and acks at once.
        let packet = Packet::new(rpc.local_port, rpc.remote_port, SenderId(1), Body::NeedAck);
        let peer = rpc.peer;
        self.reply(peer, packet);
    }

    /// A packet came that tells the peer's features, or by saying nothing that
    /// it has none. Which life of the peer we know changes only on packets of
    /// an RPC that is alive: anybody could send others.
    pub(crate) fn learn(&mut self, now: Time, from: u32, rpc: Option<u32>, body: &Body) {
        let capabilities = body.capabilities();
        if self.capabilities.is_none() {
            return;
        }
        let Some(peer) = self.peers.slot_mut(from) else {
            return;
        };
        match capabilities {
            None if peer.features.is_none() => peer.features = Some(Features::NONE),
            None => return,
            Some(capabilities) => {
                peer.features = Some(capabilities.features);
                let known = peer.instance;
                if known == 0 || (known != capabilities.instance && rpc.is_some()) {
                    peer.instance = capabilities.instance;
                }
                if known != 0 && known != peer.instance {
                    let arrived = rpc.filter(|_| matches!(body, Body::Cutoffs(..)));
                    self.peer_restarted(now, from, arrived);
                }
            }
        }
        self.release_held(now, from);
    }

    fn release_held(&mut self, now: Time, from: u32) {
        while let Some(slot) = self.peers.slot(from).and_then(|peer| peer.held.front()) {
            let Some(peer) = self.peers.slot_mut(from) else {
                return;
            };
            self.held_links.remove(&mut peer.held, slot);
            let Some(rpc) = self.rpcs.slot(slot) else {
                continue;
            };
            if peer.has(needed(rpc.outgoing.length, rpc.kind)) {
                self.expect(now, slot);
                self.review_sending(slot);
            } else {
                self.end(slot, Ending::Failed(Failure::Unsupported));
            }
        }
    }

    /// Another instance answers at the peer's address. Requests that the old
    /// one had completely may have been executed: they fail. What it asked of
    /// us nobody waits for any more.
    ///
    /// `arrived` is an RPC of whose request the new instance has some DATA. A
    /// packet that was sent once cannot have reached the old one too, so that
    /// request was not complete there, nor was any that was first sent later:
    /// they go on, lest the first call after every restart fail.
    fn peer_restarted(&mut self, now: Time, from: u32, arrived: Option<u32>) {
        if !self.uses(Mechanisms::INSTANCE_CHECK) {
            return;
        }
        self.counters.peer_restarts += 1;
        let since = arrived
            .and_then(|slot| self.rpcs.slot(slot))
            .filter(|rpc| rpc.is_client() && rpc.was_sent_once())
            .map_or(RpcId(u64::MAX), |rpc| rpc.id);
        let mut at = self.peers.slot(from).and_then(|peer| peer.members.front());
        while let Some(slot) = at {
            at = self.next_member(from, slot);
            let Some(rpc) = self.rpcs.slot(slot) else {
                continue;
            };
            match (rpc.is_client(), rpc.phase) {
                (true, _) if rpc.incoming.is_complete() => {}
                (true, _) if rpc.id >= since && rpc.was_sent_once() => {}
                (true, _) if rpc.outgoing.fully_sent() => {
                    self.end(slot, Ending::Failed(Failure::PeerRestarted));
                }
                (false, Phase::InService) => self.client_gone(slot),
                (false, Phase::Outgoing) => {
                    self.bury(now, slot, Epitaph::Silent);
                    self.end(slot, Ending::Released);
                }
                _ => {}
            }
        }
    }
}

/// The unscheduled limit, as log2, that a request asks for its response, with
/// `calls` under way: small when these are so many that their unscheduled
/// parts alone would exceed what may be incoming; 0 is no limit.
#[inline(always)]
pub(crate) fn response_limit_log2(settings: &Settings, calls: u32, peer: &Peer) -> u8 {
    if !peer.has(Features::RESPONSE_LIMIT) {
        return 0;
    }
    let most = settings.max_incoming_bytes / calls.max(1);
    if most >= settings.unscheduled_bytes || !settings.mechanisms.has(Mechanisms::INCAST_LIMIT) {
        return 0;
    }
    most.max(settings.min_response_limit_bytes).ilog2() as u8
}
