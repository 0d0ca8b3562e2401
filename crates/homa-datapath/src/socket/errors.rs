//! The error queue: what ICMP said about packets sent (`docs/protocol.md` §17).

use std::io;
use std::mem;
use std::net::SocketAddr;

use super::address::Name;
use super::{Family, Socket, checked, control};

/// Bytes of the packet concerned that are read; Linux hosts quote up to 536.
const QUOTED_BYTES: usize = 576;

/// What an error of the queue means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    PortClosed,
    ProtocolUnsupported,
    HostUnreachable,
    /// With the path's MTU in bytes; 0 from routers that do not tell.
    PacketTooBig(u32),
    /// Another ICMP type.
    Other,
    /// From the own kernel; the failing call has said it already.
    Local,
}

/// Room for one entry of the queue.
pub(crate) struct ErrorEntry {
    name: Name,
    control: [u64; 32],
    quoted: [u8; QUOTED_BYTES],
    quoted_length: usize,
    meaning: Meaning,
    remote: Option<SocketAddr>,
}

impl ErrorEntry {
    pub(crate) fn new() -> Self {
        Self {
            name: Name::default(),
            control: [0; 32],
            quoted: [0; QUOTED_BYTES],
            quoted_length: 0,
            meaning: Meaning::Other,
            remote: None,
        }
    }

    pub(crate) fn meaning(&self) -> Meaning {
        self.meaning
    }

    /// Where the packet concerned was sent.
    pub(crate) fn remote(&self) -> Option<SocketAddr> {
        self.remote
    }

    /// What came back of the packet, after the IP and UDP headers.
    pub(crate) fn quoted(&self) -> &[u8] {
        &self.quoted[..self.quoted_length]
    }

    /// Takes the next error off the queue.
    ///
    /// # Errors
    ///
    /// The kernel's; `WouldBlock` when the queue is empty.
    pub(crate) fn read(&mut self, socket: &Socket) -> io::Result<()> {
        let mut iovec = libc::iovec {
            iov_base: self.quoted.as_mut_ptr().cast(),
            iov_len: self.quoted.len(),
        };
        // SAFETY: plain integers and raw pointers, for which zeroes are valid.
        let mut header: libc::msghdr = unsafe { mem::zeroed() };
        header.msg_name = (&raw mut self.name).cast();
        header.msg_namelen = size_of::<Name>() as libc::socklen_t;
        header.msg_iov = &raw mut iovec;
        header.msg_iovlen = 1;
        header.msg_control = (&raw mut self.control).cast();
        header.msg_controllen = size_of_val(&self.control) as _;
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        // SAFETY: the header points to buffers of ours of the sizes given,
        // which nobody else uses during the call.
        let length = unsafe { libc::recvmsg(socket.fd(), &raw mut header, flags) };
        let length = checked(length as libc::c_int)?;
        self.quoted_length = usize::try_from(length).unwrap_or(0).min(QUOTED_BYTES);
        self.remote = self.name.address(header.msg_namelen);
        let control = control::bytes_of(&self.control);
        #[allow(clippy::unnecessary_cast, reason = "musl has another type here")]
        let control_length = (header.msg_controllen as usize).min(control.len());
        self.meaning = meaning(socket.family, &control[..control_length]);
        Ok(())
    }
}

fn meaning(family: Family, control: &[u8]) -> Meaning {
    let wanted = match family {
        Family::V4 => (libc::SOL_IP, libc::IP_RECVERR),
        Family::V6 => (libc::SOL_IPV6, libc::IPV6_RECVERR),
    };
    let mut found = Meaning::Local;
    control::each(control, |level, kind, payload| {
        // sock_extended_err: errno u32, origin, type, code, padding, info u32.
        let [_, _, _, _, origin, icmp_type, code, _, a, b, c, d, ..] = *payload else {
            return;
        };
        if (level, kind) == wanted {
            let info = u32::from_ne_bytes([a, b, c, d]);
            found = match (origin, icmp_type, code) {
                (libc::SO_EE_ORIGIN_ICMP, 3, 3) | (libc::SO_EE_ORIGIN_ICMP6, 1, 4) => {
                    Meaning::PortClosed
                }
                // IPv6: parameter problem, unknown next header.
                (libc::SO_EE_ORIGIN_ICMP, 3, 2) | (libc::SO_EE_ORIGIN_ICMP6, 4, 1) => {
                    Meaning::ProtocolUnsupported
                }
                (libc::SO_EE_ORIGIN_ICMP, 3, 4) | (libc::SO_EE_ORIGIN_ICMP6, 2, _) => {
                    Meaning::PacketTooBig(info)
                }
                (libc::SO_EE_ORIGIN_ICMP, 3, _) | (libc::SO_EE_ORIGIN_ICMP6, 1, _) => {
                    Meaning::HostUnreachable
                }
                (libc::SO_EE_ORIGIN_ICMP | libc::SO_EE_ORIGIN_ICMP6, ..) => Meaning::Other,
                _ => Meaning::Local,
            };
        }
    });
    found
}
