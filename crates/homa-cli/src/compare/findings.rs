//! What was found: all rounds of a row put together, rows held against each
//! other, and whether the numbers mean anything.

use std::collections::BTreeMap;

use homa_bench::baseline::{Ideal, Unloaded, UnloadedPoint};
use homa_bench::classes::SizeClasses;
use homa_bench::quantile::{P99_SAMPLES, Quantile, quantile};
use homa_bench::recorder::{Digest, Recorder, Row as DigestRow, Sample};

use super::Turns;
use super::rows::{HOMA, HOMA_ONE, Row, TCP, TCP_PRIORITY};
use super::setup::Setup;
use super::turn::Turn;

/// Less idle time than this in the middle round: the processors are the limit.
const LEAST_IDLE: f64 = 0.15;
/// Later than this in one arrival of a hundred: likewise.
const MOST_LATENESS_US: f64 = 1_000.0;
/// Less of the offered load carried than this: likewise, or it did not fit.
const LEAST_CARRIED: f64 = 0.97;
/// More bytes sent again than this without any drop: a fault of ours.
const MOST_SENT_AGAIN: f64 = 0.001;
/// Percentiles of the longest messages should rest on this many.
pub(super) const ENOUGH_LARGE: u64 = 1_000;

/// One row, all rounds together.
pub(super) struct RowFindings {
    pub(super) row: Row,
    pub(super) digest: Digest,
    /// Measured without load.
    pub(super) unloaded: Vec<UnloadedPoint>,
    pub(super) details: Vec<(String, String)>,
    /// Payload of a host, both ways, mean over hosts and rounds, bit/s.
    pub(super) goodput_bps: f64,
    /// Of the payload that became due.
    pub(super) carried: f64,
    /// Of all ports and rounds.
    pub(super) drops: u64,
    /// Of the fullest port of all rounds.
    pub(super) backlog_peak: u64,
    /// Of all ports and rounds.
    pub(super) backlog_mean: f64,
    pub(super) sent_again_bytes: u64,
    /// Of the bytes that went through the switch.
    pub(super) sent_again: f64,
    /// Bytes through the switch by priority.
    pub(super) by_priority: [u64; 8],
    /// Of the middle round.
    pub(super) idle: f64,
    /// Of the worst round.
    pub(super) stolen: f64,
    /// Of arrivals, from due to sent.
    pub(super) lateness_p99_us: Quantile,
    /// Latencies of the smallest tenth, µs; infinite where there was no end.
    pub(super) short_us: Vec<f64>,
    pub(super) failed: u64,
    pub(super) first_failure: Option<String>,
}

/// Ratios that people quote. Above 1 is in Homa's favour.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub(super) struct Headline {
    /// TCP ÷ Homa, 99th percentile of the smallest tenth.
    pub(super) short_p99_ratio: Option<f64>,
    /// TCP with priority by size ÷ Homa, the same.
    pub(super) short_p99_ratio_vs_tcp_prio: Option<f64>,
    /// TCP ÷ Homa with one priority, the same.
    pub(super) short_p99_ratio_one_priority: Option<f64>,
    /// TCP ÷ Homa, 99th percentile of the longest messages.
    pub(super) large_p99_ratio: Option<f64>,
    /// Homa ÷ TCP.
    pub(super) goodput_ratio: Option<f64>,
}

/// See the module.
pub(super) struct Findings {
    pub(super) rows: Vec<RowFindings>,
    pub(super) headline: Headline,
    /// TCP filled the buffers, at least half.
    pub(super) loaded: bool,
    /// Why the processors may have decided, row by row.
    pub(super) cpu_limits: Vec<String>,
    /// What else a reader must know.
    pub(super) remarks: Vec<String>,
    /// The ideal of slowdown A.
    pub(super) ideal: Ideal,
    /// Denominators of slowdown B: of each size the fastest row.
    pub(super) unloaded: Option<Unloaded>,
    pub(super) repeated: u32,
}

impl Findings {
    /// Puts everything together.
    pub(super) fn new(setup: &Setup, turns: Turns) -> Self {
        let unloaded = fastest(&turns.unloaded);
        let ideal = Ideal {
            base_us: unloaded
                .as_ref()
                .and_then(|unloaded| unloaded.points().first())
                .map_or(15.0, |shortest| shortest.p50_us.round()),
            link_gbps: setup.rate_bps as f64 / 1e9,
        };
        let classes = SizeClasses::deciles(&setup.workload);
        let rows: Vec<RowFindings> = setup
            .rows
            .iter()
            .zip(turns.by_row)
            .zip(turns.unloaded)
            .zip(turns.details)
            .map(|(((row, turns), points), details)| {
                row_findings(
                    row,
                    &turns,
                    &classes,
                    &ideal,
                    unloaded.as_ref(),
                    points,
                    details,
                )
            })
            .collect();
        let loaded = find(&rows, TCP).is_some_and(|tcp| {
            tcp.drops > 0 || tcp.backlog_peak > u64::from(setup.buffer_bytes) / 2
        });
        Self {
            headline: headline(&rows),
            cpu_limits: rows.iter().flat_map(cpu_limits).collect(),
            remarks: remarks(setup, &rows),
            rows,
            loaded,
            ideal,
            unloaded,
            repeated: turns.repeated,
        }
    }

    /// Why this is no result, if it is none.
    pub(super) fn refusal(&self) -> Option<&'static str> {
        (!self.loaded).then_some(
            "not loaded: TCP caused no drops and filled no port to half of its buffer, so the comparison says nothing; give more --load, or less --buffer",
        )
    }
}

impl RowFindings {
    /// The smallest tenth of the messages.
    pub(super) fn short(&self) -> &DigestRow {
        self.digest.classes.first().unwrap_or(&self.digest.all)
    }

    /// The longest messages.
    pub(super) fn large(&self) -> &DigestRow {
        self.digest.lengths.last().unwrap_or(&self.digest.all)
    }
}

fn row_findings(
    row: &Row,
    turns: &[Turn],
    classes: &SizeClasses,
    ideal: &Ideal,
    unloaded: Option<&Unloaded>,
    points: Vec<UnloadedPoint>,
    details: Vec<(String, String)>,
) -> RowFindings {
    let mut recorder = Recorder::new();
    let short_bytes = classes
        .as_slice()
        .first()
        .map_or(0, |class| class.up_to_bytes);
    let mut short_us = Vec::new();
    let mut waited_us = Vec::new();
    let hosts = || turns.iter().flat_map(|turn| &turn.measured);
    for host in hosts() {
        for &(size_bytes, waited_ns, rtt_ns) in &host.samples {
            recorder.finish(Sample {
                size_bytes,
                waited_ns,
                rtt_ns,
            });
            waited_us.push(waited_ns as f64 / 1e3);
            if size_bytes <= short_bytes {
                short_us.push((waited_ns + rtt_ns) as f64 / 1e3);
            }
        }
        for (size_bytes, count) in &host.unfinished {
            for _ in 0..*count {
                recorder.give_up(*size_bytes);
                if *size_bytes <= short_bytes {
                    short_us.push(f64::INFINITY);
                }
            }
        }
    }
    let ports = || turns.iter().flat_map(|turn| &turn.ports);
    let through: u64 = ports().map(homa_testbed::PortStatistics::bytes).sum();
    let sent_again_bytes: u64 = turns.iter().map(sent_again_bytes).sum();
    let mut by_priority = [0; 8];
    for port in ports() {
        for (sum, bytes) in by_priority.iter_mut().zip(port.sent_bytes) {
            *sum += bytes;
        }
    }
    let goodput: f64 = hosts().map(|host| host.goodput_bps).sum();
    let offered: f64 = hosts().map(|host| host.offered_bps).sum();
    RowFindings {
        row: row.clone(),
        digest: recorder.digest(classes, ideal, unloaded),
        unloaded: points,
        details,
        goodput_bps: goodput / (hosts().count().max(1)) as f64,
        carried: goodput / offered.max(1.0),
        drops: turns.iter().map(Turn::drops).sum(),
        backlog_peak: turns.iter().map(Turn::backlog_peak).max().unwrap_or(0),
        backlog_mean: ports().map(|port| port.backlog_mean_bytes).sum::<f64>()
            / ports().count().max(1) as f64,
        sent_again_bytes,
        sent_again: sent_again_bytes as f64 / through.max(1) as f64,
        by_priority,
        idle: median(turns.iter().map(|turn| turn.cpu.idle).collect()),
        stolen: turns.iter().map(|turn| turn.cpu.stolen).fold(0.0, f64::max),
        lateness_p99_us: quantile(&mut waited_us, 0, 0.99, P99_SAMPLES),
        short_us,
        failed: hosts().map(|host| host.failed).sum(),
        first_failure: hosts().find_map(|host| host.first_failure.clone()),
    }
}

/// Homa counts bytes; TCP counts segments, which are full ones if they are
/// many.
fn sent_again_bytes(turn: &Turn) -> u64 {
    let homa = turn.counter("core.retransmitted_bytes");
    let frames: u64 = turn.ports.iter().flat_map(|port| port.sent_frames).sum();
    let bytes: u64 = turn
        .ports
        .iter()
        .map(homa_testbed::PortStatistics::bytes)
        .sum();
    homa + turn.tcp_segments_again * (bytes / frames.max(1))
}

/// Of each size the shortest round trip of all rows.
fn fastest(rows: &[Vec<UnloadedPoint>]) -> Option<Unloaded> {
    let mut fastest: BTreeMap<u32, UnloadedPoint> = BTreeMap::new();
    for point in rows.iter().flatten() {
        let best = fastest.entry(point.size_bytes).or_insert(*point);
        if point.p50_us < best.p50_us {
            *best = *point;
        }
    }
    Unloaded::new(fastest.into_values().collect())
}

fn find<'a>(rows: &'a [RowFindings], key: &str) -> Option<&'a RowFindings> {
    rows.iter().find(|found| found.row.key == key)
}

fn headline(rows: &[RowFindings]) -> Headline {
    let row = |key| find(rows, key);
    let short = |key| row(key).map(|found| found.short().latency_us.p99);
    let large = |key| row(key).map(|found| found.large().latency_us.p99);
    let goodput = |key| row(key).map(|found| found.goodput_bps);
    Headline {
        short_p99_ratio: ratio(short(TCP), short(HOMA)),
        short_p99_ratio_vs_tcp_prio: ratio(short(TCP_PRIORITY), short(HOMA)),
        short_p99_ratio_one_priority: ratio(short(TCP), short(HOMA_ONE)),
        large_p99_ratio: ratio(large(TCP), large(HOMA)),
        goodput_ratio: match (goodput(HOMA), goodput(TCP)) {
            (Some(homa), Some(tcp)) if tcp > 0.0 => Some(round(homa / tcp)),
            _ => None,
        },
    }
}

/// Nothing if either is missing or infinite.
fn ratio(above: Option<Quantile>, below: Option<Quantile>) -> Option<f64> {
    match (above?, below?) {
        (Quantile::Value(above), Quantile::Value(below)) if below > 0.0 => {
            Some(round(above / below))
        }
        _ => None,
    }
}

fn round(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

fn cpu_limits(found: &RowFindings) -> Vec<String> {
    let name = found.row.name;
    let mut limits = Vec::new();
    if found.idle < LEAST_IDLE {
        limits.push(format!("{name}: idle {:.0} %", 100.0 * found.idle));
    }
    match found.lateness_p99_us {
        Quantile::Value(us) if us <= MOST_LATENESS_US => {}
        late => limits.push(format!("{name}: arrivals late by {late} us (p99)")),
    }
    if found.carried < LEAST_CARRIED {
        limits.push(format!(
            "{name}: carried {:.1} % of the load",
            100.0 * found.carried
        ));
    }
    limits
}

fn remarks(setup: &Setup, rows: &[RowFindings]) -> Vec<String> {
    let mut remarks = Vec::new();
    let fewest = rows.iter().map(|found| found.large().samples).min();
    if let Some(fewest) = fewest.filter(|fewest| *fewest < ENOUGH_LARGE) {
        remarks.push(format!(
            "Only {fewest} RPCs of the longest size in each row: their p99 (?) is uncertain."
        ));
    }
    for found in rows {
        let name = found.row.name;
        let is_homa = [HOMA, HOMA_ONE].contains(&found.row.key);
        if is_homa && found.backlog_peak > u64::from(setup.buffer_bytes) {
            remarks.push(format!(
                "{name} held {} B in a port, more than the {} B that a row with one class may.",
                found.backlog_peak, setup.buffer_bytes
            ));
        }
        if is_homa && found.drops == 0 && found.sent_again > MOST_SENT_AGAIN {
            remarks.push(format!(
                "{name} sent {:.2} % of its bytes again although nothing was dropped.",
                100.0 * found.sent_again
            ));
        }
        if found.failed > 0 {
            remarks.push(format!(
                "{name}: {} RPCs failed, the first with: {}",
                found.failed,
                found.first_failure.as_deref().unwrap_or("no reason")
            ));
        }
    }
    remarks
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn ratio__only_of_what_is_finite() {
        let value = |value| Some(Quantile::Value(value));
        assert_eq!(ratio(value(10.0), value(4.0)), Some(2.5));
        assert_eq!(ratio(Some(Quantile::Infinite), value(4.0)), None);
        assert_eq!(ratio(value(1.0), Some(Quantile::TooFew)), None);
        assert_eq!(ratio(value(1.0), None), None);
    }

    #[test]
    fn fastest__takes_the_best_row_of_each_size() {
        let point = |size_bytes, p50_us| UnloadedPoint {
            size_bytes,
            p50_us,
            samples: 1,
        };
        let rows = [
            vec![point(100, 30.0), point(1000, 40.0)],
            vec![point(100, 20.0), point(1000, 50.0)],
        ];
        let best = fastest(&rows).unwrap();
        assert_eq!(best.points(), [point(100, 20.0), point(1000, 40.0)]);
        assert!(fastest(&[]).is_none());
    }

    #[test]
    fn median__of_rounds() {
        assert!((median(vec![0.5, 0.1, 0.4]) - 0.4).abs() < 1e-9);
        assert!(median(Vec::new()).abs() < 1e-9);
    }
}
