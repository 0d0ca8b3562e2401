//! Homa at a host: the protocol core as it is, between the simulated NIC and
//! the simulated application.
//!
//! Owns the endpoint and two tables of indices: peers by host, and messages by
//! the core's RPC slots. The application is an echo server that answers at
//! once, and takes one-way messages at once.

use homa_core::{Config, Endpoint, Event, Identity, Kind, PeerHandle, Request, Settings, Time};
use homa_wire::{Body, Capabilities, Cutoffs, DATA_HEADER_LENGTH, Features, Packet, SenderId};

use crate::packet::{HostId, MessageSlot};
use crate::random::{Purpose, stream};
use crate::time::SimTime;
use crate::transport::{Arrival, Departure, Order, Outcome, Pattern, Refused, Transport, Way};
use crate::wire::WireSizes;
use rand::RngCore;

const CLIENT_PORT: u16 = 40_000;
const SERVER_PORT: u16 = 4_000;
/// Timers that fire in one call.
const TIMERS_AT_ONCE: u32 = 64;

/// What a host's packets carry.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// The Homa header.
    pub packet: Packet,
    /// Bytes of payload behind it.
    pub payload_bytes: u32,
}

/// How Homa is set up at every host.
#[derive(Clone, Debug)]
pub struct HomaSetup {
    /// Of the core.
    pub config: Config,
    /// Payload of a full packet, in bytes.
    pub payload_bytes: u32,
    /// Bytes of headers.
    pub wire_sizes: WireSizes,
    /// How acknowledgements of one-way messages travel.
    pub acks: Way,
    /// Whether hosts know each other's cutoffs and features from the start.
    pub acquaintance: Acquaintance,
}

/// What hosts know of each other at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquaintance {
    /// Nothing: they learn it from packets, as in life.
    Strangers,
    /// The cutoffs of the configuration and all features.
    Introduced,
}

/// Homa at one host.
pub struct Homa {
    endpoint: Endpoint,
    /// Peer of each host; this host's own entry is never used.
    peers: Vec<Option<PeerHandle>>,
    /// Host of each peer, by index.
    hosts: Vec<HostId>,
    /// Message of each RPC that this host is the client of, by index.
    messages: Vec<MessageSlot>,
    wire_sizes: WireSizes,
    acks: Way,
}

impl Homa {
    /// Homa at host `own` of `hosts`.
    pub fn new(setup: &HomaSetup, settings: &Settings, seed: u64, own: HostId, hosts: u16) -> Self {
        let hash_seed = stream(seed, Purpose::Keys, u32::from(own.0)).next_u64();
        let identity = Identity {
            first_id: 2,
            instance: u64::from(own.0) + 1,
            hash_seed,
        };
        let mut homa = Self {
            endpoint: Endpoint::new(settings.clone(), identity),
            peers: vec![None; usize::from(hosts)],
            hosts: Vec::new(),
            messages: Vec::new(),
            wire_sizes: setup.wire_sizes,
            acks: setup.acks,
        };
        homa.endpoint.listen(SERVER_PORT);
        let packet_bytes = setup.payload_bytes + DATA_HEADER_LENGTH as u32;
        for host in (0..hosts).filter(|host| *host != own.0) {
            let Ok((peer, _)) = homa.endpoint.add_peer(Time::ZERO, packet_bytes) else {
                continue;
            };
            let index = peer.index() as usize;
            if homa.hosts.len() <= index {
                homa.hosts.resize(index + 1, own);
            }
            homa.hosts[index] = HostId(host);
            homa.peers[usize::from(host)] = Some(peer);
            if setup.acquaintance == Acquaintance::Introduced {
                homa.introduce(peer, HostId(host), settings);
            }
        }
        homa
    }

    /// Hands the endpoint the packet with which `host` would answer its first.
    fn introduce(&mut self, peer: PeerHandle, host: HostId, settings: &Settings) {
        let features = Features::RESPONSE_LIMIT
            .with(Features::CHECKSUM)
            .with(Features::LARGE_MESSAGES)
            .with(Features::ONE_WAY)
            .with(Features::ABORT);
        let capabilities = Capabilities {
            version: Capabilities::VERSION,
            features,
            instance: u64::from(host.0) + 1,
        };
        // Without fixed cutoffs, everybody's are at version 1 and not known here.
        let body = match settings.fixed_cutoffs {
            Some(cutoffs) => {
                let version = 1;
                Body::Cutoffs(Cutoffs { cutoffs, version }, Some(capabilities))
            }
            None => Body::Ack(homa_wire::Ack::default(), Some(capabilities)),
        };
        let packet = Packet::new(SERVER_PORT, CLIENT_PORT, SenderId(1), body);
        self.endpoint.packet(Time::ZERO, peer, &packet, 0);
    }

    /// The protocol core, to look at.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Takes what the endpoint has to say. `arrived` is the message of the
    /// packet that has just come: only that can have completed a request.
    fn settle(&mut self, now: Time, arrived: MessageSlot, outcomes: &mut Vec<Outcome>) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Request {
                    rpc, kind, length, ..
                } => {
                    self.endpoint.taken(now, rpc);
                    if kind == Kind::OneWay {
                        outcomes.push(Outcome::Delivered(arrived));
                    } else {
                        // Refused only if the client has gone meanwhile.
                        let _ = self.endpoint.respond(now, rpc, length);
                    }
                }
                Event::Response { rpc, .. } => {
                    let message = self.message(rpc.index());
                    self.endpoint.taken(now, rpc);
                    outcomes.push(Outcome::Answered(message));
                    outcomes.push(Outcome::Over(message));
                }
                Event::Delivered { rpc } => {
                    outcomes.push(Outcome::Over(self.message(rpc.index())));
                }
                Event::Failed { rpc, .. } => {
                    outcomes.push(Outcome::Failed(self.message(rpc.index())));
                }
                _ => {}
            }
        }
    }

    fn message(&self, rpc: u32) -> MessageSlot {
        self.messages
            .get(rpc as usize)
            .copied()
            .unwrap_or(MessageSlot::NONE)
    }
}

impl Transport for Homa {
    type Header = Header;

    fn start(&mut self, now: SimTime, order: Order) -> Result<(), Refused> {
        let peer = self.peers[usize::from(order.to.0)].ok_or(Refused)?;
        let request = Request {
            local_port: CLIENT_PORT,
            remote_port: SERVER_PORT,
            length: order.bytes,
            kind: match order.pattern {
                Pattern::OneWay => Kind::OneWay,
                Pattern::Echo => Kind::Call,
            },
        };
        let rpc = self
            .endpoint
            .request(now.to_core(), peer, request)
            .map_err(|_| Refused)?;
        let index = rpc.index() as usize;
        if self.messages.len() <= index {
            self.messages.resize(index + 1, MessageSlot::NONE);
        }
        self.messages[index] = order.message;
        Ok(())
    }

    fn receive(
        &mut self,
        now: SimTime,
        from: HostId,
        packet: Arrival<'_, Header>,
        outcomes: &mut Vec<Outcome>,
    ) {
        let Some(peer) = self.peers[usize::from(from.0)] else {
            return;
        };
        let now = now.to_core();
        let header = packet.header;
        self.endpoint
            .packet(now, peer, &header.packet, header.payload_bytes);
        self.settle(now, packet.message, outcomes);
    }

    fn next_packet(&mut self, now: SimTime) -> Option<Departure<Header>> {
        let sent = self.endpoint.poll_transmit(now.to_core())?;
        let payload_bytes = sent.payload.map_or(0, |payload| payload.length());
        // A response's packets need no message: its client knows the RPC.
        let message = match sent.payload {
            Some(payload) if sent.packet.sender_id.from_client() => {
                self.message(payload.rpc.index())
            }
            _ => MessageSlot::NONE,
        };
        let way = match sent.packet.body {
            Body::Ack(..) => self.acks,
            _ => Way::Wire,
        };
        Some(Departure {
            to: self.hosts[sent.peer.index() as usize],
            wire_bytes: self.wire_sizes.packet(&sent.packet, payload_bytes),
            priority: sent.priority,
            message,
            header: Header {
                packet: sent.packet,
                payload_bytes,
            },
            way,
        })
    }

    fn next_timer(&self, now: SimTime) -> Option<SimTime> {
        let (at, _) = self.endpoint.next_timeout(now.to_core())?;
        Some(SimTime::from_core(at))
    }

    fn timer(&mut self, now: SimTime, outcomes: &mut Vec<Outcome>) {
        let now = now.to_core();
        while self.endpoint.timeout(now, TIMERS_AT_ONCE) == homa_core::MoreDue::Yes {}
        self.settle(now, MessageSlot::NONE, outcomes);
    }
}
