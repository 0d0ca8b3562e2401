//! A `homa server` of this same program on loopback, for as long as a value of
//! [`LocalServer`] lives.
//!
//! It cannot outlive this process, however that ends: the server stops when
//! its standard input, a pipe from here, closes. Ctrl-C does not reach it (it
//! has a process group of its own), so that the client ends first.

use std::io::{BufRead, BufReader, PipeReader};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use homa_bench::error::BenchError;

use crate::target::Protocol;

/// How long the server has to end by itself.
const PATIENCE: Duration = Duration::from_secs(2);

/// A running server; dropping it ends it and waits for it.
pub(crate) struct LocalServer {
    child: Child,
    homa: Option<SocketAddr>,
    tcp: Option<SocketAddr>,
}

impl LocalServer {
    /// Starts `homa server ARGUMENTS` on free ports of 127.0.0.1 for both
    /// protocols and waits until it listens.
    pub(crate) fn start(arguments: &[String]) -> Result<Self, BenchError> {
        let program =
            std::env::current_exe().map_err(BenchError::system("path of this program"))?;
        let (lines, stdout) = std::io::pipe().map_err(BenchError::system("pipe"))?;
        let child = Command::new(program)
            .args(["server", "--listen", "127.0.0.1:0", "--protocol", "both"])
            .args(["--json", "--until-stdin-closes"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(stdout)
            .process_group(0)
            .spawn()
            .map_err(BenchError::system("start of `homa server`"))?;
        let mut server = Self {
            child,
            homa: None,
            tcp: None,
        };
        server.read_addresses(BufReader::new(lines))?;
        Ok(server)
    }

    fn read_addresses(&mut self, mut lines: BufReader<PipeReader>) -> Result<(), BenchError> {
        while self.homa.is_none() || self.tcp.is_none() {
            let mut line = String::new();
            let read = lines
                .read_line(&mut line)
                .map_err(BenchError::system("output of `homa server`"))?;
            if read == 0 {
                // It has said why on stderr, which is ours.
                return Err(BenchError::Transport(
                    "the local `homa server` did not start".into(),
                ));
            }
            let value: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
            let address = value["address"].as_str().and_then(|text| text.parse().ok());
            match value["protocol"].as_str() {
                Some("homa") => self.homa = address,
                Some("tcp") => self.tcp = address,
                _ => {}
            }
        }
        // Nobody reads the totals at the end; a closed pipe does not stop it.
        Ok(())
    }

    /// Where it serves `protocol`.
    pub(crate) fn addresses(&self, protocol: Protocol) -> Vec<SocketAddr> {
        match protocol {
            Protocol::Homa => self.homa.into_iter().collect(),
            Protocol::Tcp => self.tcp.into_iter().collect(),
        }
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            match self.child.try_wait() {
                Ok(None) => thread::sleep(Duration::from_millis(5)),
                Ok(Some(_)) | Err(_) => return,
            }
        }
        // It hangs.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
