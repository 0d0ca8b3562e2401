//! The prebuilt arena of `sendmmsg`.

use std::io;
use std::mem;

use super::address::Name;
use super::control::{self, SendControl};
use super::{Socket, checked};
use crate::Path;

/// Most messages of one system call. More gains nothing: at 64 the call itself
/// is under 1 % of the time of its packets.
pub(crate) const LANES: usize = 64;

/// One message to send: a packet, or a super-packet with its segment's size.
pub(crate) struct Message<'a> {
    pub(crate) path: &'a Path,
    pub(crate) tos: u8,
    pub(crate) bytes: &'a [u8],
    /// Length of the packets to cut it into; `None` for a single packet.
    pub(crate) segment: Option<u16>,
    /// Packets in it.
    pub(crate) packets: usize,
}

/// Headers, names and control messages, allocated once.
///
/// Invariant: every pointer in `headers` and `iovecs` is written by
/// [`Transmit::send`] before the kernel reads it and not read after it
/// returns, so none outlives what it points to.
pub(crate) struct Transmit {
    headers: Box<[libc::mmsghdr; LANES]>,
    iovecs: Box<[libc::iovec; LANES]>,
    names: Box<[Name; LANES]>,
    controls: Box<[SendControl; LANES]>,
    packets: [usize; LANES],
}

// SAFETY: the pointers are the only thing that is not `Send`; by the invariant
// above they mean nothing between calls.
unsafe impl Send for Transmit {}

/// What the kernel took.
pub(crate) struct Taken {
    /// Messages.
    pub(crate) messages: usize,
    /// Packets in them.
    pub(crate) packets: usize,
    /// Bytes in them.
    pub(crate) bytes: usize,
    /// Messages that were super-packets.
    pub(crate) super_packets: usize,
}

impl Transmit {
    pub(crate) fn new() -> Self {
        // SAFETY: `mmsghdr` and `iovec` are plain integers and raw pointers,
        // for which zeroes are a valid value.
        let (headers, iovecs) = unsafe { mem::zeroed() };
        Self {
            headers: Box::new(headers),
            iovecs: Box::new(iovecs),
            names: Box::new([Name::default(); LANES]),
            controls: Box::new([SendControl::default(); LANES]),
            packets: [0; LANES],
        }
    }

    /// Offers the first [`LANES`] messages to the kernel in one call.
    ///
    /// # Errors
    ///
    /// The kernel's, when it did not take even the first; `messages` is empty
    /// is no error and no call.
    pub(crate) fn send<'a>(
        &mut self,
        socket: &Socket,
        messages: impl Iterator<Item = Message<'a>>,
    ) -> io::Result<Taken> {
        let mut count = 0;
        for (lane, message) in messages.take(LANES).enumerate() {
            let name_length = self.names[lane].set(&message.path.remote);
            let control_length = control::write(
                &mut self.controls[lane],
                socket.family,
                message.path,
                message.tos,
                message.segment,
            );
            self.packets[lane] = message.packets;
            self.iovecs[lane] = libc::iovec {
                // The kernel only reads what it sends.
                iov_base: message.bytes.as_ptr().cast_mut().cast(),
                iov_len: message.bytes.len(),
            };
            let header = &mut self.headers[lane].msg_hdr;
            header.msg_name = (&raw mut self.names[lane]).cast();
            header.msg_namelen = name_length;
            header.msg_iov = &raw mut self.iovecs[lane];
            header.msg_iovlen = 1;
            header.msg_control = (&raw mut self.controls[lane]).cast();
            header.msg_controllen = control_length as _;
            header.msg_flags = 0;
            count = lane + 1;
        }
        let mut taken = Taken {
            messages: 0,
            packets: 0,
            bytes: 0,
            super_packets: 0,
        };
        if count == 0 {
            return Ok(taken);
        }
        // SAFETY: the first `count` headers were just written: names, control
        // messages and iovecs in our boxes, which nobody moves or writes
        // during the call, and bytes borrowed for `'a`, which outlives it.
        let result = checked(unsafe {
            libc::sendmmsg(
                socket.fd(),
                self.headers.as_mut_ptr(),
                count as libc::c_uint,
                libc::MSG_DONTWAIT as _,
            )
        })?;
        taken.messages = usize::try_from(result).unwrap_or(0).min(count);
        for lane in 0..taken.messages {
            taken.packets += self.packets[lane];
            taken.bytes += self.iovecs[lane].iov_len;
            taken.super_packets += usize::from(self.packets[lane] > 1);
        }
        Ok(taken)
    }
}
