//! The endpoint, its peers, and what must hold whatever they do.

use std::collections::{HashMap, HashSet};

use homa_core::{
    Config, Endpoint, Event, Identity, Kind, MoreDue, PeerHandle, Quoted, Request, RpcHandle,
    Settings, Time, Transmit, Verdict,
};
use homa_wire::{AbortCode, Body, Data, Packet, SenderId};

use super::step::{Arrival, Id, Step};

/// Packets that the endpoint may send for one step: every message it has
/// (`max_rpcs` of a megabyte) once, in packets of 1424 bytes or less.
const MOST_OUTPUTS: usize = 1_000_000;
/// Requests of the endpoint to the hostile peers that may be open.
const MOST_REQUESTS: usize = 4;
/// Time after which nothing that the hostile peers did holds the honest one up:
/// they are presumed dead, and some time-outs.
const HONEST_NS: u64 = 1_500_000_000;
/// Time after which everything must be over: 100 time-outs, and the patience.
const END_NS: u64 = 60_000_000_000;

pub(crate) struct Town {
    now: Time,
    settings: Settings,
    endpoint: Endpoint,
    honest: Endpoint,
    /// Two that do as they like, and the honest one.
    peers: [PeerHandle; 3],
    /// The endpoint as the honest peer knows it.
    back: PeerHandle,
    /// Of the endpoint's requests to each hostile peer, in order.
    ids: [Vec<u64>; 2],
    /// Every RPC with a hostile peer that the application heard of.
    rpcs: Vec<RpcHandle>,
    requests: HashMap<RpcHandle, bool>,
    /// What was handed over: peer, client's port, id, server's port.
    executed: HashSet<(u32, u16, u64, u16)>,
    over: HashSet<RpcHandle>,
    /// Calls between endpoint and honest peer that are open, and the length of
    /// their responses: (of the honest peer, handle at the client).
    open: HashMap<(bool, RpcHandle), u32>,
    /// Lengths of responses by length of request, for the two servers.
    answers: HashMap<u32, u32>,
    held: bool,
}

impl Town {
    pub(crate) fn new(config: &Config) -> Self {
        let settings = config.settings().expect("a valid configuration");
        let now = Time::from_nanos(1_000_000_000);
        let identity = |first_id| Identity {
            first_id,
            instance: first_id,
            hash_seed: 3,
        };
        let mut endpoint = Endpoint::new(settings.clone(), identity(1_000_000));
        let mut honest = Endpoint::new(settings.clone(), identity(2_000_000));
        let peers = [(); 3].map(|()| endpoint.add_peer(now, 1480).expect("room").0);
        let (back, _) = honest.add_peer(now, 1480).expect("room");
        endpoint.listen(4000);
        honest.listen(4000);
        Self {
            now,
            settings,
            endpoint,
            honest,
            peers,
            back,
            ids: [Vec::new(), Vec::new()],
            rpcs: Vec::new(),
            requests: HashMap::new(),
            executed: HashSet::new(),
            over: HashSet::new(),
            open: HashMap::new(),
            answers: HashMap::new(),
            held: false,
        }
    }

    pub(crate) fn step(&mut self, step: &Step) {
        let now = self.now;
        match step {
            Step::Arrive(arrival) => self.arrive(arrival),
            Step::Request(peer, length, kind) => self.request(*peer, *length, *kind),
            Step::Honest(theirs, there, back) => self.call(*theirs, *there, *back),
            Step::Take(n) => {
                if let Some(rpc) = self.nth(*n) {
                    self.endpoint.taken(now, rpc);
                }
            }
            Step::Respond(n, length) => {
                if let Some(rpc) = self.nth(*n) {
                    let _ = self.endpoint.respond(now, rpc, *length);
                }
            }
            Step::Abort(n, code) => {
                if let Some(rpc) = self.nth(*n) {
                    self.endpoint.abort(now, rpc, *code);
                    self.requests.remove(&rpc);
                    self.over.insert(rpc);
                }
            }
            Step::Ready(n, bytes) => {
                if let Some(rpc) = self.nth(*n) {
                    self.endpoint.ready(rpc, *bytes);
                }
            }
            Step::Flush(peer) => self.endpoint.flush_acks(self.peers[*peer], 40_000),
            Step::Listen(true) => self.endpoint.listen(4001),
            Step::Listen(false) => self.endpoint.unlisten(4001),
            Step::Unreachable(peer, what, id) => {
                let quoted = Quoted {
                    source_port: 40_000,
                    destination_port: 4000,
                    sender_id: id.map(|id| SenderId(self.sender_id(*peer, id).0 ^ 1)),
                };
                self.endpoint
                    .unreachable(now, self.peers[*peer], *what, quoted);
            }
            Step::Wait(ns) => {
                self.held = false;
                self.exchange();
                self.wait(self.now + *ns);
            }
            Step::Hold(held) => self.held = *held,
        }
        self.exchange();
        self.check();
    }

    fn nth(&self, n: usize) -> Option<RpcHandle> {
        // The youngest, so that lists that grow keep their meaning.
        self.rpcs.iter().rev().nth(n).copied()
    }

    fn sender_id(&self, peer: usize, id: Id) -> SenderId {
        match id {
            Id::Ours(n) => SenderId(self.ids[peer].iter().rev().nth(n).map_or(7, |id| id + 1)),
            Id::Theirs(id) | Id::Literal(id) => SenderId(id),
        }
    }

    fn arrive(&mut self, arrival: &Arrival) {
        let packet = Packet::new(
            arrival.source_port,
            arrival.destination_port,
            self.sender_id(arrival.peer, arrival.id),
            arrival.body,
        );
        let peer = self.peers[arrival.peer];
        let now = self.now;
        let verdict = self.endpoint.packet(now, peer, &packet, arrival.payload);
        if let (Verdict::Begin(placement) | Verdict::Place(placement), Body::Data(data)) =
            (verdict, arrival.body)
        {
            assert!(arrival.payload > 0, "nothing to place: {arrival:?}");
            assert_eq!(placement.offset, data.offset());
            assert_eq!(placement.message_length, data.message_length);
            assert!(data.message_length <= self.settings.max_message_bytes);
            assert!(data.message_length - data.offset() >= arrival.payload);
        }
    }

    fn request(&mut self, peer: usize, length: u32, kind: Kind) {
        if self.requests.len() >= MOST_REQUESTS {
            return;
        }
        let request = Request {
            local_port: 40_000,
            remote_port: 4000,
            length,
            kind,
        };
        if let Ok(rpc) = self.endpoint.request(self.now, self.peers[peer], request) {
            self.rpcs.push(rpc);
            self.requests.insert(rpc, false);
            self.over.remove(&rpc);
        }
    }

    fn call(&mut self, theirs: bool, there: u32, back: u32) {
        if self.open.len() >= 4 || self.answers.contains_key(&there) {
            return;
        }
        let request = Request {
            local_port: 40_000,
            remote_port: 4000,
            length: there,
            kind: Kind::Call,
        };
        let (client, server) = if theirs {
            (&mut self.honest, self.back)
        } else {
            (&mut self.endpoint, self.peers[2])
        };
        let rpc = client.request(self.now, server, request).expect("room");
        self.open.insert((theirs, rpc), back);
        self.answers.insert(there, back);
    }

    /// Lets time pass, timers firing at both.
    fn wait(&mut self, to: Time) {
        let mut rounds = 0;
        loop {
            let next = [&self.endpoint, &self.honest]
                .iter()
                .filter_map(|endpoint| endpoint.next_timeout(self.now).map(|(at, _)| at))
                .min();
            let Some(at) = next.filter(|at| *at < to) else {
                break;
            };
            rounds = if at <= self.now { rounds + 1 } else { 0 };
            assert!(
                rounds < 100,
                "timers spin: {:?}",
                self.endpoint.next_timeout(self.now)
            );
            self.now = self.now.max(at);
            self.fire();
            self.exchange();
        }
        self.now = to;
        self.fire();
    }

    fn fire(&mut self) {
        let now = self.now;
        while self.endpoint.timeout(now, 8) == MoreDue::Yes {}
        while self.honest.timeout(now, 8) == MoreDue::Yes {}
    }

    /// Takes out all that both have to say, and gives the honest peer's packets
    /// and those for it to the other at once.
    fn exchange(&mut self) {
        let now = self.now;
        let mut outputs = 0;
        loop {
            let mut quiet = true;
            while !self.held
                && let Some(transmit) = self.endpoint.poll_transmit(now)
            {
                quiet = false;
                outputs += 1;
                assert!(outputs < MOST_OUTPUTS, "it never ends: {transmit:?}");
                self.sent(&transmit);
            }
            while let Some(transmit) = self.honest.poll_transmit(now) {
                quiet = false;
                let payload = transmit.payload.map_or(0, |payload| payload.length());
                self.endpoint
                    .packet(now, self.peers[2], &transmit.packet, payload);
            }
            while let Some(event) = self.endpoint.poll_event() {
                quiet = false;
                self.event(event);
            }
            while let Some(event) = self.honest.poll_event() {
                quiet = false;
                self.event_of_the_honest(event);
            }
            if quiet {
                return;
            }
        }
    }

    fn sent(&mut self, transmit: &Transmit) {
        let packet = &transmit.packet;
        assert!(transmit.priority < self.settings.priorities);
        assert!(packet.source_port != 0 && packet.destination_port != 0);
        let mut bytes = vec![0; packet.header_length()];
        packet.emit(&mut bytes).expect("room");
        let (parsed, _) = Packet::parse(&bytes).expect("a packet");
        assert_eq!(parsed, *packet);
        let payload = transmit.payload.map_or(0, |payload| payload.length());
        if let Body::Data(data) = &packet.body {
            self.sent_data(transmit, data);
        } else {
            assert_eq!(transmit.payload, None);
        }
        match self.peers.iter().position(|peer| *peer == transmit.peer) {
            Some(2) => {
                self.honest.packet(self.now, self.back, packet, payload);
            }
            Some(peer) => {
                let id = packet.sender_id.0;
                let known = &mut self.ids[peer];
                if id != 0 && packet.sender_id.from_client() && !known.contains(&id) {
                    known.push(id);
                }
            }
            None => panic!("a packet to nobody: {transmit:?}"),
        }
    }

    fn sent_data(&self, transmit: &Transmit, data: &Data) {
        let payload = transmit.payload.expect("DATA has a payload");
        assert!(payload.start < payload.end && payload.end <= data.message_length);
        assert!(payload.length() <= 1424, "{transmit:?}");
        assert_eq!(payload.start, data.offset());
        assert!(data.incoming <= data.message_length);
        if self.settings.extensions == homa_core::Extensions::Off {
            assert!(data.response_limit_log2 == 0 && !data.one_way);
        }
    }

    fn event(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Request {
                rpc,
                peer,
                id,
                local_port,
                remote_port,
                length,
                ..
            } => {
                let key = (peer.index(), remote_port, id.0, local_port);
                assert!(self.executed.insert(key), "handed over twice: {key:?}");
                self.over.remove(&rpc);
                if peer == self.peers[2] {
                    self.endpoint.taken(now, rpc);
                    let back = self.answers[&length];
                    let _ = self.endpoint.respond(now, rpc, back);
                } else {
                    self.rpcs.push(rpc);
                    self.serve(rpc, id.0 / 2);
                }
            }
            Event::Response { rpc, length } => {
                self.alive(rpc);
                if let Some(back) = self.open.remove(&(false, rpc)) {
                    assert_eq!(length, back);
                    self.endpoint.taken(now, rpc);
                } else {
                    assert!(self.requests.contains_key(&rpc));
                }
            }
            Event::Failed { rpc, failure } => {
                let honest = self.open.contains_key(&(false, rpc));
                assert!(!honest, "a call to the honest peer: {failure:?}");
                self.last(rpc);
                assert!(self.requests.remove(&rpc).is_some());
            }
            Event::Delivered { rpc } => {
                self.last(rpc);
                assert!(self.requests.remove(&rpc).is_some());
            }
            Event::Cancelled { rpc } => self.alive(rpc),
            Event::Released { rpc } => self.last(rpc),
            other => panic!("{other:?}"),
        }
    }

    /// Some requests are answered, some taken, some left to later steps.
    fn serve(&mut self, rpc: RpcHandle, n: u64) {
        if !n.is_multiple_of(3) {
            self.endpoint.taken(self.now, rpc);
        }
        if n % 3 == 1 {
            let _ = self.endpoint.respond(self.now, rpc, 50_000);
        }
    }

    fn alive(&self, rpc: RpcHandle) {
        assert!(!self.over.contains(&rpc), "an event after the last one");
    }

    fn last(&mut self, rpc: RpcHandle) {
        assert!(self.over.insert(rpc), "ended twice");
    }

    fn event_of_the_honest(&mut self, event: Event) {
        let now = self.now;
        match event {
            Event::Request { rpc, length, .. } => {
                self.honest.taken(now, rpc);
                let back = self.answers[&length];
                let _ = self.honest.respond(now, rpc, back);
            }
            Event::Response { rpc, length } => {
                let back = self.open.remove(&(true, rpc)).expect("one of its calls");
                assert_eq!(length, back);
                self.honest.taken(now, rpc);
            }
            Event::Failed { rpc, failure } => {
                assert!(
                    !self.open.contains_key(&(true, rpc)),
                    "a call of the honest peer failed: {failure:?}"
                );
            }
            _ => {}
        }
    }

    /// What must hold at any time.
    fn check(&self) {
        let gauges = self.endpoint.gauges();
        let settings = &self.settings;
        let rpcs = gauges.client_outgoing
            + gauges.client_incoming
            + gauges.server_incoming
            + gauges.server_in_service
            + gauges.server_outgoing
            + gauges.ended;
        assert!(rpcs <= settings.max_rpcs, "{gauges:?}");
        assert!(gauges.buffer_bytes <= settings.buffer_bytes, "{gauges:?}");
        assert!(gauges.ranges <= settings.max_ranges, "{gauges:?}");
        assert!(gauges.tombstones <= settings.max_tombstones, "{gauges:?}");
        assert!(
            gauges.active_messages <= u32::from(settings.max_overcommit),
            "{gauges:?}"
        );
        assert!(gauges.active_messages <= gauges.managed_messages);
    }

    /// The hostile peers fall silent, the application ends what it has: all
    /// calls with the honest peer are answered, and nothing is left.
    pub(crate) fn end(&mut self) {
        self.held = false;
        self.exchange();
        for rpc in self.rpcs.clone() {
            self.endpoint.ready(rpc, u32::MAX);
            self.endpoint.taken(self.now, rpc);
        }
        let from = self.now;
        self.wait(from + HONEST_NS);
        self.exchange();
        assert!(self.open.is_empty(), "calls left: {:?}", self.open);
        for rpc in self.rpcs.clone() {
            self.endpoint.taken(self.now, rpc);
            self.endpoint.abort(self.now, rpc, AbortCode::Dropped);
        }
        self.wait(from + END_NS);
        self.exchange();
        for endpoint in [&self.endpoint, &self.honest] {
            let mut left = endpoint.gauges();
            (left.peers, left.tombstones) = (0, 0);
            assert_eq!(left, homa_core::Gauges::default());
        }
    }
}
