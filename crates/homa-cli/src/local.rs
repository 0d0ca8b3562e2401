//! A `homa server` of this same program on loopback, for as long as a value of
//! [`LocalServer`] lives.
//!
//! It cannot outlive this process, however that ends: the server stops when
//! its standard input, a pipe from here, closes. Ctrl-C does not reach it (it
//! has a process group of its own), so that the client ends first.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, PipeReader, Write};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use homa_bench::error::BenchError;
use homa_bench::transport::{Completion, Found, PeerIndex, Tag, Transport};
use serde_json::Value;

use crate::target::Protocol;

/// How long the server has to end by itself.
const PATIENCE: Duration = Duration::from_secs(2);

/// A running server; dropping it ends it and waits for it.
pub(crate) struct LocalServer {
    child: RefCell<Child>,
    lines: RefCell<BufReader<PipeReader>>,
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
            child: RefCell::new(child),
            lines: RefCell::new(BufReader::new(lines)),
            homa: None,
            tcp: None,
        };
        for _ in 0..2 {
            // It has said why on stderr, which is ours.
            let line = server.line().ok_or_else(|| {
                BenchError::Transport("the local `homa server` did not start".into())
            })?;
            let address = line["address"].as_str().and_then(|text| text.parse().ok());
            match line["protocol"].as_str() {
                Some("homa") => server.homa = address,
                _ => server.tcp = address,
            }
        }
        Ok(server)
    }

    /// The next line that it says; nothing if it has ended.
    fn line(&self) -> Option<Value> {
        let mut line = String::new();
        match self.lines.borrow_mut().read_line(&mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(serde_json::from_str(&line).unwrap_or_default()),
        }
    }

    /// Where it serves `protocol`.
    pub(crate) fn addresses(&self, protocol: Protocol) -> Vec<SocketAddr> {
        match protocol {
            Protocol::Homa => self.homa.into_iter().collect(),
            Protocol::Tcp => self.tcp.into_iter().collect(),
        }
    }

    /// What it has counted for `protocol` since it was started, each name with
    /// `server.` before it; nothing if it has ended.
    fn counters(&self, protocol: Protocol) -> Option<Vec<(String, u64)>> {
        let mut child = self.child.borrow_mut();
        let stdin = child.stdin.as_mut()?;
        stdin
            .write_all(b"totals\n")
            .and_then(|()| stdin.flush())
            .ok()?;
        let answers = [self.line()?, self.line()?];
        let name = match protocol {
            Protocol::Homa => "homa",
            Protocol::Tcp => "tcp",
        };
        let answer = answers.iter().find(|answer| answer["protocol"] == name)?;
        let mut counters = vec![("server.cpu_us".into(), answer["cpu_us"].as_u64()?)];
        for group in ["totals", "counters"] {
            for (name, value) in answer[group].as_object()? {
                counters.push((format!("server.{name}"), value.as_u64()?));
            }
        }
        Some(counters)
    }
}

impl Drop for LocalServer {
    fn drop(&mut self) {
        let child = self.child.get_mut();
        drop(child.stdin.take());
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            match child.try_wait() {
                Ok(None) => thread::sleep(Duration::from_millis(5)),
                Ok(Some(_)) | Err(_) => return,
            }
        }
        // It hangs.
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// A client whose counters contain those of the local server.
pub(crate) struct WithServer {
    inner: Box<dyn Transport>,
    server: Rc<LocalServer>,
    protocol: Protocol,
}

impl WithServer {
    /// `inner` speaks `protocol` to `server`.
    pub(crate) fn new(
        inner: Box<dyn Transport>,
        server: &Rc<LocalServer>,
        protocol: Protocol,
    ) -> Self {
        Self {
            inner,
            server: Rc::clone(server),
            protocol,
        }
    }
}

impl Transport for WithServer {
    fn protocol(&self) -> &'static str {
        self.inner.protocol()
    }

    fn peers(&self) -> &[SocketAddr] {
        self.inner.peers()
    }

    fn traffic(&self, peer: PeerIndex) -> String {
        self.inner.traffic(peer)
    }

    fn max_message_bytes(&self) -> u32 {
        self.inner.max_message_bytes()
    }

    fn details(&self) -> Vec<(String, String)> {
        self.inner.details()
    }

    fn submit(&mut self, tag: Tag, peer: PeerIndex, request: Vec<u8>) -> Result<(), BenchError> {
        self.inner.submit(tag, peer, request)
    }

    fn poll(&mut self, completions: &mut Vec<Completion>) -> Result<Found, BenchError> {
        self.inner.poll(completions)
    }

    fn wait(&mut self, deadline: Instant) -> Result<(), BenchError> {
        self.inner.wait(deadline)
    }

    fn counters(&self) -> Vec<(String, u64)> {
        let mut counters = self.inner.counters();
        counters.extend(self.server.counters(self.protocol).unwrap_or_default());
        counters
    }

    fn abandon_all(&mut self) {
        self.inner.abandon_all();
    }
}
