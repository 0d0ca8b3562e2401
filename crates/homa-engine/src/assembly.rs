//! Memory of one incoming message, in pages that appear as bytes arrive
//! (`docs/protocol.md` §5: "message memory is charged as bytes arrive").
//!
//! The core decides what may arrive and counts bytes; a page holds more than
//! has arrived in it, so pages are counted here beside that, in all and for
//! each peer. A message of up to one page is one allocation of its exact
//! length; a complete message is handed over without a copy.

use bytes::Bytes;

use crate::Message;

/// Bytes of a page: large enough that a chunk is worth its bookkeeping, small
/// enough that a message of one packet a page does not pin much.
pub(crate) const PAGE_BYTES: usize = 16 << 10;

/// A page whose first packet brings at least 1/32 of it is allocated whole;
/// otherwise it grows, so that a peer pins at most 32 times what it sent.
const WHOLE_PAGE_SHARE: usize = 32;

/// Smallest allocation.
const LEAST_BYTES: usize = 64;

/// An incoming message under way.
pub(crate) struct Assembly {
    length: usize,
    /// Pages from the start; those beyond have not been touched, and an empty
    /// one neither. The bytes of a page up to its length are written or 0.
    pages: Vec<Vec<u8>>,
    /// Bytes allocated.
    held: usize,
}

/// There is no memory for a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoMemory;

impl Assembly {
    pub(crate) fn new(length: u32) -> Self {
        Self {
            length: length as usize,
            pages: Vec::new(),
            held: 0,
        }
    }

    /// Bytes allocated.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// Puts bytes to their place, which lies within the message. `may_hold` is
    /// asked before more is allocated, with the number of bytes.
    pub(crate) fn place(
        &mut self,
        offset: u32,
        bytes: &[u8],
        mut may_hold: impl FnMut(usize) -> bool,
    ) -> Result<(), NoMemory> {
        let mut at = offset as usize;
        let mut rest = bytes;
        debug_assert!(at + rest.len() <= self.length);
        while !rest.is_empty() {
            let index = at / PAGE_BYTES;
            let within = at % PAGE_BYTES;
            let full = self.length.saturating_sub(index * PAGE_BYTES);
            let full = full.min(PAGE_BYTES);
            let (now, later) = rest.split_at(rest.len().min(full.saturating_sub(within)));
            if now.is_empty() {
                return Ok(());
            }
            self.make_page(index, within + now.len(), now.len(), full, &mut may_hold)?;
            if let Some(page) = self.pages.get_mut(index) {
                write(page, within, now);
            }
            at += now.len();
            rest = later;
        }
        Ok(())
    }

    /// Makes room for `end` bytes in a page that will have `full` in the end.
    fn make_page(
        &mut self,
        index: usize,
        end: usize,
        arriving: usize,
        full: usize,
        may_hold: &mut impl FnMut(usize) -> bool,
    ) -> Result<(), NoMemory> {
        if self.pages.len() <= index {
            let more = (index + 1 - self.pages.len()) * size_of::<Vec<u8>>();
            if !may_hold(more) {
                return Err(NoMemory);
            }
            self.held += more;
            self.pages.resize_with(index + 1, Vec::new);
        }
        let Some(page) = self.pages.get_mut(index) else {
            return Ok(());
        };
        let capacity = page.capacity();
        if capacity >= end {
            return Ok(());
        }
        let wanted = if arriving * WHOLE_PAGE_SHARE >= full {
            full
        } else {
            end.next_power_of_two().max(LEAST_BYTES).min(full)
        };
        if !may_hold(wanted - capacity) {
            return Err(NoMemory);
        }
        page.reserve_exact(wanted - page.len());
        self.held += wanted - capacity;
        Ok(())
    }

    /// The message, all of whose bytes have been placed.
    pub(crate) fn finish(self) -> Message {
        debug_assert_eq!(self.pages.iter().map(Vec::len).sum::<usize>(), self.length);
        self.pages.into_iter().map(Bytes::from).collect()
    }
}

fn write(page: &mut Vec<u8>, start: usize, bytes: &[u8]) {
    if page.len() < start {
        page.resize(start, 0);
    }
    let overlap = (page.len() - start).min(bytes.len());
    let (old, new) = bytes.split_at(overlap);
    if let Some(place) = page.get_mut(start..start + overlap) {
        place.copy_from_slice(old);
    }
    page.extend_from_slice(new);
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    fn pattern(length: usize) -> Vec<u8> {
        (0..length).map(|i| (i * 31 % 251) as u8).collect()
    }

    fn packets(length: usize, payload: usize) -> Vec<(usize, usize)> {
        (0..length)
            .step_by(payload)
            .map(|start| (start, (start + payload).min(length)))
            .collect()
    }

    fn assemble(length: usize, order: &[(usize, usize)]) -> Assembly {
        let bytes = pattern(length);
        let mut assembly = Assembly::new(length as u32);
        for (start, end) in order {
            assembly
                .place(*start as u32, &bytes[*start..*end], |_| true)
                .unwrap();
        }
        assembly
    }

    #[test]
    fn place__any_order_gives_the_same_message() {
        for length in [1, 100, 1424, 16_383, 16_384, 16_385, 100_000] {
            for payload in [1424, 60_000] {
                let mut order = packets(length, payload);
                let expected = pattern(length);
                assert_eq!(assemble(length, &order).finish(), expected[..]);
                order.reverse();
                assert_eq!(assemble(length, &order).finish(), expected[..]);
                order.sort_by_key(|(start, _)| start.wrapping_mul(0x9e37_79b9) % 1009);
                assert_eq!(assemble(length, &order).finish(), expected[..]);
            }
        }
    }

    #[test]
    fn finish__small_message_is_one_exact_allocation() {
        let assembly = assemble(5000, &packets(5000, 1424));
        assert_eq!(assembly.held(), 5000 + size_of::<Vec<u8>>());
        let message = assembly.finish();
        assert_eq!(message.chunks().len(), 1);
    }

    #[test]
    fn finish__does_not_copy() {
        let assembly = assemble(40_000, &packets(40_000, 1424));
        let pages: Vec<_> = assembly.pages.iter().map(Vec::as_ptr).collect();
        let message = assembly.finish();
        let chunks: Vec<_> = message.chunks().map(|chunk| chunk.as_ptr()).collect();
        assert_eq!(pages, chunks);
    }

    #[test]
    fn place__one_byte_does_not_pin_what_was_announced() {
        let mut assembly = Assembly::new(1_000_000);
        assembly.place(0, &[1], |_| true).unwrap();
        assert!(assembly.held() < 128, "{} bytes", assembly.held());
        // The announced end costs one page and the table of pages.
        assembly.place(999_999, &[1], |_| true).unwrap();
        assert!(assembly.held() < 18_000, "{} bytes", assembly.held());
    }

    #[test]
    fn place__asks_for_all_it_holds() {
        let bytes = pattern(100_000);
        for payload in [1, 100, 1424] {
            let mut assembly = Assembly::new(100_000);
            let mut asked = 0;
            for (start, end) in packets(100_000, payload) {
                let place = assembly.place(start as u32, &bytes[start..end], |more| {
                    asked += more;
                    true
                });
                place.unwrap();
            }
            assert_eq!(asked, assembly.held());
            assert_eq!(
                assembly.held(),
                100_000 + assembly.pages.len() * size_of::<Vec<u8>>()
            );
        }
    }

    #[test]
    fn place__refused_memory_is_an_error() {
        let mut assembly = Assembly::new(100_000);
        let mut left = 20_000_usize;
        let mut may_hold = |more: usize| {
            let fits = more <= left;
            left = left.saturating_sub(more);
            fits
        };
        assert_eq!(assembly.place(0, &[0; 1424], &mut may_hold), Ok(()));
        assert_eq!(
            assembly.place(16_384, &[0; 1424], &mut may_hold),
            Err(NoMemory)
        );
    }
}
