//! What can go wrong, said so that the reader knows what to do about it.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Why a run, a ping or a server cannot start or go on.
///
/// A single RPC that fails is not an error of the run: it is counted
/// ([`crate::transport::Outcome`]).
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The host answered that nobody listens on the port.
    #[error(
        "nobody listens on {peer} over {protocol}: is `homa server --protocol {protocol}` running there, on port {port}?",
        port = peer.port()
    )]
    Refused {
        /// Where nobody listens.
        peer: SocketAddr,
        /// Protocol that was tried.
        protocol: &'static str,
    },
    /// No answer at all.
    #[error(
        "{peer} is silent ({waited_s:.1} s without an answer, {protocol}): is the host up, is `homa server` running there, and does a firewall drop {traffic}?",
        waited_s = waited.as_secs_f64()
    )]
    Silent {
        /// Who is silent.
        peer: SocketAddr,
        /// Protocol that was tried.
        protocol: &'static str,
        /// How long it was waited.
        waited: Duration,
        /// What a firewall may drop.
        traffic: String,
    },
    /// RPCs end, but none with a response.
    #[error(
        "no response from {peer} for {waited_s:.1} s, only failures: {reason} ({protocol}). Is the host up and `homa server` running there, and does a firewall drop {traffic}?",
        waited_s = waited.as_secs_f64()
    )]
    Failing {
        /// Who was asked last.
        peer: SocketAddr,
        /// Protocol that was tried.
        protocol: &'static str,
        /// How long it was tried.
        waited: Duration,
        /// The last failure.
        reason: String,
        /// What a firewall may drop.
        traffic: String,
    },
    /// The network does not lead there.
    #[error(
        "{peer} cannot be reached over {protocol} ({reason}): is the address right, the interface up, the host on? `ip route get {ip}` shows the way",
        ip = peer.ip()
    )]
    Unreachable {
        /// Who cannot be reached.
        peer: SocketAddr,
        /// Protocol that was tried.
        protocol: &'static str,
        /// What the network said.
        reason: String,
    },
    /// The server went away in the middle.
    #[error("{peer} closed the connection ({reason}): did `homa server` stop there?")]
    PeerLost {
        /// Who went away.
        peer: SocketAddr,
        /// What the kernel said.
        reason: String,
    },
    /// Something else answers on that port.
    #[error(
        "{peer} does not speak this program's TCP framing ({reason}): is another service on that port, or another version of `homa server`?"
    )]
    NotOurServer {
        /// Who answered.
        peer: SocketAddr,
        /// What was wrong with the answer.
        reason: &'static str,
    },
    /// Somebody has the port.
    #[error(
        "{address} is in use ({protocol}): another `homa server`? Stop it or choose another port with --listen ADDR:PORT"
    )]
    InUse {
        /// The address asked for.
        address: SocketAddr,
        /// Protocol that was tried.
        protocol: &'static str,
    },
    /// The address cannot be had.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address asked for.
        address: SocketAddr,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// Requests that cannot be carried.
    #[error(
        "a message of {bytes} B is longer than the {limit} B that {protocol} carries here: ask for shorter requests (--size, --workload, --max-message) or responses (--response-size)"
    )]
    MessageTooLong {
        /// What was asked for.
        bytes: u64,
        /// What is possible.
        limit: u64,
        /// Protocol with the limit.
        protocol: &'static str,
    },
    /// A system call failed.
    #[error("{action}: {source}")]
    System {
        /// What was attempted.
        action: &'static str,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// A transport gave up for a reason of its own.
    #[error("{0}")]
    Transport(String),
}

impl BenchError {
    /// Makes the adapter that names what was attempted, for `map_err`.
    pub fn system(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { action, source }
    }
}
