//! Who sends what to whom, and when: Poisson arrivals at every host, sizes
//! from a distribution, destinations uniform over the other hosts.

use homa_workload::Workload;
use rand::Rng;

use crate::packet::HostId;
use crate::random::{Purpose, Stream, exponential, stream};
use crate::time::{SECOND_PS, SimTime};
use crate::transport::Pattern;

/// What the hosts' applications do.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// Sizes of messages.
    pub workload: Workload,
    /// Payload that a host sends, in bits per second, not counting responses.
    pub payload_bps: f64,
    /// What a message is followed by.
    pub pattern: Pattern,
}

/// The messages of one host, one after another.
pub struct Arrivals {
    gaps: Stream,
    sizes: Stream,
    destinations: Stream,
    mean_gap_ps: f64,
    /// Time of the last message, before rounding.
    at_ps: f64,
    own: HostId,
    hosts: u16,
}

/// A message to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    /// To whom.
    pub to: HostId,
    /// How long it is.
    pub bytes: u32,
}

impl Arrivals {
    /// The messages of host `own`, of `hosts`.
    pub fn new(traffic: &Traffic, seed: u64, own: HostId, hosts: u16) -> Self {
        let place = u32::from(own.0);
        let per_second = traffic.payload_bps / 8.0 / traffic.workload.mean_bytes();
        Self {
            gaps: stream(seed, Purpose::Gaps, place),
            sizes: stream(seed, Purpose::Sizes, place),
            destinations: stream(seed, Purpose::Destinations, place),
            mean_gap_ps: SECOND_PS as f64 / per_second,
            at_ps: 0.0,
            own,
            hosts,
        }
    }

    /// When the next message starts.
    pub fn next_at(&mut self) -> SimTime {
        self.at_ps += exponential(&mut self.gaps) * self.mean_gap_ps;
        SimTime::from_ps(self.at_ps as u64)
    }

    /// What it is.
    pub fn draw(&mut self, workload: &Workload) -> Draw {
        let bytes = workload.sample(&mut self.sizes);
        let other = self.destinations.random_range(0..self.hosts - 1);
        Draw {
            to: HostId(other + u16::from(other >= self.own.0)),
            bytes,
        }
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn draw__offers_the_load_to_everybody_else() {
        let traffic = Traffic {
            workload: Workload::parse("w2").unwrap(),
            payload_bps: 8e9,
            pattern: Pattern::OneWay,
        };
        let mut arrivals = Arrivals::new(&traffic, 1, HostId(3), 8);
        let (mut at, mut bytes, mut counts) = (SimTime::ZERO, 0_u64, [0_u32; 8]);
        for _ in 0..400_000 {
            at = arrivals.next_at();
            let draw = arrivals.draw(&traffic.workload);
            bytes += u64::from(draw.bytes);
            counts[usize::from(draw.to.0)] += 1;
        }
        let bps = bytes as f64 * 8.0 / at.as_secs_f64();
        assert!((bps / 8e9 - 1.0).abs() < 0.05, "{bps}");
        assert_eq!(counts[3], 0);
        for (host, count) in counts.iter().enumerate().filter(|(host, _)| *host != 3) {
            assert!((56_000..58_500).contains(count), "{host}: {count}");
        }
    }
}
