//! A run: unloaded baseline, warm-up, measurement, drain.
//!
//! An RPC counts if it was due (open loop) or sent (closed loop) inside the
//! measurement window, wherever its end falls. After the window nothing new
//! becomes due; what is on its way has [`Setup::drain`] to end and is infinite
//! otherwise, and so is what was due but never sent. Rates count what ended
//! inside the window.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use crate::arrivals::{Arrival, Arrivals, Load};
use crate::baseline::{Ideal, Unloaded, UnloadedPoint};
use crate::classes::SizeClasses;
use crate::driver::{Driver, Ended, Manner};
use crate::error::BenchError;
use crate::message::ResponseSize;
use crate::progress::{Interval, Meter, Progress};
use crate::quantile::{Quantile, quantile};
use crate::recorder::{Digest, Recorder, Sample};
use crate::stop::Stop;
use crate::transport::{PeerIndex, Transport};
use crate::workload::Workload;

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

/// Starts between two looks at what ended.
const BURST: usize = 16;

/// A baseline point ends early after this time, if it has some samples.
const UNLOADED_POINT_TIME: Duration = Duration::from_millis(700);
const UNLOADED_MIN_SAMPLES: usize = 10;

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
    /// Of the unfinished, those that failed with an error.
    pub failed: u64,
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
    let mut loaded = Loaded::new(setup, peers)?;
    let end = loaded.run(&mut driver, stop, progress);
    for arrival in driver.abandon() {
        loaded.give_up(&arrival);
    }
    Ok(Outcome {
        end,
        digest: loaded
            .recorder
            .digest(&classes, &setup.ideal, unloaded.as_ref()),
        unloaded,
        totals: loaded.totals(),
        intervals: loaded.intervals,
    })
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

/// One RPC at a time for the shortest size and the upper end of each class.
fn measure_unloaded(
    driver: &mut Driver<'_>,
    setup: &Setup,
    classes: &SizeClasses,
    peers: NonZeroUsize,
    stop: &Stop,
) -> Result<Option<Unloaded>, BenchError> {
    if setup.unloaded_rpcs == 0 {
        return Ok(None);
    }
    let shortest = setup
        .workload
        .points()
        .first()
        .map(|point| point.size_bytes);
    let mut sizes: Vec<u32> = classes
        .as_slice()
        .iter()
        .map(|class| class.up_to_bytes)
        .collect();
    sizes.extend(shortest);
    sizes.sort_unstable();
    sizes.dedup();
    let mut points = Vec::new();
    for size_bytes in sizes {
        let mut rtts_us = Vec::new();
        let begin = Instant::now();
        // The first tenth warms caches and connections up.
        let discarded = setup.unloaded_rpcs / 10;
        for round in 0..setup.unloaded_rpcs + discarded {
            let enough = rtts_us.len() >= UNLOADED_MIN_SAMPLES.min(setup.unloaded_rpcs);
            if stop.requested() || (enough && begin.elapsed() > UNLOADED_POINT_TIME) {
                break;
            }
            let rtt = one_rpc(driver, size_bytes, PeerIndex(round % peers), stop)?;
            if round >= discarded {
                rtts_us.extend(rtt.map(|rtt| rtt.as_nanos() as f64 / 1e3));
            }
        }
        if let Quantile::Value(p50_us) = quantile(&mut rtts_us, 0, 0.5, 1) {
            points.push(UnloadedPoint {
                size_bytes,
                p50_us,
                samples: rtts_us.len() as u64,
            });
        }
    }
    Ok(Unloaded::new(points))
}

/// The round trip of one RPC; nothing if it failed or was stopped.
fn one_rpc(
    driver: &mut Driver<'_>,
    size_bytes: u32,
    peer: PeerIndex,
    stop: &Stop,
) -> Result<Option<Duration>, BenchError> {
    let intended = Instant::now();
    driver.start(Arrival {
        intended,
        size_bytes,
        peer,
    })?;
    let mut rtt = None;
    while driver.outstanding() > 0 && !stop.requested() {
        driver.step(Instant::now() + Duration::from_secs(1), |ended| {
            rtt = ended
                .result
                .ok()
                .map(|()| ended.at.saturating_duration_since(ended.sent));
        })?;
    }
    Ok(rtt)
}

/// The part under load.
struct Loaded<'a> {
    setup: &'a Setup,
    arrivals: Arrivals,
    limit: usize,
    start: Instant,
    measure_from: Instant,
    measure_to: Instant,
    /// The last moment at which the limit kept a due request back.
    full_until: Instant,
    recorder: Recorder,
    meter: Meter,
    intervals: Vec<Interval>,
    tick_from: Instant,
    waited: u64,
    failed: u64,
    first_failure: Option<String>,
    window: Window,
    cpu: CpuMark,
}

/// What ended inside the window.
#[derive(Default)]
struct Window {
    rpcs: u64,
    request_bytes: u64,
    response_bytes: u64,
}

#[derive(Default)]
struct CpuMark {
    begin: Option<(Instant, Duration)>,
    cores: Option<f64>,
}

impl CpuMark {
    fn begin(&mut self) {
        if self.begin.is_none() {
            self.begin = crate::host::process_cpu_time().map(|used| (Instant::now(), used));
        }
    }

    fn end(&mut self) {
        if let (None, Some((at, used))) = (self.cores, self.begin) {
            self.cores = crate::host::process_cpu_time()
                .map(|now| now.saturating_sub(used).as_secs_f64() / at.elapsed().as_secs_f64());
        }
    }
}

impl<'a> Loaded<'a> {
    fn new(setup: &'a Setup, peers: NonZeroUsize) -> Result<Self, BenchError> {
        let meter = Meter::new()?;
        let start = Instant::now();
        let workload = setup.workload.clone();
        Ok(Self {
            setup,
            arrivals: Arrivals::new(setup.load, workload, peers, setup.seed, start),
            limit: match setup.load {
                Load::Open { .. } => setup.client_max.get(),
                Load::Closed { outstanding } => outstanding.get(),
            },
            start,
            measure_from: start + setup.warmup,
            measure_to: start + setup.warmup + setup.duration,
            full_until: start,
            recorder: Recorder::new(),
            meter,
            intervals: Vec::new(),
            tick_from: start,
            waited: 0,
            failed: 0,
            first_failure: None,
            window: Window::default(),
            cpu: CpuMark::default(),
        })
    }

    fn is_open(&self) -> bool {
        matches!(self.setup.load, Load::Open { .. })
    }

    fn run(&mut self, driver: &mut Driver<'_>, stop: &Stop, progress: &mut dyn Progress) -> End {
        let mut end = End::Complete;
        loop {
            let now = Instant::now();
            if now >= self.measure_from {
                self.cpu.begin();
            }
            if now >= self.measure_to {
                self.cpu.end();
            }
            if stop.requested() && now < self.measure_to {
                self.cut(now);
                end = End::Interrupted;
            }
            let over = self.over(now);
            if over && (driver.outstanding() == 0 || now >= self.measure_to + self.setup.drain) {
                break;
            }
            if now >= self.tick_from + self.setup.interval && now < self.measure_to {
                self.tick(now, driver.outstanding(), progress);
            }
            let step = self
                .start_due(driver, now)
                .and_then(|until| driver.step(until, |ended| self.note(ended)));
            if let Err(error) = step {
                self.cut(Instant::now());
                end = End::Failed(error);
                break;
            }
        }
        self.cpu.end();
        self.count_never_sent();
        end
    }

    /// True once nothing new is to be sent.
    fn over(&self, now: Instant) -> bool {
        match self.setup.load {
            Load::Closed { .. } => now >= self.measure_to,
            Load::Open { .. } => {
                now >= self.measure_to
                    && (self.arrivals.peek().intended >= self.measure_to
                        || now >= self.measure_to + self.setup.drain)
            }
        }
    }

    /// Ends the window early.
    fn cut(&mut self, now: Instant) {
        self.measure_to = self.measure_to.min(now);
        self.measure_from = self.measure_from.min(self.measure_to);
    }

    /// Sends what is due and allowed; returns when to look again.
    fn start_due(&mut self, driver: &mut Driver<'_>, now: Instant) -> Result<Instant, BenchError> {
        for _ in 0..BURST {
            let next = *self.arrivals.peek();
            let due_now = match self.setup.load {
                Load::Open { .. } => next.intended <= now && next.intended < self.measure_to,
                Load::Closed { .. } => now < self.measure_to,
            };
            if !due_now {
                break;
            }
            if driver.outstanding() >= self.limit {
                self.full_until = now;
                break;
            }
            let mut arrival = self.arrivals.take();
            if !self.is_open() {
                arrival.intended = Instant::now();
            } else if arrival.intended < self.full_until && self.counts(&arrival) {
                self.waited += 1;
            }
            driver.start(arrival)?;
        }
        let tick = self.tick_from + self.setup.interval;
        let next = match self.setup.load {
            Load::Open { .. } if driver.outstanding() < self.limit => {
                self.arrivals.peek().intended.min(tick)
            }
            Load::Closed { .. } if driver.outstanding() < self.limit => now,
            _ => tick,
        };
        // The end of the window, then of the drain, must not be overslept.
        let edge = if now < self.measure_to {
            self.measure_to
        } else {
            self.measure_to + self.setup.drain
        };
        Ok(if now < self.measure_to {
            next.min(edge)
        } else {
            edge
        })
    }

    fn counts(&self, arrival: &Arrival) -> bool {
        (self.measure_from..self.measure_to).contains(&arrival.intended)
    }

    fn note(&mut self, ended: Ended) {
        let request_bytes = ended.arrival.size_bytes;
        let counts = self.counts(&ended.arrival);
        if let Err(reason) = ended.result {
            if counts {
                self.failed += 1;
                self.recorder.give_up(request_bytes);
            }
            self.first_failure.get_or_insert(reason);
            return;
        }
        let response_bytes = self.setup.response.bytes_for(request_bytes);
        let rtt_ns = ended.at.saturating_duration_since(ended.sent).as_nanos() as u64;
        self.meter.add(rtt_ns, request_bytes, response_bytes);
        if (self.measure_from..self.measure_to).contains(&ended.at) {
            self.window.rpcs += 1;
            self.window.request_bytes += u64::from(request_bytes);
            self.window.response_bytes += u64::from(response_bytes);
        }
        if counts {
            let waited = ended.sent.saturating_duration_since(ended.arrival.intended);
            self.recorder.finish(Sample {
                size_bytes: request_bytes,
                waited_ns: waited.as_nanos() as u64,
                rtt_ns,
            });
        }
    }

    fn tick(&mut self, now: Instant, outstanding: usize, progress: &mut dyn Progress) {
        let at = now.duration_since(self.start);
        let length = now.duration_since(self.tick_from);
        let interval = self.meter.take(at, length, outstanding);
        self.tick_from = now;
        progress.interval(&interval);
        self.intervals.push(interval);
    }

    fn give_up(&mut self, arrival: &Arrival) {
        if self.counts(arrival) {
            self.recorder.give_up(arrival.size_bytes);
        }
    }

    /// Requests that were due in the window and were never sent are infinite.
    fn count_never_sent(&mut self) {
        if !self.is_open() {
            return;
        }
        while self.arrivals.peek().intended < self.measure_to {
            let arrival = self.arrivals.take();
            if self.counts(&arrival) {
                self.waited += 1;
                self.recorder.give_up(arrival.size_bytes);
            }
        }
    }

    fn totals(&self) -> Totals {
        let measured_s = self
            .measure_to
            .duration_since(self.measure_from)
            .as_secs_f64();
        let per_s = |count: u64| {
            if measured_s > 0.0 {
                count as f64 / measured_s
            } else {
                0.0
            }
        };
        let offered = match self.setup.load {
            Load::Open { rpcs_per_s } => Some(rpcs_per_s),
            Load::Closed { .. } => None,
        };
        let finished = self.recorder.finished();
        let unfinished = self.recorder.unfinished();
        Totals {
            measured_s,
            due: finished + unfinished,
            finished,
            unfinished,
            failed: self.failed,
            first_failure: self.first_failure.clone(),
            waited_for_client_max: self.waited,
            offered_kops: offered.map(|rate| rate / 1e3),
            offered_gbps: offered.map(|rate| rate * self.setup.workload.mean_bytes() * 8.0 / 1e9),
            achieved_kops: per_s(self.window.rpcs) / 1e3,
            out_gbps: per_s(self.window.request_bytes) * 8.0 / 1e9,
            in_gbps: per_s(self.window.response_bytes) * 8.0 / 1e9,
            client_cores: self.cpu.cores,
            samples_not_kept: finished.saturating_sub(crate::recorder::MAX_SAMPLES),
        }
    }
}
