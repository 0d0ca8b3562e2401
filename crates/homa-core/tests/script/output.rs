//! `out …` and `event …`: what the endpoint under test must say.

use homa_core::{Event, Kind, Transmit};
use homa_wire::{Body, Data};

use super::input::{acks, code, cut, cutoffs, take};
use super::machine::Machine;
use super::words::{Words, parse};

/// A packet as errors show it, in the words of the language.
pub(crate) fn describe(machine: &Machine, transmit: &Transmit) -> String {
    let packet = &transmit.packet;
    let peer = machine.peer_name(transmit.peer);
    let name = machine
        .rpcs
        .iter()
        .find(|(_, rpc)| {
            rpc.id_from_us() == Some(packet.sender_id)
                && rpc.peer == peer
                && rpc.our_port() == packet.source_port
                && rpc.their_port() == packet.destination_port
        })
        .map_or_else(|| format!("({:?})", packet.sender_id), |(n, _)| n.clone());
    let detail = match &packet.body {
        Body::Data(data) => {
            let length = transmit.payload.map_or(0, |payload| payload.length());
            let mark = |is_set, text| if is_set { text } else { "" };
            let mut text = format!(
                "off {} len {length} of {} incoming {} version {} limit {}{}{}",
                data.offset(),
                data.message_length,
                data.incoming,
                data.cutoff_version,
                data.response_limit_log2,
                mark(data.retransmit, " again"),
                mark(data.one_way, " oneway"),
            );
            if let Some(ack) = data.ack {
                text.push_str(" ack of ");
                text.push_str(&ack.client_id.to_string());
            }
            text
        }
        Body::Grant(grant) => format!("offset {} priority {}", grant.offset, grant.priority),
        Body::Resend(resend) => format!(
            "offset {} length {} priority {}",
            resend.offset,
            resend.length.map_or("all".into(), |n| n.to_string()),
            resend.priority
        ),
        Body::Cutoffs(cutoffs, _) => {
            format!("version {} list {:?}", cutoffs.version, cutoffs.cutoffs)
        }
        Body::Ack(ack, _) => format!("acks {ack:?}"),
        Body::Abort(code) => format!("code {code:?}"),
        Body::RpcUnknown(_) | Body::Busy | Body::Freeze | Body::NeedAck => String::new(),
    };
    let trailer = packet.body.capabilities().map_or("", |_| " trailer");
    let kind = packet.body.packet_type().name();
    format!(
        "{kind} {name} to {peer} {detail} prio {}{trailer}",
        transmit.priority
    )
}

/// The next packet that was sent must be this one.
pub(crate) fn packet(machine: &mut Machine, words: &mut Words) -> Result<(), String> {
    let kind = words.next()?;
    let name = words.next()?;
    if kind == "DATA"
        && let Some((start, end)) = words.range()?
    {
        return data_range(machine, words, &name, start, end);
    }
    let transmit = next(machine, &kind, &name)?;
    let shown = describe(machine, &transmit);
    body(machine, words, &transmit).map_err(|text| format!("{text}; sent was {shown}"))
}

/// Takes the next packet if type, peer, ports, id and time are right.
fn next(machine: &mut Machine, kind: &str, name: &str) -> Result<Transmit, String> {
    let wanted = format!("expected {kind} {name}");
    let Some((at, transmit)) = machine.outputs.front().copied() else {
        return Err(format!(
            "{wanted}, but nothing was sent by {}",
            Machine::since_start(machine.now)
        ));
    };
    let shown = describe(machine, &transmit);
    let sent = format!("{wanted}; sent was {shown} at {}", Machine::since_start(at));
    if at != machine.now || transmit.packet.body.packet_type().name() != kind {
        return Err(sent);
    }
    let mut rpc = machine.rpc(name)?;
    if rpc.id.is_none() && transmit.packet.sender_id.from_client() {
        // A control packet about an RPC whose id has not been seen yet.
        rpc.id = Some(transmit.packet.sender_id.0);
    }
    let packet = &transmit.packet;
    let right = rpc.id_from_us() == Some(packet.sender_id)
        && machine.peer(&rpc.peer)? == transmit.peer
        && rpc.our_port() == packet.source_port
        && rpc.their_port() == packet.destination_port;
    if !right {
        return Err(sent);
    }
    let levels = machine.settings()?.priorities;
    if kind != "DATA" && transmit.priority != levels - 1 {
        return Err(format!("{sent}: control packets go at the highest level"));
    }
    machine.outputs.pop_front();
    Ok(transmit)
}

/// Compares what the line says with what was sent. What a line leaves out of
/// numbers may be anything; what it leaves out of marks must not be there.
fn body(machine: &mut Machine, words: &mut Words, transmit: &Transmit) -> Result<(), String> {
    same(words, "prio", u64::from(transmit.priority))?;
    mark(
        words,
        "trailer",
        transmit.packet.body.capabilities().is_some(),
    )?;
    match &transmit.packet.body {
        Body::Data(data) => {
            let payload = transmit.payload.ok_or("DATA without payload")?;
            if payload.start != data.offset() || data.segment_offset != Some(data.sequence) {
                return Err("the offset is not the same everywhere".into());
            }
            same(words, "off", u64::from(data.offset()))?;
            same(words, "len", u64::from(payload.length()))?;
            fields(machine, words, data)
        }
        Body::Grant(grant) => {
            same(words, "offset", u64::from(grant.offset))?;
            same(words, "priority", u64::from(grant.priority))
        }
        Body::Resend(resend) => {
            same(words, "offset", u64::from(resend.offset))?;
            same(words, "priority", u64::from(resend.priority))?;
            let wanted = match words.value("length")?.as_deref() {
                None => return Ok(()),
                Some("all") => None,
                Some(number) => Some(parse(number)?),
            };
            equal("length", &resend.length, &wanted)
        }
        Body::Cutoffs(found, _) => {
            if words.is_empty() {
                return Ok(());
            }
            equal("cutoffs", found, &cutoffs(words)?)
        }
        Body::Ack(ack, _) => {
            let wanted = acks(machine, words)?;
            equal("acks", &ack.entries().collect::<Vec<_>>(), &wanted)
        }
        Body::Abort(found) => code(words)?.map_or(Ok(()), |wanted| equal("code", found, &wanted)),
        Body::RpcUnknown(_) | Body::Busy | Body::Freeze | Body::NeedAck => Ok(()),
    }
}

fn fields(machine: &Machine, words: &mut Words, data: &Data) -> Result<(), String> {
    same(words, "of", u64::from(data.message_length))?;
    same(words, "incoming", u64::from(data.incoming))?;
    same(words, "version", u64::from(data.cutoff_version))?;
    let limit = words.value_number("limit")?.unwrap_or(0);
    equal("limit", &data.response_limit_log2, &limit)?;
    mark(words, "again", data.retransmit)?;
    mark(words, "oneway", data.one_way)?;
    let ack = words.value("ack")?;
    let wanted = match ack {
        Some(name) => machine.rpc(&name)?.id,
        None => None,
    };
    equal("ack", &data.ack.map(|ack| ack.client_id.0), &wanted)
}

fn data_range(
    machine: &mut Machine,
    words: &mut Words,
    name: &str,
    start: u32,
    end: u32,
) -> Result<(), String> {
    let unscheduled = machine.settings()?.unscheduled_bytes;
    let bound = words.value_number("boundary")?.unwrap_or(unscheduled);
    let line = words.after("of").ok_or("of is missing")?.join(" ");
    words.finish()?;
    for (start, end) in cut(start, end, bound) {
        let mut words = Words::new(&format!("off {start} len {} of {line}", end - start));
        let transmit = next(machine, "DATA", name)?;
        let shown = describe(machine, &transmit);
        body(machine, &mut words, &transmit)
            .and_then(|()| words.finish())
            .map_err(|text| format!("{text}; expected off {start}; sent was {shown}"))?;
    }
    Ok(())
}

fn same(words: &mut Words, name: &str, found: u64) -> Result<(), String> {
    match words.value_number(name)? {
        Some(wanted) => equal(name, &found, &wanted),
        None => Ok(()),
    }
}

fn mark(words: &mut Words, name: &str, found: bool) -> Result<(), String> {
    let wanted = words.anywhere(name);
    equal(name, &found, &wanted)
}

fn equal<T: PartialEq + std::fmt::Debug>(name: &str, found: &T, wanted: &T) -> Result<(), String> {
    if found == wanted {
        Ok(())
    } else {
        Err(format!("{name} is {found:?}, not {wanted:?}"))
    }
}

/// The next event must be this one.
pub(crate) fn event(machine: &mut Machine, words: &mut Words) -> Result<(), String> {
    let kind = words.next()?;
    let name = words.next()?;
    let Some((at, event)) = machine.events.pop_front() else {
        return Err(format!("expected event {kind} {name}, but there is none"));
    };
    let wrong = format!("event is {event:?} at {}", Machine::since_start(at));
    if at != machine.now {
        return Err(wrong);
    }
    let (found, handle) = match event {
        Event::Request { rpc, .. } => ("request", rpc),
        Event::Response { rpc, .. } => ("response", rpc),
        Event::Delivered { rpc } => ("delivered", rpc),
        Event::Failed { rpc, .. } => ("failed", rpc),
        Event::Cancelled { rpc } => ("cancelled", rpc),
        Event::Released { rpc } => ("released", rpc),
        _ => return Err(wrong),
    };
    let known = machine.rpc(&name)?;
    if found != kind || known.handle.is_some_and(|known| known != handle) {
        return Err(format!("{wrong} of {}", machine.rpc_name(handle)));
    }
    match event {
        Event::Request {
            length,
            id,
            kind,
            local_port,
            remote_port,
            peer,
            ..
        } => {
            same(words, "length", u64::from(length))?;
            mark(words, "oneway", kind == Kind::OneWay)?;
            equal("id", &Some(id.0), &known.id.map(|id| id + 1))?;
            equal("port", &local_port, &known.server_port)?;
            equal("client port", &remote_port, &known.client_port)?;
            equal("peer", &machine.peer_name(peer), &known.peer)?;
            if let Some(named) = machine.rpcs.get_mut(&name) {
                named.handle = Some(handle);
            }
        }
        Event::Response { length, .. } => same(words, "length", u64::from(length))?,
        Event::Failed { failure, .. } => {
            let wanted = words.next()?;
            let found = format!("{failure:?}");
            if !found.eq_ignore_ascii_case(&wanted.replace('_', "")) {
                return Err(format!("failure is {found}, not {wanted}"));
            }
        }
        _ => {}
    }
    if words.anywhere("untaken") {
        return Ok(());
    }
    take(machine, &event)
}
