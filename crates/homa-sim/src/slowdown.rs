//! Slowdown by message size: exact percentiles over all messages.

use serde::Serialize;

/// Slowdowns of messages, in classes of size.
#[derive(Clone, Debug)]
pub struct Slowdowns {
    /// Longest message of each class, rising.
    upper_bytes: Vec<u32>,
    samples: Vec<Vec<f32>>,
    /// Microseconds that they took, in the same classes.
    took_us: Vec<Vec<f32>>,
    unfinished: Vec<u64>,
}

/// One class of size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClassSlowdown {
    /// Longest message of the class, in bytes.
    pub up_to_bytes: u32,
    /// Messages that finished.
    pub messages: u64,
    /// Messages that did not; percentiles count them as infinite.
    pub unfinished: u64,
    /// Share of all messages up to this class.
    pub cumulative: f64,
    /// Mean of those that finished.
    pub mean: f64,
    /// Median; infinite where too many did not finish, not a number where there
    /// are fewer than [`ENOUGH`].
    pub p50: f64,
    /// 99th percentile, likewise.
    pub p99: f64,
}

/// The numbers that summarise a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Messages that finished.
    pub messages: u64,
    /// Messages that did not.
    pub unfinished: u64,
    /// Mean slowdown over all messages that finished.
    pub mean: f64,
    /// Largest 99th percentile of a class, over the classes that together hold
    /// no more than the shorter half of the messages (and the one with the
    /// median); not a number if none has [`ENOUGH`].
    pub p99_short_half: f64,
    /// Largest 99th percentile of any class with [`ENOUGH`].
    pub p99_any: f64,
}

/// Messages that a class needs for percentiles: ten are beyond the 99th then.
pub const ENOUGH: u64 = 1000;

impl Slowdowns {
    /// Classes with the given longest messages, which must rise; longer
    /// messages fall into the last.
    pub fn new(upper_bytes: Vec<u32>) -> Self {
        let classes = upper_bytes.len();
        Self {
            upper_bytes,
            samples: vec![Vec::new(); classes],
            took_us: vec![Vec::new(); classes],
            unfinished: vec![0; classes],
        }
    }

    fn class(&self, bytes: u32) -> usize {
        self.upper_bytes
            .partition_point(|upper| *upper < bytes)
            .min(self.upper_bytes.len().saturating_sub(1))
    }

    /// A message of `bytes` took `slowdown` times as long as alone, which was
    /// `took_us`.
    pub fn record(&mut self, bytes: u32, slowdown: f64, took_us: f64) {
        let class = self.class(bytes);
        self.samples[class].push(slowdown as f32);
        self.took_us[class].push(took_us as f32);
    }

    /// A message did not finish.
    pub fn record_unfinished(&mut self, bytes: u32) {
        let class = self.class(bytes);
        self.unfinished[class] += 1;
    }

    /// Adds the samples of another run with the same classes.
    pub fn absorb(&mut self, other: Self) {
        for (mine, theirs) in self.samples.iter_mut().zip(other.samples) {
            mine.extend(theirs);
        }
        for (mine, theirs) in self.took_us.iter_mut().zip(other.took_us) {
            mine.extend(theirs);
        }
        for (mine, theirs) in self.unfinished.iter_mut().zip(other.unfinished) {
            *mine += theirs;
        }
    }

    /// 99th percentile of the time in microseconds of the messages of some
    /// classes: those whose shares of all messages, from the shortest up to and
    /// with the class, `take` accepts. Not a number below [`ENOUGH`].
    pub fn p99_us(&self, take: impl Fn(f64) -> bool) -> f64 {
        let count = |class: usize| self.samples[class].len() as u64 + self.unfinished[class];
        let total: u64 = (0..self.samples.len()).map(count).sum();
        let (mut seen, mut unfinished, mut taken) = (0, 0, Vec::new());
        for class in 0..self.samples.len() {
            seen += count(class);
            if take(seen as f64 / total as f64) {
                unfinished += self.unfinished[class];
                taken.extend_from_slice(&self.took_us[class]);
            }
        }
        taken.sort_unstable_by(f32::total_cmp);
        quantile(&taken, unfinished, 0.99)
    }

    /// Every class that any message fell into.
    pub fn classes(&mut self) -> Vec<ClassSlowdown> {
        let total: u64 = self.samples.iter().map(|s| s.len() as u64).sum::<u64>()
            + self.unfinished.iter().sum::<u64>();
        let mut seen = 0;
        let mut classes = Vec::new();
        let rows = self
            .upper_bytes
            .iter()
            .zip(&mut self.samples)
            .zip(&self.unfinished);
        for ((&up_to_bytes, samples), &unfinished) in rows {
            let messages = samples.len() as u64;
            if messages + unfinished == 0 {
                continue;
            }
            seen += messages + unfinished;
            samples.sort_unstable_by(f32::total_cmp);
            let sum: f64 = samples.iter().map(|s| f64::from(*s)).sum();
            classes.push(ClassSlowdown {
                up_to_bytes,
                messages,
                unfinished,
                cumulative: seen as f64 / total as f64,
                mean: sum / messages as f64,
                p50: quantile(samples, unfinished, 0.5),
                p99: quantile(samples, unfinished, 0.99),
            });
        }
        classes
    }

    /// The numbers that summarise all classes.
    pub fn summary(classes: &[ClassSlowdown]) -> Summary {
        let mut summary = Summary {
            p99_short_half: f64::NAN,
            p99_any: f64::NAN,
            ..Summary::default()
        };
        let mut before = 0.0;
        let mut sum = 0.0;
        for class in classes {
            summary.messages += class.messages;
            summary.unfinished += class.unfinished;
            if class.messages > 0 {
                sum += class.mean * class.messages as f64;
            }
            // What is not a number loses against any other.
            if before < 0.5 {
                summary.p99_short_half = summary.p99_short_half.max(class.p99);
            }
            summary.p99_any = summary.p99_any.max(class.p99);
            before = class.cumulative;
        }
        summary.mean = sum / summary.messages as f64;
        summary
    }
}

/// Of sorted samples and so many more that are infinite.
fn quantile(sorted: &[f32], unfinished: u64, fraction: f64) -> f64 {
    let samples = sorted.len() as u64 + unfinished;
    if samples < ENOUGH {
        return f64::NAN;
    }
    let index = (fraction * samples as f64 + 1e-9) as usize;
    sorted.get(index).map_or(f64::INFINITY, |s| f64::from(*s))
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn classes__percentiles_and_shares_by_hand() {
        let mut slowdowns = Slowdowns::new(vec![10, 100, 1000]);
        for value in 0..1000 {
            slowdowns.record(10, 1.0 + f64::from(value), 3.0);
        }
        for value in 0..500 {
            slowdowns.record(11, 2.0 + f64::from(value), 4.0);
        }
        for took_us in 0..500 {
            slowdowns.record(2000, 5.0, f64::from(took_us));
        }
        let classes = slowdowns.classes();
        assert_eq!(classes.len(), 3);
        assert_eq!(classes[0].messages, 1000);
        assert!((classes[0].cumulative - 0.5).abs() < 1e-12);
        assert!((classes[0].p50 - 501.0).abs() < 1e-6);
        assert!((classes[0].p99 - 991.0).abs() < 1e-6);
        assert!(classes[1].p99.is_nan(), "500 are too few");
        assert_eq!(classes[2].up_to_bytes, 1000);
        let summary = Slowdowns::summary(&classes);
        assert!((summary.p99_short_half - 991.0).abs() < 1e-6);
        assert!((summary.p99_any - 991.0).abs() < 1e-6);
        assert!((slowdowns.p99_us(|share| share <= 0.5) - 3.0).abs() < 1e-6);
        assert!((slowdowns.p99_us(|share| share > 0.5) - 490.0).abs() < 1e-6);
        assert!(slowdowns.p99_us(|share| share > 0.8).is_nan());
        let mean = (500.5 * 1000.0 + 251.5 * 500.0 + 5.0 * 500.0) / 2000.0;
        assert!((summary.mean - mean).abs() < 1e-6, "{}", summary.mean);
    }

    #[test]
    fn classes__unfinished_messages_are_infinite() {
        let mut slowdowns = Slowdowns::new(vec![10]);
        for _ in 0..980 {
            slowdowns.record(10, 1.0, 2.0);
        }
        for _ in 0..20 {
            slowdowns.record_unfinished(10);
        }
        let classes = slowdowns.classes();
        assert!((classes[0].p50 - 1.0).abs() < 1e-6);
        assert!(classes[0].p99.is_infinite());
        assert_eq!(Slowdowns::summary(&classes).unfinished, 20);
    }
}
