//! The next packet to send, chosen at the moment it is asked for
//! (`docs/protocol.md` §6, §13): control packets first, then DATA of the best
//! message unless it must wait for the NIC.

use core::ops::Range;

use homa_wire::{Body, DATA_HEADER_LENGTH, Data, Packet, RpcId};

use crate::endpoint::{Control, Endpoint};
use crate::features::response_limit_log2;
use crate::mechanism::Mechanisms;
use crate::outgoing::Outgoing;
use crate::peer::PeerHandle;
use crate::rpc::{Indexed, Kind, RpcHandle};
use crate::sending::{Choice, Lane};
use crate::table::Ranges;
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

/// The next DATA packet of a message.
struct Segment {
    range: Range<u32>,
    /// For a retransmission: the end of the range that was asked for.
    again_until: Option<u32>,
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
        let Some((slot, choice)) = self.sending.choose(now, &self.pacer) else {
            self.counters.paced_waits += u64::from(!self.sending.is_empty());
            return None;
        };
        self.data_packet(now, slot, choice)
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

    fn data_packet(&mut self, now: Time, slot: u32, choice: Choice) -> Option<Transmit> {
        let (handle, rpc) = self.rpcs.entry_mut(slot)?;
        let (to, peer) = self.peers.entry_mut(rpc.peer)?;
        if rpc.id.0 == 0 {
            // A client RPC gets its id now that its first packet leaves.
            rpc.id = RpcId(self.next_id);
            self.next_id += 2;
            rpc.hash = self.seed.hash(rpc.id.0, u64::from(rpc.peer));
            // The index has room for every RPC that the table has room for.
            let _ = self.index.insert(rpc.hash, slot);
            rpc.indexed = Indexed::Yes;
        }
        let segment = next_segment(&mut rpc.outgoing, &mut self.ranges)?;
        let message = &mut rpc.outgoing;
        let client = rpc.id.is_client();
        let highest = self.settings.control_priority();
        let unknown = self.settings.second_priority();
        let priority = match segment.again_until {
            Some(_) => message.resend_priority,
            None if segment.range.start < message.unscheduled => {
                peer.unscheduled_priority(message.length, unknown, highest)
            }
            None => message.priority,
        }
        .min(highest);
        let response_limit_log2 = if client && rpc.kind == Kind::Call {
            response_limit_log2(&self.settings, self.client_calls, peer)
        } else {
            0
        };
        let first = segment.range.start == 0 && segment.again_until.is_none();
        self.counters.response_limits_asked += u64::from(response_limit_log2 != 0 && first);
        let ack = if self.settings.mechanisms.has(Mechanisms::ACK_PIGGYBACK) {
            peer.newest_owed()
        } else {
            None
        };
        self.counters.acks_piggybacked += u64::from(ack.is_some());
        let data = Data {
            message_length: message.length,
            incoming: segment.again_until.unwrap_or(message.unscheduled),
            ack,
            cutoff_version: peer.cutoff_version(),
            retransmit: segment.again_until.is_some(),
            response_limit_log2,
            one_way: rpc.kind == Kind::OneWay,
            sequence: segment.range.start,
            segment_offset: Some(segment.range.start),
        };
        let (local_port, remote_port, id) = (rpc.local_port, rpc.remote_port, rpc.id);
        let bytes = segment.range.end - segment.range.start;
        let packet_bytes = u64::from(bytes) + DATA_HEADER_LENGTH as u64;
        self.pacer.charge(now, packet_bytes);
        self.counters.count_data_sent(priority, packet_bytes);
        self.counters.count_choice(choice);
        self.sending.sent(choice, bytes);
        if segment.again_until.is_none() {
            self.counters.sent_bytes += u64::from(bytes);
            message.next = segment.range.end;
        } else {
            self.counters.retransmitted_bytes += u64::from(bytes);
        }
        if segment.again_until.is_none() && message.fully_sent() && message.pending.is_empty() {
            self.sending.remove(slot, rpc.lane);
            rpc.lane = Lane::None;
            let patience = rpc.sent_whole(now, &self.settings);
            self.timers.lower(slot, now + patience);
        } else {
            self.sent_more(now, slot, &segment);
        }
        Some(Transmit {
            peer: PeerHandle(to),
            priority,
            packet: Packet::new(local_port, remote_port, id.to_sender(), Body::Data(data)),
            payload: Some(Payload {
                rpc: RpcHandle(handle),
                start: segment.range.start,
                end: segment.range.end,
            }),
        })
    }

    /// What follows from a packet having left that was sent again, or after
    /// which more of its message is to be sent.
    #[inline(never)]
    fn sent_more(&mut self, now: Time, slot: u32, segment: &Segment) {
        let Some(rpc) = self.rpcs.slot(slot) else {
            return;
        };
        let new = segment.again_until.is_none();
        if new && rpc.is_client() && !rpc.outgoing.has_granted_unsent() {
            self.expect(now, slot);
        }
        self.review_sending(slot);
    }
}

/// What the message sends next: what was asked for again first.
fn next_segment(message: &mut Outgoing, ranges: &mut Ranges) -> Option<Segment> {
    if let Some(wanted) = ranges.first(&message.pending) {
        let start = message.packet_start(wanted.start);
        let end = message.packet_end(start).min(message.next);
        // The head of the list is shortened or goes: that takes no memory.
        let _ = ranges.remove(&mut message.pending, start..end, u32::MAX);
        return Some(Segment {
            range: start..end,
            again_until: Some(wanted.end),
        });
    }
    let range = message.next_packet()?;
    Some(Segment {
        range,
        again_until: None,
    })
}
