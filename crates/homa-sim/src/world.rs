//! The loop: takes the next event, lets hosts and switches act, plans what
//! follows.
//!
//! A packet costs one event a hop while links are idle, and a second where it
//! has to wait; a packet that leaves a host costs one more, for the question
//! what to send next. Owns everything that changes during a run.

use crate::events::{Event, Events};
use crate::fabric::{Fabric, Offer};
use crate::packet::{Congested, HostId, MessageSlot, NIL, Packet, Packets};
use crate::port::Alarm;
use crate::time::{NANOSECOND_PS, SimTime};
use crate::topology::{CUT_THROUGH_BYTES, Forwarding, Topology, TopologyError};
use crate::traffic::{Arrivals, Traffic};
use crate::transport::{Arrival, Order, Outcome, Pattern, Transport, Way};

/// A message that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Who sent it.
    pub from: HostId,
    /// To whom.
    pub to: HostId,
    /// Its length.
    pub bytes: u32,
    /// Whether there was an answer.
    pub pattern: Pattern,
    /// When the application handed it over.
    pub started: SimTime,
    /// When the other application (or, with an answer, the same) had it.
    pub done: SimTime,
}

/// Who is told of every message that is done.
pub trait Observer {
    /// A message is done.
    fn done(&mut self, record: &Record);
}

/// What a run counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorldCounters {
    /// Packets sent over a link, counted at each link.
    pub packet_hops: u64,
    /// Packets that left a host by its NIC.
    pub packets: u64,
    /// Packets that travelled beside the network.
    pub asides: u64,
    /// Events.
    pub events: u64,
    /// Messages that hosts were told to send.
    pub started: u64,
    /// Messages done.
    pub done: u64,
    /// Messages that the sender gave up.
    pub failed: u64,
    /// Messages that the transport did not take.
    pub refused: u64,
    /// Bytes sent by hosts, as on the wire.
    pub sent_wire_bytes: u64,
    /// The same by priority; 7 is the most urgent.
    pub sent_by_priority: [u64; 8],
}

#[derive(Clone, Copy)]
struct Message {
    stage: Stage,
    from: HostId,
    to: HostId,
    bytes: u32,
    pattern: Pattern,
    started: SimTime,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    UnderWay,
    Done,
    /// The slot is free.
    Over,
}

struct HostState {
    arrivals: Arrivals,
    /// Whether an event will ask for the next packet.
    asked: Alarm,
    /// When the transport will be called; earlier calls that were planned are void.
    timer_at: SimTime,
}

/// A network in motion.
pub struct World<T: Transport, O> {
    topology: Topology,
    fabric: Fabric,
    events: Events,
    packets: Packets<T::Header>,
    transports: Vec<T>,
    hosts: Vec<HostState>,
    messages: Vec<Message>,
    free_messages: Vec<u32>,
    traffic: Traffic,
    outcomes: Vec<Outcome>,
    observer: O,
    counters: WorldCounters,
    trace_hash: u64,
    now: SimTime,
    /// Hosts start no messages after this.
    quiet_from: SimTime,
    host_byte_ps: u64,
    /// From the transport's choice to the first switch, without the link.
    way_out_ps: u64,
}

impl<T: Transport, O: Observer> World<T, O> {
    /// A network that is idle, with the first message of each host planned.
    /// `transports` has one entry for each host of `topology`.
    pub fn new(
        topology: Topology,
        transports: Vec<T>,
        traffic: Traffic,
        seed: u64,
        observer: O,
    ) -> Result<Self, TopologyError> {
        topology.check()?;
        let hosts = topology.hosts();
        let mut world = Self {
            fabric: Fabric::new(&topology, seed),
            events: Events::default(),
            packets: Packets::default(),
            transports,
            hosts: (0..hosts)
                .map(|host| HostState {
                    arrivals: Arrivals::new(&traffic, seed, HostId(host), hosts),
                    asked: Alarm::Off,
                    timer_at: SimTime::NEVER,
                })
                .collect(),
            messages: Vec::new(),
            free_messages: Vec::new(),
            traffic,
            outcomes: Vec::new(),
            observer,
            counters: WorldCounters::default(),
            trace_hash: 0xcbf2_9ce4_8422_2325,
            now: SimTime::ZERO,
            quiet_from: SimTime::NEVER,
            host_byte_ps: topology.host_byte_ps(),
            way_out_ps: (topology.software_out_ns + topology.nic_ns + topology.host_link_ns)
                * NANOSECOND_PS,
            topology,
        };
        if world.traffic.payload_bps > 0.0 {
            for host in 0..u32::from(hosts) {
                world.plan_start(host);
            }
        }
        Ok(world)
    }

    /// Runs until `until`, or until nothing is left to happen.
    pub fn run(&mut self, until: SimTime) {
        while let Some(at) = self.events.next_at()
            && at < until
        {
            self.step();
        }
        self.now = self.now.max(until.min(SimTime::NEVER));
    }

    /// Lets the hosts' applications start no message at or after `at`.
    pub fn quiet_from(&mut self, at: SimTime) {
        self.quiet_from = at;
    }

    /// Makes a host send a message now, besides what its application does.
    pub fn send(&mut self, from: HostId, to: HostId, bytes: u32, pattern: Pattern) {
        self.start(u32::from(from.0), to, bytes, pattern);
    }

    /// Virtual time.
    pub fn now(&self) -> SimTime {
        self.now
    }

    /// What has been counted.
    pub fn counters(&self) -> WorldCounters {
        self.counters
    }

    /// A number that depends on every message that was done, and on the order.
    pub fn trace_hash(&self) -> u64 {
        self.trace_hash
    }

    /// Messages under way.
    pub fn messages_under_way(&self) -> usize {
        self.messages.len() - self.free_messages.len()
    }

    /// Lengths of the messages that were started within a window and are not
    /// done.
    pub fn unfinished(&self, window: (SimTime, SimTime)) -> impl Iterator<Item = u32> + '_ {
        let within = move |message: &&Message| {
            message.stage == Stage::UnderWay && (window.0..window.1).contains(&message.started)
        };
        self.messages
            .iter()
            .filter(within)
            .map(|message| message.bytes)
    }

    /// The switches.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// The hosts' transports.
    pub fn transports(&self) -> &[T] {
        &self.transports
    }

    /// Who was told of the messages.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// Who was told of the messages.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    fn step(&mut self) {
        let Some((now, event)) = self.events.pop() else {
            return;
        };
        self.now = now;
        self.counters.events += 1;
        match event {
            Event::Arrive(slot) => self.arrive(slot),
            Event::PortFree(port) => self.port_free(port),
            Event::HostReady(host) => {
                self.hosts[host as usize].asked = Alarm::Off;
                self.pull(host);
            }
            Event::HostTimer(host) => self.timer(host),
            Event::HostStart(host) => self.next_start(host),
        }
    }

    fn plan_start(&mut self, host: u32) {
        let at = self.hosts[host as usize].arrivals.next_at();
        if at < self.quiet_from {
            self.events.push(at, Event::HostStart(host));
        }
    }

    fn next_start(&mut self, host: u32) {
        if self.now >= self.quiet_from {
            return;
        }
        let draw = self.hosts[host as usize]
            .arrivals
            .draw(&self.traffic.workload);
        self.start(host, draw.to, draw.bytes, self.traffic.pattern);
        self.plan_start(host);
    }

    fn start(&mut self, host: u32, to: HostId, bytes: u32, pattern: Pattern) {
        let message = Message {
            stage: Stage::UnderWay,
            from: HostId(host as u16),
            to,
            bytes,
            pattern,
            started: self.now,
        };
        let slot = if let Some(slot) = self.free_messages.pop() {
            self.messages[slot as usize] = message;
            slot
        } else {
            self.messages.push(message);
            self.messages.len() as u32 - 1
        };
        let order = Order {
            message: MessageSlot(slot),
            to,
            bytes,
            pattern,
        };
        self.counters.started += 1;
        if self.transports[host as usize]
            .start(self.now, order)
            .is_err()
        {
            self.counters.refused += 1;
            self.free(slot);
        }
        self.settle(host);
    }

    fn arrive(&mut self, slot: u32) {
        let packet = self.packets.get(slot);
        let (node, from, to) = (packet.node, packet.from, packet.to);
        if self.fabric.host(node).is_some() {
            self.deliver(node, slot);
            return;
        }
        let port = self.fabric.route(node, from, to);
        if self.fabric.forwarding == Forwarding::CutThrough {
            let link_ps = u64::from(packet.wire_bytes) * self.fabric.byte_ps(port);
            let ready_at = packet.tail_at.before(link_ps);
            if ready_at > self.now {
                self.events.push(ready_at, Event::Arrive(slot));
                return;
            }
        }
        match self.fabric.offer(self.now, port, &mut self.packets, slot) {
            Offer::Send => self.transmit(port, slot),
            Offer::Waits => {}
            Offer::WaitsFirst(until) => self.events.push(until, Event::PortFree(port)),
            Offer::Dropped => self.packets.remove(slot),
        }
    }

    fn port_free(&mut self, port: u32) {
        if let Some(slot) = self.fabric.next_waiting(self.now, port, &mut self.packets) {
            self.transmit(port, slot);
        }
        let state = &mut self.fabric.ports[port as usize];
        if state.has_waiting() {
            self.events.push(state.free_at, Event::PortFree(port));
        } else {
            state.alarm = Alarm::Off;
        }
    }

    /// Puts a packet on the link of an idle port.
    fn transmit(&mut self, port: u32, slot: u32) {
        let port = &mut self.fabric.ports[port as usize];
        let packet = self.packets.get_mut(slot);
        let link_ps = u64::from(packet.wire_bytes) * port.byte_ps;
        port.free_at = self.now + link_ps;
        port.counters.packets += 1;
        port.counters.wire_bytes += u64::from(packet.wire_bytes);
        packet.node = port.to;
        packet.tail_at = port.free_at + port.delay_ps;
        self.counters.packet_hops += 1;
        let early = packet.tail_at.before(link_ps) + head_ps(packet.wire_bytes, port.byte_ps);
        let whole = packet.tail_at;
        let cuts_through = self.fabric.forwarding == Forwarding::CutThrough;
        let at = if cuts_through && self.fabric.host(packet.node).is_none() {
            early
        } else {
            whole
        };
        self.events.push(at, Event::Arrive(slot));
    }

    fn deliver(&mut self, host: u32, slot: u32) {
        let packet = self.packets.get(slot);
        let arrival = Arrival {
            header: &packet.header,
            message: packet.message,
            congested: packet.congested,
        };
        self.transports[host as usize].receive(self.now, packet.from, arrival, &mut self.outcomes);
        self.packets.remove(slot);
        self.conclude();
        self.settle(host);
    }

    fn timer(&mut self, host: u32) {
        let state = &mut self.hosts[host as usize];
        if state.timer_at != self.now {
            return;
        }
        state.timer_at = SimTime::NEVER;
        self.transports[host as usize].timer(self.now, &mut self.outcomes);
        self.conclude();
        self.settle(host);
    }

    /// Books what a transport has reported.
    fn conclude(&mut self) {
        for index in 0..self.outcomes.len() {
            match self.outcomes[index] {
                Outcome::Delivered(slot) | Outcome::Answered(slot) => self.done(slot),
                Outcome::Over(slot) => self.free(slot.0),
                Outcome::Failed(slot) => {
                    self.counters.failed += 1;
                    self.free(slot.0);
                }
            }
        }
        self.outcomes.clear();
    }

    fn done(&mut self, slot: MessageSlot) {
        let Some(message) = self.messages.get_mut(slot.0 as usize) else {
            return;
        };
        if message.stage != Stage::UnderWay {
            return;
        }
        message.stage = Stage::Done;
        let record = Record {
            from: message.from,
            to: message.to,
            bytes: message.bytes,
            pattern: message.pattern,
            started: message.started,
            done: self.now,
        };
        self.counters.done += 1;
        for part in [
            u64::from(record.from.0) << 48 | u64::from(record.to.0) << 32 | u64::from(record.bytes),
            record.started.as_ps(),
            record.done.as_ps(),
        ] {
            self.trace_hash = (self.trace_hash ^ part).wrapping_mul(0x0100_0000_01b3);
            self.trace_hash ^= self.trace_hash >> 32;
        }
        self.observer.done(&record);
    }

    fn free(&mut self, slot: u32) {
        if let Some(message) = self.messages.get_mut(slot as usize)
            && message.stage != Stage::Over
        {
            message.stage = Stage::Over;
            self.free_messages.push(slot);
        }
    }

    /// After a host's transport was told anything.
    fn settle(&mut self, host: u32) {
        if self.hosts[host as usize].asked == Alarm::Off {
            self.pull(host);
        }
        if let Some(at) = self.transports[host as usize].next_timer(self.now) {
            let state = &mut self.hosts[host as usize];
            // What is due now must still wait for the clock to move on, since
            // the transport was asked a moment ago.
            let at = at.max(self.now + NANOSECOND_PS);
            if at < state.timer_at {
                state.timer_at = at;
                self.events.push(at, Event::HostTimer(host));
            }
        }
    }

    /// The NIC of a host is idle: what does the transport send?
    fn pull(&mut self, host: u32) {
        let from = HostId(host as u16);
        while let Some(sent) = self.transports[host as usize].next_packet(self.now) {
            let packet = Packet {
                from,
                to: sent.to,
                wire_bytes: sent.wire_bytes,
                priority: sent.priority,
                congested: Congested::No,
                message: sent.message,
                header: sent.header,
                node: match sent.way {
                    Way::Wire => self.fabric.leaf_of(from),
                    Way::Aside => u32::from(sent.to.0),
                },
                next: NIL,
                tail_at: self.now,
            };
            let slot = self.packets.insert(packet);
            if sent.way == Way::Aside {
                self.counters.asides += 1;
                let way_ps = self
                    .topology
                    .fixed_ps(self.topology.distance(from, sent.to));
                self.events.push(self.now + way_ps, Event::Arrive(slot));
                continue;
            }
            let link_ps = u64::from(sent.wire_bytes) * self.host_byte_ps;
            self.counters.packet_hops += 1;
            self.counters.packets += 1;
            self.counters.sent_wire_bytes += u64::from(sent.wire_bytes);
            self.counters.sent_by_priority[usize::from(sent.priority & 7)] +=
                u64::from(sent.wire_bytes);
            let free_at = self.now + link_ps;
            let tail_at = free_at + self.way_out_ps;
            self.packets.get_mut(slot).tail_at = tail_at;
            let at = match self.fabric.forwarding {
                Forwarding::StoreAndForward => tail_at,
                Forwarding::CutThrough => {
                    tail_at.before(link_ps) + head_ps(sent.wire_bytes, self.host_byte_ps)
                }
            };
            self.events.push(at, Event::Arrive(slot));
            self.events.push(free_at, Event::HostReady(host));
            self.hosts[host as usize].asked = Alarm::Set;
            return;
        }
    }
}

/// Time that the part of a packet takes which a switch must have seen before
/// it can choose a port.
fn head_ps(wire_bytes: u32, byte_ps: u64) -> u64 {
    u64::from(wire_bytes.min(CUT_THROUGH_BYTES)) * byte_ps
}
