//! The next packet to send, chosen at the moment it is asked for
//! (`docs/protocol.md` §6, §13): control packets first, then DATA of the best
//! message unless it must wait for the NIC.

use core::ops::Range;

use homa_wire::{Body, DATA_HEADER_LENGTH, Data, Packet, PacketType};

use crate::endpoint::{Control, Endpoint};
use crate::mechanism::Mechanisms;
use crate::peer::PeerHandle;
use crate::rpc::{Kind, RpcHandle};
use crate::sending::{Choice, Lane};
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
        let handle = self.rpcs.handle(slot)?;
        self.name(slot);
        let segment = self.next_segment(slot)?;
        let response_limit_log2 = self.limit_for_response(slot, &segment);
        let highest = self.settings.control_priority();
        let unknown = self.settings.second_priority();
        let piggyback = self.settings.mechanisms.has(Mechanisms::ACK_PIGGYBACK);
        let rpc = self.rpcs.slot(slot)?;
        let message = &rpc.outgoing;
        let to = self.peers.handle(rpc.peer)?;
        let peer = self.peers.slot_mut(rpc.peer)?;
        let priority = match segment.again_until {
            Some(_) => message.resend_priority,
            None if segment.range.start < message.unscheduled => {
                peer.unscheduled_priority(message.length, unknown, highest)
            }
            None => message.priority,
        }
        .min(highest);
        let ack = if piggyback { peer.newest_owed() } else { None };
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
        self.account(now, priority, &segment, choice);
        self.sent_segment(now, slot, &segment);
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

    /// Gives a client RPC its id, now that its first packet leaves.
    fn name(&mut self, slot: u32) {
        let Some(rpc) = self.rpcs.slot_mut(slot) else {
            return;
        };
        if rpc.id.0 != 0 {
            return;
        }
        rpc.id = homa_wire::RpcId(self.next_id);
        self.next_id += 2;
        let (peer, id) = (rpc.peer, rpc.id);
        let hash = self.seed.hash(id.0, u64::from(peer));
        rpc.hash = hash;
        // The index has room for every RPC that the table has room for.
        let _ = self.index.insert(hash, slot);
    }

    /// What the message sends next: what was asked for again first.
    fn next_segment(&mut self, slot: u32) -> Option<Segment> {
        let rpc = self.rpcs.slot_mut(slot)?;
        let message = &mut rpc.outgoing;
        if let Some(wanted) = self.ranges.first(&message.pending) {
            let start = message.packet_start(wanted.start);
            let end = message.packet_end(start).min(message.next);
            // The head of the list is shortened or goes: that takes no memory.
            let _ = self
                .ranges
                .remove(&mut message.pending, start..end, u32::MAX);
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

    /// The limit for the response that this packet of a request carries.
    fn limit_for_response(&mut self, slot: u32, segment: &Segment) -> u8 {
        let Some(rpc) = self.rpcs.slot(slot) else {
            return 0;
        };
        if !rpc.is_client() || rpc.kind == Kind::OneWay {
            return 0;
        }
        let limit = self.response_limit_log2(rpc.peer);
        if limit != 0 && segment.range.start == 0 && segment.again_until.is_none() {
            self.counters.response_limits_asked += 1;
        }
        limit
    }

    fn account(&mut self, now: Time, priority: u8, segment: &Segment, choice: Choice) {
        let bytes = segment.range.end - segment.range.start;
        let total = u64::from(bytes);
        let packet_bytes = total + DATA_HEADER_LENGTH as u64;
        self.pacer.charge(now, packet_bytes);
        self.counters.count_sent(PacketType::Data);
        if let Some(counter) = self
            .counters
            .sent_bytes_by_priority
            .get_mut(usize::from(priority))
        {
            *counter += packet_bytes;
        }
        match segment.again_until {
            Some(_) => self.counters.retransmitted_bytes += total,
            None => self.counters.sent_bytes += total,
        }
        match choice {
            Choice::Best => {}
            Choice::Bypass => self.counters.paced_bypasses += 1,
            Choice::Oldest => self.counters.fifo_sends += 1,
        }
        self.sending.sent(choice, bytes);
    }

    /// What follows from a packet having left.
    fn sent_segment(&mut self, now: Time, slot: u32, segment: &Segment) {
        let Some(rpc) = self.rpcs.slot_mut(slot) else {
            return;
        };
        let client = rpc.is_client();
        if segment.again_until.is_none() {
            rpc.outgoing.next = segment.range.end;
        }
        if rpc.outgoing.fully_sent() && rpc.outgoing.pending.is_empty() {
            self.sending
                .remove(slot, core::mem::replace(&mut rpc.lane, Lane::None));
            if segment.again_until.is_none() {
                if client {
                    self.expect(now, slot);
                } else {
                    self.response_sent(now, slot);
                }
            }
            return;
        }
        if segment.again_until.is_none() && client && !rpc.outgoing.has_granted_unsent() {
            self.expect(now, slot);
        }
        self.review_sending(slot);
    }
}
