//! `homa compare`: Homa beside TCP on an emulated network, on this machine.
//!
//! Hosts in network namespaces, joined by a switch with eight priorities, call
//! each other all to all; every row of the table is the same hosts, requests
//! and network with another transport. What a host does is in
//! [`homa_bench::node`], the network in `homa_testbed`. Here is who starts when
//! ([`turn`]), what was found ([`findings`]) and how it is shown.

#![allow(
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "statistics: counts and nanoseconds become f64 and back, far below 2^53"
)]

mod arguments;
mod cpu;
mod findings;
mod hosts;
mod json;
mod page;
mod rows;
mod setup;
mod table;
mod turn;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use homa_bench::baseline::UnloadedPoint;
use homa_bench::stop::Stop;
use homa_testbed::Testbed;

use crate::interrupt::{EXIT_INTERRUPTED, stop_on_signals};
use crate::target::{EXIT_FAILED, EXIT_USAGE, fail};
pub(crate) use arguments::Arguments;
use findings::Findings;
use setup::Setup;
use turn::Turn;

/// A round in which others took more than this share of the processors from
/// this machine is made again,
const MOST_STOLEN: f64 = 0.03;
/// this many times.
const REPETITIONS: u32 = 2;

/// Why there is no result.
#[derive(Debug)]
pub(crate) enum CompareError {
    /// Somebody asked to stop.
    Interrupted,
    /// Something broke; what, and what to do.
    Failed(String),
}

impl<E: std::error::Error> From<E> for CompareError {
    fn from(error: E) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Runs what the options ask for.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let setup = match Setup::new(arguments) {
        Ok(setup) => setup,
        Err(problem) => return fail(EXIT_USAGE, problem),
    };
    if let Err(missing) =
        homa_testbed::enter_user_namespace().and_then(|()| Testbed::check(&setup.network()))
    {
        return fail(EXIT_USAGE, missing);
    }
    let result = stop_on_signals()
        .map_err(CompareError::from)
        .and_then(|stop| measure(&setup, &stop))
        .and_then(|turns| {
            let findings = Findings::new(&setup, turns);
            show(arguments, &setup, &findings)?;
            Ok(findings)
        });
    match result {
        Ok(findings) => match findings.refusal() {
            None => ExitCode::SUCCESS,
            Some(reason) => fail(EXIT_FAILED, reason),
        },
        Err(CompareError::Interrupted) => fail(
            EXIT_INTERRUPTED,
            "interrupted: a comparison needs whole rounds, so there is none",
        ),
        Err(CompareError::Failed(reason)) => fail(EXIT_FAILED, reason),
    }
}

/// All turns: of each row, of each round, in an order that alternates.
struct Turns {
    by_row: Vec<Vec<Turn>>,
    /// Round trips without load, by row.
    unloaded: Vec<Vec<UnloadedPoint>>,
    /// How each row describes itself.
    details: Vec<Vec<(String, String)>>,
    /// Rounds made again because of stolen processors.
    repeated: u32,
}

fn measure(setup: &Setup, stop: &Stop) -> Result<Turns, CompareError> {
    let rows = &setup.rows;
    let seconds = setup.expected_time().as_secs();
    progress(&format!(
        "{} rows, {} rounds, about {seconds} s. {}",
        rows.len(),
        setup.rounds,
        setup.scheduling.words()
    ));
    let spinners = setup.scheduling.start_spinners()?;
    let mut all = Turns {
        by_row: rows.iter().map(|_| Vec::new()).collect(),
        unloaded: vec![Vec::new(); rows.len()],
        details: vec![Vec::new(); rows.len()],
        repeated: 0,
    };
    for round in 0..setup.rounds {
        let mut order: Vec<usize> = (0..rows.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for index in order {
            let mut repetitions = 0;
            let turn = loop {
                let taken = turn::take(setup, &rows[index], round, stop)?;
                if !taken.unloaded.is_empty() {
                    all.unloaded[index] = taken.unloaded;
                }
                all.details[index] = taken.details;
                let turn = taken.turn;
                if turn.cpu.stolen <= MOST_STOLEN || repetitions == REPETITIONS {
                    break turn;
                }
                repetitions += 1;
                all.repeated += 1;
                progress(&format!(
                    "round {} of {}: {:.1} % of the processors were stolen; once more",
                    round + 1,
                    rows[index].name,
                    100.0 * turn.cpu.stolen
                ));
            };
            progress(&format!(
                "round {}/{} {:<22} {}",
                round + 1,
                setup.rounds,
                rows[index].name,
                turn.line(setup)
            ));
            all.by_row[index].push(turn);
        }
    }
    drop(spinners);
    Ok(all)
}

fn show(arguments: &Arguments, setup: &Setup, findings: &Findings) -> Result<(), CompareError> {
    let text = table::render(setup, findings);
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error.into()),
        _ => {}
    }
    if let Some(path) = &arguments.json {
        write(path, &json::render(setup, findings))?;
    }
    if let Some(path) = arguments.report() {
        write(path, &page::render(setup, findings))?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), CompareError> {
    std::fs::write(path, text).map_err(|error| {
        CompareError::Failed(format!("cannot write {}: {error}", path.display()))
    })?;
    progress(&format!("written: {}", path.display()));
    Ok(())
}

/// A line on stderr.
fn progress(line: &str) {
    // Nobody to tell if stderr is gone.
    let _ = writeln!(io::stderr(), "{line}");
}
