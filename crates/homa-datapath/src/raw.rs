//! Raw Homa: IP protocol 146, as the reference module speaks it
//! (`docs/protocol.md` §1, left column, and the checksum of §2).
//!
//! The kernel adds the IP header: no options, DF (unless the packet exceeds
//! the path MTU: then it is fragmented), TTL 64. There is no segmentation
//! offload for raw sockets, so this is the slowest datapath and the one that
//! works with the module.
//!
//! Every raw socket of a host gets a copy of every packet, so there is one
//! endpoint a network namespace (`lock`), and it answers for closed ports
//! itself (`icmp`), since the kernel does not know Homa ports. Nor does it
//! keep others from them: [`reserve_port`] does, where they use UDP.

mod checksum;
mod icmp;
mod lock;
mod port;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::time::Instant;

pub use port::{PortReservation, reserve_port};

use crate::socket::pair::{Encapsulation, Sockets};
use crate::socket::{Buffer, Family, Socket, error_number};
use crate::{
    BindError, Counters, Datapath, Kind, NetworkError, Path, ReceiveBatch, Refusal, SendBatch,
    SendOutcome,
};

/// How to make a [`Raw`].
#[derive(Clone, Debug)]
pub struct RawOptions {
    /// At most one IPv4 and one IPv6 address; empty means all addresses of
    /// whatever families the host has.
    pub addresses: Vec<IpAddr>,
    /// Send buffer in bytes, per socket; the kernel's bookkeeping is taken off.
    pub send_buffer_bytes: usize,
    /// Receive buffer in bytes, per socket: above the system's limit
    /// (`net.core.rmem_max`) only with CAP_NET_ADMIN.
    pub receive_buffer_bytes: usize,
}

impl Default for RawOptions {
    fn default() -> Self {
        Self {
            addresses: Vec::new(),
            send_buffer_bytes: 1 << 20,
            receive_buffer_bytes: 4 << 20,
        }
    }
}

/// Homa over raw IP.
pub struct Raw {
    sockets: Sockets,
    addresses: Vec<SocketAddr>,
    answers: icmp::Answers,
    _lock: lock::NamespaceLock,
}

impl Raw {
    /// Opens the sockets and takes the namespace's lock.
    ///
    /// # Errors
    ///
    /// [`BindError::NeedsNetRaw`] without the capability,
    /// [`BindError::RawOwned`] when another endpoint has the lock, else see
    /// [`BindError`].
    pub fn open(options: &RawOptions) -> Result<Self, BindError> {
        let (v4, v6) = families(&options.addresses)?;
        let mut sockets = [None, None];
        for (place, address) in sockets.iter_mut().zip([v4, v6]) {
            if let Some(address) = address {
                match open_one(address, options) {
                    Ok(socket) => *place = Some(socket),
                    // A host without one of the families, and no wish for it.
                    Err(BindError::System { source, .. })
                        if address.is_unspecified()
                            && error_number(&source) == libc::EAFNOSUPPORT => {}
                    Err(error) => return Err(error),
                }
            }
        }
        let [v4, v6] = sockets;
        let answers = icmp::Answers::open(v4.is_some(), v6.is_some())?;
        let lock = lock::NamespaceLock::take()?;
        let mut addresses = Vec::new();
        for socket in [&v4, &v6].into_iter().flatten() {
            let mut address = socket.local_address().map_err(system("getsockname"))?;
            address.set_port(0);
            addresses.push(address);
        }
        if addresses.is_empty() {
            return Err(BindError::Addresses { addresses });
        }
        Ok(Self {
            sockets: Sockets::new(v4, v6, Encapsulation::Raw, false),
            addresses,
            answers,
            _lock: lock,
        })
    }

    /// Answers a packet for a Homa port that nobody has with ICMP port
    /// unreachable, which makes the reference module's clients fail at once.
    /// `path` is where the packet came from, `packet` the Homa packet.
    ///
    /// At most 1000 a second with bursts of 50, like the kernel's own; never
    /// to or about multicast and broadcast addresses.
    pub fn send_port_unreachable(&self, path: &Path, packet: &[u8]) -> Refusal {
        let counters = &self.sockets.counters;
        let Some(local) = self.source(path) else {
            counters.icmp_answers_failed.increment();
            return Refusal::Failed;
        };
        let refusal = self.answers.send(path.remote, local, packet);
        match refusal {
            Refusal::Answered => counters.icmp_answers.increment(),
            Refusal::RateLimited => counters.icmp_answers_limited.increment(),
            Refusal::Failed | Refusal::Unsupported => counters.icmp_answers_failed.increment(),
        }
        refusal
    }

    /// The address that a packet on this path is sent from.
    fn source(&self, path: &Path) -> Option<IpAddr> {
        let family = Family::of(path.remote.ip());
        path.local
            .into_iter()
            .chain(self.addresses.iter().map(SocketAddr::ip))
            .find(|ip| Family::of(*ip) == family && !ip.is_unspecified())
            .or_else(|| {
                let counters = &self.sockets.counters;
                self.sockets.routes.get(path, &counters.mtu_lookups).source
            })
    }
}

impl Datapath for Raw {
    fn kind(&self) -> Kind {
        Kind::Raw
    }

    fn local_addresses(&self) -> Vec<SocketAddr> {
        self.addresses.clone()
    }

    fn max_packet(&self, path: &Path) -> usize {
        self.sockets.max_packet(path)
    }

    fn seal(&self, batch: &mut SendBatch) {
        checksum::fill(batch, |path| self.source(path));
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

    fn refuse(&self, path: &Path, packet: &[u8]) -> Refusal {
        self.send_port_unreachable(path, packet)
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

/// The IPv4 and IPv6 address to bind to.
fn families(addresses: &[IpAddr]) -> Result<(Option<IpAddr>, Option<IpAddr>), BindError> {
    if addresses.is_empty() {
        return Ok((
            Some(Ipv4Addr::UNSPECIFIED.into()),
            Some(Ipv6Addr::UNSPECIFIED.into()),
        ));
    }
    let (mut v4, mut v6) = (None, None);
    for address in addresses {
        let place = match Family::of(*address) {
            Family::V4 => &mut v4,
            Family::V6 => &mut v6,
        };
        if place.replace(*address).is_some() {
            return Err(BindError::Addresses {
                addresses: addresses
                    .iter()
                    .map(|address| SocketAddr::new(*address, 0))
                    .collect(),
            });
        }
    }
    Ok((v4, v6))
}

fn system(call: &'static str) -> impl Fn(io::Error) -> BindError {
    move |source| match error_number(&source) {
        libc::EPERM | libc::EACCES => BindError::NeedsNetRaw,
        _ => BindError::System { call, source },
    }
}

fn open_one(address: IpAddr, options: &RawOptions) -> Result<Socket, BindError> {
    let protocol = libc::c_int::from(homa_wire::IP_PROTOCOL);
    let socket = Socket::open(Family::of(address), libc::SOCK_RAW, protocol)
        .map_err(system("opening a raw socket"))?;
    socket
        .set_datapath_options()
        .map_err(system("setting the options of a raw socket"))?;
    socket
        .set_buffer(Buffer::Send, options.send_buffer_bytes)
        .and_then(|()| socket.set_buffer(Buffer::Receive, options.receive_buffer_bytes))
        .map_err(system("sizing the buffers of a raw socket"))?;
    let address = SocketAddr::new(address, 0);
    socket
        .bind(&address)
        .map_err(|source| match error_number(&source) {
            libc::EADDRNOTAVAIL => BindError::NotLocal { address },
            _ => system("binding a raw socket")(source),
        })?;
    Ok(socket)
}
