//! The processes of a turn: `homa node` in each host of the testbed, and how
//! they are scheduled.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use homa_bench::node::talk::{Order, Plan, Said};
use homa_testbed::Host;

use super::CompareError;

/// How the processes are scheduled, alike for all rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheduling {
    /// Hosts before everything else, and on each processor something that runs
    /// when nobody else wants to: a processor that never sleeps is not late.
    RealTime,
    /// Like any other program.
    Ordinary,
}

impl Scheduling {
    /// What the system permits.
    pub(super) fn find(ordinary: bool) -> Self {
        let permitted = Command::new("chrt")
            .args(["--fifo", "10", "true"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        if permitted && !ordinary {
            Self::RealTime
        } else {
            Self::Ordinary
        }
    }

    /// For the report.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::RealTime => {
                "Hosts have real-time scheduling; a spinner of lowest priority keeps each processor awake."
            }
            Self::Ordinary => "Hosts are scheduled like any other program.",
        }
    }

    /// Starts what keeps the processors awake.
    pub(super) fn start_spinners(self) -> Result<Vec<Spinner>, CompareError> {
        if self == Self::Ordinary {
            return Ok(Vec::new());
        }
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let program = std::env::current_exe()?;
        let start = |_| {
            let mut command = Command::new("nice");
            command
                .args(["-n", "19", "chrt", "--idle", "0"])
                .arg(&program)
                .args(["node", "--spin"])
                .stdin(Stdio::piped());
            Ok(Spinner(command.spawn()?))
        };
        (0..processors).map(start).collect()
    }

    fn command(self) -> Result<Command, CompareError> {
        let program = std::env::current_exe()?;
        let mut command = match self {
            Self::RealTime => {
                let mut command = Command::new("chrt");
                command.args(["--fifo", "10"]).arg(program);
                command
            }
            Self::Ordinary => Command::new(program),
        };
        command.arg("node");
        Ok(command)
    }
}

/// Keeps a processor awake while it lives.
pub(super) struct Spinner(Child);

impl Drop for Spinner {
    fn drop(&mut self) {
        // It ends by itself when its standard input does; this is faster.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One host's process.
pub(super) struct Node {
    name: String,
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Node {
    /// Starts it and waits until it listens.
    pub(super) fn start(
        host: &Host,
        scheduling: Scheduling,
        plan: &Plan,
    ) -> Result<Self, CompareError> {
        let mut command = scheduling.command()?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = host.start(command)?;
        let stdout = child.stdout.take();
        let stdout = stdout.ok_or_else(|| CompareError::Failed("a pipe is missing".into()))?;
        let mut node = Self {
            name: host.name().to_owned(),
            child,
            lines: BufReader::new(stdout).lines(),
        };
        node.write(&serde_json::to_string(plan)?)?;
        match node.read()? {
            Said::Listening => Ok(node),
            other => Err(node.unexpected(&other)),
        }
    }

    /// The number of its process.
    pub(super) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Tells it what to do.
    pub(super) fn order(&mut self, order: Order) -> Result<(), CompareError> {
        self.write(&serde_json::to_string(&order)?)
    }

    /// Waits for its next line.
    pub(super) fn read(&mut self) -> Result<Said, CompareError> {
        let line = self.lines.next().ok_or_else(|| {
            CompareError::Failed(format!("host {} ended without a word", self.name))
        })??;
        match serde_json::from_str(&line)? {
            Said::Failed(reason) => Err(CompareError::Failed(format!(
                "host {}: {reason}",
                self.name
            ))),
            said => Ok(said),
        }
    }

    /// The error for a line that does not belong here.
    pub(super) fn unexpected(&self, said: &Said) -> CompareError {
        let mut text = format!("{said:?}");
        text.truncate(100);
        CompareError::Failed(format!("host {} said {text}", self.name))
    }

    fn write(&mut self, line: &str) -> Result<(), CompareError> {
        let Some(stdin) = &mut self.child.stdin else {
            return Ok(());
        };
        writeln!(stdin, "{line}")
            .and_then(|()| stdin.flush())
            .map_err(|error| CompareError::Failed(format!("host {}: {error}", self.name)))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
