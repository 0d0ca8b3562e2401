//! The world: hosts, packets in flight, things the applications will do.

use std::collections::{BTreeMap, HashMap};

use homa_core::{
    Config, Event, Kind, Mechanisms, MoreDue, Request, RpcHandle, Time, Transmit, Verdict,
};
use homa_wire::{AbortCode, Body, Packet, PacketType};

use super::host::{Host, Messages};
use super::ledger::{Entry, Ledger, Outcome, Tag, message};
use super::{Fate, LinkFaults, Random, Seen};

/// Rounds at one instant after which the world is taken to spin.
const MAX_ROUNDS_PER_INSTANT: u32 = 20_000;

type Script = Box<dyn FnMut(&Seen<'_>) -> Fate>;
type Inspector = Box<dyn FnMut(usize, &Transmit)>;

/// Something that is going to happen.
enum Due {
    Packet {
        from: usize,
        to: usize,
        bytes: Vec<u8>,
    },
    Take {
        host: usize,
        life: u32,
        rpc: RpcHandle,
    },
    Respond {
        host: usize,
        life: u32,
        rpc: RpcHandle,
    },
    Abort {
        host: usize,
        life: u32,
        rpc: RpcHandle,
        tag: Tag,
    },
}

pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) hosts: Vec<Host>,
    pub(crate) ledger: Ledger,
    pub(crate) faults: LinkFaults,
    pub(crate) delay_ns: u64,
    pub(crate) link_rate_bps: u64,
    pub(crate) random: Random,
    /// Packets that arrived anywhere.
    pub(crate) arrived: u64,
    /// Every event that an application saw, for assertions.
    pub(crate) cancelled: usize,
    seed: u64,
    script: Option<Script>,
    inspector: Option<Inspector>,
    seen: HashMap<(usize, usize, PacketType), usize>,
    due: BTreeMap<(Time, u64), Due>,
    sequence: u64,
}

impl World {
    /// Hosts with one configuration each, on links of 10 Gbit/s and 5 us.
    pub(crate) fn new(seed: u64, configs: &[Config]) -> Self {
        let now = Time::from_nanos(1_000_000_000);
        let mut random = Random::new(seed);
        let hosts = configs
            .iter()
            .enumerate()
            .map(|(index, config)| Host::new(index, configs.len(), config, random.next(), now))
            .collect();
        Self {
            now,
            hosts,
            ledger: Ledger::default(),
            faults: LinkFaults::default(),
            delay_ns: 5_000,
            link_rate_bps: 10_000_000_000,
            random,
            arrived: 0,
            cancelled: 0,
            seed,
            script: None,
            inspector: None,
            seen: HashMap::new(),
            due: BTreeMap::new(),
            sequence: 0,
        }
    }

    /// Two hosts with the same configuration.
    pub(crate) fn pair(seed: u64, config: &Config) -> Self {
        Self::new(seed, &[config.clone(), config.clone()])
    }

    /// Decides the fate of every packet from now on, instead of the faults.
    pub(crate) fn script(&mut self, script: impl FnMut(&Seen<'_>) -> Fate + 'static) {
        self.script = Some(Box::new(script));
    }

    /// Sees every packet as it is sent.
    pub(crate) fn inspect(&mut self, inspector: impl FnMut(usize, &Transmit) + 'static) {
        self.inspector = Some(Box::new(inspector));
    }

    /// No more faults.
    pub(crate) fn heal(&mut self) {
        self.faults = LinkFaults::default();
        self.script = None;
    }

    pub(crate) fn advance(&mut self, ns: u64) {
        self.now = self.now + ns;
    }

    /// A request from one host's application to another host.
    pub(crate) fn call(&mut self, client: usize, server: usize, length: u32, back: u32) -> Tag {
        self.request(client, server, length, back, Kind::Call)
            .expect("a request that is possible")
    }

    pub(crate) fn request(
        &mut self,
        client: usize,
        server: usize,
        length: u32,
        back: u32,
        kind: Kind,
    ) -> Result<Tag, homa_core::RequestError> {
        let now = self.now;
        let host = &mut self.hosts[client];
        let request = Request {
            local_port: 40_000,
            remote_port: 4000,
            length,
            kind,
        };
        let rpc = host.endpoint.request(now, host.peer(server), request)?;
        let tag = self.ledger.add(Entry {
            client,
            server,
            length,
            response_length: back,
            kind,
            outcome: None,
            executions: Vec::new(),
        });
        let messages = Messages {
            tag,
            outgoing: message(tag, false, length),
            incoming: Vec::new(),
        };
        self.hosts[client].messages.insert(rpc, messages);
        Ok(tag)
    }

    /// The client's application gives a request up after some time.
    pub(crate) fn abort_after(&mut self, tag: Tag, ns: u64) {
        let client = self.ledger.entry(tag).client;
        let host = &self.hosts[client];
        let found = host
            .messages
            .iter()
            .find(|(_, messages)| messages.tag == tag)
            .map(|(rpc, _)| *rpc);
        if let Some(rpc) = found {
            let due = Due::Abort {
                host: client,
                life: host.life,
                rpc,
                tag,
            };
            self.schedule(self.now + ns, due);
        }
    }

    /// A host loses everything and comes back at the same address.
    pub(crate) fn restart(&mut self, index: usize) {
        let seed = self.random.next();
        let now = self.now;
        for tag in 0..self.ledger.entries.len() {
            let entry = &self.ledger.entries[tag];
            if entry.client == index && entry.outcome.is_none() {
                self.ledger.ended(Tag(tag), Outcome::ClientGone);
            }
        }
        self.hosts[index].restart(index, seed, now);
    }

    fn schedule(&mut self, at: Time, due: Due) {
        self.sequence += 1;
        self.due.insert((at, self.sequence), due);
    }

    /// Runs until every request has ended and nothing is left anywhere, or
    /// fails when that takes longer than `limit_ns`.
    pub(crate) fn run_until_idle(&mut self, limit_ns: u64) {
        let end = self.now + limit_ns;
        self.run(Self::is_idle, end);
        assert!(self.is_idle(), "{}", self.hang("not idle in time"));
    }

    /// Runs until every request has ended.
    pub(crate) fn run_until_ended(&mut self, limit_ns: u64) {
        let end = self.now + limit_ns;
        self.run(|world| world.ledger.open() == 0, end);
        assert_eq!(self.ledger.open(), 0, "{}", self.hang("requests left"));
    }

    /// Runs for some time, whatever happens.
    pub(crate) fn run_for(&mut self, ns: u64) {
        let end = self.now + ns;
        self.run(|_| false, end);
        self.now = end;
    }

    fn run(&mut self, done: impl Fn(&Self) -> bool, end: Time) {
        let mut rounds = 0;
        let mut instant = self.now;
        loop {
            for host in 0..self.hosts.len() {
                self.attend(host);
            }
            if done(self) {
                return;
            }
            let Some(next) = self.next_time() else {
                return;
            };
            if next > end {
                return;
            }
            self.now = self.now.max(next);
            rounds = if instant == self.now { rounds + 1 } else { 0 };
            instant = self.now;
            assert!(rounds < MAX_ROUNDS_PER_INSTANT, "{}", self.hang("it spins"));
            self.happen();
        }
    }

    fn next_time(&self) -> Option<Time> {
        let due = self.due.keys().next().map(|(at, _)| *at);
        let timers = self
            .hosts
            .iter()
            .filter_map(|host| host.endpoint.next_timeout(self.now).map(|(at, _)| at));
        due.into_iter().chain(timers).min()
    }

    fn happen(&mut self) {
        while let Some(entry) = self.due.first_entry() {
            if entry.key().0 > self.now {
                break;
            }
            let due = entry.remove();
            self.one(due);
        }
        let now = self.now;
        for host in &mut self.hosts {
            while host.endpoint.timeout(now, 8) == MoreDue::Yes {}
        }
    }

    fn one(&mut self, due: Due) {
        let now = self.now;
        match due {
            Due::Packet { from, to, bytes } => self.arrive(from, to, &bytes),
            Due::Take { host, life, rpc } if self.hosts[host].life == life => {
                self.take(host, rpc);
            }
            Due::Respond { host, life, rpc } if self.hosts[host].life == life => {
                self.respond(host, rpc);
            }
            Due::Abort {
                host,
                life,
                rpc,
                tag,
            } if self.hosts[host].life == life => {
                let known = self.hosts[host].messages.get(&rpc);
                if known.is_some_and(|messages| messages.tag == tag)
                    && self.ledger.entry(tag).outcome.is_none()
                {
                    self.hosts[host]
                        .endpoint
                        .abort(now, rpc, AbortCode::Cancelled);
                    self.hosts[host].messages.remove(&rpc);
                    self.ledger.ended(tag, Outcome::Aborted);
                }
            }
            _ => {}
        }
    }

    fn arrive(&mut self, from: usize, to: usize, bytes: &[u8]) {
        let now = self.now;
        self.arrived += 1;
        let (packet, payload) = Packet::parse(bytes).expect("what was emitted can be parsed");
        let is_data = matches!(packet.body, Body::Data(_));
        let payload = if is_data { payload } else { &[] };
        let host = &mut self.hosts[to];
        let peer = host.peer(from);
        let verdict = host
            .endpoint
            .packet(now, peer, &packet, payload.len() as u32);
        let (placement, begins) = match verdict {
            Verdict::Begin(placement) => (placement, true),
            Verdict::Place(placement) => (placement, false),
            Verdict::Control | Verdict::Drop(_) => return,
        };
        let id = packet.sender_id.to_local();
        let tag = if id.is_client() {
            host.messages
                .get(&placement.rpc)
                .map(|messages| messages.tag)
        } else {
            let lives = self.hosts[from].life;
            self.ledger.find(from, lives, packet.sender_id.0)
        };
        let tag = tag.unwrap_or_else(|| panic!("{}", self.hang("payload of no request")));
        let host = &mut self.hosts[to];
        if begins && !id.is_client() {
            // A slot of an RPC that is gone may be used again.
            host.messages.remove(&placement.rpc);
        }
        let messages = host.messages.entry(placement.rpc).or_insert(Messages {
            tag,
            outgoing: Vec::new(),
            incoming: Vec::new(),
        });
        assert_eq!(messages.tag, tag, "placed into the message of another RPC");
        if begins {
            messages.incoming = vec![0; placement.message_length as usize];
        }
        let start = placement.offset as usize;
        messages.incoming[start..start + payload.len()].copy_from_slice(payload);
    }

    /// Takes everything that a host has to say.
    fn attend(&mut self, index: usize) {
        let now = self.now;
        loop {
            let mut quiet = true;
            while let Some(transmit) = self.hosts[index].endpoint.poll_transmit(now) {
                quiet = false;
                self.send(index, &transmit);
            }
            while let Some(event) = self.hosts[index].endpoint.poll_event() {
                quiet = false;
                self.event(index, event);
            }
            if quiet {
                return;
            }
        }
    }

    fn send(&mut self, from: usize, transmit: &Transmit) {
        if let Some(inspector) = &mut self.inspector {
            inspector(from, transmit);
        }
        if matches!(transmit.packet.body, Body::Grant(_)) {
            self.check_budget(from);
        }
        let host = &mut self.hosts[from];
        host.packets_sent += 1;
        let to = host.other(transmit.peer);
        let mut bytes = vec![0; transmit.packet.header_length()];
        let written = transmit.packet.emit(&mut bytes);
        assert_eq!(written, Some(bytes.len()));
        let mut payload_length = 0;
        if let Some(payload) = transmit.payload {
            payload_length = payload.length();
            assert!(payload_length > 0, "DATA without payload is never sent");
            let messages = host
                .messages
                .get(&payload.rpc)
                .expect("payload of a message that exists");
            if transmit.packet.sender_id.from_client() {
                let (tag, life) = (messages.tag, host.life);
                self.ledger
                    .identify(from, life, transmit.packet.sender_id.0, tag);
            }
            bytes.extend_from_slice(
                &messages.outgoing[payload.start as usize..payload.end as usize],
            );
        }
        let (parsed, rest) = Packet::parse(&bytes).expect("a packet that can be parsed");
        assert_eq!(parsed, transmit.packet, "emit and parse are inverse");
        if transmit.payload.is_some() {
            assert_eq!(rest.len() as u32, payload_length);
        }
        let wire_bits = 8 * (bytes.len() as u64 + 58);
        let host = &mut self.hosts[from];
        host.idle_at =
            host.idle_at.max(self.now) + wire_bits * 1_000_000_000 / self.link_rate_bps.max(1);
        let at = host.idle_at + self.delay_ns;
        let fate = self.fate(from, to, transmit, payload_length);
        let packet = |bytes| Due::Packet { from, to, bytes };
        match fate {
            Fate::Drop => {}
            Fate::Pass => self.schedule(at, packet(bytes)),
            Fate::Late(ns) => self.schedule(at + ns, packet(bytes)),
            Fate::Twice => {
                let late = self.random.below(200_000);
                self.schedule(at, packet(bytes.clone()));
                self.schedule(at + late, packet(bytes));
            }
        }
    }

    /// A host that grants stays within what it allows: no message is granted
    /// unless there is room, except for the share of the oldest.
    fn check_budget(&self, index: usize) {
        let host = &self.hosts[index];
        if host.uses(Mechanisms::FIFO_GRANTS) {
            return;
        }
        let longest = self.hosts.iter().map(|host| host.packet_bytes).max();
        let most = u64::from(host.settings.max_incoming_bytes + longest.unwrap_or(0));
        let total = host.endpoint.gauges().incoming_bytes;
        assert!(total <= most, "{}", self.hang("granted too much"));
    }

    fn fate(&mut self, from: usize, to: usize, transmit: &Transmit, payload_length: u32) -> Fate {
        let Some(script) = &mut self.script else {
            return self.faults.fate(&mut self.random);
        };
        let kind = transmit.packet.body.packet_type();
        let nth = self.seen.entry((from, to, kind)).or_default();
        let fate = script(&Seen {
            from,
            to,
            packet: &transmit.packet,
            payload_length,
            nth: *nth,
        });
        *nth += 1;
        fate
    }

    fn event(&mut self, index: usize, event: Event) {
        let life = self.hosts[index].life;
        match event {
            Event::Request {
                rpc,
                peer,
                id,
                length,
                ..
            } => {
                let client = self.hosts[index].other(peer);
                let lives = self.hosts[client].life;
                let tag = self
                    .ledger
                    .find(client, lives, id.0 ^ 1)
                    .unwrap_or_else(|| panic!("{}", self.hang("a request that nobody made")));
                let entry = self.ledger.entry(tag);
                assert_eq!(entry.length, length, "length of {tag:?}");
                let messages = &self.hosts[index].messages[&rpc];
                assert_eq!(messages.incoming, message(tag, false, length), "{tag:?}");
                self.ledger.executed(tag, index, life);
                self.take_later(index, rpc);
            }
            Event::Response { rpc, length } => {
                let messages = &self.hosts[index].messages[&rpc];
                let tag = messages.tag;
                assert_eq!(length, self.ledger.entry(tag).response_length);
                assert_eq!(messages.incoming, message(tag, true, length), "{tag:?}");
                self.take_later(index, rpc);
            }
            Event::Delivered { rpc } => self.finish(index, rpc, Outcome::Delivered),
            Event::Failed { rpc, failure } => self.finish(index, rpc, Outcome::Failed(failure)),
            Event::Cancelled { .. } => self.cancelled += 1,
            Event::Released { rpc } => {
                self.hosts[index].messages.remove(&rpc);
            }
            other => panic!("a new kind of event: {other:?}"),
        }
    }

    fn finish(&mut self, index: usize, rpc: RpcHandle, outcome: Outcome) {
        let messages = self.hosts[index]
            .messages
            .remove(&rpc)
            .expect("an RPC of ours");
        self.ledger.ended(messages.tag, outcome);
    }

    fn take_later(&mut self, host: usize, rpc: RpcHandle) {
        let life = self.hosts[host].life;
        let wait = self.hosts[host].service.take_ns;
        if wait == 0 {
            self.take(host, rpc);
        } else {
            let at = self.now + self.random.below(wait);
            self.schedule(at, Due::Take { host, life, rpc });
        }
    }

    fn take(&mut self, host: usize, rpc: RpcHandle) {
        let now = self.now;
        let Some(messages) = self.hosts[host].messages.get(&rpc) else {
            return;
        };
        let tag = messages.tag;
        let entry = self.ledger.entry(tag);
        let (client, kind) = (entry.client == host, entry.kind);
        let open = entry.outcome.is_none();
        self.hosts[host].endpoint.taken(now, rpc);
        if client {
            self.hosts[host].messages.remove(&rpc);
            if open {
                self.ledger.ended(tag, Outcome::Response);
            }
        } else if kind == Kind::OneWay {
            self.hosts[host].messages.remove(&rpc);
        } else {
            let life = self.hosts[host].life;
            let wait = self.random.below(self.hosts[host].service.time_ns);
            self.schedule(now + wait, Due::Respond { host, life, rpc });
        }
    }

    fn respond(&mut self, index: usize, rpc: RpcHandle) {
        let now = self.now;
        let refuse = self.hosts[index].service.refuse_permille;
        let refused = refuse > 0 && self.random.chance(refuse);
        let host = &mut self.hosts[index];
        let Some(messages) = host.messages.get_mut(&rpc) else {
            return;
        };
        if refused {
            host.endpoint.abort(now, rpc, AbortCode::Refused);
            host.messages.remove(&rpc);
            return;
        }
        let length = self.ledger.entry(messages.tag).response_length;
        messages.outgoing = message(messages.tag, true, length);
        if host.endpoint.respond(now, rpc, length).is_err() {
            host.messages.remove(&rpc);
        }
    }

    /// Nothing is left of any RPC, and what was counted is back at nothing.
    fn is_idle(&self) -> bool {
        self.ledger.open() == 0
            && self.hosts.iter().all(|host| {
                let g = host.endpoint.gauges();
                g.client_outgoing + g.client_incoming + g.server_incoming + g.ended == 0
                    && g.server_in_service + g.server_outgoing == 0
            })
    }

    /// With no RPC left, everything that was taken must have been given back.
    pub(crate) fn assert_balanced(&self) {
        for (index, host) in self.hosts.iter().enumerate() {
            let g = host.endpoint.gauges();
            let left = (
                g.buffer_bytes,
                g.buffer_waiting,
                g.incoming_bytes,
                g.managed_messages,
                g.active_messages,
                g.sendable_messages,
                g.ranges,
            );
            assert_eq!(left, (0, 0, 0, 0, 0, 0, 0), "host {index}: {g:?}");
        }
    }

    /// What to print when something has gone wrong.
    pub(crate) fn hang(&self, what: &str) -> String {
        let hosts = self.hosts.iter().enumerate().map(|(index, host)| {
            format!(
                "host {index}: {:?}\n  next timer {:?}\n",
                host.endpoint.gauges(),
                host.endpoint.next_timeout(self.now)
            )
        });
        let open = self.ledger.entries.iter().enumerate();
        let requests = open
            .filter(|(_, entry)| entry.outcome.is_none())
            .take(5)
            .map(|(tag, entry)| format!("request {tag}: {entry:?}\n"));
        let mut text = format!("{what}: seed {}, {:?}\n", self.seed, self.now);
        text.extend(hosts);
        text.extend(requests);
        text
    }
}
