//! `homa server`: answers the RPCs of `homa ping` and `homa bench`.
//!
//! One thread a protocol; the main thread reports and waits for Ctrl-C.

#![allow(
    clippy::cast_precision_loss,
    reason = "counts become rates, far below 2^53"
)]

use std::io::{self, BufRead, IsTerminal, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use clap::Args;
use homa_bench::error::BenchError;
use homa_bench::homa;
use homa_bench::host::process_cpu_time;
use homa_bench::stop::Stop;
use homa_bench::tcp;
use homa_bench::transport::{ServerCounters, ServerTotals};

use crate::homa_options::{HomaArguments, LinkArgument, show_settings};
use crate::interrupt::stop_on_signals;
use crate::target::{
    DEFAULT_POLL_US, EXIT_FAILED, Protocol, Protocols, fail, listen_address, microseconds,
    positive_seconds,
};

const EXAMPLES: &str = "\
Examples:
  homa server
      Echoes on UDP port 4000 of every IPv4 address, over Homa.
  homa server --protocol both
      Over TCP too, on TCP port 4000: for `homa bench --protocol both`.
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

    /// Protocols to serve. Both on the same port do not collide, as Homa is
    /// carried by UDP.
    #[arg(long, value_enum, default_value = "homa")]
    protocol: Protocols,

    /// Report on stderr every SECS seconds. Default: every second with
    /// traffic if stderr is a terminal, else never.
    #[arg(short = 'i', long, value_name = "SECS", value_parser = positive_seconds)]
    interval: Option<Duration>,

    /// Look for requests without sleeping for this many microseconds after
    /// the last one. 0 saves processor time, and costs latency: waking a
    /// sleeping thread takes 45 to 100 us on many machines.
    #[arg(long, value_name = "US", default_value = DEFAULT_POLL_US, value_parser = microseconds)]
    poll: Duration,

    /// TCP: congestion control, such as cubic. Default: the system's.
    #[arg(long, value_name = "NAME")]
    tcp_congestion: Option<String>,

    /// JSON lines on stdout instead of text: `listening`, `interval`, `total`.
    #[arg(long)]
    json: bool,

    /// Stop when standard input ends, and say the totals for each line that
    /// comes before: for programs that start a server.
    #[arg(long)]
    until_stdin_closes: bool,

    #[command(flatten)]
    homa: HomaArguments,

    #[command(flatten)]
    link: LinkArgument,
}

struct Service {
    address: SocketAddr,
    tally: Tally,
    thread: JoinHandle<Result<(), BenchError>>,
}

/// What a service counts, to be read from any thread.
#[derive(Clone)]
struct Tally {
    protocol: &'static str,
    begin: Instant,
    counters: Arc<ServerCounters>,
    /// Those of the protocol and of what is below it, by name.
    protocol_counters: Arc<dyn Fn() -> Vec<(String, u64)> + Send + Sync>,
}

/// Runs until a signal or a failure.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    if arguments.homa.settings {
        return show_settings(&arguments.homa, arguments.link.link_gbps);
    }
    match serve(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(EXIT_FAILED, error),
    }
}

fn serve(arguments: &Arguments) -> Result<(), BenchError> {
    let stop = stop_on_signals().map_err(BenchError::system("signal handlers"))?;
    let mut services = Vec::new();
    for &protocol in arguments.protocol.list() {
        services.push(bind(arguments, protocol)?);
    }
    let services: Vec<Service> = services.into_iter().map(|bound| bound(&stop)).collect();
    let voice = Voice {
        json: arguments.json,
    };
    if arguments.until_stdin_closes {
        let tallies = services
            .iter()
            .map(|service| service.tally.clone())
            .collect();
        obey_input(voice, tallies, &stop);
    }
    for service in &services {
        voice.listening(service);
    }
    let watched = io::stderr().is_terminal();
    let every = arguments.interval.unwrap_or(Duration::from_secs(1));
    let begin = Instant::now();
    let mut last: Vec<ServerTotals> = services.iter().map(|s| s.tally.counters.totals()).collect();
    let mut due = begin + every;
    while !stop.requested() && services.iter().all(|service| !service.thread.is_finished()) {
        // Short, so that Ctrl-C is heard soon.
        thread::sleep(
            due.saturating_duration_since(Instant::now())
                .min(Duration::from_millis(100)),
        );
        if Instant::now() < due {
            continue;
        }
        for (service, last) in services.iter().zip(&mut last) {
            let now = service.tally.counters.totals();
            if arguments.interval.is_some() || (watched && now != *last) {
                voice.interval(service, begin.elapsed(), every, &now, last);
            }
            *last = now;
        }
        due += every;
    }
    stop.request();
    let mut result = Ok(());
    for service in services {
        voice.total(&service.tally);
        let ended = service
            .thread
            .join()
            .unwrap_or_else(|_| Err(BenchError::Transport("the server's thread panicked".into())));
        result = result.and(ended);
    }
    result
}

/// A server that has its port; starts when it is called.
type Bound = Box<dyn FnOnce(&Stop) -> Service>;

fn bind(arguments: &Arguments, protocol: Protocol) -> Result<Bound, BenchError> {
    let spin = arguments.poll;
    Ok(match protocol {
        Protocol::Homa => {
            let options = arguments.homa.options(arguments.link.link_gbps);
            let mut server = homa::Server::bind(arguments.listen, &options)?;
            let address = server.local_address();
            let tally = Tally {
                protocol: "homa",
                begin: Instant::now(),
                counters: server.counters(),
                protocol_counters: Arc::new(server.protocol_counters()),
            };
            Box::new(move |stop| {
                let stop = stop.clone();
                Service {
                    address,
                    tally,
                    thread: thread::spawn(move || server.run(spin, &stop)),
                }
            })
        }
        Protocol::Tcp => {
            let congestion = arguments.tcp_congestion.clone().into();
            let mut server = tcp::Server::bind(arguments.listen, &congestion)?;
            let address = server.local_address()?;
            let tally = Tally {
                protocol: "tcp",
                begin: Instant::now(),
                counters: server.counters(),
                protocol_counters: Arc::new(Vec::new),
            };
            Box::new(move |stop| {
                let stop = stop.clone();
                Service {
                    address,
                    tally,
                    thread: thread::spawn(move || server.run(spin, &stop)),
                }
            })
        }
    })
}

/// Says the totals for each line of input, and stops at its end. The thread is
/// not waited for: it may read for ever.
fn obey_input(voice: Voice, tallies: Vec<Tally>, stop: &Stop) {
    let stop = stop.clone();
    thread::spawn(move || {
        for _ in io::stdin().lock().lines().map_while(Result::ok) {
            for tally in &tallies {
                voice.total(tally);
            }
        }
        stop.request();
    });
}

/// How the server speaks; a closed stdout does not stop it.
#[derive(Clone, Copy)]
struct Voice {
    json: bool,
}

impl Voice {
    fn listening(self, service: &Service) {
        let (protocol, address) = (service.tally.protocol, service.address);
        if self.json {
            say(&serde_json::json!({
                "event": "listening", "schema_version": 1,
                "protocol": protocol, "address": address.to_string(),
            }));
        } else {
            say(&format!(
                "homa server: {protocol} on {address}; Ctrl-C stops"
            ));
        }
    }

    fn interval(
        self,
        service: &Service,
        at: Duration,
        length: Duration,
        now: &ServerTotals,
        last: &ServerTotals,
    ) {
        let per_s = |now: u64, last: u64| (now - last) as f64 / length.as_secs_f64();
        let kops = per_s(now.requests, last.requests) / 1e3;
        let in_gbps = per_s(now.request_bytes, last.request_bytes) * 8.0 / 1e9;
        let out_gbps = per_s(now.response_bytes, last.response_bytes) * 8.0 / 1e9;
        if self.json {
            say(&serde_json::json!({
                "event": "interval", "protocol": service.tally.protocol, "at_s": at.as_secs_f64(),
                "kops": kops, "in_gbps": in_gbps, "out_gbps": out_gbps,
            }));
        } else {
            let _ = writeln!(
                io::stderr(),
                "{} {:6.1} s: {kops:8.2} Kops/s, {in_gbps:7.3} Gbit/s in, {out_gbps:7.3} Gbit/s out",
                service.tally.protocol,
                at.as_secs_f64(),
            );
        }
    }

    fn total(self, tally: &Tally) {
        let totals = tally.counters.totals();
        let counters = (tally.protocol_counters)();
        if self.json {
            let counters: serde_json::Map<String, serde_json::Value> = counters
                .into_iter()
                .map(|(name, value)| (name, value.into()))
                .collect();
            say(&serde_json::json!({
                "event": "total", "protocol": tally.protocol,
                "at_s": tally.begin.elapsed().as_secs_f64(),
                "cpu_us": process_cpu_time().map(|time| time.as_micros() as u64),
                "totals": totals, "counters": counters,
            }));
            return;
        }
        let again = counters
            .iter()
            .find(|(name, value)| name == "core.retransmitted_bytes" && *value > 0)
            .map_or_else(String::new, |(_, bytes)| {
                format!(", {bytes} B of them sent again")
            });
        let refused = if totals.refused > 0 {
            format!(
                ", {} turned away (malformed, or too many connections)",
                totals.refused
            )
        } else {
            String::new()
        };
        say(&format!(
            "homa server: {}: {} requests answered in {:.1} s, {} B in, {} B out{again}{refused}",
            tally.protocol,
            totals.requests,
            tally.begin.elapsed().as_secs_f64(),
            totals.request_bytes,
            totals.response_bytes,
        ));
    }
}

/// One line on stdout, at once: scripts wait for it.
fn say(line: &dyn std::fmt::Display) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}
