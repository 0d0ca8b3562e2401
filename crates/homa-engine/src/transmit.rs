//! Fills a send batch with what the core wants to send now, payload included.

use homa_core::{Time, Transmit};
use homa_datapath::SendBatch;

use crate::TosMap;
use crate::outgoing::Gathered;
use crate::state::State;

/// Packets of one batch: a full super-packet, and little enough that what is
/// chosen is still the best choice when it leaves.
pub(crate) const BATCH_PACKETS: usize = 64;

impl State {
    /// Adds packets while there are any and the batch has room.
    pub(crate) fn fill(&mut self, now: Time, batch: &mut SendBatch, tos: TosMap) {
        while batch.len() < BATCH_PACKETS && batch.has_room(self.peers.largest_packet()) {
            let Some(transmit) = self.core.poll_transmit(now) else {
                return;
            };
            if self.add(&transmit, batch, tos).is_none() {
                // Silence will make the peer, or us, ask again.
                debug_assert!(false, "a packet that cannot be made: {transmit:?}");
                self.counters.packets_not_made += 1;
            }
        }
    }

    fn add(&self, transmit: &Transmit, batch: &mut SendBatch, tos: TosMap) -> Option<()> {
        let path = &self.peers.get(transmit.peer)?.path;
        let header = transmit.packet.header_length();
        let Some(payload) = transmit.payload else {
            let packet = batch.push(path, tos.of(transmit.priority), header)?;
            transmit.packet.emit(packet)?;
            return Some(());
        };
        let message = self.rpcs.get(payload.rpc)?.outgoing.as_ref()?;
        let length = header + payload.length() as usize;
        let packet = batch.push(path, tos.of(transmit.priority), length)?;
        let (head, tail) = packet.split_at_mut_checked(header)?;
        transmit.packet.emit(head)?;
        let range = payload.start as usize..payload.end as usize;
        if message.gather(range, tail) == Gathered::OutOfRange {
            // No packet of any type: the receiver drops it.
            packet.fill(0);
            return None;
        }
        Some(())
    }
}
