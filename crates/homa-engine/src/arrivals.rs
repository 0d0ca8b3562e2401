//! A packet arrives: parsed once, given to the core, its payload put to its
//! place (`docs/protocol.md` §3, §11).

use homa_core::{DropReason, PeerHandle, Placement, Time, Verdict};
use homa_datapath::{Kind, Meta, Path};
use homa_wire::{AbortCode, Body, Packet, ParseError};

use crate::CallError;
use crate::assembly::{Assembly, NoMemory};
use crate::integrity::Integrity;
use crate::peers::Sender;
use crate::rpcs::{Role, RpcEntry, Service, ServiceStage};
use crate::state::{Life, State};

/// What is to be done about a packet once the lock is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    Done,
    /// Nobody has its port: its sender may be told below Homa.
    Refuse,
}

impl State {
    pub(crate) fn arrive(&mut self, now: Time, bytes: &[u8], meta: &Meta) -> Arrival {
        let (packet, payload) = match Packet::parse(bytes) {
            Ok(parsed) => parsed,
            Err(error) => {
                self.count_bad(error);
                return Arrival::Done;
            }
        };
        let sender = if packet.sender_id.from_client() {
            Sender::Client
        } else {
            Sender::Server
        };
        let known = self.peers.sender(&meta.path, sender);
        if self.own.kind == Kind::Raw && self.integrity(known, bytes, &meta.path) == Integrity::Bad
        {
            self.counters.packets_corrupt += 1;
            return Arrival::Done;
        }
        let Some(peer) = known.or_else(|| self.stranger(now, &packet, &meta.path, sender)) else {
            return Arrival::Done;
        };
        let payload = match packet.body {
            Body::Data(_) => payload,
            _ => &[],
        };
        match self.core.packet(now, peer, &packet, payload.len() as u32) {
            Verdict::Begin(placement) | Verdict::Place(placement) => {
                if self.rpcs.get(placement.rpc).is_none() {
                    self.begin(&packet, placement, peer);
                }
                self.place(now, placement, payload, sender);
                Arrival::Done
            }
            Verdict::Drop(DropReason::PortClosed) => Arrival::Refuse,
            Verdict::Control | Verdict::Drop(_) => Arrival::Done,
        }
    }

    /// A sender that is not known becomes a peer if its packet deserves an
    /// answer. What tells about the sender alone (its features, its cutoffs)
    /// counts for the peer that our calls go to.
    fn stranger(
        &mut self,
        now: Time,
        packet: &Packet,
        path: &Path,
        sender: Sender,
    ) -> Option<PeerHandle> {
        let deserves = match packet.body {
            Body::Data(_) | Body::Resend(_) => true,
            Body::NeedAck => sender == Sender::Server,
            _ => false,
        };
        if deserves {
            let added = self.add_peer(now, *path);
            self.counters.packets_without_peer += u64::from(added.is_none());
            return added;
        }
        let known = self.peers.server(self.peers.key(path.remote));
        self.counters.packets_from_strangers += u64::from(known.is_none());
        known
    }

    /// The first bytes of a request.
    fn begin(&mut self, packet: &Packet, placement: Placement, peer: PeerHandle) {
        let one_way = matches!(packet.body, Body::Data(data) if data.one_way);
        let old = self.rpcs.insert(RpcEntry {
            rpc: placement.rpc,
            peer,
            outgoing: None,
            incoming: None,
            role: Role::Server(Service {
                kind: if one_way {
                    homa_core::Kind::OneWay
                } else {
                    homa_core::Kind::Call
                },
                port: packet.destination_port,
                stage: ServiceStage::Arriving,
                waker: None,
                response_bytes: 0,
            }),
        });
        self.garbage.extend(old);
    }

    fn place(&mut self, now: Time, placement: Placement, payload: &[u8], sender: Sender) {
        let rpc = placement.rpc;
        if sender == Sender::Client && self.life != Life::Open {
            self.counters.requests_shut_out += 1;
            self.refuse(now, rpc, AbortCode::ShuttingDown);
            return;
        }
        let Some(entry) = self.rpcs.get_mut(rpc) else {
            return;
        };
        let Some(peer) = self.peers.get_mut(entry.peer) else {
            return;
        };
        let placed = entry
            .incoming
            .get_or_insert_with(|| Assembly::new(placement.message_length))
            .place(placement.offset, payload, |bytes| {
                self.pages.take(&mut peer.page_bytes, bytes as u64)
            });
        if placed == Err(NoMemory) {
            self.counters.messages_without_memory += 1;
            match entry.role {
                Role::Client(key) => self.fail_call(now, key, CallError::NoMemory),
                Role::Server(_) => self.refuse(now, rpc, AbortCode::Refused),
            }
        }
    }

    fn count_bad(&mut self, error: ParseError) {
        let counter = match error {
            ParseError::Short { .. } => &mut self.counters.packets_short,
            ParseError::ShortForType { .. } => &mut self.counters.packets_short_for_type,
            ParseError::UnknownType(_) => &mut self.counters.packets_of_unknown_type,
        };
        *counter += 1;
    }
}
