//! The part of a run under load: warm-up, window and drain.
//!
//! Owns what is counted. One loop: send what is due, look for what ended.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use super::{End, Setup, Totals};
use crate::arrivals::{Arrival, Arrivals, Load};
use crate::driver::{Driver, Ended, Trouble};
use crate::error::BenchError;
use crate::progress::{Interval, Meter, Progress};
use crate::recorder::{Recorder, Sample};
use crate::stop::Stop;

/// Starts between two looks at what ended.
const BURST: usize = 16;

/// The part under load.
pub(super) struct Loaded<'a> {
    setup: &'a Setup,
    arrivals: Arrivals,
    limit: usize,
    start: Instant,
    measure_from: Instant,
    measure_to: Instant,
    /// The last moment at which the limit kept a due request back.
    full_until: Instant,
    pub(super) recorder: Recorder,
    meter: Meter,
    pub(super) intervals: Vec<Interval>,
    tick_from: Instant,
    waited: u64,
    failed: u64,
    corrupt: u64,
    first_failure: Option<String>,
    window: Window,
    cpu: CpuMark,
    busy: BusyMark,
}

/// What ended inside the window.
#[derive(Default)]
struct Window {
    rpcs: u64,
    request_bytes: u64,
    response_bytes: u64,
}

/// How long the client's thread had something to do in the window.
#[derive(Default)]
struct BusyMark {
    begin: Option<Duration>,
    time: Option<Duration>,
}

impl BusyMark {
    fn begin(&mut self, busy: Duration) {
        self.begin.get_or_insert(busy);
    }

    fn end(&mut self, busy: Duration) {
        if let Some(begin) = self.begin {
            self.time.get_or_insert(busy.saturating_sub(begin));
        }
    }
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
    pub(super) fn new(setup: &'a Setup, peers: NonZeroUsize) -> Result<Self, BenchError> {
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
            corrupt: 0,
            first_failure: None,
            window: Window::default(),
            cpu: CpuMark::default(),
            busy: BusyMark::default(),
        })
    }

    fn is_open(&self) -> bool {
        matches!(self.setup.load, Load::Open { .. })
    }

    pub(super) fn run(
        &mut self,
        driver: &mut Driver<'_>,
        stop: &Stop,
        progress: &mut dyn Progress,
    ) -> End {
        let mut end = End::Complete;
        loop {
            let now = Instant::now();
            if now >= self.measure_from {
                self.cpu.begin();
                self.busy.begin(driver.busy());
            }
            if now >= self.measure_to {
                self.cpu.end();
                self.busy.end(driver.busy());
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
        self.busy.end(driver.busy());
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
        if let Err(trouble) = ended.result {
            if counts {
                self.failed += 1;
                self.corrupt += u64::from(matches!(trouble, Trouble::Corrupt(_)));
                self.recorder.give_up(request_bytes);
            }
            self.first_failure
                .get_or_insert_with(|| trouble.into_text());
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

    pub(super) fn give_up(&mut self, arrival: &Arrival) {
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

    pub(super) fn totals(&self) -> Totals {
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
            corrupt: self.corrupt,
            first_failure: self.first_failure.clone(),
            waited_for_client_max: self.waited,
            offered_kops: offered.map(|rate| rate / 1e3),
            offered_gbps: offered.map(|rate| rate * self.setup.workload.mean_bytes() * 8.0 / 1e9),
            achieved_kops: per_s(self.window.rpcs) / 1e3,
            out_gbps: per_s(self.window.request_bytes) * 8.0 / 1e9,
            in_gbps: per_s(self.window.response_bytes) * 8.0 / 1e9,
            client_cores: self.cpu.cores,
            client_busy: self
                .busy
                .time
                .map_or(0.0, |time| time.as_secs_f64() / measured_s.max(1e-9)),
            samples_not_kept: finished.saturating_sub(crate::recorder::MAX_SAMPLES),
        }
    }
}
