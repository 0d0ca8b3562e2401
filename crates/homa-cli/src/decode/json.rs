//! One JSON object per line, with every field. Field names are stable;
//! fields that do not apply are left out.

use std::io::{self, Write};
use std::net::IpAddr;

use homa_capture::{Content, Homa, IcmpError};
use homa_wire::ip::{Encapsulation, Fragment, IpHeader};
use homa_wire::{Body, Capabilities, Packet};
use serde::Serialize;

use super::hosts::Hosts;
use super::{Found, names};

#[derive(Serialize)]
struct Line<'a> {
    file: String,
    frame: u64,
    /// Since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    time_ns: Option<i64>,
    /// Since the first frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    relative_ns: Option<i64>,
    interface: u32,
    frame_length: u32,
    frame_captured: usize,
    #[serde(flatten)]
    ip: Ip<'a>,
    kind: Kind,
    #[serde(flatten)]
    homa: Option<HomaFields>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fragment: Option<FragmentFields>,
    #[serde(skip_serializing_if = "Option::is_none")]
    icmp: Option<IcmpFields<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Packet,
    Unparsed,
    Icmp,
    Fragment,
}

#[derive(Serialize)]
struct Ip<'a> {
    #[serde(rename = "ip_version")]
    version: u8,
    source: IpAddr,
    destination: IpAddr,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    destination_name: Option<&'a str>,
    tos: u8,
    priority: u8,
    ttl: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    identification: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dont_fragment: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    flow_label: Option<u32>,
}

#[derive(Serialize)]
struct FragmentFields {
    offset: u16,
    more: bool,
}

#[derive(Serialize)]
struct IcmpFields<'a> {
    #[serde(rename = "type")]
    icmp_type: u8,
    code: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    mtu: Option<u32>,
    quoted: Quoted<'a>,
}

#[derive(Serialize)]
struct Quoted<'a> {
    #[serde(flatten)]
    ip: Ip<'a>,
    #[serde(flatten)]
    homa: HomaFields,
}

/// A Homa packet; of one that cannot be parsed what can be told.
#[derive(Serialize, Default)]
struct HomaFields {
    encapsulation: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    udp: Option<UdpFields>,
    /// Bytes after the IP or UDP header.
    length: usize,
    captured: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    packet_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    destination_port: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sender_id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tcp: Option<TcpImitation>,
    #[serde(flatten)]
    body: Option<BodyFields>,
    #[serde(skip_serializing_if = "Option::is_none")]
    capabilities: Option<CapabilityFields>,
    /// Bytes behind the header of a control packet, its trailer included.
    #[serde(skip_serializing_if = "Option::is_none")]
    trailing_length: Option<usize>,
}

#[derive(Serialize)]
struct UdpFields {
    source_port: u16,
    destination_port: u16,
    checksum: u16,
}

#[derive(Serialize)]
struct TcpImitation {
    doff: u8,
    flags: u8,
    urgent: u16,
    checksum: u16,
    /// Left out where the packet is incomplete.
    #[serde(skip_serializing_if = "Option::is_none")]
    checksum_valid: Option<bool>,
}

#[derive(Serialize)]
struct AckFields {
    client_id: u64,
    server_port: u16,
}

#[derive(Serialize)]
struct CapabilityFields {
    version: u8,
    features: Vec<String>,
    instance: u64,
}

#[derive(Serialize)]
#[serde(untagged)]
enum BodyFields {
    Data {
        offset: u32,
        payload_length: usize,
        message_length: u32,
        incoming: u32,
        sequence: u32,
        /// null: 0xffffffff on the wire, take `sequence`.
        segment_offset: Option<u32>,
        retransmit: bool,
        cutoff_version: u16,
        #[serde(skip_serializing_if = "Option::is_none")]
        ack: Option<AckFields>,
        response_limit_log2: u8,
        one_way: bool,
    },
    Grant {
        offset: u32,
        grant_priority: u8,
    },
    Resend {
        offset: u32,
        /// null: 0xffffffff on the wire, everything that was sent.
        resend_length: Option<u32>,
        resend_priority: u8,
    },
    Cutoffs {
        cutoffs: [u32; 8],
        version: u16,
    },
    Ack {
        acks: Vec<AckFields>,
    },
    Abort {
        code: u8,
        reason: &'static str,
    },
}

pub(crate) fn write(output: &mut impl Write, found: &Found<'_>, hosts: &Hosts) -> io::Result<()> {
    let (kind, homa, fragment, icmp) = match &found.frame.content {
        Content::Homa(homa) => {
            let kind = if homa.packet.is_ok() {
                Kind::Packet
            } else {
                Kind::Unparsed
            };
            let fragment = homa.bytes.fragment.map(fragment_fields);
            (kind, Some(homa_fields(homa)), fragment, None)
        }
        Content::Icmp(icmp) => (Kind::Icmp, None, None, Some(icmp_fields(icmp, hosts))),
        Content::Fragment(fragment) => {
            (Kind::Fragment, None, Some(fragment_fields(*fragment)), None)
        }
    };
    let line = Line {
        file: found.file.display().to_string(),
        frame: found.record.number,
        time_ns: found.record.time_ns,
        relative_ns: found.relative_ns,
        interface: found.record.interface,
        frame_length: found.record.original_length,
        frame_captured: found.record.bytes.len(),
        ip: ip_fields(&found.frame.ip, hosts),
        kind,
        homa,
        fragment,
        icmp,
    };
    serde_json::to_writer(&mut *output, &line)?;
    writeln!(output)
}

fn ip_fields<'a>(ip: &IpHeader, hosts: &'a Hosts) -> Ip<'a> {
    let (identification, dont_fragment, flow_label) = match ip {
        IpHeader::V4(header) => (
            Some(header.identification),
            Some(header.dont_fragment),
            None,
        ),
        IpHeader::V6(header) => (None, None, Some(header.flow_label)),
    };
    Ip {
        version: ip.version(),
        source: ip.source(),
        destination: ip.destination(),
        source_name: hosts.name(ip.source()),
        destination_name: hosts.name(ip.destination()),
        tos: ip.tos(),
        priority: ip.priority(),
        ttl: ip.ttl(),
        identification,
        dont_fragment,
        flow_label,
    }
}

fn fragment_fields(fragment: Fragment) -> FragmentFields {
    FragmentFields {
        offset: fragment.offset,
        more: fragment.more,
    }
}

fn icmp_fields<'a>(icmp: &IcmpError<'_>, hosts: &'a Hosts) -> IcmpFields<'a> {
    let quoted = Quoted {
        ip: ip_fields(&icmp.quoted.bytes.ip, hosts),
        homa: homa_fields(&icmp.quoted),
    };
    IcmpFields {
        icmp_type: icmp.icmp_type,
        code: icmp.code,
        mtu: icmp.mtu,
        quoted,
    }
}

fn homa_fields(homa: &Homa<'_>) -> HomaFields {
    let (encapsulation, udp) = match homa.bytes.encapsulation {
        Encapsulation::Raw => ("raw", None),
        Encapsulation::TcpHijacked => ("tcp", None),
        Encapsulation::Udp(udp) => {
            let fields = UdpFields {
                source_port: udp.source_port,
                destination_port: udp.destination_port,
                checksum: udp.checksum,
            };
            ("udp", Some(fields))
        }
    };
    let glimpse = homa.glimpse();
    let mut fields = HomaFields {
        encapsulation,
        udp,
        length: homa.bytes.packet.length,
        captured: homa.bytes.packet.bytes.len(),
        packet_type: glimpse.packet_type.map(|value| {
            glimpse
                .known_type()
                .map_or_else(|| format!("{value:#04x}"), |known| known.name().to_owned())
        }),
        source_port: glimpse.ports.map(|(source, _)| source),
        destination_port: glimpse.ports.map(|(_, destination)| destination),
        sender_id: glimpse.sender_id.map(|id| id.0),
        ..HomaFields::default()
    };
    match &homa.packet {
        Err(error) => fields.error = Some(error.to_string()),
        Ok(packet) => {
            fields.tcp = Some(TcpImitation {
                doff: packet.tcp.doff,
                flags: packet.tcp.flags,
                urgent: packet.tcp.urgent,
                checksum: packet.tcp.checksum,
                checksum_valid: homa.bytes.checksum_is_valid(),
            });
            fields.body = body_fields(packet, homa);
            fields.capabilities = packet.body.capabilities().as_ref().map(capability_fields);
            let trailing = homa.rest_length();
            let is_data = matches!(packet.body, Body::Data(_));
            fields.trailing_length = (!is_data && trailing > 0).then_some(trailing);
        }
    }
    fields
}

fn capability_fields(capabilities: &Capabilities) -> CapabilityFields {
    CapabilityFields {
        version: capabilities.version,
        features: names::features(capabilities.features),
        instance: capabilities.instance,
    }
}

fn body_fields(packet: &Packet, homa: &Homa<'_>) -> Option<BodyFields> {
    let ack_fields = |ack: homa_wire::AckEntry| AckFields {
        client_id: ack.client_id.0,
        server_port: ack.server_port,
    };
    Some(match &packet.body {
        Body::Data(data) => BodyFields::Data {
            offset: data.offset(),
            payload_length: homa.rest_length(),
            message_length: data.message_length,
            incoming: data.incoming,
            sequence: data.sequence,
            segment_offset: data.segment_offset,
            retransmit: data.retransmit,
            cutoff_version: data.cutoff_version,
            ack: data.ack.map(ack_fields),
            response_limit_log2: data.response_limit_log2,
            one_way: data.one_way,
        },
        Body::Grant(grant) => BodyFields::Grant {
            offset: grant.offset,
            grant_priority: grant.priority,
        },
        Body::Resend(resend) => BodyFields::Resend {
            offset: resend.offset,
            resend_length: resend.length,
            resend_priority: resend.priority,
        },
        Body::Cutoffs(cutoffs, _) => BodyFields::Cutoffs {
            cutoffs: cutoffs.cutoffs,
            version: cutoffs.version,
        },
        Body::Ack(ack, _) => BodyFields::Ack {
            acks: ack.entries().map(ack_fields).collect(),
        },
        Body::Abort(code) => BodyFields::Abort {
            code: code.to_wire(),
            reason: names::abort_code(*code),
        },
        Body::RpcUnknown(_) | Body::Busy | Body::Freeze | Body::NeedAck => return None,
    })
}
