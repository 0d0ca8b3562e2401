//! Sending a batch: which messages go in which call, and what a failed call
//! means for the packets.
//!
//! Every packet that leaves the batch is sent or counted in a `tx_dropped_*`
//! counter with its reason kept for [`Sockets::errors`].

use std::sync::atomic::Ordering;

use super::Sockets;
use crate::counters::Cell;
use crate::send_batch::Group;
use crate::socket::transmit::{LANES, Message};
use crate::socket::trouble::{Load, OWN_AFTER, PENDING_LIMIT, Trouble};
use crate::socket::{Family, Socket, lock};
use crate::{Blocked, NetworkErrorKind, SendBatch, SendOutcome};

/// What one call of send remembers between attempts.
#[derive(Default)]
struct Attempt {
    /// The error of the last attempt, if it failed.
    failed: Option<Trouble>,
    /// How often that error has come in a row.
    times: usize,
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
        group: &Group,
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
        if attempt.failed.replace(trouble) != Some(trouble) {
            attempt.times = 0;
        }
        attempt.times += 1;
        if trouble == Trouble::Pending || attempt.times < OWN_AFTER {
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
            attempt.times = 0;
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

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::super::Encapsulation;
    use super::*;
    use crate::Path;

    /// The kernel here can segment for every device, so its refusal is acted
    /// out: four packets of 1000 bytes to a loopback address.
    fn refuse(trouble: Trouble) -> (Sockets, Attempt) {
        let socket = Socket::open(Family::V4, libc::SOCK_DGRAM, 0).unwrap();
        let sockets = Sockets::new(Some(socket), None, Encapsulation::Udp, true);
        let mut batch = SendBatch::default();
        let path = Path::to(([127, 0, 0, 1], 9).into());
        for _ in 0..4 {
            batch.push(&path, 0, 1000).unwrap().fill(0);
        }
        let group = batch.groups()[0];
        let socket = sockets.each().next().unwrap();
        let mut attempt = Attempt::default();
        for _ in 0..OWN_AFTER {
            assert_eq!(attempt.singles, 0, "once is not enough");
            let step = sockets.judge(trouble, Load::SuperPacket, socket, &group, &mut attempt);
            assert!(matches!(step, Step::Again));
        }
        (sockets, attempt)
    }

    #[test]
    fn judge__errors_close_together_are_not_the_packets_own() {
        let socket = Socket::open(Family::V4, libc::SOCK_DGRAM, 0).unwrap();
        let sockets = Sockets::new(Some(socket), None, Encapsulation::Udp, true);
        let mut batch = SendBatch::default();
        let path = Path::to(([127, 0, 0, 1], 9).into());
        batch.push(&path, 0, 100).unwrap().fill(0);
        let group = batch.groups()[0];
        let socket = sockets.each().next().unwrap();
        let mut attempt = Attempt::default();
        let mut judge =
            |trouble| sockets.judge(trouble, Load::Packet, socket, &group, &mut attempt);
        // What ICMP about other packets has left on the socket, each time anew.
        for trouble in [Trouble::Unreachable, Trouble::Other, Trouble::Unreachable] {
            for _ in 1..OWN_AFTER {
                assert!(matches!(judge(trouble), Step::Again));
            }
        }
        let own = judge(Trouble::Unreachable);
        assert!(matches!(own, Step::Drop(NetworkErrorKind::HostUnreachable)));
    }

    #[test]
    fn judge__no_segmentation_is_for_good() {
        let (sockets, attempt) = refuse(Trouble::NoSegmentation);
        assert_eq!((attempt.singles, sockets.gso()), (4, false));
        assert_eq!(sockets.counters.tx_gso_fallbacks.get(), 1);
    }

    #[test]
    fn judge__doubtful_refusal_waits_for_a_single_packet() {
        let (sockets, attempt) = refuse(Trouble::MaybeSegmentation);
        assert_eq!((attempt.singles, sockets.gso()), (4, true));
        assert!(attempt.suspect);
    }

    #[test]
    fn judge__above_the_path_mtu_is_for_this_group_only() {
        let (sockets, attempt) = refuse(Trouble::TooBig);
        assert_eq!((attempt.singles, sockets.gso()), (4, true));
        assert!(!attempt.suspect);
        assert_eq!(sockets.counters.tx_gso_too_big.get(), 1);
    }
}
