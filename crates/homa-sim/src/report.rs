//! What a run found, for people (a table) and for programs (JSON), beside the
//! published numbers where there are some.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::published::{self, Curve, PublishedClass};
use crate::sigcomm18::{Conditions, Outcome};
use crate::slowdown::{ClassSlowdown, Slowdowns, Summary};

/// Version of the JSON form; it changes when a field changes its meaning.
pub const SCHEMA: u32 = 1;

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
    /// The three numbers.
    pub slowdown: SlowdownNumbers,
    /// The same three as published.
    pub published: Option<SlowdownNumbers>,
    /// By size.
    pub classes: Vec<Row>,
    /// One entry a seed.
    pub runs: Vec<RunNumbers>,
    /// Packets sent over a link, a second of CPU, all runs together.
    #[serde(serialize_with = "number")]
    pub packet_hops_per_s: f64,
}

/// The three numbers that summarise slowdowns.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SlowdownNumbers {
    /// Mean over all messages.
    #[serde(serialize_with = "number")]
    pub mean: f64,
    /// Largest 99th percentile of a class of the shorter half.
    #[serde(serialize_with = "number")]
    pub p99_short_half: f64,
    /// Largest 99th percentile of any class.
    #[serde(serialize_with = "number")]
    pub p99_any: f64,
    /// Messages; 0 where it was not published.
    pub messages: u64,
    /// Messages that did not finish; percentiles count them as infinite.
    pub unfinished: u64,
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
    /// Median.
    #[serde(serialize_with = "number")]
    pub p50: f64,
    /// 99th percentile.
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
}

/// A number, or the text `inf` or `none`.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn number<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.is_finite() {
        serializer.serialize_f64((value * 1e4).round() / 1e4)
    } else if value.is_nan() {
        serializer.serialize_str("none")
    } else {
        serializer.serialize_str("inf")
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn hexadecimal<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{value:016x}"))
}

impl SlowdownNumbers {
    fn of(summary: &Summary) -> Self {
        Self {
            mean: summary.mean,
            p99_short_half: summary.p99_short_half,
            p99_any: summary.p99_any,
            messages: summary.messages,
            unfinished: summary.unfinished,
        }
    }
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

impl Report {
    /// The report of a SIGCOMM 2018 scenario, from the outcomes of its seeds
    /// with the seconds of CPU each took; at least one.
    pub fn sigcomm18(conditions: &Conditions, outcomes: Vec<(u64, Outcome, f64)>) -> Self {
        let reference = published::classes(Curve::Homa, conditions.workload, conditions.load);
        let mut all = Slowdowns::new(Vec::new());
        let mut runs = Vec::new();
        for (index, (seed, outcome, cpu_s)) in outcomes.into_iter().enumerate() {
            runs.push(RunNumbers {
                seed,
                trace_hash: outcome.trace_hash,
                packet_hops: outcome.counters.packet_hops,
                cpu_s,
                virtual_s: outcome.virtual_s,
                link_use: outcome.used,
                most_waiting_bytes: outcome.most_waiting_bytes,
            });
            if index == 0 {
                all = outcome.slowdowns;
            } else {
                all.absorb(outcome.slowdowns);
            }
        }
        let classes = all.classes();
        let published = published::summary(&reference);
        let hops: u64 = runs.iter().map(|run| run.packet_hops).sum();
        let cpu_s: f64 = runs.iter().map(|run| run.cpu_s).sum();
        Self {
            schema: SCHEMA,
            scenario: format!("sigcomm18-w{}", conditions.workload),
            load: conditions.load,
            measure_s: conditions.measure_s,
            warm_up_s: conditions.warm_up_s,
            slowdown: SlowdownNumbers::of(&Slowdowns::summary(&classes)),
            published: (!reference.is_empty()).then_some(SlowdownNumbers {
                mean: published.mean,
                p99_short_half: published.p99_short_half,
                p99_any: published.p99_any,
                messages: 0,
                unfinished: 0,
            }),
            classes: classes
                .iter()
                .map(|class| Row::of(class, &reference))
                .collect(),
            runs,
            packet_hops_per_s: hops as f64 / cpu_s,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}, load {}, {} s measured after {} s, {} seed(s)",
            self.scenario,
            self.load,
            self.measure_s,
            self.warm_up_s,
            self.runs.len()
        )?;
        writeln!(
            f,
            "Slowdown by message size; what was published is in brackets.\n"
        )?;
        writeln!(
            f,
            "{:>10} {:>10} {:>7} {:>16} {:>16} {:>17}",
            "up to (B)", "messages", "cum. %", "mean", "p50", "p99"
        )?;
        for row in &self.classes {
            let found = &row.found;
            write!(
                f,
                "{:>10} {:>10} {:>7.2}",
                found.up_to_bytes,
                found.messages,
                100.0 * found.cumulative
            )?;
            let published = row.published;
            pair(f, 7, found.mean, published.map(|row| row.mean))?;
            pair(f, 7, found.p50, published.map(|row| row.p50))?;
            pair(f, 8, found.p99, published.map(|row| row.p99))?;
            writeln!(f)?;
        }
        writeln!(f)?;
        for (name, value, published) in [
            (
                "mean",
                self.slowdown.mean,
                self.published.map(|published| published.mean),
            ),
            (
                "p99, shorter half",
                self.slowdown.p99_short_half,
                self.published.map(|published| published.p99_short_half),
            ),
            (
                "p99, any size",
                self.slowdown.p99_any,
                self.published.map(|published| published.p99_any),
            ),
        ] {
            write!(f, "{name:<18}")?;
            pair(f, 8, value, published)?;
            writeln!(f)?;
        }
        writeln!(
            f,
            "messages {}, unfinished {}",
            self.slowdown.messages, self.slowdown.unfinished
        )?;
        for run in &self.runs {
            writeln!(
                f,
                "seed {}: trace {:016x}, links used {:.3}, most waiting {} B, virtual {:.4} s, CPU {:.2} s",
                run.seed,
                run.trace_hash,
                run.link_use,
                run.most_waiting_bytes,
                run.virtual_s,
                run.cpu_s
            )?;
        }
        write!(
            f,
            "{:.2} million packet hops per second of CPU",
            self.packet_hops_per_s / 1e6
        )
    }
}

fn pair(
    f: &mut fmt::Formatter<'_>,
    width: usize,
    found: f64,
    published: Option<f64>,
) -> fmt::Result {
    write!(f, " {found:>width$.2}")?;
    match published {
        Some(value) => write!(f, " {:>8}", format!("({value:.2})")),
        None => write!(f, " {:>8}", ""),
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;
    use crate::world::WorldCounters;

    fn outcome(slowdown: f64, hops: u64) -> Outcome {
        let mut slowdowns = Slowdowns::new(vec![130, 10_000_000]);
        for _ in 0..300 {
            slowdowns.record(100, slowdown);
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
        let json: serde_json::Value = serde_json::to_value(&report).unwrap();
        assert_eq!(json["scenario"], "sigcomm18-w4");
        assert_eq!(json["slowdown"]["mean"], 3.0);
        assert_eq!(json["slowdown"]["unfinished"], 2);
        assert_eq!(json["classes"][0]["p99"], 4.0);
        assert_eq!(json["classes"][1]["p99"], "inf");
        assert_eq!(json["runs"][1]["trace_hash"], "0000000000000abc");
        assert_eq!(json["packet_hops_per_s"], 4e6);
        let published = json["published"]["p99_short_half"].as_f64().unwrap();
        assert!((published - 2.287).abs() < 1e-3);
        let text = report.to_string();
        assert!(text.contains("(1.53)") && text.contains("inf"), "{text}");
        assert!(text.contains("4.00 million packet hops"), "{text}");
    }
}
