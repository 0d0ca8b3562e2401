//! What can go wrong, and what each caller is told.

use std::fmt;
use std::io;

use homa_core::{ConfigError, Failure};
use homa_datapath::BindError;

use crate::Message;

/// Why an engine cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting of the protocol makes no sense.
    #[error("bad setting: {0}")]
    Config(#[from] ConfigError),
    /// The datapath has no address.
    #[error("the datapath has no local address")]
    NoAddress,
    /// The system refused a descriptor or a thread.
    #[error("{what}: {source}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
}

/// Why a call failed.
///
/// [`CallError::may_have_executed`] says whether it is safe to send the
/// request again even if executing it twice would matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The caller's deadline passed.
    #[error("the deadline passed before the response came")]
    DeadlineExceeded,
    /// The caller cancelled it.
    #[error("the call was cancelled")]
    Cancelled,
    /// This endpoint was shut down.
    #[error("this endpoint was shut down")]
    ShutDown,
    /// This endpoint had no memory for the response.
    #[error("no memory for the response")]
    NoMemory,
    /// The peer was silent for too long, though asked several times.
    #[error("the peer did not answer in time")]
    Timeout,
    /// Nobody listens on the port.
    #[error("nobody listens on that port")]
    PortClosed,
    /// Nobody listens on the port any more, as far as can be told.
    #[error("nobody listens on that port any more")]
    ServerGone,
    /// The network says that the host cannot be reached.
    #[error("the host cannot be reached")]
    HostUnreachable,
    /// The host does not know the protocol.
    #[error("the host does not speak Homa")]
    ProtocolUnsupported,
    /// The server refused the request, for instance because too many wait.
    #[error("the server refused the request")]
    Refused,
    /// The server took the request and ended without an answer.
    #[error("the server dropped the request without an answer")]
    Dropped,
    /// The peer ended the call.
    #[error("the peer cancelled the call")]
    CancelledByPeer,
    /// The message is longer than the peer accepts.
    #[error("the message is longer than the peer accepts")]
    TooLarge,
    /// The peer does not have a feature that the message needs: more than
    /// 1,000,000 bytes, or one-way.
    #[error("the peer does not accept this kind of message")]
    Unsupported,
    /// The peer is shutting down.
    #[error("the peer is shutting down")]
    PeerShuttingDown,
    /// The request came so late that it may have been executed before.
    #[error("the request came too late to rule out that it had been executed before")]
    Stale,
    /// The peer restarted in the meantime.
    #[error("the peer restarted")]
    PeerRestarted,
}

impl CallError {
    /// Whether the server's application may have seen the request.
    pub fn may_have_executed(self) -> bool {
        !matches!(
            self,
            Self::PortClosed
                | Self::ProtocolUnsupported
                | Self::Refused
                | Self::TooLarge
                | Self::Unsupported
        )
    }
}

impl From<Failure> for CallError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Timeout => Self::Timeout,
            Failure::PortClosed => Self::PortClosed,
            Failure::ServerGone => Self::ServerGone,
            Failure::HostUnreachable => Self::HostUnreachable,
            Failure::ProtocolUnsupported => Self::ProtocolUnsupported,
            Failure::Refused => Self::Refused,
            Failure::Cancelled => Self::CancelledByPeer,
            Failure::TooLarge => Self::TooLarge,
            Failure::Unsupported => Self::Unsupported,
            Failure::ShuttingDown => Self::PeerShuttingDown,
            Failure::Stale => Self::Stale,
            Failure::PeerRestarted => Self::PeerRestarted,
            // `Dropped`, and what a later core may add.
            _ => Self::Dropped,
        }
    }
}

/// A request or one-way message that was not taken.
#[derive(Debug)]
pub struct SubmitError {
    /// The message, unchanged.
    pub message: Message,
    /// Why.
    pub cause: SubmitCause,
}

/// Why a message was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitCause {
    /// Too many calls or bytes are under way: wait with
    /// [`crate::Engine::reserve`].
    #[error("too many calls or bytes are under way")]
    Full,
    /// A message has at least one byte.
    #[error("a message has at least one byte")]
    Empty,
    /// The message is too long.
    #[error("the message is longer than {most} bytes")]
    TooLong {
        /// The most bytes that this endpoint and the peer allow.
        most: u32,
    },
    /// Port 0 is not a port.
    #[error("port 0 is not a port")]
    PortZero,
    /// The endpoint has no address of that family, or the address is no host's.
    #[error("this endpoint cannot send to that address")]
    Address,
    /// The local port is not one of this endpoint.
    #[error("the local port is not one of this endpoint")]
    LocalPort,
    /// The peer does not accept one-way messages, or extensions are off.
    #[error("the peer does not accept one-way messages")]
    Unsupported,
    /// Too many peers are in use.
    #[error("too many peers are in use")]
    TooManyPeers,
    /// The deadline has passed already.
    #[error("the deadline has passed already")]
    DeadlineExceeded,
    /// The endpoint was shut down.
    #[error("this endpoint was shut down")]
    ShutDown,
}

/// A response that was not taken.
#[derive(Debug)]
pub struct RespondError {
    /// The response, unchanged.
    pub message: Message,
    /// Why.
    pub cause: RespondCause,
}

/// Why a response was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RespondCause {
    /// A message has at least one byte; the request still waits.
    #[error("a message has at least one byte")]
    Empty,
    /// The response is too long; the request still waits.
    #[error("the response is longer than {most} bytes")]
    TooLong {
        /// The most bytes that this endpoint and the peer allow.
        most: u32,
    },
    /// The request was answered already.
    #[error("the request was answered already")]
    Answered,
    /// Nobody waits for the response: the client is gone, or gave up.
    #[error("the client no longer waits for the response")]
    Gone,
    /// Too many bytes of responses wait for acknowledgement, or this peer has
    /// its share of them; the request still waits.
    #[error("too many bytes of responses are under way")]
    Full,
    /// The endpoint was shut down.
    #[error("this endpoint was shut down")]
    ShutDown,
}

macro_rules! carries_message {
    ($($error:ident),+) => {$(
        impl fmt::Display for $error {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.cause.fmt(f)
            }
        }

        impl std::error::Error for $error {}
    )+};
}

carries_message!(SubmitError, RespondError);

/// Why a port cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// Somebody listens on it already.
    #[error("port {port} has a listener already")]
    InUse {
        /// The port.
        port: u16,
    },
    /// Over UDP an endpoint has the one port that its socket is bound to.
    #[error("this endpoint owns port {owned}, not {port}: bind the datapath to that port")]
    NotOurs {
        /// The port asked for.
        port: u16,
        /// The port that there is.
        owned: u16,
    },
    /// The port could not be reserved.
    #[error("reserving port {port}: {source}")]
    Reserve {
        /// The port.
        port: u16,
        /// Why.
        #[source]
        source: BindError,
    },
    /// The endpoint was shut down.
    #[error("this endpoint was shut down")]
    ShutDown,
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn may_have_executed__only_where_the_server_cannot_have_seen_it() {
        assert!(!CallError::PortClosed.may_have_executed());
        assert!(!CallError::Refused.may_have_executed());
        assert!(CallError::Timeout.may_have_executed());
        assert!(CallError::from(Failure::ServerGone).may_have_executed());
        assert!(CallError::from(Failure::PeerRestarted).may_have_executed());
        assert!(CallError::from(Failure::Dropped).may_have_executed());
    }
}
