//! What happened to each RPC of the measurement, and its digest by size.
//!
//! Keeps every sample (24 bytes each, up to [`MAX_SAMPLES`]) and digests after
//! the run, so that nothing is sorted while time is measured. Two latencies:
//! from the moment a request was due, and from the moment it was sent; they
//! differ by what the client made it wait. RPCs that failed or never finished
//! are infinite in every percentile.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::baseline::{Ideal, Unloaded};
use crate::classes::SizeClasses;
use crate::quantile::Percentiles;

/// Later samples are counted but not kept: 480 MB.
pub const MAX_SAMPLES: u64 = 20_000_000;

/// Samples per allocation: growing must not copy what is there, since that
/// would stop the client in the middle of a measurement.
const CHUNK_SAMPLES: usize = 1 << 16;

/// One RPC that finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Length of the request in bytes.
    pub size_bytes: u32,
    /// From due to sent, in ns.
    pub waited_ns: u64,
    /// From sent to complete, in ns.
    pub rtt_ns: u64,
}

/// Collects samples.
#[derive(Debug, Default)]
pub struct Recorder {
    chunks: Vec<Vec<Sample>>,
    finished: u64,
    unfinished: BTreeMap<u32, u64>,
}

impl Recorder {
    /// Empty.
    pub fn new() -> Self {
        Self::default()
    }

    /// An RPC finished.
    pub fn finish(&mut self, sample: Sample) {
        self.finished += 1;
        if self.finished > MAX_SAMPLES {
            return;
        }
        if self
            .chunks
            .last()
            .is_none_or(|last| last.len() == CHUNK_SAMPLES)
        {
            self.chunks.push(Vec::with_capacity(CHUNK_SAMPLES));
        }
        if let Some(last) = self.chunks.last_mut() {
            last.push(sample);
        }
    }

    /// An RPC of this length failed, or was not finished in the end.
    pub fn give_up(&mut self, size_bytes: u32) {
        *self.unfinished.entry(size_bytes).or_default() += 1;
    }

    /// Adds everything that another one has.
    pub fn absorb(&mut self, other: Self) {
        self.finished += other.finished;
        self.chunks.extend(other.chunks);
        for (size_bytes, count) in other.unfinished {
            *self.unfinished.entry(size_bytes).or_default() += count;
        }
    }

    /// RPCs that finished.
    pub fn finished(&self) -> u64 {
        self.finished
    }

    /// RPCs that did not.
    pub fn unfinished(&self) -> u64 {
        self.unfinished.values().sum()
    }

    /// The RPCs that finished, as far as they were kept.
    pub fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.chunks.iter().flatten()
    }

    /// How many did not, by length of the request.
    pub fn unfinished_by_size(&self) -> &BTreeMap<u32, u64> {
        &self.unfinished
    }

    /// Computes the tables.
    pub fn digest(
        &self,
        classes: &SizeClasses,
        ideal: &Ideal,
        unloaded: Option<&Unloaded>,
    ) -> Digest {
        let mut samples: Vec<Sample> = self.samples().copied().collect();
        samples.sort_unstable_by_key(|sample| sample.size_bytes);
        let denominators = Denominators { ideal, unloaded };
        let row = |samples: &[Sample], low: u32, high: u32| {
            let unfinished = self
                .unfinished
                .range(low..=high)
                .map(|(_, count)| count)
                .sum();
            denominators.row(samples, unfinished, high)
        };

        let mut rows = Vec::new();
        let mut rest = &samples[..];
        let mut low = 0;
        for class in classes.as_slice() {
            let end = rest.partition_point(|sample| sample.size_bytes <= class.up_to_bytes);
            let (here, longer) = rest.split_at(end);
            rows.push(row(here, low, class.up_to_bytes).at_fraction(class.cumulative));
            rest = longer;
            low = class.up_to_bytes.saturating_add(1);
        }

        let lengths = samples
            .chunk_by(|a, b| a.size_bytes == b.size_bytes)
            .scan(0_usize, |seen, group| {
                *seen += group.len();
                let size = group[0].size_bytes;
                let fraction = *seen as f64 / samples.len() as f64;
                Some(row(group, size, size).at_fraction(fraction))
            })
            .collect();

        let mut all = row(&samples, 0, u32::MAX).at_fraction(1.0);
        all.up_to_bytes = classes
            .as_slice()
            .last()
            .map_or(0, |class| class.up_to_bytes);
        Digest {
            all,
            spread: Spread::of(&samples),
            classes: rows,
            lengths,
        }
    }
}

/// One line of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Longest request it counts, in bytes.
    pub up_to_bytes: u32,
    /// Fraction of messages up to this length.
    pub cum_frac: f64,
    /// RPCs, finished and not.
    pub samples: u64,
    /// Of these, not finished.
    pub unfinished: u64,
    /// From due to complete, µs.
    pub latency_us: Percentiles,
    /// From sent to complete, µs.
    pub latency_from_send_us: Percentiles,
    /// Latency from due over the constant-B ideal.
    pub slowdown_ideal: Percentiles,
    /// Mean of the same over finished RPCs.
    pub slowdown_ideal_mean: Option<f64>,
    /// Latency from due over the measured unloaded median of the size.
    pub slowdown_unloaded: Option<Percentiles>,
}

impl Row {
    fn at_fraction(mut self, cum_frac: f64) -> Self {
        self.cum_frac = cum_frac;
        self
    }
}

/// Minimum, mean and maximum over all RPCs that finished, µs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Shortest latency from due.
    pub min_us: f64,
    /// Mean latency from due.
    pub mean_us: f64,
    /// Longest latency from due.
    pub max_us: f64,
    /// Shortest round trip from send.
    pub min_from_send_us: f64,
    /// Mean of the time requests waited in the client.
    pub mean_wait_us: f64,
}

impl Spread {
    fn of(samples: &[Sample]) -> Option<Self> {
        let due_us = |sample: &Sample| (sample.waited_ns + sample.rtt_ns) as f64 / 1e3;
        let count = samples.len() as f64;
        (!samples.is_empty()).then(|| Self {
            min_us: samples.iter().map(due_us).fold(f64::INFINITY, f64::min),
            mean_us: samples.iter().map(due_us).sum::<f64>() / count,
            max_us: samples.iter().map(due_us).fold(0.0, f64::max),
            min_from_send_us: samples
                .iter()
                .map(|sample| sample.rtt_ns as f64 / 1e3)
                .fold(f64::INFINITY, f64::min),
            mean_wait_us: samples.iter().map(|s| s.waited_ns as f64).sum::<f64>() / count / 1e3,
        })
    }
}

/// Everything the reports show of the samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Digest {
    /// All RPCs together.
    pub all: Row,
    /// Their extremes; nothing if none finished.
    pub spread: Option<Spread>,
    /// By tenths of the messages, shortest first.
    pub classes: Vec<Row>,
    /// By single length, shortest first; only lengths of RPCs that finished.
    pub lengths: Vec<Row>,
}

struct Denominators<'a> {
    ideal: &'a Ideal,
    unloaded: Option<&'a Unloaded>,
}

impl Denominators<'_> {
    fn row(&self, samples: &[Sample], unfinished: u64, up_to_bytes: u32) -> Row {
        let collect =
            |value: &dyn Fn(&Sample) -> f64| -> Vec<f64> { samples.iter().map(value).collect() };
        let percentiles =
            |value: &dyn Fn(&Sample) -> f64| Percentiles::of(&mut collect(value), unfinished);
        let due_us = |sample: &Sample| (sample.waited_ns + sample.rtt_ns) as f64 / 1e3;
        let mut slowdowns = collect(&|s| due_us(s) / self.ideal.at_us(s.size_bytes));
        let mean = slowdowns.iter().sum::<f64>() / slowdowns.len() as f64;
        Row {
            up_to_bytes,
            cum_frac: 0.0,
            samples: samples.len() as u64 + unfinished,
            unfinished,
            latency_us: percentiles(&due_us),
            latency_from_send_us: percentiles(&|s| s.rtt_ns as f64 / 1e3),
            slowdown_ideal_mean: mean.is_finite().then_some((mean * 1e3).round() / 1e3),
            slowdown_ideal: Percentiles::of(&mut slowdowns, unfinished),
            slowdown_unloaded: self
                .unloaded
                .map(|unloaded| percentiles(&|s| due_us(s) / unloaded.at_us(s.size_bytes))),
        }
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;
    use crate::baseline::UnloadedPoint;
    use crate::quantile::Quantile;
    use crate::workload::Workload;

    const IDEAL: Ideal = Ideal {
        base_us: 10.0,
        link_gbps: 8.0,
    };

    fn classes() -> SizeClasses {
        let workload = Workload::from_csv("t", "100,0.1\n200,0.2\n10000,1\n").unwrap();
        SizeClasses::deciles(&workload)
    }

    fn sample(size_bytes: u32, waited_us: u64, rtt_us: u64) -> Sample {
        Sample {
            size_bytes,
            waited_ns: waited_us * 1000,
            rtt_ns: rtt_us * 1000,
        }
    }

    #[test]
    fn digest__classes_latencies_and_slowdowns() {
        let mut recorder = Recorder::new();
        for i in 0..1000 {
            recorder.finish(sample(100, 0, 10 + i));
            recorder.finish(sample(10_000, 5, 35));
        }
        let unloaded = Unloaded::new(vec![UnloadedPoint {
            size_bytes: 100,
            p50_us: 20.0,
            samples: 9,
        }]);
        let digest = recorder.digest(&classes(), &IDEAL, unloaded.as_ref());
        assert_eq!(digest.classes.len(), 3);
        assert_eq!(digest.all.samples, 2000);
        let short = &digest.classes[0];
        assert_eq!((short.samples, short.up_to_bytes), (1000, 100));
        assert_eq!(short.latency_us.p999, Quantile::Value(1009.0));
        // 10 µs + 100 B at 1 B/ns.
        assert_eq!(short.slowdown_ideal.p50, Quantile::Value(510.0 / 10.1));
        assert_eq!(short.slowdown_unloaded.unwrap().p50, Quantile::Value(25.5));
        assert_eq!(digest.classes[1].latency_us.p50, Quantile::TooFew);
        let long = &digest.classes[2];
        assert_eq!(long.latency_us.p99, Quantile::Value(40.0));
        assert_eq!(long.latency_from_send_us.p99, Quantile::Value(35.0));
        assert_eq!(long.slowdown_ideal_mean, Some(2.0));
        assert_eq!(digest.lengths.len(), 2);
        assert!((digest.lengths[0].cum_frac - 0.5).abs() < 1e-12);
        assert!((digest.spread.unwrap().mean_wait_us - 2.5).abs() < 1e-9);
    }

    #[test]
    fn digest__unfinished_ones_belong_to_their_class() {
        let mut recorder = Recorder::new();
        for _ in 0..1000 {
            recorder.finish(sample(10_000, 0, 20));
            recorder.finish(sample(100, 0, 20));
        }
        for _ in 0..20 {
            recorder.give_up(150);
            recorder.give_up(9_000);
        }
        let digest = recorder.digest(&classes(), &IDEAL, None);
        assert_eq!(recorder.unfinished(), 40);
        assert_eq!(digest.all.unfinished, 40);
        assert_eq!(digest.classes[0].latency_us.p99, Quantile::Value(20.0));
        assert_eq!(digest.classes[1].latency_us.p50, Quantile::Infinite);
        assert_eq!(digest.classes[2].latency_us.p99, Quantile::Infinite);
        assert_eq!(digest.classes[2].latency_us.p50, Quantile::Value(20.0));
        assert_eq!(digest.all.slowdown_unloaded, None);
    }

    #[test]
    fn finish__keeps_all_across_chunks() {
        let mut recorder = Recorder::new();
        for _ in 0..CHUNK_SAMPLES + 5 {
            recorder.finish(sample(100, 0, 1));
        }
        assert_eq!(
            recorder.digest(&classes(), &IDEAL, None).all.samples,
            CHUNK_SAMPLES as u64 + 5
        );
    }
}
