//! What every socket of one class has set.

use std::os::fd::AsFd;

use rustix::net::sockopt::{set_ip_tos, set_ipv6_tclass};

use super::congestion::Congestion;
use crate::error::BenchError;

/// Options of the connections of one client or server. A connection inherits
/// those of the socket that accepted it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sockets {
    /// Congestion control of what they send.
    pub congestion: Congestion,
    /// TOS byte (IPv4) and traffic class (IPv6) of what they send.
    pub tos: u8,
}

impl From<Congestion> for Sockets {
    /// Without a priority.
    fn from(congestion: Congestion) -> Self {
        Self { congestion, tos: 0 }
    }
}

impl From<&Congestion> for Sockets {
    fn from(congestion: &Congestion) -> Self {
        congestion.clone().into()
    }
}

impl Sockets {
    pub(super) fn apply(&self, socket: impl AsFd) -> Result<(), BenchError> {
        self.congestion.apply(&socket)?;
        if self.tos == 0 {
            return Ok(());
        }
        // A socket has one family, and takes the option of that one.
        set_ip_tos(&socket, self.tos)
            .or_else(|_| set_ipv6_tclass(&socket, self.tos.into()))
            .map_err(|error| BenchError::System {
                action: "TOS of a connection",
                source: error.into(),
            })
    }
}
