//! Every way in which something can fail, each with its cause and what to do.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use homa_core::ConfigError;

use crate::Address;

/// Why a call, a message, a reply or an endpoint failed.
///
/// One type for all, so that `?` works everywhere; the table in the
/// [crate's documentation](crate#errors) says which can come from where.
/// [`Error::may_have_executed`] says whether a failed call can be repeated
/// without the risk that it is executed twice.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The peer was silent for too long: it is down, or does not speak Homa, or
    /// a firewall drops what it sends. Try again later, or elsewhere.
    #[error(
        "{peer} did not answer: it is down, cut off, or does not speak Homa over this datapath"
    )]
    Timeout {
        /// Who was called.
        peer: SocketAddr,
    },
    /// The deadline that the caller gave has passed; the server was told that
    /// nobody waits any more.
    #[error("{peer} did not answer within {deadline:?}")]
    DeadlineExceeded {
        /// Who was called.
        peer: Address,
        /// The time that was given.
        deadline: Duration,
    },
    /// Nobody accepts requests on that port.
    #[error("{peer} is reachable, but no server has that port: is it started, is the port right?")]
    PortClosed {
        /// Who was called.
        peer: SocketAddr,
    },
    /// Nobody accepts requests on that port any more, as far as can be told:
    /// the server may have ended after it had the request.
    #[error(
        "{peer} is reachable, but no server has that port any more: the request may or may not \
         have been executed"
    )]
    ServerGone {
        /// Who was called.
        peer: SocketAddr,
    },
    /// There is no way to the host.
    #[error("there is no route to {peer}, or it is not there: check address, routes and firewall")]
    HostUnreachable {
        /// Who was called.
        peer: SocketAddr,
    },
    /// The host does not know IP protocol 146.
    #[error("{peer} does not know raw Homa (IP protocol 146): use the UDP datapath at both ends")]
    ProtocolUnsupported {
        /// Who was called.
        peer: SocketAddr,
    },
    /// The message is longer than this endpoint and the peer agree on.
    #[error(
        "a message of {bytes} bytes is longer than the limit of {limit}: split it, or raise \
         max_message_bytes at both ends"
    )]
    TooLarge {
        /// Bytes of the message.
        bytes: usize,
        /// The most bytes that this endpoint sends to that peer.
        limit: usize,
    },
    /// The peer accepts no message as long as this one.
    #[error(
        "{peer} does not accept a message of {bytes} bytes: split it, or raise its \
         max_message_bytes"
    )]
    TooLargeForPeer {
        /// Who was called.
        peer: SocketAddr,
        /// Bytes of the message.
        bytes: usize,
    },
    /// A message has at least one byte.
    #[error("a Homa message has at least one byte: send a byte that says \"nothing\"")]
    Empty,
    /// The server refused the request ([`Request::refuse`](crate::Request::refuse)).
    #[error("the server at {peer} refused the request")]
    Refused {
        /// Who was called.
        peer: SocketAddr,
    },
    /// The server dropped the request: a bug or a panic in its code.
    #[error("the server at {peer} dropped the request without an answer")]
    DroppedWithoutAnswer {
        /// Who was called.
        peer: SocketAddr,
    },
    /// The RPC was ended at the other end's wish, or by [`cancel`] here.
    ///
    /// [`cancel`]: crate::blocking::Pending::cancel
    #[error("the call to {peer} was cancelled")]
    Cancelled {
        /// Who was called.
        peer: SocketAddr,
    },
    /// Another instance of the peer answers: the request may or may not have
    /// been executed by the former one.
    #[error("{peer} has restarted: the request may or may not have been executed")]
    PeerRestarted {
        /// Who was called.
        peer: SocketAddr,
    },
    /// The peer is shutting down.
    #[error("{peer} is shutting down: call another server, or later")]
    PeerShutDown {
        /// Who was called.
        peer: SocketAddr,
    },
    /// The request reached the server so late that it may have been executed
    /// before; it was not executed now.
    #[error("the request reached {peer} so late that it may have been executed before")]
    Stale {
        /// Who was called.
        peer: SocketAddr,
    },
    /// The peer speaks Homa as the Linux module does, without this project's
    /// extensions: no one-way messages, nothing above 1,000,000 bytes. Or the
    /// extensions are switched off here.
    #[error(
        "{peer}, or this endpoint, does without the extensions that one-way messages and messages \
         above 1,000,000 bytes need"
    )]
    Unsupported {
        /// Who was called.
        peer: SocketAddr,
    },
    /// More peers are in use than this endpoint may know.
    #[error("too many peers at once: wait for some RPCs to end, or raise max_peers")]
    Full,
    /// This endpoint had no memory for the response.
    #[error("no memory for the response")]
    NoMemory,
    /// Port 0 is not a port.
    #[error("{peer}: port 0 is not a port")]
    PortZero {
        /// Who was called.
        peer: SocketAddr,
    },
    /// This endpoint is shut down, or its runtime is gone.
    #[error("the endpoint is shut down")]
    ShutDown,

    /// Nobody waits for the reply any more: the client has cancelled the call,
    /// is gone, or the request was a one-way message.
    #[error("nobody waits for this reply: the client cancelled the call, or is gone")]
    ClientGone,
    /// A one-way message has no reply.
    #[error("a one-way message has no reply")]
    OneWay,
    /// Replies that their clients have not taken yet fill the memory that they
    /// may have; the client was told that its request is refused.
    #[error("too many bytes of replies wait for their clients: raise max_reply_bytes")]
    RepliesFull,

    /// The name is not `host:port`, or could not be looked up.
    #[error("cannot look up {name:?}: {source}")]
    Resolve {
        /// What was to be looked up.
        name: String,
        /// What the resolver said.
        #[source]
        source: io::Error,
    },
    /// The name has no address of a family that this endpoint has.
    #[error("{name:?} has no address that this endpoint can reach: it has {families}")]
    NoAddress {
        /// The name, or the address as text.
        name: String,
        /// The families of the endpoint.
        families: &'static str,
    },

    /// Raw sockets need a capability.
    #[error(
        "raw IP sockets need CAP_NET_RAW: run as root, or `setcap cap_net_raw+ep` the program \
         (systemd: AmbientCapabilities=CAP_NET_RAW), or use the UDP datapath, which needs nothing"
    )]
    NoPermission,
    /// Somebody has the port.
    #[error("{address} is in use: choose another port, or 0 for any")]
    PortInUse {
        /// The address with the port.
        address: SocketAddr,
    },
    /// A server of this endpoint has the port already.
    #[error("this endpoint already has a server on port {port}: clone it, or drop it first")]
    ServerExists {
        /// The port.
        port: u16,
    },
    /// A server needs a port, and over UDP it is the endpoint's own.
    #[error("{}", wrong_port(*port, *own))]
    WrongPort {
        /// What was asked for.
        port: u16,
        /// The port that this endpoint has, if it can have only one.
        own: Option<u16>,
    },
    /// The address is not one of this host.
    #[error("{address} is not an address of this host")]
    NotLocal {
        /// The address.
        address: SocketAddr,
    },
    /// No address, two of one family, or ports that differ.
    #[error("bind to one IPv4 and/or one IPv6 address with the same port, not to {addresses:?}")]
    BadAddresses {
        /// What was given.
        addresses: Vec<SocketAddr>,
    },
    /// Only one raw endpoint can be in a network namespace.
    #[error(
        "another Homa endpoint already has raw IP in this network namespace: share it, or use UDP"
    )]
    RawOwned,
    /// A setting cannot be.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// An option of the builder cannot be.
    #[error("{option}: {reason}")]
    Option {
        /// The builder's method.
        option: &'static str,
        /// What is wrong and what to write instead.
        reason: &'static str,
    },
    /// Not called in a tokio runtime.
    #[error(
        "not in a tokio runtime: call this within one that has I/O enabled (enable_io), or use \
         homa::blocking"
    )]
    NoRuntime,
    /// The system refused something.
    #[error("{doing}: {source}")]
    System {
        /// What was attempted.
        doing: &'static str,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// Whether a call or one-way message that failed with this may have been
    /// executed by the server all the same. `false` is certain: the same call
    /// can be made again, here or elsewhere, without being executed twice.
    pub fn may_have_executed(&self) -> bool {
        matches!(
            self,
            Self::Timeout { .. }
                | Self::DeadlineExceeded { .. }
                | Self::ServerGone { .. }
                | Self::HostUnreachable { .. }
                | Self::ProtocolUnsupported { .. }
                | Self::DroppedWithoutAnswer { .. }
                | Self::Cancelled { .. }
                | Self::PeerRestarted { .. }
                | Self::PeerShutDown { .. }
                | Self::Stale { .. }
                | Self::NoMemory
                | Self::ShutDown
        )
    }

    /// Whether time ran out: the deadline's, or the peer's.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Self::Timeout { .. } | Self::DeadlineExceeded { .. })
    }
}

fn wrong_port(port: u16, own: Option<u16>) -> String {
    match own {
        Some(own) => format!(
            "this endpoint has UDP port {own} and can serve no other, such as {port}: bind to it"
        ),
        None => format!("port {port} is not a port: choose 1 to 65535, below 32768 for servers"),
    }
}

impl From<homa_datapath::BindError> for Error {
    fn from(error: homa_datapath::BindError) -> Self {
        use homa_datapath::BindError as Bind;
        match error {
            Bind::Addresses { addresses } => Self::BadAddresses { addresses },
            Bind::InUse { address } => Self::PortInUse { address },
            Bind::NotLocal { address } => Self::NotLocal { address },
            Bind::NeedsNetRaw => Self::NoPermission,
            Bind::RawOwned => Self::RawOwned,
            Bind::System { call, source } => Self::System {
                doing: call,
                source,
            },
        }
    }
}

/// A call or message that [`try_call`](crate::Client::try_call) or
/// [`try_send`](crate::Client::try_send) could not start now.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TryError {
    /// The limit on RPCs or bytes in flight is reached; here is the message
    /// back. Wait for [`ready`](crate::Client::ready) and try again, or give up.
    #[error("the limit on RPCs or bytes in flight is reached")]
    Full(crate::Message),
    /// It can never start.
    #[error(transparent)]
    Failed(#[from] Error),
}

impl TryError {
    /// The message, if there was no room for it.
    pub fn into_message(self) -> Option<crate::Message> {
        match self {
            Self::Full(message) => Some(message),
            Self::Failed(_) => None,
        }
    }
}
