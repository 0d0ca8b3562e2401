//! One outgoing message: where its packets begin and end, what may be sent,
//! and what must be sent again (`docs/protocol.md` §3, §6, §13).
//!
//! Packet boundaries are fixed when the message is made and are computed, not
//! stored: multiples of the packet payload, with one boundary forced at the
//! end of the unscheduled bytes. `next` is always such a boundary.

use core::ops::Range;

use crate::table::RangeList;
use crate::time::Time;

#[derive(Clone, Copy)]
pub(crate) struct Outgoing {
    /// Bytes of the message; 0 while there is none.
    pub(crate) length: u32,
    /// Bytes of it that the host has.
    pub(crate) ready: u32,
    /// Bytes that may be sent, not rounded.
    pub(crate) granted: u32,
    /// First byte not yet sent.
    pub(crate) next: u32,
    /// Bytes sent without a grant.
    pub(crate) unscheduled: u32,
    /// Payload of a full packet.
    pub(crate) payload_bytes: u32,
    /// Priority that the last grant gave.
    pub(crate) priority: u8,
    /// Priority that the last RESEND asked for.
    pub(crate) resend_priority: u8,
    /// Ranges to send again.
    pub(crate) pending: RangeList,
    /// Ranges sent again in this interval.
    pub(crate) answered: RangeList,
    /// When this interval began.
    pub(crate) answered_at: Time,
}

impl Outgoing {
    pub(crate) const NONE: Self = Self {
        length: 0,
        ready: 0,
        granted: 0,
        next: 0,
        unscheduled: 0,
        payload_bytes: 1,
        priority: 0,
        resend_priority: 0,
        pending: RangeList::EMPTY,
        answered: RangeList::EMPTY,
        answered_at: Time::ZERO,
    };

    pub(crate) fn new(length: u32, unscheduled: u32, payload_bytes: u32) -> Self {
        let unscheduled = unscheduled.min(length);
        Self {
            length,
            ready: length,
            granted: unscheduled,
            unscheduled,
            payload_bytes: payload_bytes.max(1),
            ..Self::NONE
        }
    }

    /// Where the packet that holds byte `offset` begins.
    pub(crate) fn packet_start(&self, offset: u32) -> u32 {
        let base = if offset < self.unscheduled {
            0
        } else {
            self.unscheduled
        };
        offset - (offset - base) % self.payload_bytes
    }

    /// Where the packet that begins at `start` ends.
    #[inline(always)]
    pub(crate) fn packet_end(&self, start: u32) -> u32 {
        let bound = if start < self.unscheduled {
            self.unscheduled
        } else {
            self.length
        };
        start.saturating_add(self.payload_bytes).min(bound)
    }

    /// Bytes that may be sent: the grant rounded up to a whole packet.
    #[inline(always)]
    pub(crate) fn limit(&self) -> u32 {
        match self.granted.checked_sub(1) {
            Some(last) if self.granted < self.length => self.packet_end(self.packet_start(last)),
            Some(_) => self.length,
            None => 0,
        }
    }

    /// The next packet to send for the first time, if it may be sent.
    #[inline(always)]
    pub(crate) fn next_packet(&self) -> Option<Range<u32>> {
        let end = self.packet_end(self.next);
        (self.next < self.limit() && end <= self.ready).then_some(self.next..end)
    }

    pub(crate) fn has_granted_unsent(&self) -> bool {
        self.next < self.limit()
    }

    #[inline(always)]
    pub(crate) fn is_sendable(&self) -> bool {
        !self.pending.is_empty() || self.next_packet().is_some()
    }

    pub(crate) fn fully_sent(&self) -> bool {
        self.length > 0 && self.next == self.length
    }

    /// Bytes of the message never sent; the sender's SRPT key, so that
    /// retransmissions do not demote.
    pub(crate) fn remaining(&self) -> u32 {
        self.length - self.next
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    fn boundaries(message: &Outgoing) -> alloc::vec::Vec<u32> {
        let mut starts = alloc::vec::Vec::new();
        let mut at = 0;
        while at < message.length {
            assert_eq!(message.packet_start(at), at);
            let end = message.packet_end(at);
            assert_eq!(message.packet_start(end - 1), at);
            starts.push(at);
            at = end;
        }
        starts
    }

    #[test]
    fn packet_end__boundary_at_the_end_of_the_unscheduled_bytes() {
        let message = Outgoing::new(43_000, 40_000, 1424);
        let starts = boundaries(&message);
        assert_eq!(starts[27], 38_448);
        assert_eq!(starts[28], 39_872);
        assert_eq!(starts[29], 40_000);
        assert_eq!(starts[30], 41_424);
        assert_eq!(message.packet_end(42_848), 43_000);
    }

    #[test]
    fn limit__a_grant_is_rounded_up_to_a_whole_packet() {
        let mut message = Outgoing::new(120_000, 40_000, 1424);
        assert_eq!(message.limit(), 40_000);
        message.granted = 50_000;
        assert_eq!(message.limit(), 51_392, "as the reference module does");
        message.granted = 120_000;
        assert_eq!(message.limit(), 120_000);
    }

    #[test]
    fn next_packet__waits_for_the_host_to_have_the_bytes() {
        let mut message = Outgoing::new(3000, 3000, 1424);
        message.ready = 1423;
        assert_eq!(message.next_packet(), None);
        message.ready = 1424;
        assert_eq!(message.next_packet(), Some(0..1424));
        message.next = 1424;
        message.ready = 2999;
        assert!(message.has_granted_unsent());
        message.ready = 3000;
        assert_eq!(message.next_packet(), Some(1424..2848));
    }

    #[test]
    fn limit__nothing_without_unscheduled_bytes_or_grant() {
        let message = Outgoing::new(3000, 0, 1424);
        assert_eq!(message.limit(), 0);
        assert!(!message.is_sendable());
    }
}
