//! Which outgoing message sends the next DATA packet: the sender's SRPT, and
//! the small share of the oldest (`docs/protocol.md` §6, §13).
//!
//! Owns the order of the sendable messages and nothing of the messages. Short
//! ones have an order of their own, since they do not wait for the NIC.

use crate::config::Settings;
use crate::mechanism::Mechanisms;
use crate::pacer::Pacer;
use crate::table::{Heap, Links, List};
use crate::time::Time;

/// Fewest untransmitted bytes first, then the older.
type Key = (u32, u64);

/// Why a message was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// It is the best.
    Best,
    /// It is short and did not wait although others had to.
    Bypass,
    /// It is the oldest, and its share is due.
    Oldest,
}

/// Where a message stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// It has nothing that it may send.
    None,
    /// Among the short ones.
    Short,
    /// Among those that wait for the NIC.
    Long,
}

pub(crate) struct Sending {
    short: Heap<Key>,
    long: Heap<Key>,
    links: Links,
    /// Long messages in the order in which they became sendable.
    oldest: List,
    /// 1/1000 bytes that the oldest message may send out of turn.
    credit: u64,
    fifo_permille: u64,
    /// Messages shorter than this are in the short lane.
    bypass_bytes: u32,
    /// All ones, or zero where the order is by age alone.
    rank_mask: u32,
    mechanisms: Mechanisms,
}

impl Sending {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            short: Heap::with_capacity(settings.max_rpcs),
            long: Heap::with_capacity(settings.max_rpcs),
            links: Links::with_capacity(settings.max_rpcs),
            oldest: List::default(),
            credit: 0,
            fifo_permille: u64::from(settings.pacer_fifo_permille),
            bypass_bytes: if settings.mechanisms.has(Mechanisms::PACER_BYPASS) {
                settings.pacer_bypass_bytes
            } else {
                0
            },
            rank_mask: if settings.mechanisms.has(Mechanisms::SEND_SRPT) {
                u32::MAX
            } else {
                0
            },
            mechanisms: settings.mechanisms,
        }
    }

    /// Messages with something to send.
    pub(crate) fn len(&self) -> u32 {
        self.short.len() + self.long.len()
    }

    /// Whether no message has anything to send.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.short.is_empty() && self.long.is_empty()
    }

    /// A message of `length` bytes, `remaining` of them unsent, may send. Says
    /// in which lane it is now.
    #[inline(always)]
    pub(crate) fn set(&mut self, slot: u32, length: u32, remaining: u32, age: u64) -> Lane {
        let key = (remaining & self.rank_mask, age);
        if length < self.bypass_bytes {
            self.short.set(slot, key);
            Lane::Short
        } else {
            self.set_long(slot, key);
            Lane::Long
        }
    }

    #[inline(never)]
    fn set_long(&mut self, slot: u32, key: Key) {
        self.long.set(slot, key);
        self.links.push_back(&mut self.oldest, slot);
    }

    /// It may not, or is over.
    #[inline(always)]
    pub(crate) fn remove(&mut self, slot: u32, lane: Lane) {
        match lane {
            Lane::None => {}
            Lane::Short => {
                self.short.remove(slot);
            }
            Lane::Long => self.remove_long(slot),
        }
    }

    #[inline(never)]
    fn remove_long(&mut self, slot: u32) {
        self.long.remove(slot);
        self.links.remove(&mut self.oldest, slot);
    }

    /// The message whose turn it is; `None` if there is none or if all that
    /// there is must wait for the NIC.
    pub(crate) fn choose(&mut self, now: Time, pacer: &Pacer) -> Option<(u32, Choice)> {
        let long = self.long.peek();
        let short = self.short.peek();
        let Some((slot, key)) = long else {
            return short.map(|(slot, _)| (slot, Choice::Best));
        };
        if self.mechanisms.has(Mechanisms::PACING) && !pacer.is_open(now) {
            return short.map(|(slot, _)| (slot, Choice::Bypass));
        }
        if let Some((short_slot, short_key)) = short
            && short_key < key
        {
            return Some((short_slot, Choice::Best));
        }
        if self.oldest_is_due()
            && let Some(oldest) = self.oldest.front()
            && oldest != slot
        {
            return Some((oldest, Choice::Oldest));
        }
        Some((slot, Choice::Best))
    }

    /// `bytes` of a message were sent.
    pub(crate) fn sent(&mut self, choice: Choice, bytes: u32) {
        let bytes = u64::from(bytes);
        if choice == Choice::Oldest {
            self.credit = self.credit.saturating_sub(bytes * 1000);
        } else if self.long.len() > 1 {
            self.credit = (self.credit + bytes * self.fifo_permille).min(Self::MAX_CREDIT);
        }
    }

    /// When a waiting message may be sent, if one waits for the NIC.
    pub(crate) fn wait_until(&self, now: Time, pacer: &Pacer) -> Option<Time> {
        let waits =
            !self.long.is_empty() && self.mechanisms.has(Mechanisms::PACING) && !pacer.is_open(now);
        waits.then(|| pacer.open_at())
    }

    /// Credit for one packet of a jumbo frame.
    const MAX_CREDIT: u64 = 2 * 9000 * 1000;

    fn oldest_is_due(&self) -> bool {
        self.credit >= 9000 * 1000 && self.mechanisms.has(Mechanisms::SEND_FIFO)
    }
}
