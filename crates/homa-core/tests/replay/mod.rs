//! Reads a golden capture and plays one of its two hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::PathBuf;

use homa_core::{
    Config, Endpoint, Event, Extensions, Identity, Kind, MoreDue, PeerHandle, Request, RpcHandle,
    Time, Transmit,
};
use homa_wire::ip::{IpHeader, Located, locate};
use homa_wire::{AbortCode, Body, Cutoffs, Packet, tos_to_priority};

const START_NS: u64 = 1_000_000_000;
/// The reference module's cutoffs before anybody changes them.
const FIRST_CUTOFFS: [u32; 8] = [0, 0, 0, 0, 1_000_000, 15_000, 2800, 200];
/// Those of version 2 in the captures from 40 on.
const SECOND_CUTOFFS: [u32; 8] = [u32::MAX, 0, 0, 1_000_000, 30_000, 9000, 1000, 100];

/// Which host of a capture: the client is the one called a, the server b.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Client,
    Server,
}

/// One packet of a capture.
pub(crate) struct Sent {
    at: Time,
    by: Role,
    priority: u8,
    packet: Packet,
    payload: u32,
    /// How often it arrived: 0 where the switch dropped it.
    arrivals: u32,
}

/// What is compared of a packet; ids and ports are those of the capture.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Key(String);

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Key {
    /// The same without the ack that rides on it.
    pub(crate) fn without_ack(&self) -> Self {
        let text = self.0.split(" ack ").next().unwrap_or_default();
        Self(text.to_owned())
    }

    fn of(packet: &Packet, priority: u8, payload: u32) -> Self {
        let id = packet.sender_id.0;
        let detail = match &packet.body {
            Body::Data(data) => format!(
                "off {} len {payload} of {} incoming {} again {} prio {priority} ack {:?}",
                data.offset(),
                data.message_length,
                data.incoming,
                data.retransmit,
                data.ack.map(|ack| ack.client_id.0),
            ),
            Body::Grant(grant) => format!("offset {} priority {}", grant.offset, grant.priority),
            Body::Resend(resend) => format!(
                "off {} length {:?} priority {}",
                resend.offset, resend.length, resend.priority
            ),
            Body::Cutoffs(cutoffs, _) => format!("version {}", cutoffs.version),
            Body::Ack(..)
            | Body::RpcUnknown(_)
            | Body::Busy
            | Body::Freeze
            | Body::NeedAck
            | Body::Abort(_) => String::new(),
        };
        let kind = packet.body.packet_type().name();
        Self(format!("{kind} {id} {detail}").trim_end().to_owned())
    }
}

pub(crate) struct Capture {
    pub(crate) sent: Vec<Sent>,
    ticks: BTreeMap<String, u64>,
}

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden")
}

fn find(number: &str, extension: &str) -> PathBuf {
    fs::read_dir(directory())
        .expect("the golden captures")
        .map(|entry| entry.expect("an entry").path())
        .find(|path| {
            let name = path.file_name().map(|name| name.to_string_lossy());
            name.is_some_and(|name| name.starts_with(&format!("{number}_")))
                && path.extension().is_some_and(|e| e == extension)
        })
        .expect("the capture with this number")
}

impl Capture {
    pub(crate) fn read(number: &str) -> Self {
        let text = fs::read_to_string(find(number, "txt")).expect("text");
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let file = fs::read(find(number, "pcap")).expect("a capture");
        let mut sent = Vec::new();
        let mut first = None;
        for ((ns, frame), line) in records(&file).into_iter().zip(lines) {
            let since = ns - *first.get_or_insert(ns);
            // Behind the Ethernet header. Nothing is UDP here.
            let Ok(Located::Homa(homa)) = locate(&frame[14..], |_, _| false) else {
                continue;
            };
            let IpHeader::V4(ip) = homa.ip else {
                continue;
            };
            let (packet, _) = homa.parse().expect("a packet that can be parsed");
            sent.push(Sent {
                at: Time::from_nanos(START_NS + since),
                by: if line.split_whitespace().nth(2) == Some("a") {
                    Role::Client
                } else {
                    Role::Server
                },
                priority: tos_to_priority(ip.tos),
                packet,
                payload: homa.payload_length(&packet) as u32,
                arrivals: if line.contains("<== dropped") {
                    0
                } else if line.contains("<== delivered 2") {
                    2
                } else {
                    1
                },
            });
        }
        let mut ticks = ticks(&text);
        if let Some(number) = server_request_ack(&text) {
            ticks.insert("request_ack_ticks".into(), number);
        }
        Self { sent, ticks }
    }

    /// The distinct packets that one host sent.
    pub(crate) fn sent_by(&self, role: Role) -> BTreeSet<Key> {
        let by = self.sent.iter().filter(|sent| sent.by == role);
        by.map(|sent| Key::of(&sent.packet, sent.priority, sent.payload))
            .collect()
    }

    fn tick_ns(&self, name: &str) -> u64 {
        self.ticks[name] * 1_000_000
    }

    /// The first DATA of each message of one host: length, and when.
    fn messages(&self, role: Role) -> BTreeMap<u64, &Sent> {
        let mut messages = BTreeMap::new();
        for sent in self.sent.iter().filter(|sent| sent.by == role) {
            if matches!(sent.packet.body, Body::Data(_)) {
                messages.entry(sent.packet.sender_id.0).or_insert(sent);
            }
        }
        messages
    }
}

/// The records of a classic capture file of this machine's byte order: when,
/// in ns, and the frame. On purpose not by the project's capture reader: the
/// core and its tests use the wire formats only.
fn records(file: &[u8]) -> Vec<(u64, &[u8])> {
    let word = |at: usize| {
        let bytes = file[at..at + 4].try_into().expect("four bytes");
        u32::from_le_bytes(bytes)
    };
    assert_eq!(word(0), 0xa1b2_c3d4, "a capture with microseconds");
    let mut records = Vec::new();
    let mut at = 24;
    while at < file.len() {
        let ns = u64::from(word(at)) * 1_000_000_000 + u64::from(word(at + 4)) * 1000;
        let end = at + 16 + word(at + 8) as usize;
        records.push((ns, &file[at + 16..end]));
        at = end;
    }
    records
}

/// `(5 on b)` behind a list: the server's `request_ack_ticks`.
fn server_request_ack(text: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with("# sysctl: "))?;
    let (_, rest) = line.split_once('(')?;
    rest.strip_suffix(" on b)")?.parse().ok()
}

/// The timers that the reference module ran with, from the header of the text.
fn ticks(text: &str) -> BTreeMap<String, u64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("# sysctl: "))
        .expect("a line about sysctl");
    let calm = line.starts_with("CALM");
    let preset = if calm {
        [200, 200, 4000, 60]
    } else {
        [5, 5, 100, 2]
    };
    let names = [
        "resend_ticks",
        "resend_interval",
        "timeout_ticks",
        "request_ack_ticks",
    ];
    let mut ticks: BTreeMap<String, u64> =
        names.map(String::from).into_iter().zip(preset).collect();
    for word in line.split([' ', ',', ';', '(', ')']) {
        if let Some((name, value)) = word.split_once('=')
            && let Some(entry) = ticks.get_mut(name)
            && let Ok(value) = value.parse()
        {
            *entry = value;
        }
    }
    ticks
}

struct Player<'a> {
    capture: &'a Capture,
    role: Role,
    endpoint: Endpoint,
    peer: PeerHandle,
    now: Time,
    sent: BTreeSet<Key>,
    /// When the application of the server answers, and with how many bytes.
    answers: BTreeMap<(Time, u64), (RpcHandle, u32)>,
    requests: Vec<RpcHandle>,
    /// When the application of the client gives up what is left.
    abort_at: Option<Time>,
}

/// Lets an endpoint be one host of the capture and says what it sends.
/// If asked to, the client's application gives its requests up after some time.
pub(crate) fn replay(capture: &Capture, role: Role, abort_ns: Option<u64>) -> BTreeSet<Key> {
    let first_id = capture
        .messages(Role::Client)
        .keys()
        .next()
        .copied()
        .expect("a request");
    let config = Config {
        unscheduled_bytes: Some(40_000),
        max_incoming_bytes: Some(400_000),
        grant_fifo_permille: 0,
        fixed_cutoffs: Some(FIRST_CUTOFFS),
        resend_ns: Some(capture.tick_ns("resend_ticks")),
        resend_interval_ns: Some(capture.tick_ns("resend_interval")),
        timeout_ns: capture.tick_ns("timeout_ticks"),
        request_ack_ns: capture.tick_ns("request_ack_ticks"),
        max_rpcs: 1024,
        max_peers: 4,
        extensions: Extensions::Off,
        ..Config::default()
    };
    let identity = Identity {
        first_id,
        instance: 1,
        hash_seed: 1,
    };
    let now = Time::from_nanos(START_NS);
    let mut endpoint = Endpoint::new(config.settings().expect("valid"), identity);
    let (peer, _) = endpoint.add_peer(now, 1480).expect("room");
    for port in [4000, 4100] {
        endpoint.listen(port);
    }
    let mut player = Player {
        capture,
        role,
        endpoint,
        peer,
        now,
        sent: BTreeSet::new(),
        answers: BTreeMap::new(),
        requests: Vec::new(),
        abort_at: abort_ns.map(|ns| now + ns),
    };
    player.learn_cutoffs();
    player.play();
    player.sent
}

impl Player<'_> {
    /// What the module knew before the capture began.
    fn learn_cutoffs(&mut self) {
        let own = self.capture.messages(self.role);
        let Some((_, first)) = own.iter().next() else {
            return;
        };
        let Body::Data(data) = first.packet.body else {
            return;
        };
        let list = match data.cutoff_version {
            0 => return,
            1 => FIRST_CUTOFFS,
            _ => SECOND_CUTOFFS,
        };
        let cutoffs = Cutoffs {
            cutoffs: list,
            version: data.cutoff_version,
        };
        let packet = Packet::new(
            first.packet.destination_port,
            first.packet.source_port,
            homa_wire::SenderId(first.packet.sender_id.0 ^ 1),
            Body::Cutoffs(cutoffs, None),
        );
        let (now, peer) = (self.now, self.peer);
        self.endpoint.packet(now, peer, &packet, 0);
    }

    fn play(&mut self) {
        let capture = self.capture;
        let requests: Vec<&Sent> = capture.messages(Role::Client).into_values().collect();
        for sent in &capture.sent {
            if let Some(at) = self.abort_at.filter(|at| *at <= sent.at) {
                self.pass(at);
                self.abort_at = None;
                for rpc in std::mem::take(&mut self.requests) {
                    self.endpoint.abort(at, rpc, AbortCode::Cancelled);
                }
            }
            self.pass(sent.at);
            if sent.by != self.role {
                for _ in 0..sent.arrivals {
                    let mut packet = sent.packet;
                    if let Body::Data(data) = &mut packet.body
                        && data.cutoff_version > 1
                    {
                        // The other host knew a version that ours never had.
                        data.cutoff_version = 1;
                    }
                    let (now, peer) = (self.now, self.peer);
                    self.endpoint.packet(now, peer, &packet, sent.payload);
                    self.attend();
                }
            } else if self.role == Role::Client
                && requests.iter().any(|first| std::ptr::eq(*first, sent))
                && let Body::Data(data) = sent.packet.body
            {
                let request = Request {
                    local_port: sent.packet.source_port,
                    remote_port: sent.packet.destination_port,
                    length: data.message_length,
                    kind: Kind::Call,
                };
                let rpc = self
                    .endpoint
                    .request(self.now, self.peer, request)
                    .expect("a request");
                self.requests.push(rpc);
                self.attend();
            }
        }
        // Whatever would still follow, the capture does not show.
        self.attend();
    }

    /// Lets time pass, with timers and answers at their times.
    fn pass(&mut self, to: Time) {
        loop {
            let timer = self.endpoint.next_timeout(self.now).map(|(at, _)| at);
            let answer = self.answers.keys().next().map(|(at, _)| *at);
            let next = timer.into_iter().chain(answer).min();
            let Some(at) = next.filter(|at| *at <= to) else {
                break;
            };
            self.now = self.now.max(at);
            while let Some(entry) = self.answers.first_entry() {
                if entry.key().0 > self.now {
                    break;
                }
                let (rpc, length) = entry.remove();
                let _ = self.endpoint.respond(self.now, rpc, length);
            }
            while self.endpoint.timeout(self.now, 64) == MoreDue::Yes {}
            self.attend();
        }
        self.now = self.now.max(to);
    }

    fn attend(&mut self) {
        let now = self.now;
        while let Some(transmit) = self.endpoint.poll_transmit(now) {
            self.record(&transmit);
        }
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Request { rpc, id, .. } => {
                    self.endpoint.taken(now, rpc);
                    let answers = self.capture.messages(Role::Server);
                    if let Some(answer) = answers.get(&id.0)
                        && let Body::Data(data) = answer.packet.body
                    {
                        let at = answer.at.max(now);
                        self.answers.insert((at, id.0), (rpc, data.message_length));
                    }
                }
                Event::Response { rpc, .. } => self.endpoint.taken(now, rpc),
                _ => {}
            }
        }
        while let Some(transmit) = self.endpoint.poll_transmit(now) {
            self.record(&transmit);
        }
    }

    fn record(&mut self, transmit: &Transmit) {
        let length = transmit.payload.map_or(0, |payload| payload.length());
        let key = Key::of(&transmit.packet, transmit.priority, length);
        self.sent.insert(key);
    }
}
