//! ICMP errors: what a host or router says about a Homa packet that it quotes
//! (`docs/protocol.md` §17).

use homa_wire::ip::{Captured, IpHeader, Located, locate};

use crate::frame::Homa;
use crate::udp_rule::UdpRule;

pub(crate) const PROTOCOL_ICMP: u8 = 1;
pub(crate) const PROTOCOL_ICMPV6: u8 = 58;

const HEADER_LENGTH: usize = 8;

/// An ICMP or ICMPv6 error about a Homa packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpError<'a> {
    /// The ICMP type.
    pub icmp_type: u8,
    /// The ICMP code.
    pub code: u8,
    /// The MTU, in bytes, that a "packet too big" names.
    pub mtu: Option<u32>,
    /// The packet that the error is about, as far as it is quoted.
    pub quoted: Homa<'a>,
}

impl<'a> IcmpError<'a> {
    /// Parses what follows an IP header of protocol 1 or 58, and returns
    /// `None` where that is no error or quotes no Homa packet.
    pub(crate) fn parse(ip: &IpHeader, icmp: Captured<'a>, udp: &UdpRule) -> Option<Self> {
        let &[icmp_type, code, _, _, rest @ ..] = icmp.bytes.first_chunk::<HEADER_LENGTH>()?;
        let is_error = match ip {
            // Unreachable, quench, redirect, time exceeded, parameter problem.
            IpHeader::V4(_) => matches!(icmp_type, 3 | 4 | 5 | 11 | 12),
            // All types below 128 are errors; only some exist.
            IpHeader::V6(_) => matches!(icmp_type, 1..128),
        };
        if !is_error {
            return None;
        }
        let mtu = match (ip, icmp_type, code) {
            (IpHeader::V4(_), 3, 4) => Some(u32::from_be_bytes(rest) & 0xffff),
            (IpHeader::V6(_), 2, _) => Some(u32::from_be_bytes(rest)),
            _ => None,
        };
        let quoted = icmp.bytes.get(HEADER_LENGTH..)?;
        match locate(quoted, |header, packet| udp.accepts(header, packet)) {
            Ok(Located::Homa(bytes)) => {
                let quoted = Homa::new(bytes);
                Some(Self {
                    icmp_type,
                    code,
                    mtu,
                    quoted,
                })
            }
            _ => None,
        }
    }
}
