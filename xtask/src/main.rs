//! Checks over the repository that neither the compiler nor clippy makes.
//!
//! `cargo xtask lint` reads files; the same check is a test, so that
//! `cargo test --workspace` includes it. `no-std` and `cost` build and run
//! things, `skips` reads the log of a test run.
//!
//! What is *not* here: anything a crate needs to build. A command prints one
//! line for each problem and fails if there was one; what cannot be checked on
//! this machine is printed as `SKIPPED name: why`.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "the output of a command")]

mod command;
mod cost;
mod lint;
mod no_std;
mod repository;
mod skips;
mod source;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask COMMAND
  lint         rules of the repository: dependency edges, file sizes, words, ...
  no-std       homa-wire and homa-core without std; the libraries for aarch64
  cost         instructions per packet against the committed thresholds
  skips LOG    fails on a test skipped in LOG that .ci/skips does not allow";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        ["lint"] => lint::run(),
        ["no-std"] => no_std::run(),
        ["cost"] => cost::run(),
        ["skips", log] => skips::run(log),
        _ => Err(USAGE.into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
