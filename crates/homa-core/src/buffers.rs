//! Memory for incoming messages (`docs/protocol.md` §5, §17).
//!
//! Charged as bytes arrive, never by the announced length. When it runs out,
//! a message waits: it gets no grants, its DATA is dropped, its timers rest.
//! When space returns, the shortest waiting message goes on. One message at a
//! time may use the reserve, which is as large as the longest message, so some
//! message always completes; a peer may hold at most twice what is still free.

use crate::config::Settings;
use crate::endpoint::{Control, Endpoint};
use crate::incoming::{Incoming, Memory};
use crate::mechanism::Mechanisms;
use crate::peer::Peer;
use crate::rpc::Ties;
use crate::table::Heap;
use crate::time::Time;

/// A peer may hold this many times what is still free.
const PEER_SHARE: u64 = 2;

/// Waiting messages looked at for one packet that is asked for, so that a peer
/// with thousands of them costs a bounded time.
const LOOK_AT: u32 = 64;

pub(crate) struct Buffers {
    used: u64,
    limit: u64,
    reserve: u64,
    /// The limit without the reserve.
    open: u64,
    /// The message that may use the reserve.
    favoured: Option<u32>,
    /// Messages without memory: shortest first, then oldest; behind all of
    /// these, in turn, those whose peer had its share when they were looked at.
    waiting: Heap<(u32, u64)>,
    /// The next place behind all others.
    turn: u64,
    /// Waiting messages to be looked at since space came back.
    to_look_at: u32,
}

/// Whether a message may take more memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Room {
    Yes,
    /// There is none for anybody.
    None,
    /// There is some, but the peer has its share.
    NotForThisPeer,
}

impl Buffers {
    pub(crate) fn new(settings: &Settings) -> Self {
        let keep = settings.mechanisms.has(Mechanisms::BUFFER_RESERVE);
        let reserve = if keep {
            settings.buffer_reserve_bytes
        } else {
            0
        };
        Self {
            used: 0,
            limit: settings.buffer_bytes,
            reserve,
            open: settings.buffer_bytes.saturating_sub(reserve),
            favoured: None,
            waiting: Heap::with_capacity(settings.max_rpcs),
            turn: 0,
            to_look_at: 0,
        }
    }

    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// Whether nobody waits for space that has come back.
    pub(crate) fn is_quiet(&self) -> bool {
        self.to_look_at == 0
    }

    pub(crate) fn waiting(&self) -> u32 {
        self.waiting.len()
    }

    /// Whether a message waits for memory or has the reserve.
    pub(crate) fn knows(&self, slot: u32) -> bool {
        self.waiting.contains(slot) || self.favoured == Some(slot)
    }

    /// Charges bytes of a message of `peer` if there is so much room that no
    /// share is in question.
    pub(crate) fn take_of_plenty(&mut self, peer: &mut Peer, bytes: u32) -> bool {
        // Less than half of what is free would be the peer's.
        let plenty = peer.buffer_bytes + u64::from(bytes) <= self.free();
        if plenty {
            self.used += u64::from(bytes);
            peer.buffer_bytes += u64::from(bytes);
        }
        plenty
    }

    /// Takes back all that was charged for a message of `peer`.
    pub(crate) fn give_back(&mut self, message: &mut Incoming, peer: &mut Peer) {
        let bytes = u64::from(core::mem::take(&mut message.charged));
        self.used = self.used.saturating_sub(bytes);
        peer.buffer_bytes = peer.buffer_bytes.saturating_sub(bytes);
        if bytes > 0 {
            self.to_look_at = self.waiting.len();
        }
    }

    /// Bytes that all messages but the favoured one may still take.
    fn free(&self) -> u64 {
        self.open.saturating_sub(self.used)
    }
}

impl Endpoint {
    /// Charges bytes that have arrived; `false` means that there is no room
    /// and that the message now waits.
    pub(crate) fn charge_memory(&mut self, slot: u32, bytes: u32) -> bool {
        let Some(rpc) = self.rpcs.slot_mut(slot) else {
            return false;
        };
        let (length, age, owner) = (rpc.incoming.length, rpc.age, rpc.peer);
        if let Some(peer) = self.peers.slot_mut(owner)
            && self.buffers.take_of_plenty(peer, bytes)
        {
            rpc.incoming.charged += bytes;
            return true;
        }
        rpc.ties = Ties::Perhaps;
        if !self.uses(Mechanisms::BUFFER_LIMIT) {
            return true;
        }
        if self.room(slot, owner, u64::from(bytes)) != Room::Yes {
            if let Some(rpc) = self.rpcs.slot_mut(slot) {
                rpc.incoming.memory = Memory::Awaited;
            }
            self.stop_granting(slot);
            self.buffers.waiting.set(slot, (length, age));
            self.counters.buffer_waits += 1;
            return false;
        }
        self.buffers.used += u64::from(bytes);
        if let Some(rpc) = self.rpcs.slot_mut(slot) {
            rpc.incoming.charged += bytes;
        }
        if let Some(peer) = self.peers.slot_mut(owner) {
            peer.buffer_bytes += u64::from(bytes);
        }
        true
    }

    /// Whether a message may take `bytes` more. The first that finds nothing
    /// left but the reserve becomes the favoured one.
    fn room(&mut self, slot: u32, owner: u32, bytes: u64) -> Room {
        let held = self.peers.slot(owner).map_or(0, |peer| peer.buffer_bytes);
        let free = self.buffers.free();
        let fair = !self.uses(Mechanisms::BUFFER_SHARE) || held + bytes <= free * PEER_SHARE;
        if bytes <= free && fair {
            return Room::Yes;
        }
        let fits = self.buffers.used + bytes <= self.buffers.limit;
        if self.buffers.reserve > 0 && fits {
            if self.buffers.favoured.is_none() {
                self.buffers.favoured = Some(slot);
                self.counters.buffer_reserve_used += 1;
            }
            if self.buffers.favoured == Some(slot) {
                return Room::Yes;
            }
        }
        if bytes <= free {
            Room::NotForThisPeer
        } else {
            Room::None
        }
    }

    /// Takes back a charge for bytes that could not be placed after all.
    pub(crate) fn uncharge_memory(&mut self, slot: u32, bytes: u32) {
        let Some(rpc) = self.rpcs.slot_mut(slot) else {
            return;
        };
        let bytes = bytes.min(rpc.incoming.charged);
        rpc.incoming.charged -= bytes;
        let owner = rpc.peer;
        self.buffers.used = self.buffers.used.saturating_sub(u64::from(bytes));
        if let Some(peer) = self.peers.slot_mut(owner) {
            peer.buffer_bytes = peer.buffer_bytes.saturating_sub(u64::from(bytes));
        }
    }

    /// The message is gone or with the application.
    pub(crate) fn release_memory(&mut self, slot: u32) {
        let Some(rpc) = self.rpcs.slot_mut(slot) else {
            return;
        };
        if rpc.ties == Ties::Perhaps {
            self.buffers.waiting.remove(slot);
            if self.buffers.favoured == Some(slot) {
                self.buffers.favoured = None;
                self.buffers.to_look_at = self.buffers.waiting.len();
            }
        }
        if let Some(peer) = self.peers.slot_mut(rpc.peer) {
            self.buffers.give_back(&mut rpc.incoming, peer);
        }
        if !self.buffers.is_quiet() {
            self.control = Control::Possible;
        }
    }

    /// Lets waiting messages go on that fit into what has come back: up to
    /// [`LOOK_AT`] of them, the others when a packet is asked for again. One
    /// whose peer has its share makes way for those behind it.
    pub(crate) fn wake_waiting_for_memory(&mut self, now: Time) {
        for _ in 0..LOOK_AT {
            let Some(left) = self.buffers.to_look_at.checked_sub(1) else {
                return;
            };
            self.buffers.to_look_at = left;
            let Some((slot, _)) = self.buffers.waiting.peek() else {
                self.buffers.to_look_at = 0;
                return;
            };
            let Some(rpc) = self.rpcs.slot(slot) else {
                self.buffers.waiting.remove(slot);
                continue;
            };
            let missing = rpc.incoming.length - rpc.incoming.received;
            let owner = rpc.peer;
            let wanted = missing.min(self.settings.unscheduled_bytes);
            match self.room(slot, owner, u64::from(wanted)) {
                Room::Yes => self.wake(now, slot),
                Room::None => self.buffers.to_look_at = 0,
                Room::NotForThisPeer => {
                    let last = (u32::MAX, self.buffers.turn);
                    self.buffers.turn += 1;
                    self.buffers.waiting.set(slot, last);
                }
            }
        }
    }

    /// A message that waited has memory: asks for what was dropped.
    fn wake(&mut self, now: Time, slot: u32) {
        self.buffers.waiting.remove(slot);
        if let Some(rpc) = self.rpcs.slot_mut(slot) {
            rpc.incoming.memory = Memory::Available;
            rpc.silence.heard(now);
            rpc.silence.priority = self.settings.second_priority();
        }
        self.start_granting(now, slot);
        self.ask(now, slot);
        self.arm(slot, now + self.settings.resend_ns);
    }
}
