//! What is known of another host (raw) or of another endpoint (UDP): its
//! cutoffs, its features, the acks owed to it, and its share of everything
//! that is bounded (`docs/protocol.md` §7, §8, §20).

use homa_wire::{AckEntry, Cutoffs, Features, MAX_ACKS, PRIORITIES, SenderId};

use crate::config::Settings;
use crate::table::{Handle, List};
use crate::time::Time;
use crate::tombstone::Graveyard;

/// Names a peer of this endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerHandle(pub(crate) Handle);

impl PeerHandle {
    /// A small number, unique among the peers known.
    pub fn index(self) -> u32 {
        self.0.index()
    }
}

pub(crate) struct Peer {
    /// Longest packet to it, from the Homa header on.
    pub(crate) packet_bytes: u32,
    /// What it said about unscheduled priorities, if it has.
    pub(crate) cutoffs: Option<Cutoffs>,
    /// When CUTOFFS may be sent to it again.
    pub(crate) cutoffs_due_at: Time,
    /// Its features, once any packet has told them or told that it has none.
    pub(crate) features: Option<Features>,
    /// Which life of it we know; 0 if it does not say.
    pub(crate) instance: u64,
    /// Acks owed to it, the newest last.
    owed: OwedAcks,
    /// RPCs it is the client of.
    pub(crate) server_rpcs: u32,
    /// All its RPCs, so that they can be found when it restarts or is unreachable.
    pub(crate) members: List,
    /// Bytes of its messages held here.
    pub(crate) buffer_bytes: u64,
    /// Holes in its messages.
    pub(crate) holes: u32,
    /// Replies waiting to be sent to it.
    pub(crate) replies: u32,
    /// RPCs to ask it about, in turn.
    pub(crate) probes: List,
    /// Probes left in this interval.
    pub(crate) probe_tokens: u32,
    /// The interval that `probe_tokens` belongs to.
    pub(crate) probe_epoch: u64,
    /// Probes sent since it was last heard.
    pub(crate) unanswered: u32,
    pub(crate) last_heard: Time,
    /// Requests with ids up to this are refused until `floor_until`.
    pub(crate) floor: u64,
    pub(crate) floor_until: Time,
    /// Finished RPCs it was the client of.
    pub(crate) graveyard: Graveyard,
    /// When RPC_UNKNOWN may be sent for response DATA of a forgotten RPC.
    pub(crate) unknown_due_at: Time,
    /// Messages that wait for its features.
    pub(crate) held: List,
}

impl Peer {
    pub(crate) fn new(now: Time, packet_bytes: u32) -> Self {
        Self {
            packet_bytes,
            cutoffs: None,
            cutoffs_due_at: Time::ZERO,
            features: None,
            instance: 0,
            owed: OwedAcks::NONE,
            server_rpcs: 0,
            members: List::default(),
            buffer_bytes: 0,
            holes: 0,
            replies: 0,
            probes: List::default(),
            probe_tokens: 0,
            probe_epoch: u64::MAX,
            unanswered: 0,
            last_heard: now,
            floor: 0,
            floor_until: Time::ZERO,
            graveyard: Graveyard::default(),
            unknown_due_at: Time::ZERO,
            held: List::default(),
        }
    }

    /// Nothing would be lost if it were forgotten.
    pub(crate) fn is_idle(&self) -> bool {
        self.members.is_empty() && self.replies == 0 && self.graveyard.is_empty()
    }

    /// The priority of the unscheduled bytes of a message to it.
    #[inline]
    pub(crate) fn unscheduled_priority(&self, length: u32, settings: &Settings) -> u8 {
        match &self.cutoffs {
            // Most messages are short: on the highest level without a search.
            Some(cutoffs) if cutoffs.cutoffs[PRIORITIES - 1] >= length => {
                settings.control_priority()
            }
            Some(cutoffs) => cutoffs.priority(length).min(settings.control_priority()),
            None => settings.second_priority(),
        }
    }

    pub(crate) fn cutoff_version(&self) -> u16 {
        self.cutoffs.map_or(0, |cutoffs| cutoffs.version)
    }

    /// Its features, as far as it has said.
    pub(crate) fn has(&self, feature: Features) -> bool {
        self.features
            .is_some_and(|features| features.contains(feature))
    }

    /// It may be sent an ABORT: it knows it, or we do not know whether it
    /// does, and then it ignores the type.
    pub(crate) fn may_know_abort(&self) -> bool {
        self.features
            .is_none_or(|features| features.contains(Features::ABORT))
    }

    /// Owes an ack; gives back all the acks owed when there is no room.
    #[inline]
    pub(crate) fn owe(&mut self, ack: AckEntry) -> Result<(), OwedAcks> {
        let owed = &mut self.owed;
        let at = usize::from(owed.len);
        let (Some(id), Some(port)) = (owed.ids.get_mut(at), owed.ports.get_mut(at)) else {
            return Err(self.take_owed());
        };
        *id = ack.client_id;
        *port = ack.server_port;
        owed.len += 1;
        Ok(())
    }

    /// The newest ack owed, to ride on DATA.
    #[inline]
    pub(crate) fn newest_owed(&mut self) -> Option<AckEntry> {
        let owed = &mut self.owed;
        owed.len = owed.len.checked_sub(1)?;
        let at = usize::from(owed.len);
        Some(AckEntry {
            client_id: *owed.ids.get(at)?,
            server_port: *owed.ports.get(at)?,
        })
    }

    /// All acks owed.
    pub(crate) fn take_owed(&mut self) -> OwedAcks {
        core::mem::replace(&mut self.owed, OwedAcks::NONE)
    }
}

/// Acks owed to a peer; once taken from it they must be sent.
pub(crate) struct OwedAcks {
    ids: [SenderId; MAX_ACKS],
    ports: [u16; MAX_ACKS],
    len: u8,
}

impl OwedAcks {
    const NONE: Self = Self {
        ids: [SenderId(0); MAX_ACKS],
        ports: [0; MAX_ACKS],
        len: 0,
    };

    pub(crate) fn entries(&self) -> impl Iterator<Item = AckEntry> + '_ {
        let entries = self.ids.iter().zip(&self.ports);
        entries
            .take(usize::from(self.len))
            .map(|(&client_id, &server_port)| AckEntry {
                client_id,
                server_port,
            })
    }
}

/// Clips a list of cutoffs to the levels in use here: a message never needs a
/// level that this endpoint does not have.
pub(crate) fn clipped(mut cutoffs: Cutoffs, levels: u8) -> Cutoffs {
    let top = usize::from(levels.clamp(1, PRIORITIES as u8)) - 1;
    cutoffs.cutoffs[0] = u32::MAX;
    for level in top + 1..PRIORITIES {
        if let Some(entry) = cutoffs.cutoffs.get_mut(level) {
            *entry = 0;
        }
    }
    cutoffs
}
