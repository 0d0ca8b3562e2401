//! How late the engine's own timers are, and so how far ahead of the NIC it
//! must send to keep the link busy (`docs/protocol.md` §6).

use homa_core::{Config, Endpoint, MILLISECOND_NS, SECOND_NS};

/// Sending ahead for less than this is not worth a timer.
const LEAST_BACKLOG_NS: u64 = 5_000;
/// A full Ethernet frame with all that is around it.
const FRAME_BITS: u64 = 8 * 1538;

pub(crate) struct Lateness {
    ns: u64,
    /// The lateness that the core was last told.
    told_ns: u64,
    /// `None`: nothing is paced, or the user insists on a backlog.
    link_rate_bps: Option<u64>,
}

impl Lateness {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            ns: config.timer_lateness_ns,
            told_ns: config.timer_lateness_ns,
            link_rate_bps: match config.max_nic_backlog_ns {
                None => config.link_rate_bps,
                Some(_) => None,
            },
        }
    }

    pub(crate) fn ns(&self) -> u64 {
        self.ns
    }

    /// A timer fired so late. The estimate rises at once and falls slowly: what
    /// happened lately will happen again.
    pub(crate) fn observe(&mut self, late_ns: u64, core: &mut Endpoint) {
        self.ns = late_ns.max(self.ns - self.ns / 16);
        if let Some(rate) = self.link_rate_bps
            && self.ns.abs_diff(self.told_ns) * 4 > self.told_ns
        {
            self.told_ns = self.ns;
            core.set_max_nic_backlog_ns(backlog_ns(rate, self.ns));
        }
    }
}

/// max(5 µs, two packets, twice the lateness), at most 1 ms.
fn backlog_ns(rate_bps: u64, late_ns: u64) -> u64 {
    let two_packets = 2 * FRAME_BITS * SECOND_NS / rate_bps.max(1);
    LEAST_BACKLOG_NS
        .max(two_packets)
        .max(2 * late_ns)
        .min(MILLISECOND_NS)
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use homa_core::Identity;

    use super::*;

    #[test]
    fn backlog_ns__within_its_bounds() {
        assert_eq!(backlog_ns(100_000_000_000, 0), 5_000);
        assert_eq!(backlog_ns(1_000_000_000, 0), 24_608);
        assert_eq!(backlog_ns(10_000_000_000, 60_000), 120_000);
        assert_eq!(backlog_ns(1_000_000, 0), 1_000_000);
    }

    #[test]
    fn observe__rises_at_once_and_falls_slowly() {
        let config = Config {
            link_rate_bps: Some(10_000_000_000),
            max_rpcs: 16,
            max_peers: 16,
            ..Config::default()
        };
        let identity = Identity {
            first_id: 2,
            instance: 1,
            hash_seed: 1,
        };
        let mut core = Endpoint::new(config.settings().unwrap(), identity);
        let mut lateness = Lateness::new(&config);
        lateness.observe(100_000, &mut core);
        assert_eq!(core.settings().max_nic_backlog_ns, 200_000);
        lateness.observe(1_000, &mut core);
        assert_eq!(core.settings().max_nic_backlog_ns, 200_000);
        for _ in 0..100 {
            lateness.observe(1_000, &mut core);
        }
        assert!(core.settings().max_nic_backlog_ns < 6_000);
    }
}
