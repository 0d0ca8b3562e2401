//! Two transports under the same requests, in turn.
//!
//! A machine that does other things, gets hot or is a virtual one changes from
//! second to second. So every part of a comparison is cut into rounds, and in
//! each round every transport has its turn with the same seed, in an order that
//! alternates. Each turn has a client of its own, so that nobody's state grows
//! old while the other one runs. The samples of all rounds are put together
//! before anything is digested.

mod table;

use std::time::Duration;

use serde::Serialize;

use crate::classes::SizeClasses;
use crate::error::BenchError;
use crate::progress::Progress;
use crate::report::Report;
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

/// What a comparison found: for each part a report of each transport, in their
/// order. After an interruption or a failure the reports say so.
#[derive(Debug, Serialize)]
pub struct Comparison {
    /// Part by part.
    pub reports: Vec<Report>,
    /// How many rounds are in them, the last one perhaps not whole.
    pub rounds: u32,
}

impl Comparison {
    /// For programs, one JSON object over several lines.
    pub fn json(&self) -> String {
        // Maps with text keys and finite numbers always have a JSON form.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

/// One transport's share of one part.
struct Share {
    outcome: Outcome,
    transport: Box<dyn Transport>,
}

/// Runs all rounds. `progress` gets the intervals of all turns.
pub fn compare(
    transports: &mut [Connect<'_>],
    plan: &Plan,
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<Comparison, BenchError> {
    let count = transports.len();
    let mut shares: Vec<Option<Share>> = (0..count * plan.parts.len()).map(|_| None).collect();
    let mut done = 0;
    'rounds: for round in 0..plan.rounds {
        done = round + 1;
        for (part_index, part) in plan.parts.iter().enumerate() {
            let setup = of_round(&part.setup, round, plan.rounds);
            for turn in 0..count {
                let index = if round % 2 == 0 {
                    turn
                } else {
                    count - 1 - turn
                };
                let mut transport = transports[index]()?;
                progress.turn(&format!(
                    "{} {} {}/{}",
                    transport.protocol(),
                    part.title,
                    round + 1,
                    plan.rounds
                ));
                let outcome = run::run(transport.as_mut(), &setup, stop, progress)?;
                let goes_on = matches!(outcome.end, End::Complete);
                let share = &mut shares[part_index * count + index];
                match share {
                    Some(share) => {
                        put_together(&mut share.outcome, outcome);
                        share.transport = transport;
                    }
                    none => *none = Some(Share { outcome, transport }),
                }
                if !goes_on {
                    break 'rounds;
                }
            }
        }
    }
    let mut reports = Vec::new();
    for (index, share) in shares.into_iter().enumerate() {
        let (part, Some(share)) = (&plan.parts[index / count], share) else {
            continue;
        };
        reports.push(report(part, share, plan));
    }
    Ok(Comparison {
        reports,
        rounds: done,
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
    let Share {
        mut outcome,
        transport,
    } = share;
    let classes = SizeClasses::deciles(&part.setup.workload);
    outcome.digest = outcome.recorder.digest(&classes, &part.setup.ideal, None);
    Report::new(
        transport.as_ref(),
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
    for (sum, next) in sum.counters.iter_mut().zip(next.counters) {
        sum.1 += next.1;
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
