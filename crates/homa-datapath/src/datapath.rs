//! The interface between an engine and whatever carries its packets.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::Instant;

use crate::{Counters, NetworkError, Path, ReceiveBatch, SendBatch};

/// What carries the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Homa packets in UDP datagrams.
    Udp,
    /// IP protocol 146, as the reference module speaks it.
    Raw,
    /// Within this process.
    Mem,
}

/// Why packets stayed in a [`SendBatch`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocked {
    /// The socket's send buffer is full: call again when this descriptor is
    /// writable.
    UntilWritable(RawFd),
    /// The kernel had no memory for a packet, or the device's queue is full
    /// (`ENOBUFS`); nothing tells when that is over: back off, then call
    /// again.
    NoBuffers,
    /// The queue in front of the receiver, or of the datapath below, is full;
    /// [`Datapath::next_release`] says when to call again.
    UntilReleased,
}

/// What became of the packets of a [`SendBatch`].
///
/// `sent + dropped + still_queued` is the number of packets that the batch
/// held before the call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendOutcome {
    /// Packets handed to the kernel (or queue) for good.
    pub sent: usize,
    /// Packets that can never be sent; each is in a drop counter, and
    /// [`Datapath::errors`] has the reason: call it soon.
    pub dropped: usize,
    /// Packets still in the batch, in their order, for the next call.
    pub still_queued: usize,
    /// Why, if any packet is still in the batch.
    pub blocked: Option<Blocked>,
}

/// What became of [`Datapath::refuse`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The sender was told.
    Answered,
    /// Too many were told just now.
    RateLimited,
    /// The kernel could not, or the packet must not be answered.
    Failed,
    /// This datapath cannot tell anybody: answer with a Homa packet.
    Unsupported,
}

/// Carries Homa packets, and only that.
///
/// All methods take `&self` and never block; an implementation locks its own
/// two directions separately, so one thread may send while another receives.
///
/// Driving it: poll [`descriptors`](Self::descriptors) for readability (error
/// conditions included, as `poll` and `epoll` always report them); when one is
/// ready, call [`receive`](Self::receive) until it returns 0 or says that
/// nothing is left ([`ReceiveBatch::rest`]), then [`errors`](Self::errors). Also call `send` and `receive` when the time
/// [`next_release`](Self::next_release) has come.
pub trait Datapath: Send + Sync {
    /// What carries the packets.
    fn kind(&self) -> Kind;

    /// The bound addresses with the real port (raw: port 0). At least one.
    fn local_addresses(&self) -> Vec<SocketAddr>;

    /// Longest Homa packet, in bytes after the IP and UDP headers, that fits
    /// the path now without fragmentation; at most
    /// [`MAX_PACKET_BYTES`](crate::MAX_PACKET_BYTES). Cached, so cheap enough
    /// to ask for every message, but not for every packet. Falls to what every
    /// IP path must carry (548 or 1232 bytes over UDP) when nothing is known.
    fn max_packet(&self, path: &Path) -> usize;

    /// Completes packets that were put into a batch: the checksum of raw ones,
    /// which covers their addresses. To be called before [`send`](Self::send),
    /// so that a tap in between sees, and may damage, whole packets. Doing it
    /// twice is harmless.
    fn seal(&self, batch: &mut SendBatch) {
        let _ = batch;
    }

    /// Sends what can be sent now, in order. What would block stays in the
    /// batch, in order.
    fn send(&self, batch: &mut SendBatch) -> SendOutcome;

    /// Empties the batch, fills it with what has arrived, and returns the
    /// number of packets now in it: 0 when nothing has arrived.
    ///
    /// # Errors
    ///
    /// Only what makes the datapath useless (a closed or broken descriptor).
    /// What the network reports comes through [`errors`](Self::errors).
    fn receive(&self, batch: &mut ReceiveBatch) -> io::Result<usize>;

    /// Reports and forgets what the network said about packets sent, and why
    /// packets were dropped by `send`. The report is advisory: ICMP is
    /// rate-limited by everybody and can be forged; compare the quoted header
    /// before acting.
    fn errors(&self, report: &mut dyn FnMut(NetworkError<'_>));

    /// Tells the sender of a received packet, below Homa, that nobody has the
    /// Homa port it is for: ICMP port unreachable where the datapath can send
    /// it. `path` is the packet's, `packet` its bytes.
    fn refuse(&self, path: &Path, packet: &[u8]) -> Refusal {
        let _ = (path, packet);
        Refusal::Unsupported
    }

    /// The descriptors that get readable (or in error) when `receive` or
    /// `errors` has something. Always the same ones.
    fn descriptors(&self) -> Vec<BorrowedFd<'_>>;

    /// When a middleware that holds packets back wants `send` (also with an
    /// empty batch) and `receive` to be called again; `None`: nothing is held.
    fn next_release(&self) -> Option<Instant>;

    /// A snapshot of all counters since the datapath was made.
    fn counters(&self) -> Counters;
}

/// A pointer to a datapath is a datapath.
macro_rules! forward {
    ($($pointer:ident),+) => {$(
        impl<D: Datapath + ?Sized> Datapath for $pointer<D> {
            fn kind(&self) -> Kind {
                (**self).kind()
            }

            fn local_addresses(&self) -> Vec<SocketAddr> {
                (**self).local_addresses()
            }

            fn max_packet(&self, path: &Path) -> usize {
                (**self).max_packet(path)
            }

            fn seal(&self, batch: &mut SendBatch) {
                (**self).seal(batch);
            }

            fn send(&self, batch: &mut SendBatch) -> SendOutcome {
                (**self).send(batch)
            }

            fn receive(&self, batch: &mut ReceiveBatch) -> io::Result<usize> {
                (**self).receive(batch)
            }

            fn errors(&self, report: &mut dyn FnMut(NetworkError<'_>)) {
                (**self).errors(report);
            }

            fn refuse(&self, path: &Path, packet: &[u8]) -> Refusal {
                (**self).refuse(path, packet)
            }

            fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
                (**self).descriptors()
            }

            fn next_release(&self) -> Option<Instant> {
                (**self).next_release()
            }

            fn counters(&self) -> Counters {
                (**self).counters()
            }
        }
    )+};
}

forward!(Box, Arc);
