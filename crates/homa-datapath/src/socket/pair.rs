//! An IPv4 and an IPv6 socket that together are a datapath: what UDP and raw
//! IP have in common.

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::errors::{ErrorEntry, Meaning};
use super::own_errors::OwnErrors;
use super::receive::{Arrived, Receive};
use super::transmit::{LANES, Message, Transmit};
use super::trouble::{Load, Trouble};
use super::{Family, Socket, lock};
use crate::counters::{Cell, CounterCells};
use crate::receive_batch::{Message as Placed, PLACE_BYTES};
use crate::route::Routes;
use crate::{
    Blocked, MAX_PACKET_BYTES, Meta, NetworkError, NetworkErrorKind, Path, ReceiveBatch, SendBatch,
    SendOutcome,
};

/// Errors of earlier packets that one call meets before it gives up for now.
/// Each is taken off the socket when met; more than this in one call is a storm
/// of ICMP.
const PENDING_LIMIT: usize = 64;
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

/// What one call of send remembers between attempts.
#[derive(Default)]
struct Attempt {
    /// The error of the last attempt, if it failed.
    failed: Option<Trouble>,
    pending: usize,
    /// Packets of the first group to be sent one by one.
    singles: usize,
    /// Whether segmentation is at fault if the next single packet is sent.
    suspect: bool,
}

enum Step {
    Again,
    Stop(Blocked),
    Drop(NetworkErrorKind),
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

    pub(crate) fn send(&self, batch: &mut SendBatch) -> SendOutcome {
        let mut outcome = SendOutcome::default();
        let mut attempt = Attempt::default();
        let mut transmit = lock(&self.transmit);
        while let Some(group) = batch.groups().first().copied() {
            let family = Family::of(group.path.remote.ip());
            let Some(socket) = self.get(family) else {
                self.counters
                    .tx_dropped_bad_address
                    .add(group.packets() as u64);
                self.drop_first(
                    batch,
                    group.packets(),
                    NetworkErrorKind::HostUnreachable,
                    &mut outcome,
                );
                continue;
            };
            let whole = self.gso() && attempt.singles == 0;
            let limit = match attempt.singles {
                0 => LANES,
                singles => singles.min(LANES),
            };
            self.counters.tx_syscalls.increment();
            let result = transmit.send(socket, messages(batch, family, whole).take(limit));
            match result {
                Ok(taken) => {
                    if attempt.failed.take().is_some() {
                        self.counters.tx_pending_errors.increment();
                    }
                    if std::mem::take(&mut attempt.suspect) {
                        self.gso.store(false, Ordering::Relaxed);
                    }
                    attempt.singles = attempt.singles.saturating_sub(taken.packets);
                    self.counters.tx_packets.add(taken.packets as u64);
                    self.counters.tx_bytes.add(taken.bytes as u64);
                    self.counters
                        .tx_super_packets
                        .add(taken.super_packets as u64);
                    outcome.sent += taken.packets;
                    batch.consume(taken.packets);
                }
                Err(error) => {
                    let load = if whole && group.packets() > 1 {
                        Load::SuperPacket
                    } else {
                        Load::Packet
                    };
                    let trouble = Trouble::of(&error, load);
                    match self.judge(trouble, load, socket, &group, &mut attempt) {
                        Step::Again => {}
                        Step::Stop(blocked) => {
                            outcome.blocked = Some(blocked);
                            break;
                        }
                        Step::Drop(kind) => {
                            // What holds for an address holds for the group.
                            let packets = match trouble {
                                Trouble::TooBig => 1,
                                _ => group.packets(),
                            };
                            self.dropped(trouble).add(packets as u64);
                            attempt = Attempt::default();
                            self.drop_first(batch, packets, kind, &mut outcome);
                        }
                    }
                }
            }
        }
        outcome.still_queued = batch.len();
        outcome
    }

    /// Decides what a failed attempt to send `group` means.
    fn judge(
        &self,
        trouble: Trouble,
        load: Load,
        socket: &Socket,
        group: &crate::send_batch::Group,
        attempt: &mut Attempt,
    ) -> Step {
        match trouble {
            Trouble::Interrupted => return Step::Again,
            Trouble::WouldBlock => {
                self.counters.tx_would_block.increment();
                return Step::Stop(Blocked::UntilWritable(socket.fd()));
            }
            Trouble::NoBuffers => {
                self.counters.tx_no_buffers.increment();
                return Step::Stop(Blocked::NoBuffers);
            }
            _ => {}
        }
        let twice = attempt.failed.replace(trouble) == Some(trouble);
        if trouble == Trouble::Pending || !twice {
            attempt.pending += 1;
            if attempt.pending > PENDING_LIMIT {
                return Step::Stop(Blocked::UntilWritable(socket.fd()));
            }
            return Step::Again;
        }
        if load == Load::SuperPacket
            && matches!(
                trouble,
                Trouble::TooBig | Trouble::NoSegmentation | Trouble::MaybeSegmentation
            )
        {
            // Packets above the path MTU cannot be segmented, but single ones
            // are fragmented. Ask anew: the MTU has just fallen, it seems.
            self.routes.forget(&group.path.remote);
            attempt.failed = None;
            attempt.singles = group.packets();
            if group.segment > self.max_packet(&group.path) || trouble == Trouble::TooBig {
                self.counters.tx_gso_too_big.increment();
            } else {
                self.counters.tx_gso_fallbacks.increment();
                attempt.suspect = trouble == Trouble::MaybeSegmentation;
                if trouble == Trouble::NoSegmentation {
                    self.gso.store(false, Ordering::Relaxed);
                }
            }
            return Step::Again;
        }
        if trouble == Trouble::TooBig {
            self.routes.forget(&group.path.remote);
            return Step::Drop(NetworkErrorKind::PacketTooBig {
                max_packet: self.max_packet(&group.path),
            });
        }
        Step::Drop(NetworkErrorKind::HostUnreachable)
    }

    fn dropped(&self, trouble: Trouble) -> &Cell {
        match trouble {
            Trouble::TooBig => &self.counters.tx_dropped_too_big,
            Trouble::Unreachable => &self.counters.tx_dropped_unreachable,
            Trouble::Forbidden => &self.counters.tx_dropped_forbidden,
            Trouble::BadAddress => &self.counters.tx_dropped_bad_address,
            _ => &self.counters.tx_dropped_other,
        }
    }

    /// Drops the first packets of the batch, all to one peer, and keeps the
    /// reason for [`Sockets::errors`].
    fn drop_first(
        &self,
        batch: &mut SendBatch,
        packets: usize,
        kind: NetworkErrorKind,
        outcome: &mut SendOutcome,
    ) {
        if let Some(packet) = batch.first() {
            self.own_errors.push(
                packet.path.remote,
                kind,
                packet.bytes,
                &self.counters.errors_lost,
            );
        }
        batch.consume(packets);
        outcome.dropped += packets;
    }

    pub(crate) fn receive(&self, batch: &mut ReceiveBatch) -> io::Result<usize> {
        batch.clear();
        let mut state = lock(&self.receive);
        let order = match state.first {
            Family::V4 => [Family::V4, Family::V6],
            Family::V6 => [Family::V6, Family::V4],
        };
        state.first = order[1];
        for family in order {
            if let Some(socket) = self.get(family) {
                self.receive_from(socket, &mut state, batch)?;
            }
        }
        Ok(batch.len())
    }

    fn receive_from(
        &self,
        socket: &Socket,
        state: &mut ReceiveState,
        batch: &mut ReceiveBatch,
    ) -> io::Result<()> {
        let before = batch.len();
        for _ in 0..PENDING_LIMIT {
            let (start, places) = batch.free_places();
            if places.is_empty() {
                return Ok(());
            }
            self.counters.rx_syscalls.increment();
            match state.arena.receive(socket, places) {
                Ok(count) => {
                    for lane in 0..count {
                        let arrived = state.arena.arrived(lane);
                        self.count_kernel_drops(socket.family, state, &arrived);
                        self.place(socket.family, &arrived, start + lane * PLACE_BYTES, batch);
                    }
                    if batch.len() > before {
                        return Ok(());
                    }
                    // All of it was rubbish: there may be packets behind it.
                }
                Err(error) => match Trouble::of(&error, Load::Packet) {
                    Trouble::WouldBlock | Trouble::NoBuffers => return Ok(()),
                    Trouble::Interrupted => {}
                    trouble if trouble.is_about_earlier_packet() => {
                        self.counters.rx_pending_errors.increment();
                    }
                    _ => return Err(error),
                },
            }
        }
        Ok(())
    }

    fn count_kernel_drops(&self, family: Family, state: &mut ReceiveState, arrived: &Arrived) {
        let Some(total) = arrived.control.kernel_drops else {
            return;
        };
        let last = match family {
            Family::V4 => &mut state.drops_v4,
            Family::V6 => &mut state.drops_v6,
        };
        let new = total.wrapping_sub(*last);
        *last = total;
        self.counters.rx_kernel_drops.add(u64::from(new));
    }

    /// Adds what arrived at `start` of the batch's arena, unless it is rubbish.
    fn place(&self, family: Family, arrived: &Arrived, start: usize, batch: &mut ReceiveBatch) {
        if arrived.truncated {
            self.counters.rx_truncated.increment();
            return;
        }
        let header = match (self.encapsulation, family) {
            (Encapsulation::Raw, Family::V4) => {
                ipv4_header_length(batch.bytes_at(start, arrived.length))
            }
            _ => Some(0),
        };
        let (Some(remote), Some(header)) = (arrived.remote, header) else {
            self.counters.rx_malformed.increment();
            return;
        };
        let length = arrived.length - header;
        if length == 0 {
            self.counters.rx_malformed.increment();
            return;
        }
        let segment = match arrived.control.segment {
            Some(segment) if (1..length).contains(&segment) => {
                self.counters.rx_super_packets.increment();
                segment
            }
            _ => length,
        };
        self.counters
            .rx_packets
            .add(length.div_ceil(segment) as u64);
        self.counters.rx_bytes.add(length as u64);
        batch.commit(Placed {
            meta: Meta {
                path: Path {
                    remote: self.without_raw_port(remote),
                    local: arrived.control.local,
                },
                tos: arrived.control.tos,
                interface: arrived.control.interface,
            },
            start: start + header,
            length,
            segment,
        });
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

/// The packets of the first groups that go through one socket: super-packets
/// if `whole`, else one by one.
fn messages(batch: &SendBatch, family: Family, whole: bool) -> impl Iterator<Item = Message<'_>> {
    batch
        .groups()
        .iter()
        .take_while(move |group| Family::of(group.path.remote.ip()) == family)
        .flat_map(move |group| {
            let bytes = batch.group_bytes(group);
            let size = if whole { bytes.len() } else { group.segment };
            bytes.chunks(size).map(move |piece| Message {
                path: &group.path,
                tos: group.tos,
                bytes: piece,
                segment: (piece.len() > group.segment).then_some(group.segment as u16),
                packets: piece.len().div_ceil(group.segment),
            })
        })
}

/// Length of the IPv4 header before a raw packet, options included; `None` if
/// it is not one.
fn ipv4_header_length(bytes: &[u8]) -> Option<usize> {
    let first = *bytes.first()?;
    let length = usize::from(first & 0x0f) * 4;
    (first >> 4 == 4 && length >= 20 && length <= bytes.len()).then_some(length)
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn ipv4_header_length__honours_options_and_rejects_rubbish() {
        let mut packet = [0; 60];
        packet[0] = 0x45;
        assert_eq!(ipv4_header_length(&packet), Some(20));
        packet[0] = 0x4f;
        assert_eq!(ipv4_header_length(&packet), Some(60));
        assert_eq!(ipv4_header_length(&packet[..59]), None);
        packet[0] = 0x44;
        assert_eq!(ipv4_header_length(&packet), None);
        packet[0] = 0x65;
        assert_eq!(ipv4_header_length(&packet), None);
        assert_eq!(ipv4_header_length(&[]), None);
    }
}
