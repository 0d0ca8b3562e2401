//! The prebuilt arena of `recvmmsg`.

use std::io;
use std::mem;
use std::net::SocketAddr;

use super::address::Name;
use super::control::{self, ReceiveControl};
use super::{Socket, checked};
use crate::receive_batch::PLACE_BYTES;

/// Most messages of one system call.
pub(crate) const LANES: usize = 64;

/// Headers, names and control messages, allocated once.
///
/// Invariant: as of [`super::transmit::Transmit`]: pointers are written by
/// [`Receive::receive`] before the kernel uses them and mean nothing after it
/// returns.
pub(crate) struct Receive {
    headers: Box<[libc::mmsghdr; LANES]>,
    iovecs: Box<[libc::iovec; LANES]>,
    names: Box<[Name; LANES]>,
    controls: Box<[ReceiveControl; LANES]>,
}

// SAFETY: the pointers are the only thing that is not `Send`; by the invariant
// above they mean nothing between calls.
unsafe impl Send for Receive {}

/// One received message besides its bytes.
pub(crate) struct Arrived {
    /// Bytes written to its place.
    pub(crate) length: usize,
    /// Whether it did not fit its place.
    pub(crate) truncated: bool,
    pub(crate) remote: Option<SocketAddr>,
    pub(crate) control: control::Received,
}

impl Receive {
    pub(crate) fn new() -> Self {
        // SAFETY: `mmsghdr` and `iovec` are plain integers and raw pointers,
        // for which zeroes are a valid value.
        let (headers, iovecs) = unsafe { mem::zeroed() };
        Self {
            headers: Box::new(headers),
            iovecs: Box::new(iovecs),
            names: Box::new([Name::default(); LANES]),
            controls: Box::new([ReceiveControl::default(); LANES]),
        }
    }

    /// Receives one message into each place of [`PLACE_BYTES`] bytes, as many
    /// as there are; returns their number.
    ///
    /// # Errors
    ///
    /// The kernel's, `WouldBlock` included, when there was none.
    pub(crate) fn receive(&mut self, socket: &Socket, places: &mut [u8]) -> io::Result<usize> {
        let mut count = 0;
        for (lane, place) in places.chunks_exact_mut(PLACE_BYTES).take(LANES).enumerate() {
            self.iovecs[lane] = libc::iovec {
                iov_base: place.as_mut_ptr().cast(),
                iov_len: place.len(),
            };
            // The kernel overwrites all lengths, so all are set every time.
            let header = &mut self.headers[lane].msg_hdr;
            header.msg_name = (&raw mut self.names[lane]).cast();
            header.msg_namelen = size_of::<Name>() as libc::socklen_t;
            header.msg_iov = &raw mut self.iovecs[lane];
            header.msg_iovlen = 1;
            header.msg_control = (&raw mut self.controls[lane]).cast();
            header.msg_controllen = size_of::<ReceiveControl>() as _;
            header.msg_flags = 0;
            count = lane + 1;
        }
        if count == 0 {
            return Ok(0);
        }
        // SAFETY: the first `count` headers were just written: names, control
        // messages and iovecs in our boxes, and disjoint parts of `places`,
        // which is borrowed exclusively; each with its true size.
        let result = checked(unsafe {
            libc::recvmmsg(
                socket.fd(),
                self.headers.as_mut_ptr(),
                count as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                std::ptr::null_mut(),
            )
        })?;
        Ok(usize::try_from(result).unwrap_or(0).min(count))
    }

    /// A message of the last [`Receive::receive`].
    pub(crate) fn arrived(&self, lane: usize) -> Arrived {
        let header = &self.headers[lane].msg_hdr;
        let control = control::bytes_of(&self.controls[lane]);
        #[allow(clippy::unnecessary_cast, reason = "musl has another type here")]
        let control_length = (header.msg_controllen as usize).min(control.len());
        Arrived {
            length: (self.headers[lane].msg_len as usize).min(PLACE_BYTES),
            truncated: header.msg_flags & libc::MSG_TRUNC != 0,
            remote: self.names[lane].address(header.msg_namelen),
            control: control::read(&control[..control_length]),
        }
    }
}
