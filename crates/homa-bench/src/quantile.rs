//! Percentiles that do not pretend.
//!
//! The p-th percentile of n sorted values is the one at index ⌊p n⌋
//! (`docs/protocol.md` §19). RPCs that never finished are values too, larger
//! than any other. A percentile that too few values support is not shown.

use std::fmt;

use serde::{Serialize, Serializer};

/// One percentile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantile {
    /// The value, in the unit of its column.
    Value(f64),
    /// It falls among the RPCs that never finished.
    Infinite,
    /// Too few samples to say.
    TooFew,
}

impl Serialize for Quantile {
    /// A number, the text `inf`, or null.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            // Nanoseconds of a value in microseconds; more digits are noise.
            Self::Value(value) => serializer.serialize_f64((value * 1e3).round() / 1e3),
            Self::Infinite => serializer.serialize_str("inf"),
            Self::TooFew => serializer.serialize_none(),
        }
    }
}

impl fmt::Display for Quantile {
    /// About four digits; `inf`; `-`. Obeys a width.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Value(value) if value < 10.0 => f.pad(&format!("{value:.2}")),
            Self::Value(value) if value < 1_000.0 => f.pad(&format!("{value:.1}")),
            Self::Value(value) => f.pad(&format!("{value:.0}")),
            Self::Infinite => f.pad("inf"),
            Self::TooFew => f.pad("-"),
        }
    }
}

/// The three percentiles of every table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Percentiles {
    /// Median.
    pub p50: Quantile,
    /// Needs [`P99_SAMPLES`].
    pub p99: Quantile,
    /// Needs [`P999_SAMPLES`].
    pub p999: Quantile,
}

/// Samples needed to show a 99th percentile.
pub const P99_SAMPLES: u64 = 100;
/// Samples needed to show a 99.9th percentile.
pub const P999_SAMPLES: u64 = 1_000;

impl Percentiles {
    /// Of `values` (any order; it changes) and `unfinished` infinite ones.
    pub fn of(values: &mut [f64], unfinished: u64) -> Self {
        Self {
            p50: quantile(values, unfinished, 0.5, 1),
            p99: quantile(values, unfinished, 0.99, P99_SAMPLES),
            p999: quantile(values, unfinished, 0.999, P999_SAMPLES),
        }
    }
}

/// One percentile of `values` and `unfinished` infinite ones, `fraction` in
/// [0, 1); [`Quantile::TooFew`] with fewer than `needed` (or no) values.
pub fn quantile(values: &mut [f64], unfinished: u64, fraction: f64, needed: u64) -> Quantile {
    let count = values.len() as u64 + unfinished;
    if count < needed.max(1) {
        return Quantile::TooFew;
    }
    // The small push keeps 0.99 × 100 at 99, whatever its binary rounding.
    let index = (fraction * count as f64 + 1e-9) as usize;
    if index >= values.len() {
        return Quantile::Infinite;
    }
    let (_, value, _) = values.select_nth_unstable_by(index, f64::total_cmp);
    Quantile::Value(*value)
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn of__index_is_the_floor() {
        let mut values: Vec<f64> = (0..1000).rev().map(f64::from).collect();
        let found = Percentiles::of(&mut values, 0);
        assert_eq!(found.p50, Quantile::Value(500.0));
        assert_eq!(found.p99, Quantile::Value(990.0));
        assert_eq!(found.p999, Quantile::Value(999.0));
        assert_eq!(quantile(&mut [3.0], 0, 0.5, 1), Quantile::Value(3.0));
    }

    #[test]
    fn of__too_few_samples_are_not_shown() {
        let mut values = vec![1.0; 99];
        assert_eq!(Percentiles::of(&mut values, 0).p99, Quantile::TooFew);
        values.push(1.0);
        assert_eq!(Percentiles::of(&mut values, 0).p99, Quantile::Value(1.0));
        assert_eq!(Percentiles::of(&mut values, 899).p999, Quantile::TooFew);
        assert_eq!(Percentiles::of(&mut [], 0).p50, Quantile::TooFew);
    }

    #[test]
    fn of__unfinished_ones_are_infinite() {
        let mut values = vec![1.0; 990];
        assert_eq!(Percentiles::of(&mut values, 10).p99, Quantile::Infinite);
        let mut values = vec![1.0; 991];
        assert_eq!(Percentiles::of(&mut values, 9).p99, Quantile::Value(1.0));
        assert_eq!(Percentiles::of(&mut [], 1).p50, Quantile::Infinite);
    }

    #[test]
    fn serialize__number_text_and_null() {
        let json = serde_json::to_string(&[
            Quantile::Value(1.234_567),
            Quantile::Infinite,
            Quantile::TooFew,
        ]);
        assert_eq!(json.unwrap(), r#"[1.235,"inf",null]"#);
        assert_eq!(
            format!("{:>6}|{:>6}", Quantile::Value(12.34), Quantile::TooFew),
            "  12.3|     -"
        );
    }
}
