//! Ctrl-C and SIGTERM end a command in order, with its summary; a second one
//! ends it at once.

use std::io;
use std::sync::Arc;

use homa_bench::stop::Stop;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// Exit status of a program ended by Ctrl-C, as shells report it.
pub(crate) const EXIT_INTERRUPTED: u8 = 130;

/// A [`Stop`] that the two signals request.
pub(crate) fn stop_on_signals() -> io::Result<Stop> {
    let stop = Stop::new();
    for signal in [SIGINT, SIGTERM] {
        // In this order: the first signal finds the flag down, raises it and
        // nothing else happens; the second finds it up.
        flag::register_conditional_shutdown(signal, EXIT_INTERRUPTED.into(), stop.flag())?;
        flag::register(signal, Arc::clone(&stop.flag()))?;
    }
    Ok(stop)
}
