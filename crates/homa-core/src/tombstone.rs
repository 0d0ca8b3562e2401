//! Finished server RPCs, remembered so that no request is executed twice
//! (`docs/protocol.md` §8).
//!
//! One ring for all peers: the lifetime is the same for all, so the order of
//! burial is the order of expiry, and the oldest stone is always at the tail.
//! A stone takes over the entry that its RPC had in the index, so that one
//! look-up finds an RPC or says how it ended.
//! Each peer's stones form a chain through the ring, so that a peer that
//! finishes more than its share within the lifetime loses its own oldest and
//! has its floor raised. A stone taken out of turn leaves an empty place that
//! goes when the tail reaches it.

use alloc::vec::Vec;

use homa_wire::{AbortCode, RpcId};

use crate::config::Settings;
use crate::peer::Peer;
use crate::rpc::Rpc;
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

#[derive(Clone, Copy)]
struct Grave {
    id: RpcId,
    hash: u64,
    expires_at: Time,
    peer: u32,
    client_port: u16,
    epitaph: Epitaph,
    /// The peer's next younger stone.
    younger: Option<Place>,
}

/// In the index of RPCs, what is not the slot of one that is alive is this
/// plus the place of a stone. No table has so many slots.
const BURIED: u32 = 1 << 31;

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

/// The tombstone of an RPC, valid until the next one is set or removed.
#[derive(Clone, Copy)]
pub(crate) struct Stone(Place);

impl Stone {
    /// What an entry of the index that is not the slot of an RPC stands for.
    pub(crate) fn of_entry(entry: u32) -> Option<Self> {
        entry.checked_sub(BURIED).map(Self)
    }
}

pub(crate) struct Tombstones {
    /// Grows to its capacity once and is a ring from then on.
    ring: Vec<Option<Grave>>,
    /// Place of the oldest stone, and of the next one.
    tail: Place,
    head: Place,
    /// Places in use, empty ones included.
    used: u32,
    stones: u32,
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
            capacity: settings.max_tombstones,
            max_per_peer: settings.max_peer_tombstones,
            lifetime_ns: settings.duplicate_lifetime_ns,
        }
    }

    pub(crate) fn len(&self) -> u32 {
        self.stones
    }

    /// The stone that an entry of the index leads to, if it is the unexpired
    /// one of this RPC.
    #[inline]
    pub(crate) fn find(
        &self,
        now: Time,
        entry: u32,
        (id, peer, client_port): (RpcId, u32, u16),
    ) -> Option<Stone> {
        let stone = Stone::of_entry(entry)?;
        let grave = self.stone(stone.0)?;
        let matches = grave.id == id && grave.peer == peer && grave.client_port == client_port;
        (matches && now < grave.expires_at).then_some(stone)
    }

    /// What is on a stone.
    pub(crate) fn epitaph(&self, stone: Stone) -> Option<Epitaph> {
        self.stone(stone.0).map(|grave| grave.epitaph)
    }

    /// Remembers an RPC, in its place in the index. Says whether an unexpired
    /// stone had to go, in which case the floor of the peer it belonged to has
    /// risen.
    pub(crate) fn bury(
        &mut self,
        now: Time,
        peers: &mut Slab<Peer>,
        index: &mut Index,
        (slot, rpc): (u32, &Rpc),
        epitaph: Epitaph,
    ) -> Displaced {
        self.sweep(now, peers, index, SWEEP);
        let mut displaced = Displaced::Nothing;
        while self.used >= self.capacity {
            displaced = self.remove(now, self.tail, peers, index);
            self.free_tail();
        }
        let Some(peer) = peers.slot_mut(rpc.peer) else {
            return displaced;
        };
        if peer.graveyard.len >= self.max_per_peer
            && let Some(oldest) = peer.graveyard.oldest
        {
            displaced = self.remove_oldest(now, oldest, peer, index);
        }
        let place = self.head;
        let stone = Grave {
            id: rpc.id,
            hash: rpc.hash,
            expires_at: now + self.lifetime_ns,
            peer: rpc.peer,
            client_port: rpc.remote_port,
            epitaph,
            younger: None,
        };
        match self.ring.get_mut(place as usize) {
            Some(free) => *free = Some(stone),
            None => self.ring.push(Some(stone)),
        }
        self.head = self.after(place);
        self.used += 1;
        self.stones += 1;
        index.replace(rpc.hash, slot, BURIED | place);
        let yard = &mut peer.graveyard;
        yard.len += 1;
        match yard.youngest.replace(place) {
            Some(older) => {
                if let Some(Some(older)) = self.ring.get_mut(older as usize) {
                    older.younger = Some(place);
                }
            }
            None => yard.oldest = Some(place),
        }
        displaced
    }

    /// Removes up to `most` stones from the tail that have expired.
    #[inline]
    pub(crate) fn sweep(
        &mut self,
        now: Time,
        peers: &mut Slab<Peer>,
        index: &mut Index,
        most: u32,
    ) {
        for _ in 0..most {
            match self.stone(self.tail) {
                _ if self.used == 0 => return,
                Some(stone) if now < stone.expires_at => return,
                Some(_) => {
                    self.remove(now, self.tail, peers, index);
                }
                None => {}
            }
            self.free_tail();
        }
    }

    /// Removes every stone of a peer.
    pub(crate) fn forget(
        &mut self,
        now: Time,
        peer: u32,
        peers: &mut Slab<Peer>,
        index: &mut Index,
    ) {
        while let Some(place) = peers.slot(peer).and_then(|peer| peer.graveyard.oldest) {
            self.remove(now, place, peers, index);
        }
    }

    fn stone(&self, place: Place) -> Option<&Grave> {
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
        self.used -= 1;
    }

    /// Takes out the stone in a place, if there is one.
    #[inline(never)]
    fn remove(
        &mut self,
        now: Time,
        place: Place,
        peers: &mut Slab<Peer>,
        index: &mut Index,
    ) -> Displaced {
        let owner = self.stone(place).map(|stone| stone.peer);
        match owner.and_then(|owner| peers.slot_mut(owner)) {
            Some(peer) => self.remove_oldest(now, place, peer, index),
            None => Displaced::Nothing,
        }
    }

    /// Takes out the oldest stone of a peer. If it has not expired, the peer's
    /// floor rises.
    #[inline(always)]
    fn remove_oldest(
        &mut self,
        now: Time,
        place: Place,
        peer: &mut Peer,
        index: &mut Index,
    ) -> Displaced {
        let Some(stone) = self.ring.get_mut(place as usize).and_then(Option::take) else {
            return Displaced::Nothing;
        };
        self.stones -= 1;
        index.remove(stone.hash, BURIED | place);
        let yard = &mut peer.graveyard;
        debug_assert_eq!(yard.oldest, Some(place), "stones go in order of age");
        yard.len -= 1;
        yard.oldest = stone.younger;
        if stone.younger.is_none() {
            yard.youngest = None;
        }
        if now >= stone.expires_at {
            return Displaced::Nothing;
        }
        peer.floor = peer.floor.max(stone.id.0);
        peer.floor_until = now + self.lifetime_ns;
        Displaced::Unexpired
    }
}

/// What had to make room for a tombstone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Displaced {
    Nothing,
    Unexpired,
}
