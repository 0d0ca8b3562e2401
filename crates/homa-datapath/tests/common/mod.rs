//! What the datapath's tests share: waiting for packets, and namespaces.

#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(
    unreachable_pub,
    reason = "shared by test programs, reachable from none"
)]

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use homa_datapath::{Datapath, Meta, NetworkErrorKind, Path, ReceiveBatch, SendBatch};

/// A received packet, copied out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    pub meta: Meta,
    pub bytes: Vec<u8>,
}

/// A reported error, copied out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    pub remote: SocketAddr,
    pub kind: NetworkErrorKind,
    pub quoted: Vec<u8>,
}

/// Waits until a descriptor of the datapath is readable or in error.
pub fn wait(datapath: &dyn Datapath, limit: Duration) {
    let mut polled: Vec<_> = datapath
        .descriptors()
        .iter()
        .map(|fd| libc::pollfd {
            fd: fd.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    // SAFETY: the kernel writes into the entries of the vector.
    unsafe {
        libc::poll(
            polled.as_mut_ptr(),
            polled.len() as libc::nfds_t,
            limit.as_millis() as i32,
        )
    };
}

/// Receives `count` packets, or as many as come within two seconds.
pub fn receive(datapath: &dyn Datapath, count: usize) -> Vec<Packet> {
    let mut batch = ReceiveBatch::default();
    let mut packets = Vec::new();
    let end = Instant::now() + Duration::from_secs(2);
    while packets.len() < count && Instant::now() < end {
        let in_batch = datapath.receive(&mut batch).unwrap();
        assert_eq!(in_batch, batch.iter().count());
        if in_batch == 0 {
            wait(datapath, Duration::from_millis(10));
        }
        packets.extend(batch.iter().map(|(bytes, meta)| Packet {
            meta: *meta,
            bytes: bytes.to_vec(),
        }));
    }
    packets
}

/// Waits up to two seconds for errors.
pub fn errors(datapath: &dyn Datapath) -> Vec<Reported> {
    let mut reports = Vec::new();
    let end = Instant::now() + Duration::from_secs(2);
    while reports.is_empty() && Instant::now() < end {
        wait(datapath, Duration::from_millis(10));
        datapath.errors(&mut |error| {
            reports.push(Reported {
                remote: error.remote,
                kind: error.kind,
                quoted: error.quoted.to_vec(),
            });
        });
    }
    reports
}

/// Sends one packet and expects that to work.
pub fn send(datapath: &dyn Datapath, path: &Path, tos: u8, bytes: &[u8]) {
    let mut batch = SendBatch::default();
    batch
        .push(path, tos, bytes.len())
        .unwrap()
        .copy_from_slice(bytes);
    datapath.seal(&mut batch);
    let outcome = datapath.send(&mut batch);
    assert_eq!((outcome.sent, outcome.dropped), (1, 0), "{outcome:?}");
}

/// Bytes that differ from packet to packet and along a packet.
pub fn pattern(seed: usize, length: usize) -> Vec<u8> {
    (0..length)
        .map(|index| (seed * 31 + index * 7 + index / 256) as u8)
        .collect()
}

/// Says that a test did not run, and why.
pub fn skipped(name: &str, why: &str) {
    homa_test::skip(name, why);
}

/// A network namespace of its own, and a thread that lives in it; both end
/// with the value.
pub struct Namespace {
    jobs: mpsc::Sender<Box<dyn FnOnce() + Send>>,
    thread: i64,
}

impl Namespace {
    /// Makes one with the loopback device up.
    pub fn new() -> Result<Self, String> {
        let (jobs, inbox) = mpsc::channel::<Box<dyn FnOnce() + Send>>();
        let (answer, answered) = mpsc::channel();
        std::thread::spawn(move || {
            // SAFETY: no pointers; only this thread changes its namespace.
            let result = unsafe { libc::unshare(libc::CLONE_NEWNET) };
            // SAFETY: no arguments.
            let thread = unsafe { libc::syscall(libc::SYS_gettid) };
            let made = if result == 0 {
                ip("link set lo up").map(|()| thread)
            } else {
                let error = std::io::Error::last_os_error();
                Err(format!(
                    "unshare(CLONE_NEWNET) needs CAP_SYS_ADMIN: {error}"
                ))
            };
            answer.send(made).unwrap();
            for job in inbox {
                job();
            }
        });
        let thread = answered.recv().unwrap()?;
        let namespace = Self { jobs, thread };
        // Addresses are usable at once, without a second of looking for
        // duplicates.
        for scope in ["all", "default"] {
            namespace.set(&format!("net/ipv6/conf/{scope}/accept_dad"), "0")?;
        }
        Ok(namespace)
    }

    /// Runs a closure in it.
    pub fn run<R: Send + 'static>(&self, work: impl FnOnce() -> R + Send + 'static) -> R {
        let (answer, answered) = mpsc::channel();
        self.jobs
            .send(Box::new(move || answer.send(work()).unwrap()))
            .unwrap();
        answered.recv().expect("the closure panicked")
    }

    /// Runs `ip` commands in it.
    pub fn ip(&self, commands: &[&str]) -> Result<(), String> {
        let commands: Vec<_> = commands.iter().map(ToString::to_string).collect();
        self.run(move || commands.iter().try_for_each(|command| ip(command)))
    }

    /// A veth pair: `here` in this namespace, `there` in the other.
    pub fn link(&self, here: &str, other: &Self, there: &str) -> Result<(), String> {
        self.ip(&[&format!(
            "link add {here} type veth peer name {there} netns {}",
            other.thread
        )])
    }

    /// Sends both ways until it works: new links lose what is sent in their
    /// first moments.
    pub fn warm_up(
        &self,
        here: &'static str,
        other: &Self,
        there: &'static str,
    ) -> Result<(), String> {
        let near = self.run(move || UdpSocket::bind(here).unwrap());
        let far = other.run(move || UdpSocket::bind(there).unwrap());
        for (sender, receiver) in [(&near, &far), (&far, &near)] {
            let patience = Some(Duration::from_millis(50));
            receiver.set_read_timeout(patience).unwrap();
            let to = receiver.local_addr().unwrap();
            let works = (0..100).any(|_| {
                let _ = sender.send_to(b"x", to);
                receiver.recv(&mut [0; 8]).is_ok()
            });
            if !works {
                return Err(format!("no way between {here} and {there}"));
            }
        }
        Ok(())
    }

    /// Writes a setting below /proc/sys, whose `net` part belongs to the
    /// namespace of the thread that opens it.
    pub fn set(&self, setting: &str, value: &str) -> Result<(), String> {
        let (path, value) = (format!("/proc/sys/{setting}"), value.to_owned());
        self.run(move || std::fs::write(&path, value).map_err(|error| format!("{path}: {error}")))
    }
}

fn ip(command: &str) -> Result<(), String> {
    let output = Command::new("ip")
        .args(command.split(' '))
        .output()
        .map_err(|error| format!("the `ip` program: {error}"))?;
    if output.status.success() {
        Ok(())
    } else {
        let message = String::from_utf8_lossy(&output.stderr);
        Err(format!("ip {command}: {}", message.trim()))
    }
}
