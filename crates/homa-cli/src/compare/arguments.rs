//! The options of `homa compare`.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use homa_bench::workload::{Workload, parse_size};

use crate::target::{positive_number, positive_seconds, request_size, seconds};

const EXAMPLES: &str = "\
Examples:
  homa compare
      Four hosts, W4 at 80 % of 400 Mbit/s ports with 256 KiB of buffer: TCP, TCP with priority by
      size, Homa, and Homa without priorities. A table here, and the pictures in homa-compare.html.
  homa compare --workload w2 --load 0.5 --json w2.json
      Another workload and load, and everything that was measured as JSON.
  homa compare --buffer 1m --cc bbr
      More buffer, and another congestion control.

The hosts are network namespaces of this machine; nothing outside of them is touched, and all is \
gone when the command ends, however it ends. It needs root, or a system that lets users have user \
namespaces, and the programs ip, bridge and tc.

The defaults are fixed so that nobody tunes the ratio: change the situation (buffer, load, \
workload), not the transports. TCP is as good as an operator can make it: TCP_NODELAY, up to 32 \
connections to each peer with an idle one first, no slow start after idle, and in a row of its own \
short messages in the highest class of the switch.

Latency counts from when a request was due. An RPC that has not ended by the end of the drain is \
infinitely slow. With a buffer that TCP fills, TCP's tail is about buffer / rate: the buffer alone \
moves the ratio, so it is printed with it.

Exit status: 0 compared, 1 failed or the network was not loaded (then the numbers say nothing), 2 \
bad usage or something is missing on this machine, 130 interrupted.";

/// Homa beside TCP, with the same requests on the same emulated network.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
#[command(after_help = "Try --help for examples, and for what is measured.")]
pub(crate) struct Arguments {
    /// Hosts, which all call each other.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(2..=64))]
    pub(super) hosts: u8,

    /// Rate of each port of the switch, in Gbit/s.
    #[arg(long, value_name = "GBPS", default_value = "0.4", value_parser = positive_number)]
    pub(super) rate: f64,

    /// Buffer of each queue of a port, in bytes (256Ki, 512Ki, 1m).
    #[arg(long, value_name = "SIZE", default_value = "256Ki", value_parser = buffer)]
    pub(super) buffer: u32,

    /// Largest IP packet, in bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 9000, value_parser = clap::value_parser!(u32).range(1280..=65_535))]
    pub(super) mtu: u32,

    /// Load offered to each port, headers included, as a fraction of its rate.
    #[arg(long, value_name = "FRACTION", default_value = "0.8", value_parser = positive_number)]
    pub(super) load: f64,

    /// Sizes of messages: w1 to w5, a CSV file, or one size. Responses are
    /// echoes.
    #[arg(long, value_name = "NAME|FILE|SIZE", default_value = "w4", value_parser = workload)]
    pub(super) workload: String,

    /// Longer messages are cut to this length.
    #[arg(long, value_name = "SIZE", default_value = "1000000", value_parser = request_size)]
    pub(super) max_message: u32,

    /// Congestion control of TCP.
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    pub(super) cc: String,

    /// What carries Homa packets.
    #[arg(long, value_enum, default_value = "udp")]
    pub(super) datapath: Carrier,

    /// Decides sizes, gaps and destinations, the same for every row.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,

    /// Rounds; in each, every row has a turn.
    #[arg(long, value_name = "N", default_value = "3")]
    pub(super) rounds: NonZeroU32,

    /// Length of the measurement in each turn.
    #[arg(short = 't', long, value_name = "SECS", default_value = "7", value_parser = positive_seconds)]
    pub(super) duration: Duration,

    /// Load before it that is not counted.
    #[arg(long, value_name = "SECS", default_value = "1.5", value_parser = seconds)]
    pub(super) warmup: Duration,

    /// How long RPCs may end after it.
    #[arg(long, value_name = "SECS", default_value = "2", value_parser = seconds)]
    pub(super) drain: Duration,

    /// Do not ask for real-time scheduling of the hosts.
    #[arg(long)]
    pub(super) no_realtime: bool,

    /// Everything that was measured, as JSON.
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,

    /// The page with pictures; `none` for none.
    #[arg(long, value_name = "FILE|none", default_value = "homa-compare.html")]
    report: PathBuf,

    /// TCP in Homa's place: whatever differs then is not the transport.
    #[arg(long)]
    pub(super) tcp_against_itself: bool,
}

impl Arguments {
    /// Where the page goes.
    pub(super) fn report(&self) -> Option<&Path> {
        Some(&*self.report).filter(|path| path.as_os_str() != "none")
    }
}

/// What carries Homa packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Carrier {
    /// UDP datagrams.
    Udp,
    /// IP protocol 146.
    Raw,
}

/// A size, with `Ki` and `Mi` for powers of two too.
fn buffer(text: &str) -> Result<u32, String> {
    let binary = |suffix: &str, factor: u64| {
        let number = text.strip_suffix(suffix)?.parse::<u64>().ok()?;
        number.checked_mul(factor)
    };
    binary("Ki", 1 << 10)
        .or_else(|| binary("Mi", 1 << 20))
        .or_else(|| parse_size(&text.to_ascii_lowercase()))
        .and_then(|bytes| u32::try_from(bytes).ok())
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "give a size, such as 256Ki, 500k or 1m".into())
}

/// Only checked here: every host reads it again.
fn workload(text: &str) -> Result<String, String> {
    Workload::parse(text)
        .map(|_| text.to_owned())
        .map_err(|error| error.to_string())
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn buffer__binary_and_decimal() {
        assert_eq!(buffer("256Ki"), Ok(262_144));
        assert_eq!(buffer("1Mi"), Ok(1_048_576));
        assert_eq!(buffer("1m"), Ok(1_000_000));
        assert_eq!(buffer("4096"), Ok(4096));
        for bad in ["", "0", "Ki", "-1", "99999999Mi", "x"] {
            assert!(buffer(bad).is_err(), "{bad}");
        }
    }
}
