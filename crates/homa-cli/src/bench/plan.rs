//! From the options of `homa bench` to what is measured.

use std::num::NonZeroUsize;
use std::time::Duration;

use homa_bench::arrivals::Load;
use homa_bench::baseline::{DEFAULT_IDEAL, Ideal};
use homa_bench::compare::Part;
use homa_bench::message::MIN_REQUEST_BYTES;
use homa_bench::run::{MAX_RPCS_PER_S, Setup, Verify};
use homa_bench::workload::Workload;

use super::arguments::{Arguments, Mode, workload};

/// What a mode stands for unless the options say otherwise.
struct Defaults {
    title: &'static str,
    workload: &'static str,
    outstanding: Option<NonZeroUsize>,
    unloaded_rpcs: usize,
}

impl Defaults {
    fn of(mode: Mode) -> Self {
        let (title, workload, outstanding, unloaded_rpcs) = match mode {
            Mode::Latency => ("latency", "100", 1, 0),
            Mode::Throughput => ("throughput", "500k", 8, 0),
            Mode::Rate => ("rate", "100", 64, 0),
            Mode::Workload | Mode::Basic => ("workload", "w4", 0, 200),
        };
        Self {
            title,
            workload,
            outstanding: NonZeroUsize::new(outstanding),
            unloaded_rpcs,
        }
    }
}

/// How long a part is measured, and before that not, unless the options say
/// otherwise.
#[derive(Clone, Copy)]
struct Times {
    duration: Duration,
    warmup: Duration,
}

impl Times {
    const fn of(duration_s: u64, warmup_ms: u64) -> Self {
        Self {
            duration: Duration::from_secs(duration_s),
            warmup: Duration::from_millis(warmup_ms),
        }
    }
}

/// The parts of the run, or what is wrong with the options.
pub(super) fn parts(arguments: &Arguments) -> Result<Vec<Part>, String> {
    let compares = arguments.protocols().len() > 1;
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
            .map(|mode| part(arguments, mode, Times::of(3, if compares { 200 } else { 1000 })))
            .collect(),
        one => Ok(vec![part(arguments, one, Times::of(10, if compares { 500 } else { 2000 }))?]),
    }
}

fn part(arguments: &Arguments, mode: Mode, times: Times) -> Result<Part, String> {
    let defaults = Defaults::of(mode);
    let sizes = sizes(arguments, &defaults)?;
    let load = load(arguments, &defaults, &sizes)?;
    Ok(Part {
        title: defaults.title.into(),
        setup: Setup {
            workload: sizes,
            load,
            response: arguments.response_size,
            warmup: arguments.warmup.unwrap_or(times.warmup),
            duration: arguments.duration.unwrap_or(times.duration),
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
                link_gbps: arguments.link_gbps.unwrap_or(DEFAULT_IDEAL.link_gbps),
            },
            unloaded_rpcs: arguments.unloaded.unwrap_or(defaults.unloaded_rpcs),
            interval: arguments.interval.unwrap_or(Duration::from_secs(1)),
        },
    })
}

fn sizes(arguments: &Arguments, defaults: &Defaults) -> Result<Workload, String> {
    let mut sizes = match &arguments.workload {
        Some(given) => given.clone(),
        None => workload(defaults.workload)?,
    };
    if arguments.thin {
        sizes = sizes.thinned();
    }
    // One size is what the user asked for, whatever the limit for workloads.
    let longest = if sizes.points().len() > 1 {
        arguments.max_message
    } else {
        u32::MAX
    };
    Ok(sizes.clamped(MIN_REQUEST_BYTES, longest))
}

fn load(arguments: &Arguments, defaults: &Defaults, sizes: &Workload) -> Result<Load, String> {
    let load = match (
        arguments.gbps,
        arguments.rate,
        arguments.outstanding.or(defaults.outstanding),
    ) {
        (Some(gbps), _, _) => Load::open_gbps(gbps, sizes),
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
    Ok(load)
}
