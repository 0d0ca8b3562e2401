//! The endpoint under test, the names a script uses, and the clock.

use std::collections::{BTreeMap, VecDeque};

use homa_core::{
    Config, Counters, Endpoint, Event, Identity, Mechanisms, MoreDue, PeerHandle, RpcHandle, Time,
    Transmit,
};
use homa_wire::SenderId;

use super::words::{Words, parse, time};
use super::{config, input, output};

/// Scripts count from here, so that no time is 0 inside.
const START_NS: u64 = 1_000_000_000;
/// Id of the first RPC that the endpoint under test makes.
const FIRST_ID: u64 = 1_000_000;

/// One RPC that a script names.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(crate) peer: String,
    /// The endpoint under test is the client.
    pub(crate) ours: bool,
    pub(crate) client_port: u16,
    pub(crate) server_port: u16,
    /// As its client knows it.
    pub(crate) id: Option<u64>,
    pub(crate) handle: Option<RpcHandle>,
}

impl Named {
    /// The id in packets from the endpoint under test.
    pub(crate) fn id_from_us(&self) -> Option<SenderId> {
        self.id.map(|id| SenderId(id + u64::from(!self.ours)))
    }

    /// The id in packets to it.
    pub(crate) fn id_to_us(&self) -> Result<SenderId, String> {
        self.id
            .map(|id| SenderId(id + u64::from(self.ours)))
            .ok_or_else(|| "this RPC has no id yet: none of its packets was sent".into())
    }

    pub(crate) fn our_port(&self) -> u16 {
        if self.ours {
            self.client_port
        } else {
            self.server_port
        }
    }

    pub(crate) fn their_port(&self) -> u16 {
        if self.ours {
            self.server_port
        } else {
            self.client_port
        }
    }
}

pub(crate) struct Machine {
    config: Config,
    endpoint: Option<Endpoint>,
    pub(crate) now: Time,
    pub(crate) peers: BTreeMap<String, PeerHandle>,
    pub(crate) rpcs: BTreeMap<String, Named>,
    pub(crate) outputs: VecDeque<(Time, Transmit)>,
    pub(crate) events: VecDeque<(Time, Event)>,
    next_id: u64,
    /// Outputs are left inside until `release`.
    held: bool,
}

impl Machine {
    pub(crate) fn new(mechanisms: Mechanisms) -> Self {
        Self {
            config: config::defaults(mechanisms),
            endpoint: None,
            now: Time::from_nanos(START_NS),
            peers: BTreeMap::new(),
            rpcs: BTreeMap::new(),
            outputs: VecDeque::new(),
            events: VecDeque::new(),
            next_id: 100,
            held: false,
        }
    }

    /// Does what one line says.
    pub(crate) fn line(&mut self, mut words: Words) -> Result<(), String> {
        if words.flag("at") {
            let when = words.next()?;
            if let Some((from, to)) = when.split_once("..") {
                self.advance_to_output(self.instant(from)?, self.instant(to)?)?;
            } else {
                self.advance(self.instant(&when)?)?;
            }
            if words.is_empty() {
                return Ok(());
            }
        }
        let verb = words.next()?;
        match verb.as_str() {
            "config" => {
                if self.endpoint.is_some() {
                    return Err("config comes before everything else".into());
                }
                config::change(&mut self.config, &mut words)?;
            }
            "peer" => self.add_peer(&mut words)?,
            "rpc" => self.name_rpc(&mut words)?,
            "in" => {
                self.nothing_is_left()?;
                input::packet(self, &mut words)?;
            }
            "app" => {
                self.nothing_is_left()?;
                input::app(self, &mut words)?;
            }
            "out" => output::packet(self, &mut words)?,
            "event" => output::event(self, &mut words)?,
            "expect" => self.expect(&mut words)?,
            "hold" => self.held = true,
            "release" => {
                self.held = false;
                self.pump();
            }
            "skip" => {
                let what = words.next()?;
                match what.as_str() {
                    "output" => self.outputs.clear(),
                    "events" => self.events.clear(),
                    _ => return Err("skip output, or skip events".into()),
                }
            }
            "no" => self.expect_nothing(&mut words)?,
            other => return Err(format!("{other} is no verb")),
        }
        words.finish()
    }

    /// The endpoint, made from the configuration when first needed.
    pub(crate) fn endpoint(&mut self) -> Result<&mut Endpoint, String> {
        if self.endpoint.is_none() {
            let settings = self.config.settings().map_err(|e| e.to_string())?;
            let identity = Identity {
                first_id: FIRST_ID,
                instance: 77,
                hash_seed: 7,
            };
            let mut endpoint = Endpoint::new(settings, identity);
            endpoint.listen(4000);
            self.endpoint = Some(endpoint);
        }
        self.endpoint.as_mut().ok_or_else(|| "no endpoint".into())
    }

    pub(crate) fn settings(&mut self) -> Result<homa_core::Settings, String> {
        Ok(self.endpoint()?.settings().clone())
    }

    pub(crate) fn peer(&self, name: &str) -> Result<PeerHandle, String> {
        let peer = self.peers.get(name).copied();
        peer.ok_or_else(|| format!("no peer {name}"))
    }

    pub(crate) fn rpc(&self, name: &str) -> Result<Named, String> {
        let rpc = self.rpcs.get(name).cloned();
        rpc.ok_or_else(|| format!("no RPC {name}"))
    }

    pub(crate) fn handle(&self, name: &str) -> Result<RpcHandle, String> {
        self.rpc(name)?
            .handle
            .ok_or_else(|| format!("RPC {name} is not known to the endpoint yet"))
    }

    pub(crate) fn peer_name(&self, peer: PeerHandle) -> String {
        let found = self.peers.iter().find(|(_, handle)| **handle == peer);
        found.map_or_else(|| "?".into(), |(name, _)| name.clone())
    }

    pub(crate) fn rpc_name(&self, handle: RpcHandle) -> String {
        let found = self.rpcs.iter().find(|(_, rpc)| rpc.handle == Some(handle));
        found.map_or_else(|| "an RPC without name".into(), |(name, _)| name.clone())
    }

    fn add_peer(&mut self, words: &mut Words) -> Result<(), String> {
        let name = words.next()?;
        let packet_bytes = words.value_number("packet")?.unwrap_or(1480);
        let evicted = words.value("evicts")?;
        let refused = words.anywhere("full");
        let now = self.now;
        match self.endpoint()?.add_peer(now, packet_bytes) {
            Err(error) if !refused => return Err(error.to_string()),
            Err(_) => return Ok(()),
            Ok(_) if refused => return Err(format!("there is room for {name}")),
            Ok((peer, gone)) => {
                let gone = gone.map(|gone| self.peer_name(gone));
                if gone != evicted {
                    return Err(format!("peer {gone:?} made room, not {evicted:?}"));
                }
                if let Some(gone) = gone {
                    self.peers.remove(&gone);
                }
                self.peers.insert(name, peer);
            }
        }
        Ok(())
    }

    fn name_rpc(&mut self, words: &mut Words) -> Result<(), String> {
        let name = words.next()?;
        let from = words.value("from")?;
        let to = words.value("to")?;
        let given = words.value_number("id")?;
        if given.is_none() {
            self.next_id += 2;
        }
        let id = given.unwrap_or(self.next_id);
        let (ours, peer) = match (from, to) {
            (Some(peer), None) => (false, peer),
            (None, Some(peer)) => (true, peer),
            _ => return Err("rpc NAME from PEER, or rpc NAME to PEER".into()),
        };
        self.peer(&peer)?;
        let named = Named {
            peer,
            ours,
            client_port: words.value_number("client_port")?.unwrap_or(40_000),
            server_port: words.value_number("server_port")?.unwrap_or(4000),
            id: Some(id),
            handle: None,
        };
        self.rpcs.insert(name, named);
        Ok(())
    }

    /// The instant that a script writes as `5ms` or `+5ms`.
    fn instant(&self, word: &str) -> Result<Time, String> {
        match word.strip_prefix('+') {
            Some(later) => Ok(self.now + time(later)?),
            None => Ok(Time::from_nanos(START_NS + time(word)?)),
        }
    }

    /// Lets time pass, timers firing at their times.
    fn advance(&mut self, to: Time) -> Result<(), String> {
        if to < self.now {
            return Err("time does not run backwards".into());
        }
        while self.step(to)? {}
        self.now = to;
        self.fire()?;
        Ok(())
    }

    /// Lets time pass until something is sent.
    fn advance_to_output(&mut self, from: Time, to: Time) -> Result<(), String> {
        self.advance(from.max(self.now))?;
        while self.outputs.is_empty() && self.step(to)? {}
        Ok(())
    }

    /// Fires the next timer, if it is due before `to`.
    fn step(&mut self, to: Time) -> Result<bool, String> {
        let now = self.now;
        match self.endpoint()?.next_timeout(now) {
            Some((at, _)) if at < to => {
                let stuck = at <= now;
                self.now = now.max(at);
                self.fire()?;
                let again = self.endpoint()?.next_timeout(now).map(|(at, _)| at);
                if stuck && again.is_some_and(|again| again <= at) && !self.held {
                    return Err(format!("the timer at {at:?} does not move"));
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn fire(&mut self) -> Result<(), String> {
        let now = self.now;
        while self.endpoint()?.timeout(now, 64) == MoreDue::Yes {}
        self.pump();
        Ok(())
    }

    /// Takes out everything that the endpoint has to say.
    pub(crate) fn pump(&mut self) {
        let now = self.now;
        let Some(endpoint) = self.endpoint.as_mut().filter(|_| !self.held) else {
            return;
        };
        while let Some(transmit) = endpoint.poll_transmit(now) {
            if let Some(payload) = transmit.payload
                && transmit.packet.sender_id.from_client()
            {
                let named = self
                    .rpcs
                    .values_mut()
                    .find(|rpc| rpc.handle == Some(payload.rpc));
                if let Some(named) = named {
                    named.id = Some(transmit.packet.sender_id.0);
                }
            }
            self.outputs.push_back((now, transmit));
        }
        while let Some(event) = endpoint.poll_event() {
            self.events.push_back((now, event));
        }
    }

    /// Everything that happened was expected.
    pub(crate) fn nothing_is_left(&self) -> Result<(), String> {
        if let Some((at, transmit)) = self.outputs.front() {
            return Err(format!(
                "unexpected output at {}: {}",
                Self::since_start(*at),
                output::describe(self, transmit)
            ));
        }
        if let Some((at, event)) = self.events.front() {
            return Err(format!(
                "unexpected event at {}: {event:?}",
                Self::since_start(*at)
            ));
        }
        Ok(())
    }

    pub(crate) fn since_start(at: Time) -> String {
        let ns = at.since(Time::from_nanos(START_NS));
        format!("{}.{:06}ms", ns / 1_000_000, ns % 1_000_000)
    }

    fn expect_nothing(&mut self, words: &mut Words) -> Result<(), String> {
        let what = words.next()?;
        if let Some(until) = words.value("until")? {
            let until = self.instant(&until)?;
            self.advance(until)?;
        }
        match what.as_str() {
            "output" if self.outputs.is_empty() => Ok(()),
            "event" if self.events.is_empty() => Ok(()),
            "output" | "event" => self.nothing_is_left(),
            _ => Err("no output, or no event".into()),
        }
    }

    /// A counter by name, or `name.label` for those with labels.
    pub(crate) fn counter(&self, wanted: &str) -> Result<u64, String> {
        let endpoint = self.endpoint.as_ref().ok_or("nothing has happened")?;
        find(&endpoint.counters(), wanted).ok_or_else(|| format!("no counter {wanted}"))
    }

    fn expect(&mut self, words: &mut Words) -> Result<(), String> {
        let what = words.next()?;
        let name = words.next()?;
        let found = match what.as_str() {
            "counter" => self.counter(&name)?,
            "dropped" => self.counter(&format!("packets_dropped.{name}"))?,
            "sent" => self.counter(&format!("packets_sent.{name}"))?,
            "received" => self.counter(&format!("packets_received.{name}"))?,
            "gauge" => {
                let text = format!("{:?}", self.endpoint()?.gauges());
                let key = format!(" {name}: ");
                let at = text.find(&key).ok_or(format!("no gauge {name}"))?;
                let digits = text[at + key.len()..].split([',', ' ']).next();
                parse(digits.unwrap_or(""))?
            }
            _ => return Err("expect counter, dropped, sent, received or gauge".into()),
        };
        let wanted: u64 = words.number()?;
        if found == wanted {
            Ok(())
        } else {
            Err(format!("{what} {name} is {found}, not {wanted}"))
        }
    }
}

fn find(counters: &Counters, wanted: &str) -> Option<u64> {
    let mut found = None;
    counters.each(|name, label, value| {
        let matches = match label {
            Some(label) => wanted
                .strip_prefix(name)
                .and_then(|rest| rest.strip_prefix('.'))
                .is_some_and(|rest| rest == label),
            None => wanted == name,
        };
        if matches {
            found = Some(value);
        }
    });
    found
}
