//! The conditions of the simulations of SIGCOMM 2018, and a run under them.
//!
//! From the configuration of PlatformLab/HomaSimulation: 144 hosts in nine
//! racks, four spines, 10 and 40 Gbit/s, no propagation delay, 0.25 µs in a
//! switch, 0.5 µs of software at each end and 0.5 µs in the NIC, unlimited
//! queues, spraying; one-way messages with Poisson arrivals; 9328 unscheduled
//! bytes (10,000 on the wire), a window of the same size for every message;
//! as many scheduled priorities as messages granted at once, the rest
//! unscheduled by cutoffs computed from the known distribution.
//!
//! What differs from that simulator, because the core is not that protocol:
//! acknowledgements of one-way messages (they travel beside the network here),
//! a message keeps its place among those granted until its last byte has come,
//! all packets have the same payload, and two messages of one sender may be
//! granted at once if there are fewer senders than places.

use homa_core::{Config, ConfigError, Mechanisms, SECOND_NS};
use homa_workload::{Workload, WorkloadError, sim2018};
use rayon::prelude::{IntoParallelRefIterator, ParallelIterator};

use crate::homa::{Acquaintance, Homa, HomaSetup};
use crate::ideal::Ideal;
use crate::packet::HostId;
use crate::published::{self, Curve};
use crate::report::Report;
use crate::slowdown::Slowdowns;
use crate::time::SimTime;
use crate::topology::{Buffer, Forwarding, Paths, Shape, Topology, TopologyError};
use crate::traffic::Traffic;
use crate::transport::{Pattern, Way};
use crate::wire::{Share, WireSizes};
use crate::world::{Observer, Record, World, WorldCounters};

/// Payload of a full packet, in bytes.
pub const PAYLOAD_BYTES: u32 = 1442;
/// Bytes of a message that are sent without grants.
pub const UNSCHEDULED_BYTES: u32 = 9328;
/// Bytes granted ahead of what was received. The simulator of 2018 grants a
/// whole packet while fewer than [`UNSCHEDULED_BYTES`] are under way, the core
/// as soon as a whole packet fits into the window.
pub const WINDOW_BYTES: u32 = UNSCHEDULED_BYTES + PAYLOAD_BYTES - 1;
/// Bytes of a GRANT on the wire.
const GRANT_WIRE_BYTES: f64 = 84.0;

/// How often a run looks whether it is done.
const DRAIN_STEPS: u32 = 50;

/// By workload: payload per nominal load, and messages granted at once, which
/// is also the number of scheduled priorities.
const BY_WORKLOAD: [(f64, u8); 5] = [(0.657, 1), (0.796, 3), (0.887, 4), (0.898, 7), (0.898, 7)];

/// Which run.
#[derive(Clone, Debug, PartialEq)]
pub struct Conditions {
    /// Workload, 1 to 5.
    pub workload: u8,
    /// Nominal load of the hosts' links, headers and grants included.
    pub load: f64,
    /// Seed of everything random.
    pub seed: u64,
    /// Virtual seconds before messages count.
    pub warm_up_s: f64,
    /// Virtual seconds during which they are started.
    pub measure_s: f64,
    /// Most virtual seconds to wait, under load, until they are done.
    pub drain_s: f64,
}

/// Why a run cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The workload is unknown.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The topology cannot be built.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The core does not take the configuration.
    #[error("configuration of Homa: {0}")]
    Config(ConfigError),
}

/// The network.
pub fn topology() -> Topology {
    Topology {
        shape: Shape::LeafSpine {
            racks: 9,
            hosts_per_rack: 16,
            spines: 4,
        },
        host_rate_bps: 10_000_000_000,
        fabric_rate_bps: 40_000_000_000,
        host_link_ns: 0,
        fabric_link_ns: 0,
        switch_ns: 250,
        software_out_ns: 500,
        nic_ns: 500,
        software_in_ns: 500,
        buffer: Buffer::Unlimited,
        mark_above_bytes: None,
        forwarding: Forwarding::StoreAndForward,
        paths: Paths::Spray,
    }
}

/// The parameters of a workload: payload per nominal load, and messages
/// granted at once.
pub fn parameters(workload: u8) -> Option<(f64, u8)> {
    BY_WORKLOAD
        .get(usize::from(workload).checked_sub(1)?)
        .copied()
}

/// Homa as in the simulations, for a workload with `granted_at_once` messages.
pub fn setup(workload: &Workload, granted_at_once: u8) -> HomaSetup {
    let longest = workload.max_bytes().max(1);
    let config = Config {
        priorities: 8,
        fixed_cutoffs: Some(cutoffs(workload, 8 - granted_at_once)),
        unscheduled_bytes: Some(UNSCHEDULED_BYTES),
        max_incoming_bytes: Some(u32::MAX),
        window_bytes: Some(WINDOW_BYTES),
        max_overcommit: granted_at_once,
        grant_fifo_permille: 0,
        pacer_fifo_permille: 0,
        max_message_bytes: longest,
        // Nothing is ever lost: silence means that a message waits.
        resend_ns: Some(100 * SECOND_NS),
        timeout_ns: 1000 * SECOND_NS,
        // Nothing is sent twice. Short, and few RPCs, keep what a host touches small.
        duplicate_lifetime_ns: 100_000,
        buffer_bytes: 1 << 40,
        max_rpcs: 1 << 10,
        max_peers: 256,
        mechanisms: Mechanisms::ALL.without(Mechanisms::MAX_INCOMING),
        ..Config::default()
    };
    HomaSetup {
        config,
        payload_bytes: PAYLOAD_BYTES,
        wire_sizes: WireSizes::Sigcomm18,
        acks: Way::Aside,
        acquaintance: Acquaintance::Introduced,
    }
}

/// Cutoffs such that each of `levels` unscheduled levels carries the same
/// bytes on the wire; the highest carries the grants too.
pub fn cutoffs(workload: &Workload, levels: u8) -> [u32; 8] {
    let mut list = [u32::MAX; 8];
    let (mut below, mut grants) = (0.0, 0.0);
    let mut bytes_of = Vec::new();
    for point in workload.points() {
        let fraction = point.cumulative - below;
        below = point.cumulative;
        let unscheduled = point.size_bytes.min(UNSCHEDULED_BYTES);
        let full = unscheduled / PAYLOAD_BYTES;
        let mut bytes = full * WireSizes::Sigcomm18.data(PAYLOAD_BYTES, Share::Unscheduled);
        if unscheduled % PAYLOAD_BYTES > 0 {
            let rest = unscheduled % PAYLOAD_BYTES;
            bytes += WireSizes::Sigcomm18.data(rest, Share::Unscheduled);
        }
        let scheduled = f64::from(point.size_bytes - unscheduled);
        grants += fraction * (scheduled / f64::from(PAYLOAD_BYTES)).ceil() * GRANT_WIRE_BYTES;
        bytes_of.push((point.size_bytes, fraction * f64::from(bytes)));
    }
    let total: f64 = grants + bytes_of.iter().map(|(_, bytes)| bytes).sum::<f64>();
    let levels = f64::from(levels.max(1));
    let (mut sum, mut level) = (grants, 7_u8);
    let lowest = 8 - levels as u8;
    for (size, bytes) in bytes_of {
        sum += bytes;
        while level > lowest && sum >= total * f64::from(8 - level) / levels {
            list[usize::from(level)] = size;
            level -= 1;
        }
    }
    list
}

/// Collects the slowdowns of the messages that count.
pub struct Collector {
    topology: Topology,
    ideal: Ideal,
    from: SimTime,
    until: SimTime,
    slowdowns: Slowdowns,
    counted: u64,
}

impl Collector {
    /// Of messages started between two instants, in classes of size.
    pub fn new(
        topology: Topology,
        ideal: Ideal,
        window: (SimTime, SimTime),
        upper_bytes: Vec<u32>,
    ) -> Self {
        Self {
            topology,
            ideal,
            from: window.0,
            until: window.1,
            slowdowns: Slowdowns::new(upper_bytes),
            counted: 0,
        }
    }

    /// What was collected.
    pub fn slowdowns(&self) -> &Slowdowns {
        &self.slowdowns
    }

    /// Messages collected.
    pub fn counted(&self) -> u64 {
        self.counted
    }
}

impl Observer for Collector {
    fn done(&mut self, record: &Record) {
        if record.started < self.from || record.started >= self.until {
            return;
        }
        self.counted += 1;
        let took = (record.started, record.done);
        let slowdown =
            self.ideal
                .slowdown(&self.topology, record.from, record.to, record.bytes, took);
        let took_us = record.done.since(record.started) as f64 / 1e6;
        self.slowdowns.record(record.bytes, slowdown, took_us);
    }
}

/// What a run found.
pub struct Outcome {
    /// Slowdowns by class of size; messages not done are in there as infinite.
    pub slowdowns: Slowdowns,
    /// What the world counted.
    pub counters: WorldCounters,
    /// Hash over every message that was done.
    pub trace_hash: u64,
    /// Virtual seconds that passed.
    pub virtual_s: f64,
    /// Share of the hosts' links that was used during the measured time.
    pub used: f64,
    /// Bytes sent by hosts during the measured time, by priority.
    pub sent_by_priority: [u64; 8],
    /// Bytes that waited at a port of each stage of the network, mean over
    /// the ports and the measured time.
    pub mean_waiting_bytes: [f64; 3],
    /// Most bytes that ever waited at a port of each stage.
    pub most_waiting_by_stage: [u64; 3],
    /// Most bytes that ever waited at a port.
    pub most_waiting_bytes: u64,
}

/// Runs the simulation.
pub fn run(conditions: &Conditions) -> Result<Outcome, RunError> {
    let workload = sim2018(conditions.workload)?;
    let (payload, granted_at_once) = parameters(conditions.workload).unwrap_or((0.0, 1));
    let setup = setup(&workload, granted_at_once);
    run_with(conditions, &workload, payload, &setup)
}

/// Runs the simulation once for each seed, as many at a time as there are
/// processors, and reports on all of them together. `done` is told of every
/// seed that has finished.
pub fn run_seeds(
    conditions: &Conditions,
    seeds: &[u64],
    done: impl Fn(u64) + Sync,
) -> Result<Report, RunError> {
    let outcomes: Result<Vec<_>, RunError> = seeds
        .par_iter()
        .map(|&seed| {
            let before_s = thread_cpu_s();
            let outcome = run(&Conditions {
                seed,
                ..conditions.clone()
            })?;
            done(seed);
            Ok((seed, outcome, thread_cpu_s() - before_s))
        })
        .collect();
    Ok(Report::sigcomm18(conditions, outcomes?))
}

/// Seconds that this thread has run, which other processes do not lengthen;
/// not a number where the kernel does not say.
fn thread_cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns = text
        .split_whitespace()
        .next()
        .and_then(|ns| ns.parse::<f64>().ok());
    ns.map_or(f64::NAN, |ns| ns / 1e9)
}

/// Runs the simulation with another set-up of Homa, or another share of
/// payload in the load.
pub fn run_with(
    conditions: &Conditions,
    workload: &Workload,
    payload: f64,
    setup: &HomaSetup,
) -> Result<Outcome, RunError> {
    let topology = topology();
    let settings = setup.config.settings().map_err(RunError::Config)?;
    let hosts = topology.hosts();
    let transports = (0..hosts)
        .map(|own| Homa::new(setup, &settings, conditions.seed, HostId(own), hosts))
        .collect();
    let window = (
        SimTime::from_secs_f64(conditions.warm_up_s),
        SimTime::from_secs_f64(conditions.warm_up_s + conditions.measure_s),
    );
    let uppers = published::classes(Curve::Homa, conditions.workload, 0.8)
        .iter()
        .map(|class| class.up_to_bytes)
        .collect();
    let collector = Collector::new(topology.clone(), Ideal::Sigcomm18, window, uppers);
    let traffic = Traffic {
        workload: workload.clone(),
        payload_bps: topology.host_rate_bps as f64 * conditions.load * payload,
        pattern: Pattern::OneWay,
    };
    let host_rate_bps = topology.host_rate_bps as f64;
    let mut world = World::new(topology, transports, traffic, conditions.seed, collector)?;
    world.run(window.0);
    let (before, waited_before) = (world.counters(), world.fabric().waited(window.0));
    world.run(window.1);
    let (after, waited_after) = (world.counters(), world.fabric().waited(window.1));
    let measured_ps = window.1.since(window.0) as f64;
    let mean_waiting_bytes = std::array::from_fn(|stage| {
        let waited = waited_after[stage].byte_ps - waited_before[stage].byte_ps;
        waited as f64 / (measured_ps * f64::from(waited_after[stage].ports.max(1)))
    });
    let sent_bits = 8.0 * (after.sent_wire_bytes - before.sent_wire_bytes) as f64;
    let used = sent_bits / (conditions.measure_s * host_rate_bps * f64::from(hosts));
    // Load goes on until the messages that count are done.
    let wanted = after.started - before.started;
    for step in 1..=DRAIN_STEPS {
        if world.observer().counted() >= wanted {
            break;
        }
        let more_s = conditions.drain_s * f64::from(step) / f64::from(DRAIN_STEPS);
        world.run(window.1 + SimTime::from_secs_f64(more_s).as_ps());
    }
    let mut slowdowns = world.observer().slowdowns().clone();
    for message in world.unfinished(window) {
        slowdowns.record_unfinished(message);
    }
    Ok(Outcome {
        slowdowns,
        counters: world.counters(),
        trace_hash: world.trace_hash(),
        virtual_s: world.now().as_secs_f64(),
        used,
        sent_by_priority: std::array::from_fn(|priority| {
            after.sent_by_priority[priority] - before.sent_by_priority[priority]
        }),
        mean_waiting_bytes,
        most_waiting_by_stage: world
            .fabric()
            .waited(world.now())
            .map(|stage| stage.most_bytes),
        most_waiting_bytes: world.fabric().counters().most_waiting_bytes,
    })
}
