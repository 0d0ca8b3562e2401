//! `homa server`: answers the RPCs of `homa ping` and `homa bench`.
//!
//! One thread a protocol; the main thread reports and waits for Ctrl-C.

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use clap::Args;
use homa_bench::error::BenchError;
use homa_bench::run::DEFAULT_SPIN;
use homa_bench::stop::Stop;
use homa_bench::tcp;
use homa_bench::transport::{ServerCounters, ServerTotals};

use crate::interrupt::stop_on_signals;
use crate::target::{EXIT_FAILED, Protocol, fail, listen_address, microseconds, positive_seconds};

const EXAMPLES: &str = "\
Examples:
  homa server
      Echoes on port 4000 of every IPv4 address.
  homa server --listen [::]:5000 -i 1
      On port 5000, IPv6 and IPv4, with a line on stderr every second.
  homa server --listen 127.0.0.1:0 --json
      On any free port; where, and what was served, as JSON lines on stdout.

A server answers each request with the request itself, or with as many bytes as the request asks \
for (--response-size of ping and bench). It serves any number of clients and ends on Ctrl-C with \
its totals.

Exit status: 0 stopped by Ctrl-C or SIGTERM, 1 failed, 2 bad usage.";

/// Answer the RPCs of `homa ping` and `homa bench`.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
#[command(after_help = "Try --help for examples.")]
pub(crate) struct Arguments {
    /// Where to listen: ADDR:PORT, ADDR, :PORT or PORT (0: any free port).
    #[arg(long, value_name = "ADDR:PORT", default_value = "0.0.0.0:4000", value_parser = listen_address)]
    listen: SocketAddr,

    /// Protocol to serve.
    #[arg(long, value_enum, default_value = "tcp")]
    protocol: Protocol,

    /// Report on stderr every SECS seconds. Default: every second with
    /// traffic if stderr is a terminal, else never.
    #[arg(short = 'i', long, value_name = "SECS", value_parser = positive_seconds)]
    interval: Option<Duration>,

    /// Look for requests without sleeping for this many microseconds after
    /// the last one. 0 saves processor time, and costs latency: waking a
    /// sleeping thread takes 45 to 100 us on many machines.
    #[arg(long, value_name = "US", default_value_t = DEFAULT_SPIN.as_micros().to_string(), value_parser = microseconds_text)]
    poll: String,

    /// JSON lines on stdout instead of text: `listening`, `interval`, `total`.
    #[arg(long)]
    json: bool,
}

fn microseconds_text(text: &str) -> Result<String, String> {
    microseconds(text).map(|_| text.to_owned())
}

struct Service {
    protocol: &'static str,
    address: SocketAddr,
    counters: Arc<ServerCounters>,
    thread: JoinHandle<Result<(), BenchError>>,
}
