//! This endpoint's own cutoffs: the priorities it tells its peers to use for
//! unscheduled bytes, by what it has received lately (`docs/protocol.md` §6, §15).

use homa_wire::{Body, Cutoffs, Packet};

use crate::config::Settings;
use crate::counters::DropReason;
use crate::cutoffs::{CutoffPolicy, Division};
use crate::endpoint::{Endpoint, Verdict};
use crate::mechanism::Mechanisms;
use crate::time::Time;

pub(crate) struct OwnCutoffs {
    policy: CutoffPolicy,
    list: Cutoffs,
    scheduled_levels: u8,
    /// When to look at the traffic again; never if the list is to stay.
    revise_at: Time,
}

impl OwnCutoffs {
    pub(crate) fn new(settings: &Settings) -> Self {
        let (levels, most) = (settings.priorities, settings.max_message_bytes);
        let initial = settings.fixed_cutoffs.map_or_else(
            || Division::initial(levels, most),
            |cutoffs| Division::fixed(cutoffs, levels, most),
        );
        Self {
            policy: CutoffPolicy::new(levels, settings.unscheduled_bytes, most),
            list: Cutoffs {
                cutoffs: initial.cutoffs,
                version: 1,
            },
            scheduled_levels: initial.scheduled_levels,
            revise_at: if settings.fixed_cutoffs.is_none()
                && settings.mechanisms.has(Mechanisms::CUTOFFS_REVISION)
            {
                Time::ZERO
            } else {
                Time::NEVER
            },
        }
    }

    /// Levels that grants use, from 0 up.
    pub(crate) fn scheduled_levels(&self) -> u8 {
        self.scheduled_levels
    }
}

impl Endpoint {
    /// A message of this length has begun to arrive.
    pub(crate) fn record_length(&mut self, now: Time, length: u32) {
        self.cutoffs.policy.record(length);
        if now >= self.cutoffs.revise_at {
            self.revise_cutoffs(now);
        }
    }

    /// Looks at what has arrived lately, and whether it needs other cutoffs.
    #[inline(never)]
    fn revise_cutoffs(&mut self, now: Time) {
        self.cutoffs.revise_at = now + self.settings.cutoffs_revision_ns;
        if let Some(division) = self.cutoffs.policy.revise() {
            self.cutoffs.list = Cutoffs {
                cutoffs: division.cutoffs,
                version: next_version(self.cutoffs.list.version),
            };
            self.cutoffs.scheduled_levels = division.scheduled_levels;
            self.counters.cutoffs_revised += 1;
        }
    }

    /// DATA carried this version of our cutoffs: if it is not the present one,
    /// the sender is told, at most once per interval.
    pub(crate) fn check_cutoff_version(
        &mut self,
        now: Time,
        from: u32,
        packet: &Packet,
        version: u16,
    ) {
        if version != self.cutoffs.list.version {
            self.tell_cutoffs(now, from, packet);
        }
    }

    #[inline(never)]
    fn tell_cutoffs(&mut self, now: Time, from: u32, packet: &Packet) {
        let interval = self.settings.cutoffs_interval_ns;
        let Some(peer) = self.peers.slot_mut(from) else {
            return;
        };
        if now < peer.cutoffs_due_at {
            return;
        }
        peer.cutoffs_due_at = now + interval;
        self.answer(
            from,
            packet,
            Body::Cutoffs(self.cutoffs.list, self.capabilities),
        );
    }

    /// A peer told its cutoffs.
    pub(crate) fn cutoffs(&mut self, from: u32, cutoffs: Cutoffs) -> Result<Verdict, DropReason> {
        let levels = self.settings.priorities;
        if self.uses(Mechanisms::CUTOFFS) {
            let peer = self.peers.slot_mut(from).ok_or(DropReason::UnknownPeer)?;
            peer.cutoffs = Some(crate::peer::clipped(cutoffs, levels));
        }
        Ok(Verdict::Control)
    }
}

/// Version 0 means that there are no cutoffs: no list has it.
fn next_version(version: u16) -> u16 {
    version.checked_add(1).unwrap_or(1)
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn next_version__is_never_0() {
        assert_eq!(next_version(1), 2);
        assert_eq!(next_version(u16::MAX), 1);
    }
}
