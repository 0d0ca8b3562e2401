//! What the network does to packets.

use homa_wire::Packet;

use super::Random;

/// Faults of all links, in 1/1000 of packets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LinkFaults {
    pub(crate) loss_permille: u32,
    pub(crate) duplicate_permille: u32,
    /// Packets that are held back by up to `jitter_ns`.
    pub(crate) reorder_permille: u32,
    pub(crate) jitter_ns: u64,
}

/// One packet on its way, as a scripted fault sees it.
pub(crate) struct Seen<'a> {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) packet: &'a Packet,
    pub(crate) payload_length: u32,
    /// How many packets of this type went from `from` to `to` before.
    pub(crate) nth: usize,
}

/// What becomes of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Pass,
    Drop,
    Twice,
    /// Arrives this much later.
    Late(u64),
}

impl LinkFaults {
    pub(crate) fn fate(&self, random: &mut Random) -> Fate {
        if random.chance(self.loss_permille) {
            Fate::Drop
        } else if random.chance(self.duplicate_permille) {
            Fate::Twice
        } else if random.chance(self.reorder_permille) {
            Fate::Late(random.below(self.jitter_ns))
        } else {
            Fate::Pass
        }
    }
}
