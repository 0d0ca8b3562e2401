//! Which congestion control the sockets use: a result over TCP means little
//! without its name, and systems differ in their default.

use std::os::fd::AsFd;

use rustix::net::sockopt::{set_tcp_congestion, tcp_congestion};

use crate::error::BenchError;

/// A choice of congestion control; both sides choose for what they send.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Congestion {
    /// What the system uses for everybody.
    #[default]
    System,
    /// The one with this name, as in
    /// `/proc/sys/net/ipv4/tcp_available_congestion_control`.
    Named(String),
}

impl From<Option<String>> for Congestion {
    /// A name if one was asked for.
    fn from(name: Option<String>) -> Self {
        name.map_or(Self::System, Self::Named)
    }
}

impl Congestion {
    /// Sets it; connections accepted from a listening socket inherit it.
    pub(super) fn apply(&self, socket: impl AsFd) -> Result<(), BenchError> {
        let Self::Named(name) = self else {
            return Ok(());
        };
        set_tcp_congestion(socket, name).map_err(|error| {
            let path = "/proc/sys/net/ipv4/tcp_available_congestion_control";
            let known = std::fs::read_to_string(path).unwrap_or_default();
            BenchError::Transport(format!(
                "this kernel does not give TCP the congestion control `{name}` ({error}): it has {}",
                known.trim()
            ))
        })
    }

    /// The name of the one in use.
    pub(super) fn in_use(socket: impl AsFd) -> String {
        tcp_congestion(socket).unwrap_or_else(|_| "unknown".into())
    }
}
