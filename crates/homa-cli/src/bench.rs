//! `homa bench`: load, latency and slowdown against `homa server`.
//!
//! This file is the command line: it turns options into
//! [`homa_bench::run::Setup`]s, runs them and prints the reports. What is
//! measured and how is in `homa-bench`.

use std::io::{self, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use homa_bench::arrivals::Load;
use homa_bench::baseline::Ideal;
use homa_bench::error::BenchError;
use homa_bench::message::{MIN_REQUEST_BYTES, ResponseSize};
use homa_bench::progress::{Lines, Progress, Silent};
use homa_bench::report::Report;
use homa_bench::run::{self, MAX_RPCS_PER_S, Setup, Verify};
use homa_bench::stop::Stop;
use homa_bench::transport::Transport;
use homa_bench::workload::Workload;

use crate::interrupt::stop_on_signals;
use crate::target::{
    DEFAULT_POLL_US, EXIT_FAILED, EXIT_USAGE, Protocol, Reach, fail, microseconds, positive_number,
    positive_seconds, request_size, resolve, response_size, seconds,
};

const EXAMPLES: &str = "\
Examples (with `homa server` on 10.0.0.2):
  homa bench 10.0.0.2
      The basics: latency of short RPCs, throughput of long ones, rate of many.
  homa bench 10.0.0.2 --workload w4 --gbps 2 -t 30
      Hadoop's message sizes, Poisson arrivals, 2 Gbit/s of requests for 30 s.
  homa bench 10.0.0.2 --workload w4 --gbps 2 -t 30 --protocol tcp --json=tcp.json
      The same requests over TCP, the report also as JSON.
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

Slowdown A is latency / (B + 8 x length / link rate) with the constants of --ideal-base-us and \
--link-gbps: comparable with published Homa/Linux results if these fit your network. Slowdown B is \
latency / the median measured just before without load. RPCs that never finished count as \
infinite; percentiles of too few samples are shown as -.

Exit status: 0 complete, 1 failed, interrupted, or some RPCs did not finish, 2 bad usage.";

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
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
    #[arg(value_name = "HOST[:PORT],...")]
    servers: String,

    /// What is measured. Default: `workload` if a workload or a load is
    /// given, else `basic`.
    #[arg(long, value_enum)]
    mode: Option<Mode>,

    /// Message sizes: w1 to w5, starve, a CSV file, or a size (100, 64k, 1m).
    /// Default: w4, or the size of the mode.
    #[arg(long, value_name = "NAME|FILE|SIZE", value_parser = workload)]
    workload: Option<Workload>,

    /// Open loop with Poisson arrivals: Gbit/s of request payload.
    #[arg(long, value_name = "GBPS", value_parser = positive_number, group = "load")]
    gbps: Option<f64>,

    /// Open loop with Poisson arrivals: RPCs a second (20000, 20k).
    #[arg(long, value_name = "RPCS", value_parser = positive_number, group = "load")]
    rate: Option<f64>,

    /// Closed loop: this many RPCs outstanding at any time.
    #[arg(long, value_name = "N", group = "load")]
    outstanding: Option<NonZeroUsize>,

    /// Protocol.
    #[arg(long, value_enum, default_value = "tcp")]
    protocol: Protocol,

    /// Length of the measurement. Default: 10, and 3 for each of the basics.
    #[arg(short = 't', long = "duration", value_name = "SECS", value_parser = positive_seconds)]
    duration: Option<Duration>,

    /// Load before the measurement that is not counted. Default: 2, and 1 for
    /// the basics.
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    warmup: Option<Duration>,

    /// How long RPCs may end after the measurement before they count as
    /// unfinished.
    #[arg(long, value_name = "SECS", default_value = "2", value_parser = seconds)]
    drain: Duration,

    /// Decides sizes, gaps and destinations: the same seed gives the same
    /// requests.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Length of responses: `echo`, or bytes.
    #[arg(long, value_name = "echo|SIZE", default_value = "echo", value_parser = response_size)]
    response_size: ResponseSize,

    /// Longer messages of a workload are cut to this length.
    #[arg(long, value_name = "SIZE", default_value = "1000000", value_parser = request_size)]
    max_message: u32,

    /// Thin the sizes of a workload out as HomaModule's cp_node does: keep a
    /// size if it adds 0.25 % of messages or the next is 1.2 times longer.
    #[arg(long)]
    thin: bool,

    /// Open loop: RPCs outstanding at most; what has to wait is counted.
    #[arg(long, value_name = "N", default_value_t = run::DEFAULT_CLIENT_MAX)]
    client_max: NonZeroUsize,

    /// RPCs for each size of the unloaded baseline; 0: none, and no slowdown
    /// B. Default: 200 for workloads, else 0.
    #[arg(long, value_name = "N")]
    unloaded: Option<usize>,

    /// B of slowdown A, in us.
    #[arg(long, value_name = "US", default_value = "15", value_parser = positive_number)]
    ideal_base_us: f64,

    /// Link rate of slowdown A, in Gbit/s.
    #[arg(long, value_name = "GBPS", default_value = "25", value_parser = positive_number)]
    link_gbps: f64,

    /// Compare every byte of every response.
    #[arg(long)]
    verify: bool,

    /// Look for events without sleeping for this many microseconds after the
    /// last one, and before a request is due; the server has the same option.
    /// 0 saves processor time and adds the cost of waking up to latencies.
    #[arg(long, value_name = "US", default_value = DEFAULT_POLL_US, value_parser = microseconds)]
    poll: Duration,

    /// TCP: connections to each server at most.
    #[arg(long, value_name = "N", default_value_t = homa_bench::tcp::DEFAULT_CONNECTIONS)]
    tcp_connections: NonZeroUsize,

    /// TCP: congestion control, such as cubic. Default: the system's.
    #[arg(long, value_name = "NAME")]
    tcp_congestion: Option<String>,

    /// Give up if RPCs are outstanding and none ends for this long.
    #[arg(long, value_name = "SECS", default_value = "10", value_parser = positive_seconds)]
    silence: Duration,

    /// A progress line on stderr every SECS seconds. Default: every second if
    /// stderr is a terminal, else none.
    #[arg(short = 'i', long, value_name = "SECS", value_parser = positive_seconds)]
    interval: Option<Duration>,

    /// The report as JSON: on stdout instead of the table, or with =FILE in a
    /// file besides the table. An array with --mode basic, else an object.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    json: Option<PathBuf>,
}

fn workload(text: &str) -> Result<Workload, String> {
    Workload::parse(text).map_err(|error| error.to_string())
}

/// One run, before the options that all modes share.
struct Plan {
    title: &'static str,
    workload: Workload,
    load: Load,
    duration: Duration,
    warmup: Duration,
    unloaded_rpcs: usize,
}

/// Runs what the options ask for.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let plans = match plans(arguments) {
        Ok(plans) => plans,
        Err(problem) => return fail(EXIT_USAGE, problem),
    };
    let servers = match resolve(&arguments.servers) {
        Ok(servers) => servers,
        Err(problem) => return fail(EXIT_USAGE, problem),
    };
    let reach = Reach {
        protocol: arguments.protocol,
        tcp_connections: arguments.tcp_connections,
        tcp_congestion: arguments.tcp_congestion.clone().into(),
    };
    let result = stop_on_signals()
        .map_err(BenchError::system("signal handlers"))
        .and_then(|stop| {
            let mut transport = reach.connect(&servers)?;
            run_all(arguments, plans, transport.as_mut(), &stop)
        });
    match result {
        Ok(code) => code,
        Err(error) => fail(EXIT_FAILED, error),
    }
}

fn plans(arguments: &Arguments) -> Result<Vec<Plan>, String> {
    let load_given =
        arguments.gbps.is_some() || arguments.rate.is_some() || arguments.outstanding.is_some();
    let mode = arguments
        .mode
        .unwrap_or(if load_given || arguments.workload.is_some() {
            Mode::Workload
        } else {
            Mode::Basic
        });
    match mode {
        Mode::Basic if load_given || arguments.workload.is_some() => {
            Err("--mode basic has its own sizes and loads: leave --workload, --gbps, --rate and --outstanding out".into())
        }
        Mode::Basic => [Mode::Latency, Mode::Throughput, Mode::Rate]
            .into_iter()
            .map(|mode| plan(arguments, mode, 3, 1))
            .collect(),
        one => Ok(vec![plan(arguments, one, 10, 2)?]),
    }
}

fn plan(arguments: &Arguments, mode: Mode, duration_s: u64, warmup_s: u64) -> Result<Plan, String> {
    let (title, default_workload, default_outstanding, default_unloaded) = match mode {
        Mode::Latency => ("latency", "100", NonZeroUsize::new(1), 0),
        Mode::Throughput => ("throughput", "500k", NonZeroUsize::new(8), 0),
        Mode::Rate => ("rate", "100", NonZeroUsize::new(64), 0),
        Mode::Workload | Mode::Basic => ("workload", "w4", None, 200),
    };
    let mut sizes = match &arguments.workload {
        Some(given) => given.clone(),
        None => workload(default_workload)?,
    };
    if arguments.thin {
        sizes = sizes.thinned();
    }
    // One size is what the user asked for, whatever the limit for workloads.
    if sizes.points().len() > 1 {
        sizes = sizes.clamped(MIN_REQUEST_BYTES, arguments.max_message);
    } else {
        sizes = sizes.clamped(MIN_REQUEST_BYTES, u32::MAX);
    }
    let load = match (
        arguments.gbps,
        arguments.rate,
        arguments.outstanding.or(default_outstanding),
    ) {
        (Some(gbps), _, _) => Load::open_gbps(gbps, &sizes),
        (_, Some(rpcs_per_s), _) => Load::Open { rpcs_per_s },
        (_, _, Some(outstanding)) => Load::Closed { outstanding },
        _ => {
            return Err("a workload needs a load: --gbps GBPS or --rate RPCS (open loop), or --outstanding N (closed loop)".into());
        }
    };
    if let Load::Open { rpcs_per_s } = load
        && rpcs_per_s > MAX_RPCS_PER_S
    {
        return Err(format!(
            "{rpcs_per_s:.0} RPCs/s are more than one client can offer ({MAX_RPCS_PER_S:.0}): lower --gbps or --rate, or start several clients"
        ));
    }
    Ok(Plan {
        title,
        workload: sizes,
        load,
        duration: arguments
            .duration
            .unwrap_or(Duration::from_secs(duration_s)),
        warmup: arguments.warmup.unwrap_or(Duration::from_secs(warmup_s)),
        unloaded_rpcs: arguments.unloaded.unwrap_or(default_unloaded),
    })
}

fn setup(arguments: &Arguments, plan: &Plan) -> Setup {
    Setup {
        workload: plan.workload.clone(),
        load: plan.load,
        response: arguments.response_size,
        warmup: plan.warmup,
        duration: plan.duration,
        drain: arguments.drain,
        seed: arguments.seed,
        client_max: arguments.client_max,
        spin: arguments.poll,
        silence: arguments.silence,
        verify: if arguments.verify {
            Verify::Bytes
        } else {
            Verify::Length
        },
        ideal: Ideal {
            base_us: arguments.ideal_base_us,
            link_gbps: arguments.link_gbps,
        },
        unloaded_rpcs: plan.unloaded_rpcs,
        interval: arguments.interval.unwrap_or(Duration::from_secs(1)),
    }
}

fn run_all(
    arguments: &Arguments,
    plans: Vec<Plan>,
    transport: &mut dyn Transport,
    stop: &Stop,
) -> Result<ExitCode, BenchError> {
    let several = plans.len() > 1;
    let speak = arguments.interval.is_some() || io::stderr().is_terminal();
    let command: Vec<String> = std::env::args().collect();
    let mut reports: Vec<Report> = Vec::new();
    for plan in plans {
        let setup = setup(arguments, &plan);
        let mut progress: Box<dyn Progress> = if speak {
            Box::new(Lines::new(transport.protocol()))
        } else {
            Box::new(Silent)
        };
        let outcome = run::run(transport, &setup, stop, progress.as_mut())?;
        let report = Report::new(transport, &setup, outcome, plan.title, command.clone());
        let go_on = report.end == "complete";
        if !writes_json_to_stdout(arguments) {
            let text = if several {
                report.line()
            } else {
                report.table()
            };
            say(&text)?;
        }
        reports.push(report);
        if !go_on {
            break;
        }
    }
    if let Some(path) = &arguments.json {
        let text = if several {
            let all: Vec<String> = reports.iter().map(Report::json).collect();
            format!("[{}]\n", all.join(",\n"))
        } else {
            reports.iter().map(Report::json).collect::<String>() + "\n"
        };
        if writes_json_to_stdout(arguments) {
            say(&text)?;
        } else {
            std::fs::write(path, text).map_err(|source| {
                BenchError::Transport(format!("cannot write {}: {source}", path.display()))
            })?;
        }
    }
    // The table has said it, but stdout may be JSON or a file.
    if let Some(error) = reports.last().and_then(|report| report.error.as_ref()) {
        return Ok(fail(EXIT_FAILED, error));
    }
    let complete = reports.iter().all(Report::is_complete);
    Ok(ExitCode::from(if complete { 0 } else { EXIT_FAILED }))
}

fn writes_json_to_stdout(arguments: &Arguments) -> bool {
    arguments
        .json
        .as_ref()
        .is_some_and(|path| path.as_os_str() == "-")
}

/// Text on stdout. A reader that has gone (`| head`) is no failure.
fn say(text: &str) -> Result<(), BenchError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(BenchError::System {
            action: "stdout",
            source: error,
        }),
        _ => Ok(()),
    }
}
