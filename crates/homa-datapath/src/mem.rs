//! A network within one process: for tests, and for RPC to oneself.
//!
//! Endpoints have addresses of their own choice; nothing is bound anywhere. A
//! packet is copied into the receiver's bounded queue, in order; a full queue
//! drops it and the receiver counts it, as the queue of a switch or socket
//! would. A packet to an address that nobody has is reported as a closed port.
//!
//! Queues are allocated when the endpoint is made and never grow.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use crate::counters::CounterCells;
use crate::socket::own_errors::OwnErrors;
use crate::socket::{checked, lock};
use crate::{
    BindError, Counters, Datapath, Kind, MAX_PACKET_BYTES, Meta, NetworkError, NetworkErrorKind,
    Path, ReceiveBatch, SendBatch, SendOutcome,
};

/// How a [`MemNetwork`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemOptions {
    /// What [`Datapath::max_packet`] says, in bytes.
    pub max_packet: usize,
    /// Most packets that wait for an endpoint.
    pub queue_packets: usize,
    /// Most bytes that wait for an endpoint.
    pub queue_bytes: usize,
}

impl Default for MemOptions {
    /// Packets as over UDP at MTU 1500; queues of 4096 packets and 4 MiB, ten
    /// times what an endpoint grants.
    fn default() -> Self {
        Self {
            max_packet: 1472,
            queue_packets: 4096,
            queue_bytes: 4 << 20,
        }
    }
}

/// An in-process network. Cheap to clone; all clones are the same network.
#[derive(Clone)]
pub struct MemNetwork {
    shared: Arc<Shared>,
}

struct Shared {
    options: MemOptions,
    inboxes: Mutex<HashMap<SocketAddr, Weak<Inbox>>>,
}

/// What waits for an endpoint. Lock order: `Shared::inboxes`, then `queue`.
struct Inbox {
    queue: Mutex<Queue>,
    counters: CounterCells,
    errors: OwnErrors,
    /// An eventfd whose count is above 0 when anything waits.
    ready: OwnedFd,
}

struct Queue {
    packets: VecDeque<(Meta, usize)>,
    bytes: VecDeque<u8>,
}

impl Default for MemNetwork {
    fn default() -> Self {
        Self::new()
    }
}

impl MemNetwork {
    /// A network with the default options.
    pub fn new() -> Self {
        Self::with_options(MemOptions::default())
    }

    /// A network of its own kind; `max_packet` is cut to
    /// [`MAX_PACKET_BYTES`].
    pub fn with_options(options: MemOptions) -> Self {
        Self {
            shared: Arc::new(Shared {
                options: MemOptions {
                    max_packet: options.max_packet.clamp(1, MAX_PACKET_BYTES),
                    ..options
                },
                inboxes: Mutex::new(HashMap::new()),
            }),
        }
    }

    /// An endpoint with this address, until dropped.
    ///
    /// # Errors
    ///
    /// [`BindError::InUse`] when another one has it.
    pub fn endpoint(&self, address: SocketAddr) -> Result<Mem, BindError> {
        let options = &self.shared.options;
        let inbox = Arc::new(Inbox {
            queue: Mutex::new(Queue {
                packets: VecDeque::with_capacity(options.queue_packets),
                bytes: VecDeque::with_capacity(options.queue_bytes),
            }),
            counters: CounterCells::default(),
            errors: OwnErrors::new(),
            ready: eventfd().map_err(|source| BindError::System {
                call: "eventfd",
                source,
            })?,
        });
        let mut inboxes = lock(&self.shared.inboxes);
        if inboxes
            .get(&address)
            .is_some_and(|old| old.strong_count() > 0)
        {
            return Err(BindError::InUse { address });
        }
        inboxes.insert(address, Arc::downgrade(&inbox));
        Ok(Mem {
            address,
            inbox,
            shared: self.shared.clone(),
        })
    }
}

/// An endpoint of a [`MemNetwork`].
pub struct Mem {
    address: SocketAddr,
    inbox: Arc<Inbox>,
    shared: Arc<Shared>,
}

impl Drop for Mem {
    fn drop(&mut self) {
        lock(&self.shared.inboxes).remove(&self.address);
    }
}

impl Datapath for Mem {
    fn kind(&self) -> Kind {
        Kind::Mem
    }

    fn local_addresses(&self) -> Vec<SocketAddr> {
        vec![self.address]
    }

    fn max_packet(&self, _path: &Path) -> usize {
        self.shared.options.max_packet
    }

    fn send(&self, batch: &mut SendBatch) -> SendOutcome {
        let mut outcome = SendOutcome::default();
        let counters = &self.inbox.counters;
        for packet in batch.iter() {
            let target = lock(&self.shared.inboxes)
                .get(&packet.path.remote)
                .and_then(Weak::upgrade);
            let kind = match target {
                None => Some((
                    NetworkErrorKind::PortClosed,
                    &counters.tx_dropped_unreachable,
                )),
                Some(_) if packet.bytes.len() > self.shared.options.max_packet => Some((
                    NetworkErrorKind::PacketTooBig {
                        max_packet: self.shared.options.max_packet,
                    },
                    &counters.tx_dropped_too_big,
                )),
                Some(inbox) => {
                    let meta = Meta {
                        path: Path {
                            remote: self.address,
                            local: Some(packet.path.remote.ip()),
                        },
                        tos: packet.tos,
                        interface: 0,
                    };
                    inbox.put(&meta, packet.bytes, &self.shared.options);
                    None
                }
            };
            if let Some((kind, dropped)) = kind {
                dropped.increment();
                // Under the lock, so that nobody calms the descriptor between
                // the error and the wake-up.
                let _queue = lock(&self.inbox.queue);
                self.inbox.errors.push(
                    packet.path.remote,
                    kind,
                    packet.bytes,
                    &counters.errors_lost,
                );
                wake(&self.inbox.ready);
                outcome.dropped += 1;
            } else {
                counters.tx_packets.increment();
                counters.tx_bytes.add(packet.bytes.len() as u64);
                outcome.sent += 1;
            }
        }
        batch.clear();
        outcome
    }

    fn receive(&self, batch: &mut ReceiveBatch) -> io::Result<usize> {
        batch.clear();
        self.inbox.take(batch);
        Ok(batch.len())
    }

    fn errors(&self, report: &mut dyn FnMut(NetworkError<'_>)) {
        let counters = &self.inbox.counters;
        self.inbox.errors.drain(&mut |error| {
            if error.kind == NetworkErrorKind::PortClosed {
                counters.icmp_port_closed.increment();
            }
            report(error);
        });
        self.inbox.calm(&lock(&self.inbox.queue));
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.inbox.ready.as_fd()]
    }

    fn next_release(&self) -> Option<Instant> {
        None
    }

    fn counters(&self) -> Counters {
        self.inbox.counters.snapshot()
    }
}

impl Inbox {
    fn put(&self, meta: &Meta, bytes: &[u8], options: &MemOptions) {
        let mut queue = lock(&self.queue);
        if queue.packets.len() == options.queue_packets
            || queue.bytes.len() + bytes.len() > options.queue_bytes
        {
            self.counters.rx_kernel_drops.increment();
            return;
        }
        queue.packets.push_back((*meta, bytes.len()));
        queue.bytes.extend(bytes);
        if queue.packets.len() == 1 {
            wake(&self.ready);
        }
    }

    fn take(&self, batch: &mut ReceiveBatch) {
        let mut queue = lock(&self.queue);
        while let Some(&(meta, length)) = queue.packets.front() {
            let (first, second) = queue.bytes.as_slices();
            let cut = first.len().min(length);
            let parts = [&first[..cut], &second[..length - cut]];
            if batch.push_parts(&meta, parts).is_err() {
                return;
            }
            queue.packets.pop_front();
            queue.bytes.drain(..length);
            self.counters.rx_packets.increment();
            self.counters.rx_bytes.add(length as u64);
        }
        self.calm(&queue);
    }

    /// Makes the descriptor unreadable if nothing waits. Under the queue's
    /// lock, so that nothing slips in between.
    fn calm(&self, queue: &Queue) {
        if queue.packets.is_empty() && self.errors.is_empty() {
            let mut count = [0_u8; 8];
            // SAFETY: the kernel writes 8 bytes, which is what `count` is.
            // Failing with EAGAIN means that it was unreadable already.
            unsafe { libc::read(self.ready.as_raw_fd(), count.as_mut_ptr().cast(), 8) };
        }
    }
}

fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    let fd = checked(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
    // SAFETY: `fd` was just opened by us and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn wake(ready: &OwnedFd) {
    let one = 1_u64.to_ne_bytes();
    // SAFETY: the kernel reads 8 bytes, which is what `one` is. Failing with
    // EAGAIN means a count of 2⁶⁴ - 2: readable all the same.
    unsafe { libc::write(ready.as_raw_fd(), one.as_ptr().cast(), one.len()) };
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests;
