//! Finished server RPCs, remembered so that no request is executed twice
//! (`docs/protocol.md` §8).
//!
//! All peers share the memory; each has a list of its own, so that a peer that
//! finishes too many within the lifetime only raises its own floor. The
//! lifetime is the same for all, so the order of burial is the order of expiry.

use homa_wire::{AbortCode, RpcId};

use crate::config::Settings;
use crate::peer::Peer;
use crate::table::{Index, Links, List, Seed, Slab};
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

struct Tombstone {
    peer: u32,
    client_port: u16,
    id: RpcId,
    epitaph: Epitaph,
    expires_at: Time,
    hash: u64,
}

pub(crate) struct Tombstones {
    stones: Slab<Tombstone>,
    index: Index,
    seed: Seed,
    /// All stones in the order of expiry.
    all_links: Links,
    all: List,
    peer_links: Links,
    max_per_peer: u32,
    lifetime_ns: u64,
}

/// Stones removed for each one set, so that expired ones go as new ones come.
const SWEEP: u32 = 2;

impl Tombstones {
    pub(crate) fn new(settings: &Settings, seed: Seed) -> Self {
        Self {
            stones: Slab::with_capacity(settings.max_tombstones),
            index: Index::with_capacity(settings.max_tombstones),
            seed,
            all_links: Links::with_capacity(settings.max_tombstones),
            all: List::default(),
            peer_links: Links::with_capacity(settings.max_tombstones),
            max_per_peer: settings.max_peer_tombstones,
            lifetime_ns: settings.duplicate_lifetime_ns,
        }
    }

    pub(crate) fn len(&self) -> u32 {
        self.stones.len()
    }

    pub(crate) fn find(
        &self,
        peer: u32,
        client_port: u16,
        id: RpcId,
        now: Time,
    ) -> Option<Epitaph> {
        let hash = self.hash(peer, client_port, id);
        let matches = |slot| {
            self.stones.slot(slot).is_some_and(|stone| {
                stone.peer == peer && stone.client_port == client_port && stone.id == id
            })
        };
        let slot = self.index.find(hash, matches)?;
        let stone = self.stones.slot(slot)?;
        (now < stone.expires_at).then_some(stone.epitaph)
    }

    /// Remembers an RPC of `peer`. Says whether an unexpired stone had to go,
    /// in which case the peer's floor has risen.
    pub(crate) fn bury(
        &mut self,
        now: Time,
        (slot, peers): (u32, &mut Slab<Peer>),
        client_port: u16,
        id: RpcId,
        epitaph: Epitaph,
    ) -> Displaced {
        self.sweep(now, peers, SWEEP);
        let mut displaced = Displaced::Nothing;
        let full = peers
            .slot(slot)
            .is_none_or(|peer| peer.tombstones.len() >= self.max_per_peer);
        if full && let Some(oldest) = peers.slot(slot).and_then(|peer| peer.tombstones.front()) {
            displaced = self.displace(now, oldest, peers);
        }
        if self.stones.is_full()
            && let Some(oldest) = self.all.front()
        {
            displaced = self.displace(now, oldest, peers);
        }
        let hash = self.hash(slot, client_port, id);
        let expires_at = now + self.lifetime_ns;
        let stone = Tombstone {
            peer: slot,
            client_port,
            id,
            epitaph,
            expires_at,
            hash,
        };
        let Some(peer) = peers.slot_mut(slot) else {
            return displaced;
        };
        if let Ok(handle) = self.stones.insert(stone) {
            // Index and stones have the same capacity: a stone always finds a place.
            let _ = self.index.insert(hash, handle.index());
            self.all_links.push_back(&mut self.all, handle.index());
            self.peer_links
                .push_back(&mut peer.tombstones, handle.index());
        }
        displaced
    }

    /// Removes up to `most` expired stones.
    pub(crate) fn sweep(&mut self, now: Time, peers: &mut Slab<Peer>, most: u32) {
        for _ in 0..most {
            let Some(slot) = self.all.front() else { return };
            if self
                .stones
                .slot(slot)
                .is_none_or(|stone| now < stone.expires_at)
            {
                return;
            }
            self.remove(slot, peers);
        }
    }

    /// Removes every stone of a peer.
    pub(crate) fn forget(&mut self, peer: u32, peers: &mut Slab<Peer>) {
        while let Some(slot) = peers.slot(peer).and_then(|peer| peer.tombstones.front()) {
            self.remove(slot, peers);
        }
    }

    fn displace(&mut self, now: Time, slot: u32, peers: &mut Slab<Peer>) -> Displaced {
        let Some(stone) = self.stones.slot(slot) else {
            return Displaced::Nothing;
        };
        let (owner, id, live) = (stone.peer, stone.id, now < stone.expires_at);
        self.remove(slot, peers);
        if !live {
            return Displaced::Nothing;
        }
        if let Some(peer) = peers.slot_mut(owner) {
            peer.floor = peer.floor.max(id.0);
            peer.floor_until = now + self.lifetime_ns;
        }
        Displaced::Unexpired
    }

    fn remove(&mut self, slot: u32, peers: &mut Slab<Peer>) {
        let Some(handle) = self.stones.handle(slot) else {
            return;
        };
        if let Some(stone) = self.stones.remove(handle) {
            self.index.remove(stone.hash, slot);
            self.all_links.remove(&mut self.all, slot);
            if let Some(peer) = peers.slot_mut(stone.peer) {
                self.peer_links.remove(&mut peer.tombstones, slot);
            }
        }
    }

    fn hash(&self, peer: u32, client_port: u16, id: RpcId) -> u64 {
        self.seed
            .hash(id.0, u64::from(peer) << 16 | u64::from(client_port))
    }
}

/// What had to make room for a tombstone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Displaced {
    Nothing,
    Unexpired,
}
