//! A datapath around another one that records packets and makes things go
//! wrong: for captures, for tests, and for trying an application out on a bad
//! network.
//!
//! Faults follow from a seed, which is printed if any fault is on, so a run
//! can be repeated. Packets are recorded as they pass the tap (corrupted,
//! late, twice), and lost ones where they vanish; comments in the capture say
//! what was done to them. IP and UDP headers are made up around them.
//!
//! A packet counts as sent when the tap has taken it. What it holds, or what
//! the datapath below does not take yet, goes with a later call of `send` or
//! `receive`, which [`Datapath::next_release`] asks for.
//!
//! Not for speed: it copies every packet.

mod faults;
mod held;
mod pcapng;
mod recorder;
mod side;

use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, BufWriter, Write};
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

pub use faults::Faults;

use crate::counters::CounterCells;
use crate::socket::lock;
use crate::{
    Blocked, Counters, Datapath, Kind, Meta, NetworkError, Path, ReceiveBatch, Refusal, SendBatch,
    SendOutcome,
};
use faults::Dice;
use held::Held;
use pcapng::Direction;
use recorder::Recorder;
use side::{Delivery, Side};

/// When to try again what the datapath below did not take.
const RETRY: Duration = Duration::from_micros(100);

/// What a tap does.
#[derive(Clone, Debug, PartialEq)]
pub struct TapOptions {
    /// What the faults follow from; random if not given.
    pub seed: Option<u64>,
    /// Faults of packets sent.
    pub transmit: Faults,
    /// Faults of packets received.
    pub receive: Faults,
    /// A file to record into (pcapng, raw IP); what is there is overwritten.
    pub capture: Option<PathBuf>,
    /// Most packets held back in each direction; more are not held.
    pub held_packets: usize,
}

impl Default for TapOptions {
    /// Nothing.
    fn default() -> Self {
        Self {
            seed: None,
            transmit: Faults::default(),
            receive: Faults::default(),
            capture: None,
            held_packets: 1024,
        }
    }
}

/// A tap around a datapath.
pub struct Tap<D> {
    inner: D,
    seed: u64,
    counters: CounterCells,
    // Lock order: a direction, then the recorder.
    transmit: Mutex<Transmit>,
    receive: Mutex<Receive>,
    recorder: Mutex<Option<Recorder>>,
}

struct Transmit {
    side: Side,
    /// What goes to the datapath below.
    staging: SendBatch,
}

struct Receive {
    side: Side,
    /// What came from the datapath below, and how much of it has passed.
    source: ReceiveBatch,
    passed: usize,
}

impl<D: Datapath> Tap<D> {
    /// Puts a tap around a datapath.
    ///
    /// # Errors
    ///
    /// When the capture cannot be written.
    pub fn new(inner: D, options: &TapOptions) -> io::Result<Self> {
        let output: Option<Box<dyn Write + Send>> = match &options.capture {
            Some(path) => Some(Box::new(BufWriter::new(File::create(path)?))),
            None => None,
        };
        Self::build(inner, options, output)
    }

    /// As [`Tap::new`], but records into `output`, whatever
    /// [`TapOptions::capture`] says.
    ///
    /// # Errors
    ///
    /// When `output` cannot be written.
    pub fn recording_into(
        inner: D,
        options: &TapOptions,
        output: Box<dyn Write + Send>,
    ) -> io::Result<Self> {
        Self::build(inner, options, Some(output))
    }

    fn build(
        inner: D,
        options: &TapOptions,
        output: Option<Box<dyn Write + Send>>,
    ) -> io::Result<Self> {
        let seed = options
            .seed
            .unwrap_or_else(|| RandomState::new().build_hasher().finish());
        if options.transmit.any() || options.receive.any() {
            eprintln!("homa tap: faults with seed {seed}");
        }
        let recorder = match output {
            Some(output) => Some(Recorder::new(
                output,
                inner.kind(),
                inner.local_addresses(),
            )?),
            None => None,
        };
        let side = |direction, faults: &Faults, lane| Side {
            direction,
            dice: Dice::new(faults.clone(), seed, lane),
            held: Held::new(options.held_packets),
            scratch: Vec::new(),
        };
        Ok(Self {
            inner,
            seed,
            counters: CounterCells::default(),
            transmit: Mutex::new(Transmit {
                side: side(Direction::Outbound, &options.transmit, 1),
                staging: SendBatch::default(),
            }),
            receive: Mutex::new(Receive {
                side: side(Direction::Inbound, &options.receive, 2),
                source: ReceiveBatch::default(),
                passed: 0,
            }),
            recorder: Mutex::new(recorder),
        })
    }

    /// What the faults follow from.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The datapath below.
    pub fn inner(&self) -> &D {
        &self.inner
    }

    /// Writes the capture out as far as it goes.
    pub fn flush(&self) {
        if let Some(recorder) = &mut *lock(&self.recorder) {
            recorder.flush(&self.counters);
        }
    }
}

fn stage(staging: &mut SendBatch, meta: &Meta, bytes: &[u8]) -> Delivery {
    match staging.push(&meta.path, meta.tos, bytes.len()) {
        Some(slot) => {
            slot.copy_from_slice(bytes);
            Delivery::Taken
        }
        None => Delivery::NoRoom,
    }
}

fn put(batch: &mut ReceiveBatch, meta: &Meta, bytes: &[u8]) -> Delivery {
    match batch.push(meta, bytes) {
        Ok(()) => Delivery::Taken,
        Err(_) => Delivery::NoRoom,
    }
}

impl<D: Datapath> Datapath for Tap<D> {
    fn kind(&self) -> Kind {
        self.inner.kind()
    }

    fn local_addresses(&self) -> Vec<SocketAddr> {
        self.inner.local_addresses()
    }

    fn max_packet(&self, path: &Path) -> usize {
        self.inner.max_packet(path)
    }

    fn seal(&self, batch: &mut SendBatch) {
        self.inner.seal(batch);
    }

    fn send(&self, batch: &mut SendBatch) -> SendOutcome {
        let mut transmit = lock(&self.transmit);
        let Transmit { side, staging } = &mut *transmit;
        let now = Instant::now();
        let mut taken = 0;
        let mut below = SendOutcome::default();
        loop {
            self.release(side, now, &mut |meta, bytes| stage(staging, meta, bytes));
            while let Some(packet) = batch.first() {
                if !staging.has_room(packet.bytes.len()) {
                    break;
                }
                let meta = Meta {
                    path: *packet.path,
                    tos: packet.tos,
                    interface: 0,
                };
                self.pass(side, &meta, packet.bytes, now, &mut |meta, bytes| {
                    stage(staging, meta, bytes)
                });
                batch.consume(1);
                taken += 1;
                self.release(side, now, &mut |meta, bytes| stage(staging, meta, bytes));
            }
            if staging.is_empty() {
                break;
            }
            let outcome = self.inner.send(staging);
            below.dropped += outcome.dropped;
            below.blocked = outcome.blocked;
            if outcome.blocked.is_some() {
                break;
            }
        }
        // What was dropped below may have been taken by an earlier call.
        let dropped = below.dropped.min(taken);
        SendOutcome {
            sent: taken - dropped,
            dropped,
            still_queued: batch.len(),
            blocked: if batch.is_empty() {
                None
            } else {
                below.blocked.or(Some(Blocked::UntilReleased))
            },
        }
    }

    fn receive(&self, batch: &mut ReceiveBatch) -> io::Result<usize> {
        batch.clear();
        let mut receive = lock(&self.receive);
        let Receive {
            side,
            source,
            passed,
        } = &mut *receive;
        let now = Instant::now();
        loop {
            self.release(side, now, &mut |meta, bytes| put(batch, meta, bytes));
            for (bytes, meta) in source.iter().skip(*passed) {
                if !batch.has_room() {
                    return Ok(batch.len());
                }
                self.pass(side, meta, bytes, now, &mut |meta, bytes| {
                    put(batch, meta, bytes)
                });
                *passed += 1;
                self.release(side, now, &mut |meta, bytes| put(batch, meta, bytes));
            }
            source.clear();
            *passed = 0;
            if !batch.is_empty() || self.inner.receive(source)? == 0 {
                return Ok(batch.len());
            }
        }
    }

    fn errors(&self, report: &mut dyn FnMut(NetworkError<'_>)) {
        self.inner.errors(report);
    }

    fn refuse(&self, path: &Path, packet: &[u8]) -> Refusal {
        self.inner.refuse(path, packet)
    }

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.inner.descriptors()
    }

    fn next_release(&self) -> Option<Instant> {
        let own = {
            let transmit = lock(&self.transmit);
            let retry = (!transmit.staging.is_empty()).then(|| Instant::now() + RETRY);
            [retry, transmit.side.held.next_due()]
        };
        let theirs = {
            let receive = lock(&self.receive);
            let rest = (receive.passed < receive.source.len()).then(Instant::now);
            [rest, receive.side.held.next_due()]
        };
        own.into_iter()
            .chain(theirs)
            .chain([self.inner.next_release()])
            .flatten()
            .min()
    }

    fn counters(&self) -> Counters {
        self.inner.counters().plus(&self.counters.snapshot())
    }
}

impl<D> Drop for Tap<D> {
    fn drop(&mut self) {
        if let Some(recorder) = &mut *lock(&self.recorder) {
            recorder.flush(&self.counters);
        }
    }
}
