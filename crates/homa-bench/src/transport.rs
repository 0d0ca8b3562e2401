//! The narrow waist: what the harness asks of a transport.
//!
//! Single-threaded and event-driven: [`Transport::submit`] starts an RPC and
//! returns at once, [`Transport::poll`] makes progress without sleeping and
//! hands out what finished, [`Transport::wait`] sleeps until something may have
//! happened. How long the harness spins before it sleeps is decided by the
//! harness, the same for every transport.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use homa_engine::Message;

use crate::error::BenchError;

/// Chosen by the harness, returned with the completion; unique among the RPCs
/// outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(pub u64);

/// A server, as the position in the list of servers the transport was made
/// with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerIndex(pub usize);

/// What a look at the network found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// There was work, perhaps without any RPC that ended.
    Something,
    /// There was nothing to do.
    Nothing,
}

impl Found {
    /// Something if either is.
    pub(crate) fn or(self, other: Self) -> Self {
        match self {
            Self::Something => Self::Something,
            Self::Nothing => other,
        }
    }
}

/// How one RPC ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The whole response is in memory.
    Response(Message),
    /// It failed alone; the transport goes on. The text is for the user.
    Failed(String),
}

/// One RPC that ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Completion {
    /// The harness's name for it.
    pub tag: Tag,
    /// When its last byte was in memory, or when it failed.
    pub at: Instant,
    /// How it ended.
    pub outcome: Outcome,
}

/// The client's side of a request-response transport.
pub trait Transport {
    /// `tcp`, `homa`: as in reports and options.
    fn protocol(&self) -> &'static str;

    /// The servers, in the order of [`PeerIndex`].
    fn peers(&self) -> &[SocketAddr];

    /// What a firewall would see of the traffic to a server: `UDP port 4000`.
    fn traffic(&self, peer: PeerIndex) -> String;

    /// Longest message in bytes, requests and responses.
    fn max_message_bytes(&self) -> u32;

    /// Lines on the set-up that a reader needs to repeat the run: sockets,
    /// options, datapath.
    fn details(&self) -> Vec<(String, String)>;

    /// Starts an RPC. The harness limits how many are outstanding, the
    /// transport does not; an error ends the run.
    fn submit(&mut self, tag: Tag, peer: PeerIndex, request: Vec<u8>) -> Result<(), BenchError>;

    /// Makes progress without sleeping and appends what finished. An error
    /// means that RPCs were lost with no hope and ends the run.
    fn poll(&mut self, completions: &mut Vec<Completion>) -> Result<Found, BenchError>;

    /// Sleeps until there may be something to poll, at the latest until
    /// `deadline` (to within the kernel's timer precision). May return early
    /// for no reason.
    fn wait(&mut self, deadline: Instant) -> Result<(), BenchError>;

    /// What the transport has counted since it was made, by name, in a fixed
    /// order; nothing if it does not count.
    fn counters(&self) -> Vec<(String, u64)> {
        Vec::new()
    }

    /// Forgets every RPC outstanding: no completion follows for their tags.
    fn abandon_all(&mut self);
}

/// What an echo server has done; one writer, any readers.
#[derive(Debug, Default)]
pub struct ServerCounters {
    requests: AtomicU64,
    request_bytes: AtomicU64,
    response_bytes: AtomicU64,
    refused: AtomicU64,
    busy_ns: AtomicU64,
}

/// [`ServerCounters`] at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ServerTotals {
    /// Requests that came in whole.
    pub requests: u64,
    /// Their bytes.
    pub request_bytes: u64,
    /// Bytes of the responses to them.
    pub response_bytes: u64,
    /// Requests or connections turned away: malformed, or one too many.
    pub refused: u64,
    /// Time with something to do, µs; spinning without is none.
    pub busy_us: u64,
}

impl ServerCounters {
    /// A request came in whole and has a response.
    pub fn add_request(&self, request_bytes: usize, response_bytes: usize) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.request_bytes
            .fetch_add(request_bytes as u64, Ordering::Relaxed);
        self.response_bytes
            .fetch_add(response_bytes as u64, Ordering::Relaxed);
    }

    /// Something was turned away.
    pub fn add_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// The server has worked for this long.
    pub fn add_busy(&self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.busy_ns.fetch_add(ns, Ordering::Relaxed);
    }

    /// Reads all counters.
    pub fn totals(&self) -> ServerTotals {
        ServerTotals {
            requests: self.requests.load(Ordering::Relaxed),
            request_bytes: self.request_bytes.load(Ordering::Relaxed),
            response_bytes: self.response_bytes.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            busy_us: self.busy_ns.load(Ordering::Relaxed) / 1000,
        }
    }
}
