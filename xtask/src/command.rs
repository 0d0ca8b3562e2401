//! Running other programs, cargo above all.

use std::error::Error;
use std::ffi::OsStr;
use std::process::{Command, Output};

/// What a command of ours returns: the text is for the person who ran it.
pub(crate) type Outcome = Result<(), Box<dyn Error>>;

/// The cargo that runs us.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs a command with its output shown; failing is an error.
pub(crate) fn show(command: &mut Command) -> Outcome {
    let status = command
        .status()
        .map_err(|error| format!("{}: {error}", text(command)))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{}: {status}", text(command)).into())
    }
}

/// Runs a command and gives its output, whether it succeeded or not.
pub(crate) fn collect(command: &mut Command) -> Result<Output, Box<dyn Error>> {
    command
        .output()
        .map_err(|error| format!("{}: {error}", text(command)).into())
}

/// The command as one would type it.
pub(crate) fn text(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
    words.join(" ")
}

/// Says that something was not checked here, and why, in the form that
/// `.ci/run` collects.
pub(crate) fn skipped(name: &str, why: &str) {
    println!("SKIPPED {name}: {why}");
}
