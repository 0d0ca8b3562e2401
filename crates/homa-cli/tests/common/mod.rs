//! The command as a process, with an end to every wait.

#![allow(
    dead_code,
    reason = "each test file is a crate of its own and uses some of it"
)]

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// Nothing here takes longer, even unoptimized on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);

/// What a run left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// Standard output as one JSON value.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// `homa` with these arguments and nothing on standard input.
pub(crate) fn homa(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_homa"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs it to its end.
pub(crate) fn run(arguments: &[&str]) -> Ran {
    finish(start(&mut homa(arguments)))
}

/// Starts it with both outputs as pipes.
pub(crate) fn start(command: &mut Command) -> Child {
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Collects both outputs and waits; a process that does not end is killed, and
/// the test fails.
pub(crate) fn finish(mut process: Child) -> Ran {
    let out = collect(process.stdout.take());
    let err = collect(process.stderr.take());
    let pid = process.id().to_string();
    let (ended, watch) = mpsc::channel::<()>();
    let watchdog = thread::spawn(move || {
        let late = watch.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout);
        if late {
            signal("-KILL", &pid);
        }
        late
    });
    let status = process.wait().unwrap();
    drop(ended);
    let late = watchdog.join().unwrap();
    let (out, err) = (out.join().unwrap(), err.join().unwrap());
    assert!(!late, "it did not end: {out}{err}");
    Ran {
        code: status.code().unwrap_or(-1),
        out,
        err,
    }
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut text = String::new();
        if let Some(mut pipe) = pipe {
            pipe.read_to_string(&mut text).unwrap();
        }
        text
    })
}

/// Sends `-INT`, `-TERM`, ... to a process that a test started.
pub(crate) fn signal(name: &str, pid: &str) {
    let status = Command::new("kill").args([name, pid]).status().unwrap();
    assert!(status.success(), "kill {name}");
}

/// Ctrl-C, and its end.
pub(crate) fn interrupt(process: Child) -> Ran {
    signal("-INT", &process.id().to_string());
    finish(process)
}

/// A server; dropping it kills it.
pub(crate) struct Server {
    process: Option<Child>,
    stdout: BufReader<ChildStdout>,
    /// Where it listens, in the order of its lines.
    pub(crate) addresses: Vec<String>,
}

impl Server {
    /// `homa server --json` on a free port, for `protocols` protocols.
    pub(crate) fn start(arguments: &[&str], protocols: usize) -> Self {
        let mut process = homa(&["server", "--json"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(process.stdout.take().unwrap());
        let addresses = (0..protocols)
            .map(|_| {
                let mut line = String::new();
                stdout.read_line(&mut line).unwrap();
                let listening: Value = serde_json::from_str(&line).unwrap();
                assert_eq!(listening["event"], "listening");
                listening["address"].as_str().unwrap().to_owned()
            })
            .collect();
        Self {
            process: Some(process),
            stdout,
            addresses,
        }
    }

    /// Of one protocol, on 127.0.0.1.
    pub(crate) fn of(protocol: &str) -> Self {
        Self::start(&["--listen", "127.0.0.1:0", "--protocol", protocol], 1)
    }

    /// Its first address.
    pub(crate) fn address(&self) -> &str {
        &self.addresses[0]
    }

    /// Ctrl-C; returns the lines it still says.
    pub(crate) fn interrupt(mut self) -> Vec<Value> {
        let process = self.process.take().unwrap();
        signal("-INT", &process.id().to_string());
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        assert_eq!(finish(process).code, 0);
        rest.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}
