//! `homa sim`: the protocol core in a simulated fabric.

mod page;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use homa_sim::report::Report;
use homa_sim::sigcomm18::{self, Conditions};

use crate::target::{EXIT_FAILED, EXIT_USAGE, fail, positive_number};

const EXAMPLES: &str = "\
Examples:
  homa sim list
      The scenarios that are built in.
  homa sim run sigcomm18-w4 --load 0.8 --seconds 0.5
      144 hosts with workload W4, beside the published slowdowns. Half a minute of CPU per 0.1 s.
  homa sim run sigcomm18-w2 --seconds 0.02 --seeds 4 --json w2.json --report w2.html
      Four seeds, as many at a time as there are processors; numbers, and a page with pictures.

Slowdown is the time a message takes, divided by the time it would take alone. Time is virtual: \
the same seed gives the same trace hash on every machine.

Exit status: 0 done, 1 it could not be run or written, 2 bad usage.";

/// Simulate a datacenter network in which every host runs Homa.
#[derive(Args)]
#[command(after_long_help = EXAMPLES)]
#[command(after_help = "Try --help for examples.")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show the scenarios that are built in.
    List,
    /// Run a scenario.
    Run(RunArguments),
}

#[derive(Args)]
struct RunArguments {
    /// Name of the scenario; see `homa sim list`.
    #[arg(value_name = "SCENARIO")]
    scenario: String,

    /// Load of the hosts' links, headers and grants included, as a fraction.
    #[arg(long, value_name = "FRACTION", default_value = "0.8", value_parser = positive_number)]
    load: f64,

    /// Virtual seconds during which messages count. Default: by scenario.
    #[arg(long, value_name = "SECS", value_parser = positive_number)]
    seconds: Option<f64>,

    /// Virtual seconds before that, in which the network fills. Default: a
    /// fifth of --seconds.
    #[arg(long, value_name = "SECS", value_parser = positive_number)]
    warm_up: Option<f64>,

    /// First seed.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,

    /// Number of seeds, one after another from the first; their messages are
    /// taken together.
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,

    /// Write the report as JSON to this file; `-` is stdout instead of the
    /// table.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Write a page with pictures (HTML) to this file.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

/// Name, workload, what it is, and virtual seconds after which the numbers say
/// something.
const SCENARIOS: [(&str, u8, &str, f64); 5] = [
    ("sigcomm18-w1", 1, "memcached at Facebook", 0.01),
    ("sigcomm18-w2", 2, "search at Google", 0.02),
    ("sigcomm18-w3", 3, "all of a Google datacenter", 0.06),
    ("sigcomm18-w4", 4, "Hadoop at Facebook", 0.2),
    ("sigcomm18-w5", 5, "web search", 0.5),
];

/// Does what the subcommand says.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    let written = match &arguments.command {
        Command::List => list(),
        Command::Run(arguments) => match conditions(arguments) {
            Ok(conditions) => simulate(arguments, &conditions),
            Err(problem) => return fail(EXIT_USAGE, problem),
        },
    };
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => fail(EXIT_FAILED, problem),
    }
}

fn list() -> Result<(), String> {
    let mut out = io::stdout().lock();
    for (name, number, what, seconds) in SCENARIOS {
        let (_, granted) = sigcomm18::parameters(number).unwrap_or_default();
        writeln!(
            out,
            "{name}  W{number}, {what}: SIGCOMM 2018, 144 hosts, {granted} granted at once; {seconds} s"
        )
        .map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn conditions(arguments: &RunArguments) -> Result<Conditions, String> {
    let scenario = SCENARIOS
        .iter()
        .find(|(name, ..)| *name == arguments.scenario)
        .ok_or_else(|| {
            let names = SCENARIOS.map(|(name, ..)| name).join(", ");
            format!("no scenario `{}`: there are {names}", arguments.scenario)
        })?;
    if arguments.load > 1.0 {
        return Err(format!("--load {}: at most 1", arguments.load));
    }
    let measure_s = arguments.seconds.unwrap_or(scenario.3);
    Ok(Conditions {
        workload: scenario.1,
        load: arguments.load,
        seed: arguments.seed,
        warm_up_s: arguments.warm_up.unwrap_or(measure_s / 5.0),
        measure_s,
        // Long messages take 50 ms and more; a run that is over before says little.
        drain_s: measure_s.max(0.05).min(10.0 * measure_s),
    })
}

fn simulate(arguments: &RunArguments, conditions: &Conditions) -> Result<(), String> {
    let seeds: Vec<u64> = (0..arguments.seeds)
        .map(|index| arguments.seed.wrapping_add(index))
        .collect();
    let report = sigcomm18::run_seeds(conditions, &seeds, |seed| {
        if seeds.len() > 1 {
            // Progress only; if stderr is closed there is nobody to tell.
            let _ = writeln!(io::stderr(), "seed {seed} done");
        }
    })
    .map_err(|error| error.to_string())?;
    write_report(arguments, conditions, &report)
}

fn write_report(
    arguments: &RunArguments,
    conditions: &Conditions,
    report: &Report,
) -> Result<(), String> {
    let json = serde_json::to_string_pretty(report).map_err(|error| error.to_string())?;
    let to_stdout = arguments
        .json
        .as_ref()
        .is_some_and(|path| path.as_os_str() == "-");
    let text = if to_stdout {
        json.clone()
    } else {
        report.to_string()
    };
    writeln!(io::stdout().lock(), "{text}").map_err(|error| error.to_string())?;
    if let Some(path) = arguments.json.as_deref().filter(|_| !to_stdout) {
        write_file(path, &format!("{json}\n"))?;
    }
    if let Some(path) = &arguments.report {
        let command = command(arguments, conditions);
        write_file(path, &page::render(report, conditions, command))?;
    }
    Ok(())
}

fn write_file(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// What repeats the run.
fn command(arguments: &RunArguments, conditions: &Conditions) -> String {
    format!(
        "homa sim run {} --load {} --warm-up {} --seconds {} --seed {} --seeds {}",
        arguments.scenario,
        arguments.load,
        conditions.warm_up_s,
        conditions.measure_s,
        arguments.seed,
        arguments.seeds
    )
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: RunArguments,
    }

    fn parsed(line: &str) -> RunArguments {
        Line::try_parse_from(std::iter::once("run").chain(line.split(' ')))
            .unwrap()
            .arguments
    }

    #[test]
    fn conditions__defaults_by_scenario() {
        let conditions = conditions(&parsed("sigcomm18-w4")).unwrap();
        assert_eq!((conditions.workload, conditions.seed), (4, 1));
        assert!((conditions.load - 0.8).abs() < 1e-9);
        assert!((conditions.measure_s - 0.2).abs() < 1e-9);
        assert!((conditions.warm_up_s - 0.04).abs() < 1e-9);
    }

    #[test]
    fn conditions__names_what_there_is() {
        let problem = conditions(&parsed("sigcomm18-w6")).unwrap_err();
        assert!(problem.contains("sigcomm18-w1, "), "{problem}");
        assert!(conditions(&parsed("sigcomm18-w1 --load 1.5")).is_err());
    }

    #[test]
    fn simulate__writes_a_report() {
        let path = std::env::temp_dir().join(format!("homa-sim-{}.json", std::process::id()));
        let line = format!(
            "sigcomm18-w3 --seconds 0.0002 --warm-up 0.0001 --json {}",
            path.display()
        );
        let arguments = parsed(&line);
        simulate(&arguments, &conditions(&arguments).unwrap()).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["scenario"], "sigcomm18-w3");
        assert!(
            json["protocols"]["homa"]["slowdown"]["mean"]
                .as_f64()
                .unwrap()
                > 1.0
        );
    }
}
