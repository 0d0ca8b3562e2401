//! What the error of a send or receive call means for the packets.
//!
//! A socket keeps the last ICMP error and returns it from the next call,
//! whatever that call was about. So an error says nothing about a packet until
//! it comes again and again for the same one: each ICMP error is given once,
//! and the next attempt follows within a microsecond or two.

use std::io;

use super::error_number;

/// Errors of earlier packets that one call meets before it gives up for now.
/// Each is taken off the socket when met; more than this in one call is a storm
/// of ICMP.
pub(crate) const PENDING_LIMIT: usize = 64;

/// So often in a row an error is the packet's own. Less would not do: where
/// packets are damaged on their way, ICMP errors come close together, and two in
/// a row have ended the RPCs of a peer that they were not about.
pub(crate) const OWN_AFTER: usize = 8;

/// What an error means if it is not an old one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// A signal came.
    Interrupted,
    /// The socket's buffer is full, or empty.
    WouldBlock,
    /// The kernel or device has no room.
    NoBuffers,
    /// Only ever an old one: an unconnected socket's call cannot fail so.
    Pending,
    /// The packet is too long.
    TooBig,
    /// The kernel or device cannot segment; only of super-packets.
    NoSegmentation,
    /// Not clear whether segmentation or the address is at fault; only of
    /// super-packets.
    MaybeSegmentation,
    /// No way to the peer.
    Unreachable,
    /// A local rule is against it.
    Forbidden,
    /// An address that cannot be used so.
    BadAddress,
    /// Anything else.
    Other,
}

/// Whether the first message of a failed call was a super-packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Load {
    Packet,
    SuperPacket,
}

impl Trouble {
    pub(crate) fn of(error: &io::Error, load: Load) -> Self {
        match (error_number(error), load) {
            (libc::EINTR, _) => Self::Interrupted,
            (libc::EAGAIN, _) => Self::WouldBlock,
            (libc::ENOBUFS | libc::ENOMEM, _) => Self::NoBuffers,
            (libc::ECONNREFUSED | libc::ECONNRESET | libc::EPROTO | libc::ENOPROTOOPT, _) => {
                Self::Pending
            }
            (libc::EMSGSIZE, _) => Self::TooBig,
            (libc::EIO | libc::EOPNOTSUPP, Load::SuperPacket) => Self::NoSegmentation,
            (libc::EINVAL, Load::SuperPacket) => Self::MaybeSegmentation,
            (
                libc::ENETUNREACH
                | libc::EHOSTUNREACH
                | libc::ENETDOWN
                | libc::EHOSTDOWN
                | libc::ENONET,
                _,
            ) => Self::Unreachable,
            (libc::EPERM | libc::EACCES, _) => Self::Forbidden,
            (
                libc::EADDRNOTAVAIL
                | libc::EINVAL
                | libc::EAFNOSUPPORT
                | libc::ENODEV
                | libc::ENXIO,
                _,
            ) => Self::BadAddress,
            _ => Self::Other,
        }
    }

    /// Whether a receive call that failed so leaves the socket usable. What
    /// ICMP can cause must be on this side, whatever number it has: anybody
    /// can send ICMP.
    pub(crate) fn leaves_socket_usable(error: &io::Error) -> bool {
        !matches!(
            error_number(error),
            libc::EBADF | libc::ENOTSOCK | libc::EFAULT | libc::EINVAL
        )
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    fn of(number: i32, load: Load) -> Trouble {
        Trouble::of(&io::Error::from_raw_os_error(number), load)
    }

    #[test]
    fn of__einval_blames_the_address_only_of_single_packets() {
        assert_eq!(
            of(libc::EINVAL, Load::SuperPacket),
            Trouble::MaybeSegmentation
        );
        assert_eq!(of(libc::EINVAL, Load::Packet), Trouble::BadAddress);
        assert_eq!(of(libc::EIO, Load::SuperPacket), Trouble::NoSegmentation);
        assert_eq!(of(libc::EIO, Load::Packet), Trouble::Other);
    }

    #[test]
    fn leaves_socket_usable__whatever_icmp_causes() {
        // The kernel's tables of what ICMP and ICMPv6 codes become.
        for number in [
            libc::ENETUNREACH,
            libc::EHOSTUNREACH,
            libc::ENOPROTOOPT,
            libc::ECONNREFUSED,
            libc::EMSGSIZE,
            libc::EOPNOTSUPP,
            libc::EHOSTDOWN,
            libc::ENONET,
            libc::EACCES,
            libc::EPROTO,
        ] {
            let error = io::Error::from_raw_os_error(number);
            assert!(Trouble::leaves_socket_usable(&error), "{error}");
        }
        let closed = io::Error::from_raw_os_error(libc::EBADF);
        assert!(!Trouble::leaves_socket_usable(&closed));
    }
}
