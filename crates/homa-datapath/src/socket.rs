//! One socket, its options, and the messages that the kernel takes and gives.
//!
//! What UDP and raw IP have in common lives below here: names and control
//! messages ([`address`], [`control`]), the prebuilt arenas of `sendmmsg` and
//! `recvmmsg` ([`transmit`], [`receive`]), what errors mean ([`trouble`]), the
//! error queue ([`errors`], [`own_errors`]), and the pair of an IPv4 and an
//! IPv6 socket that is a datapath ([`pair`]).

pub(crate) mod address;
pub(crate) mod control;
pub(crate) mod errors;
pub(crate) mod own_errors;
pub(crate) mod pair;
pub(crate) mod receive;
pub(crate) mod transmit;
pub(crate) mod trouble;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use address::Name;

/// IP version of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

impl Family {
    pub(crate) fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// Bytes of the IP header that the kernel puts before each packet.
    pub(crate) fn header_bytes(self) -> usize {
        match self {
            Self::V4 => 20,
            Self::V6 => 40,
        }
    }

    fn domain(self) -> libc::c_int {
        match self {
            Self::V4 => libc::AF_INET,
            Self::V6 => libc::AF_INET6,
        }
    }
}

/// A non-blocking socket of one family.
#[derive(Debug)]
pub(crate) struct Socket {
    fd: OwnedFd,
    pub(crate) family: Family,
}

impl Socket {
    pub(crate) fn open(
        family: Family,
        kind: libc::c_int,
        protocol: libc::c_int,
    ) -> io::Result<Self> {
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: `socket` takes no pointers.
        let fd = checked(unsafe { libc::socket(family.domain(), kind | flags, protocol) })?;
        // SAFETY: `fd` was just opened by us and nobody else knows it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { fd, family })
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    pub(crate) fn borrow(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    pub(crate) fn set(
        &self,
        level: libc::c_int,
        name: libc::c_int,
        value: libc::c_int,
    ) -> io::Result<()> {
        self.set_bytes(level, name, &value.to_ne_bytes())
    }

    pub(crate) fn set_bytes(
        &self,
        level: libc::c_int,
        name: libc::c_int,
        value: &[u8],
    ) -> io::Result<()> {
        // SAFETY: the kernel reads `value.len()` bytes from `value`, which are
        // initialised and live during the call.
        let result = unsafe {
            libc::setsockopt(
                self.fd(),
                level,
                name,
                value.as_ptr().cast(),
                value.len() as libc::socklen_t,
            )
        };
        checked(result).map(drop)
    }

    pub(crate) fn get(&self, level: libc::c_int, name: libc::c_int) -> io::Result<libc::c_int> {
        let mut value: libc::c_int = 0;
        let mut length = size_of_val(&value) as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes to `value`, which
        // is that large, and the written length to `length`.
        let result = unsafe {
            libc::getsockopt(
                self.fd(),
                level,
                name,
                (&raw mut value).cast(),
                &raw mut length,
            )
        };
        checked(result).map(|_| value)
    }

    pub(crate) fn bind(&self, address: &SocketAddr) -> io::Result<()> {
        let (name, length) = Name::of(address);
        // SAFETY: `name` holds a socket address of `length` bytes.
        checked(unsafe { libc::bind(self.fd(), (&raw const name).cast(), length) }).map(drop)
    }

    pub(crate) fn connect(&self, address: &SocketAddr) -> io::Result<()> {
        let (name, length) = Name::of(address);
        // SAFETY: `name` holds a socket address of `length` bytes.
        checked(unsafe { libc::connect(self.fd(), (&raw const name).cast(), length) }).map(drop)
    }

    /// Undoes [`Socket::connect`].
    pub(crate) fn disconnect(&self) -> io::Result<()> {
        // The default is of no family, which means just this.
        let name = Name::default();
        let length = size_of_val(&name) as libc::socklen_t;
        // SAFETY: `name` is `length` initialised bytes.
        checked(unsafe { libc::connect(self.fd(), (&raw const name).cast(), length) }).map(drop)
    }

    pub(crate) fn local_address(&self) -> io::Result<SocketAddr> {
        let mut name = Name::default();
        let mut length = size_of_val(&name) as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes to `name`, which is
        // that large, and the true length to `length`.
        let result =
            unsafe { libc::getsockname(self.fd(), (&raw mut name).cast(), &raw mut length) };
        checked(result)?;
        name.address(length)
            .ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))
    }

    /// Sets a buffer's size in bytes beyond the system's limit if allowed to,
    /// else up to that limit. The kernel takes bookkeeping off it.
    pub(crate) fn set_buffer(&self, buffer: Buffer, bytes: usize) -> io::Result<()> {
        let (force, plain) = match buffer {
            Buffer::Send => (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF),
            Buffer::Receive => (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF),
        };
        let bytes = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
        self.set(libc::SOL_SOCKET, force, bytes)
            .or_else(|_| self.set(libc::SOL_SOCKET, plain, bytes))
    }

    /// The options that every datapath socket has: TOS and destination address
    /// with each message, the error queue, drop counts, and fragmentation of
    /// what exceeds the path MTU (packets of messages made before it fell).
    pub(crate) fn set_datapath_options(&self) -> io::Result<()> {
        self.set(libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1)?;
        let (level, options) = match self.family {
            Family::V4 => (
                libc::SOL_IP,
                [
                    (libc::IP_RECVTOS, 1),
                    (libc::IP_PKTINFO, 1),
                    (libc::IP_RECVERR, 1),
                    (libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_WANT),
                ],
            ),
            Family::V6 => (
                libc::SOL_IPV6,
                [
                    (libc::IPV6_RECVTCLASS, 1),
                    (libc::IPV6_RECVPKTINFO, 1),
                    (libc::IPV6_RECVERR, 1),
                    (libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_WANT),
                ],
            ),
        };
        for (name, value) in options {
            self.set(level, name, value)?;
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Buffer {
    Send,
    Receive,
}

/// Turns a system call's result into a `Result`.
pub(crate) fn checked(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

/// The error number behind an I/O error of a system call.
pub(crate) fn error_number(error: &io::Error) -> libc::c_int {
    error.raw_os_error().unwrap_or(0)
}

/// Locks, also after a panic of another holder: every state behind these
/// locks is rewritten from the start by whoever uses it next.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
