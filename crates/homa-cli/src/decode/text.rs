//! One line per packet, in the shape of the `.txt` files next to the golden
//! captures (`tests/golden`).

use std::fmt::Write as _;
use std::io::{self, Write};

use homa_capture::{Content, Glimpse, Homa, IcmpError, Unparsed};
use homa_wire::ip::{Encapsulation, IpHeader};
use homa_wire::{Body, Capabilities, Data, Packet, ParseError};

use super::hosts::Hosts;
use super::{Found, names};

/// How much to print.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// What the golden files have.
    Short,
    /// Receiver, TTL, checksum and quoted packets as well.
    Long,
}

pub(crate) fn write(
    output: &mut impl Write,
    found: &Found<'_>,
    hosts: &Hosts,
    detail: Detail,
) -> io::Result<()> {
    let ip = &found.frame.ip;
    write!(output, "{:>4}  ", found.record.number)?;
    match found.relative_ns {
        Some(time) => write!(output, "{}", seconds(time))?,
        None => write!(output, "-")?,
    }
    write!(output, " {} v{}", hosts.show(ip.source()), ip.version())?;
    match &found.frame.content {
        Content::Homa(homa) => {
            let label = match homa.bytes.encapsulation {
                Encapsulation::Raw => "",
                Encapsulation::Udp(_) => "/UDP",
                Encapsulation::TcpHijacked => "/TCP",
            };
            let (captured, length) = (homa.bytes.packet.bytes.len(), homa.bytes.packet.length);
            write!(output, "{label} tos {:#04x} {}", ip.tos(), summary(homa))?;
            if homa.bytes.fragment.is_some() {
                write!(output, " first-fragment")?;
            }
            match homa.packet {
                Err(Unparsed::Cut { .. }) => write!(output, " [{length} B, {captured} captured]")?,
                _ => write!(output, " [{length} B]")?,
            }
            if detail == Detail::Long {
                write!(output, "{}", long(ip, homa, hosts))?;
            }
        }
        Content::Icmp(icmp) => {
            write!(output, " ICMP type {} code {}", icmp.icmp_type, icmp.code)?;
            if let Some(mtu) = icmp.mtu {
                write!(output, " mtu {mtu}")?;
            }
            if detail == Detail::Long {
                write!(output, "{}", quoted(ip, icmp, hosts))?;
            }
        }
        Content::Fragment(fragment) => {
            write!(
                output,
                " tos {:#04x} FRAGMENT offset {}",
                ip.tos(),
                fragment.offset
            )?;
            if fragment.more {
                write!(output, " more")?;
            }
        }
    }
    writeln!(output)
}

/// Seconds with six decimals, rounded down.
fn seconds(nanoseconds: i64) -> String {
    let microseconds = nanoseconds.div_euclid(1000);
    let sign = if microseconds < 0 { "-" } else { "" };
    let magnitude = microseconds.unsigned_abs();
    format!(
        "{sign}{}.{:06}",
        magnitude / 1_000_000,
        magnitude % 1_000_000
    )
}

fn long(ip: &IpHeader, homa: &Homa<'_>, hosts: &Hosts) -> String {
    let mut text = format!(" to {} ttl {}", hosts.show(ip.destination()), ip.ttl());
    if let Ok(packet) = &homa.packet {
        // Writing to a string cannot fail.
        let _ = write!(text, " checksum {:#06x}", packet.tcp.checksum);
        text.push_str(match homa.bytes.checksum_is_valid() {
            Some(true) => " valid",
            Some(false) => " not valid",
            None => " of an incomplete packet",
        });
    }
    text
}

fn quoted(ip: &IpHeader, icmp: &IcmpError<'_>, hosts: &Hosts) -> String {
    let original = &icmp.quoted.bytes.ip;
    format!(
        " to {} about {} to {}: {}",
        hosts.show(ip.destination()),
        hosts.show(original.source()),
        hosts.show(original.destination()),
        summary(&icmp.quoted)
    )
}

/// Ports, type, id and fields.
fn summary(homa: &Homa<'_>) -> String {
    match &homa.packet {
        Ok(packet) => parsed(packet, homa),
        Err(error) => unparsed(*error, homa.glimpse()),
    }
}

fn unparsed(error: Unparsed, glimpse: Glimpse) -> String {
    let mut text = String::new();
    if let Some((source, destination)) = glimpse.ports {
        let _ = write!(text, "{source}>{destination} ");
    }
    let name = glimpse
        .known_type()
        .map_or("", |packet_type| packet_type.name());
    let _ = match error {
        Unparsed::Malformed(ParseError::UnknownType(value)) => write!(text, "TYPE_{value:#04x}"),
        Unparsed::Malformed(_) => write!(text, "SHORT{name}"),
        Unparsed::Cut { .. } => write!(text, "CUT{name}"),
    };
    if let Some(id) = glimpse.sender_id {
        let _ = write!(text, " id {id}");
    }
    text
}

fn parsed(packet: &Packet, homa: &Homa<'_>) -> String {
    let mut text = format!(
        "{}>{} {} id {}",
        packet.source_port,
        packet.destination_port,
        packet.body.packet_type().name(),
        packet.sender_id
    );
    // Writing to a string cannot fail.
    let _ = fields(&mut text, packet, homa);
    if let Some(capabilities) = packet.body.capabilities() {
        let _ = trailer(&mut text, &capabilities);
    }
    if !matches!(packet.body, Body::Data(_)) && homa.rest_length() > 0 {
        let _ = write!(text, " trailing {}", homa.rest_length());
    }
    text
}

fn fields(text: &mut String, packet: &Packet, homa: &Homa<'_>) -> std::fmt::Result {
    match &packet.body {
        Body::Data(data) => data_fields(text, data, packet, homa),
        Body::Grant(grant) => write!(text, " off {} prio {}", grant.offset, grant.priority),
        Body::Resend(resend) => {
            write!(
                text,
                " off {} length {}",
                resend.offset,
                OrMinusOne(resend.length)
            )?;
            write!(text, " prio {}", resend.priority)
        }
        Body::Cutoffs(cutoffs, _) => {
            write!(
                text,
                " cutoffs {:?} version {}",
                cutoffs.cutoffs, cutoffs.version
            )
        }
        Body::Ack(ack, _) => {
            let entries: Vec<(u64, u16)> = ack
                .entries()
                .map(|entry| (entry.client_id.0, entry.server_port))
                .collect();
            write!(text, " num_acks {} {entries:?}", entries.len())
        }
        Body::Abort(code) => {
            write!(
                text,
                " code {} ({})",
                code.to_wire(),
                names::abort_code(*code)
            )
        }
        Body::RpcUnknown(_) | Body::Busy | Body::Freeze | Body::NeedAck => Ok(()),
    }
}

fn data_fields(
    text: &mut String,
    data: &Data,
    packet: &Packet,
    homa: &Homa<'_>,
) -> std::fmt::Result {
    write!(text, " off {} len {}", data.offset(), homa.rest_length())?;
    write!(text, " of {} inc {}", data.message_length, data.incoming)?;
    write!(
        text,
        " seq {} seg {}",
        data.sequence,
        OrMinusOne(data.segment_offset)
    )?;
    write!(
        text,
        " retx {} cutver {}",
        u8::from(data.retransmit),
        data.cutoff_version
    )?;
    write!(text, " doff {:#x}", packet.tcp.doff)?;
    if let Some(ack) = data.ack {
        write!(text, " ack ({}, port {})", ack.client_id, ack.server_port)?;
    }
    if data.response_limit_log2 != 0 {
        write!(text, " response_limit 2^{}", data.response_limit_log2)?;
    }
    if data.one_way {
        write!(text, " one-way")?;
    }
    Ok(())
}

fn trailer(text: &mut String, capabilities: &Capabilities) -> std::fmt::Result {
    write!(
        text,
        " capabilities version {} features [",
        capabilities.version
    )?;
    write!(
        text,
        "{}]",
        names::features(capabilities.features).join(", ")
    )?;
    write!(text, " instance {:#018x}", capabilities.instance)
}

/// A field that is 0xffffffff on the wire where it is `None`.
struct OrMinusOne(Option<u32>);

impl std::fmt::Display for OrMinusOne {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(value) => write!(f, "{value}"),
            None => write!(f, "-1"),
        }
    }
}
