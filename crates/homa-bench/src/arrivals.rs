//! When requests are due, how long they are and where they go.
//!
//! Open loop: gaps between requests are exponential (a Poisson process) and do
//! not depend on what the server does; each request has its intended moment.
//! Closed loop: a request is due as soon as another has finished. Owns the
//! random numbers of a run; the same seed gives the same requests.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use crate::transport::PeerIndex;
use crate::workload::Workload;

/// How requests follow each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// Poisson arrivals at this many RPCs a second, whatever the server does.
    Open {
        /// Mean rate in RPCs a second, above 0.
        rpcs_per_s: f64,
    },
    /// Always this many RPCs outstanding.
    Closed {
        /// How many.
        outstanding: NonZeroUsize,
    },
}

impl Load {
    /// Open loop at `gbps` Gbit/s of request payload (headers and responses
    /// not counted) for messages of `workload`.
    pub fn open_gbps(gbps: f64, workload: &Workload) -> Self {
        Self::Open {
            rpcs_per_s: gbps * 1e9 / 8.0 / workload.mean_bytes(),
        }
    }
}

/// One request that is due.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    /// When it should start.
    pub intended: Instant,
    /// Length of the request in bytes.
    pub size_bytes: u32,
    /// Which server gets it.
    pub peer: PeerIndex,
}

/// An endless row of requests.
#[derive(Debug)]
pub struct Arrivals {
    rng: Pcg64Mcg,
    workload: Workload,
    peers: NonZeroUsize,
    pace: Pace,
    next: Arrival,
}

#[derive(Debug)]
enum Pace {
    Poisson {
        start: Instant,
        at_s: f64,
        rpcs_per_s: f64,
    },
    Immediate,
}

impl Arrivals {
    /// The first request is due one random gap after `start` (open loop) or at
    /// `start` (closed loop). Destinations are uniform over `peers`.
    pub fn new(
        load: Load,
        workload: Workload,
        peers: NonZeroUsize,
        seed: u64,
        start: Instant,
    ) -> Self {
        let mut arrivals = Self {
            rng: Pcg64Mcg::seed_from_u64(seed),
            workload,
            peers,
            pace: match load {
                Load::Open { rpcs_per_s } => Pace::Poisson {
                    start,
                    at_s: 0.0,
                    rpcs_per_s,
                },
                Load::Closed { .. } => Pace::Immediate,
            },
            next: Arrival {
                intended: start,
                size_bytes: 0,
                peer: PeerIndex(0),
            },
        };
        arrivals.next = arrivals.draw();
        arrivals
    }

    fn draw(&mut self) -> Arrival {
        let intended = match &mut self.pace {
            Pace::Poisson {
                start,
                at_s,
                rpcs_per_s,
            } => {
                // 1 - u is in (0, 1], so the logarithm is finite.
                let u: f64 = self.rng.random();
                *at_s += -(1.0 - u).ln() / *rpcs_per_s;
                // Ten years: an absurdly low rate must not overflow the clock.
                *start + Duration::from_secs_f64(at_s.min(3e8))
            }
            Pace::Immediate => self.next.intended,
        };
        Arrival {
            intended,
            size_bytes: self.workload.sample(&mut self.rng),
            peer: PeerIndex(self.rng.random_range(0..self.peers.get())),
        }
    }

    /// The next request, without taking it. In a closed loop its intended
    /// moment is in the past: it is due whenever there is room.
    pub fn peek(&self) -> &Arrival {
        &self.next
    }

    /// Takes the next request.
    pub fn take(&mut self) -> Arrival {
        let next = self.draw();
        std::mem::replace(&mut self.next, next)
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    const FOUR: NonZeroUsize = NonZeroUsize::new(4).unwrap();

    fn open(rpcs_per_s: f64, seed: u64, start: Instant) -> Arrivals {
        let workload = Workload::parse("w2").unwrap();
        Arrivals::new(Load::Open { rpcs_per_s }, workload, FOUR, seed, start)
    }

    #[test]
    fn take__gaps_are_exponential() {
        const COUNT: usize = 50_000;
        let start = Instant::now();
        let mut arrivals = open(10_000.0, 3, start);
        let mut last = start;
        let mut gaps_s: Vec<f64> = (0..COUNT)
            .map(|_| {
                let intended = arrivals.take().intended;
                let gap = intended - last;
                last = intended;
                gap.as_secs_f64()
            })
            .collect();
        let mean = gaps_s.iter().sum::<f64>() / COUNT as f64;
        assert!((mean * 10_000.0 - 1.0).abs() < 0.03, "{mean}");
        gaps_s.sort_by(f64::total_cmp);
        // Median of an exponential distribution: ln 2; 95th percentile: 3.
        assert!((gaps_s[COUNT / 2] * 10_000.0 / 2_f64.ln() - 1.0).abs() < 0.05);
        assert!((gaps_s[COUNT * 95 / 100] * 10_000.0 / 20_f64.ln() - 1.0).abs() < 0.05);
    }

    #[test]
    fn take__destinations_are_uniform_and_repeatable() {
        let start = Instant::now();
        let (mut a, mut b) = (open(1e5, 9, start), open(1e5, 9, start));
        let mut counts = [0_u32; 4];
        for _ in 0..8_000 {
            let arrival = a.take();
            assert_eq!(arrival, b.take());
            counts[arrival.peer.0] += 1;
        }
        assert!(
            counts.iter().all(|&count| (1_800..2_200).contains(&count)),
            "{counts:?}"
        );
    }

    #[test]
    fn take__closed_loop_is_always_due() {
        let start = Instant::now();
        let outstanding = NonZeroUsize::MIN;
        let workload = Workload::parse("100").unwrap();
        let mut arrivals = Arrivals::new(Load::Closed { outstanding }, workload, FOUR, 1, start);
        assert!((0..100).all(|_| arrivals.take().intended == start));
    }

    #[test]
    fn open_gbps__divides_by_the_mean() {
        let workload = Workload::fixed(1_000).unwrap();
        assert_eq!(
            Load::open_gbps(8.0, &workload),
            Load::Open { rpcs_per_s: 1e6 }
        );
    }
}
