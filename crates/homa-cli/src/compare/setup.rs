//! Everything that decides a comparison, derived from the options.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use homa_bench::message::MIN_REQUEST_BYTES;
use homa_bench::node::talk::Plan;
use homa_bench::workload::Workload;
use homa_testbed::{Network, Options, Switch};

use super::arguments::Arguments;
use super::hosts::Scheduling;
use super::rows::{Row, rows};

/// What a packet takes on the wire besides the payload of a message: Ethernet
/// with preamble and gap (38), IPv4 (20), UDP (8), the header of DATA (56). TCP
/// takes less (90 with time stamps); the load is computed once, for all rows.
const PACKET_OVERHEAD: u32 = 38 + 20 + 8 + 56;
/// Of these, what counts towards the MTU.
const IN_MTU: u32 = 20 + 8 + 56;

/// Requests and responses of each size of the unloaded baseline.
const UNLOADED_RPCS: usize = 60;
/// The port of every host; TCP's urgent class has the next one.
const PORT: u16 = 4000;
/// Start and end of the hosts of a turn, and its baseline, about.
const TURN_OVERHEAD: Duration = Duration::from_millis(1200);

/// See the module.
pub(super) struct Setup {
    pub(super) rows: Vec<Row>,
    pub(super) hosts: usize,
    pub(super) rate_bps: u64,
    pub(super) buffer_bytes: u32,
    pub(super) mtu: u32,
    /// Fraction of a port's rate.
    pub(super) load: f64,
    /// As the user named them, for the hosts.
    pub(super) workload_name: String,
    pub(super) workload: Workload,
    pub(super) max_message: u32,
    /// Requests of each host, 1/s.
    pub(super) rpcs_per_s: f64,
    pub(super) seed: u64,
    pub(super) rounds: u32,
    pub(super) warmup: Duration,
    pub(super) duration: Duration,
    pub(super) drain: Duration,
    pub(super) scheduling: Scheduling,
    pub(super) command: String,
}

impl Setup {
    /// Derives it, or says what is wrong.
    pub(super) fn new(arguments: &Arguments) -> Result<Self, String> {
        if arguments.load > 0.95 {
            return Err(format!(
                "a load of {} leaves nothing for grants, acknowledgements and chance: give at most 0.95",
                arguments.load
            ));
        }
        let rate_bps = (arguments.rate * 1e9) as u64;
        let workload = Workload::parse(&arguments.workload)
            .map_err(|error| error.to_string())?
            .clamped(MIN_REQUEST_BYTES, arguments.max_message);
        // A port carries requests to its host, and the responses to it.
        let wire_bytes = 2.0 * mean_wire_bytes(&workload, arguments.mtu);
        let rpcs_per_s = arguments.load * rate_bps as f64 / (8.0 * wire_bytes);
        Ok(Self {
            rows: rows(arguments, rate_bps),
            hosts: arguments.hosts.into(),
            rate_bps,
            buffer_bytes: arguments.buffer,
            mtu: arguments.mtu,
            load: arguments.load,
            workload_name: arguments.workload.clone(),
            workload,
            max_message: arguments.max_message,
            rpcs_per_s,
            seed: arguments.seed,
            rounds: arguments.rounds.get(),
            warmup: arguments.warmup,
            duration: arguments.duration,
            drain: arguments.drain,
            scheduling: Scheduling::find(arguments.no_realtime),
            command: std::env::args().collect::<Vec<_>>().join(" "),
        })
    }

    /// The testbed.
    pub(super) fn network(&self) -> Options {
        Options {
            hosts: self.hosts,
            mtu: self.mtu,
            network: Network::Switch(Switch {
                rate_bps: self.rate_bps,
                buffer_bytes: self.buffer_bytes,
                ..Switch::default()
            }),
        }
    }

    /// What one host shall do. All rows of a round have the same seeds.
    pub(super) fn plan(&self, row: &Row, round: u32, host: usize, addresses: &[IpAddr]) -> Plan {
        let all = |ip: &IpAddr| SocketAddr::new(*ip, PORT);
        let peers = addresses.iter().enumerate();
        let ms = |time: Duration| time.as_millis() as u64;
        Plan {
            carrier: row.carrier.clone(),
            listen: addresses
                .get(host)
                .map_or_else(|| all(&IpAddr::from([0; 4])), all),
            peers: peers
                .filter(|(index, _)| *index != host)
                .map(|(_, ip)| all(ip))
                .collect(),
            workload: self.workload_name.clone(),
            max_message: self.max_message,
            rpcs_per_s: self.rpcs_per_s,
            warmup_ms: ms(self.warmup),
            duration_ms: ms(self.duration),
            drain_ms: ms(self.drain),
            seed: self.seed_of(round, host),
            unloaded_rpcs: UNLOADED_RPCS,
        }
    }

    fn seed_of(&self, round: u32, host: usize) -> u64 {
        self.seed
            .wrapping_mul(1_000_003)
            .wrapping_add(u64::from(round) * 1_000 + host as u64)
    }

    /// How long it will take, about.
    pub(super) fn expected_time(&self) -> Duration {
        let turns = self.rows.len() as u32 * self.rounds;
        (self.warmup + self.duration + TURN_OVERHEAD) * turns
    }
}

/// Mean bytes on the wire of one message.
fn mean_wire_bytes(workload: &Workload, mtu: u32) -> f64 {
    let mut below = 0.0;
    let mut mean = 0.0;
    for point in workload.points() {
        let packets = point.size_bytes.div_ceil(mtu - IN_MTU);
        let bytes = f64::from(point.size_bytes) + f64::from(packets) * f64::from(PACKET_OVERHEAD);
        mean += (point.cumulative - below) * bytes;
        below = point.cumulative;
    }
    mean
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn mean_wire_bytes__of_one_packet_and_of_many() {
        let fixed = |bytes| Workload::fixed(bytes).unwrap();
        assert!((mean_wire_bytes(&fixed(100), 1500) - 222.0).abs() < 1e-9);
        // 1416 bytes fit into a packet, 1417 do not.
        assert!((mean_wire_bytes(&fixed(1416), 1500) - 1538.0).abs() < 1e-9);
        assert!((mean_wire_bytes(&fixed(1417), 1500) - 1661.0).abs() < 1e-9);
        let both = Workload::from_csv("t", "100,0.5\n1416,1\n").unwrap();
        assert!((mean_wire_bytes(&both, 1500) - 880.0).abs() < 1e-9);
    }
}
