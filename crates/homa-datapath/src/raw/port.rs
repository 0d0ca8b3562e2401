//! Keeping others from a Homa port number.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::BindError;
use crate::socket::{Buffer, Family, Socket, error_number};

/// A Homa port number that nobody else in the network namespace can use over
/// UDP, until this is dropped. Raw Homa and Homa in UDP share their port
/// numbers, since a user means the same by both.
#[derive(Debug)]
pub struct PortReservation {
    port: u16,
    _socket: Socket,
}

impl PortReservation {
    /// The number.
    pub fn port(&self) -> u16 {
        self.port
    }
}

/// Reserves a port number, in the calling thread's network namespace, by
/// binding a UDP socket to it for both families; 0 is not a port.
///
/// # Errors
///
/// [`BindError::InUse`] when anything has it, on any address.
pub fn reserve_port(port: u16) -> Result<PortReservation, BindError> {
    let v6 = SocketAddr::from((Ipv6Addr::UNSPECIFIED, port));
    if port == 0 {
        return Err(BindError::Addresses {
            addresses: vec![v6],
        });
    }
    let socket = match bind(v6) {
        Err(BindError::System { source, .. })
            if matches!(
                error_number(&source),
                libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL
            ) =>
        {
            // A host without IPv6.
            bind((Ipv4Addr::UNSPECIFIED, port).into())
        }
        other => other,
    }?;
    Ok(PortReservation {
        port,
        _socket: socket,
    })
}

fn bind(address: SocketAddr) -> Result<Socket, BindError> {
    let attempt = || -> io::Result<Socket> {
        let socket = Socket::open(Family::of(address.ip()), libc::SOCK_DGRAM, 0)?;
        if socket.family == Family::V6 {
            // One socket for both families.
            socket.set(libc::SOL_IPV6, libc::IPV6_V6ONLY, 0)?;
        }
        // What somebody sends there by mistake is never read: keep none of it.
        socket.set_buffer(Buffer::Receive, 0)?;
        socket.bind(&address)?;
        Ok(socket)
    };
    attempt().map_err(|source| match error_number(&source) {
        libc::EADDRINUSE => BindError::InUse { address },
        _ => BindError::System {
            call: "reserving a port",
            source,
        },
    })
}
