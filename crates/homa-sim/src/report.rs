//! What a run found, for people (a table) and for programs (JSON), beside the
//! published numbers where there are some.

mod json;
mod text;

use serde::Serialize;

use crate::fabric::Stage;
use crate::published::{self, Curve, PublishedClass};
use crate::sigcomm18::{Conditions, Outcome};
use crate::slowdown::{ClassSlowdown, Slowdowns, Summary};
use json::{hexadecimal, number};

/// Version of the JSON form; it changes when a field changes its meaning.
pub const SCHEMA: u32 = 2;

/// The runs of one scenario under different seeds, taken together.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Name of the scenario.
    pub scenario: String,
    /// Nominal load.
    pub load: f64,
    /// Virtual seconds during which messages counted, in each run.
    pub measure_s: f64,
    /// Virtual seconds before that.
    pub warm_up_s: f64,
    /// What was found.
    pub protocols: Protocols,
    /// What was published, if it was for this load.
    pub published: Option<PublishedSlowdown>,
    /// One entry a seed.
    pub runs: Vec<RunNumbers>,
    /// Packets sent over a link, a second of CPU, all runs together.
    #[serde(serialize_with = "number")]
    pub packet_hops_per_s: f64,
    /// That of the run; of several, one that depends on all.
    #[serde(serialize_with = "hexadecimal")]
    pub trace_hash: u64,
}

/// By protocol.
#[derive(Clone, Debug, Serialize)]
pub struct Protocols {
    /// The protocol core as it is.
    pub homa: Numbers,
}

/// What was found for a protocol.
#[derive(Clone, Debug, Serialize)]
pub struct Numbers {
    /// Slowdowns.
    pub slowdown: SlowdownNumbers,
    /// 99th percentile of the time of the shorter half of the messages, the
    /// one with the median excluded, in microseconds.
    #[serde(serialize_with = "number")]
    pub short_p99_us: f64,
    /// The same of the classes beyond 99 % of the messages.
    #[serde(serialize_with = "number")]
    pub large_p99_us: f64,
    /// Share by priority, 0 first, of the bytes that hosts sent.
    pub share_by_priority: [f64; 8],
    /// What waited at the ports of each stage of the network.
    pub waiting: Vec<WaitingNumbers>,
}

/// What waited at the ports of a stage of the network.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct WaitingNumbers {
    /// Which stage.
    pub stage: &'static str,
    /// Bytes at a port, mean over the ports and the measured time.
    #[serde(serialize_with = "number")]
    pub mean_bytes: f64,
    /// Most bytes at a port, at any time.
    pub most_bytes: u64,
}

/// Slowdowns that were found.
#[derive(Clone, Debug, Serialize)]
pub struct SlowdownNumbers {
    /// Mean over all messages that finished.
    #[serde(serialize_with = "number")]
    pub mean: f64,
    /// Largest 99th percentile of a class of the shorter half.
    #[serde(serialize_with = "number")]
    pub p99_short_half: f64,
    /// Largest 99th percentile of any class.
    #[serde(serialize_with = "number")]
    pub p99_any: f64,
    /// Messages that finished.
    pub messages: u64,
    /// Messages that did not; percentiles count them as infinite.
    pub unfinished: u64,
    /// Least and largest of the seeds, if there were several.
    pub spread: Option<Spread>,
    /// By class of size, shortest first.
    pub by_size: Vec<Row>,
}

/// Least and largest of the seeds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Spread {
    /// Of the mean.
    pub mean: [f64; 2],
    /// Of `p99_short_half`; absent if a single seed has too few messages.
    pub p99_short_half: Option<[f64; 2]>,
}

/// Slowdowns that were published.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PublishedSlowdown {
    /// Mean over all messages.
    pub mean: f64,
    /// Largest 99th percentile of a class of the shorter half.
    pub p99_short_half: f64,
    /// Largest 99th percentile of any class.
    pub p99_any: f64,
}

/// A class of size.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Row {
    /// What was found.
    #[serde(flatten)]
    pub found: RowNumbers,
    /// What was published.
    pub published: Option<PublishedNumbers>,
}

/// What was found for a class of size.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RowNumbers {
    /// Longest message of the class, in bytes.
    pub up_to_bytes: u32,
    /// Messages, those that did not finish included.
    pub messages: u64,
    /// Share of messages up to this class.
    pub cumulative: f64,
    /// Mean of those that finished.
    #[serde(serialize_with = "number")]
    pub mean: f64,
    /// Median; not a number where there are too few.
    #[serde(serialize_with = "number")]
    pub p50: f64,
    /// 99th percentile; not a number where there are too few.
    #[serde(serialize_with = "number")]
    pub p99: f64,
}

/// What was published for a class of size.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PublishedNumbers {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
}

/// One run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RunNumbers {
    /// Its seed.
    pub seed: u64,
    /// Hash over every message that was done; the same seed gives the same.
    #[serde(serialize_with = "hexadecimal")]
    pub trace_hash: u64,
    /// Mean slowdown.
    #[serde(serialize_with = "number")]
    pub mean: f64,
    /// Largest 99th percentile of a class of the shorter half.
    #[serde(serialize_with = "number")]
    pub p99_short_half: f64,
    /// Packets sent over a link.
    pub packet_hops: u64,
    /// Seconds of CPU.
    #[serde(serialize_with = "number")]
    pub cpu_s: f64,
    /// Virtual seconds.
    pub virtual_s: f64,
    /// Share of the hosts' links that was used while messages counted.
    pub link_use: f64,
    /// Most bytes that waited at a port.
    pub most_waiting_bytes: u64,
    /// Messages that the core did not take, for want of room; they count
    /// nowhere else, so a run in which there are any is of no use.
    pub refused: u64,
}

impl Row {
    fn of(class: &ClassSlowdown, reference: &[PublishedClass]) -> Self {
        let published = reference
            .iter()
            .find(|row| row.up_to_bytes == class.up_to_bytes);
        Self {
            found: RowNumbers {
                up_to_bytes: class.up_to_bytes,
                messages: class.messages + class.unfinished,
                cumulative: class.cumulative,
                mean: class.mean,
                p50: class.p50,
                p99: class.p99,
            },
            published: published.map(|row| PublishedNumbers {
                mean: row.mean,
                p50: row.p50,
                p99: row.p99,
            }),
        }
    }
}

impl Spread {
    fn of(runs: &[RunNumbers]) -> Option<Self> {
        let ends = |of: fn(&RunNumbers) -> f64| -> Option<[f64; 2]> {
            let mut values = runs.iter().map(of);
            let first = values.next()?;
            let ends = values.try_fold([first; 2], |[least, most], value| {
                (!value.is_nan()).then(|| [value.min(least), value.max(most)])
            })?;
            first.is_finite().then_some(ends)
        };
        (runs.len() > 1).then_some(())?;
        Some(Self {
            mean: ends(|run| run.mean)?,
            p99_short_half: ends(|run| run.p99_short_half),
        })
    }
}

/// Sums over the runs while they are taken together.
#[derive(Default)]
struct Sums {
    sent_by_priority: [u64; 8],
    mean_waiting_bytes: [f64; 3],
    most_waiting: [u64; 3],
}

impl Sums {
    fn add(&mut self, outcome: &Outcome) {
        for (sum, bytes) in self
            .sent_by_priority
            .iter_mut()
            .zip(outcome.sent_by_priority)
        {
            *sum += bytes;
        }
        for stage in 0..3 {
            self.mean_waiting_bytes[stage] += outcome.mean_waiting_bytes[stage];
            self.most_waiting[stage] =
                self.most_waiting[stage].max(outcome.most_waiting_by_stage[stage]);
        }
    }
}

impl Report {
    /// The report of a SIGCOMM 2018 scenario, from the outcomes of its seeds
    /// with the seconds of CPU each took; at least one.
    pub fn sigcomm18(conditions: &Conditions, outcomes: Vec<(u64, Outcome, f64)>) -> Self {
        let reference = published::classes(Curve::Homa, conditions.workload, conditions.load);
        let mut all = Slowdowns::new(Vec::new());
        let mut runs: Vec<RunNumbers> = Vec::new();
        let mut sums = Sums::default();
        for (seed, mut outcome, cpu_s) in outcomes {
            let own = Slowdowns::summary(&outcome.slowdowns.classes());
            sums.add(&outcome);
            runs.push(RunNumbers {
                seed,
                trace_hash: outcome.trace_hash,
                mean: own.mean,
                p99_short_half: own.p99_short_half,
                packet_hops: outcome.counters.packet_hops,
                cpu_s,
                virtual_s: outcome.virtual_s,
                link_use: outcome.used,
                most_waiting_bytes: outcome.most_waiting_bytes,
                refused: outcome.counters.refused,
            });
            if runs.len() == 1 {
                all = outcome.slowdowns;
            } else {
                all.absorb(outcome.slowdowns);
            }
        }
        let hops: u64 = runs.iter().map(|run| run.packet_hops).sum();
        let cpu_s: f64 = runs.iter().map(|run| run.cpu_s).sum();
        let published = published::summary(&reference);
        Self {
            schema: SCHEMA,
            scenario: format!("sigcomm18-w{}", conditions.workload),
            load: conditions.load,
            measure_s: conditions.measure_s,
            warm_up_s: conditions.warm_up_s,
            protocols: Protocols {
                homa: Numbers::of(&mut all, &sums, &runs, &reference),
            },
            published: (!reference.is_empty()).then_some(PublishedSlowdown {
                mean: published.mean,
                p99_short_half: published.p99_short_half,
                p99_any: published.p99_any,
            }),
            packet_hops_per_s: hops as f64 / cpu_s,
            trace_hash: runs
                .iter()
                .fold(0, |hash: u64, run| hash.rotate_left(1) ^ run.trace_hash),
            runs,
        }
    }
}

impl Numbers {
    fn of(
        all: &mut Slowdowns,
        sums: &Sums,
        runs: &[RunNumbers],
        reference: &[PublishedClass],
    ) -> Self {
        let classes = all.classes();
        let Summary {
            messages,
            unfinished,
            mean,
            p99_short_half,
            p99_any,
        } = Slowdowns::summary(&classes);
        let sent: u64 = sums.sent_by_priority.iter().sum();
        Self {
            slowdown: SlowdownNumbers {
                mean,
                p99_short_half,
                p99_any,
                messages,
                unfinished,
                spread: Spread::of(runs),
                by_size: classes
                    .iter()
                    .map(|class| Row::of(class, reference))
                    .collect(),
            },
            short_p99_us: all.p99_us(|share| share <= 0.5),
            large_p99_us: all.p99_us(|share| share > 0.99),
            share_by_priority: sums
                .sent_by_priority
                .map(|bytes| bytes as f64 / sent.max(1) as f64),
            waiting: Stage::ALL
                .iter()
                .zip(sums.mean_waiting_bytes)
                .zip(sums.most_waiting)
                .map(|((stage, mean_bytes), most_bytes)| WaitingNumbers {
                    stage: stage.name(),
                    mean_bytes: mean_bytes / runs.len().max(1) as f64,
                    most_bytes,
                })
                .collect(),
        }
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;
    use crate::world::WorldCounters;
    use serde_json::Value;

    fn outcome(slowdown: f64, hops: u64) -> Outcome {
        let mut slowdowns = Slowdowns::new(vec![130, 10_000_000]);
        for _ in 0..1200 {
            slowdowns.record(100, slowdown, 10.0 * slowdown);
        }
        slowdowns.record_unfinished(5_000_000);
        Outcome {
            slowdowns,
            counters: WorldCounters {
                packet_hops: hops,
                ..WorldCounters::default()
            },
            trace_hash: 0xabc,
            virtual_s: 1.0,
            used: 0.5,
            sent_by_priority: [1, 0, 0, 0, 0, 0, 0, 3],
            mean_waiting_bytes: [1.0, 2.0, slowdown],
            most_waiting_by_stage: [5, 6, 7],
            most_waiting_bytes: 7,
        }
    }

    #[test]
    fn sigcomm18__json_and_table() {
        let conditions = Conditions {
            workload: 4,
            load: 0.8,
            seed: 1,
            warm_up_s: 0.1,
            measure_s: 0.2,
            drain_s: 0.1,
        };
        let runs = vec![
            (1, outcome(2.0, 3_000_000), 0.5),
            (2, outcome(4.0, 1_000_000), 0.5),
        ];
        let report = Report::sigcomm18(&conditions, runs);
        let json: Value = serde_json::to_value(&report).unwrap();
        assert_eq!(json["scenario"], "sigcomm18-w4");
        assert_eq!(json["protocols"]["homa"]["slowdown"]["mean"], 3.0);
        let homa = &json["protocols"]["homa"];
        assert_eq!(homa["slowdown"]["unfinished"], 2);
        assert_eq!(homa["slowdown"]["by_size"][0]["p99"], 4.0);
        assert!(
            homa["slowdown"]["by_size"][1]["p99"].is_null(),
            "two are too few"
        );
        assert_eq!(homa["slowdown"]["spread"]["mean"][1], 4.0);
        assert_eq!(homa["short_p99_us"], Value::Null, "no class is that short");
        assert_eq!(homa["share_by_priority"][7], 0.75);
        assert_eq!(homa["waiting"][2]["mean_bytes"], 3.0);
        assert_eq!(homa["waiting"][2]["stage"], "leaf to host");
        assert_eq!(json["runs"][1]["trace_hash"], "0000000000000abc");
        assert_eq!(json["trace_hash"], "0000000000001fc4");
        assert_eq!(json["packet_hops_per_s"], 4e6);
        let published = json["published"]["p99_short_half"].as_f64().unwrap();
        assert!((published - 2.287).abs() < 1e-3);
        let text = report.to_string();
        assert!(text.contains("(1.53)") && text.contains(" - "), "{text}");
        assert!(text.contains("4.00 million packet hops"), "{text}");
    }
}
