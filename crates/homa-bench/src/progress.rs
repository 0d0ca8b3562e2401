//! What is said while a run goes on.

use std::io::{self, Write};
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::error::BenchError;

/// One interval of a run.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Interval {
    /// Since the load began (warm-up included), at the end of the interval, s.
    pub at_s: f64,
    /// RPCs finished, thousands a second.
    pub kops: f64,
    /// Payload of finished requests, Gbit/s.
    pub out_gbps: f64,
    /// Payload of their responses, Gbit/s.
    pub in_gbps: f64,
    /// Round trips from send, µs; 0 if nothing finished.
    pub rtt_p50_us: f64,
    /// As above.
    pub rtt_p99_us: f64,
    /// As above.
    pub rtt_p999_us: f64,
    /// Mean length of the requests finished, bytes.
    pub mean_request_bytes: f64,
    /// RPCs outstanding at the end of the interval.
    pub outstanding: usize,
}

/// Gets each interval when it ends.
pub trait Progress {
    /// Called before a run: what it is, such as `homa throughput`. Of a
    /// comparison: `homa throughput 2/5`.
    fn turn(&mut self, _name: &str) {}

    /// Called on the thread that makes the load: must be quick.
    fn interval(&mut self, interval: &Interval);
}

/// Says nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn interval(&mut self, _: &Interval) {}
}

/// A line on stderr for each interval.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    name: String,
}

impl Progress for Lines {
    fn turn(&mut self, name: &str) {
        name.clone_into(&mut self.name);
    }

    fn interval(&mut self, i: &Interval) {
        // Nobody to tell if stderr is gone.
        let _ = writeln!(
            io::stderr(),
            "{} {:6.1} s: {:8.2} Kops/s, {:7.3} Gbit/s out, {:7.3} Gbit/s in, RTT (us) p50 {:.1} p99 {:.1} p99.9 {:.1}, mean request {:.0} B, {} outstanding",
            self.name,
            i.at_s,
            i.kops,
            i.out_gbps,
            i.in_gbps,
            i.rtt_p50_us,
            i.rtt_p99_us,
            i.rtt_p999_us,
            i.mean_request_bytes,
            i.outstanding,
        );
    }
}

/// Counts of the interval that is running: constant memory and no sorting.
#[derive(Debug)]
pub(crate) struct Meter {
    rtt_ns: Histogram<u64>,
    request_bytes: u64,
    response_bytes: u64,
}

/// Longest round trip the meter tells apart: longer ones count as this.
const MAX_RTT_NS: u64 = 100_000_000_000;

impl Meter {
    pub(crate) fn new() -> Result<Self, BenchError> {
        Ok(Self {
            rtt_ns: Histogram::new_with_bounds(100, MAX_RTT_NS, 3)
                .map_err(|error| BenchError::Transport(error.to_string()))?,
            request_bytes: 0,
            response_bytes: 0,
        })
    }

    pub(crate) fn add(&mut self, rtt_ns: u64, request_bytes: u32, response_bytes: u32) {
        self.rtt_ns.saturating_record(rtt_ns);
        self.request_bytes += u64::from(request_bytes);
        self.response_bytes += u64::from(response_bytes);
    }

    /// Ends an interval of `length` and starts the next.
    pub(crate) fn take(&mut self, at: Duration, length: Duration, outstanding: usize) -> Interval {
        let count = self.rtt_ns.len();
        let seconds = length.as_secs_f64().max(1e-9);
        let rtt_us = |fraction| self.rtt_ns.value_at_quantile(fraction) as f64 / 1e3;
        let interval = Interval {
            at_s: at.as_secs_f64(),
            kops: count as f64 / seconds / 1e3,
            out_gbps: self.request_bytes as f64 * 8.0 / seconds / 1e9,
            in_gbps: self.response_bytes as f64 * 8.0 / seconds / 1e9,
            rtt_p50_us: rtt_us(0.5),
            rtt_p99_us: rtt_us(0.99),
            rtt_p999_us: rtt_us(0.999),
            mean_request_bytes: self.request_bytes as f64 / count.max(1) as f64,
            outstanding,
        };
        self.rtt_ns.reset();
        self.request_bytes = 0;
        self.response_bytes = 0;
        interval
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn meter__rates_are_per_second_and_start_anew() {
        let mut meter = Meter::new().unwrap();
        for _ in 0..1000 {
            meter.add(50_000, 1_000, 500);
        }
        let half = Duration::from_millis(500);
        let interval = meter.take(half, half, 3);
        assert!((interval.kops - 2.0).abs() < 1e-9);
        assert!((interval.out_gbps - 0.016).abs() < 1e-9);
        assert!((interval.in_gbps - 0.008).abs() < 1e-9);
        assert!((interval.rtt_p50_us / 50.0 - 1.0).abs() < 2e-3);
        let next = meter.take(half, half, 0);
        assert!(next.kops.abs() < f64::EPSILON && next.mean_request_bytes.abs() < f64::EPSILON);
    }
}
