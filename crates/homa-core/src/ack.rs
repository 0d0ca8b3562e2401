//! Acks, and what is kept after an RPC is over (`docs/protocol.md` §7, §8, §16).
//!
//! A client owes the server an ack for each response that its application has
//! taken. A server keeps the response until then, and afterwards remembers for
//! a while that the request was executed.

use homa_wire::{Ack, AckEntry, Body, Packet, RpcId};

use crate::counters::DropReason;
use crate::endpoint::{Endpoint, Verdict};
use crate::mechanism::Mechanisms;
use crate::peer::PeerHandle;
use crate::rpc::{Ending, Indexed, Kind, Phase};
use crate::time::Time;
use crate::tombstone::{Displaced, Epitaph};

impl Endpoint {
    /// The client has this response: the server may forget it as soon as a
    /// packet says so.
    pub(crate) fn owe_ack(&mut self, slot: u32) {
        let Some(rpc) = self.rpcs.slot(slot) else {
            return;
        };
        let entry = AckEntry {
            client_id: rpc.id.to_sender(),
            server_port: rpc.server_port(),
        };
        let Some(peer) = self.peers.slot_mut(rpc.peer) else {
            return;
        };
        if let Err(owed) = peer.owe(entry) {
            self.counters.acks_overflowed += 1;
            self.tell(slot, Body::Ack(Ack::new(owed.entries()), self.capabilities));
        }
    }

    /// Sends all acks owed to a peer now, from the given port, for instance
    /// because no packet that they could ride on will follow.
    pub fn flush_acks(&mut self, peer: PeerHandle, local_port: u16) {
        let from = peer.index();
        let Some(known) = self.peers.get_mut(peer.0) else {
            return;
        };
        let owed = known.take_owed();
        let Some(first) = owed.entries().next() else {
            return;
        };
        let body = Body::Ack(Ack::new(owed.entries()), self.capabilities);
        let packet = Packet::new(local_port, first.server_port, first.client_id, body);
        self.reply(from, packet);
    }

    pub(crate) fn need_ack(
        &mut self,
        now: Time,
        from: u32,
        rpc: Option<u32>,
        packet: &Packet,
    ) -> Result<Verdict, DropReason> {
        if packet.sender_id.from_client() {
            return Err(DropReason::WrongRole);
        }
        let missing = rpc.and_then(|slot| self.rpcs.slot(slot).map(|rpc| (slot, rpc)));
        let Some((slot, rpc)) = missing.filter(|(_, rpc)| !rpc.incoming.is_complete()) else {
            let owed = self
                .peers
                .slot_mut(from)
                .ok_or(DropReason::UnknownPeer)?
                .take_owed();
            self.answer(
                from,
                packet,
                Body::Ack(Ack::new(owed.entries()), self.capabilities),
            );
            return Ok(Verdict::Control);
        };
        if rpc.phase == Phase::Incoming && !rpc.incoming.expects() {
            // Nothing to ask for: it waits for our grants. Say that we live.
            self.tell(slot, Body::Busy);
        } else if now.since(rpc.silence.probed_at) >= self.settings.resend_interval_ns {
            self.ask(now, slot);
        }
        Ok(Verdict::Control)
    }

    pub(crate) fn ack(
        &mut self,
        now: Time,
        from: u32,
        rpc: Option<u32>,
        packet: &Packet,
        ack: Ack,
    ) {
        if let Some(slot) = rpc {
            self.counters.acks_received += 1;
            self.acknowledged(now, slot);
        }
        // The reference module repeats the header's id as an entry.
        let acknowledged = rpc.map(|_| packet.sender_id);
        for entry in ack.entries() {
            if Some(entry.client_id) != acknowledged {
                self.acknowledge(now, from, entry);
            }
        }
    }

    /// `from` says that it has the response of one of its RPCs.
    #[inline]
    pub(crate) fn acknowledge(&mut self, now: Time, from: u32, entry: AckEntry) {
        self.counters.acks_received += 1;
        let id = entry.client_id.to_local();
        if id.is_client() {
            self.counters.acks_ignored += 1;
            return;
        }
        match self.lookup(from, id, |rpc| rpc.local_port == entry.server_port) {
            Some(slot) => self.acknowledged(now, slot),
            None => self.counters.acks_ignored += 1,
        }
    }

    /// Only a server RPC whose response is under way can be acknowledged, or
    /// a one-way message at its sender.
    #[inline(always)]
    fn acknowledged(&mut self, now: Time, slot: u32) {
        let Some(rpc) = self.rpcs.slot(slot) else {
            return;
        };
        match (rpc.is_client(), rpc.kind, rpc.phase) {
            (false, _, Phase::Outgoing) => {
                self.bury(now, slot, Epitaph::Silent);
                self.end(slot, Ending::Released);
            }
            (true, Kind::OneWay, Phase::Outgoing) if rpc.outgoing.fully_sent() => {
                self.counters.one_ways_delivered += 1;
                self.end(slot, Ending::Delivered);
            }
            _ => self.counters.acks_ignored += 1,
        }
    }

    /// Remembers a server RPC that is about to end, if its request is complete:
    /// from then on the host may have handed it to the application.
    #[inline(always)]
    pub(crate) fn bury(&mut self, now: Time, slot: u32, epitaph: Epitaph) {
        if !self.uses(Mechanisms::TOMBSTONES) {
            return;
        }
        let Some(rpc) = self.rpcs.slot_mut(slot) else {
            return;
        };
        if rpc.is_client() || !rpc.incoming.is_complete() {
            return;
        }
        rpc.indexed = Indexed::No;
        let displaced =
            self.tombstones
                .bury(now, &mut self.peers, &mut self.index, (slot, rpc), epitaph);
        self.counters.floors_raised += u64::from(displaced == Displaced::Unexpired);
    }

    pub(crate) fn is_below_floor(&self, now: Time, from: u32, id: RpcId) -> bool {
        self.uses(Mechanisms::FLOOR)
            && self
                .peers
                .slot(from)
                .is_some_and(|peer| id.0 <= peer.floor && now < peer.floor_until)
    }
}
