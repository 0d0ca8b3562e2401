//! Distributions of message sizes: the five of the Homa papers, a file's, or
//! one size.
//!
//! A distribution is a list of sizes with cumulative fractions of messages;
//! samples are exactly these sizes, never something between two (as the
//! reference's benchmark does, `docs/protocol.md` §19). Invariants: sizes rise
//! strictly, fractions rise strictly, the last fraction is 1.

#![forbid(unsafe_code)]
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "statistics: sizes and counts become f64 and back, far below 2^53"
)]

mod csv;
mod sim2018;

use rand::Rng;

pub use csv::CsvError;
pub use sim2018::{W5_PACKET_BYTES, sim2018};

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
mod tests;
