//! What a packet costs: echo RPCs of 100 bytes between two endpoints, with a
//! given number outstanding all the time, and nothing else in the process.
//!
//! Run it under `valgrind --tool=callgrind` with two values of `--rpcs`: the
//! difference in instructions divided by the difference in packets is what one
//! packet costs at both ends together, without the set-up. `cargo xtask cost`
//! does that and compares with the committed thresholds.
//!
//! `--wire` adds emitting and parsing every header.

#![allow(clippy::print_stdout, reason = "its output is what it is for")]

use std::collections::VecDeque;

use homa_core::{
    Config, Endpoint, Event, Identity, Kind, PeerHandle, Request, RpcHandle, Time, Transmit,
};
use homa_wire::{MAX_HEADER_LENGTH, Packet};

/// Virtual time from one packet to the next. Short, so that even 100,000
/// outstanding RPCs end before any timer of theirs fires.
const PACKET_NS: u64 = 10;
const MESSAGE_BYTES: u32 = 100;

struct End {
    endpoint: Endpoint,
    other: PeerHandle,
}

#[derive(Clone, Copy, PartialEq)]
enum Headers {
    Typed,
    Bytes,
}

fn end(instance: u64, outstanding: u32) -> Result<End, Box<dyn std::error::Error>> {
    let config = Config {
        max_rpcs: (4 * outstanding).max(1024),
        ..Config::default()
    };
    let identity = Identity {
        first_id: 1000,
        instance,
        hash_seed: instance,
    };
    let mut endpoint = Endpoint::new(config.settings()?, identity);
    let (other, _) = endpoint.add_peer(Time::from_nanos(1), 1480)?;
    endpoint.listen(4000);
    Ok(End { endpoint, other })
}

impl End {
    fn call(&mut self, now: Time) -> Result<(), homa_core::RequestError> {
        let request = Request {
            local_port: 40_000,
            remote_port: 4000,
            length: MESSAGE_BYTES,
            kind: Kind::Call,
        };
        self.endpoint.request(now, self.other, request).map(drop)
    }

    fn receive(&mut self, now: Time, sent: &Transmit, headers: Headers) {
        let length = sent.payload.map_or(0, |payload| payload.length());
        if headers == Headers::Bytes {
            let mut bytes = [0; MAX_HEADER_LENGTH];
            let emitted = sent
                .packet
                .emit(&mut bytes)
                .and_then(|end| bytes.get(..end));
            if let Some(Ok((packet, _))) = emitted.map(Packet::parse) {
                self.endpoint.packet(now, self.other, &packet, length);
            }
        } else {
            self.endpoint.packet(now, self.other, &sent.packet, length);
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut outstanding = 64;
    let mut rpcs = 10_000;
    let mut headers = Headers::Typed;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || {
            arguments
                .next()
                .ok_or("a number must follow")
                .map(|n| n.parse::<u32>())
        };
        match argument.as_str() {
            "--outstanding" => outstanding = number()??,
            "--rpcs" => rpcs = number()??,
            "--wire" => headers = Headers::Bytes,
            other => return Err(format!("unknown argument {other}").into()),
        }
    }
    let mut client = end(1, outstanding)?;
    let mut server = end(2, outstanding)?;
    let mut waiting: VecDeque<RpcHandle> = VecDeque::new();
    let mut now = Time::from_nanos(1);
    let mut packets = 0_u64;
    let (mut started, mut done) = (0, 0);
    while done < rpcs {
        if started < rpcs && started - done < outstanding {
            client.call(now)?;
            started += 1;
        } else if let Some(rpc) = waiting.pop_front() {
            server.endpoint.respond(now, rpc, MESSAGE_BYTES)?;
        }
        while let Some(sent) = client.endpoint.poll_transmit(now) {
            packets += 1;
            now = now + PACKET_NS;
            server.receive(now, &sent, headers);
        }
        while let Some(event) = server.endpoint.poll_event() {
            if let Event::Request { rpc, .. } = event {
                server.endpoint.taken(now, rpc);
                waiting.push_back(rpc);
            }
        }
        while let Some(sent) = server.endpoint.poll_transmit(now) {
            packets += 1;
            now = now + PACKET_NS;
            client.receive(now, &sent, headers);
        }
        while let Some(event) = client.endpoint.poll_event() {
            match event {
                Event::Response { rpc, .. } => client.endpoint.taken(now, rpc),
                other => return Err(format!("unexpected {other:?}").into()),
            }
            done += 1;
        }
        for end in [&mut client, &mut server] {
            // As a host does: only when a timer is due.
            if packets.is_multiple_of(16)
                && end
                    .endpoint
                    .next_timeout(now)
                    .is_some_and(|(at, _)| at <= now)
            {
                end.endpoint.timeout(now, 16);
            }
        }
    }
    println!("packets {packets}");
    println!("rpcs {done}");
    Ok(())
}
