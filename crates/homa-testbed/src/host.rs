//! One host of a testbed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::thread::JoinHandle;

use crate::Error;
use crate::namespace::{Namespace, cannot_start};

/// The name of the only device of a host besides the loopback.
pub const DEVICE: &str = "eth0";

/// A host: a network stack of its own with one device.
///
/// What is started in it, threads and programs, shares files, memory and
/// processors with everything else on the machine; only its network is its own.
/// Sockets belong to the host they were opened in, whoever uses them.
pub struct Host {
    pub(crate) namespace: Namespace,
    pub(crate) v4: Ipv4Addr,
    pub(crate) v6: Ipv6Addr,
}

impl Host {
    /// `h1`, `h2`, ...
    pub fn name(&self) -> &str {
        self.namespace.name()
    }

    /// Its IPv4 address.
    pub fn v4(&self) -> IpAddr {
        self.v4.into()
    }

    /// Its IPv6 address.
    pub fn v6(&self) -> IpAddr {
        self.v6.into()
    }

    /// Runs a closure in it, on a thread of its own, and waits for the result.
    /// Threads that it starts are in the host too.
    ///
    /// # Errors
    ///
    /// If no thread can be started.
    ///
    /// # Panics
    ///
    /// If the closure does.
    pub fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<R, Error> {
        match self.spawn(work)?.join() {
            Ok(result) => Ok(result),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// Starts a closure in it, on a thread of its own.
    ///
    /// # Errors
    ///
    /// If no thread can be started.
    pub fn spawn<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> R + Send + 'static,
    ) -> Result<JoinHandle<R>, Error> {
        self.namespace.spawn(self.name(), work)
    }

    /// Starts a program in it. It is killed when the testbed is dropped and
    /// when this process ends, however it ends.
    ///
    /// # Errors
    ///
    /// If the program cannot be started.
    pub fn start(&self, command: Command) -> Result<Child, Error> {
        self.namespace.start(command)
    }

    /// Runs a program in it to its end, and gives its output back.
    ///
    /// # Errors
    ///
    /// If the program cannot be started, and if it says that it failed.
    pub fn output(&self, mut command: Command) -> Result<String, Error> {
        let program = command.get_program().to_string_lossy().into_owned();
        command
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped());
        let output = self
            .start(command)?
            .wait_with_output()
            .map_err(|error| cannot_start(&program, error))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(Error::Program { program, message })
    }

    /// Runs commands of `ip` in it, such as `addr add 10.88.0.101/24 dev eth0`.
    ///
    /// # Errors
    ///
    /// What `ip` says.
    pub fn ip(&self, commands: &[&str]) -> Result<(), Error> {
        let lines: Vec<String> = commands.iter().map(ToString::to_string).collect();
        self.namespace.batch("ip", &lines)
    }

    /// A file that stands for its network as long as the testbed is there:
    /// `nsenter --net=PATH tcpdump` shows what it sends.
    pub fn network_path(&self) -> PathBuf {
        self.namespace.path()
    }
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host")
            .field("name", &self.name())
            .field("v4", &self.v4)
            .field("v6", &self.v6)
            .finish_non_exhaustive()
    }
}
