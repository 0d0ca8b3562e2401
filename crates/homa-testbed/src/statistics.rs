//! What a switch's ports did: counted by the kernel, and their queues looked at
//! again and again by a thread.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::net::netdevice::name_to_index;

use crate::Error;
use crate::namespace::Namespace;
use crate::netlink::{QueueCounters, QueueReader};
use crate::switch::{Queue, port_name};

/// Priorities of a port.
const PRIORITIES: usize = 8;

/// What went through the port towards one host since the last reset.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PortStatistics {
    /// The host that the port leads to.
    pub host: String,
    /// Bytes of frames sent, with Ethernet header, by priority.
    pub sent_bytes: [u64; 8],
    /// Frames sent, by priority.
    pub sent_frames: [u64; 8],
    /// Frames dropped because their queue was full, by priority.
    pub dropped_frames: [u64; 8],
    /// Frames dropped because they were longer than the MTU: never, or a sender
    /// had segmentation offload on.
    pub oversize_frames: u64,
    /// Bytes in all queues of the port when they were fullest, as far as the
    /// samples show.
    pub backlog_peak_bytes: u64,
    /// Bytes in all queues of the port, the mean of all samples.
    pub backlog_mean_bytes: f64,
    /// How often the queues were looked at.
    pub samples: u64,
    /// Time since the reset.
    pub observed: Duration,
}

impl PortStatistics {
    /// Bytes of frames sent with all priorities.
    pub fn bytes(&self) -> u64 {
        self.sent_bytes.iter().sum()
    }

    /// Frames dropped with all priorities.
    pub fn drops(&self) -> u64 {
        self.dropped_frames.iter().sum()
    }
}

/// One port: what the kernel has counted at the reset, and since.
#[derive(Clone, Debug, Default)]
struct Port {
    queues: [Counted; PRIORITIES],
    oversize: Counted,
    peak: u64,
    sum: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    base: QueueCounters,
    now: QueueCounters,
}

impl Counted {
    /// The kernel's 32 bits may have gone round.
    fn frames(&self) -> u64 {
        self.now.packets.wrapping_sub(self.base.packets).into()
    }

    fn drops(&self) -> u64 {
        self.now.drops.wrapping_sub(self.base.drops).into()
    }

    fn bytes(&self) -> u64 {
        self.now.bytes.wrapping_sub(self.base.bytes)
    }
}

struct State {
    reader: QueueReader,
    /// By the kernel's number of the device.
    ports: BTreeMap<u32, Port>,
    samples: u64,
    since: Instant,
    /// Of the sampling thread.
    failure: Option<io::Error>,
}

impl State {
    fn sample(&mut self) -> io::Result<()> {
        let ports = &mut self.ports;
        let mut backlogs: BTreeMap<u32, u64> = BTreeMap::new();
        self.reader.read(|counters| {
            let (Some(port), Some(queue)) = (
                ports.get_mut(&counters.device),
                Queue::of_parent(counters.parent),
            ) else {
                return;
            };
            match queue {
                Queue::Oversize => port.oversize.now = *counters,
                Queue::Priority(priority) => {
                    if let Some(queue) = port.queues.get_mut(priority) {
                        queue.now = *counters;
                    }
                    *backlogs.entry(counters.device).or_default() += u64::from(counters.backlog);
                }
            }
        })?;
        self.samples += 1;
        for (device, backlog) in backlogs {
            if let Some(port) = self.ports.get_mut(&device) {
                port.peak = port.peak.max(backlog);
                port.sum += backlog;
            }
        }
        Ok(())
    }

    fn reset(&mut self) {
        for port in self.ports.values_mut() {
            (port.peak, port.sum) = (0, 0);
            let queues = port.queues.iter_mut();
            for queue in queues.chain([&mut port.oversize]) {
                queue.base = queue.now;
            }
        }
        self.samples = 0;
        self.since = Instant::now();
    }
}

/// Watches the ports of a switch until it is dropped.
pub(crate) struct Sampler {
    state: Arc<Mutex<State>>,
    /// Nobody sends: the thread ends when this is dropped.
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    devices: Vec<u32>,
}

impl Sampler {
    /// Watches ports `p1` and so on of the namespace.
    pub(crate) fn start(
        namespace: &Namespace,
        hosts: usize,
        interval: Duration,
    ) -> Result<Self, Error> {
        let opened = namespace.on_thread(move || -> io::Result<_> {
            let reader = QueueReader::open()?;
            let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
            let devices = (0..hosts)
                .map(|host| name_to_index(&socket, &port_name(host)))
                .collect::<Result<Vec<_>, _>>()?;
            Ok((reader, devices))
        });
        let (reader, devices) = opened.map_err(Error::system("reading the switch's queues"))?;
        let mut state = State {
            reader,
            ports: devices
                .iter()
                .map(|device| (*device, Port::default()))
                .collect(),
            samples: 0,
            since: Instant::now(),
            failure: None,
        };
        state
            .sample()
            .map_err(Error::system("reading the switch's queues"))?;
        state.reset();
        let state = Arc::new(Mutex::new(state));
        let (stop, stopped) = mpsc::channel::<()>();
        let shared = state.clone();
        let watch = move || {
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                let mut state = lock(&shared);
                if let Err(error) = state.sample() {
                    state.failure = Some(error);
                    return;
                }
            }
        };
        Ok(Self {
            state,
            stop: Some(stop),
            thread: Some(namespace.spawn("sampler", watch)?),
            devices,
        })
    }

    /// Begins anew.
    pub(crate) fn reset(&self) -> Result<(), Error> {
        let mut state = self.fresh()?;
        state.reset();
        Ok(())
    }

    /// All ports, in the order of their hosts.
    pub(crate) fn statistics(&self) -> Result<Vec<PortStatistics>, Error> {
        let state = self.fresh()?;
        let ports = self.devices.iter().enumerate().map(|(host, device)| {
            let port = state.ports.get(device).cloned().unwrap_or_default();
            PortStatistics {
                host: format!("h{}", host + 1),
                sent_bytes: port.queues.map(|queue| queue.bytes()),
                sent_frames: port.queues.map(|queue| queue.frames()),
                dropped_frames: port.queues.map(|queue| queue.drops()),
                oversize_frames: port.oversize.drops(),
                backlog_peak_bytes: port.peak,
                backlog_mean_bytes: mean(port.sum, state.samples),
                samples: state.samples,
                observed: state.since.elapsed(),
            }
        });
        Ok(ports.collect())
    }

    /// With the counters of this moment.
    fn fresh(&self) -> Result<MutexGuard<'_, State>, Error> {
        let mut state = lock(&self.state);
        if let Some(error) = state.failure.take() {
            return Err(Error::system("reading the switch's queues")(error));
        }
        state
            .sample()
            .map_err(Error::system("reading the switch's queues"))?;
        Ok(state)
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What a panic elsewhere has left is still in order: every change is whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[allow(
    clippy::cast_precision_loss,
    reason = "a mean of buffer sizes needs no 53 bits"
)]
fn mean(sum: u64, count: u64) -> f64 {
    if count == 0 {
        0.0
    } else {
        sum as f64 / count as f64
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn counted__survives_32_bits_going_round() {
        let at = |packets| QueueCounters {
            packets,
            drops: packets,
            ..QueueCounters::default()
        };
        let counted = Counted {
            base: at(u32::MAX),
            now: at(4),
        };
        assert_eq!((counted.frames(), counted.drops()), (5, 5));
    }

    #[test]
    fn mean__of_nothing_is_zero() {
        assert!(mean(0, 0).abs() < f64::EPSILON);
        assert!((mean(10, 4) - 2.5).abs() < f64::EPSILON);
    }
}
