//! How much each incoming message is granted, and the GRANT packets
//! (`docs/protocol.md` §5, §12).
//!
//! Grants are made when a packet is asked for, from the state of that moment:
//! active messages in order of rank, each up to its window, all of them within
//! `max_incoming`. A message that found no room is simply looked at again the
//! next time anything has changed.

use homa_wire::{Body, Packet};

use crate::config::{IncomingCounts, Settings};
use crate::endpoint::{Control, Endpoint};
use crate::grant::Rank;
use crate::incoming::{Memory, Scheduling};
use crate::mechanism::Mechanisms;
use crate::rpc::{Phase, Rpc, Ties};
use crate::table::{Links, List};
use crate::time::Time;

/// Oldest messages looked at for the FIFO share, so that unresponsive senders
/// at the head cost a bounded time.
const FIFO_LOOK_AT: usize = 16;

pub(crate) struct Granting {
    /// Σ over the messages that count: granted and not yet received.
    total: u64,
    /// Something has changed since the last look.
    stale: Stale,
    /// When the oldest message may be granted out of turn.
    fifo_at: Time,
    /// The message that has the FIFO share until it is granted or gone.
    fifo_choice: Option<u32>,
    /// RPCs that must send a GRANT.
    due: List,
    links: Links,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stale {
    No,
    Yes,
}

impl Granting {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            total: 0,
            stale: Stale::No,
            fifo_at: Time::ZERO,
            fifo_choice: None,
            due: List::default(),
            links: Links::with_capacity(settings.max_rpcs),
        }
    }

    pub(crate) fn total_incoming(&self) -> u64 {
        self.total
    }
}

impl Endpoint {
    /// A message has begun, or has memory again: manage it if it needs grants.
    pub(crate) fn start_granting(&mut self, now: Time, slot: u32) {
        let Some(rpc) = self.rpcs.slot_mut(slot) else {
            return;
        };
        let message = &mut rpc.incoming;
        let open = message.has_begun() && !message.is_complete();
        if open && message.granted < message.length && message.memory == Memory::Available {
            message.scheduling = Scheduling::Managed;
            let (peer, rank) = (rpc.peer, self.rank(slot));
            self.grants.insert(slot, peer, rank);
            if self.grants.managed() == 1 {
                self.granting.fifo_at = self
                    .granting
                    .fifo_at
                    .max(now + self.settings.fifo_grant_interval_ns);
            }
            self.granting.stale = Stale::Yes;
            self.control = Control::Possible;
        }
        self.recount(slot);
    }

    /// Bytes of a message arrived.
    pub(crate) fn progressed(&mut self, slot: u32) {
        let Some(rpc) = self.rpcs.slot(slot) else {
            return;
        };
        if rpc.incoming.is_complete() {
            if rpc.incoming.is_managed() || rpc.incoming.counted > 0 {
                self.stop_granting(slot);
            }
        } else if rpc.incoming.is_managed() {
            let (peer, rank) = (rpc.peer, self.rank(slot));
            self.grants.update(slot, peer, rank);
            self.granting.stale = Stale::Yes;
            self.control = Control::Possible;
            self.recount(slot);
        } else if self.settings.incoming_counts == IncomingCounts::All {
            self.granting.stale = Stale::Yes;
            self.control = Control::Possible;
            self.recount(slot);
        }
    }

    /// A message is complete, over, or without memory.
    pub(crate) fn stop_granting(&mut self, slot: u32) {
        let Some(rpc) = self.rpcs.slot_mut(slot) else {
            return;
        };
        let (peer, managed) = (rpc.peer, rpc.incoming.is_managed());
        rpc.incoming.scheduling = Scheduling::Free;
        let returned = core::mem::take(&mut rpc.incoming.counted);
        self.granting.total = self.granting.total.saturating_sub(u64::from(returned));
        if managed {
            self.grants.remove(slot, peer);
            self.granting.links.remove(&mut self.granting.due, slot);
            if self.granting.fifo_choice == Some(slot) {
                self.granting.fifo_choice = None;
            }
        }
        if managed || returned > 0 {
            // Another message may have waited for what this one gives back.
            self.granting.stale = Stale::Yes;
            self.control = Control::Possible;
        }
    }

    fn rank(&self, slot: u32) -> Rank {
        let srpt = self.uses(Mechanisms::GRANT_SRPT);
        self.rpcs.slot(slot).map_or(Rank::default(), |rpc| Rank {
            remaining: if srpt {
                rpc.incoming.length - rpc.incoming.received
            } else {
                0
            },
            age: rpc.age,
        })
    }

    /// Brings a message's part in the total up to date.
    fn recount(&mut self, slot: u32) {
        let all = self.settings.incoming_counts == IncomingCounts::All;
        let Some(rpc) = self.rpcs.slot_mut(slot) else {
            return;
        };
        let message = &mut rpc.incoming;
        let counts = message.is_managed() || (all && message.memory == Memory::Available);
        let now_counted = if counts {
            rpc.ties = Ties::Perhaps;
            message.granted.saturating_sub(message.received)
        } else {
            0
        };
        let before = core::mem::replace(&mut message.counted, now_counted);
        self.granting.total =
            (self.granting.total + u64::from(now_counted)).saturating_sub(u64::from(before));
    }

    /// Bytes that a message may be granted ahead of what it received.
    fn window(&self) -> u32 {
        if !self.uses(Mechanisms::WINDOW) {
            return u32::MAX;
        }
        self.settings
            .window_bytes
            .unwrap_or(self.settings.max_incoming_bytes / (self.grants.active() + 1))
    }

    /// Makes all the grants that the present state allows.
    pub(crate) fn make_grants(&mut self, now: Time) {
        if self.granting.stale == Stale::Yes {
            self.granting.stale = Stale::No;
            let ranked = self.grants.ranked();
            for slot in ranked.slots() {
                if !self.grant_up_to_window(now, *slot) {
                    break;
                }
            }
        }
        if self.fifo_is_due(now) {
            self.grant_oldest(now);
        }
    }

    /// `false` if the message found no room: then nobody behind it may.
    fn grant_up_to_window(&mut self, now: Time, slot: u32) -> bool {
        let window = self.window();
        let Some(rpc) = self.rpcs.slot_mut(slot) else {
            return true;
        };
        let message = &mut rpc.incoming;
        let goal = message.length.min(message.received.saturating_add(window));
        let base = message.grant_base();
        let least = message.payload_bytes.max(1).min(message.length - base);
        let mut wanted = goal.saturating_sub(base);
        if base == message.received {
            // A window below one packet must not stop a message for ever.
            wanted = wanted.max(least);
        }
        if wanted == 0 || wanted < least {
            return true;
        }
        let room = if self.settings.mechanisms.has(Mechanisms::MAX_INCOMING) {
            let room =
                u64::from(self.settings.max_incoming_bytes).saturating_sub(self.granting.total);
            // A limit below one packet must not stop everything for ever.
            if self.granting.total == 0 {
                room.max(u64::from(least))
            } else {
                room
            }
        } else {
            u64::MAX
        };
        if room < u64::from(least) {
            message.scheduling = Scheduling::Blocked;
            return false;
        }
        if message.scheduling == Scheduling::Blocked {
            message.scheduling = Scheduling::Managed;
            self.counters.grants_after_waiting += 1;
        }
        let bytes = u64::from(wanted).min(room) as u32;
        self.raise_grant(now, slot, bytes, None);
        true
    }

    fn raise_grant(&mut self, now: Time, slot: u32, bytes: u32, priority: Option<u8>) {
        let resend_ns = self.settings.resend_ns;
        let Some(rpc) = self.rpcs.slot_mut(slot) else {
            return;
        };
        let message = &mut rpc.incoming;
        let waited = !message.expects();
        let goal = message.grant_base().saturating_add(bytes);
        message.granted = goal.min(message.length);
        let fully = message.granted == message.length;
        if let Some(priority) = priority {
            rpc.grant_priority = Some(priority);
        }
        if waited {
            // Until now nothing was expected: silence begins here.
            rpc.silence.heard(now);
            rpc.silence.arrived_by_then = self.counters.received_bytes;
            self.arm(slot, now + resend_ns);
        }
        self.counters.granted_bytes += u64::from(bytes);
        if fully {
            self.grants.fully_granted(slot);
            if self.granting.fifo_choice == Some(slot) {
                self.granting.fifo_choice = None;
            }
        }
        self.recount(slot);
        self.granting.links.push_back(&mut self.granting.due, slot);
    }

    /// Whether no grant is to be made or sent before something happens.
    pub(crate) fn is_granting_quiet(&self) -> bool {
        self.granting.stale == Stale::No
            && self.granting.due.is_empty()
            && self.fifo_grant_at().is_none()
    }

    fn fifo_is_due(&self, now: Time) -> bool {
        self.fifo_grant_at().is_some_and(|at| at <= now)
    }

    /// When the oldest message may be granted out of turn, if there is one.
    pub(crate) fn fifo_grant_at(&self) -> Option<Time> {
        let waiting = self.uses(Mechanisms::FIFO_GRANTS) && self.grants.oldest().next().is_some();
        waiting.then_some(self.granting.fifo_at)
    }

    /// Grants the oldest message one increment, outside window and total.
    fn grant_oldest(&mut self, now: Time) {
        self.granting.fifo_at = now + self.settings.fifo_grant_interval_ns;
        let increment = self.settings.fifo_grant_bytes;
        let patience = u64::from(self.window()) + 2 * u64::from(increment);
        let responds = |rpc: &Rpc| {
            let message = &rpc.incoming;
            u64::from(message.granted.saturating_sub(message.received)) < patience
        };
        let choice = self
            .granting
            .fifo_choice
            .into_iter()
            .chain(self.grants.oldest().take(FIFO_LOOK_AT))
            .find(|slot| self.rpcs.slot(*slot).is_some_and(responds));
        self.granting.fifo_choice = choice;
        let Some(slot) = choice else {
            // Nobody among them responds: the others have their turn next.
            self.grants.postpone_oldest(FIFO_LOOK_AT);
            return;
        };
        let Some(rpc) = self.rpcs.slot(slot) else {
            return;
        };
        let bytes = increment.min(rpc.incoming.length - rpc.incoming.grant_base());
        self.counters.fifo_grants += 1;
        self.counters.fifo_grant_bytes += u64::from(bytes);
        self.raise_grant(now, slot, bytes, Some(self.settings.second_priority()));
    }

    /// The next GRANT that is due, with the priority it deserves now.
    pub(crate) fn grant_packet(&mut self) -> Option<(u32, Packet)> {
        let slot = self.granting.links.pop_front(&mut self.granting.due)?;
        let levels = self.cutoffs.scheduled_levels();
        let by_rank = self.grants.priority(slot, levels);
        let rpc = self.rpcs.slot_mut(slot)?;
        if rpc.phase != Phase::Incoming {
            return None;
        }
        let grant = homa_wire::Grant {
            offset: rpc.incoming.granted,
            priority: rpc.grant_priority.take().unwrap_or(by_rank),
        };
        let packet = Packet::new(
            rpc.local_port,
            rpc.remote_port,
            rpc.id.to_sender(),
            Body::Grant(grant),
        );
        Some((rpc.peer, packet))
    }
}
