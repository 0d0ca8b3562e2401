//! Which incoming messages may be granted, and in which order: the receiver's
//! SRPT (`docs/protocol.md` §5, §12).
//!
//! Owns the *active set* (at most `max_overcommit` messages), the waiting
//! messages of each peer by rank, the peers that have some, and the age order
//! that the FIFO share needs. It knows messages by slot and [`Rank`] only; how
//! much each may be granted is computed from the messages themselves, at the
//! moment a packet is asked for ([`crate::granting`]). So no set of "blocked"
//! messages exists that a wake-up could be lost from.
//!
//! Invariants: a message is active or waiting or unknown here; a peer is a
//! contender exactly while it has a waiting message; a slot is only free while
//! nothing waits.

use alloc::vec;
use alloc::vec::Vec;

use crate::config::{LARGEST_OVERCOMMIT, Settings};
use crate::mechanism::Mechanisms;
use crate::table::{Forest, Heap, Links, List, Tree};

/// Order among messages that need grants; less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Rank {
    /// Bytes not yet received.
    pub(crate) remaining: u32,
    /// Order of creation.
    pub(crate) age: u64,
}

#[derive(Clone, Copy, Default)]
struct Active {
    slot: u32,
    peer: u32,
    rank: Rank,
}

#[derive(Clone, Copy, Default)]
struct PeerShare {
    waiting: Tree,
    active: u8,
}

/// The active messages, best first.
pub(crate) struct Ranked {
    slots: [u32; LARGEST_OVERCOMMIT as usize],
    len: usize,
}

impl Ranked {
    pub(crate) fn slots(&self) -> &[u32] {
        self.slots.get(..self.len).unwrap_or(&[])
    }
}

pub(crate) struct Grants {
    active: [Active; LARGEST_OVERCOMMIT as usize],
    active_len: usize,
    max_active: usize,
    mechanisms: Mechanisms,
    waiting: Forest<Rank>,
    shares: Vec<PeerShare>,
    contenders: Heap<(u8, Rank)>,
    links: Links,
    /// Managed messages that are not fully granted, oldest first.
    oldest: List,
    managed: u32,
    /// Active messages that a better one displaced, since the start.
    pub(crate) displaced: u64,
}

impl Grants {
    pub(crate) fn new(settings: &Settings) -> Self {
        let overcommit = if settings.mechanisms.has(Mechanisms::OVERCOMMIT) {
            settings.max_overcommit.min(LARGEST_OVERCOMMIT)
        } else {
            1
        };
        Self {
            active: [Active::default(); LARGEST_OVERCOMMIT as usize],
            active_len: 0,
            max_active: usize::from(overcommit),
            mechanisms: settings.mechanisms,
            waiting: Forest::with_capacity(settings.max_rpcs),
            shares: vec![PeerShare::default(); settings.max_peers as usize],
            contenders: Heap::with_capacity(settings.max_peers),
            links: Links::with_capacity(settings.max_rpcs),
            oldest: List::default(),
            managed: 0,
            displaced: 0,
        }
    }

    /// Messages that need grants.
    pub(crate) fn managed(&self) -> u32 {
        self.managed
    }

    /// Messages that may be granted now.
    pub(crate) fn active(&self) -> u32 {
        self.active_len as u32
    }

    /// A message needs grants from now on.
    pub(crate) fn insert(&mut self, slot: u32, peer: u32, rank: Rank) {
        self.managed += 1;
        self.links.push_back(&mut self.oldest, slot);
        self.contend(slot, peer, rank);
    }

    /// Bytes of it arrived.
    pub(crate) fn update(&mut self, slot: u32, peer: u32, rank: Rank) {
        if let Some(active) = self.active_mut(slot) {
            active.rank = rank;
            return;
        }
        let Some(share) = self.shares.get_mut(peer as usize) else {
            return;
        };
        self.waiting.set(&mut share.waiting, slot, rank);
        if self
            .waiting
            .peek(&share.waiting)
            .is_some_and(|(best, _)| best == slot)
        {
            self.waiting.remove(&mut share.waiting, slot);
            self.contend(slot, peer, rank);
        }
    }

    /// It is complete, or over, or may not receive.
    pub(crate) fn remove(&mut self, slot: u32, peer: u32) {
        self.managed = self.managed.saturating_sub(1);
        self.links.remove(&mut self.oldest, slot);
        if let Some(position) = self.position(slot) {
            self.deactivate(position);
            self.fill();
        } else if let Some(share) = self.shares.get_mut(peer as usize) {
            self.waiting.remove(&mut share.waiting, slot);
            self.refresh(peer);
        }
    }

    /// All its bytes are granted: it no longer takes the FIFO share.
    pub(crate) fn fully_granted(&mut self, slot: u32) {
        self.links.remove(&mut self.oldest, slot);
    }

    /// The oldest message that is not fully granted, and its successors.
    pub(crate) fn oldest(&self) -> impl Iterator<Item = u32> + '_ {
        self.links.iter(&self.oldest)
    }

    /// Puts the `most` oldest behind all others.
    pub(crate) fn postpone_oldest(&mut self, most: usize) {
        for _ in 0..most {
            let Some(slot) = self.oldest.front() else {
                return;
            };
            self.links.remove(&mut self.oldest, slot);
            self.links.push_back(&mut self.oldest, slot);
        }
    }

    /// The active messages, best first.
    pub(crate) fn ranked(&self) -> Ranked {
        let mut sorted = self.active;
        let len = self.active_len.min(sorted.len());
        if let Some(used) = sorted.get_mut(..len) {
            used.sort_unstable_by_key(|active| active.rank);
        }
        Ranked {
            slots: sorted.map(|active| active.slot),
            len,
        }
    }

    /// Priority of a grant: the best active message gets the highest of the
    /// lowest min(active, levels) levels. `levels` is the number of scheduled
    /// levels.
    pub(crate) fn priority(&self, slot: u32, levels: u8) -> u8 {
        if !self.mechanisms.has(Mechanisms::GRANT_PRIORITIES) {
            return 0;
        }
        let Some(position) = self.position(slot) else {
            return 0;
        };
        let Some(rank) = self.active.get(position).map(|active| active.rank) else {
            return 0;
        };
        let used = self.active.iter().take(self.active_len);
        let better = used.filter(|other| other.rank < rank).count();
        let levels = usize::from(levels);
        let top = levels.min(self.active_len);
        // At most eight: it fits.
        top.saturating_sub(1 + better) as u8
    }

    fn position(&self, slot: u32) -> Option<usize> {
        self.active
            .iter()
            .take(self.active_len)
            .position(|active| active.slot == slot)
    }

    fn active_mut(&mut self, slot: u32) -> Option<&mut Active> {
        self.active
            .iter_mut()
            .take(self.active_len)
            .find(|active| active.slot == slot)
    }

    fn peer_active(&self, peer: u32) -> u8 {
        self.shares
            .get(peer as usize)
            .map_or(0, |share| share.active)
    }

    /// Finds a place for a message that has none: a free slot, that of a
    /// victim, or among the waiting.
    fn contend(&mut self, slot: u32, peer: u32, rank: Rank) {
        if self.active_len < self.max_active {
            self.activate(Active { slot, peer, rank });
            self.refresh(peer);
            return;
        }
        if let Some(position) = self.victim(peer, rank) {
            let Some(victim) = self.active.get(position).copied() else {
                return;
            };
            self.displaced += 1;
            self.deactivate(position);
            self.activate(Active { slot, peer, rank });
            self.wait(victim);
            self.refresh(peer);
        } else {
            self.wait(Active { slot, peer, rank });
        }
    }

    /// The active message that a newcomer displaces, if it displaces one: the
    /// lowest ranked among those of the peers that hold the most slots, the
    /// newcomer counted for its own peer.
    fn victim(&self, peer: u32, rank: Rank) -> Option<usize> {
        let fair = self.mechanisms.has(Mechanisms::PEER_FAIRNESS);
        let held = |of: u32| match (fair, of == peer) {
            (false, _) => 0,
            (true, true) => self.peer_active(of) + 1,
            (true, false) => self.peer_active(of),
        };
        let used = || self.active.iter().take(self.active_len);
        let most = used().map(|active| held(active.peer)).max()?;
        let (position, victim) = used()
            .enumerate()
            .filter(|(_, active)| held(active.peer) == most)
            .max_by_key(|(_, active)| active.rank)?;
        let own = if fair { self.peer_active(peer) } else { 0 };
        let unfair = victim.peer != peer && held(victim.peer) > own + 1;
        (unfair || rank < victim.rank).then_some(position)
    }

    fn activate(&mut self, newcomer: Active) {
        if let Some(place) = self.active.get_mut(self.active_len) {
            *place = newcomer;
            self.active_len += 1;
        }
        if let Some(share) = self.shares.get_mut(newcomer.peer as usize) {
            share.active += 1;
        }
    }

    fn deactivate(&mut self, position: usize) {
        let Some(last) = self.active_len.checked_sub(1) else {
            return;
        };
        self.active.swap(position, last);
        self.active_len = last;
        if let Some(peer) = self.active.get(last).map(|active| active.peer) {
            if let Some(share) = self.shares.get_mut(peer as usize) {
                share.active = share.active.saturating_sub(1);
            }
            self.refresh(peer);
        }
    }

    fn wait(&mut self, message: Active) {
        if let Some(share) = self.shares.get_mut(message.peer as usize) {
            self.waiting
                .set(&mut share.waiting, message.slot, message.rank);
        }
        self.refresh(message.peer);
    }

    /// Gives free slots to the best waiting messages of the peers with the
    /// fewest active ones.
    fn fill(&mut self) {
        while self.active_len < self.max_active {
            let Some((peer, _)) = self.contenders.peek() else {
                return;
            };
            let Some(share) = self.shares.get_mut(peer as usize) else {
                return;
            };
            let Some((slot, rank)) = self.waiting.peek(&share.waiting) else {
                return;
            };
            self.waiting.remove(&mut share.waiting, slot);
            self.activate(Active { slot, peer, rank });
            self.refresh(peer);
        }
    }

    /// Brings a peer's place among the contenders up to date.
    fn refresh(&mut self, peer: u32) {
        let Some(share) = self.shares.get(peer as usize) else {
            return;
        };
        match self.waiting.peek(&share.waiting) {
            Some((_, rank)) => {
                let held = if self.mechanisms.has(Mechanisms::PEER_FAIRNESS) {
                    share.active
                } else {
                    0
                };
                self.contenders.set(peer, (held, rank));
            }
            None => {
                self.contenders.remove(peer);
            }
        }
    }
}
