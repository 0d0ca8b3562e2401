//! Homa packets in UDP datagrams (`docs/protocol.md` §1, right column).
//!
//! Up to 64 equal packets to one peer leave as one super-packet (GSO) and may
//! arrive as one (GRO): on a virtual link that is twenty times the rate of
//! single packets. Where the kernel or a device refuses to segment, packets go
//! one by one from then on, still 64 a system call.
//!
//! Packets that exceed the path MTU (of messages that were cut before it fell)
//! are sent all the same and fragmented by the kernel.
//!
//! One socket a family, not connected; every process can have its own port, so
//! the kernel itself answers for closed ports.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::time::Instant;

use crate::socket::pair::{Encapsulation, Sockets};
use crate::socket::{Buffer, Family, Socket, error_number};
use crate::{
    BindError, Counters, Datapath, Kind, NetworkError, Path, ReceiveBatch, SendBatch, SendOutcome,
};

/// Attempts to find a port that is free in both families.
const PORT_ATTEMPTS: usize = 32;

/// Whether to use an offload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offload {
    /// Where the kernel has it; go without when it refuses.
    #[default]
    Auto,
    /// [`Udp::bind`] fails if the kernel does not have it. A device that cannot
    /// segment still makes it go off at run time.
    On,
    /// Never.
    Off,
}

/// How to make a [`Udp`].
#[derive(Clone, Debug)]
pub struct UdpOptions {
    /// One IPv4 and/or one IPv6 address; same port, 0 for any free one.
    pub addresses: Vec<SocketAddr>,
    /// Send buffer in bytes, per socket; the kernel's bookkeeping is taken off.
    pub send_buffer_bytes: usize,
    /// Receive buffer in bytes, per socket: above the system's limit
    /// (`net.core.rmem_max`) only with CAP_NET_ADMIN.
    pub receive_buffer_bytes: usize,
    /// Sending super-packets.
    pub gso: Offload,
    /// Receiving super-packets.
    pub gro: Offload,
}

impl Default for UdpOptions {
    /// Any port on all addresses of both families.
    fn default() -> Self {
        Self {
            addresses: vec![
                (Ipv4Addr::UNSPECIFIED, 0).into(),
                (Ipv6Addr::UNSPECIFIED, 0).into(),
            ],
            send_buffer_bytes: 1 << 20,
            receive_buffer_bytes: 4 << 20,
            gso: Offload::Auto,
            gro: Offload::Auto,
        }
    }
}

impl UdpOptions {
    /// The defaults on one address.
    pub fn on(address: SocketAddr) -> Self {
        Self {
            addresses: vec![address],
            ..Self::default()
        }
    }
}

/// Homa over UDP.
pub struct Udp {
    sockets: Sockets,
    addresses: Vec<SocketAddr>,
}

impl Udp {
    /// Binds a socket to each address.
    ///
    /// # Errors
    ///
    /// See [`BindError`].
    pub fn bind(options: &UdpOptions) -> Result<Self, BindError> {
        let (v4, v6) = split(&options.addresses)?;
        let any_port = options.addresses.iter().all(|address| address.port() == 0);
        let mut attempts = 1;
        let (v4, v6) = loop {
            match bind_pair(v4, v6, options) {
                Err(BindError::InUse { .. }) if any_port && attempts < PORT_ATTEMPTS => {
                    attempts += 1;
                }
                other => break other?,
            }
        };
        let gso = options.gso != Offload::Off
            && [&v4, &v6]
                .into_iter()
                .flatten()
                .all(|socket| socket.get(libc::SOL_UDP, libc::UDP_SEGMENT).is_ok());
        if options.gso == Offload::On && !gso {
            return Err(BindError::System {
                call: "this kernel has no UDP GSO (UDP_SEGMENT)",
                source: io::ErrorKind::Unsupported.into(),
            });
        }
        let mut addresses = Vec::new();
        for socket in [&v4, &v6].into_iter().flatten() {
            addresses.push(socket.local_address().map_err(|source| BindError::System {
                call: "getsockname",
                source,
            })?);
        }
        Ok(Self {
            sockets: Sockets::new(v4, v6, Encapsulation::Udp, gso),
            addresses,
        })
    }

    /// Whether super-packets are still sent whole.
    pub fn gso(&self) -> bool {
        self.sockets.gso()
    }
}

impl Datapath for Udp {
    fn kind(&self) -> Kind {
        Kind::Udp
    }

    fn local_addresses(&self) -> Vec<SocketAddr> {
        self.addresses.clone()
    }

    fn max_packet(&self, path: &Path) -> usize {
        self.sockets.max_packet(path)
    }

    fn send(&self, batch: &mut SendBatch) -> SendOutcome {
        self.sockets.send(batch)
    }

    fn receive(&self, batch: &mut ReceiveBatch) -> io::Result<usize> {
        self.sockets.receive(batch)
    }

    fn errors(&self, report: &mut dyn FnMut(NetworkError<'_>)) {
        self.sockets.errors(report);
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.sockets.descriptors()
    }

    fn next_release(&self) -> Option<Instant> {
        None
    }

    fn counters(&self) -> Counters {
        self.sockets.counters.snapshot()
    }
}

/// The IPv4 and the IPv6 address of a list that makes sense.
fn split(addresses: &[SocketAddr]) -> Result<(Option<SocketAddr>, Option<SocketAddr>), BindError> {
    let (mut v4, mut v6) = (None, None);
    for address in addresses {
        let place = match Family::of(address.ip()) {
            Family::V4 => &mut v4,
            Family::V6 => &mut v6,
        };
        let first = place.replace(*address).is_none();
        if !first || address.port() != addresses[0].port() {
            return Err(BindError::Addresses {
                addresses: addresses.to_vec(),
            });
        }
    }
    if addresses.is_empty() {
        return Err(BindError::Addresses {
            addresses: Vec::new(),
        });
    }
    Ok((v4, v6))
}

type Pair = (Option<Socket>, Option<Socket>);

/// Binds both to one port.
fn bind_pair(
    v4: Option<SocketAddr>,
    v6: Option<SocketAddr>,
    options: &UdpOptions,
) -> Result<Pair, BindError> {
    let mut sockets: Pair = (None, None);
    let mut port = None;
    if let Some(address) = v4 {
        let socket = bind_one(address, options)?;
        port = socket.local_address().ok().map(|address| address.port());
        sockets.0 = Some(socket);
    }
    if let Some(mut address) = v6 {
        address.set_port(port.unwrap_or(address.port()));
        match bind_one(address, options) {
            Ok(socket) => sockets.1 = Some(socket),
            // A host without IPv6 that was not asked for one address of it.
            Err(BindError::System { source, .. })
                if v4.is_some()
                    && address.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED)
                    && error_number(&source) == libc::EAFNOSUPPORT => {}
            Err(error) => return Err(error),
        }
    }
    Ok(sockets)
}

fn bind_one(address: SocketAddr, options: &UdpOptions) -> Result<Socket, BindError> {
    let system = |call| move |source| BindError::System { call, source };
    let socket = Socket::open(Family::of(address.ip()), libc::SOCK_DGRAM, 0)
        .map_err(system("opening a UDP socket"))?;
    socket
        .set_datapath_options()
        .map_err(system("setting the options of a UDP socket"))?;
    if socket.family == Family::V6 {
        socket
            .set(libc::SOL_IPV6, libc::IPV6_V6ONLY, 1)
            .map_err(system("setting IPV6_V6ONLY"))?;
    }
    socket
        .set_buffer(Buffer::Send, options.send_buffer_bytes)
        .and_then(|()| socket.set_buffer(Buffer::Receive, options.receive_buffer_bytes))
        .map_err(system("sizing the buffers of a UDP socket"))?;
    if options.gro != Offload::Off {
        let result = socket.set(libc::SOL_UDP, libc::UDP_GRO, 1);
        if options.gro == Offload::On {
            result.map_err(system("switching UDP GRO on"))?;
        }
    }
    socket
        .bind(&address)
        .map_err(|source| match error_number(&source) {
            libc::EADDRINUSE => BindError::InUse { address },
            libc::EADDRNOTAVAIL => BindError::NotLocal { address },
            _ => BindError::System {
                call: "binding a UDP socket",
                source,
            },
        })?;
    Ok(socket)
}
