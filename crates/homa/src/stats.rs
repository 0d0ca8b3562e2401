//! What an endpoint has done and holds, for metrics: one snapshot, whole or
//! number by number.

use std::vec;

/// A snapshot of every counter and gauge of an endpoint.
///
/// ```
/// # fn show(stats: homa::Stats) {
/// for sample in stats.iter() {
///     let label = sample.label.unwrap_or_default();
///     println!("homa_{}_{}{{{label}}} {}", sample.group, sample.name, sample.value);
/// }
/// # }
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// What the protocol has done.
    pub core: homa_core::Counters,
    /// What the protocol holds.
    pub core_gauges: homa_core::Gauges,
    /// What the engine has done: calls, deadlines, wake-ups.
    pub engine: homa_engine::Counters,
    /// What the engine holds.
    pub engine_gauges: homa_engine::Gauges,
    /// What the sockets have done.
    pub datapath: homa_datapath::Counters,
}

/// Whether a number only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SampleKind {
    /// Grows, from 0 at the start of the endpoint.
    Counter,
    /// Goes up and down.
    Gauge,
}

/// One number of [`Stats`]; group, name and label together are unique.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sample {
    /// `core`, `engine` or `datapath`.
    pub group: &'static str,
    /// What is counted, in `snake_case`, with the unit last.
    pub name: String,
    /// Of which type, priority or reason, where there are several.
    pub label: Option<String>,
    /// How much.
    pub value: u64,
    /// Whether it only grows.
    pub kind: SampleKind,
}

impl Stats {
    pub(crate) fn new(stats: homa_engine::Stats) -> Self {
        Self {
            core: stats.core,
            core_gauges: stats.core_gauges,
            engine: stats.engine,
            engine_gauges: stats.engine_gauges,
            datapath: stats.datapath,
        }
    }

    /// Every number, in a fixed order.
    pub fn iter(&self) -> vec::IntoIter<Sample> {
        let mut samples = Vec::new();
        let mut add = |group, name: &str, label: Option<&str>, value, kind| {
            samples.push(Sample {
                group,
                name: name.to_owned(),
                label: label.map(str::to_owned),
                value,
                kind,
            });
        };
        self.core.each(|name, label, value| {
            add("core", name, label, value, SampleKind::Counter);
        });
        let core = &self.core_gauges;
        for (name, value) in [
            ("client_outgoing", u64::from(core.client_outgoing)),
            ("client_incoming", u64::from(core.client_incoming)),
            ("server_incoming", u64::from(core.server_incoming)),
            ("server_in_service", u64::from(core.server_in_service)),
            ("server_outgoing", u64::from(core.server_outgoing)),
            ("ended", u64::from(core.ended)),
            ("peers", u64::from(core.peers)),
            ("tombstones", u64::from(core.tombstones)),
            ("buffer_bytes", core.buffer_bytes),
            ("buffer_waiting", u64::from(core.buffer_waiting)),
            ("incoming_bytes", core.incoming_bytes),
            ("managed_messages", u64::from(core.managed_messages)),
            ("active_messages", u64::from(core.active_messages)),
            ("sendable_messages", u64::from(core.sendable_messages)),
            ("ranges", u64::from(core.ranges)),
        ] {
            add("core", name, None, value, SampleKind::Gauge);
        }
        for (name, value) in self.engine.iter() {
            add("engine", name, None, value, SampleKind::Counter);
        }
        let engine = &self.engine_gauges;
        for (name, value) in [
            ("calls", u64::from(engine.calls)),
            ("outgoing_bytes", engine.outgoing_bytes),
            ("response_bytes", engine.response_bytes),
            ("page_bytes", engine.page_bytes),
            ("waiting_requests", u64::from(engine.waiting_requests)),
            ("timer_lateness_ns", engine.timer_lateness_ns),
        ] {
            add("engine", name, None, value, SampleKind::Gauge);
        }
        for (name, _, value) in self.datapath.iter() {
            add("datapath", name, None, value, SampleKind::Counter);
        }
        samples.into_iter()
    }
}

impl IntoIterator for &Stats {
    type Item = Sample;
    type IntoIter = vec::IntoIter<Sample>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
