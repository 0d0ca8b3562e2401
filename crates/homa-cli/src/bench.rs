//! `homa bench`: load, latency and slowdown against `homa server`.
//!
//! Here and below is the command line: options become
//! [`homa_bench::compare::Part`]s, which are run with one protocol or with
//! several in turn, and reports become text and JSON. What is measured and how
//! is in `homa-bench`.

mod arguments;
mod plan;

use std::io::{self, IsTerminal, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::rc::Rc;

use homa_bench::compare::{self, Comparison, Connect, Part, Plan};
use homa_bench::error::BenchError;
use homa_bench::progress::{Lines, Progress, Silent};
use homa_bench::report::Report;
use homa_bench::run;
use homa_bench::stop::Stop;
use homa_bench::transport::Transport;

use crate::homa_options::show_settings;
use crate::interrupt::{EXIT_INTERRUPTED, stop_on_signals};
use crate::local::{LocalServer, WithServer};
use crate::target::{EXIT_FAILED, EXIT_USAGE, Protocol, Reach, fail, resolve};

pub(crate) use arguments::Arguments;

/// Runs what the options ask for.
pub(crate) fn run(arguments: &Arguments) -> ExitCode {
    if arguments.homa.settings {
        return show_settings(&arguments.homa, arguments.link_gbps);
    }
    let parts = match plan::parts(arguments) {
        Ok(parts) => parts,
        Err(problem) => return fail(EXIT_USAGE, problem),
    };
    let servers = match arguments.servers() {
        Ok(None) => Ok(Vec::new()),
        Ok(Some(list)) => resolve(list),
        Err(problem) => Err(problem.to_owned()),
    };
    let servers = match servers {
        Ok(servers) => servers,
        Err(problem) => return fail(EXIT_USAGE, problem),
    };
    let result = stop_on_signals()
        .map_err(BenchError::system("signal handlers"))
        .and_then(|stop| measure(arguments, parts, servers, &stop));
    match result {
        Ok(code) => code,
        Err(error) => fail(EXIT_FAILED, error),
    }
}

/// The servers of each protocol, and how to reach them.
struct Servers {
    given: Vec<SocketAddr>,
    local: Option<Rc<LocalServer>>,
    reach: Reach,
}

impl Servers {
    fn connect(&self, protocol: Protocol) -> Result<Box<dyn Transport>, BenchError> {
        match &self.local {
            None => self.reach.connect(protocol, &self.given),
            Some(local) => {
                let inner = self.reach.connect(protocol, &local.addresses(protocol))?;
                Ok(Box::new(WithServer::new(inner, local, protocol)))
            }
        }
    }
}

fn measure(
    arguments: &Arguments,
    parts: Vec<Part>,
    given: Vec<SocketAddr>,
    stop: &Stop,
) -> Result<ExitCode, BenchError> {
    let servers = Servers {
        given,
        local: if arguments.local {
            Some(Rc::new(LocalServer::start(&server_arguments(arguments))?))
        } else {
            None
        },
        reach: Reach {
            homa: arguments.homa.options(arguments.link_gbps),
            tcp_connections: arguments.tcp_connections,
            tcp_congestion: arguments.tcp_congestion.clone().into(),
        },
    };
    let mut progress: Box<dyn Progress> = if speaks(arguments) {
        Box::new(Lines::default())
    } else {
        Box::new(Silent)
    };
    match arguments.protocols() {
        [one] => measure_one(arguments, parts, &servers, *one, stop, progress.as_mut()),
        several => measure_in_turn(arguments, parts, &servers, several, stop, progress.as_mut()),
    }
}

/// Whether progress is told.
fn speaks(arguments: &Arguments) -> bool {
    arguments.interval.is_some() || io::stderr().is_terminal()
}

/// What the local server has to know.
fn server_arguments(arguments: &Arguments) -> Vec<String> {
    let mut list = arguments.homa.for_server();
    list.push(format!("--poll={}", arguments.poll.as_secs_f64() * 1e6));
    list.extend(
        arguments
            .link_gbps
            .map(|gbps| format!("--link-gbps={gbps}")),
    );
    list.extend(
        arguments
            .tcp_congestion
            .as_ref()
            .map(|name| format!("--tcp-congestion={name}")),
    );
    list
}

/// Every part with one protocol; a report for each, as soon as it is there.
fn measure_one(
    arguments: &Arguments,
    parts: Vec<Part>,
    servers: &Servers,
    protocol: Protocol,
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<ExitCode, BenchError> {
    let mut transport = servers.connect(protocol)?;
    let several = parts.len() > 1;
    let command: Vec<String> = std::env::args().collect();
    let mut reports: Vec<Report> = Vec::new();
    for part in parts {
        progress.turn(&format!("{} {}", transport.protocol(), part.title));
        let outcome = run::run(transport.as_mut(), &part.setup, stop, progress)?;
        let report = Report::new(
            transport.as_ref(),
            &part.setup,
            outcome,
            &part.title,
            command.clone(),
        );
        let go_on = report.end == "complete";
        if !arguments.json_on_stdout() {
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
    if several {
        let all: Vec<String> = reports.iter().map(Report::json).collect();
        write_json(arguments, &format!("[{}]\n", all.join(",\n")))?;
    } else {
        let one: String = reports.iter().map(Report::json).collect();
        write_json(arguments, &(one + "\n"))?;
    }
    Ok(exit_code(&reports))
}

/// Every part with every protocol, in rounds; one table at the end.
fn measure_in_turn(
    arguments: &Arguments,
    parts: Vec<Part>,
    servers: &Servers,
    protocols: &[Protocol],
    stop: &Stop,
    progress: &mut dyn Progress,
) -> Result<ExitCode, BenchError> {
    let plan = Plan {
        parts,
        rounds: arguments.rounds.get(),
        command: std::env::args().collect(),
    };
    if speaks(arguments) {
        let expected = compare::expected_time(&plan, protocols.len() as u32);
        // Nobody to tell if stderr is gone.
        let _ = writeln!(
            io::stderr(),
            "{} rounds, about {:.0} s; Ctrl-C ends it and shows what there is",
            plan.rounds,
            expected.as_secs_f64().ceil()
        );
    }
    let mut clients: Vec<Connect<'_>> = protocols
        .iter()
        .map(|&protocol| -> Connect<'_> { Box::new(move || servers.connect(protocol)) })
        .collect();
    let comparison: Comparison = compare::compare(&mut clients, &plan, stop, progress)?;
    if !arguments.json_on_stdout() {
        say(&compare::render(&comparison))?;
    }
    write_json(arguments, &(comparison.json() + "\n"))?;
    let told = comparison
        .reports
        .iter()
        .any(|report| report.error.is_some());
    Ok(match &comparison.error {
        Some(error) if !told => fail(EXIT_FAILED, error),
        _ if comparison.end == "interrupted" => ExitCode::from(EXIT_INTERRUPTED),
        _ => exit_code(&comparison.reports),
    })
}

fn exit_code(reports: &[Report]) -> ExitCode {
    // The table has said it, but stdout may be JSON or a file.
    if let Some(error) = reports.iter().find_map(|report| report.error.as_ref()) {
        return fail(EXIT_FAILED, error);
    }
    ExitCode::from(
        if reports.iter().any(|report| report.end == "interrupted") {
            EXIT_INTERRUPTED
        } else if reports.iter().all(Report::is_complete) {
            0
        } else {
            EXIT_FAILED
        },
    )
}

fn write_json(arguments: &Arguments, text: &str) -> Result<(), BenchError> {
    match &arguments.json {
        None => Ok(()),
        Some(_) if arguments.json_on_stdout() => say(text),
        Some(path) => std::fs::write(path, text).map_err(|source| {
            BenchError::Transport(format!("cannot write {}: {source}", path.display()))
        }),
    }
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
