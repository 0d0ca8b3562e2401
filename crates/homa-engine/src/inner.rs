//! What all handles and threads of an engine share, and how its lock is used.
//!
//! Order of locks: receiving, then sending, then state. No system call is made
//! under the state's lock, except to look a peer's path up; wakers run, and
//! messages are freed, after every lock is released.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use homa_core::{Endpoint, Time};
use homa_datapath::{Datapath, Kind, ReceiveBatch, SendBatch};

use crate::clock::Clock;
use crate::counters::Stats;
use crate::identity;
use crate::sleep::Alarm;
use crate::state::{Interrupt, Own, State};
use crate::thread::Parting;
use crate::{Drive, EngineConfig, Sending, StartError, TosMap};

/// Messages that one call receives: each can be a super-packet of 64.
const RECEIVE_MESSAGES: usize = 16;

/// Bytes of a send batch: four super-packets.
const BATCH_BYTES: usize = 4 * homa_datapath::MAX_PACKET_BYTES;

pub(crate) struct Inner {
    pub(crate) clock: Clock,
    pub(crate) datapath: Arc<dyn Datapath>,
    pub(crate) drive: Drive,
    pub(crate) when: Sending,
    pub(crate) spin: Duration,
    pub(crate) tos: TosMap,
    pub(crate) kind: Kind,
    pub(crate) receiving: Mutex<ReceiveBatch>,
    pub(crate) sending: Mutex<SendBatch>,
    /// There may be something to send that the thread which sends has not seen.
    pub(crate) send_wanted: AtomicBool,
    /// The datapath has errors to report.
    pub(crate) errors_wanted: AtomicBool,
    state: Mutex<State>,
    /// Wakes the waiting thread that drives.
    pub(crate) leader_alarm: Arc<Alarm>,
    /// Wakes the engine's own thread.
    pub(crate) thread_alarm: Alarm,
    /// Wakes the driver outside.
    pub(crate) outside: Mutex<Option<Waker>>,
    pub(crate) stop: AtomicBool,
    /// Tells when the engine's own thread has ended.
    pub(crate) parting: Arc<Parting>,
}

/// Locks, also after a panic of another holder: the state is consistent
/// between any two calls of the core, and a panic elsewhere must not spread.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Wakers taken out of the state at once, without allocating.
const WAKES_AT_ONCE: usize = 16;

impl Inner {
    pub(crate) fn new(
        config: &EngineConfig,
        datapath: Box<dyn Datapath>,
    ) -> Result<Self, StartError> {
        let settings = config.core.settings()?;
        let addresses = datapath.local_addresses();
        let kind = datapath.kind();
        let port = own_port(kind, &addresses)?;
        let identity = config.identity.unwrap_or_else(identity::draw);
        let datapath: Arc<dyn Datapath> = Arc::from(datapath);
        let clock = Clock::new();
        let own = Own {
            kind,
            addresses,
            port,
        };
        let core = Endpoint::new(settings, identity);
        let state = State::new(config, core, datapath.clone(), own, clock.now());
        let alarm = || {
            Alarm::new().map_err(|source: io::Error| StartError::System {
                what: "eventfd",
                source,
            })
        };
        Ok(Self {
            clock,
            datapath,
            drive: config.drive,
            when: config.sending,
            spin: config.spin_before_sleep,
            tos: config.tos,
            kind,
            receiving: Mutex::new(ReceiveBatch::with_messages(RECEIVE_MESSAGES)),
            sending: Mutex::new(SendBatch::with_capacity(
                crate::transmit::BATCH_PACKETS,
                BATCH_BYTES,
            )),
            send_wanted: AtomicBool::new(false),
            errors_wanted: AtomicBool::new(false),
            state: Mutex::new(state),
            leader_alarm: Arc::new(alarm()?),
            thread_alarm: alarm()?,
            outside: Mutex::new(None),
            stop: AtomicBool::new(false),
            parting: Arc::default(),
        })
    }

    /// Changes the state; what must follow outside of the lock is left to the
    /// next [`Inner::settle`]. For use while another lock is held.
    pub(crate) fn quietly<R>(&self, change: impl FnOnce(&mut State, Time) -> R) -> R {
        let mut state = lock(&self.state);
        let now = self.clock.now();
        change(&mut state, now)
    }

    /// [`Inner::quietly`], without looking at the clock.
    pub(crate) fn timelessly<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        change(&mut lock(&self.state))
    }

    /// Changes the state, and then does what must follow.
    pub(crate) fn with<R>(&self, change: impl FnOnce(&mut State, Time) -> R) -> R {
        let mut wakes = [const { None }; WAKES_AT_ONCE];
        let mut state = lock(&self.state);
        let now = self.clock.now();
        let result = change(&mut state, now);
        let interrupt = state.settle(|| now);
        let more = finish(state, &mut wakes);
        self.interrupt(interrupt);
        if more {
            self.settle();
        }
        result
    }

    /// Wakes whom changes before have made ready, and interrupts the driver if
    /// something is due earlier than it knows.
    pub(crate) fn settle(&self) {
        loop {
            let mut wakes = [const { None }; WAKES_AT_ONCE];
            let mut state = lock(&self.state);
            let interrupt = state.settle(|| self.clock.now());
            let more = finish(state, &mut wakes);
            self.interrupt(interrupt);
            if !more {
                return;
            }
        }
    }

    pub(crate) fn interrupt(&self, whom: Interrupt) {
        match whom {
            Interrupt::Nobody => {}
            Interrupt::Leader => self.leader_alarm.ring(),
            Interrupt::Fallback if self.drive.is_outside() => {
                let waker = lock(&self.outside).clone();
                if let Some(waker) = waker {
                    waker.wake();
                }
            }
            Interrupt::Fallback => self.thread_alarm.ring(),
        }
    }

    /// Wakes the sleeping driver, whatever it waits for.
    pub(crate) fn rouse(&self) {
        let interrupt = self.timelessly(State::rouse);
        self.interrupt(interrupt);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    pub(crate) fn stats(&self) -> Stats {
        let datapath = self.datapath.counters();
        self.timelessly(|state| Stats {
            engine: state.counters,
            engine_gauges: state.gauges(),
            core: state.core.counters(),
            core_gauges: state.core.gauges(),
            datapath,
        })
    }
}

/// The port of calls that name none: that of the sockets, or over raw IP one
/// from the upper half, where nobody listens by choice.
fn own_port(kind: Kind, addresses: &[SocketAddr]) -> Result<u16, StartError> {
    let first = addresses.first().ok_or(StartError::NoAddress)?;
    Ok(match kind {
        Kind::Udp | Kind::Mem => first.port(),
        Kind::Raw => identity::ephemeral_port(),
    })
}

/// Releases the lock, wakes and frees; says whether some are left.
fn finish(mut state: MutexGuard<'_, State>, wakes: &mut [Option<Waker>; WAKES_AT_ONCE]) -> bool {
    let count = state.wakes.len().min(WAKES_AT_ONCE);
    for (place, waker) in wakes.iter_mut().zip(state.wakes.drain(..count)) {
        *place = Some(waker);
    }
    state.counters.wakeups += count as u64;
    let garbage = if state.garbage.is_empty() {
        Vec::new()
    } else {
        std::mem::take(&mut state.garbage)
    };
    let more = !state.wakes.is_empty();
    drop(state);
    for waker in wakes.iter_mut().filter_map(Option::take) {
        waker.wake();
    }
    drop(garbage);
    more
}
