//! Hosts and what joins them, made and removed together.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::host::DEVICE;
use crate::namespace::Namespace;
use crate::offload;
use crate::options::{Network, Options};
use crate::statistics::{PortStatistics, Sampler};
use crate::switch::{port_name, port_script};
use crate::sys;
use crate::wire::WireControl;
use crate::{Error, Host, plan};

/// How long a new link may take until packets cross it.
const LINK_TIME: Duration = Duration::from_secs(10);
/// How often that is tried.
const LINK_RETRY: Duration = Duration::from_millis(10);

const NO_SUCH_HOST: Error = Error::Options("there is no such host");

/// Several hosts and their network, on this machine.
///
/// All of it ends with this value, and with the process in whichever way that
/// ends: namespaces without names are removed by the kernel when nobody is in
/// them, and the programs started in hosts are killed with the threads that
/// started them. Nothing in the machine's own network is touched, so testbeds
/// can exist side by side.
pub struct Testbed {
    options: Options,
    // Threads in namespaces end before the namespaces.
    sampler: Option<Sampler>,
    wire: Option<WireControl>,
    hosts: Vec<Host>,
    middle: Namespace,
}

/// Whether a cable is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// It carries frames.
    Up,
    /// It is pulled out: the host's device has no carrier.
    Down,
}

impl Testbed {
    /// Makes hosts and network, and returns when packets get from each host to
    /// the first one and back.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] says in one line what this machine lacks.
    pub fn new(options: &Options) -> Result<Self, Error> {
        options.check()?;
        let middle = Namespace::new("middle")?;
        for scope in ["all", "default"] {
            let forward = matches!(options.network, Network::Routed { .. });
            if forward {
                middle.set(&format!("net/ipv6/conf/{scope}/forwarding"), "1")?;
            } else {
                middle.set(&format!("net/ipv6/conf/{scope}/disable_ipv6"), "1")?;
            }
        }
        if let Network::Routed { .. } = options.network {
            middle.set("net/ipv4/ip_forward", "1")?;
        }
        let hosts = (0..options.hosts)
            .map(|index| Self::empty_host(options, index))
            .collect::<Result<Vec<_>, _>>()?;
        let threads: Vec<i32> = hosts
            .iter()
            .map(|host| host.namespace.thread_id())
            .collect();
        middle.batch("ip", &plan::middle(options, &threads))?;
        for (index, host) in hosts.iter().enumerate() {
            host.namespace.on_thread(|| offload::turn_off(DEVICE))?;
            let port = port_name(index);
            middle.on_thread(move || offload::turn_off(&port))?;
            host.namespace.batch("ip", &plan::host(options, index))?;
        }
        if let Network::Plain | Network::Switch(_) = options.network {
            middle.batch("bridge", &plan::stations(options.hosts))?;
        }
        let mut testbed = Self {
            options: options.clone(),
            sampler: None,
            wire: None,
            hosts,
            middle,
        };
        testbed.start_network()?;
        testbed.wait_for_links()?;
        if let Some(sampler) = &testbed.sampler {
            sampler.reset()?;
        }
        if let (Some(control), Network::Wire(wire)) = (&testbed.wire, &options.network) {
            control.set_faults(wire);
        }
        Ok(testbed)
    }

    fn empty_host(options: &Options, index: usize) -> Result<Host, Error> {
        let namespace = Namespace::new(&format!("h{}", index + 1))?;
        // Addresses are usable at once, without a second of looking for
        // duplicates, and nobody asks for routers.
        for scope in ["all", "default"] {
            for (setting, value) in [("accept_dad", "0"), ("router_solicitations", "0")] {
                namespace.set(&format!("net/ipv6/conf/{scope}/{setting}"), value)?;
            }
        }
        let (v4, v6) = plan::addresses(&options.network, index);
        Ok(Host { namespace, v4, v6 })
    }

    fn start_network(&mut self) -> Result<(), Error> {
        let hosts = self.hosts.len();
        match &self.options.network {
            Network::Plain | Network::Routed { .. } => {}
            Network::Switch(switch) => {
                let script: Vec<String> = (0..hosts)
                    .flat_map(|host| port_script(&port_name(host), self.options.mtu, switch))
                    .collect();
                self.middle.batch("tc", &script)?;
                self.sampler = Some(Sampler::start(&self.middle, hosts, switch.sample_interval)?);
            }
            Network::Wire(_) => {
                self.wire = Some(WireControl::start(&self.middle, hosts, self.options.mtu)?);
            }
        }
        Ok(())
    }

    /// The hosts, `h1` first.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// How it was made.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The link, if the network is a [`Network::Wire`].
    pub fn wire(&self) -> Option<&WireControl> {
        self.wire.as_ref()
    }

    /// Pulls the cable of a host (from 0) out, or puts it back and waits until
    /// the device has a carrier.
    ///
    /// # Errors
    ///
    /// If there is no such host, or the kernel refuses.
    pub fn set_link(&self, host: usize, link: Link) -> Result<(), Error> {
        let Some(there) = self.hosts.get(host) else {
            return Err(NO_SUCH_HOST);
        };
        let state = match link {
            Link::Up => "up",
            Link::Down => "down",
        };
        let port = port_name(host);
        self.middle
            .batch("ip", &[format!("link set {port} {state}")])?;
        match link {
            Link::Up => wait_for_device(there),
            Link::Down => Ok(()),
        }
    }

    /// Gives a host (from 0) one more address, and tells the others. In a
    /// [`Network::Routed`] the router does not know it.
    ///
    /// # Errors
    ///
    /// If there is no such host, or the kernel refuses.
    pub fn add_address(&self, host: usize, ip: IpAddr) -> Result<(), Error> {
        let others = self
            .hosts
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != host);
        let Some(there) = self.hosts.get(host) else {
            return Err(NO_SUCH_HOST);
        };
        there.namespace.batch("ip", &[plan::more(ip)])?;
        for (_, other) in others {
            let lines = [plan::neighbour(ip, host)];
            other.namespace.batch("ip", &lines)?;
        }
        Ok(())
    }

    /// What the switch's ports did since the testbed was made, or since
    /// [`reset_statistics`](Self::reset_statistics); a port for each host, in
    /// their order. Empty if the network is not a [`Network::Switch`].
    ///
    /// # Errors
    ///
    /// If the kernel does not tell.
    pub fn statistics(&self) -> Result<Vec<PortStatistics>, Error> {
        match &self.sampler {
            Some(sampler) => sampler.statistics(),
            None => Ok(Vec::new()),
        }
    }

    /// Begins to count anew.
    ///
    /// # Errors
    ///
    /// If the kernel does not tell.
    pub fn reset_statistics(&self) -> Result<(), Error> {
        match &self.sampler {
            Some(sampler) => sampler.reset(),
            None => Ok(()),
        }
    }

    /// Whether the network did what it is there for: no frame above the MTU
    /// tried to cross it, and the link still forwards.
    ///
    /// # Errors
    ///
    /// [`Error::Oversize`], or why the link ended.
    pub fn verify(&self) -> Result<(), Error> {
        for port in self.statistics()? {
            if port.oversize_frames > 0 {
                return Err(Error::Oversize {
                    host: port.host,
                    frames: port.oversize_frames,
                });
            }
        }
        let Some(wire) = &self.wire else {
            return Ok(());
        };
        wire.check()?;
        match wire.counters().oversize {
            0 => Ok(()),
            frames => Err(Error::Oversize {
                host: "another host".to_owned(),
                frames,
            }),
        }
    }

    /// New links lose what is sent in their first moments.
    fn wait_for_links(&self) -> Result<(), Error> {
        self.hosts.iter().try_for_each(wait_for_device)?;
        let Some((first, others)) = self.hosts.split_first() else {
            return Ok(());
        };
        for other in others {
            wait_for_packets(first, first.v4(), other, other.v4())?;
            wait_for_packets(first, first.v6(), other, other.v6())?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for Testbed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Testbed")
            .field("options", &self.options)
            .field("hosts", &self.hosts)
            .finish_non_exhaustive()
    }
}

fn wait_for_device(host: &Host) -> Result<(), Error> {
    let end = Instant::now() + LINK_TIME;
    let is_running = || {
        host.namespace
            .on_thread(|| sys::is_running(DEVICE))
            .map_err(Error::system(format!("looking at {DEVICE}")))
    };
    while !is_running()? {
        if Instant::now() > end {
            let error = std::io::ErrorKind::TimedOut.into();
            let doing = format!("waiting for the link of {}", host.name());
            return Err(Error::system(doing)(error));
        }
        std::thread::sleep(LINK_RETRY);
    }
    Ok(())
}

/// Sends both ways until it works.
fn wait_for_packets(a: &Host, a_ip: IpAddr, b: &Host, b_ip: IpAddr) -> Result<(), Error> {
    let open = |host: &Host, ip: IpAddr| {
        let socket = host.namespace.on_thread(move || {
            let socket = UdpSocket::bind(SocketAddr::new(ip, 0))?;
            socket.set_read_timeout(Some(LINK_RETRY))?;
            Ok(Arc::new(socket))
        });
        socket.map_err(Error::system(format!("opening a socket on {ip}")))
    };
    let (a, b) = (open(a, a_ip)?, open(b, b_ip)?);
    for (from, to, from_ip, to_ip) in [(&a, &b, a_ip, b_ip), (&b, &a, b_ip, a_ip)] {
        let address = to
            .local_addr()
            .map_err(Error::system("asking for a port"))?;
        let end = Instant::now() + LINK_TIME;
        loop {
            // Fails while there is no route yet.
            let _ = from.send_to(b"?", address);
            if to.recv(&mut [0; 8]).is_ok() {
                break;
            }
            if Instant::now() > end {
                return Err(Error::NoWay {
                    from: from_ip,
                    to: to_ip,
                    seconds: LINK_TIME.as_secs(),
                });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;
    use crate::Switch;

    #[test]
    fn verify__finds_frames_above_the_mtu() {
        let options = Options {
            network: Network::Switch(Switch::default()),
            ..Options::default()
        };
        if let Err(why) = Testbed::check(&options) {
            return homa_test::skip("verify__finds_frames_above_the_mtu", &why.to_string());
        }
        let testbed = Testbed::new(&options).unwrap();
        testbed.verify().unwrap();
        // Devices that let pass what the switch must not see, as a card with
        // segmentation offload does.
        let wide = |device: &str| format!("link set {device} mtu 3000");
        let devices = ["br0", "p1", "p2"].map(wide);
        testbed.middle.batch("ip", &devices).unwrap();
        let [from, to] = testbed.hosts() else {
            panic!("two hosts");
        };
        for host in [from, to] {
            host.ip(&[&wide(DEVICE)]).unwrap();
        }
        let address = SocketAddr::new(to.v4(), 9);
        from.run(move || {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            // Headers, and 1500 bytes; then one more.
            socket.send_to(&[0; 1472], address).unwrap();
            socket.send_to(&[0; 1473], address).unwrap();
        })
        .unwrap();
        let error = testbed.verify().unwrap_err();
        assert!(
            matches!(&error, Error::Oversize { host, frames: 1 } if host == "h2"),
            "{error}"
        );
    }
}
