//! The switches: their ports, their memory, and which port a packet takes.
//!
//! Nodes are numbered: hosts first, then switches (leaves, then spines). A
//! leaf's ports go to its hosts, then to the spines; a spine's to the leaves.

use rand::RngCore;

use crate::packet::{Congested, HostId, Packets};
use crate::port::{Port, PortCounters};
use crate::random::{Purpose, Stream, stream};
use crate::time::{NANOSECOND_PS, SimTime};
use crate::topology::{Buffer, Forwarding, Paths, Shape, Topology};

/// What became of a packet at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer {
    /// The link is idle: send it.
    Send,
    /// It waits, and somebody will call when the link is idle.
    Waits,
    /// It waits; plan a call for when the link is idle.
    WaitsFirst(SimTime),
    /// There is no room.
    Dropped,
}

/// Where in the network a port is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// From a leaf to a spine.
    Up,
    /// From a spine to a leaf.
    Down,
    /// To a host.
    ToHosts,
}

impl Stage {
    /// All, in the order of a packet's way.
    pub const ALL: [Self; 3] = [Self::Up, Self::Down, Self::ToHosts];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Up => "leaf to spine",
            Self::Down => "spine to leaf",
            Self::ToHosts => "leaf to host",
        }
    }
}

/// What waited at the ports of one [`Stage`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// Ports.
    pub ports: u32,
    /// Bytes times the picoseconds that they waited, all ports together.
    pub byte_ps: u128,
    /// Most bytes that waited at one port.
    pub most_bytes: u64,
}

/// All switches of a network.
pub struct Fabric {
    hosts: u32,
    shape: Shape,
    paths: Paths,
    /// Rack (leaf) of each host.
    rack: Vec<u16>,
    pub(crate) ports: Vec<Port>,
    /// First port of each switch.
    first_port: Vec<u32>,
    /// Bytes that wait in each switch.
    waiting_bytes: Vec<u64>,
    sprays: Vec<Stream>,
    buffer: Buffer,
    mark_above_bytes: u64,
    pub(crate) forwarding: Forwarding,
}

impl Fabric {
    /// The switches of `topology`, idle.
    pub fn new(topology: &Topology, seed: u64) -> Self {
        let hosts = u32::from(topology.hosts());
        let (racks, hosts_per_rack, spines) = match topology.shape {
            Shape::Single { hosts } => (1, hosts, 0),
            Shape::LeafSpine {
                racks,
                hosts_per_rack,
                spines,
            } => (racks, hosts_per_rack, spines),
        };
        let down_ps =
            (topology.host_link_ns + topology.switch_ns + topology.software_in_ns) * NANOSECOND_PS;
        let across_ps = (topology.fabric_link_ns + topology.switch_ns) * NANOSECOND_PS;
        let switches = u32::from(racks) + u32::from(spines);
        let mut fabric = Self {
            hosts,
            shape: topology.shape,
            paths: topology.paths,
            rack: (0..topology.hosts())
                .map(|host| host / hosts_per_rack.max(1))
                .collect(),
            ports: Vec::new(),
            first_port: Vec::new(),
            waiting_bytes: vec![0; switches as usize],
            sprays: (0..switches)
                .map(|switch| stream(seed, Purpose::Spray, switch))
                .collect(),
            buffer: topology.buffer,
            mark_above_bytes: topology.mark_above_bytes.unwrap_or(u64::MAX),
            forwarding: topology.forwarding,
        };
        for leaf in 0..u32::from(racks) {
            fabric.first_port.push(fabric.ports.len() as u32);
            for host in 0..u32::from(hosts_per_rack) {
                let to = leaf * u32::from(hosts_per_rack) + host;
                let port = Port::new(leaf, to, topology.host_byte_ps(), down_ps);
                fabric.ports.push(port);
            }
            for spine in 0..u32::from(spines) {
                let to = hosts + u32::from(racks) + spine;
                let port = Port::new(leaf, to, topology.fabric_byte_ps(), across_ps);
                fabric.ports.push(port);
            }
        }
        for spine in u32::from(racks)..switches {
            fabric.first_port.push(fabric.ports.len() as u32);
            for leaf in 0..u32::from(racks) {
                let port = Port::new(spine, hosts + leaf, topology.fabric_byte_ps(), across_ps);
                fabric.ports.push(port);
            }
        }
        fabric
    }

    /// The node of the switch that a host is wired to.
    pub(crate) fn leaf_of(&self, host: HostId) -> u32 {
        self.hosts + u32::from(self.rack[usize::from(host.0)])
    }

    /// The host with this node number, if it is one.
    pub(crate) fn host(&self, node: u32) -> Option<HostId> {
        (node < self.hosts).then_some(HostId(node as u16))
    }

    /// The port that a packet takes out of the switch at `node`.
    pub(crate) fn route(&mut self, node: u32, from: HostId, to: HostId) -> u32 {
        let switch = node - self.hosts;
        let first = self.first_port[switch as usize];
        let rack = self.rack[usize::from(to.0)];
        match self.shape {
            Shape::Single { .. } => first + u32::from(to.0),
            Shape::LeafSpine {
                racks,
                hosts_per_rack,
                spines,
            } => {
                if switch >= u32::from(racks) {
                    first + u32::from(rack)
                } else if u32::from(rack) == switch {
                    first + u32::from(to.0 % hosts_per_rack)
                } else {
                    let draw = match self.paths {
                        Paths::Spray => self.sprays[switch as usize].next_u64() >> 32,
                        Paths::Hash => spread(from, to),
                    };
                    let spine = (draw * u64::from(spines)) >> 32;
                    first + u32::from(hosts_per_rack) + spine as u32
                }
            }
        }
    }

    /// Picoseconds a byte on the link of a port.
    pub(crate) fn byte_ps(&self, port: u32) -> u64 {
        self.ports[port as usize].byte_ps
    }

    /// A packet wants to leave by `port` now.
    pub(crate) fn offer<H: Copy>(
        &mut self,
        now: SimTime,
        port: u32,
        packets: &mut Packets<H>,
        slot: u32,
    ) -> Offer {
        let port = &mut self.ports[port as usize];
        if port.waiting_bytes >= self.mark_above_bytes {
            port.counters.marked += 1;
            packets.get_mut(slot).congested = Congested::Yes;
        }
        if port.is_idle(now) {
            return Offer::Send;
        }
        let wire_bytes = u64::from(packets.get(slot).wire_bytes);
        let room = match self.buffer {
            Buffer::Unlimited => true,
            Buffer::PerPort(bytes) => port.waiting_bytes + wire_bytes <= bytes,
            Buffer::Shared(bytes) => {
                let waiting = &mut self.waiting_bytes[port.switch as usize];
                let fits = *waiting + wire_bytes <= bytes;
                if fits {
                    *waiting += wire_bytes;
                }
                fits
            }
        };
        if !room {
            port.counters.dropped += 1;
            return Offer::Dropped;
        }
        port.push(now, packets, slot);
        if port.alarm == crate::port::Alarm::Set {
            Offer::Waits
        } else {
            port.alarm = crate::port::Alarm::Set;
            Offer::WaitsFirst(port.free_at)
        }
    }

    /// The link of `port` is idle: the packet that it sends next.
    pub(crate) fn next_waiting<H: Copy>(
        &mut self,
        now: SimTime,
        port: u32,
        packets: &mut Packets<H>,
    ) -> Option<u32> {
        let port = &mut self.ports[port as usize];
        let slot = port.pop(now, packets)?;
        if let Buffer::Shared(_) = self.buffer {
            self.waiting_bytes[port.switch as usize] -= u64::from(packets.get(slot).wire_bytes);
        }
        Some(slot)
    }

    /// How much has waited until `now` at the ports of each [`Stage`], in the
    /// order of [`Stage::ALL`].
    pub fn waited(&self, now: SimTime) -> [Waited; 3] {
        let mut stages = [Waited::default(); 3];
        for port in &self.ports {
            let stage = if port.to < self.hosts {
                Stage::ToHosts
            } else if port.switch < self.leaves() {
                Stage::Up
            } else {
                Stage::Down
            };
            let waited = &mut stages[stage as usize];
            waited.ports += 1;
            waited.byte_ps += port.waited_byte_ps(now);
            waited.most_bytes = waited.most_bytes.max(port.counters.most_waiting_bytes);
        }
        stages
    }

    fn leaves(&self) -> u32 {
        match self.shape {
            Shape::Single { .. } => 1,
            Shape::LeafSpine { racks, .. } => u32::from(racks),
        }
    }

    /// What happened at all ports: totals, and the largest maximum.
    pub fn counters(&self) -> PortCounters {
        let mut sum = PortCounters::default();
        for port in &self.ports {
            sum.packets += port.counters.packets;
            sum.wire_bytes += port.counters.wire_bytes;
            sum.dropped += port.counters.dropped;
            sum.marked += port.counters.marked;
            sum.most_waiting_bytes = sum.most_waiting_bytes.max(port.counters.most_waiting_bytes);
        }
        sum
    }
}

/// A number below 2^32 that depends on both hosts.
fn spread(from: HostId, to: HostId) -> u64 {
    let key = u64::from(from.0) << 16 | u64::from(to.0);
    let mixed = (key + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;
    use crate::sigcomm18;

    fn way(fabric: &mut Fabric, from: HostId, to: HostId) -> Vec<u32> {
        let mut nodes = vec![fabric.leaf_of(from)];
        while let Some(&node) = nodes.last()
            && fabric.host(node).is_none()
        {
            let port = fabric.route(node, from, to);
            nodes.push(fabric.ports[port as usize].to);
        }
        nodes
    }

    #[test]
    fn route__every_pair_arrives() {
        let mut fabric = Fabric::new(&sigcomm18::topology(), 1);
        for from in (0..144).step_by(7) {
            for to in (0..144).filter(|to| *to != from) {
                let nodes = way(&mut fabric, HostId(from), HostId(to));
                assert_eq!(nodes.last(), Some(&u32::from(to)));
                let expected = if from / 16 == to / 16 { 2 } else { 4 };
                assert_eq!(nodes.len(), expected, "{from} to {to}");
            }
        }
    }

    #[test]
    fn route__spraying_uses_all_spines_and_hashing_one_a_pair() {
        let spines = |paths| {
            let topology = Topology {
                paths,
                ..sigcomm18::topology()
            };
            let mut fabric = Fabric::new(&topology, 1);
            let mut counts = [0; 4];
            for _ in 0..4000 {
                let spine = way(&mut fabric, HostId(0), HostId(100))[1] - 144 - 9;
                counts[spine as usize] += 1;
            }
            counts
        };
        assert!(spines(Paths::Spray).iter().all(|n| (900..1100).contains(n)));
        assert_eq!(spines(Paths::Hash).iter().filter(|n| **n > 0).count(), 1);
        let all: std::collections::BTreeSet<u64> = (0..100)
            .map(|to| (spread(HostId(0), HostId(to)) * 4) >> 32)
            .collect();
        assert_eq!(all.len(), 4);
    }
}
