//! Control messages: what goes with a message besides its bytes.

use std::net::IpAddr;

use super::Family;
use crate::Path;

/// Bytes of a control message with `payload` bytes, padding included.
const fn space(payload: usize) -> usize {
    let word = size_of::<usize>();
    size_of::<libc::cmsghdr>().next_multiple_of(word) + payload.next_multiple_of(word)
}

/// Bytes of a control message's header, padding included.
const HEADER: usize = space(0);

/// The most that a sent message carries: TOS, source address, segment size.
const SEND_BYTES: usize =
    space(size_of::<libc::c_int>()) + space(size_of::<libc::in6_pktinfo>()) + space(2);
/// The most that a received message carries: TOS, addresses, segment size,
/// drop count.
const RECEIVE_BYTES: usize =
    3 * space(size_of::<libc::c_int>()) + space(size_of::<libc::in6_pktinfo>());

/// Control messages to send; aligned as the kernel wants them.
pub(crate) type SendControl = [u64; SEND_BYTES.div_ceil(8)];
/// Room for received control messages.
pub(crate) type ReceiveControl = [u64; RECEIVE_BYTES.div_ceil(8)];

/// Bytes of the words.
pub(crate) fn bytes_of(words: &[u64]) -> &[u8] {
    // SAFETY: any initialised `u64`s are initialised bytes, eight each, and
    // bytes need no alignment; the borrow keeps them alive and unwritten.
    unsafe { std::slice::from_raw_parts(words.as_ptr().cast(), size_of_val(words)) }
}

fn bytes_of_mut(words: &mut [u64]) -> &mut [u8] {
    // SAFETY: as in `bytes_of`; any bytes are a valid `u64`, and the borrow is
    // exclusive.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), size_of_val(words)) }
}

/// Writes control messages one after the other.
struct Writer<'a> {
    bytes: &'a mut [u8],
    used: usize,
}

impl Writer<'_> {
    /// Adds one; does nothing if it does not fit, which the sizes above rule
    /// out.
    fn push(&mut self, level: libc::c_int, kind: libc::c_int, payload: &[u8]) {
        let end = self.used + space(payload.len());
        let Some(room) = self.bytes.get_mut(self.used..end) else {
            debug_assert!(false, "control messages exceed their room");
            return;
        };
        room.fill(0);
        // SAFETY: all fields are integers, so zeroes are a valid value.
        let mut header: libc::cmsghdr = unsafe { std::mem::zeroed() };
        header.cmsg_len = (HEADER + payload.len()) as _;
        header.cmsg_level = level;
        header.cmsg_type = kind;
        // SAFETY: `room` is at least `HEADER` bytes, which is at least a
        // header; the write needs no alignment.
        unsafe {
            room.as_mut_ptr()
                .cast::<libc::cmsghdr>()
                .write_unaligned(header);
        };
        room[HEADER..HEADER + payload.len()].copy_from_slice(payload);
        self.used = end;
    }
}

/// Writes what goes with a message: TOS and source address where they are not
/// the default, and the size that the kernel shall cut it at, if any. Returns
/// the length in bytes.
pub(crate) fn write(
    control: &mut SendControl,
    family: Family,
    path: &Path,
    tos: u8,
    segment: Option<u16>,
) -> usize {
    let mut writer = Writer {
        bytes: bytes_of_mut(control),
        used: 0,
    };
    if tos != 0 {
        let tos = libc::c_int::from(tos).to_ne_bytes();
        match family {
            Family::V4 => writer.push(libc::SOL_IP, libc::IP_TOS, &tos),
            Family::V6 => writer.push(libc::SOL_IPV6, libc::IPV6_TCLASS, &tos),
        }
    }
    match (family, path.local) {
        (Family::V4, Some(IpAddr::V4(local))) if !local.is_unspecified() => {
            // in_pktinfo: interface index, source, destination (unused).
            let mut info = [0; size_of::<libc::in_pktinfo>()];
            info[4..8].copy_from_slice(&local.octets());
            writer.push(libc::SOL_IP, libc::IP_PKTINFO, &info);
        }
        (Family::V6, Some(IpAddr::V6(local))) if !local.is_unspecified() => {
            // in6_pktinfo: source, interface index (the name's scope decides).
            let mut info = [0; size_of::<libc::in6_pktinfo>()];
            info[..16].copy_from_slice(&local.octets());
            writer.push(libc::SOL_IPV6, libc::IPV6_PKTINFO, &info);
        }
        _ => {}
    }
    if let Some(segment) = segment {
        writer.push(libc::SOL_UDP, libc::UDP_SEGMENT, &segment.to_ne_bytes());
    }
    writer.used
}

/// What came with a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) tos: u8,
    pub(crate) local: Option<IpAddr>,
    pub(crate) interface: u32,
    /// Size that the kernel joined packets of, if it did.
    pub(crate) segment: Option<usize>,
    /// Packets that the socket ever lost, modulo 2³², if it lost any.
    pub(crate) kernel_drops: Option<u32>,
}

/// Reads what came with a message.
pub(crate) fn read(control: &[u8]) -> Received {
    let mut received = Received::default();
    each(control, |level, kind, payload| match (level, kind) {
        (libc::SOL_IP, libc::IP_TOS) | (libc::SOL_IPV6, libc::IPV6_TCLASS) => {
            // IPv4 gives one byte, IPv6 an int that one byte holds.
            received.tos = match payload {
                [tos] => *tos,
                other => int(other).unwrap_or(0).cast_unsigned() as u8,
            };
        }
        (libc::SOL_IP, libc::IP_PKTINFO) => {
            received.interface = int(payload).unwrap_or(0).cast_unsigned();
            received.local = payload
                .get(4..8)
                .and_then(|bytes| <[u8; 4]>::try_from(bytes).ok())
                .map(IpAddr::from);
        }
        (libc::SOL_IPV6, libc::IPV6_PKTINFO) => {
            received.local = payload
                .get(..16)
                .and_then(|bytes| <[u8; 16]>::try_from(bytes).ok())
                .map(IpAddr::from);
            received.interface = payload.get(16..).and_then(int).unwrap_or(0).cast_unsigned();
        }
        (libc::SOL_UDP, libc::UDP_GRO) => {
            received.segment = int(payload).and_then(|size| usize::try_from(size).ok());
        }
        (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
            received.kernel_drops = int(payload).map(i32::cast_unsigned);
        }
        _ => {}
    });
    received
}

fn int(payload: &[u8]) -> Option<libc::c_int> {
    let bytes = payload.get(..size_of::<libc::c_int>())?;
    bytes.try_into().ok().map(libc::c_int::from_ne_bytes)
}

/// Calls `visit(level, type, payload)` for each control message.
pub(crate) fn each(mut control: &[u8], mut visit: impl FnMut(libc::c_int, libc::c_int, &[u8])) {
    while control.len() >= HEADER {
        // SAFETY: there are at least `HEADER` bytes, which is at least a
        // header, and any bits are a valid header, which is plain integers;
        // the read needs no alignment.
        let header = unsafe { control.as_ptr().cast::<libc::cmsghdr>().read_unaligned() };
        #[allow(clippy::unnecessary_cast, reason = "musl has another type here")]
        let length = header.cmsg_len as usize;
        let Some(payload) = control.get(HEADER..length) else {
            return;
        };
        visit(header.cmsg_level, header.cmsg_type, payload);
        control = control.get(space(payload.len())..).unwrap_or_default();
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn write__everything_fits_and_reads_back() {
        for (family, remote, local) in [
            (Family::V4, "10.0.0.1:9", "10.0.0.2"),
            (Family::V6, "[fd00::1]:9", "fd00::2"),
        ] {
            let path = Path {
                remote: remote.parse().unwrap(),
                local: Some(local.parse().unwrap()),
            };
            let mut control = SendControl::default();
            let length = write(&mut control, family, &path, 0xe0, Some(1472));
            let bytes = &bytes_of(&control)[..length];
            let received = read(bytes);
            assert_eq!((received.tos, received.local), (0xe0, path.local));
            let mut segment = None;
            each(bytes, |level, kind, payload| {
                if (level, kind) == (libc::SOL_UDP, libc::UDP_SEGMENT) {
                    segment = payload.try_into().ok().map(u16::from_ne_bytes);
                }
            });
            assert_eq!(segment, Some(1472));
        }
    }

    #[test]
    fn write__defaults_need_nothing() {
        let path = Path::to("10.0.0.1:9".parse().unwrap());
        let mut control = SendControl::default();
        assert_eq!(write(&mut control, Family::V4, &path, 0, None), 0);
    }

    #[test]
    fn each__bad_lengths_end_the_walk() {
        let mut visits = 0;
        each(&[0; HEADER], |_, _, _| visits += 1);
        each(&[0xff; 40], |_, _, _| visits += 1);
        each(&[0; 3], |_, _, _| visits += 1);
        assert_eq!(visits, 0);
    }
}
