//! The options of `homa bench`.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use homa_bench::message::ResponseSize;
use homa_bench::run;
use homa_bench::workload::Workload;

use crate::homa_options::HomaArguments;
use crate::target::{
    DEFAULT_POLL_US, Protocol, Protocols, microseconds, positive_number, positive_seconds,
    request_size, response_size, seconds,
};

const EXAMPLES: &str = "\
Examples on one machine:
  homa bench --local
      Starts a server, and compares Homa and TCP: latency of short RPCs, throughput of long ones,
      rate of many.
  homa bench --local --workload w4 --gbps 1 -t 10
      The same with Hadoop's message sizes, Poisson arrivals, 1 Gbit/s of requests, 10 s for each.

Examples with `homa server --protocol both` on 10.0.0.2:
  homa bench 10.0.0.2
      Latency, throughput and rate of Homa.
  homa bench 10.0.0.2 --workload w4 --gbps 2 -t 30 --protocol both
      Homa and TCP in turn, the same requests for both, one table.
  homa bench 10.0.0.2 --workload w4 --gbps 2 -t 30 --json=homa.json
      Homa alone, with slowdowns; the report also as JSON.
  homa bench 10.0.0.2,10.0.0.3:5000 --workload sizes.csv --rate 20k --seed 7
      Own sizes (lines `size_bytes,cumulative_fraction`), two servers.
  homa bench 10.0.0.2 --workload 1m --outstanding 8
      Eight RPCs of 1 MB at any time.

Workloads: w1 (memcached), w2 (search), w3 (a datacenter), w4 (Hadoop), w5 (web search), starve, a \
CSV file, or one size in bytes. Requests are at least 8 bytes long and cut at --max-message.

Load: --gbps counts the bytes of requests only, no headers and no responses; echoes make as much \
again in the other direction. Arrivals do not wait for responses; latency counts from when a \
request was due, so it includes the time a request waits in an overloaded client. The round trip \
from the send is reported too.

Comparisons (--protocol both) go in rounds: in each round every protocol has its turn with the \
same requests, with a client of its own, in an order that alternates. So a machine that gets \
slower meanwhile does so for both.

Slowdown A is latency / (B + 8 x length / link rate) with the constants of --ideal-base-us and \
--link-gbps: comparable with published Homa/Linux results if these fit your network. Slowdown B is \
latency / the median measured just before without load. RPCs that never finished count as \
infinite; percentiles of too few samples are shown as -.

Exit status: 0 complete, 1 failed, or some RPCs did not finish, 2 bad usage, 130 interrupted \
(Ctrl-C or SIGTERM: what was measured so far is printed; a second one ends at once).";

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Mode {
    /// Latency, throughput and rate, one after the other.
    Basic,
    /// One RPC of 100 B at a time.
    Latency,
    /// 8 RPCs of 500 kB outstanding.
    Throughput,
    /// 64 RPCs of 100 B outstanding.
    Rate,
    /// A workload at a load: needs --gbps, --rate or --outstanding.
    Workload,
}

/// Measure latency, throughput and slowdown against `homa server`.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
#[command(after_help = "Try --help for examples, and for what is measured.")]
pub(crate) struct Arguments {
    /// Servers: HOST or HOST:PORT (default port 4000), several with commas.
    #[arg(value_name = "HOST[:PORT],...", conflicts_with = "local")]
    servers: Option<String>,

    /// Start a server on this machine for the time of the run, and measure
    /// over loopback; with --protocol both unless asked otherwise.
    #[arg(long)]
    pub(super) local: bool,

    /// What is measured. Default: `workload` if a workload or a load is
    /// given, else `basic`.
    #[arg(long, value_enum)]
    pub(super) mode: Option<Mode>,

    /// Message sizes: w1 to w5, starve, a CSV file, or a size (100, 64k, 1m).
    /// Default: w4, or the size of the mode.
    #[arg(long, value_name = "NAME|FILE|SIZE", value_parser = workload)]
    pub(super) workload: Option<Workload>,

    /// Open loop with Poisson arrivals: Gbit/s of request payload.
    #[arg(long, value_name = "GBPS", value_parser = positive_number, group = "load")]
    pub(super) gbps: Option<f64>,

    /// Open loop with Poisson arrivals: RPCs a second (20000, 20k).
    #[arg(long, value_name = "RPCS", value_parser = positive_number, group = "load")]
    pub(super) rate: Option<f64>,

    /// Closed loop: this many RPCs outstanding at any time.
    #[arg(long, value_name = "N", group = "load")]
    pub(super) outstanding: Option<NonZeroUsize>,

    /// Protocol. Default: homa, and both with --local.
    #[arg(long, value_enum)]
    protocol: Option<Protocols>,

    /// Length of the measurement, for each protocol. Default: 10, and 3 for
    /// each of the basics.
    #[arg(short = 't', long = "duration", value_name = "SECS", value_parser = positive_seconds)]
    pub(super) duration: Option<Duration>,

    /// Comparisons: rounds that the duration is cut into.
    #[arg(long, value_name = "N", default_value = "5")]
    pub(super) rounds: NonZeroU32,

    /// Load before the measurement that is not counted. Default: 2, and 1 for
    /// the basics; comparisons: 0.5 in each round, and 0.2.
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub(super) warmup: Option<Duration>,

    /// How long RPCs may end after the measurement before they count as
    /// unfinished.
    #[arg(long, value_name = "SECS", default_value = "2", value_parser = seconds)]
    pub(super) drain: Duration,

    /// Decides sizes, gaps and destinations: the same seed gives the same
    /// requests.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,

    /// Length of responses: `echo`, or bytes.
    #[arg(long, value_name = "echo|SIZE", default_value = "echo", value_parser = response_size)]
    pub(super) response_size: ResponseSize,

    /// Longer messages of a workload are cut to this length.
    #[arg(long, value_name = "SIZE", default_value = "1000000", value_parser = request_size)]
    pub(super) max_message: u32,

    /// Thin the sizes of a workload out as HomaModule's cp_node does: keep a
    /// size if it adds 0.25 % of messages or the next is 1.2 times longer.
    #[arg(long)]
    pub(super) thin: bool,

    /// Open loop: RPCs outstanding at most; what has to wait is counted.
    #[arg(long, value_name = "N", default_value_t = run::DEFAULT_CLIENT_MAX)]
    pub(super) client_max: NonZeroUsize,

    /// RPCs for each size of the unloaded baseline; 0: none, and no slowdown
    /// B. Default: 200 for workloads, else 0. Not in comparisons.
    #[arg(long, value_name = "N")]
    pub(super) unloaded: Option<usize>,

    /// B of slowdown A, in us.
    #[arg(long, value_name = "US", default_value = "15", value_parser = positive_number)]
    pub(super) ideal_base_us: f64,

    /// Rate of this host's link in Gbit/s. Homa's DATA is paced to it and its
    /// limits fit it (default: not known, not paced); slowdown A counts with
    /// it (default: 25).
    #[arg(long, value_name = "GBPS", value_parser = positive_number)]
    pub(super) link_gbps: Option<f64>,

    /// Compare every byte of every response.
    #[arg(long)]
    pub(super) verify: bool,

    /// Look for events without sleeping for this many microseconds after the
    /// last one, and before a request is due; the server has the same option.
    /// 0 saves processor time and adds the cost of waking up to latencies.
    #[arg(long, value_name = "US", default_value = DEFAULT_POLL_US, value_parser = microseconds)]
    pub(super) poll: Duration,

    /// Give up if RPCs are outstanding and none ends for this long.
    #[arg(long, value_name = "SECS", default_value = "10", value_parser = positive_seconds)]
    pub(super) silence: Duration,

    /// A progress line on stderr every SECS seconds. Default: every second if
    /// stderr is a terminal, else none.
    #[arg(short = 'i', long, value_name = "SECS", value_parser = positive_seconds)]
    pub(super) interval: Option<Duration>,

    /// The report as JSON: on stdout instead of the table, or with =FILE in a
    /// file besides the table. An array with --mode basic, else an object; one
    /// object with all reports for a comparison.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub(super) json: Option<PathBuf>,

    /// Connections to each server at most.
    #[arg(long, value_name = "N", default_value_t = homa_bench::tcp::DEFAULT_CONNECTIONS, help_heading = "TCP")]
    pub(super) tcp_connections: NonZeroUsize,

    /// Congestion control, such as cubic. Default: the system's.
    #[arg(long, value_name = "NAME", help_heading = "TCP")]
    pub(super) tcp_congestion: Option<String>,

    #[command(flatten)]
    pub(super) homa: HomaArguments,
}

impl Arguments {
    /// What carries the RPCs, in the order of the first round.
    pub(super) fn protocols(&self) -> &'static [Protocol] {
        let default = if self.local {
            Protocols::Both
        } else {
            Protocols::Homa
        };
        self.protocol.unwrap_or(default).list()
    }

    /// The servers as given; none with `--local`.
    pub(super) fn servers(&self) -> Result<Option<&str>, &'static str> {
        match &self.servers {
            Some(list) => Ok(Some(list)),
            None if !self.local => Err(
                "which server? Give HOST, on which `homa server` runs, or --local to start one here (--help has examples)",
            ),
            None if self.homa.is_alone_in_its_namespace() => Err(
                "--local has both ends in one network namespace, where raw IP has room for one endpoint: start `homa server --datapath raw` on another host or in another namespace",
            ),
            None => Ok(None),
        }
    }

    /// Whether JSON takes the place of the text.
    pub(super) fn json_on_stdout(&self) -> bool {
        self.json
            .as_ref()
            .is_some_and(|path| path.as_os_str() == "-")
    }
}

/// A workload by name, file or size.
pub(super) fn workload(text: &str) -> Result<Workload, String> {
    Workload::parse(text).map_err(|error| error.to_string())
}
