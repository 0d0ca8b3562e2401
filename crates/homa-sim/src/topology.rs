//! What a network is made of: the shape, the rates, the delays, the switches.
//!
//! Delays are placed where the simulations of SIGCOMM 2018 have them: a host's
//! software and NIC before and after its link, a switch's fixed delay behind
//! its output port.

use crate::packet::HostId;
use crate::time::{NANOSECOND_PS, byte_ps};

/// Bytes of a packet, from the preamble on, that a switch needs to choose a
/// port: 8 of preamble, Ethernet, IP, and the ports behind it.
pub const CUT_THROUGH_BYTES: u32 = 64;

/// A network of hosts and switches.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// How hosts and switches are wired.
    pub shape: Shape,
    /// Rate of every link of a host, in bits per second.
    pub host_rate_bps: u64,
    /// Rate of every link between switches, in bits per second.
    pub fabric_rate_bps: u64,
    /// Propagation on a host's link, in nanoseconds.
    pub host_link_ns: u64,
    /// Propagation on a link between switches, in nanoseconds.
    pub fabric_link_ns: u64,
    /// Fixed delay of a switch, in nanoseconds.
    pub switch_ns: u64,
    /// From the transport's choice of a packet to the NIC, in nanoseconds.
    pub software_out_ns: u64,
    /// Of the NIC on the way out, in nanoseconds.
    pub nic_ns: u64,
    /// From the last bit to the transport, in nanoseconds.
    pub software_in_ns: u64,
    /// Memory of a switch for packets that wait.
    pub buffer: Buffer,
    /// A packet that finds more bytes waiting at its port is marked.
    pub mark_above_bytes: Option<u64>,
    /// When a switch may begin to send a packet on.
    pub forwarding: Forwarding,
    /// How a switch chooses among equal uplinks.
    pub paths: Paths,
}

/// How hosts and switches are wired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// All hosts at one switch.
    Single {
        /// How many; 2 to 65,535.
        hosts: u16,
    },
    /// Racks, each with a switch that has one link to every spine.
    LeafSpine {
        /// How many racks.
        racks: u16,
        /// Hosts in a rack.
        hosts_per_rack: u16,
        /// Switches that join the racks.
        spines: u16,
    },
}

/// Memory of a switch for packets that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// Enough for everything.
    Unlimited,
    /// So many bytes at each port.
    PerPort(u64),
    /// So many bytes for all ports of a switch together.
    Shared(u64),
}

/// When a switch may begin to send a packet on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarding {
    /// When it has all of it.
    StoreAndForward,
    /// When it has the headers and the outgoing link will not run dry.
    CutThrough,
}

/// How a switch chooses among equal uplinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paths {
    /// At random for each packet.
    Spray,
    /// By a hash of source and destination.
    Hash,
}

/// Why a topology cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// Fewer than two hosts, or more than the ids can count.
    #[error("{hosts} hosts: there must be 2 to 65535")]
    Hosts {
        /// How many were asked for.
        hosts: u64,
    },
    /// Racks that nothing joins.
    #[error("{racks} racks need at least one spine")]
    Spines {
        /// How many racks there are.
        racks: u16,
    },
    /// A link without a rate.
    #[error("a link's rate must be above 0")]
    Rate,
}

impl Topology {
    /// Hosts of the network.
    pub fn hosts(&self) -> u16 {
        match self.shape {
            Shape::Single { hosts } => hosts,
            Shape::LeafSpine {
                racks,
                hosts_per_rack,
                ..
            } => racks.saturating_mul(hosts_per_rack),
        }
    }

    /// Whether it can be built.
    pub fn check(&self) -> Result<(), TopologyError> {
        let hosts = match self.shape {
            Shape::Single { hosts } => u64::from(hosts),
            Shape::LeafSpine {
                racks,
                hosts_per_rack,
                spines,
            } => {
                if racks > 1 && spines == 0 {
                    return Err(TopologyError::Spines { racks });
                }
                u64::from(racks) * u64::from(hosts_per_rack)
            }
        };
        if !(2..=u64::from(u16::MAX)).contains(&hosts) {
            return Err(TopologyError::Hosts { hosts });
        }
        if self.host_rate_bps == 0 || self.fabric_rate_bps == 0 {
            return Err(TopologyError::Rate);
        }
        Ok(())
    }

    /// Links and switches between two hosts.
    pub fn distance(&self, from: HostId, to: HostId) -> Distance {
        match self.shape {
            Shape::Single { .. } => Distance::OneSwitch,
            Shape::LeafSpine { hosts_per_rack, .. } => {
                if from.0 / hosts_per_rack == to.0 / hosts_per_rack {
                    Distance::OneSwitch
                } else {
                    Distance::ThreeSwitches
                }
            }
        }
    }

    /// Picoseconds a byte on a host's link.
    pub fn host_byte_ps(&self) -> u64 {
        byte_ps(self.host_rate_bps)
    }

    /// Picoseconds a byte between switches.
    pub fn fabric_byte_ps(&self) -> u64 {
        byte_ps(self.fabric_rate_bps)
    }

    /// Picoseconds that a single packet takes on links and in queues of an idle
    /// network, without the fixed delays.
    pub fn links_ps(&self, distance: Distance, wire_bytes: u32) -> u64 {
        let (host, fabric) = (self.host_byte_ps(), self.fabric_byte_ps());
        let links: &[u64] = match distance {
            Distance::OneSwitch => &[host, host],
            Distance::ThreeSwitches => &[host, fabric, fabric, host],
        };
        let bytes = u64::from(wire_bytes);
        let head = u64::from(wire_bytes.min(CUT_THROUGH_BYTES));
        let (mut start, mut byte_ps) = (0, 0);
        for (index, &link) in links.iter().enumerate() {
            if index > 0 {
                let tail = start + bytes * byte_ps;
                start = match self.forwarding {
                    Forwarding::StoreAndForward => tail,
                    Forwarding::CutThrough => {
                        (start + head * byte_ps).max(tail.saturating_sub(bytes * link))
                    }
                };
            }
            byte_ps = link;
        }
        start + bytes * byte_ps
    }

    /// What does not depend on the packet's length, on the way between two
    /// hosts, in picoseconds.
    pub fn fixed_ps(&self, distance: Distance) -> u64 {
        let host = self.software_out_ns + self.nic_ns + self.software_in_ns;
        let (switches, fabric_links) = match distance {
            Distance::OneSwitch => (1, 0),
            Distance::ThreeSwitches => (3, 2),
        };
        let ns = host
            + 2 * self.host_link_ns
            + switches * self.switch_ns
            + fabric_links * self.fabric_link_ns;
        ns * NANOSECOND_PS
    }
}

/// How far two hosts are from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distance {
    /// At the same switch.
    OneSwitch,
    /// In different racks.
    ThreeSwitches,
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;
    use crate::sigcomm18;

    #[test]
    fn fixed_ps__of_the_2018_network() {
        let topology = sigcomm18::topology();
        assert_eq!(topology.hosts(), 144);
        assert_eq!(
            topology.distance(HostId(0), HostId(15)),
            Distance::OneSwitch
        );
        assert_eq!(
            topology.distance(HostId(15), HostId(16)),
            Distance::ThreeSwitches
        );
        // 1.5 us in hosts and NIC, a quarter in each switch.
        assert_eq!(topology.fixed_ps(Distance::OneSwitch), 1_750_000);
        assert_eq!(topology.fixed_ps(Distance::ThreeSwitches), 2_250_000);
    }

    #[test]
    fn check__what_cannot_be() {
        let good = sigcomm18::topology();
        assert_eq!(good.check(), Ok(()));
        let with = |shape| Topology {
            shape,
            ..good.clone()
        };
        assert!(with(Shape::Single { hosts: 1 }).check().is_err());
        let split = Shape::LeafSpine {
            racks: 2,
            hosts_per_rack: 2,
            spines: 0,
        };
        assert_eq!(with(split).check(), Err(TopologyError::Spines { racks: 2 }));
    }
}
