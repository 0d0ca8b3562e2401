//! DATA arrives (`docs/protocol.md` §3, §4, §11): checks before anything
//! changes, then the RPC, the memory, the place of the bytes, and what follows
//! for grants, cutoffs and acks.

use homa_wire::{AbortCode, Ack, Body, Data, Packet};

use crate::counters::DropReason;
use crate::endpoint::{Endpoint, Named, NewRpc, Placement, Role, Verdict};
use crate::incoming::{Incoming, Memory};
use crate::mechanism::Mechanisms;
use crate::outgoing::Outgoing;
use crate::peer::Peer;
use crate::rpc::{Kind, Notice, Phase, RpcHandle, Ties};
use crate::time::Time;
use crate::tombstone::Epitaph;

impl Endpoint {
    #[inline]
    pub(crate) fn data(
        &mut self,
        now: Time,
        from: u32,
        packet: &Packet,
        data: &Data,
        payload_length: u32,
    ) -> Verdict {
        let slot = match self.accept(now, from, packet, data, payload_length) {
            Ok(slot) => slot,
            Err(reason) => return self.dropped(reason),
        };
        let length = data.message_length;
        if payload_length == length
            && let Some(rpc) = self.receive_whole(now, slot, data)
        {
            self.record_length(now, length);
            self.check_cutoff_version(now, from, packet, data.cutoff_version);
            return Verdict::Begin(Placement {
                rpc,
                offset: 0,
                message_length: length,
            });
        }
        match self.receive_part(now, from, slot, packet, data, payload_length) {
            Ok(verdict) => verdict,
            Err(reason) => self.dropped(reason),
        }
    }

    /// Which RPC the packet is for, if it is for one; it may create it.
    #[inline]
    fn accept(
        &mut self,
        now: Time,
        from: u32,
        packet: &Packet,
        data: &Data,
        payload_length: u32,
    ) -> Result<u32, DropReason> {
        if data.message_length == 0 {
            return Err(DropReason::LengthZero);
        }
        let end = u64::from(data.offset()) + u64::from(payload_length);
        if end > data.message_length.into() {
            return Err(DropReason::PastEnd);
        }
        if let Some(entry) = data.ack {
            self.acknowledge(now, from, entry);
        }
        if data.message_length > self.settings.max_message_bytes {
            self.abort_unknown(from, packet, AbortCode::TooLarge);
            return Err(DropReason::LengthTooLong);
        }
        let hash = self.hash(from, packet.sender_id.to_local());
        match self.find(now, from, packet, hash) {
            Named::Alive(slot) => Ok(slot),
            Named::Nothing if packet.sender_id.from_client() => {
                self.new_request(now, from, hash, packet, data)
            }
            named => Err(self.refuse(now, from, named, packet)),
        }
    }

    /// A packet that is not the whole of its message.
    #[inline(never)]
    fn receive_part(
        &mut self,
        now: Time,
        from: u32,
        slot: u32,
        packet: &Packet,
        data: &Data,
        payload_length: u32,
    ) -> Result<Verdict, DropReason> {
        self.begin(now, slot, data, payload_length)?;
        self.check_cutoff_version(now, from, packet, data.cutoff_version);
        if payload_length == 0 {
            return Ok(Verdict::Control);
        }
        let start = data.offset();
        self.receive(now, slot, data, start..start + payload_length)
    }

    /// DATA of an RPC that is over, or never was.
    #[inline(never)]
    fn refuse(&mut self, now: Time, from: u32, named: Named, packet: &Packet) -> DropReason {
        if !packet.sender_id.from_client() {
            self.disown(now, from, packet);
            return DropReason::UnknownRpc;
        }
        if !self.serves(packet.destination_port) {
            self.abort_unknown(from, packet, AbortCode::PortClosed);
            return DropReason::PortClosed;
        }
        if let Named::Finished(stone) = named
            && let Some(epitaph) = self.tombstones.epitaph(stone)
        {
            self.counters.duplicates_suppressed += 1;
            self.recall(from, packet, epitaph);
            return DropReason::Executed;
        }
        self.counters.stale_refused += 1;
        self.abort_unknown(from, packet, AbortCode::Stale);
        DropReason::Stale
    }

    /// A request whose first packet this is, or the reason why it is none.
    #[inline(never)]
    fn new_request(
        &mut self,
        now: Time,
        from: u32,
        hash: u64,
        packet: &Packet,
        data: &Data,
    ) -> Result<u32, DropReason> {
        let id = packet.sender_id.to_local();
        let peer = self.peers.slot(from).ok_or(DropReason::UnknownPeer)?;
        let stale = id.0 <= peer.floor && now < peer.floor_until && self.uses(Mechanisms::FLOOR);
        if stale || !self.serves(packet.destination_port) {
            return Err(self.refuse(now, from, Named::Nothing, packet));
        }
        self.check_share(peer)?;
        let new = NewRpc {
            id,
            hash,
            peer: from,
            local_port: packet.destination_port,
            remote_port: packet.source_port,
            kind: if data.one_way && self.capabilities.is_some() {
                Kind::OneWay
            } else {
                Kind::Call
            },
            outgoing: Outgoing::NONE,
        };
        let handle = self
            .create(now, &new, Role::Server)
            .ok_or(DropReason::TableFull)?;
        // The index has room for every RPC that the table has room for.
        let _ = self.index.insert(hash, handle.index());
        Ok(handle.index())
    }

    /// Server RPCs leave a quarter of the table to our own calls, and one peer
    /// gets at most as many as are still free.
    fn check_share(&self, peer: &Peer) -> Result<(), DropReason> {
        let limit = self.settings.max_server_rpcs;
        let free = limit.saturating_sub(self.server_rpcs);
        let fair = peer.server_rpcs <= free || !self.uses(Mechanisms::RPC_SHARE);
        if free > 0 && fair {
            Ok(())
        } else {
            Err(DropReason::TableFull)
        }
    }

    /// A message that comes in one packet: no holes, no grants, no timer.
    /// `None`, and nothing changed, if it is not as simple as that.
    fn receive_whole(&mut self, now: Time, slot: u32, data: &Data) -> Option<RpcHandle> {
        let (handle, rpc) = self.rpcs.entry_mut(slot)?;
        if rpc.incoming.has_begun() || !rpc.may_receive() {
            return None;
        }
        let peer = self.peers.slot_mut(rpc.peer)?;
        let length = data.message_length;
        if !self.buffers.take_of_plenty(peer, length) {
            return None;
        }
        rpc.phase = Phase::Incoming;
        rpc.incoming = Incoming::whole(length);
        rpc.silence.heard(now);
        if data.response_limit_log2 != 0 && !rpc.is_client() {
            rpc.response_limit_log2 = data.response_limit_log2;
        }
        self.counters.received_bytes += u64::from(length);
        self.counters.count_completed(rpc);
        rpc.notice = Notice::Complete;
        self.notices.push(slot);
        Some(RpcHandle(handle))
    }

    /// Brings the RPC into the state in which it receives this message.
    fn begin(
        &mut self,
        now: Time,
        slot: u32,
        data: &Data,
        payload_length: u32,
    ) -> Result<(), DropReason> {
        let rpc = self.rpcs.slot_mut(slot).ok_or(DropReason::UnknownRpc)?;
        if !rpc.may_receive() {
            return Err(match rpc.phase {
                Phase::InService => DropReason::Duplicate,
                _ => DropReason::WrongState,
            });
        }
        rpc.phase = Phase::Incoming;
        if rpc.incoming.has_begun() && rpc.incoming.length != data.message_length {
            return Err(DropReason::LengthChanged);
        }
        rpc.silence.heard(now);
        if data.response_limit_log2 != 0 && !rpc.is_client() {
            rpc.response_limit_log2 = data.response_limit_log2;
        }
        if rpc.incoming.has_begun() {
            return Ok(());
        }
        rpc.incoming.begin(data.message_length, data.incoming);
        self.record_length(now, data.message_length);
        if payload_length < data.message_length {
            self.start_granting(now, slot);
            self.arm(slot, now + self.settings.resend_ns);
        }
        Ok(())
    }

    fn receive(
        &mut self,
        now: Time,
        slot: u32,
        data: &Data,
        range: core::ops::Range<u32>,
    ) -> Result<Verdict, DropReason> {
        let handle = self.rpcs.handle(slot).ok_or(DropReason::UnknownRpc)?;
        let message = &self.rpcs.slot(slot).ok_or(DropReason::UnknownRpc)?.incoming;
        let new_bytes = message.new_bytes(&range, &self.ranges);
        if new_bytes == 0 {
            self.counters.duplicate_bytes += u64::from(range.end - range.start);
            return Err(DropReason::Duplicate);
        }
        if message.memory == Memory::Awaited || !self.charge_memory(slot, new_bytes) {
            self.timers.lower(slot, now + self.settings.timeout_ns);
            return Err(DropReason::NoBuffer);
        }
        let in_order = range.start == self.incoming_highest(slot);
        let max_holes = if in_order {
            u32::MAX
        } else {
            self.hole_limit(slot)
        };
        let rpc = self.rpcs.slot_mut(slot).ok_or(DropReason::UnknownRpc)?;
        let holes_before = rpc.incoming.holes.len();
        let first = rpc.incoming.received == 0;
        rpc.incoming.payload_bytes = rpc.incoming.payload_bytes.max(range.end - range.start);
        let offset = range.start;
        let arrival = match rpc.incoming.place(range, &mut self.ranges, max_holes) {
            Ok(arrival) => arrival,
            Err(reason) => {
                self.uncharge_memory(slot, new_bytes);
                return Err(reason);
            }
        };
        self.counters.received_bytes += u64::from(arrival.new_bytes);
        rpc.silence.arrived_by_then = self.counters.received_bytes;
        if arrival.opened_hole {
            self.counters.holes_opened += 1;
            rpc.ties = Ties::Perhaps;
            // Bytes are missing that may not have been granted here.
            self.timers.lower(slot, now + self.settings.resend_ns);
        }
        let complete = rpc.incoming.is_complete();
        if !in_order && let Some(peer) = self.peers.slot_mut(rpc.peer) {
            peer.holes = (peer.holes + rpc.incoming.holes.len()).saturating_sub(holes_before);
        }
        self.progressed(slot);
        if complete {
            self.completed(slot);
        }
        let placement = Placement {
            rpc: RpcHandle(handle),
            offset,
            message_length: data.message_length,
        };
        Ok(if first {
            Verdict::Begin(placement)
        } else {
            Verdict::Place(placement)
        })
    }

    fn incoming_highest(&self, slot: u32) -> u32 {
        self.rpcs.slot(slot).map_or(0, |rpc| rpc.incoming.highest)
    }

    /// Holes that a message may have: so many, and not more in all messages of
    /// its peer than there is still room for, so that a peer that sends nothing
    /// but holes leaves half of the room to the others.
    fn hole_limit(&self, slot: u32) -> u32 {
        if !self.uses(Mechanisms::HOLE_LIMIT) {
            return u32::MAX;
        }
        let Some(rpc) = self.rpcs.slot(slot) else {
            return 0;
        };
        let held = self.peers.slot(rpc.peer).map_or(0, |peer| peer.holes);
        let more = self.ranges.free().saturating_sub(held);
        let holes = rpc.incoming.holes.len();
        self.settings.max_holes.min(holes.saturating_add(more))
    }

    fn completed(&mut self, slot: u32) {
        let Some(rpc) = self.rpcs.slot(slot) else {
            return;
        };
        self.counters.count_completed(rpc);
        self.notify(slot, Notice::Complete);
    }

    /// Response DATA for an RPC that is over: tells the server so that it need
    /// not keep the response, at most once per interval and peer.
    fn disown(&mut self, now: Time, from: u32, packet: &Packet) {
        let interval = self.settings.resend_interval_ns;
        let Some(peer) = self.peers.slot_mut(from) else {
            return;
        };
        if self.capabilities.is_none() || now < peer.unknown_due_at {
            return;
        }
        peer.unknown_due_at = now + interval;
        self.answer(from, packet, Body::RpcUnknown(self.capabilities));
    }

    /// Ends an RPC that this endpoint never had.
    pub(crate) fn abort_unknown(&mut self, from: u32, packet: &Packet, code: AbortCode) {
        let may = self.peers.slot(from).is_some_and(Peer::may_know_abort);
        if may && self.capabilities.is_some() && self.uses(Mechanisms::ABORT) {
            self.answer(from, packet, Body::Abort(code));
        }
    }

    /// Answers a packet of an RPC that is finished and remembered.
    pub(crate) fn recall(&mut self, from: u32, packet: &Packet, epitaph: Epitaph) {
        match epitaph {
            Epitaph::Silent => {}
            Epitaph::Delivered => {
                self.answer(from, packet, Body::Ack(Ack::default(), self.capabilities));
            }
            Epitaph::Aborted(code) => self.abort_unknown(from, packet, code),
        }
    }
}
