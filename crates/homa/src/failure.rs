//! From what the engine says to what the user is told: the cause, and whom it
//! is about.

use std::net::SocketAddr;
use std::time::Duration;

use homa_engine::{
    CallError, ListenError, RespondCause, RespondError, StartError, SubmitCause, SubmitError,
};

use crate::shared::Deadline;
use crate::{Error, TryError};

/// What an error is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About {
    pub(crate) peer: SocketAddr,
    pub(crate) bytes: usize,
    pub(crate) deadline: Option<Deadline>,
}

impl About {
    pub(crate) fn deadline_exceeded(&self) -> Error {
        Error::DeadlineExceeded {
            peer: self.peer.into(),
            deadline: self
                .deadline
                .map_or(Duration::ZERO, |deadline| deadline.given),
        }
    }

    pub(crate) fn call_error(&self, error: CallError) -> Error {
        let peer = self.peer;
        match error {
            CallError::DeadlineExceeded => self.deadline_exceeded(),
            CallError::Cancelled | CallError::CancelledByPeer => Error::Cancelled { peer },
            CallError::ShutDown => Error::ShutDown,
            CallError::NoMemory => Error::NoMemory,
            CallError::Timeout => Error::Timeout { peer },
            CallError::PortClosed => Error::PortClosed { peer },
            CallError::ServerGone => Error::ServerGone { peer },
            CallError::HostUnreachable => Error::HostUnreachable { peer },
            CallError::ProtocolUnsupported => Error::ProtocolUnsupported { peer },
            CallError::Refused => Error::Refused { peer },
            CallError::TooLarge => Error::TooLargeForPeer {
                peer,
                bytes: self.bytes,
            },
            CallError::Unsupported => Error::Unsupported { peer },
            CallError::PeerShuttingDown => Error::PeerShutDown { peer },
            CallError::Stale => Error::Stale { peer },
            CallError::PeerRestarted => Error::PeerRestarted { peer },
            // `Dropped`, and what a later engine may add.
            _ => Error::DroppedWithoutAnswer { peer },
        }
    }

    /// Why a message was not taken; `Full` comes back with the message.
    pub(crate) fn submit_error(&self, error: SubmitError) -> TryError {
        match error.cause {
            SubmitCause::Full => TryError::Full(error.message),
            cause => TryError::Failed(self.submit_cause(cause)),
        }
    }

    pub(crate) fn submit_cause(&self, cause: SubmitCause) -> Error {
        let peer = self.peer;
        match cause {
            SubmitCause::Empty => Error::Empty,
            SubmitCause::TooLong { most } => Error::TooLarge {
                bytes: self.bytes,
                limit: most as usize,
            },
            SubmitCause::PortZero => Error::PortZero { peer },
            SubmitCause::Unsupported => Error::Unsupported { peer },
            SubmitCause::DeadlineExceeded => self.deadline_exceeded(),
            SubmitCause::ShutDown => Error::ShutDown,
            SubmitCause::Address | SubmitCause::LocalPort => Error::HostUnreachable { peer },
            // `TooManyPeers`, and what a later engine may add.
            _ => Error::Full,
        }
    }
}

/// Why a reply was not taken, for a reply of `bytes` bytes.
pub(crate) fn respond_error(error: &RespondError) -> Error {
    match error.cause {
        RespondCause::Empty => Error::Empty,
        RespondCause::TooLong { most } => Error::TooLarge {
            bytes: error.message.len(),
            limit: most as usize,
        },
        RespondCause::Full => Error::RepliesFull,
        RespondCause::ShutDown => Error::ShutDown,
        // A reply takes the request, so nothing is answered twice.
        _ => Error::ClientGone,
    }
}

/// Why a port has no server.
pub(crate) fn listen_error(error: ListenError) -> Error {
    match error {
        ListenError::InUse { port } => Error::ServerExists { port },
        ListenError::NotOurs { port, owned } => Error::WrongPort {
            port,
            own: Some(owned),
        },
        ListenError::Reserve { source, .. } => source.into(),
        _ => Error::ShutDown,
    }
}

impl From<StartError> for Error {
    fn from(error: StartError) -> Self {
        match error {
            StartError::Config(error) => Self::Config(error),
            StartError::NoAddress => Self::BadAddresses {
                addresses: Vec::new(),
            },
            StartError::System { what, source } => Self::System {
                doing: what,
                source,
            },
        }
    }
}
