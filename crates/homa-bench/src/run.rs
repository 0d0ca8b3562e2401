//! A run: unloaded baseline, warm-up, measurement, drain.
//!
//! An RPC counts if it was due (open loop) or sent (closed loop) inside the
//! measurement window, wherever its end falls. After the window nothing new
//! becomes due; what is on its way has [`Setup::drain`] to end and is infinite
//! otherwise, and so is what was due but never sent. Rates count what ended
//! inside the window.

mod loaded;
mod unloaded;

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::arrivals::Load;
use crate::baseline::{Ideal, Unloaded};
use crate::classes::SizeClasses;
use crate::driver::{Driver, Manner};
use crate::error::BenchError;
use crate::host;
use crate::message::ResponseSize;
use crate::progress::{Interval, Progress};
use crate::recorder::{Digest, Recorder};
use crate::stop::Stop;
use crate::transport::Transport;
use crate::workload::Workload;
use loaded::Loaded;
use unloaded::measure_unloaded;

pub use crate::driver::Verify;

/// RPCs outstanding at most in an open loop unless asked otherwise: that of
/// the reference's benchmark.
pub const DEFAULT_CLIENT_MAX: NonZeroUsize = NonZeroUsize::new(200).unwrap();

/// How long client and server look for events without sleeping after the last
/// one, unless asked otherwise. Waking a thread on an idle machine costs 45 to
/// 100 µs, as much as several round trips; spinning for that long costs at most
/// as much again, and an idle program still sleeps.
pub const DEFAULT_SPIN: Duration = Duration::from_micros(100);

/// Highest rate that can be asked for in an open loop, in RPCs a second: far
/// above what one thread can start, low enough to count what it could not.
pub const MAX_RPCS_PER_S: f64 = 1e7;

/// Everything that decides a run, besides the transport.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Sizes of requests, already cut to what is possible.
    pub workload: Workload,
    /// How requests follow each other.
    pub load: Load,
    /// Length of responses.
    pub response: ResponseSize,
    /// Load before the measurement.
    pub warmup: Duration,
    /// The measurement window.
    pub duration: Duration,
    /// How long RPCs may end after the window.
    pub drain: Duration,
    /// Decides sizes, gaps and destinations.
    pub seed: u64,
    /// RPCs outstanding at most in an open loop.
    pub client_max: NonZeroUsize,
    /// See [`DEFAULT_SPIN`].
    pub spin: Duration,
    /// The run ends if nothing ends for this long although RPCs are
    /// outstanding.
    pub silence: Duration,
    /// What is checked of responses.
    pub verify: Verify,
    /// Constants of the ideal.
    pub ideal: Ideal,
    /// RPCs for each size of the unloaded baseline; 0 for no baseline.
    pub unloaded_rpcs: usize,
    /// Length of progress intervals.
    pub interval: Duration,
}

impl Setup {
    /// The defaults of the command line for this load.
    pub fn new(workload: Workload, load: Load) -> Self {
        Self {
            workload,
            load,
            response: ResponseSize::Echo,
            warmup: Duration::from_secs(2),
            duration: Duration::from_secs(10),
            drain: Duration::from_secs(2),
            seed: 1,
            client_max: DEFAULT_CLIENT_MAX,
            spin: DEFAULT_SPIN,
            silence: Duration::from_secs(10),
            verify: Verify::Length,
            ideal: crate::baseline::DEFAULT_IDEAL,
            unloaded_rpcs: 200,
            interval: Duration::from_secs(1),
        }
    }
}

/// How a run ended.
#[derive(Debug)]
pub enum End {
    /// As planned.
    Complete,
    /// Somebody asked to stop; the window ends there.
    Interrupted,
    /// The transport gave up; the window ends there.
    Failed(BenchError),
}

/// What a run found.
#[derive(Debug)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// The unloaded baseline, if measured.
    pub unloaded: Option<Unloaded>,
    /// Counts and rates.
    pub totals: Totals,
    /// Latencies and slowdowns.
    pub digest: Digest,
    /// Each interval, warm-up included.
    pub intervals: Vec<Interval>,
    /// What the transport counted from the first request under load on.
    pub counters: Vec<(String, u64)>,
    /// The samples behind the digest, to be put together with others.
    pub recorder: Recorder,
}

/// Counts and rates of the window.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Totals {
    /// Length of the window, s.
    pub measured_s: f64,
    /// RPCs due in the window.
    pub due: u64,
    /// Of these, finished.
    pub finished: u64,
    /// Of these, failed, or not finished at the end of the drain.
    pub unfinished: u64,
    /// Of the unfinished, those that failed with an error or a wrong response.
    pub failed: u64,
    /// Of the failed, those with a wrong response (see [`Verify`]).
    pub corrupt: u64,
    /// The first failure.
    pub first_failure: Option<String>,
    /// Of the due, those that had to wait because as many RPCs as allowed were
    /// outstanding.
    pub waited_for_client_max: u64,
    /// Rate asked for; none in a closed loop.
    pub offered_kops: Option<f64>,
    /// The same in payload of requests.
    pub offered_gbps: Option<f64>,
    /// RPCs that ended in the window, thousands a second.
    pub achieved_kops: f64,
    /// Payload of their requests, Gbit/s.
    pub out_gbps: f64,
    /// Payload of their responses, Gbit/s.
    pub in_gbps: f64,
    /// Cores this process kept busy in the window (user and system).
    pub client_cores: Option<f64>,
    /// Share of the window in which the client's thread had something to do:
    /// near 1, it is the limit.
    pub client_busy: f64,
    /// Samples that were counted but not kept for percentiles.
    pub samples_not_kept: u64,
}

/// Runs. The only errors are those before the load begins; later ones end the
/// run and are in [`Outcome::end`], with what was measured until then.
pub fn run(
    transport: &mut dyn Transport,
    setup: &Setup,
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<Outcome, BenchError> {
    check_lengths(transport, setup)?;
    let classes = SizeClasses::deciles(&setup.workload);
    let peers = NonZeroUsize::new(transport.peers().len())
        .ok_or_else(|| BenchError::Transport("no server was given".into()))?;
    let manner = Manner {
        response: setup.response,
        verify: setup.verify,
        spin: setup.spin,
        silence: setup.silence,
    };
    let mut driver = Driver::new(transport, manner);
    let unloaded = measure_unloaded(&mut driver, setup, &classes, peers, stop)?;
    let before = counters(&driver);
    let mut loaded = Loaded::new(setup, peers)?;
    let end = loaded.run(&mut driver, stop, progress);
    for arrival in driver.abandon() {
        loaded.give_up(&arrival);
    }
    let mut counters = counters(&driver);
    let before: HashMap<String, u64> = before.into_iter().collect();
    for (name, value) in &mut counters {
        *value = value.saturating_sub(before.get(name).copied().unwrap_or(0));
    }
    Ok(Outcome {
        end,
        counters,
        digest: loaded
            .recorder
            .digest(&classes, &setup.ideal, unloaded.as_ref()),
        unloaded,
        totals: loaded.totals(),
        intervals: loaded.intervals,
        recorder: loaded.recorder,
    })
}

/// Those of the transport, and what the processors did meanwhile, to be
/// compared with the time under load.
fn counters(driver: &Driver<'_>) -> Vec<(String, u64)> {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let mut counters = driver.counters();
    counters.extend([
        ("bench.time_us".to_owned(), us(START.elapsed())),
        (
            "bench.client_cpu_us".to_owned(),
            us(host::process_cpu_time().unwrap_or_default()),
        ),
        (
            "host.cpu_us".to_owned(),
            us(host::Ticks::now()
                .map(host::Ticks::busy)
                .unwrap_or_default()),
        ),
    ]);
    counters
}

fn check_lengths(transport: &dyn Transport, setup: &Setup) -> Result<(), BenchError> {
    let request_bytes = setup.workload.max_bytes();
    let longest = request_bytes.max(setup.response.bytes_for(request_bytes));
    if longest > transport.max_message_bytes() {
        return Err(BenchError::MessageTooLong {
            bytes: u64::from(longest),
            limit: u64::from(transport.max_message_bytes()),
            protocol: transport.protocol(),
        });
    }
    Ok(())
}
