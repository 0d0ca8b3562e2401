//! `in …` and `app …`: what the endpoint under test is given.

use homa_core::{Event, Kind, Quoted, Request, Unreachable, Verdict};
use homa_wire::{
    AbortCode, Ack, AckEntry, Body, Capabilities, Cutoffs, Data, Features, Grant, Packet, Resend,
    SenderId,
};

use super::machine::{Machine, Named};
use super::words::{Words, parse};

/// Payload of a full packet in scripts: Ethernet, IPv4.
pub(crate) const PAYLOAD_BYTES: u32 = 1424;

/// A packet arrives.
pub(crate) fn packet(machine: &mut Machine, words: &mut Words) -> Result<(), String> {
    let kind = words.next()?;
    let verdict = words.after("=>");
    let name = words.next()?;
    if kind == "ICMP" {
        return icmp(machine, &name, words);
    }
    let rpc = machine.rpc(&name)?;
    let via = words.value("via")?.unwrap_or_else(|| rpc.peer.clone());
    let sport = words.value_number("sport")?.unwrap_or(rpc.their_port());
    let dport = words.value_number("dport")?.unwrap_or(rpc.our_port());
    let sender = match words.value_number("sender_id")? {
        Some(id) => SenderId(id),
        None => rpc.id_to_us()?,
    };
    let trailer = trailer(words)?;
    let packet = |body| Packet::new(sport, dport, sender, body);
    if kind == "DATA" {
        for (data, length) in data(machine, words)? {
            let seen = arrive(machine, &name, &via, &packet(Body::Data(data)), length)?;
            judge(seen, verdict.as_deref())?;
        }
    } else {
        let body = match kind.as_str() {
            "GRANT" => Body::Grant(Grant {
                offset: words.needed("offset")?,
                priority: words.value_number("priority")?.unwrap_or(0),
            }),
            "RESEND" => Body::Resend(Resend {
                offset: words.needed("offset")?,
                length: match words.value("length")?.as_deref() {
                    Some("all") => None,
                    Some(number) => Some(parse(number)?),
                    None => return Err("length is missing".into()),
                },
                priority: words.value_number("priority")?.unwrap_or(7),
            }),
            "RPC_UNKNOWN" => Body::RpcUnknown(trailer),
            "BUSY" => Body::Busy,
            "CUTOFFS" => Body::Cutoffs(cutoffs(words)?, trailer),
            "FREEZE" => Body::Freeze,
            "NEED_ACK" => Body::NeedAck,
            "ACK" => Body::Ack(Ack::new(acks(machine, words)?), trailer),
            "ABORT" => Body::Abort(code(words)?.unwrap_or(AbortCode::Refused)),
            other => return Err(format!("{other} is no packet type")),
        };
        let seen = arrive(machine, &name, &via, &packet(body), 0)?;
        judge(seen, verdict.as_deref())?;
    }
    machine.pump();
    Ok(())
}

/// Hands a packet over as it comes from the wire.
fn arrive(
    machine: &mut Machine,
    name: &str,
    via: &str,
    packet: &Packet,
    payload: u32,
) -> Result<Verdict, String> {
    let mut bytes = vec![0; packet.header_length()];
    packet.emit(&mut bytes).ok_or("a packet without room")?;
    let (packet, _) = Packet::parse(&bytes).map_err(|e| e.to_string())?;
    let (now, peer) = (machine.now, machine.peer(via)?);
    let verdict = machine.endpoint()?.packet(now, peer, &packet, payload);
    if let Verdict::Begin(placement) | Verdict::Place(placement) = verdict
        && let Some(named) = machine.rpcs.get_mut(name)
    {
        named.handle = Some(placement.rpc);
    }
    Ok(verdict)
}

fn judge(verdict: Verdict, wanted: Option<&[String]>) -> Result<(), String> {
    let found = match verdict {
        Verdict::Begin(_) => "begin".into(),
        Verdict::Place(_) => "place".into(),
        Verdict::Control => "control".into(),
        Verdict::Drop(reason) => format!("drop {}", reason.name()),
    };
    match wanted {
        None if found.starts_with("drop") => Err(format!("the packet was not used: {found}")),
        None => Ok(()),
        Some(wanted) if wanted.join(" ") == found => Ok(()),
        Some(wanted) => Err(format!("verdict is {found}, not {}", wanted.join(" "))),
    }
}

/// The DATA packets of one line: one, or all of a range.
fn data(machine: &mut Machine, words: &mut Words) -> Result<Vec<(Data, u32)>, String> {
    let unscheduled = machine.settings()?.unscheduled_bytes;
    let range = words.range()?;
    let message_length: u32 = words.needed("of")?;
    let incoming = words
        .value_number("incoming")?
        .unwrap_or(unscheduled.min(message_length));
    let ack = words.value("ack")?;
    let template = Data {
        message_length,
        incoming,
        ack: ack.map(|name| entry(machine, &name)).transpose()?,
        cutoff_version: words.value_number("version")?.unwrap_or(1),
        retransmit: words.anywhere("again"),
        response_limit_log2: words.value_number("limit")?.unwrap_or(0),
        one_way: words.anywhere("oneway"),
        ..Data::default()
    };
    if let Some((start, end)) = range {
        return Ok(cut(start, end, incoming)
            .map(|(start, end)| (template.at(start), end - start))
            .collect());
    }
    let offset = words.needed("off")?;
    let length = words.needed("len")?;
    let mut data = template.at(offset);
    if words.anywhere("no_segment_offset") {
        data.segment_offset = None;
    }
    if let Some(sequence) = words.value_number("sequence")? {
        data.sequence = sequence;
    }
    Ok(vec![(data, length)])
}

/// Packets of `start..end`, with a boundary where the unscheduled bytes end.
pub(crate) fn cut(start: u32, end: u32, unscheduled: u32) -> impl Iterator<Item = (u32, u32)> {
    let mut at = start;
    std::iter::from_fn(move || {
        let bound = if at < unscheduled {
            end.min(unscheduled)
        } else {
            end
        };
        let next = (at + PAYLOAD_BYTES).min(bound);
        (at < end).then(|| (std::mem::replace(&mut at, next), next))
    })
}

fn entry(machine: &Machine, name: &str) -> Result<AckEntry, String> {
    let rpc = machine.rpc(name)?;
    Ok(AckEntry {
        client_id: SenderId(rpc.id.ok_or("an RPC without id cannot be acked")?),
        server_port: rpc.server_port,
    })
}

/// `acks a,b,c`.
pub(crate) fn acks(machine: &Machine, words: &mut Words) -> Result<Vec<AckEntry>, String> {
    words.value("acks")?.map_or(Ok(Vec::new()), |names| {
        names.split(',').map(|name| entry(machine, name)).collect()
    })
}

pub(crate) fn cutoffs(words: &mut Words) -> Result<Cutoffs, String> {
    let version = words.needed("version")?;
    let mut list = [0; 8];
    let given = words.after("list").ok_or("list is missing")?;
    if given.len() != list.len() {
        return Err("list has eight entries".into());
    }
    for (entry, word) in list.iter_mut().zip(given) {
        *entry = parse(&word)?;
    }
    Ok(Cutoffs {
        cutoffs: list,
        version,
    })
}

/// `code refused`.
pub(crate) fn code(words: &mut Words) -> Result<Option<AbortCode>, String> {
    let Some(word) = words.value("code")? else {
        return Ok(None);
    };
    Ok(Some(match word.as_str() {
        "refused" => AbortCode::Refused,
        "dropped" => AbortCode::Dropped,
        "cancelled" => AbortCode::Cancelled,
        "too_large" => AbortCode::TooLarge,
        "port_closed" => AbortCode::PortClosed,
        "shutting_down" => AbortCode::ShuttingDown,
        "stale" => AbortCode::Stale,
        number => AbortCode::from_wire(parse(number)?),
    }))
}

/// `trailer all|none|a,b [instance N]`.
fn trailer(words: &mut Words) -> Result<Option<Capabilities>, String> {
    let instance = words.value_number("instance")?.unwrap_or(5);
    let Some(names) = words.value("trailer")? else {
        return Ok(None);
    };
    let mut features = Features::NONE;
    for name in names.split(',').filter(|name| *name != "none") {
        features = features.with(match name {
            "response_limit" => Features::RESPONSE_LIMIT,
            "checksum" => Features::CHECKSUM,
            "large_messages" => Features::LARGE_MESSAGES,
            "one_way" => Features::ONE_WAY,
            "abort" => Features::ABORT,
            "all" => Features(0b1_1111),
            other => return Err(format!("no feature {other}")),
        });
    }
    Ok(Some(Capabilities {
        version: Capabilities::VERSION,
        features,
        instance,
    }))
}

/// `in ICMP port|protocol|host RPC [ended N]`: an error that quotes the RPC.
fn icmp(machine: &mut Machine, what: &str, words: &mut Words) -> Result<(), String> {
    let unreachable = match what {
        "port" => Unreachable::Port,
        "protocol" => Unreachable::Protocol,
        "host" => Unreachable::Host,
        other => return Err(format!("{other} cannot be unreachable")),
    };
    let rpc = machine.rpc(&words.next()?)?;
    let sender_id = match words.value_number("sender_id")? {
        Some(id) => Some(SenderId(id)),
        None if words.anywhere("short") => None,
        None => rpc.id_from_us(),
    };
    let quoted = Quoted {
        source_port: words.value_number("sport")?.unwrap_or(rpc.our_port()),
        destination_port: rpc.their_port(),
        sender_id,
    };
    let (now, peer) = (machine.now, machine.peer(&rpc.peer)?);
    let ended = machine
        .endpoint()?
        .unreachable(now, peer, unreachable, quoted);
    let wanted = words.needed("ended")?;
    machine.pump();
    if ended == wanted {
        Ok(())
    } else {
        Err(format!("{ended} RPCs ended, not {wanted}"))
    }
}

/// The application acts.
pub(crate) fn app(machine: &mut Machine, words: &mut Words) -> Result<(), String> {
    let verb = words.next()?;
    let wanted = words.after("=>").map(|words| words.join(" "));
    let now = machine.now;
    let outcome = match verb.as_str() {
        "request" => request(machine, words)?,
        "respond" => {
            let rpc = machine.handle(&words.next()?)?;
            let length = words.needed("length")?;
            let result = machine.endpoint()?.respond(now, rpc, length);
            result.err().map(|error| format!("{error:?}"))
        }
        "take" => {
            let rpc = machine.handle(&words.next()?)?;
            machine.endpoint()?.taken(now, rpc);
            None
        }
        "abort" => {
            let rpc = machine.handle(&words.next()?)?;
            let code = code(words)?.unwrap_or(AbortCode::Refused);
            machine.endpoint()?.abort(now, rpc, code);
            None
        }
        "ready" => {
            let rpc = machine.handle(&words.next()?)?;
            let bytes = words.needed("bytes")?;
            machine.endpoint()?.ready(rpc, bytes);
            None
        }
        "flush" => {
            let peer = machine.peer(&words.next()?)?;
            machine.endpoint()?.flush_acks(peer, 40_000);
            None
        }
        "listen" => {
            let port = words.number()?;
            machine.endpoint()?.listen(port);
            None
        }
        "unlisten" => {
            let port = words.number()?;
            machine.endpoint()?.unlisten(port);
            None
        }
        "link_rate" => {
            let rate = words.number()?;
            machine.endpoint()?.set_link_rate_bps(Some(rate));
            None
        }
        "packet_bytes" => {
            let peer = machine.peer(&words.next()?)?;
            let bytes = words.number()?;
            machine.endpoint()?.set_packet_bytes(peer, bytes);
            None
        }
        other => return Err(format!("the application cannot {other}")),
    };
    machine.pump();
    match (outcome, wanted) {
        (None, None) => Ok(()),
        (None, Some(wanted)) => Err(format!("it worked, instead of {wanted}")),
        (Some(error), Some(wanted)) if error.eq_ignore_ascii_case(&wanted) => Ok(()),
        (Some(error), _) => Err(format!("the endpoint says {error}")),
    }
}

fn request(machine: &mut Machine, words: &mut Words) -> Result<Option<String>, String> {
    let name = words.next()?;
    let to = words.value("to")?.ok_or("to whom?")?;
    let peer = machine.peer(&to)?;
    let named = Named {
        peer: to,
        ours: true,
        client_port: words.value_number("client_port")?.unwrap_or(40_000),
        server_port: words.value_number("server_port")?.unwrap_or(4000),
        id: None,
        handle: None,
    };
    let request = Request {
        local_port: named.client_port,
        remote_port: named.server_port,
        length: words.needed("length")?,
        kind: if words.anywhere("oneway") {
            Kind::OneWay
        } else {
            Kind::Call
        },
    };
    let ready = words.value_number("ready")?;
    let now = machine.now;
    match machine.endpoint()?.request(now, peer, request) {
        Err(error) => Ok(Some(format!("{error:?}"))),
        Ok(handle) => {
            if let Some(bytes) = ready {
                machine.endpoint()?.ready(handle, bytes);
            }
            let named = Named {
                handle: Some(handle),
                ..named
            };
            machine.rpcs.insert(name, named);
            Ok(None)
        }
    }
}

/// The application takes what an event handed to it.
pub(crate) fn take(machine: &mut Machine, event: &Event) -> Result<(), String> {
    let now = machine.now;
    if let Event::Request { rpc, .. } | Event::Response { rpc, .. } = event {
        machine.endpoint()?.taken(now, *rpc);
        machine.pump();
    }
    Ok(())
}
