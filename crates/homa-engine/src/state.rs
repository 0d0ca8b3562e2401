//! Everything behind the engine's one lock: the core, and what the engine
//! keeps beside it. This file owns the struct, what is due when, and what must
//! happen once the lock is released; the roles are in `submit`, `service`,
//! `arrivals`, `events` and `transmit`.
//!
//! Invariant: whoever changes something that is due earlier than the sleeping
//! driver knows sees to it that the driver is interrupted ([`State::settle`]).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::task::Waker;

use homa_core::{Endpoint, PeerHandle, RpcHandle, Time};
use homa_datapath::{Datapath, Kind, Path};

use crate::EngineConfig;
use crate::admission::Admission;
use crate::assembly::Assembly;
use crate::calls::Calls;
use crate::counters::{Counters, Gauges};
use crate::deadlines::Deadlines;
use crate::lateness::Lateness;
use crate::listeners::Listeners;
use crate::park::Parker;
use crate::peers::Peers;
use crate::rpcs::{Role, RpcEntry, Rpcs};

pub(crate) struct State {
    pub(crate) core: Endpoint,
    pub(crate) datapath: Arc<dyn Datapath>,
    pub(crate) own: Own,
    pub(crate) life: Life,
    pub(crate) peers: Peers,
    pub(crate) rpcs: Rpcs,
    pub(crate) calls: Calls,
    /// Calls and one-way messages whose outcome is not known.
    pub(crate) waiting_calls: u32,
    pub(crate) admission: Admission,
    pub(crate) deadlines: Deadlines,
    pub(crate) listeners: Listeners,
    /// Memory of incoming messages.
    pub(crate) pages: Budget,
    /// Responses not yet acknowledged.
    pub(crate) responses: Budget,
    pub(crate) max_waiting_requests: u32,
    pub(crate) counters: Counters,
    pub(crate) lateness: Lateness,
    /// Who waits for the end of everything.
    pub(crate) drain_waiters: Vec<Waker>,
    /// To be woken when the lock is released.
    pub(crate) wakes: Vec<Waker>,
    /// Messages to be freed when the lock is released.
    pub(crate) garbage: Vec<RpcEntry>,
    pub(crate) lead: Lead,
    /// The driver when no waiting thread is: the engine's own thread, or
    /// somebody outside.
    pub(crate) fallback: Seat,
    /// Why packets could not be sent at once.
    pub(crate) blocked: Option<Block>,
    /// When the datapath wants to be called again.
    pub(crate) release_at: Option<Time>,
}

/// The own addresses and port.
pub(crate) struct Own {
    pub(crate) kind: Kind,
    pub(crate) addresses: Vec<SocketAddr>,
    /// The port of calls that name none.
    pub(crate) port: u16,
}

/// Where the endpoint stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    Open,
    /// No new requests are taken.
    Draining,
    Closed,
}

/// Bytes of memory, shared by all peers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    used: u64,
    limit: u64,
}

impl Budget {
    pub(crate) fn new(limit: u64) -> Self {
        Self { used: 0, limit }
    }

    /// Takes `bytes` for a peer, which holds `held` already: at most twice
    /// what is still free, so that one peer cannot have all.
    pub(crate) fn take(&mut self, held: &mut u64, bytes: u64) -> bool {
        let free = self.limit.saturating_sub(self.used);
        let fair = bytes <= free && held.saturating_add(bytes) <= free.saturating_mul(2);
        if fair {
            self.used += bytes;
            *held += bytes;
        }
        fair
    }

    pub(crate) fn give_back(&mut self, held: &mut u64, bytes: u64) {
        self.used = self.used.saturating_sub(bytes);
        *held = held.saturating_sub(bytes);
    }
}

/// What a driver is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seat {
    /// There is none.
    Empty,
    /// It will look at what is due before it sleeps.
    Awake,
    /// It sleeps on the descriptors until then, or until interrupted.
    Asleep(Time),
    /// It sleeps until no waiting thread drives any more.
    Resting,
}

/// Waiting threads that drive.
pub(crate) struct Lead {
    pub(crate) seat: Seat,
    /// When the seat was last taken while it was empty.
    pub(crate) taken_at: Time,
    /// When it was last left or taken.
    pub(crate) active_at: Time,
    pub(crate) next_ticket: u64,
    /// Waiting threads that could drive.
    pub(crate) followers: BTreeMap<u64, Arc<Parker>>,
}

/// Why packets stay in the send batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Block {
    Writable(RawFd),
    RetryAt(Time),
}

/// Whom to interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupt {
    Nobody,
    Leader,
    Fallback,
}

impl State {
    pub(crate) fn new(
        config: &EngineConfig,
        core: Endpoint,
        datapath: Arc<dyn Datapath>,
        own: Own,
        now: Time,
    ) -> Self {
        let settings = core.settings();
        // The core keeps a quarter of its RPCs from other hosts' requests.
        let max_calls = config.max_calls.min(settings.max_rpcs.div_ceil(4));
        Self {
            life: Life::Open,
            peers: Peers::new(own.kind),
            rpcs: Rpcs::default(),
            calls: Calls::default(),
            waiting_calls: 0,
            admission: Admission::new(max_calls, config.max_outgoing_bytes),
            deadlines: Deadlines::default(),
            listeners: Listeners::default(),
            // The core bounds the bytes that have arrived; pages are larger.
            pages: Budget::new(settings.buffer_bytes.saturating_mul(2)),
            responses: Budget::new(config.max_response_bytes),
            max_waiting_requests: config.max_waiting_requests,
            counters: Counters::default(),
            lateness: Lateness::new(&config.core),
            drain_waiters: Vec::new(),
            wakes: Vec::new(),
            garbage: Vec::new(),
            lead: Lead {
                seat: Seat::Empty,
                taken_at: now,
                active_at: Time::ZERO,
                next_ticket: 0,
                followers: BTreeMap::new(),
            },
            fallback: Seat::Empty,
            blocked: None,
            release_at: None,
            core,
            datapath,
            own,
        }
    }

    /// When a driver must act at the latest, whatever arrives.
    pub(crate) fn next_due(&self, now: Time) -> Option<Time> {
        let retry = match self.blocked {
            Some(Block::RetryAt(at)) => Some(at),
            _ => None,
        };
        let core = self.core.next_timeout(now).map(|(at, _)| at);
        [core, self.deadlines.next(), retry, self.release_at]
            .into_iter()
            .flatten()
            .min()
    }

    /// Whether a sleeping driver must be told that something is due earlier
    /// than it knows.
    pub(crate) fn settle(&mut self, now: impl FnOnce() -> Time) -> Interrupt {
        let (seat, who) = match (self.lead.seat, self.fallback) {
            (Seat::Asleep(_), _) => (&mut self.lead.seat, Interrupt::Leader),
            (Seat::Empty, Seat::Asleep(_)) => (&mut self.fallback, Interrupt::Fallback),
            _ => return Interrupt::Nobody,
        };
        let Seat::Asleep(until) = *seat else {
            return Interrupt::Nobody;
        };
        let seat = std::mem::replace(seat, Seat::Awake);
        if self.next_due(now()).is_some_and(|due| due < until) {
            self.counters.interrupts += 1;
            return who;
        }
        match who {
            Interrupt::Leader => self.lead.seat = seat,
            _ => self.fallback = seat,
        }
        Interrupt::Nobody
    }

    /// Wakes the sleeping driver in any case.
    pub(crate) fn rouse(&mut self) -> Interrupt {
        if matches!(self.lead.seat, Seat::Asleep(_)) {
            self.lead.seat = Seat::Awake;
            return Interrupt::Leader;
        }
        if self.lead.seat == Seat::Empty && matches!(self.fallback, Seat::Asleep(_) | Seat::Resting)
        {
            self.fallback = Seat::Awake;
            return Interrupt::Fallback;
        }
        Interrupt::Nobody
    }

    /// Adds a peer, or says that there is no room.
    pub(crate) fn add_peer(&mut self, now: Time, path: Path) -> Option<PeerHandle> {
        let packet = self.datapath.max_packet(&path);
        let Ok((handle, evicted)) = self.core.add_peer(now, packet as u32) else {
            tracing::debug!(remote = %path.remote, "no room for a peer");
            return None;
        };
        if let Some(evicted) = evicted {
            self.peers.remove(evicted);
        }
        self.peers.insert(now, handle, path, packet);
        tracing::debug!(remote = %path.remote, local = ?path.local, packet, "new peer");
        Some(handle)
    }

    /// Looks the longest packet to a peer up again if that was long ago.
    pub(crate) fn refresh_packet(&mut self, now: Time, peer: PeerHandle) {
        if let Some(path) = self.peers.stale_path(now, peer) {
            self.set_packet(peer, self.datapath.max_packet(&path));
        }
    }

    pub(crate) fn set_packet(&mut self, peer: PeerHandle, packet: usize) {
        self.peers.packet_grew(packet);
        self.core.set_packet_bytes(peer, packet as u32);
    }

    /// An RPC is over: its memory goes back.
    pub(crate) fn clear(&mut self, rpc: RpcHandle) {
        let Some(mut entry) = self.rpcs.remove(rpc) else {
            return;
        };
        let pages = entry.incoming.as_ref().map_or(0, Assembly::held);
        self.return_pages(entry.peer, pages as u64);
        if let Role::Server(service) = &mut entry.role {
            if let Some(peer) = self.peers.get_mut(entry.peer) {
                self.responses
                    .give_back(&mut peer.response_bytes, service.response_bytes);
            }
            self.wakes.extend(service.waker.take());
        }
        if entry.outgoing.is_some() || entry.incoming.is_some() {
            self.garbage.push(entry);
        }
        self.check_drained();
    }

    pub(crate) fn return_pages(&mut self, peer: PeerHandle, bytes: u64) {
        if let Some(peer) = self.peers.get_mut(peer) {
            self.pages.give_back(&mut peer.page_bytes, bytes);
        }
    }

    /// Whether nothing is under way.
    pub(crate) fn is_drained(&self) -> bool {
        self.life == Life::Closed || (self.waiting_calls == 0 && self.rpcs.servers() == 0)
    }

    pub(crate) fn check_drained(&mut self) {
        if self.life != Life::Open && self.is_drained() {
            self.wakes.append(&mut self.drain_waiters);
        }
    }

    pub(crate) fn gauges(&self) -> Gauges {
        Gauges {
            calls: self.admission.calls(),
            outgoing_bytes: self.admission.bytes(),
            response_bytes: self.responses.used,
            page_bytes: self.pages.used,
            waiting_requests: self.listeners.waiting,
            timer_lateness_ns: self.lateness.ns(),
        }
    }
}
