//! What an RPC takes when nothing is in its way: the two denominators of
//! slowdown.
//!
//! The constant-B ideal is a formula with two constants that published results
//! use (`docs/protocol.md` §19); the measured one comes from RPCs one at a time
//! on the idle path, just before the run. They differ much; a report shows
//! both and prints their constants.

use serde::{Deserialize, Serialize};

/// `base + 8 L / link`: a fixed cost, and the request's bytes once at link rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ideal {
    /// B in µs: round trip of the shortest message. Published results: 15 for
    /// the xl170 machines, 25 elsewhere.
    pub base_us: f64,
    /// Link rate in Gbit/s.
    pub link_gbps: f64,
}

/// The constants of the published 25 Gbit/s results.
pub const DEFAULT_IDEAL: Ideal = Ideal {
    base_us: 15.0,
    link_gbps: 25.0,
};

impl Ideal {
    /// In µs, for an echo of `size_bytes`.
    pub fn at_us(&self, size_bytes: u32) -> f64 {
        self.base_us + 8.0 * f64::from(size_bytes) / (self.link_gbps * 1e3)
    }
}

/// Measured round trips of one size, one RPC at a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct UnloadedPoint {
    /// Length of the request in bytes.
    pub size_bytes: u32,
    /// Median round trip in µs.
    pub p50_us: f64,
    /// RPCs it is the median of.
    pub samples: u64,
}

/// Measured round trips without load, by size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unloaded(Vec<UnloadedPoint>);

impl Unloaded {
    /// From points in any order; `None` without any.
    pub fn new(mut points: Vec<UnloadedPoint>) -> Option<Self> {
        points.sort_by_key(|point| point.size_bytes);
        (!points.is_empty()).then_some(Self(points))
    }

    /// Shortest first.
    pub fn points(&self) -> &[UnloadedPoint] {
        &self.0
    }

    /// In µs for any size: linear between the points, constant beyond them.
    pub fn at_us(&self, size_bytes: u32) -> f64 {
        let above = self
            .0
            .partition_point(|point| point.size_bytes < size_bytes);
        match (
            above.checked_sub(1).map(|below| self.0[below]),
            self.0.get(above),
        ) {
            (Some(low), Some(high)) => {
                let part = f64::from(size_bytes - low.size_bytes)
                    / f64::from(high.size_bytes - low.size_bytes);
                low.p50_us + part * (high.p50_us - low.p50_us)
            }
            (None, Some(only)) => only.p50_us,
            (Some(only), None) => only.p50_us,
            (None, None) => f64::NAN,
        }
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn ideal__at_us__known_values() {
        // 1 MB at 25 Gbit/s is 320 µs.
        assert!((DEFAULT_IDEAL.at_us(1_000_000) - 335.0).abs() < 1e-9);
        assert!((DEFAULT_IDEAL.at_us(0) - 15.0).abs() < 1e-9);
    }

    #[test]
    fn unloaded__at_us__between_and_beyond() {
        let point = |size_bytes, p50_us| UnloadedPoint {
            size_bytes,
            p50_us,
            samples: 1,
        };
        let unloaded = Unloaded::new(vec![point(300, 30.0), point(100, 10.0)]).unwrap();
        for (size, wanted) in [
            (1, 10.0),
            (100, 10.0),
            (150, 15.0),
            (300, 30.0),
            (900, 30.0),
        ] {
            assert!((unloaded.at_us(size) - wanted).abs() < 1e-9, "{size}");
        }
        assert_eq!(Unloaded::new(Vec::new()), None);
    }
}
