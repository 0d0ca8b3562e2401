//! RESEND, RPC_UNKNOWN and BUSY arrive (`docs/protocol.md` §11, §14): what a
//! sender sends again, and what it says when it cannot.

use core::ops::Range;

use homa_wire::{AbortCode, Body, Packet, Resend};

use crate::counters::DropReason;
use crate::endpoint::{Endpoint, Named, Verdict};
use crate::mechanism::Mechanisms;
use crate::rpc::{Client, Ending, Failure, Notice, Phase, SaidOf, Ties};
use crate::time::Time;
use crate::tombstone::{Epitaph, Stone};

impl Endpoint {
    pub(crate) fn resend(
        &mut self,
        now: Time,
        from: u32,
        named: Named,
        packet: &Packet,
        resend: Resend,
    ) -> Result<Verdict, DropReason> {
        let slot = match named {
            Named::Alive(slot) => slot,
            Named::Finished(stone) => return self.resend_finished(now, from, stone, packet),
            Named::Nothing => return self.resend_unknown(now, from, packet),
        };
        let rpc = self.rpcs.slot_mut(slot).ok_or(DropReason::UnknownRpc)?;
        match (rpc.is_client(), rpc.phase) {
            (_, Phase::Ended) => Err(DropReason::WrongState),
            (false, Phase::Incoming | Phase::InService) => {
                self.say_busy(slot);
                Ok(Verdict::Control)
            }
            (server_or_client, _) => {
                if !server_or_client {
                    rpc.silence.since = now;
                }
                self.send_again(now, slot, resend)
            }
        }
    }

    /// A RESEND for an RPC that is finished and remembered.
    fn resend_finished(
        &mut self,
        now: Time,
        from: u32,
        stone: Stone,
        packet: &Packet,
    ) -> Result<Verdict, DropReason> {
        match self.tombstones.epitaph(stone) {
            Some(epitaph) if packet.sender_id.from_client() => {
                self.counters.duplicates_suppressed += 1;
                self.recall(from, packet, epitaph);
                Ok(Verdict::Control)
            }
            _ => self.resend_unknown(now, from, packet),
        }
    }

    /// A RESEND for an RPC that is not here: the server lost it, never had it,
    /// or has forgotten it.
    fn resend_unknown(
        &mut self,
        now: Time,
        from: u32,
        packet: &Packet,
    ) -> Result<Verdict, DropReason> {
        let id = packet.sender_id.to_local();
        if packet.sender_id.from_client() {
            if self.is_below_floor(now, from, id) {
                self.counters.stale_refused += 1;
                self.abort_unknown(from, packet, AbortCode::Stale);
                return Ok(Verdict::Control);
            }
            if !self.serves(packet.destination_port) {
                self.abort_unknown(from, packet, AbortCode::PortClosed);
                return Err(DropReason::PortClosed);
            }
        }
        if self.uses(Mechanisms::RPC_UNKNOWN) {
            self.answer(from, packet, Body::RpcUnknown(self.capabilities));
        }
        Ok(Verdict::Control)
    }

    /// The answer of a message's sender to a RESEND.
    fn send_again(&mut self, now: Time, slot: u32, resend: Resend) -> Result<Verdict, DropReason> {
        let highest = self.settings.control_priority();
        let rpc = self.rpcs.slot_mut(slot).ok_or(DropReason::UnknownRpc)?;
        let message = &mut rpc.outgoing;
        if resend.offset >= message.length {
            return Err(DropReason::PastEnd);
        }
        let sent = message.next;
        let end = match resend.length {
            Some(length) => resend.offset.saturating_add(length).min(message.length),
            None => sent,
        };
        message.resend_priority = resend.priority.min(highest);
        if end > message.granted && self.settings.mechanisms.has(Mechanisms::IMPLICIT_GRANT) {
            // The grant was lost; asking for the bytes is as good.
            message.granted = end;
            self.counters.implicit_grants += 1;
        }
        if resend.offset < sent {
            self.queue_again(now, slot, resend.offset..end.min(sent))?;
        } else {
            self.say_busy(slot);
        }
        self.review_sending(slot);
        Ok(Verdict::Control)
    }

    /// Marks a range to be sent again, except what was within this interval.
    fn queue_again(&mut self, now: Time, slot: u32, range: Range<u32>) -> Result<(), DropReason> {
        let max = self.settings.max_holes;
        // Half an interval: a RESEND of the next one may come a little early.
        let interval = self.settings.resend_interval_ns / 2;
        let once = self.uses(Mechanisms::RESEND_ONCE);
        let rpc = self.rpcs.slot_mut(slot).ok_or(DropReason::UnknownRpc)?;
        rpc.ties = Ties::Perhaps;
        let message = &mut rpc.outgoing;
        if !once || now.since(message.answered_at) >= interval {
            self.ranges.clear(&mut message.answered);
            message.answered_at = now;
        }
        let mut at = range.start;
        let mut repeated = 0;
        while at < range.end {
            // Up to the next range that was sent again a moment ago.
            let answered = self.ranges.next_from(&message.answered, at);
            let (gap_end, skip_to) = answered.map_or((range.end, range.end), |r| {
                (r.start.min(range.end), r.end.min(range.end))
            });
            if at < gap_end {
                self.ranges
                    .insert(&mut message.pending, at..gap_end, max)
                    .map_err(|_| DropReason::TooManyHoles)?;
            }
            repeated += u64::from(skip_to > gap_end);
            at = skip_to.max(gap_end);
        }
        self.counters.resends_repeated += repeated;
        let answered = &mut message.answered;
        if self.ranges.insert(answered, range.clone(), max).is_err() {
            // More than can be told apart: all between counts as answered, or
            // whoever asks for many ranges could ask for the last again and again.
            let first = self.ranges.first(answered).unwrap_or(range.clone());
            let last = self.ranges.last(answered).unwrap_or(range.clone());
            let all = first.start.min(range.start)..last.end.max(range.end);
            self.ranges.clear(answered);
            // If not even this finds room, it may be sent twice.
            let _ = self.ranges.insert(answered, all, max);
        }
        Ok(())
    }

    fn say_busy(&mut self, slot: u32) {
        if self.uses(Mechanisms::BUSY) {
            self.tell(slot, Body::Busy);
        }
    }

    pub(crate) fn busy(&mut self, now: Time, rpc: Option<u32>) -> Result<Verdict, DropReason> {
        let slot = rpc.ok_or(DropReason::UnknownRpc)?;
        let rpc = self.rpcs.slot_mut(slot).ok_or(DropReason::UnknownRpc)?;
        match (rpc.is_client(), rpc.phase) {
            (true, Phase::Outgoing | Phase::Incoming) | (false, Phase::Incoming) => {
                rpc.silence.heard(now);
                Ok(Verdict::Control)
            }
            (false, Phase::Outgoing) => {
                // A client that is alive and waits for its own turn.
                rpc.silence.since = now;
                Ok(Verdict::Control)
            }
            _ => Err(DropReason::WrongState),
        }
    }

    /// The other end does not know the RPC.
    pub(crate) fn rpc_unknown(
        &mut self,
        now: Time,
        rpc: Option<u32>,
    ) -> Result<Verdict, DropReason> {
        let slot = rpc.ok_or(DropReason::UnknownRpc)?;
        let rpc = self.rpcs.slot_mut(slot).ok_or(DropReason::UnknownRpc)?;
        match (rpc.is_client(), rpc.phase) {
            (true, Phase::Outgoing) if self.may_be_forgotten(now, slot) => {
                self.counters.timeouts += 1;
                self.end(slot, Ending::Failed(Failure::Timeout));
            }
            (true, Phase::Outgoing) => self.repeat_request(now, slot),
            (true, Phase::Incoming) if self.is_lost(now, slot) => {
                self.counters.timeouts += 1;
                self.end(slot, Ending::Failed(Failure::Timeout));
            }
            (false, Phase::InService) => {
                self.counters.ended_by_unknown += 1;
                self.client_gone(slot);
            }
            (false, Phase::Incoming | Phase::Outgoing) => {
                self.counters.ended_by_unknown += 1;
                self.bury(now, slot, Epitaph::Silent);
                self.end(slot, Ending::Released);
            }
            _ => return Err(DropReason::WrongState),
        }
        Ok(Verdict::Control)
    }

    /// So long after the last sign of this RPC the server may have executed it,
    /// and remember that no more: ¾ of what a server remembers, also where
    /// `timeout_ns` lets a client wait longer.
    fn may_be_forgotten(&self, now: Time, slot: u32) -> bool {
        let remembered_ns = self.settings.duplicate_lifetime_ns / 4 * 3;
        self.uses(Mechanisms::TIMEOUT)
            && self.rpcs.slot(slot).is_some_and(|rpc| {
                rpc.outgoing.fully_sent() && now.since(rpc.silence.since) >= remembered_ns
            })
    }

    /// The server has lost the response that was coming: not a late packet, as
    /// nothing has come for so long and it was asked for again and again.
    fn is_lost(&self, now: Time, slot: u32) -> bool {
        self.uses(Mechanisms::TIMEOUT)
            && self.rpcs.slot(slot).is_some_and(|rpc| {
                rpc.expects()
                    && now.since(rpc.silence.since) >= self.settings.timeout_ns
                    && rpc.silence.unanswered >= self.settings.timeout_resends
            })
    }

    /// Sends everything again that was sent of a request, once per interval.
    fn repeat_request(&mut self, now: Time, slot: u32) {
        let interval = self.settings.resend_interval_ns / 2;
        let max = self.settings.max_holes;
        let unknown = self.settings.second_priority();
        let Some(rpc) = self.rpcs.slot_mut(slot) else {
            return;
        };
        let recently =
            rpc.silence.repeated_at != Time::ZERO && now.since(rpc.silence.repeated_at) < interval;
        if rpc.outgoing.next == 0 || recently {
            return;
        }
        rpc.ties = Ties::Perhaps;
        rpc.silence.repeated_at = now;
        let length = rpc.outgoing.length;
        rpc.outgoing.resend_priority = self.peers.slot(rpc.peer).map_or(unknown, |peer| {
            peer.unscheduled_priority(length, &self.settings)
        });
        let sent = 0..rpc.outgoing.next;
        // One range over all others always fits.
        let _ = self.ranges.insert(&mut rpc.outgoing.pending, sent, max);
        self.counters.requests_repeated += 1;
        self.review_sending(slot);
    }

    /// The application works for a client that is no longer there.
    pub(crate) fn client_gone(&mut self, slot: u32) {
        let Some(rpc) = self.rpcs.slot_mut(slot) else {
            return;
        };
        if rpc.client == Client::Waiting {
            rpc.client = Client::Gone;
            self.notify(slot, Notice::Cancelled);
        }
    }

    /// The other end ended the RPC with an error.
    pub(crate) fn aborted(
        &mut self,
        now: Time,
        rpc: Option<u32>,
        code: AbortCode,
    ) -> Result<Verdict, DropReason> {
        let slot = rpc.ok_or(DropReason::UnknownRpc)?;
        let rpc = self.rpcs.slot(slot).ok_or(DropReason::UnknownRpc)?;
        if self.capabilities.is_none() || rpc.phase == Phase::Ended {
            return Err(DropReason::WrongState);
        }
        match (rpc.is_client(), rpc.phase) {
            (true, _) if rpc.incoming.is_complete() => return Err(DropReason::WrongState),
            (true, _) => {
                let failure = match code {
                    AbortCode::PortClosed => rpc.nobody_there(Failure::PortClosed, SaidOf::ThisRpc),
                    _ => Failure::from_abort(code),
                };
                self.end(slot, Ending::Failed(failure));
            }
            (false, Phase::InService) => self.client_gone(slot),
            (false, _) => {
                self.bury(now, slot, Epitaph::Silent);
                self.end(slot, Ending::Released);
            }
        }
        self.counters.ended_by_abort += 1;
        Ok(Verdict::Control)
    }
}
