//! Two transports under the same requests, in turn.
//!
//! A machine that does other things, gets hot or is a virtual one changes from
//! second to second. So every part of a comparison is cut into rounds, and in
//! each round every transport has its turn with the same seed, in an order that
//! alternates. Each turn has a client of its own, so that nobody's state grows
//! old while the other one runs. The samples of all rounds are put together
//! before anything is digested.

mod table;
mod words;

use std::collections::HashMap;
use std::time::Duration;

use serde::Serialize;

use crate::classes::SizeClasses;
use crate::error::BenchError;
use crate::progress::Progress;
use crate::report::{Report, SetupReport};
use crate::run::{self, End, Outcome, Setup, Totals};
use crate::stop::Stop;
use crate::transport::Transport;

pub use table::render;

/// Makes a client for one turn.
pub type Connect<'a> = Box<dyn FnMut() -> Result<Box<dyn Transport>, BenchError> + 'a>;

/// One measurement, to be made with every transport.
#[derive(Clone, Debug)]
pub struct Part {
    /// As in [`Report::title`].
    pub title: String,
    /// [`Setup::duration`] is that of all rounds together; the warm-up and the
    /// drain are those of each round.
    pub setup: Setup,
}

/// How to compare.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is measured, in this order in every round.
    pub parts: Vec<Part>,
    /// At least 1.
    pub rounds: u32,
    /// The command line, for the reports.
    pub command: Vec<String>,
}

/// Raised when a field changes its meaning or goes; new fields do not raise it.
pub const SCHEMA_VERSION: u32 = 1;

/// What a comparison found.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// Always `homa-bench-comparison`.
    pub schema: &'static str,
    /// See [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// How many rounds are in the reports, the last one perhaps not whole.
    pub rounds: u32,
    /// How many there should be.
    pub rounds_planned: u32,
    /// `complete`, `interrupted` or `failed`.
    pub end: &'static str,
    /// Why it failed.
    pub error: Option<String>,
    /// For each part a report of each transport, in their order. After an
    /// interruption or a failure some have less than others, and their `end`
    /// says so.
    pub reports: Vec<Report>,
}

/// How much the two ends and everybody else had to do.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Use {
    /// Share of the time, if the server is ours and told.
    server: Option<f64>,
    /// Processors that others used, as far as it is known.
    others: f64,
}

impl Use {
    fn of(report: &Report) -> Self {
        let counter = |name: &str| report.counters.get(name).map(|&value| value as f64);
        let time = counter("bench.time_us").unwrap_or(0.0).max(1.0);
        let others = match (counter("host.cpu_us"), counter("server.cpu_us")) {
            (Some(all), Some(server)) => {
                all - server - counter("bench.client_cpu_us").unwrap_or(0.0)
            }
            _ => 0.0,
        };
        Self {
            server: counter("server.busy_us").map(|busy| busy / time),
            others: others.max(0.0) / time,
        }
    }
}

impl Comparison {
    /// For programs, one JSON object over several lines.
    pub fn json(&self) -> String {
        // Maps with text keys and finite numbers always have a JSON form.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

/// One transport's share of one part. The client is gone: there may be no room
/// for the next one beside it.
struct Share {
    outcome: Outcome,
    setup: SetupReport,
}

/// Runs all rounds. `progress` gets the intervals of all turns.
///
/// # Errors
///
/// Only before anything was measured; a later failure is in
/// [`Comparison::error`].
pub fn compare(
    transports: &mut [Connect<'_>],
    plan: &Plan,
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<Comparison, BenchError> {
    let count = transports.len();
    let mut shares: Vec<Option<Share>> = (0..count * plan.parts.len()).map(|_| None).collect();
    let mut rounds = 0;
    let mut end = End::Complete;
    'rounds: for round in 0..plan.rounds {
        for (part_index, part) in plan.parts.iter().enumerate() {
            let setup = of_round(&part.setup, round, plan.rounds);
            for index in order(round, count) {
                if stop.requested() {
                    end = End::Interrupted;
                    break 'rounds;
                }
                rounds = round + 1;
                let name = format!("{} {rounds}/{}", part.title, plan.rounds);
                let turn = take_turn(&mut transports[index], &setup, &name, stop, progress);
                let turn = match turn {
                    Ok(turn) => turn,
                    Err(error) if shares.iter().all(Option::is_none) => return Err(error),
                    Err(error) => {
                        end = End::Failed(error);
                        break 'rounds;
                    }
                };
                let complete = matches!(turn.outcome.end, End::Complete);
                let interrupted = matches!(turn.outcome.end, End::Interrupted);
                let share = &mut shares[part_index * count + index];
                match share {
                    Some(share) => {
                        put_together(&mut share.outcome, turn.outcome);
                        share.setup = turn.setup;
                    }
                    none => *none = Some(turn),
                }
                if interrupted {
                    end = End::Interrupted;
                }
                if !complete {
                    break 'rounds;
                }
            }
        }
    }
    let reports: Vec<Report> = shares
        .into_iter()
        .enumerate()
        .filter_map(|(index, share)| Some(report(&plan.parts[index / count], share?, plan)))
        .collect();
    let failed = reports.iter().find_map(|report| report.error.clone());
    let (end, error) = match end {
        End::Failed(error) => ("failed", Some(error.to_string())),
        _ if failed.is_some() => ("failed", failed),
        End::Interrupted => ("interrupted", None),
        End::Complete => ("complete", None),
    };
    Ok(Comparison {
        schema: "homa-bench-comparison",
        schema_version: SCHEMA_VERSION,
        rounds,
        rounds_planned: plan.rounds,
        end,
        error,
        reports,
    })
}

/// Who is first alternates.
fn order(round: u32, count: usize) -> Vec<usize> {
    if round.is_multiple_of(2) {
        (0..count).collect()
    } else {
        (0..count).rev().collect()
    }
}

fn take_turn(
    connect: &mut Connect<'_>,
    setup: &Setup,
    name: &str,
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<Share, BenchError> {
    let mut transport = connect()?;
    progress.turn(&format!("{} {name}", transport.protocol()));
    let outcome = run::run(transport.as_mut(), setup, stop, progress)?;
    Ok(Share {
        outcome,
        setup: SetupReport::of(transport.as_ref(), setup),
    })
}

/// What one turn does: every round has other requests, each transport the same.
fn of_round(setup: &Setup, round: u32, rounds: u32) -> Setup {
    Setup {
        duration: setup.duration / rounds.max(1),
        seed: setup.seed.wrapping_add(u64::from(round)),
        // The baseline belongs to one run; here each is the other's.
        unloaded_rpcs: 0,
        ..setup.clone()
    }
}

fn report(part: &Part, share: Share, plan: &Plan) -> Report {
    let Share { mut outcome, setup } = share;
    let classes = SizeClasses::deciles(&part.setup.workload);
    outcome.digest = outcome.recorder.digest(&classes, &part.setup.ideal, None);
    let setup = SetupReport {
        duration_s: part.setup.duration.as_secs_f64(),
        seed: part.setup.seed,
        ..setup
    };
    Report::assembled(
        setup,
        &part.setup,
        outcome,
        &part.title,
        plan.command.clone(),
    )
}

fn put_together(sum: &mut Outcome, next: Outcome) {
    sum.totals = total(&sum.totals, &next.totals);
    sum.recorder.absorb(next.recorder);
    sum.intervals.extend(next.intervals);
    let next_counters: HashMap<String, u64> = next.counters.into_iter().collect();
    for (name, value) in &mut sum.counters {
        *value += next_counters.get(name).copied().unwrap_or(0);
    }
    sum.end = next.end;
}

/// Counts add up, rates are means over the time measured.
fn total(a: &Totals, b: &Totals) -> Totals {
    let measured_s = a.measured_s + b.measured_s;
    let mean = |x: f64, y: f64| {
        if measured_s > 0.0 {
            (x * a.measured_s + y * b.measured_s) / measured_s
        } else {
            0.0
        }
    };
    Totals {
        measured_s,
        due: a.due + b.due,
        finished: a.finished + b.finished,
        unfinished: a.unfinished + b.unfinished,
        failed: a.failed + b.failed,
        corrupt: a.corrupt + b.corrupt,
        first_failure: a.first_failure.clone().or(b.first_failure.clone()),
        waited_for_client_max: a.waited_for_client_max + b.waited_for_client_max,
        offered_kops: a.offered_kops,
        offered_gbps: a.offered_gbps,
        achieved_kops: mean(a.achieved_kops, b.achieved_kops),
        out_gbps: mean(a.out_gbps, b.out_gbps),
        in_gbps: mean(a.in_gbps, b.in_gbps),
        client_cores: a.client_cores.zip(b.client_cores).map(|(x, y)| mean(x, y)),
        client_busy: mean(a.client_busy, b.client_busy),
        samples_not_kept: a.samples_not_kept + b.samples_not_kept,
    }
}

/// How long a comparison takes, connections and drains aside.
pub fn expected_time(plan: &Plan, transports: u32) -> Duration {
    plan.parts
        .iter()
        .map(|part| (part.setup.duration + part.setup.warmup * plan.rounds) * transports)
        .sum()
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn total__counts_add_up_and_rates_are_means() {
        let a = Totals {
            measured_s: 1.0,
            finished: 10,
            failed: 1,
            achieved_kops: 4.0,
            client_cores: Some(1.0),
            ..Totals::default()
        };
        let b = Totals {
            measured_s: 3.0,
            finished: 90,
            failed: 2,
            achieved_kops: 8.0,
            client_cores: Some(0.5),
            ..Totals::default()
        };
        let sum = total(&a, &b);
        assert_eq!((sum.finished, sum.failed), (100, 3));
        assert!((sum.measured_s - 4.0).abs() < 1e-9);
        assert!((sum.achieved_kops - 7.0).abs() < 1e-9);
        assert!((sum.client_cores.unwrap() - 0.625).abs() < 1e-9);
    }
}
