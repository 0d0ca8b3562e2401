//! The UDP header, for Homa in UDP (`docs/protocol.md` §1).

use zerocopy::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::{Addresses, Captured, IpError, PROTOCOL_UDP, UDP_HEADER_LENGTH};
use crate::checksum::Checksum;

#[derive(Clone, Copy, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct View {
    source_port: U16,
    destination_port: U16,
    length: U16,
    checksum: U16,
}

const _: () = assert!(size_of::<View>() == UDP_HEADER_LENGTH);

/// A UDP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Udp {
    /// The sender's UDP port.
    pub source_port: u16,
    /// The receiver's UDP port.
    pub destination_port: u16,
    /// Bytes after the UDP header (65,527 at most).
    pub payload_length: u16,
    /// Checksum as on the wire; 0 where the sender made none (IPv4 only).
    pub checksum: u16,
}

/// What a UDP checksum says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdpChecksum {
    /// It fits the datagram.
    Valid,
    /// The sender made none, which only IPv4 allows.
    Absent,
    /// It is wrong, or missing in IPv6: receivers drop the datagram.
    Wrong,
}

impl Udp {
    /// A header with the checksum over header and payload filled in. A
    /// computed checksum of 0 becomes 0xffff, as 0 means that there is none.
    ///
    /// `None` where the payload is too long for a datagram.
    pub fn new(
        addresses: &Addresses,
        source_port: u16,
        destination_port: u16,
        payload: &[&[u8]],
    ) -> Option<Self> {
        let payload_length = payload.iter().map(|slice| slice.len()).sum::<usize>();
        let payload_length = u16::try_from(payload_length).ok()?;
        payload_length.checked_add(UDP_HEADER_LENGTH as u16)?;
        let header = Self {
            source_port,
            destination_port,
            payload_length,
            checksum: 0,
        };
        let checksum = match header.sum(addresses, payload)?.finish() {
            0 => 0xffff,
            checksum => checksum,
        };
        Some(Self { checksum, ..header })
    }

    /// Parses a header, and returns with it the datagram's payload. A length
    /// of 0, which Linux shows for datagrams that the NIC will cut, is taken
    /// as "all bytes there are".
    pub fn parse(datagram: Captured<'_>) -> Result<(Self, Captured<'_>), IpError> {
        let short = IpError::Short {
            length: datagram.bytes.len(),
        };
        let (view, _) = View::ref_from_prefix(datagram.bytes).map_err(|_| short)?;
        let length = match usize::from(view.length.get()) {
            0 => datagram.length,
            length if length < UDP_HEADER_LENGTH => {
                return Err(IpError::LengthField(view.length.get()));
            }
            length => length,
        };
        let payload = Captured::new(datagram.bytes, length)
            .after(UDP_HEADER_LENGTH)
            .ok_or(short)?;
        let header = Self {
            source_port: view.source_port.get(),
            destination_port: view.destination_port.get(),
            payload_length: u16::try_from(payload.length).unwrap_or(u16::MAX),
            checksum: view.checksum.get(),
        };
        Ok((header, payload))
    }

    /// Writes the header to the start of `buffer` and says how many bytes it
    /// has, or returns `None` where `buffer` is shorter than
    /// [`UDP_HEADER_LENGTH`] or the payload too long for a datagram.
    #[must_use]
    pub fn emit(&self, buffer: &mut [u8]) -> Option<usize> {
        self.view()?
            .write_to(buffer.get_mut(..UDP_HEADER_LENGTH)?)
            .ok()?;
        Some(UDP_HEADER_LENGTH)
    }

    /// What the checksum says about a complete payload.
    pub fn check(&self, addresses: &Addresses, payload: &[&[u8]]) -> UdpChecksum {
        match (self.checksum, addresses) {
            (0, Addresses::V4 { .. }) => UdpChecksum::Absent,
            (0, Addresses::V6 { .. }) => UdpChecksum::Wrong,
            _ => match self.sum(addresses, payload).map(Checksum::finish) {
                Some(0) => UdpChecksum::Valid,
                _ => UdpChecksum::Wrong,
            },
        }
    }

    fn sum(self, addresses: &Addresses, payload: &[&[u8]]) -> Option<Checksum> {
        let view = self.view()?;
        let length = u32::from(view.length.get());
        let start = Checksum::pseudo_header(addresses, PROTOCOL_UDP, length).with(view.as_bytes());
        Some(payload.iter().fold(start, |sum, slice| sum.with(slice)))
    }

    fn view(self) -> Option<View> {
        let length = self.payload_length.checked_add(UDP_HEADER_LENGTH as u16)?;
        Some(View {
            source_port: self.source_port.into(),
            destination_port: self.destination_port.into(),
            length: length.into(),
            checksum: self.checksum.into(),
        })
    }
}
