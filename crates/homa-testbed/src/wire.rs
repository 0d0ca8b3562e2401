//! A link that damages frames: a thread that takes them from one host's device
//! and puts them into another's, by their hardware addresses.
//!
//! It sees frames as they would be on a cable, cut to the MTU and with all
//! checksums filled in, because the hosts' offloads are off.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::Error;
use crate::faults::{Dice, Faults};
use crate::namespace::Namespace;
use crate::options::Wire;
use crate::plan::station;
use crate::statistics::lock;
use crate::switch::port_name;
use crate::sys;

/// Ethernet's header; what follows is the IP packet.
const FRAME_HEADER_BYTES: usize = 14;
/// Frames taken from one port before the others have their turn.
const TURN_FRAMES: usize = 32;
/// Most frames held back; more are lost.
const HELD_FRAMES: usize = 65_536;

/// What a link has done to the frames that count: those to one station.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WireCounters {
    /// Frames that came.
    pub frames: u64,
    /// Of these, lost on purpose.
    pub lost: u64,
    /// Delivered twice on purpose.
    pub duplicated: u64,
    /// With a byte changed on purpose.
    pub corrupted: u64,
    /// Held back on purpose so that others overtake.
    pub reordered: u64,
    /// Lost because the device they were for, or this link, was full or down.
    pub overflowed: u64,
    /// Dropped because they were longer than the MTU: never, or a sender had
    /// segmentation offload on.
    pub oversize: u64,
}

struct Shared {
    faults: Faults,
    counters: WireCounters,
    /// Anew when faults are set, so that a seed repeats.
    dice: Vec<Dice>,
    /// Why the thread has ended.
    failure: Option<io::Error>,
}

/// The link of a testbed whose network is a [`Network::Wire`](crate::Network).
pub struct WireControl {
    shared: Arc<Mutex<Shared>>,
    /// Made readable when the thread is to end.
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
    hosts: usize,
}

impl WireControl {
    /// Starts forwarding between ports `p1` and so on of the namespace, without
    /// faults.
    pub(crate) fn start(namespace: &Namespace, hosts: usize, mtu: u32) -> Result<Self, Error> {
        let open = move || {
            (0..hosts)
                .map(|host| sys::packet_socket(&port_name(host)))
                .collect::<io::Result<Vec<_>>>()
        };
        let ports = namespace
            .on_thread(open)
            .map_err(Error::system("opening packet sockets"))?;
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| Error::system("making an eventfd")(error.into()))?;
        let stop = Arc::new(stop);
        let shared = Arc::new(Mutex::new(Shared {
            faults: Faults::default(),
            counters: WireCounters::default(),
            dice: dice(0, hosts),
            failure: None,
        }));
        let forwarder = Forwarder {
            ports,
            shared: shared.clone(),
            stop: stop.clone(),
            held: BinaryHeap::new(),
            sequence: 0,
            frame: vec![0; mtu as usize + FRAME_HEADER_BYTES + 1],
        };
        let failed = shared.clone();
        let thread = namespace.spawn("wire", move || {
            if let Err(error) = forwarder.forward() {
                lock(&failed).failure = Some(error);
            }
        })?;
        Ok(Self {
            shared,
            stop,
            thread: Some(thread),
            hosts,
        })
    }

    /// What goes wrong from now on, and counters from 0. The fates of the frames
    /// from here on follow from the seed.
    pub fn set_faults(&self, wire: &Wire) {
        let mut shared = lock(&self.shared);
        shared.faults = wire.faults.clone();
        shared.dice = dice(wire.seed, self.hosts);
        shared.counters = WireCounters::default();
    }

    /// What was done to the frames since the faults were set.
    pub fn counters(&self) -> WireCounters {
        lock(&self.shared).counters
    }

    /// Whether it still forwards.
    ///
    /// # Errors
    ///
    /// Why not.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match lock(&self.shared).failure.take() {
            Some(error) => Err(Error::system("forwarding frames")(error)),
            None => Ok(()),
        }
    }
}

impl Drop for WireControl {
    fn drop(&mut self) {
        // Fails only if it is readable already.
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn dice(seed: u64, hosts: usize) -> Vec<Dice> {
    (0..hosts).map(|sender| Dice::new(seed, sender)).collect()
}

/// A frame that waits: the earliest first, and of two at once the older.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Held {
    due: Instant,
    sequence: u64,
    port: usize,
    frame: Vec<u8>,
}

struct Forwarder {
    ports: Vec<OwnedFd>,
    shared: Arc<Mutex<Shared>>,
    stop: Arc<OwnedFd>,
    held: BinaryHeap<Reverse<Held>>,
    sequence: u64,
    /// One byte longer than the longest frame, so that longer ones show.
    frame: Vec<u8>,
}

impl Forwarder {
    fn forward(mut self) -> io::Result<()> {
        loop {
            let ready = self.wait()?;
            if ready.is_empty() {
                return Ok(());
            }
            for port in ready.into_iter().flatten() {
                self.take(port)?;
            }
            self.release();
        }
    }

    /// Ports with frames, `None` for nothing but time; empty: it is time to end.
    fn wait(&self) -> io::Result<Vec<Option<usize>>> {
        let mut polled: Vec<PollFd<'_>> = self
            .ports
            .iter()
            .map(|port| PollFd::new(port, PollFlags::IN))
            .chain([PollFd::from_borrowed_fd(self.stop.as_fd(), PollFlags::IN)])
            .collect();
        let timeout = self.held.peek().map(|Reverse(held)| {
            let left = held.due.saturating_duration_since(Instant::now());
            Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(left.subsec_nanos()),
            }
        });
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let stop = polled.pop().is_some_and(|fd| !fd.revents().is_empty());
        if stop {
            return Ok(Vec::new());
        }
        let ready = polled
            .iter()
            .enumerate()
            .filter(|(_, fd)| !fd.revents().is_empty())
            .map(|(port, _)| Some(port));
        Ok(ready.chain([None]).collect())
    }

    /// Takes frames from a port.
    fn take(&mut self, port: usize) -> io::Result<()> {
        for _ in 0..TURN_FRAMES {
            let received = recv(&self.ports[port], &mut self.frame[..], RecvFlags::TRUNC);
            let (_, length) = match received {
                Ok(received) => received,
                // A device that is down says so once; frames come when it is up.
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::NETDOWN) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            match self.frame.get(..length) {
                // The last byte of the buffer is beyond what is allowed.
                Some(frame) if length < self.frame.len() => self.carry(port, frame.to_vec()),
                _ => lock(&self.shared).counters.oversize += 1,
            }
        }
        Ok(())
    }

    /// Decides what becomes of a frame.
    fn carry(&mut self, from: usize, mut frame: Vec<u8>) {
        let Some(to) = station(&frame) else {
            for port in (0..self.ports.len()).filter(|port| *port != from) {
                self.put(port, &frame);
            }
            return;
        };
        if to >= self.ports.len() || to == from {
            return;
        }
        let fate = {
            let mut shared = lock(&self.shared);
            let Shared {
                faults,
                counters,
                dice,
                ..
            } = &mut *shared;
            let Some(dice) = dice.get_mut(from) else {
                return;
            };
            let fate = dice.throw(faults);
            counters.frames += 1;
            counters.lost += u64::from(fate.lost);
            counters.duplicated += u64::from(fate.duplicated);
            counters.corrupted += u64::from(fate.corrupted);
            counters.reordered += u64::from(fate.reordered);
            fate
        };
        if fate.lost {
            return;
        }
        if fate.corrupted
            && let Some(packet) = frame.get_mut(FRAME_HEADER_BYTES..)
        {
            fate.damage(packet);
        }
        if fate.duplicated {
            self.deliver(to, frame.clone(), fate.hold);
        }
        self.deliver(to, frame, fate.hold);
    }

    fn deliver(&mut self, port: usize, frame: Vec<u8>, hold: Duration) {
        if hold.is_zero() {
            self.put(port, &frame);
        } else if self.held.len() >= HELD_FRAMES {
            lock(&self.shared).counters.overflowed += 1;
        } else {
            self.sequence += 1;
            self.held.push(Reverse(Held {
                due: Instant::now() + hold,
                sequence: self.sequence,
                port,
                frame,
            }));
        }
    }

    /// Lets frames go whose time has come.
    fn release(&mut self) {
        let now = Instant::now();
        while let Some(Reverse(held)) = self.held.peek()
            && held.due <= now
        {
            if let Some(Reverse(held)) = self.held.pop() {
                self.put(held.port, &held.frame);
            }
        }
    }

    fn put(&self, port: usize, frame: &[u8]) {
        let sent = self
            .ports
            .get(port)
            .is_some_and(|port| send(port, frame, SendFlags::empty()).is_ok());
        if !sent {
            lock(&self.shared).counters.overflowed += 1;
        }
    }
}
