//! One turn: one row in one round, from the start of its hosts to their end.

use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

use homa_bench::baseline::UnloadedPoint;
use homa_bench::host;
use homa_bench::node::talk::{Measured, Order, Said};
use homa_bench::stop::Stop;
use homa_testbed::{PortStatistics, Testbed};

use super::CompareError;
use super::cpu::{Shares, ticks};
use super::hosts::Node;
use super::rows::Row;
use super::setup::Setup;

/// How often a wait looks whether to stop.
const STOP_INTERVAL: Duration = Duration::from_millis(50);

/// What a turn found.
pub(super) struct Turn {
    /// Of each host.
    pub(super) measured: Vec<Measured>,
    /// Of each port, in the window.
    pub(super) ports: Vec<PortStatistics>,
    /// In the window.
    pub(super) cpu: Shares,
    /// Segments that TCP sent again in the window.
    pub(super) tcp_segments_again: u64,
}

impl Turn {
    /// A line of progress.
    pub(super) fn line(&self, setup: &Setup) -> String {
        let goodput: f64 = self.measured.iter().map(|host| host.goodput_bps).sum();
        format!(
            "{:.0} Mbit/s of payload, fullest port {} KB, {} drops, idle {:.0} %",
            goodput / 1e6 / setup.hosts as f64,
            self.backlog_peak() / 1000,
            self.drops(),
            100.0 * self.cpu.idle
        )
    }

    /// Frames that the switch dropped.
    pub(super) fn drops(&self) -> u64 {
        self.ports.iter().map(PortStatistics::drops).sum()
    }

    /// Bytes in the queues of a port when they were fullest.
    pub(super) fn backlog_peak(&self) -> u64 {
        let peaks = self.ports.iter().map(|port| port.backlog_peak_bytes);
        peaks.max().unwrap_or(0)
    }

    /// A counter of the transport, of all hosts together.
    pub(super) fn counter(&self, wanted: &str) -> u64 {
        let counters = self.measured.iter().flat_map(|host| &host.counters);
        counters
            .filter(|(name, _)| name == wanted)
            .map(|(_, value)| value)
            .sum()
    }
}

/// A turn, and what else its hosts said.
pub(super) struct Taken {
    pub(super) turn: Turn,
    /// Round trips without load; empty but in the first round.
    pub(super) unloaded: Vec<UnloadedPoint>,
    /// How the transport describes itself.
    pub(super) details: Vec<(String, String)>,
}

/// Takes a turn. The first round measures round trips without load too.
pub(super) fn take(
    setup: &Setup,
    row: &Row,
    round: u32,
    stop: &Stop,
) -> Result<Taken, CompareError> {
    let testbed = Testbed::new(&setup.network())?;
    without_slow_start_after_idle(&testbed)?;
    let addresses: Vec<IpAddr> = testbed.hosts().iter().map(homa_testbed::Host::v4).collect();
    let mut nodes = Vec::new();
    for (index, host) in testbed.hosts().iter().enumerate() {
        let plan = setup.plan(row, round, index, &addresses);
        nodes.push(Node::start(host, setup.scheduling, &plan)?);
        check(stop)?;
    }
    for node in &mut nodes {
        node.order(Order::Connect)?;
    }
    let mut details = Vec::new();
    for node in &mut nodes {
        match node.read()? {
            Said::Ready { details: of_node } => details = of_node,
            other => return Err(node.unexpected(&other)),
        }
    }
    let unloaded = match nodes.first_mut() {
        Some(first) if round == 0 => {
            first.order(Order::Unloaded)?;
            match first.read()? {
                Said::Unloaded(points) => points,
                other => return Err(first.unexpected(&other)),
            }
        }
        _ => Vec::new(),
    };
    check(stop)?;

    for node in &mut nodes {
        node.order(Order::Load)?;
    }
    wait(setup.warmup, stop)?;
    let segments = |nodes: &[Node]| -> u64 {
        let of = |node: &Node| host::tcp_retransmitted_segments_of(node.process());
        nodes.iter().filter_map(of).sum()
    };
    let (ticks_before, segments_before) = (ticks()?, segments(&nodes));
    testbed.reset_statistics()?;
    wait(setup.duration, stop)?;
    let ports = testbed.statistics()?;
    let cpu = Shares::between(ticks_before, ticks()?);
    let tcp_segments_again = segments(&nodes).saturating_sub(segments_before);

    let mut measured = Vec::new();
    for node in &mut nodes {
        match node.read()? {
            Said::Loaded(of_node) => measured.push(*of_node),
            other => return Err(node.unexpected(&other)),
        }
    }
    check(stop)?;
    testbed.verify()?;
    Ok(Taken {
        turn: Turn {
            measured,
            ports,
            cpu,
            tcp_segments_again,
        },
        unloaded,
        details,
    })
}

/// A connection that was idle may send as before: what an operator of such a
/// network sets, in favour of TCP.
fn without_slow_start_after_idle(testbed: &Testbed) -> Result<(), CompareError> {
    for host in testbed.hosts() {
        let path = "/proc/sys/net/ipv4/tcp_slow_start_after_idle";
        host.run(move || std::fs::write(path, "0"))?
            .map_err(|error| CompareError::Failed(format!("cannot write {path}: {error}")))?;
    }
    Ok(())
}

fn wait(time: Duration, stop: &Stop) -> Result<(), CompareError> {
    let until = Instant::now() + time;
    loop {
        check(stop)?;
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        thread::sleep(left.min(STOP_INTERVAL));
    }
}

fn check(stop: &Stop) -> Result<(), CompareError> {
    if stop.requested() {
        return Err(CompareError::Interrupted);
    }
    Ok(())
}
