//! Builds capture files and frames byte by byte, independently of the code
//! that reads them.

#![allow(dead_code, reason = "each test binary uses a part")]

use homa_wire::ip::{Addresses, Ipv4, Ipv6, Udp};
use homa_wire::{Body, IP_PROTOCOL, MAX_HEADER_LENGTH, Packet, SenderId};

/// Byte order of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

impl Order {
    pub(crate) fn u16(self, value: u16) -> [u8; 2] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    pub(crate) fn u32(self, value: u32) -> [u8; 4] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    pub(crate) fn i64(self, value: i64) -> [u8; 8] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }
}

pub(crate) const MICRO: u32 = 0xa1b2_c3d4;
pub(crate) const NANO: u32 = 0xa1b2_3c4d;
pub(crate) const MODIFIED: u32 = 0xa1b2_cd34;

/// A pcap file with frames at (seconds, fraction).
pub(crate) fn pcap(order: Order, magic: u32, link: u32, frames: &[(u32, u32, &[u8])]) -> Vec<u8> {
    let mut file = Vec::new();
    file.extend(order.u32(magic));
    file.extend(order.u16(2));
    file.extend(order.u16(4));
    file.extend([0; 8]);
    file.extend(order.u32(262_144));
    file.extend(order.u32(link));
    for (seconds, fraction, frame) in frames {
        file.extend(order.u32(*seconds));
        file.extend(order.u32(*fraction));
        file.extend(order.u32(frame.len() as u32));
        file.extend(order.u32(frame.len() as u32));
        if magic == MODIFIED {
            file.extend([7; 8]);
        }
        file.extend_from_slice(frame);
    }
    file
}

/// A pcapng block around its content.
pub(crate) fn block(order: Order, block_type: u32, content: &[u8]) -> Vec<u8> {
    let mut block = Vec::new();
    let padded = content.len().next_multiple_of(4);
    block.extend(order.u32(block_type));
    block.extend(order.u32(padded as u32 + 12));
    block.extend_from_slice(content);
    block.resize(8 + padded, 0);
    block.extend(order.u32(padded as u32 + 12));
    block
}

/// A section header block with a comment option.
pub(crate) fn section(order: Order) -> Vec<u8> {
    let mut content = Vec::new();
    content.extend(order.u32(0x1a2b_3c4d));
    content.extend(order.u16(1));
    content.extend(order.u16(0));
    content.extend(order.i64(-1));
    content.extend(option(order, 1, b"test"));
    content.extend(option(order, 0, &[]));
    block(order, 0x0a0d_0d0a, &content)
}

/// A pcapng option.
pub(crate) fn option(order: Order, code: u16, value: &[u8]) -> Vec<u8> {
    let mut option = Vec::new();
    option.extend(order.u16(code));
    option.extend(order.u16(value.len() as u16));
    option.extend_from_slice(value);
    option.resize(4 + value.len().next_multiple_of(4), 0);
    option
}

/// An interface description block.
pub(crate) fn interface(order: Order, link: u16, snap: u32, options: &[Vec<u8>]) -> Vec<u8> {
    let mut content = Vec::new();
    content.extend(order.u16(link));
    content.extend(order.u16(0));
    content.extend(order.u32(snap));
    content.extend(options.concat());
    block(order, 1, &content)
}

/// An enhanced packet block.
pub(crate) fn enhanced(order: Order, interface: u32, units: u64, frame: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    content.extend(order.u32(interface));
    content.extend(order.u32((units >> 32) as u32));
    content.extend(order.u32(units as u32));
    content.extend(order.u32(frame.len() as u32));
    content.extend(order.u32(frame.len() as u32 + 1000));
    content.extend_from_slice(frame);
    content.resize(content.len().next_multiple_of(4), 0);
    content.extend(option(order, 2, &[0; 4]));
    content.extend(option(order, 0, &[]));
    block(order, 6, &content)
}

/// A simple packet block.
pub(crate) fn simple(order: Order, original: u32, frame: &[u8]) -> Vec<u8> {
    let mut content = order.u32(original).to_vec();
    content.extend_from_slice(frame);
    block(order, 3, &content)
}

/// The bytes of a Homa packet with its payload.
pub(crate) fn homa(packet: &Packet, payload: &[u8]) -> Vec<u8> {
    let mut bytes = [0; MAX_HEADER_LENGTH];
    let length = packet.emit(&mut bytes).unwrap();
    [&bytes[..length], payload].concat()
}

/// A BUSY packet from port 40000 to port 4000.
pub(crate) fn busy() -> Vec<u8> {
    homa(&Packet::new(40000, 4000, SenderId(2), Body::Busy), &[])
}

/// An IPv4 packet from 10.0.0.1 to 10.0.0.2.
pub(crate) fn v4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 20];
    let (source, destination) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let header = Ipv4::new(source, destination, 0xe0, protocol, payload.len() as u16);
    header.emit(&mut bytes).unwrap();
    bytes.extend_from_slice(payload);
    bytes
}

/// An IPv6 packet from fd00:1::1 to fd00:1::2.
pub(crate) fn v6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 40];
    let source = [0xfd00, 1, 0, 0, 0, 0, 0, 1].into();
    let destination = [0xfd00, 1, 0, 0, 0, 0, 0, 2].into();
    let header = Ipv6::new(source, destination, 0xe0, protocol, payload.len() as u16);
    header.emit(&mut bytes).unwrap();
    bytes.extend_from_slice(payload);
    bytes
}

/// A raw Homa packet in IPv4.
pub(crate) fn raw(homa: &[u8]) -> Vec<u8> {
    v4(IP_PROTOCOL, homa)
}

/// A UDP datagram in IPv4.
pub(crate) fn udp(source: u16, destination: u16, payload: &[u8]) -> Vec<u8> {
    let addresses = Addresses::V4 {
        source: [10, 0, 0, 1].into(),
        destination: [10, 0, 0, 2].into(),
    };
    let mut datagram = vec![0; 8];
    let header = Udp::new(&addresses, source, destination, &[payload]).unwrap();
    header.emit(&mut datagram).unwrap();
    datagram.extend_from_slice(payload);
    v4(17, &datagram)
}

/// An ICMP error from 10.0.0.2 that quotes an IPv4 packet.
pub(crate) fn icmp(icmp_type: u8, code: u8, rest: u32, quoted: &[u8]) -> Vec<u8> {
    let mut message = vec![icmp_type, code, 0, 0];
    message.extend(rest.to_be_bytes());
    message.extend_from_slice(quoted);
    v4(1, &message)
}

/// An Ethernet frame; `tags` are VLAN tags, outermost first.
pub(crate) fn ethernet(tags: &[u16], packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x52; 12];
    for (index, tag) in tags.iter().enumerate() {
        frame.extend(tag.to_be_bytes());
        frame.extend([0x60, index as u8]);
    }
    frame.extend(ethertype(packet).to_be_bytes());
    frame.extend_from_slice(packet);
    frame
}

/// The ethertype of an IP packet.
pub(crate) fn ethertype(packet: &[u8]) -> u16 {
    match packet.first().map(|first| first >> 4) {
        Some(6) => 0x86dd,
        _ => 0x0800,
    }
}
