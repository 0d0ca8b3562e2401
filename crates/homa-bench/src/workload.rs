//! Distributions of message sizes: the five of the Homa papers, a file's, or
//! one size.
//!
//! A distribution is a list of sizes with cumulative fractions of messages;
//! samples are exactly these sizes, never something between two (as the
//! reference's benchmark does, `docs/protocol.md` §19). Invariants: sizes rise
//! strictly, fractions rise strictly, the last fraction is 1.

mod csv;

use rand::Rng;

pub use csv::CsvError;

/// Longest message unless asked otherwise, in bytes: the limit of Homa/Linux.
pub const DEFAULT_MAX_MESSAGE_BYTES: u32 = 1_000_000;

/// Names of the distributions that are built in, with their origin.
pub const BUILT_IN: [(&str, &str); 6] = [
    ("w1", "memcached at Facebook, mean 0.2 KB"),
    ("w2", "search at Google, mean 0.4 KB"),
    ("w3", "all of a Google datacenter, mean 2.4 KB at 1 MB cap"),
    ("w4", "Hadoop at Facebook, mean 60 KB at 1 MB cap"),
    ("w5", "web search (DCTCP), mean 385 KB at 1 MB cap"),
    ("starve", "ten sizes from 100 KB to 1 MB"),
];

fn built_in_text(name: &str) -> Option<&'static str> {
    Some(match name {
        "w1" => include_str!("../../../workloads/w1.csv"),
        "w2" => include_str!("../../../workloads/w2.csv"),
        "w3" => include_str!("../../../workloads/w3.csv"),
        "w4" => include_str!("../../../workloads/w4.csv"),
        "w5" => include_str!("../../../workloads/w5.csv"),
        "starve" => include_str!("../../../workloads/starve.csv"),
        _ => return None,
    })
}

/// One size and the fraction of messages that are no longer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Message length in bytes.
    pub size_bytes: u32,
    /// Fraction of messages of at most this length, in (0, 1].
    pub cumulative: f64,
}

/// Why a workload cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// Not a name, a number or a file.
    #[error(
        "no workload `{spec}`: give one of {names}, a size in bytes, or a CSV file of `size_bytes,cumulative_fraction`",
        names = names()
    )]
    Unknown {
        /// What was given.
        spec: String,
    },
    /// The file is there, but cannot be read.
    #[error("cannot read workload file {path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// The kernel's answer.
        #[source]
        source: std::io::Error,
    },
    /// The file is no distribution.
    #[error("{path}: {source}")]
    Csv {
        /// The file.
        path: String,
        /// What is wrong, and where.
        #[source]
        source: CsvError,
    },
    /// A size of zero or above 4 GiB.
    #[error("a message of {bytes} B is not possible: sizes go from 1 to {max} B", max = u32::MAX)]
    Size {
        /// What was given.
        bytes: u64,
    },
}

fn names() -> String {
    BUILT_IN.map(|(name, _)| name).join(", ")
}

/// A distribution of message sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    name: String,
    points: Vec<Point>,
}

impl Workload {
    /// What a user may write: a built-in name, a size in bytes (suffixes `k`
    /// and `m`, or `kb` and `mb`, are thousand and million), or the path of a
    /// CSV file.
    pub fn parse(spec: &str) -> Result<Self, WorkloadError> {
        let lower = spec.to_ascii_lowercase();
        if let Some(text) = built_in_text(&lower) {
            return Self::from_csv(&lower, text);
        }
        if let Some(bytes) = parse_size(&lower) {
            return Self::fixed(bytes);
        }
        match std::fs::read_to_string(spec) {
            Ok(text) => Self::from_csv(spec, &text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(WorkloadError::Unknown { spec: spec.into() })
            }
            Err(source) => Err(WorkloadError::Read {
                path: spec.into(),
                source,
            }),
        }
    }

    /// Messages of one size only.
    pub fn fixed(bytes: u64) -> Result<Self, WorkloadError> {
        match u32::try_from(bytes) {
            Ok(size_bytes) if size_bytes > 0 => Ok(Self {
                name: format!("{bytes} B"),
                points: vec![Point {
                    size_bytes,
                    cumulative: 1.0,
                }],
            }),
            _ => Err(WorkloadError::Size { bytes }),
        }
    }

    /// Reads `size_bytes,cumulative_fraction` lines; `name` is for messages.
    pub fn from_csv(name: &str, text: &str) -> Result<Self, WorkloadError> {
        let points = csv::parse(text).map_err(|source| WorkloadError::Csv {
            path: name.into(),
            source,
        })?;
        Ok(Self {
            name: name.into(),
            points,
        })
    }

    /// Longer messages become `max_bytes`, shorter ones `min_bytes`; the mean
    /// follows. Both at least 1.
    #[must_use]
    pub fn clamped(&self, min_bytes: u32, max_bytes: u32) -> Self {
        let mut points: Vec<Point> = Vec::with_capacity(self.points.len());
        for point in &self.points {
            let size_bytes = point.size_bytes.min(max_bytes).max(min_bytes);
            match points.last_mut() {
                Some(last) if last.size_bytes == size_bytes => last.cumulative = point.cumulative,
                _ => points.push(Point {
                    size_bytes,
                    ..*point
                }),
            }
        }
        Self {
            name: self.name.clone(),
            points,
        }
    }

    /// Fewer sizes, by the rule of the reference's benchmark: a point stays if
    /// it adds at least 0.25 % of messages, or if the next length is more than
    /// 1.2 times the last one kept. Messages of a point that goes get the next
    /// longer length that stays, so the mean rises a little.
    #[must_use]
    pub fn thinned(&self) -> Self {
        const MIN_FRACTION: f64 = 0.0025;
        const MAX_RATIO: f64 = 1.2;
        let mut points: Vec<Point> = Vec::new();
        for (index, point) in self.points.iter().enumerate() {
            let last = points.last().copied().unwrap_or(Point {
                size_bytes: 0,
                cumulative: 0.0,
            });
            let keep = match self.points.get(index + 1) {
                None => true,
                Some(next) => {
                    point.cumulative - last.cumulative >= MIN_FRACTION
                        || f64::from(next.size_bytes) > MAX_RATIO * f64::from(last.size_bytes)
                }
            };
            if keep {
                points.push(*point);
            }
        }
        Self {
            name: self.name.clone(),
            points,
        }
    }

    /// The name it was made with.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The sizes, shortest first; never empty.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// Mean message length in bytes.
    pub fn mean_bytes(&self) -> f64 {
        let mut below = 0.0;
        let mut mean = 0.0;
        for point in &self.points {
            mean += f64::from(point.size_bytes) * (point.cumulative - below);
            below = point.cumulative;
        }
        mean
    }

    /// Longest message in bytes.
    pub fn max_bytes(&self) -> u32 {
        self.points.last().map_or(0, |point| point.size_bytes)
    }

    /// The shortest length such that at least `fraction` of messages are no
    /// longer.
    pub fn quantile_bytes(&self, fraction: f64) -> u32 {
        let index = self
            .points
            .partition_point(|point| point.cumulative < fraction);
        self.points
            .get(index)
            .map_or_else(|| self.max_bytes(), |point| point.size_bytes)
    }

    /// Fraction of messages of at most `bytes`.
    pub fn fraction_up_to(&self, bytes: u32) -> f64 {
        let index = self
            .points
            .partition_point(|point| point.size_bytes <= bytes);
        index
            .checked_sub(1)
            .map_or(0.0, |last| self.points[last].cumulative)
    }

    /// Draws one length in bytes.
    pub fn sample(&self, rng: &mut impl Rng) -> u32 {
        if let [only] = self.points[..] {
            return only.size_bytes;
        }
        // `random` is in [0, 1): a fraction u belongs to the first point with
        // u < cumulative.
        let u: f64 = rng.random();
        let index = self.points.partition_point(|point| point.cumulative <= u);
        self.points
            .get(index)
            .map_or_else(|| self.max_bytes(), |point| point.size_bytes)
    }
}

/// Reads `1000`, `64k`, `1.5MB`: decimal multiples, as in link speeds.
pub fn parse_size(text: &str) -> Option<u64> {
    let lower = text.trim().to_ascii_lowercase();
    let number = lower.strip_suffix('b').unwrap_or(&lower);
    let (number, factor) = if let Some(rest) = number.strip_suffix('k') {
        (rest, 1e3)
    } else if let Some(rest) = number.strip_suffix('m') {
        (rest, 1e6)
    } else {
        (number, 1.0)
    };
    if !number.starts_with(|first: char| first.is_ascii_digit()) {
        return None;
    }
    let value: f64 = number.parse().ok()?;
    let bytes = value * factor;
    (bytes.fract() == 0.0 && bytes <= 9e15).then_some(bytes as u64)
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    fn named(name: &str) -> Workload {
        Workload::parse(name).unwrap()
    }

    fn sampled(workload: &Workload, seed: u64, count: usize) -> Vec<u32> {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let mut sizes: Vec<u32> = (0..count).map(|_| workload.sample(&mut rng)).collect();
        sizes.sort_unstable();
        sizes
    }

    #[test]
    fn mean_bytes__known_values_capped_and_not() {
        // Published means, and those with the cap of 1,000,000 bytes.
        for (name, mean, capped) in [
            ("w1", 189.0, 189.0),
            ("w2", 442.0, 433.0),
            ("w3", 2928.0, 2423.0),
            ("w4", 127_797.0, 60_175.0),
            ("w5", 2_564_690.0, 385_316.0),
        ] {
            let workload = named(name);
            let near = |found: f64, wanted: f64| (found / wanted - 1.0).abs() < 0.005;
            assert!(
                near(workload.mean_bytes(), mean),
                "{name}: {}",
                workload.mean_bytes()
            );
            let cut = workload.clamped(1, DEFAULT_MAX_MESSAGE_BYTES);
            assert!(
                near(cut.mean_bytes(), capped),
                "{name}: {}",
                cut.mean_bytes()
            );
            assert!(cut.max_bytes() <= DEFAULT_MAX_MESSAGE_BYTES);
        }
    }

    #[test]
    fn quantile_bytes__known_values() {
        assert_eq!(named("w4").quantile_bytes(0.5), 662);
        assert_eq!(named("w1").quantile_bytes(0.9), 503);
        assert_eq!(named("w5").quantile_bytes(1.0), 29_400_000);
        assert_eq!(named("w3").quantile_bytes(0.0), 8);
    }

    #[test]
    fn clamped__merges_points_beyond_the_ends() {
        let workload = Workload::from_csv("t", "10,0.25\n20,0.5\n30,0.75\n40,1\n").unwrap();
        let cut = workload.clamped(15, 30);
        let points: Vec<_> = cut
            .points()
            .iter()
            .map(|p| (p.size_bytes, p.cumulative))
            .collect();
        assert_eq!(points, [(15, 0.25), (20, 0.5), (30, 1.0)]);
        assert!((cut.mean_bytes() - (0.25 * 15.0 + 0.25 * 20.0 + 0.5 * 30.0)).abs() < 1e-9);
    }

    #[test]
    fn thinned__keeps_steps_and_the_end() {
        let w3 = named("w3");
        let thin = w3.thinned();
        assert!(
            thin.points().len() < w3.points().len() / 2,
            "{}",
            thin.points().len()
        );
        assert_eq!(thin.max_bytes(), w3.max_bytes());
        assert!((thin.mean_bytes() / w3.mean_bytes() - 1.0).abs() < 0.1);
        for pair in thin.points().windows(2) {
            let added = pair[1].cumulative - pair[0].cumulative;
            let ratio = f64::from(pair[1].size_bytes) / f64::from(pair[0].size_bytes);
            // A point kept for its ratio may itself be close; its successor is not.
            assert!(added >= 0.0 && ratio > 1.0);
        }
    }

    #[test]
    fn parse__sizes_names_and_nonsense() {
        assert_eq!(named("1000").points().len(), 1);
        assert_eq!(named("64k").max_bytes(), 64_000);
        assert_eq!(named("1.5MB").max_bytes(), 1_500_000);
        assert_eq!(named("W2").name(), "w2");
        let message = Workload::parse("w9").unwrap_err().to_string();
        assert!(message.contains("w1, w2, w3, w4, w5, starve"), "{message}");
        assert!(matches!(
            Workload::parse("0"),
            Err(WorkloadError::Size { bytes: 0 })
        ));
        assert!(Workload::parse("5000m").is_err());
        assert_eq!(parse_size("inf"), None);
        assert_eq!(parse_size("1.5"), None);
    }

    #[test]
    fn sample__same_seed_same_sizes() {
        assert_eq!(
            sampled(&named("w3"), 7, 1000),
            sampled(&named("w3"), 7, 1000)
        );
        assert_ne!(
            sampled(&named("w3"), 7, 1000),
            sampled(&named("w3"), 8, 1000)
        );
    }

    #[test]
    fn sample__means_and_quantiles_of_the_built_in_ones() {
        const COUNT: usize = 200_000;
        for (name, _) in BUILT_IN {
            let workload = named(name).clamped(8, DEFAULT_MAX_MESSAGE_BYTES);
            let sizes = sampled(&workload, 1, COUNT);
            let mean = sizes.iter().map(|&size| f64::from(size)).sum::<f64>() / COUNT as f64;
            assert!(
                (mean / workload.mean_bytes() - 1.0).abs() < 0.06,
                "{name}: {mean} against {}",
                workload.mean_bytes()
            );
            for fraction in [0.1, 0.5, 0.9, 0.99] {
                let found = sizes[(fraction * COUNT as f64) as usize];
                // Within five standard deviations of the asked fraction.
                let spread = 5.0 * (fraction * (1.0 - fraction) / COUNT as f64).sqrt();
                let low = workload.quantile_bytes(fraction - spread);
                let high = workload.quantile_bytes(fraction + spread);
                assert!(
                    (low..=high).contains(&found),
                    "{name} {fraction}: {found} {low} {high}"
                );
            }
        }
    }

    prop_compose! {
        fn any_workload()(steps in prop::collection::vec((1_u32..5_000, 1_u32..100), 1..40))
            -> Workload
        {
            let total: u32 = steps.iter().map(|step| step.1).sum();
            let (mut size, mut seen) = (0, 0);
            let lines: Vec<String> = steps.iter().map(|(add, weight)| {
                size += add;
                seen += weight;
                format!("{size},{}", f64::from(seen) / f64::from(total))
            }).collect();
            let text = lines.join("\n");
            Workload::from_csv("any", &text).unwrap()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn sample__matches_any_distribution(workload in any_workload(), seed: u64) {
            const COUNT: usize = 20_000;
            let sizes = sampled(&workload, seed, COUNT);
            for point in workload.points() {
                let found = sizes.partition_point(|&size| size <= point.size_bytes) as f64
                    / COUNT as f64;
                let p = point.cumulative;
                let spread = 5.5 * (p * (1.0 - p) / COUNT as f64).sqrt() + 1e-9;
                prop_assert!((found - p).abs() <= spread, "{} at {}", found, p);
                prop_assert!((workload.fraction_up_to(point.size_bytes) - p).abs() < 1e-12);
            }
        }

        #[test]
        fn clamped__mean_is_between_the_limits(
            workload in any_workload(), min in 1_u32..2_000, more in 0_u32..100_000,
        ) {
            let cut = workload.clamped(min, min + more);
            prop_assert!(cut.mean_bytes() >= f64::from(min) - 1e-6);
            prop_assert!(cut.mean_bytes() <= f64::from(min + more) + 1e-6);
            prop_assert!((cut.points().last().unwrap().cumulative - 1.0).abs() < 1e-12);
        }
    }
}
