//! Receiving a batch: both sockets in turn, and what is rubbish.

use std::io;

use super::{Encapsulation, ReceiveState, Sockets};
use crate::receive_batch::{Message, PLACE_BYTES};
use crate::socket::receive::{Arrived, LANES};
use crate::socket::trouble::{Load, PENDING_LIMIT, Trouble};
use crate::socket::{Family, Socket, lock};
use crate::{Meta, Path, ReceiveBatch, Rest};

impl Sockets {
    pub(crate) fn receive(&self, batch: &mut ReceiveBatch) -> io::Result<usize> {
        batch.clear();
        let mut state = lock(&self.receive);
        let order = match state.first {
            Family::V4 => [Family::V4, Family::V6],
            Family::V6 => [Family::V6, Family::V4],
        };
        state.first = order[1];
        let mut rest = Rest::Nothing;
        for family in order {
            if let Some(socket) = self.get(family)
                && self.receive_from(socket, &mut state, batch)? == Rest::Unknown
            {
                rest = Rest::Unknown;
            }
        }
        batch.set_rest(rest);
        Ok(batch.len())
    }

    fn receive_from(
        &self,
        socket: &Socket,
        state: &mut ReceiveState,
        batch: &mut ReceiveBatch,
    ) -> io::Result<Rest> {
        let before = batch.len();
        for _ in 0..PENDING_LIMIT {
            let (start, places) = batch.free_places();
            if places.is_empty() {
                return Ok(Rest::Unknown);
            }
            let offered = places.len() / PLACE_BYTES;
            self.counters.rx_syscalls.increment();
            match state.arena.receive(socket, places) {
                Ok(count) => {
                    for lane in 0..count {
                        let arrived = state.arena.arrived(lane);
                        self.count_kernel_drops(socket.family, state, &arrived);
                        self.place(socket.family, &arrived, start + lane * PLACE_BYTES, batch);
                    }
                    if batch.len() > before {
                        // A call that gives less than it could has seen the
                        // end of the queue. (Or an error that came during it:
                        // then what is behind waits for the next packet.)
                        return Ok(if count < offered.min(LANES) {
                            Rest::Nothing
                        } else {
                            Rest::Unknown
                        });
                    }
                    // All of it was rubbish: there may be packets behind it.
                }
                Err(error) => match Trouble::of(&error, Load::Packet) {
                    Trouble::WouldBlock => return Ok(Rest::Nothing),
                    Trouble::NoBuffers => return Ok(Rest::Unknown),
                    Trouble::Interrupted => {}
                    _ if Trouble::leaves_socket_usable(&error) => {
                        self.counters.rx_pending_errors.increment();
                    }
                    _ => return Err(error),
                },
            }
        }
        Ok(Rest::Unknown)
    }

    fn count_kernel_drops(&self, family: Family, state: &mut ReceiveState, arrived: &Arrived) {
        let Some(total) = arrived.control.kernel_drops else {
            return;
        };
        let last = match family {
            Family::V4 => &mut state.drops_v4,
            Family::V6 => &mut state.drops_v6,
        };
        let new = total.wrapping_sub(*last);
        *last = total;
        self.counters.rx_kernel_drops.add(u64::from(new));
    }

    /// Adds what arrived at `start` of the batch's arena, unless it is rubbish.
    fn place(&self, family: Family, arrived: &Arrived, start: usize, batch: &mut ReceiveBatch) {
        if arrived.truncated {
            self.counters.rx_truncated.increment();
            return;
        }
        let header = match (self.encapsulation, family) {
            (Encapsulation::Raw, Family::V4) => {
                ipv4_header_length(batch.bytes_at(start, arrived.length))
            }
            _ => Some(0),
        };
        let (Some(remote), Some(header)) = (arrived.remote, header) else {
            self.counters.rx_malformed.increment();
            return;
        };
        let length = arrived.length - header;
        if length == 0 {
            self.counters.rx_malformed.increment();
            return;
        }
        let segment = match arrived.control.segment {
            Some(segment) if (1..length).contains(&segment) => {
                self.counters.rx_super_packets.increment();
                segment
            }
            _ => length,
        };
        self.counters
            .rx_packets
            .add(length.div_ceil(segment) as u64);
        self.counters.rx_bytes.add(length as u64);
        batch.commit(Message {
            meta: Meta {
                path: Path {
                    remote: self.without_raw_port(remote),
                    local: arrived.control.local,
                },
                tos: arrived.control.tos,
                interface: arrived.control.interface,
            },
            start: start + header,
            length,
            segment,
        });
    }
}

/// Length of the IPv4 header before a raw packet, options included; `None` if
/// it is not one.
fn ipv4_header_length(bytes: &[u8]) -> Option<usize> {
    let first = *bytes.first()?;
    let length = usize::from(first & 0x0f) * 4;
    (first >> 4 == 4 && length >= 20 && length <= bytes.len()).then_some(length)
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn ipv4_header_length__honours_options_and_rejects_rubbish() {
        let mut packet = [0; 60];
        packet[0] = 0x45;
        assert_eq!(ipv4_header_length(&packet), Some(20));
        packet[0] = 0x4f;
        assert_eq!(ipv4_header_length(&packet), Some(60));
        assert_eq!(ipv4_header_length(&packet[..59]), None);
        packet[0] = 0x44;
        assert_eq!(ipv4_header_length(&packet), None);
        packet[0] = 0x65;
        assert_eq!(ipv4_header_length(&packet), None);
        assert_eq!(ipv4_header_length(&[]), None);
    }
}
