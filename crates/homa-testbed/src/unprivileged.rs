//! Testbeds without root: in a user namespace, where the caller is root over
//! the networks that it makes, and over nothing else.

use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::Error;
use crate::namespace::{Namespace, cannot_start};

/// Set in the program that was started anew, so that it does not do so again.
const STARTED: &str = "HOMA_TESTBED_USER_NAMESPACE";

/// Makes this process one that can have testbeds: if it may not make network
/// namespaces, it is replaced by the same program with the same arguments in a
/// user namespace of its own.
///
/// To be called first in `main`: what was done before is done twice. Returns if
/// nothing has to be done.
///
/// # Errors
///
/// [`Error::Unavailable`] if the system does not allow it.
pub fn enter_user_namespace() -> Result<(), Error> {
    let Err(missing) = Namespace::new("check") else {
        return Ok(());
    };
    if std::env::var_os(STARTED).is_some() {
        return Err(missing);
    }
    let output = in_user_namespace("true")
        .output()
        .map_err(|error| cannot_start("unshare", error))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Err(Error::Unavailable(format!(
            "{missing}; here that fails: {}",
            message.trim().replace('\n', "; ")
        )));
    }
    let mut command = in_user_namespace(this_program()?);
    command.args(std::env::args_os().skip(1));
    // Returns only if that fails.
    Err(cannot_start("unshare", command.exec()))
}

/// A command that runs a program as root of a user namespace of its own, with a
/// network namespace of its own.
pub fn in_user_namespace(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("unshare");
    command
        .args(["--user", "--map-root-user", "--net", "--"])
        .arg(program)
        .env(STARTED, "1");
    command
}

fn this_program() -> Result<std::path::PathBuf, Error> {
    std::env::current_exe().map_err(Error::system("looking for this program's file"))
}
