//! The next packet to send, chosen at the moment it is asked for
//! (`docs/protocol.md` §6, §13): control packets first, then DATA of the best
//! message unless it must wait for the NIC.

use core::ops::Range;

use homa_wire::{Body, DATA_HEADER_LENGTH, Data, Packet, RpcId};

use crate::endpoint::{Control, Endpoint};
use crate::features::response_limit_log2;
use crate::mechanism::Mechanisms;
use crate::peer::PeerHandle;
use crate::rpc::{Indexed, Kind, Rpc, RpcHandle};
use crate::sending::{Choice, Lane, Sending};
use crate::table::{Handle, Links};
use crate::time::Time;

/// A packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// To whom.
    pub peer: PeerHandle,
    /// At which priority, 0..=7; larger is more urgent.
    pub priority: u8,
    /// The header.
    pub packet: Packet,
    /// What follows it: DATA has a payload, everything else has none.
    pub payload: Option<Payload>,
}

/// A range of an outgoing message: the request where this endpoint is the
/// client, the response where it is the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    /// Whose message.
    pub rpc: RpcHandle,
    /// First byte.
    pub start: u32,
    /// End.
    pub end: u32,
}

impl Payload {
    /// Bytes of payload.
    pub fn length(&self) -> u32 {
        self.end - self.start
    }
}

impl Endpoint {
    /// The next packet to send now, if there is one. Call until there is none,
    /// or stop early: what is left is chosen anew later.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        if self.control == Control::Nothing && self.sending.is_empty() {
            return None;
        }
        self.next_transmit(now)
    }

    fn next_transmit(&mut self, now: Time) -> Option<Transmit> {
        if self.control == Control::Possible
            && let Some(transmit) = self.control_packet(now)
        {
            return Some(transmit);
        }
        if let Some((slot, choice)) = self.sending.choose(now, &self.pacer) {
            return self.data_packet(now, slot, choice);
        }
        self.counters.paced_waits += u64::from(!self.sending.is_empty());
        None
    }

    /// The next packet that is not DATA.
    #[inline(never)]
    fn control_packet(&mut self, now: Time) -> Option<Transmit> {
        self.wake_waiting_for_memory(now);
        self.make_grants(now);
        let next = self
            .replies
            .pop(&mut self.peers)
            .or_else(|| self.grant_packet())
            .or_else(|| self.probe_packet(now));
        let Some((peer, packet)) = next else {
            if self.replies.is_empty()
                && self.is_granting_quiet()
                && self.probes.is_quiet()
                && self.buffers.is_quiet()
            {
                self.control = Control::Nothing;
            }
            return None;
        };
        let peer = self.peers.handle(peer)?;
        self.pacer.charge(now, packet.header_length() as u64);
        self.counters.count_sent(packet.body.packet_type());
        Some(Transmit {
            peer: PeerHandle(peer),
            priority: self.settings.control_priority(),
            packet,
            payload: None,
        })
    }

    /// The next DATA packet of a message.
    fn data_packet(&mut self, now: Time, slot: u32, choice: Choice) -> Option<Transmit> {
        let (handle, rpc) = self.rpcs.entry_mut(slot)?;
        if !rpc.outgoing.pending.is_empty() {
            return self.repeated_packet(now, slot, choice);
        }
        let (to, peer) = self.peers.entry_mut(rpc.peer)?;
        if rpc.id.0 == 0 {
            // A client RPC gets its id now that its first packet leaves.
            rpc.id = RpcId(self.next_id);
            self.next_id += 2;
            rpc.hash = self.seed.hash(rpc.id.0, u64::from(rpc.peer));
            rpc.indexed = Indexed::Yes;
            // The index has room for every RPC that the table has room for.
            let _ = self.index.insert(rpc.hash, slot);
        }
        let Range { start, end } = rpc.outgoing.next_packet()?;
        let wire_bytes = u64::from(end - start) + DATA_HEADER_LENGTH as u64;
        self.pacer.charge(now, wire_bytes);
        self.sending.sent(choice, end - start);
        rpc.outgoing.next = end;
        if rpc.outgoing.fully_sent() {
            self.sending.remove(slot, rpc.lane);
            rpc.lane = Lane::None;
            let patience = rpc.sent_whole(now, &self.settings);
            self.timers.lower(slot, now + patience);
        } else {
            if rpc.is_client() && !rpc.outgoing.has_granted_unsent() {
                rpc.silence.heard(now);
                self.timers.lower(slot, now + self.settings.resend_ns);
            }
            review(slot, rpc, &mut self.sending, &self.held_links);
        }
        let ack = if self.settings.mechanisms.has(Mechanisms::ACK_PIGGYBACK) {
            peer.newest_owed()
        } else {
            None
        };
        let mut limit_log2 = 0;
        if rpc.is_client() && rpc.kind == Kind::Call {
            limit_log2 = response_limit_log2(&self.settings, self.client_calls, peer);
            if limit_log2 != 0 && start == 0 {
                self.counters.response_limits_asked += 1;
            }
        }
        let message = &rpc.outgoing;
        let priority = if start < message.unscheduled {
            peer.unscheduled_priority(message.length, &self.settings)
        } else {
            message.priority
        };
        self.counters.count_data_sent(priority, wire_bytes, choice);
        self.counters.sent_bytes += u64::from(end - start);
        if ack.is_some() {
            self.counters.acks_piggybacked += 1;
        }
        let data = Data {
            message_length: message.length,
            incoming: message.unscheduled,
            ack,
            cutoff_version: peer.cutoff_version(),
            retransmit: false,
            response_limit_log2: limit_log2,
            one_way: rpc.kind == Kind::OneWay,
            sequence: start,
            segment_offset: Some(start),
        };
        Some(rpc.data_transmit(handle, to, priority, data, end))
    }

    /// The next packet of what a message was asked for again.
    #[inline(never)]
    fn repeated_packet(&mut self, now: Time, slot: u32, choice: Choice) -> Option<Transmit> {
        let (handle, rpc) = self.rpcs.entry_mut(slot)?;
        let (to, peer) = self.peers.entry_mut(rpc.peer)?;
        let message = &mut rpc.outgoing;
        let wanted = self.ranges.first(&message.pending)?;
        let start = message.packet_start(wanted.start);
        let end = message.packet_end(start).min(message.next);
        // The head of the list is shortened or goes: that takes no memory.
        let _ = self
            .ranges
            .remove(&mut message.pending, start..end, u32::MAX);
        let wire_bytes = u64::from(end - start) + DATA_HEADER_LENGTH as u64;
        self.pacer.charge(now, wire_bytes);
        self.sending.sent(choice, end - start);
        review(slot, rpc, &mut self.sending, &self.held_links);
        let ack = if self.settings.mechanisms.has(Mechanisms::ACK_PIGGYBACK) {
            peer.newest_owed()
        } else {
            None
        };
        let response_limit_log2 = if rpc.is_client() && rpc.kind == Kind::Call {
            response_limit_log2(&self.settings, self.client_calls, peer)
        } else {
            0
        };
        let priority = rpc.outgoing.resend_priority;
        self.counters.count_data_sent(priority, wire_bytes, choice);
        self.counters.retransmitted_bytes += u64::from(end - start);
        self.counters.acks_piggybacked += u64::from(ack.is_some());
        let data = Data {
            message_length: rpc.outgoing.length,
            incoming: wanted.end,
            ack,
            cutoff_version: peer.cutoff_version(),
            retransmit: true,
            response_limit_log2,
            one_way: rpc.kind == Kind::OneWay,
            sequence: start,
            segment_offset: Some(start),
        };
        Some(rpc.data_transmit(handle, to, priority, data, end))
    }

    /// Puts a message among those that may send, or takes it out.
    pub(crate) fn review_sending(&mut self, slot: u32) {
        if let Some(rpc) = self.rpcs.slot_mut(slot) {
            review(slot, rpc, &mut self.sending, &self.held_links);
        }
    }
}

fn review(slot: u32, rpc: &mut Rpc, sending: &mut Sending, held: &Links) {
    let message = &rpc.outgoing;
    if message.is_sendable() && !held.contains(slot) {
        rpc.lane = sending.set(slot, message.length, message.remaining(), rpc.age);
    } else {
        sending.remove(slot, rpc.lane);
        rpc.lane = Lane::None;
    }
}

impl Rpc {
    /// DATA of its outgoing message, up to `end`.
    #[inline]
    fn data_transmit(
        &self,
        handle: Handle,
        to: Handle,
        priority: u8,
        data: Data,
        end: u32,
    ) -> Transmit {
        Transmit {
            peer: PeerHandle(to),
            priority,
            packet: Packet::new(
                self.local_port,
                self.remote_port,
                self.id.to_sender(),
                Body::Data(data),
            ),
            payload: Some(Payload {
                rpc: RpcHandle(handle),
                start: data.sequence,
                end,
            }),
        }
    }
}
