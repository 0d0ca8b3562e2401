//! What a testbed is to be.

use std::time::Duration;

use crate::{Error, Faults};

/// Most hosts: they are numbered in one byte of their addresses.
pub const MAX_HOSTS: usize = 250;
/// IPv6 needs as much (RFC 8200 §5).
const MIN_MTU: u32 = 1280;
/// What a virtual device takes.
const MAX_MTU: u32 = 65_535;

/// A testbed to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// How many hosts: 1 to [`MAX_HOSTS`].
    pub hosts: usize,
    /// Largest IP packet of every link, in bytes: 1280 to 65,535.
    pub mtu: u32,
    /// What joins the hosts.
    pub network: Network,
}

impl Default for Options {
    /// Two hosts on a plain network with Ethernet's MTU.
    fn default() -> Self {
        Self {
            hosts: 2,
            mtu: 1500,
            network: Network::Plain,
        }
    }
}

/// What joins the hosts.
#[derive(Clone, Debug, PartialEq)]
pub enum Network {
    /// A bridge without limits: as fast as the machine.
    Plain,
    /// A switch whose ports have a rate and eight priorities.
    Switch(Switch),
    /// A link that damages what crosses it. A thread forwards every frame, which
    /// takes it some microseconds; what comes faster waits in front of it, up to
    /// 8 MiB a host. For behaviour, not for speed.
    Wire(Wire),
    /// A router, every host on a network of its own. Its links carry packets of
    /// [`Options::mtu`] bytes, and the paths beyond them of `path_mtu`: what is
    /// longer is answered with ICMP (fragmentation needed, packet too big), as
    /// by a router with a narrower link behind it.
    Routed {
        /// Largest IP packet, in bytes: 1280 to [`Options::mtu`].
        path_mtu: u32,
    },
}

/// A store-and-forward switch that serves eight priorities strictly, the top
/// three bits of the TOS byte (IPv4) or traffic class (IPv6), 7 first. What is
/// not IP has priority 7.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Rate of each port towards its host, in bits per second, with all that
    /// Ethernet puts around a packet on the wire. Hosts send to the switch
    /// without limit.
    pub rate_bps: u64,
    /// What each of the eight queues of a port holds, in bytes; what comes when
    /// it is full is dropped. A sender that uses one priority has that much; a
    /// buffer that the queues of a port share is not in Linux, see
    /// [`PortStatistics::backlog_peak_bytes`](crate::PortStatistics::backlog_peak_bytes)
    /// for what they held together.
    pub buffer_bytes: u32,
    /// How often the queues are looked at. Each time costs about 0.1 ms.
    pub sample_interval: Duration,
}

impl Default for Switch {
    /// 400 Mbit/s and 256 KiB: with an MTU of 9000 two cores emulate that for
    /// four busy hosts, and the network is what is busy.
    fn default() -> Self {
        Self {
            rate_bps: 400_000_000,
            buffer_bytes: 256 << 10,
            sample_interval: Duration::from_millis(2),
        }
    }
}

/// A link between all hosts that damages frames.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wire {
    /// What the damage follows from.
    pub seed: u64,
    /// What happens from the start; see
    /// [`WireControl::set_faults`](crate::WireControl::set_faults).
    pub faults: Faults,
}

impl Options {
    pub(crate) fn check(&self) -> Result<(), Error> {
        if !(1..=MAX_HOSTS).contains(&self.hosts) {
            return Err(Error::Options("a testbed has 1 to 250 hosts"));
        }
        if !(MIN_MTU..=MAX_MTU).contains(&self.mtu) {
            return Err(Error::Options("the MTU is 1280 to 65535 bytes"));
        }
        match &self.network {
            Network::Routed { path_mtu } if !(MIN_MTU..=self.mtu).contains(path_mtu) => Err(
                Error::Options("the MTU of a path is 1280 bytes to that of its links"),
            ),
            Network::Switch(switch) if switch.rate_bps < 1_000_000 => {
                Err(Error::Options("a port has at least 1 Mbit/s"))
            }
            Network::Switch(switch)
                if u64::from(switch.buffer_bytes) < u64::from(self.mtu) + 14 =>
            {
                Err(Error::Options("a queue holds at least one packet"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut Options)) -> String {
        let mut options = Options::default();
        change(&mut options);
        options.check().unwrap_err().to_string()
    }

    #[test]
    fn check__says_what_is_impossible() {
        Options::default().check().unwrap();
        assert!(refused(|options| options.hosts = 0).contains("hosts"));
        assert!(refused(|options| options.mtu = 1279).contains("MTU"));
        let path = Network::Routed { path_mtu: 9000 };
        assert!(refused(|options| options.network = path).contains("path"));
        let slow = Switch {
            rate_bps: 0,
            ..Switch::default()
        };
        assert!(refused(|options| options.network = Network::Switch(slow)).contains("Mbit"));
        let small = Switch {
            buffer_bytes: 1513,
            ..Switch::default()
        };
        assert!(refused(|options| options.network = Network::Switch(small)).contains("packet"));
    }
}
