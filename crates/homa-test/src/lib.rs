//! What the tests of several crates share.
//!
//! A test that cannot run where it is (no right to open raw sockets, say) must
//! not look as if it had passed. It calls [`skip`] and returns; `.ci/run`
//! collects what was skipped and fails if `.ci/skips` does not foresee it.

#![forbid(unsafe_code)]

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

/// Names the file that skips are appended to, besides being printed.
pub const LOG_VARIABLE: &str = "HOMA_SKIP_LOG";

/// Says that the test `name` did not run, and why.
///
/// Prints `SKIPPED name: why` to the standard error, past the test harness,
/// which shows the output of failed tests only, and appends the same line to
/// the file that the environment variable `HOMA_SKIP_LOG` names, if it is set.
///
/// # Panics
///
/// If that file cannot be written: a skip must not get lost.
#[allow(
    clippy::panic,
    reason = "the callers are tests, and this one must fail then"
)]
pub fn skip(name: &str, why: &str) {
    let line = line(name, why);
    // One write, so that lines of tests that run at once do not mix.
    let _ = io::stderr().write_all(line.as_bytes());
    if let Some(log) = std::env::var_os(LOG_VARIABLE)
        && let Err(error) = append(Path::new(&log), &line)
    {
        panic!("{LOG_VARIABLE}={}: {error}", log.to_string_lossy());
    }
}

fn line(name: &str, why: &str) -> String {
    format!("SKIPPED {name}: {}\n", why.replace('\n', " "))
}

fn append(log: &Path, line: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(log)?;
    file.write_all(line.as_bytes())
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn append__keeps_what_others_wrote() {
        let log = std::env::temp_dir().join(format!("homa-test-{}", std::process::id()));
        append(&log, &line("a", "no root")).unwrap();
        append(&log, &line("b", "no\nIPv6")).unwrap();
        let text = std::fs::read_to_string(&log).unwrap();
        std::fs::remove_file(&log).unwrap();
        assert_eq!(text, "SKIPPED a: no root\nSKIPPED b: no IPv6\n");
    }
}
