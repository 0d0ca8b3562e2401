//! The libraries' events on stderr, for who looks for the cause of something.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

/// The variable that asks for events.
const VARIABLE: &str = "HOMA_LOG";

/// Begins to print if `HOMA_LOG` is set: `debug`, or targets as in
/// `homa_engine=trace,warn`.
///
/// # Errors
///
/// What is wrong with the variable, for the user.
pub(crate) fn begin() -> Result<(), String> {
    let Ok(wanted) = std::env::var(VARIABLE) else {
        return Ok(());
    };
    let filter = EnvFilter::try_new(&wanted).map_err(|error| {
        format!(
            "{VARIABLE} is `{wanted}` ({error}): give error, warn, info, debug or trace, or targets such as homa_engine=debug"
        )
    })?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(io::stderr().is_terminal())
        .with_writer(io::stderr)
        .try_init()
        .map_err(|error| error.to_string())
}
