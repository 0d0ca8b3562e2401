//! What is handed over after a run: a table for people, JSON for programs.
//!
//! Both say the whole set-up, so that a number can be made again: workload and
//! its mean, load and what counts as load, seed, window, B and link rate of the
//! ideal, transport, host.

mod table;

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use serde::Serialize;

use crate::arrivals::Load;
use crate::baseline::{Ideal, UnloadedPoint};
use crate::host::Host;
use crate::message::ResponseSize;
use crate::progress::Interval;
use crate::recorder::Digest;
use crate::run::{End, Outcome, Setup, Totals, Verify};
use crate::transport::Transport;

/// Raised when a field changes its meaning or goes; new fields do not raise it.
pub const SCHEMA_VERSION: u32 = 1;

/// One run, whole.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Always `homa-bench`.
    pub schema: &'static str,
    /// See [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// What the run was called, if several were made at once.
    pub title: String,
    /// The command line that made it.
    pub command: Vec<String>,
    /// End of the run, seconds since 1970.
    pub unix_time_s: u64,
    /// Where the client ran.
    pub host: Host,
    /// What was asked for.
    pub setup: SetupReport,
    /// `complete`, `interrupted` or `failed`.
    pub end: &'static str,
    /// Why it failed.
    pub error: Option<String>,
    /// Counts and rates of the measurement window.
    pub totals: Totals,
    /// Median round trips without load, by size.
    pub unloaded: Option<Vec<UnloadedPoint>>,
    /// Latencies and slowdowns.
    #[serde(flatten)]
    pub digest: Digest,
    /// Each interval, warm-up included.
    pub intervals: Vec<Interval>,
    /// What the transport of the client counted under load, by name; empty
    /// for TCP, which counts in the kernel.
    pub counters: BTreeMap<String, u64>,
    /// What a careful reader would ask about.
    pub notes: Vec<String>,
}

/// The set-up of a run. Times in seconds unless named otherwise.
#[derive(Clone, Debug, Serialize)]
pub struct SetupReport {
    /// `homa` or `tcp`.
    pub protocol: &'static str,
    /// What the transport says about itself.
    pub transport: Vec<(String, String)>,
    /// The servers.
    pub servers: Vec<String>,
    /// Name of the workload.
    pub workload: String,
    /// Mean request after cutting, bytes.
    pub mean_request_bytes: f64,
    /// Shortest and longest request after cutting, bytes.
    pub request_bytes: (u32, u32),
    /// Different lengths.
    pub lengths: usize,
    /// `echo`, or bytes.
    pub response: String,
    /// `open` or `closed`.
    pub loop_kind: &'static str,
    /// Open loop: RPCs a second.
    pub offered_rpcs_per_s: Option<f64>,
    /// Open loop: most RPCs outstanding. Closed loop: RPCs outstanding.
    pub outstanding: usize,
    /// Load before the window.
    pub warmup_s: f64,
    /// Length of the window.
    pub duration_s: f64,
    /// How long RPCs may end after the window.
    pub drain_s: f64,
    /// Seed of sizes, gaps and destinations.
    pub seed: u64,
    /// Spinning before sleeping, µs.
    pub spin_us: f64,
    /// What was checked of responses.
    pub verify: Verify,
    /// Constants of the ideal.
    pub ideal: Ideal,
}

impl SetupReport {
    /// What was asked for, and what the transport made of it.
    pub(crate) fn of(transport: &dyn Transport, setup: &Setup) -> Self {
        let workload = &setup.workload;
        let shortest = workload
            .points()
            .first()
            .map_or(0, |point| point.size_bytes);
        let (loop_kind, offered_rpcs_per_s, outstanding) = match setup.load {
            Load::Open { rpcs_per_s } => ("open", Some(rpcs_per_s), setup.client_max.get()),
            Load::Closed { outstanding } => ("closed", None, outstanding.get()),
        };
        Self {
            protocol: transport.protocol(),
            transport: transport.details(),
            servers: transport.peers().iter().map(ToString::to_string).collect(),
            workload: workload.name().to_owned(),
            mean_request_bytes: workload.mean_bytes(),
            request_bytes: (shortest, workload.max_bytes()),
            lengths: workload.points().len(),
            response: match setup.response {
                ResponseSize::Echo => "echo".into(),
                ResponseSize::Fixed(bytes) => format!("{bytes} B"),
            },
            loop_kind,
            offered_rpcs_per_s,
            outstanding,
            warmup_s: setup.warmup.as_secs_f64(),
            duration_s: setup.duration.as_secs_f64(),
            drain_s: setup.drain.as_secs_f64(),
            seed: setup.seed,
            spin_us: setup.spin.as_secs_f64() * 1e6,
            verify: setup.verify,
            ideal: setup.ideal,
        }
    }
}

impl Report {
    /// Puts a run together. `command` is the command line, `title` may be
    /// empty.
    pub fn new(
        transport: &dyn Transport,
        setup: &Setup,
        outcome: Outcome,
        title: &str,
        command: Vec<String>,
    ) -> Self {
        Self::assembled(
            SetupReport::of(transport, setup),
            setup,
            outcome,
            title,
            command,
        )
    }

    /// The same without the transport, which may be closed by now.
    pub(crate) fn assembled(
        setup_report: SetupReport,
        setup: &Setup,
        outcome: Outcome,
        title: &str,
        command: Vec<String>,
    ) -> Self {
        let (end, error) = match &outcome.end {
            End::Complete => ("complete", None),
            End::Interrupted => ("interrupted", None),
            End::Failed(error) => ("failed", Some(error.to_string())),
        };
        Self {
            schema: "homa-bench",
            schema_version: SCHEMA_VERSION,
            title: title.to_owned(),
            command,
            unix_time_s: SystemTime::now()
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or(Duration::ZERO)
                .as_secs(),
            host: Host::here(),
            setup: setup_report,
            end,
            error,
            notes: notes(setup, &outcome),
            totals: outcome.totals,
            unloaded: outcome.unloaded.map(|unloaded| unloaded.points().to_vec()),
            digest: outcome.digest,
            intervals: outcome.intervals,
            counters: outcome.counters.into_iter().collect(),
        }
    }

    /// True if the run went as planned and every RPC ended well.
    pub fn is_complete(&self) -> bool {
        self.end == "complete" && self.totals.unfinished == 0 && self.totals.finished > 0
    }

    /// For people, many lines.
    pub fn table(&self) -> String {
        table::render(self)
    }

    /// For people, one line: title, rates, round trips.
    pub fn line(&self) -> String {
        table::render_line(self)
    }

    /// For programs, one JSON object over several lines.
    pub fn json(&self) -> String {
        // Maps with text keys and finite numbers always have a JSON form.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

fn notes(setup: &Setup, outcome: &Outcome) -> Vec<String> {
    let totals = &outcome.totals;
    let mut notes = Vec::new();
    if let (Some(offered), End::Complete) = (totals.offered_kops, &outcome.end) {
        // Poisson counts vary by their root; three of these are no overload.
        let expected = offered * 1e3 * totals.measured_s;
        let chance = 3.0 / expected.max(1.0).sqrt();
        if totals.achieved_kops < offered * (1.0 - 0.02 - chance) {
            notes.push(format!(
                "overload: {:.2} of {:.2} Kops/s offered were achieved, so latencies grow with the length of the run",
                totals.achieved_kops, offered
            ));
        }
    }
    if totals.waited_for_client_max > 0 {
        notes.push(format!(
            "{} RPCs had to wait because {} were outstanding; the wait is in the latencies from due, not in those from send",
            totals.waited_for_client_max, setup.client_max
        ));
    }
    if totals.unfinished > 0 {
        notes.push(format!(
            "{} RPCs did not finish within {:.1} s after the window ({} of them failed, {} of those with a wrong response); they count as infinite",
            totals.unfinished, setup.drain.as_secs_f64(), totals.failed, totals.corrupt
        ));
    }
    if let Some(reason) = &totals.first_failure {
        notes.push(format!("first failure: {reason}"));
    }
    if totals.samples_not_kept > 0 {
        notes.push(format!(
            "percentiles are of the first {} samples, {} later ones are only counted",
            crate::recorder::MAX_SAMPLES,
            totals.samples_not_kept
        ));
    }
    notes
}
