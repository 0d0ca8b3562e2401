//! What the network says about packets sent, and why a datapath cannot start.

use std::io;
use std::net::SocketAddr;

/// What the network, or the own kernel, said about packets to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkError<'a> {
    /// Where the packets were sent. Raw datapaths have port 0 here: take the
    /// Homa port from `quoted`.
    pub remote: SocketAddr,
    /// What is wrong.
    pub kind: NetworkErrorKind,
    /// The first bytes of the Homa packet concerned, as many as came back: can
    /// be empty or cut anywhere, since routers must quote only 8 bytes after
    /// the IP header.
    pub quoted: &'a [u8],
}

/// Kinds of [`NetworkError`] (`docs/protocol.md` §17).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NetworkErrorKind {
    /// Nobody listens on the port.
    PortClosed,
    /// The host does not know the protocol: raw Homa to a host without it.
    ProtocolUnsupported,
    /// The host or network cannot be reached, or a local rule forbids it.
    HostUnreachable,
    /// The packet is too long for the path. [`crate::Datapath::max_packet`]
    /// already knows; it holds for new messages, since packets of old ones are
    /// fragmented on their way out.
    PacketTooBig {
        /// Longest Homa packet that fits the path, in bytes.
        max_packet: usize,
    },
}

/// Why a datapath cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// No address, two of one family, or ports that differ: give one IPv4
    /// and/or one IPv6 address with the same port.
    #[error("give one IPv4 and/or one IPv6 address with the same port, not {addresses:?}")]
    Addresses {
        /// What was given.
        addresses: Vec<SocketAddr>,
    },
    /// Somebody has the address and port: choose another port, or 0.
    #[error("{address} is in use by another socket: choose another port, or 0 for any")]
    InUse {
        /// The address.
        address: SocketAddr,
    },
    /// The address is not one of this host.
    #[error("{address} is not an address of this host")]
    NotLocal {
        /// The address.
        address: SocketAddr,
    },
    /// Raw sockets need a capability.
    #[error(
        "raw IP sockets need CAP_NET_RAW: run as root, or `setcap cap_net_raw+ep` the program \
         (systemd: AmbientCapabilities=CAP_NET_RAW), or use the UDP datapath, which needs nothing"
    )]
    NeedsNetRaw,
    /// Two raw endpoints would both answer every packet.
    #[error("another Homa endpoint already owns raw IP in this network namespace")]
    RawOwned,
    /// A system call failed for another reason.
    #[error("{call}: {source}")]
    System {
        /// What was attempted.
        call: &'static str,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
}
