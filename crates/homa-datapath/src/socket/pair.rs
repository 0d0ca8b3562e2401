//! An IPv4 and an IPv6 socket that together are a datapath: what UDP and raw
//! IP have in common. Here is what they share and what ICMP reports; sending
//! and receiving are in files of their own.

mod receiving;
mod sending;

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::errors::{ErrorEntry, Meaning};
use super::own_errors::OwnErrors;
use super::receive::Receive;
use super::transmit::Transmit;
use super::trouble::{Load, Trouble};
use super::{Family, Socket};
use crate::counters::CounterCells;
use crate::route::Routes;
use crate::{MAX_PACKET_BYTES, NetworkError, NetworkErrorKind, Path};

/// Entries that one call of [`Sockets::errors`] takes off each error queue.
const ERRORS_LIMIT: usize = 256;

/// What is between the IP header and the Homa packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encapsulation {
    /// A UDP header, which the kernel adds and removes.
    Udp,
    /// Nothing; on receive, IPv4 sockets give the IP header too.
    Raw,
}

pub(crate) struct Sockets {
    v4: Option<Socket>,
    v6: Option<Socket>,
    encapsulation: Encapsulation,
    /// Whether super-packets are sent whole.
    gso: AtomicBool,
    transmit: Mutex<Transmit>,
    receive: Mutex<ReceiveState>,
    own_errors: OwnErrors,
    pub(crate) routes: Routes,
    pub(crate) counters: CounterCells,
}

struct ReceiveState {
    arena: Receive,
    /// Which socket is asked first; changes with each call, so that a flood on
    /// one does not starve the other.
    first: Family,
    drops_v4: u32,
    drops_v6: u32,
}

impl Sockets {
    pub(crate) fn new(
        v4: Option<Socket>,
        v6: Option<Socket>,
        encapsulation: Encapsulation,
        gso: bool,
    ) -> Self {
        Self {
            v4,
            v6,
            encapsulation,
            gso: AtomicBool::new(gso),
            transmit: Mutex::new(Transmit::new()),
            receive: Mutex::new(ReceiveState {
                arena: Receive::new(),
                first: Family::V4,
                drops_v4: 0,
                drops_v6: 0,
            }),
            own_errors: OwnErrors::new(),
            routes: Routes::new(),
            counters: CounterCells::default(),
        }
    }

    pub(crate) fn each(&self) -> impl Iterator<Item = &Socket> {
        self.v4.iter().chain(&self.v6)
    }

    fn get(&self, family: Family) -> Option<&Socket> {
        match family {
            Family::V4 => self.v4.as_ref(),
            Family::V6 => self.v6.as_ref(),
        }
    }

    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.each().map(Socket::borrow).collect()
    }

    pub(crate) fn gso(&self) -> bool {
        self.gso.load(Ordering::Relaxed)
    }

    fn overhead(&self, family: Family) -> usize {
        family.header_bytes()
            + match self.encapsulation {
                Encapsulation::Udp => 8,
                Encapsulation::Raw => 0,
            }
    }

    pub(crate) fn max_packet(&self, path: &Path) -> usize {
        let family = Family::of(path.remote.ip());
        let mtu = self.routes.get(path, &self.counters.mtu_lookups).mtu;
        self.packet_in(mtu, family)
    }

    fn packet_in(&self, mtu: usize, family: Family) -> usize {
        mtu.saturating_sub(self.overhead(family))
            .clamp(1, MAX_PACKET_BYTES)
    }

    /// Raw sockets report the protocol, or nothing, as port.
    fn without_raw_port(&self, mut remote: SocketAddr) -> SocketAddr {
        if self.encapsulation == Encapsulation::Raw {
            remote.set_port(0);
        }
        remote
    }

    pub(crate) fn errors(&self, report: &mut dyn FnMut(NetworkError<'_>)) {
        self.own_errors.drain(report);
        let mut entry = ErrorEntry::new();
        for socket in self.each() {
            for _ in 0..ERRORS_LIMIT {
                match entry.read(socket) {
                    Ok(()) => self.report(socket.family, &entry, report),
                    Err(error) if Trouble::of(&error, Load::Packet) == Trouble::Interrupted => {}
                    Err(_) => break,
                }
            }
        }
    }

    fn report(&self, family: Family, entry: &ErrorEntry, report: &mut dyn FnMut(NetworkError<'_>)) {
        let Some(remote) = entry.remote() else {
            self.counters.icmp_other.increment();
            return;
        };
        let remote = self.without_raw_port(remote);
        let kind = match entry.meaning() {
            Meaning::PortClosed => {
                self.counters.icmp_port_closed.increment();
                NetworkErrorKind::PortClosed
            }
            Meaning::ProtocolUnsupported => {
                self.counters.icmp_protocol_unsupported.increment();
                NetworkErrorKind::ProtocolUnsupported
            }
            Meaning::HostUnreachable => {
                self.counters.icmp_host_unreachable.increment();
                NetworkErrorKind::HostUnreachable
            }
            Meaning::PacketTooBig(mtu) => {
                self.counters.icmp_packet_too_big.increment();
                let mtu = self.routes.learn(&remote, mtu, &self.counters.mtu_lookups);
                NetworkErrorKind::PacketTooBig {
                    max_packet: self.packet_in(mtu, family),
                }
            }
            Meaning::Other => {
                self.counters.icmp_other.increment();
                return;
            }
            Meaning::Local => return,
        };
        report(NetworkError {
            remote,
            kind,
            quoted: entry.quoted(),
        });
    }
}
