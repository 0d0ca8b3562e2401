//! Finished server RPCs, remembered so that no request is executed twice
//! (`docs/protocol.md` §8).
//!
//! One ring for all peers: the lifetime is the same for all, so the order of
//! burial is the order of expiry, and the oldest stone is always at the tail.
//! Each peer's stones form a chain through the ring, so that a peer that
//! finishes more than its share within the lifetime loses its own oldest and
//! has its floor raised. A stone taken out of turn leaves an empty place that
//! goes when the tail reaches it.

use alloc::vec::Vec;

use homa_wire::{AbortCode, RpcId};

use crate::config::Settings;
use crate::peer::Peer;
use crate::table::{Index, Slab};
use crate::time::Time;

/// How a RESEND for a finished RPC is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Epitaph {
    /// Not at all: the client has its response, or has gone.
    Silent,
    /// By an ACK: the one-way message was delivered.
    Delivered,
    /// By the ABORT that ended it.
    Aborted(AbortCode),
}

/// What a finished RPC is known by.
#[derive(Clone, Copy)]
pub(crate) struct Deceased {
    pub(crate) peer: u32,
    pub(crate) client_port: u16,
    pub(crate) id: RpcId,
    /// Of peer and id, as in the index of the living.
    pub(crate) hash: u64,
}

#[derive(Clone, Copy)]
struct Stone {
    of: Deceased,
    epitaph: Epitaph,
    expires_at: Time,
    /// The peer's next younger stone.
    younger: Option<Place>,
}

/// The stones of one peer: its oldest and its youngest, and how many.
#[derive(Clone, Copy, Default)]
pub(crate) struct Graveyard {
    oldest: Option<Place>,
    youngest: Option<Place>,
    len: u32,
}

impl Graveyard {
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// A place in the ring.
type Place = u32;

pub(crate) struct Tombstones {
    /// Grows to its capacity once and is a ring from then on.
    ring: Vec<Option<Stone>>,
    /// Place of the oldest stone, and of the next one.
    tail: Place,
    head: Place,
    /// Places in use, empty ones included.
    used: u32,
    stones: u32,
    index: Index,
    capacity: u32,
    max_per_peer: u32,
    lifetime_ns: u64,
}

/// Stones removed for each one set, so that expired ones go as new ones come.
const SWEEP: u32 = 2;

impl Tombstones {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            ring: Vec::with_capacity(settings.max_tombstones as usize),
            tail: 0,
            head: 0,
            used: 0,
            stones: 0,
            index: Index::with_capacity(settings.max_tombstones),
            capacity: settings.max_tombstones,
            max_per_peer: settings.max_peer_tombstones,
            lifetime_ns: settings.duplicate_lifetime_ns,
        }
    }

    pub(crate) fn len(&self) -> u32 {
        self.stones
    }

    /// How an RPC ended, if it is remembered.
    pub(crate) fn find(&self, of: &Deceased, now: Time) -> Option<Epitaph> {
        let place = self.index.find(of.hash, |place| {
            self.stone(place).is_some_and(|stone| {
                stone.of.id == of.id
                    && stone.of.peer == of.peer
                    && stone.of.client_port == of.client_port
            })
        })?;
        let stone = self.stone(place)?;
        (now < stone.expires_at).then_some(stone.epitaph)
    }

    /// Remembers an RPC. Says whether an unexpired stone had to go, in which
    /// case the floor of the peer it belonged to has risen.
    pub(crate) fn bury(
        &mut self,
        now: Time,
        peers: &mut Slab<Peer>,
        of: Deceased,
        epitaph: Epitaph,
    ) -> Displaced {
        self.sweep(now, peers, SWEEP);
        let mut displaced = Displaced::Nothing;
        let Some(yard) = peers.slot(of.peer).map(|peer| peer.graveyard) else {
            return displaced;
        };
        if yard.len >= self.max_per_peer
            && let Some(oldest) = yard.oldest
        {
            displaced = self.displace(now, oldest, peers);
        }
        while self.used >= self.capacity {
            let tail = self.tail;
            if self.stone(tail).is_some() {
                displaced = self.displace(now, tail, peers);
            }
            self.free_tail();
        }
        let place = self.head;
        let stone = Stone {
            of,
            epitaph,
            expires_at: now + self.lifetime_ns,
            younger: None,
        };
        match self.ring.get_mut(place as usize) {
            Some(free) => *free = Some(stone),
            None => self.ring.push(Some(stone)),
        }
        self.head = self.after(place);
        self.used += 1;
        self.stones += 1;
        // The index has room for as many entries as the ring.
        let _ = self.index.insert(of.hash, place);
        let Some(peer) = peers.slot_mut(of.peer) else {
            return displaced;
        };
        let yard = &mut peer.graveyard;
        match yard.youngest.replace(place) {
            Some(older) => {
                if let Some(Some(older)) = self.ring.get_mut(older as usize) {
                    older.younger = Some(place);
                }
            }
            None => yard.oldest = Some(place),
        }
        yard.len += 1;
        displaced
    }

    /// Removes up to `most` stones from the tail that have expired.
    pub(crate) fn sweep(&mut self, now: Time, peers: &mut Slab<Peer>, most: u32) {
        for _ in 0..most {
            if self.used == 0 {
                return;
            }
            match self.stone(self.tail) {
                Some(stone) if now < stone.expires_at => return,
                Some(_) => self.remove(self.tail, peers),
                None => {}
            }
            self.free_tail();
        }
    }

    /// Removes every stone of a peer.
    pub(crate) fn forget(&mut self, peer: u32, peers: &mut Slab<Peer>) {
        while let Some(place) = peers.slot(peer).and_then(|peer| peer.graveyard.oldest) {
            self.remove(place, peers);
        }
    }

    fn stone(&self, place: Place) -> Option<&Stone> {
        self.ring.get(place as usize)?.as_ref()
    }

    fn after(&self, place: Place) -> Place {
        if place + 1 == self.capacity {
            0
        } else {
            place + 1
        }
    }

    fn free_tail(&mut self) {
        self.tail = self.after(self.tail);
        self.used = self.used.saturating_sub(1);
    }

    fn displace(&mut self, now: Time, place: Place, peers: &mut Slab<Peer>) -> Displaced {
        let Some(stone) = self.stone(place) else {
            return Displaced::Nothing;
        };
        let (owner, id, live) = (stone.of.peer, stone.of.id, now < stone.expires_at);
        self.remove(place, peers);
        if !live {
            return Displaced::Nothing;
        }
        if let Some(peer) = peers.slot_mut(owner) {
            peer.floor = peer.floor.max(id.0);
            peer.floor_until = now + self.lifetime_ns;
        }
        Displaced::Unexpired
    }

    /// Takes a stone out: always the oldest of its peer.
    fn remove(&mut self, place: Place, peers: &mut Slab<Peer>) {
        let Some(stone) = self.ring.get_mut(place as usize).and_then(Option::take) else {
            return;
        };
        self.stones -= 1;
        self.index.remove(stone.of.hash, place);
        if let Some(peer) = peers.slot_mut(stone.of.peer) {
            let yard = &mut peer.graveyard;
            debug_assert_eq!(yard.oldest, Some(place), "stones go in order of age");
            yard.oldest = stone.younger;
            if stone.younger.is_none() {
                yard.youngest = None;
            }
            yard.len = yard.len.saturating_sub(1);
        }
    }
}

/// What had to make room for a tombstone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Displaced {
    Nothing,
    Unexpired,
}
