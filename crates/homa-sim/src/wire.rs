//! How many bytes a packet takes on a link.
//!
//! Everything counts: preamble and gap (20), Ethernet header and checksum
//! (18), at least 46 bytes within, IP, and the headers of the transport.

use homa_wire::{Body, DATA_HEADER_LENGTH, Packet};

/// Preamble, start of frame and gap between frames, in bytes.
const GAP_BYTES: u32 = 20;
/// Ethernet header and checksum, in bytes.
const ETHERNET_BYTES: u32 = 18;
/// The least that is between them, in bytes.
const LEAST_WITHIN_BYTES: u32 = 46;
/// IPv4 header, in bytes.
const IPV4_BYTES: u32 = 20;
/// IPv4 and UDP headers, in bytes.
const UDP_BYTES: u32 = 28;

/// Headers of which implementation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireSizes {
    /// Those of the simulator of 2018 (PlatformLab/HomaSimulation,
    /// `HomaPkt.cc`): over UDP; 30 bytes of Homa in unscheduled, 16 in
    /// scheduled packets and in grants.
    Sigcomm18,
    /// Ours, which are those of Homa/Linux: directly over IPv4.
    Ipv4,
}

/// Whether a packet was sent without a grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Without.
    Unscheduled,
    /// With one.
    Scheduled,
}

/// A frame with `bytes` within.
pub const fn frame_bytes(bytes: u32) -> u32 {
    let within = if bytes < LEAST_WITHIN_BYTES {
        LEAST_WITHIN_BYTES
    } else {
        bytes
    };
    within + ETHERNET_BYTES + GAP_BYTES
}

impl WireSizes {
    /// A DATA packet with so much payload.
    pub const fn data(self, payload_bytes: u32, share: Share) -> u32 {
        let headers = match (self, share) {
            (Self::Sigcomm18, Share::Unscheduled) => UDP_BYTES + 30,
            (Self::Sigcomm18, Share::Scheduled) => UDP_BYTES + 16,
            (Self::Ipv4, _) => IPV4_BYTES + DATA_HEADER_LENGTH as u32,
        };
        frame_bytes(headers + payload_bytes)
    }

    /// Any packet.
    pub fn packet(self, packet: &Packet, payload_bytes: u32) -> u32 {
        match (&packet.body, self) {
            (Body::Data(data), _) => {
                let share = if data.offset() < data.incoming && !data.retransmit {
                    Share::Unscheduled
                } else {
                    Share::Scheduled
                };
                self.data(payload_bytes, share)
            }
            (_, Self::Sigcomm18) => frame_bytes(UDP_BYTES + 16),
            (_, Self::Ipv4) => frame_bytes(IPV4_BYTES + packet.header_length() as u32),
        }
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn data__as_the_simulator_of_2018() {
        let sizes = WireSizes::Sigcomm18;
        // The longest payloads fill a frame of 1500 bytes.
        assert_eq!(sizes.data(1442, Share::Unscheduled), 1538);
        assert_eq!(sizes.data(1456, Share::Scheduled), 1538);
        assert_eq!(sizes.data(1, Share::Unscheduled), 97);
        assert_eq!(sizes.data(1, Share::Scheduled), 84);
        // 9328 unscheduled bytes are 10,000 on the wire.
        let all = 6 * sizes.data(1442, Share::Unscheduled) + sizes.data(676, Share::Unscheduled);
        assert_eq!(all, 10_000);
    }

    #[test]
    fn data__of_homa_over_ipv4() {
        assert_eq!(WireSizes::Ipv4.data(1424, Share::Scheduled), 1538);
        assert_eq!(WireSizes::Ipv4.data(8, Share::Unscheduled), 122);
    }
}
