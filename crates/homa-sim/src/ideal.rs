//! The time that a message takes in an idle network, from the sender's
//! application to the receiver's: what slowdown divides by.
//!
//! The first packet is stored and forwarded; behind it the host's link, the
//! slowest on the way, is never idle until the last byte.

use crate::packet::HostId;
use crate::time::SimTime;
use crate::topology::{Distance, Topology};
use crate::wire::{Share, WireSizes, frame_bytes};

/// A way to compute the time in an idle network.
#[derive(Clone, Debug)]
pub enum Ideal {
    /// From the packets that are really sent.
    Exact {
        /// Bytes of headers.
        wire_sizes: WireSizes,
        /// Payload of a full packet.
        payload_bytes: u32,
        /// Bytes of a message that are sent without grants.
        unscheduled_bytes: u32,
    },
    /// As the simulator of SIGCOMM 2018 did (`WorkloadSynthesizer.cc`): frames
    /// without any header of Homa, and, for two hosts of one rack, without the
    /// delay of their switch (an assignment there drops it).
    Sigcomm18,
}

/// Payload of UDP in a full frame, in bytes.
const UDP_PAYLOAD_BYTES: u32 = 1472;
const UDP_IP_BYTES: u32 = 28;

impl Ideal {
    /// Picoseconds for a message of `bytes` (at least 1) between two hosts.
    pub fn ps(&self, topology: &Topology, from: HostId, to: HostId, bytes: u32) -> u64 {
        let distance = topology.distance(from, to);
        let (all_bytes, first_bytes) = match *self {
            Self::Exact {
                wire_sizes,
                payload_bytes,
                unscheduled_bytes,
            } => exact(wire_sizes, payload_bytes, unscheduled_bytes, bytes),
            Self::Sigcomm18 => sigcomm18(bytes),
        };
        let behind_ps = topology.host_byte_ps() * (all_bytes - u64::from(first_bytes));
        let first_ps = topology.links_ps(distance, first_bytes);
        let mut fixed_ps = topology.fixed_ps(distance);
        if matches!(self, Self::Sigcomm18) && distance == Distance::OneSwitch {
            fixed_ps -= topology.switch_ns * crate::time::NANOSECOND_PS;
        }
        first_ps + behind_ps + fixed_ps
    }

    /// Completion time divided by the time in an idle network.
    pub fn slowdown(
        &self,
        topology: &Topology,
        from: HostId,
        to: HostId,
        bytes: u32,
        took: (SimTime, SimTime),
    ) -> f64 {
        took.1.since(took.0) as f64 / self.ps(topology, from, to, bytes) as f64
    }
}

/// Bytes on the wire of all packets, and of the first.
fn exact(sizes: WireSizes, payload_bytes: u32, unscheduled_bytes: u32, bytes: u32) -> (u64, u32) {
    let payload_bytes = payload_bytes.max(1);
    let unscheduled = bytes.min(unscheduled_bytes);
    let part = |bytes: u32, share| {
        let full = u64::from(bytes / payload_bytes);
        let rest = bytes % payload_bytes;
        let all = full * u64::from(sizes.data(payload_bytes, share));
        all + if rest > 0 {
            u64::from(sizes.data(rest, share))
        } else {
            0
        }
    };
    let all = part(unscheduled, Share::Unscheduled) + part(bytes - unscheduled, Share::Scheduled);
    let first = sizes.data(unscheduled.min(payload_bytes), Share::Unscheduled);
    (all, first)
}

fn sigcomm18(bytes: u32) -> (u64, u32) {
    let full = u64::from(bytes / UDP_PAYLOAD_BYTES);
    let rest = bytes % UDP_PAYLOAD_BYTES;
    let full_frame = frame_bytes(UDP_PAYLOAD_BYTES + UDP_IP_BYTES);
    let last_frame = if rest > 0 || full == 0 {
        frame_bytes(rest + UDP_IP_BYTES)
    } else {
        0
    };
    let first = if full > 0 { full_frame } else { last_frame };
    let all = full * u64::from(full_frame) + u64::from(last_frame);
    (all, first)
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;
    use crate::sigcomm18::topology;

    const NEAR: (HostId, HostId) = (HostId(0), HostId(1));
    const FAR: (HostId, HostId) = (HostId(0), HostId(143));

    #[test]
    fn ps__by_hand_as_in_2018() {
        let topology = topology();
        let ps =
            |pair: (HostId, HostId), bytes| Ideal::Sigcomm18.ps(&topology, pair.0, pair.1, bytes);
        // One frame of 84 bytes: 67.2 ns on 10, 16.8 ns on 40 Gbit/s.
        assert_eq!(ps(FAR, 1), 2 * 67_200 + 2 * 16_800 + 2_250_000);
        assert_eq!(ps(NEAR, 1), 2 * 67_200 + 1_500_000);
        // 100 bytes are 166 on the wire.
        assert_eq!(ps(FAR, 100), 166 * (2 * 800 + 2 * 200) + 2_250_000);
        // Two frames: 1538 and 1 + 28, made 84.
        assert_eq!(
            ps(FAR, 1473),
            (1538 + 84 + 1538) * 800 + 2 * 1538 * 200 + 2_250_000
        );
        assert_eq!(
            ps(FAR, 1472),
            (1538 + 1538) * 800 + 2 * 1538 * 200 + 2_250_000
        );
    }

    #[test]
    fn ps__exact_counts_the_packets_that_are_sent() {
        let ideal = Ideal::Exact {
            wire_sizes: WireSizes::Sigcomm18,
            payload_bytes: 1442,
            unscheduled_bytes: 9328,
        };
        let topology = topology();
        let ps = |bytes| ideal.ps(&topology, FAR.0, FAR.1, bytes);
        assert_eq!(ps(9328), (10_000 + 1538) * 800 + 2 * 1538 * 200 + 2_250_000);
        // One scheduled byte is a packet of 84.
        assert_eq!(ps(9329) - ps(9328), 84 * 800);
        assert_eq!(ps(1), 97 * 2000 + 2_250_000);
    }
}
