//! Link-layer headers: where in a frame the IP packet begins.

/// VLAN tags that are skipped in one frame. Two are common (802.1ad).
const MAX_VLAN_TAGS: usize = 8;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;

/// What the bytes of a record begin with (the LINKTYPE_ values of pcap).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkType {
    /// The address family in the byte order of the capturing host (0).
    Null,
    /// The address family in network byte order (108).
    Loop,
    /// Ethernet without frame check sequence, VLAN tags or not (1).
    Ethernet,
    /// An IP packet of either version (12, 14, 101).
    Raw,
    /// An IPv4 packet (228).
    Ipv4,
    /// An IPv6 packet (229).
    Ipv6,
    /// Linux "any" device, first format (113).
    LinuxSll,
    /// Linux "any" device, second format (276).
    LinuxSll2,
    /// One that is not supported.
    Other(u16),
}

impl LinkType {
    /// The link type with this number.
    pub const fn from_wire(value: u16) -> Self {
        match value {
            0 => Self::Null,
            1 => Self::Ethernet,
            12 | 14 | 101 => Self::Raw,
            108 => Self::Loop,
            113 => Self::LinuxSll,
            228 => Self::Ipv4,
            229 => Self::Ipv6,
            276 => Self::LinuxSll2,
            other => Self::Other(other),
        }
    }

    /// The IP packet in a frame, or `None` where there is none (or its
    /// beginning is not there).
    pub(crate) fn ip_packet(self, frame: &[u8]) -> Option<&[u8]> {
        match self {
            Self::Ethernet => behind_ethertype(frame, 12),
            Self::LinuxSll => behind_ethertype(frame, 14),
            Self::LinuxSll2 => {
                let (ethertype, rest) = (ethertype(frame, 0)?, frame.get(20..)?);
                behind_tags(ethertype, rest)
            }
            Self::Null | Self::Loop => {
                // Either byte order: the number is small, so one half is zero.
                let family = match u32::from_be_bytes(*frame.first_chunk()?) {
                    family @ 0..0x1_0000 => family,
                    family => family.swap_bytes(),
                };
                // AF_INET is 2 everywhere; AF_INET6 differs between systems.
                matches!(family, 2 | 10 | 24 | 28 | 30).then(|| frame.get(4..))?
            }
            Self::Raw | Self::Ipv4 | Self::Ipv6 => Some(frame),
            Self::Other(_) => None,
        }
    }
}

fn ethertype(bytes: &[u8], at: usize) -> Option<u16> {
    bytes
        .get(at..)?
        .first_chunk()
        .copied()
        .map(u16::from_be_bytes)
}

/// What follows the ethertype at `at`, if that is IP.
fn behind_ethertype(frame: &[u8], at: usize) -> Option<&[u8]> {
    behind_tags(ethertype(frame, at)?, frame.get(at + 2..)?)
}

/// What follows the VLAN tags that `ethertype` and its successors announce.
fn behind_tags(mut ethertype_: u16, mut rest: &[u8]) -> Option<&[u8]> {
    for _ in 0..=MAX_VLAN_TAGS {
        match ethertype_ {
            ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => return Some(rest),
            // 802.1Q, 802.1ad, and two older numbers for stacked tags.
            0x8100 | 0x88a8 | 0x9100 | 0x9200 => {
                ethertype_ = ethertype(rest, 2)?;
                rest = rest.get(4..)?;
            }
            _ => return None,
        }
    }
    None
}
