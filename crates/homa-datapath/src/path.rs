//! Where a packet goes or came from.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Where a packet goes or came from.
///
/// On receive it is the path *back*: `remote` is the sender and `local` the
/// address that the packet was sent to, so a reply on the same path leaves
/// from the address that the peer knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Path {
    /// The peer. Raw datapaths use port 0. A link-local IPv6 address carries
    /// its interface as scope id.
    pub remote: SocketAddr,
    /// The own address to send from, or the one the packet was sent to.
    /// `None` lets the kernel choose.
    pub local: Option<IpAddr>,
}

impl Path {
    /// A path to `remote` from whatever address the kernel chooses.
    pub const fn to(remote: SocketAddr) -> Self {
        Self {
            remote,
            local: None,
        }
    }

    /// What batches hold in places that nothing was put in yet.
    pub(crate) const UNUSED: Self = Self {
        remote: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
        local: None,
    };
}
