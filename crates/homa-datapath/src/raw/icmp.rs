//! ICMP port unreachable, in answer to packets for Homa ports that nobody has
//! (`docs/protocol.md` §17): the reference module's clients rely on it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;
use std::time::Instant;

use homa_wire::checksum::Checksum;

use super::system;
use crate::socket::transmit::{Message, Transmit};
use crate::socket::{Buffer, Family, Socket, error_number, lock};
use crate::{BindError, Kind, Path, Refusal, headers};

/// Answers a second, and at once: what the kernel allows itself
/// (`icmp_msgs_per_sec`, `icmp_msgs_burst`).
const RATE_PER_SECOND: f64 = 1000.0;
const BURST: f64 = 50.0;
/// Bytes quoted of the packet, so that the answer stays below 576 bytes.
const QUOTED_BYTES: usize = 500;
/// Precedence of the answer: internetwork control, as the kernel's own.
const TOS: u8 = 0xc0;

/// The sockets to answer with.
pub(super) struct Answers {
    v4: Option<Socket>,
    v6: Option<Socket>,
    transmit: Mutex<Transmit>,
    bucket: Mutex<Bucket>,
}

impl Answers {
    pub(super) fn open(v4: bool, v6: bool) -> Result<Self, BindError> {
        Ok(Self {
            v4: v4.then(|| open_one(Family::V4)).transpose()?,
            v6: v6.then(|| open_one(Family::V6)).transpose()?,
            transmit: Mutex::new(Transmit::new()),
            bucket: Mutex::new(Bucket {
                tokens: BURST,
                filled: Instant::now(),
            }),
        })
    }

    /// Answers `packet`, which came from `remote` to `local`.
    pub(super) fn send(&self, remote: SocketAddr, local: IpAddr, packet: &[u8]) -> Refusal {
        let socket = match remote {
            SocketAddr::V4(_) => self.v4.as_ref(),
            SocketAddr::V6(_) => self.v6.as_ref(),
        };
        let Some(socket) = socket else {
            return Refusal::Failed;
        };
        if !is_host(remote.ip()) || !is_host(local) {
            return Refusal::Failed;
        }
        if !lock(&self.bucket).take(Instant::now()) {
            return Refusal::RateLimited;
        }
        let mut buffer = [0; 8 + headers::MAX_BYTES + QUOTED_BYTES];
        let Some(length) = write(&mut buffer, remote, local, packet) else {
            return Refusal::Failed;
        };
        let path = Path {
            remote: without_port(remote),
            local: Some(local),
        };
        let mut transmit = lock(&self.transmit);
        // A pending error of an earlier answer comes instead of this one's
        // result, once.
        for _ in 0..2 {
            let message = Message {
                path: &path,
                tos: TOS,
                bytes: &buffer[..length],
                segment: None,
                packets: 1,
            };
            match transmit.send(socket, std::iter::once(message)) {
                Ok(_) => return Refusal::Answered,
                Err(error) if error_number(&error) == libc::EAGAIN => return Refusal::Failed,
                Err(_) => {}
            }
        }
        Refusal::Failed
    }
}

fn without_port(mut address: SocketAddr) -> SocketAddr {
    address.set_port(0);
    address
}

fn open_one(family: Family) -> Result<Socket, BindError> {
    let (protocol, filter_level, filter_name, filter): (_, _, _, &[u8]) = match family {
        // linux/icmp.h: ICMP_FILTER is 1, a mask of 32 types not wanted.
        Family::V4 => (libc::IPPROTO_ICMP, libc::SOL_RAW, 1, &[0xff; 4]),
        // linux/icmpv6.h: ICMPV6_FILTER is 1, a mask of 256 types not wanted.
        Family::V6 => (libc::IPPROTO_ICMPV6, libc::IPPROTO_ICMPV6, 1, &[0xff; 32]),
    };
    let socket = Socket::open(family, libc::SOCK_RAW, protocol)
        .map_err(system("opening a raw ICMP socket"))?;
    // It only sends: nothing may queue up.
    socket
        .set_bytes(filter_level, filter_name, filter)
        .and_then(|()| socket.set_buffer(Buffer::Receive, 0))
        .map_err(system("setting the options of a raw ICMP socket"))?;
    Ok(socket)
}

/// Whether one host has the address.
fn is_host(address: IpAddr) -> bool {
    !address.is_unspecified()
        && !address.is_multicast()
        && !matches!(address, IpAddr::V4(v4) if v4.is_broadcast())
}

/// Writes type, code, checksum, four unused bytes and the offending packet as
/// it was, its IP header made again.
fn write(buffer: &mut [u8], remote: SocketAddr, local: IpAddr, packet: &[u8]) -> Option<usize> {
    let destination = SocketAddr::new(local, 0);
    let (icmp, quote) = buffer.split_at_mut_checked(8)?;
    let header = headers::write(quote, Kind::Raw, &remote, &destination, 0, packet)?;
    let quoted = packet.len().min(QUOTED_BYTES);
    quote
        .get_mut(header..header + quoted)?
        .copy_from_slice(&packet[..quoted]);
    let length = 8 + header + quoted;
    let (kind, code) = match local {
        IpAddr::V4(_) => (3, 3),
        IpAddr::V6(_) => (1, 4),
    };
    icmp.copy_from_slice(&[kind, code, 0, 0, 0, 0, 0, 0]);
    if local.is_ipv4() {
        // The kernel fills in the one of ICMPv6.
        let checksum = Checksum::new().with(&buffer[..length]).finish();
        buffer[2..4].copy_from_slice(&checksum.to_be_bytes());
    }
    Some(length)
}

/// A token bucket.
struct Bucket {
    tokens: f64,
    filled: Instant,
}

impl Bucket {
    fn take(&mut self, now: Instant) -> bool {
        let elapsed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.filled = now;
        self.tokens = (self.tokens + elapsed * RATE_PER_SECOND).min(BURST);
        let enough = self.tokens >= 1.0;
        if enough {
            self.tokens -= 1.0;
        }
        enough
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn take__a_burst_then_the_rate() {
        let start = Instant::now();
        let mut bucket = Bucket {
            tokens: BURST,
            filled: start,
        };
        let taken = (0..100).filter(|_| bucket.take(start)).count();
        assert_eq!(taken, 50);
        let later = start + Duration::from_millis(10);
        assert_eq!((0..100).filter(|_| bucket.take(later)).count(), 10);
    }

    #[test]
    fn write__answer_to_ipv4_has_a_right_checksum_and_quotes() {
        let mut buffer = [0; 600];
        let remote = "10.0.0.1:0".parse().unwrap();
        let packet = [7; 80];
        let length = write(&mut buffer, remote, [10, 0, 0, 2].into(), &packet).unwrap();
        assert_eq!(length, 8 + 20 + 80);
        assert_eq!(buffer[..2], [3, 3]);
        assert_eq!(Checksum::new().with(&buffer[..length]).finish(), 0);
        assert_eq!(buffer[8 + 9], homa_wire::IP_PROTOCOL);
        assert_eq!(buffer[8 + 12..8 + 20], [10, 0, 0, 1, 10, 0, 0, 2]);
        assert_eq!(buffer[28..length], packet);
    }

    #[test]
    fn is_host__not_groups() {
        for address in ["255.255.255.255", "224.0.0.1", "ff02::1", "::", "0.0.0.0"] {
            assert!(!is_host(address.parse().unwrap()), "{address}");
        }
        assert!(is_host("10.0.0.1".parse().unwrap()));
    }
}
