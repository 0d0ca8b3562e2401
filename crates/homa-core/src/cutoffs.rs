//! Which priorities peers use towards this endpoint: the division of the
//! levels between unscheduled and scheduled packets, and the message lengths
//! that share an unscheduled level. Implements `docs/protocol.md` §15.
//!
//! Owns the division that was decided last and the `histogram` of incoming
//! messages since the last look. A message of length L travels on the
//! largest level whose cutoff is at least L.
//!
//! Invariants: cutoffs do not rise with the level; level 0 always has the
//! maximum length, so that every message has a level; at least one level is
//! unscheduled and at least one scheduled (they share level 0 when all are
//! needed for unscheduled bytes, or there is only one).
//!
//! Not here: telling the peers (`peer`), the version, and the clock: the
//! endpoint calls [`CutoffPolicy::revise`] once per interval. Integers only:
//! this runs in a kernel.

mod histogram;
#[cfg(test)]
mod tests;

use histogram::{Deciles, Histogram};

/// Levels the wire format has room for.
const MAX_LEVELS: usize = 8;

/// Fewer messages than this say little about the distribution; they stay in
/// the histogram until there are enough.
const MIN_MESSAGES: u64 = 10_000;

/// How far the nine deciles of message length must move in total before peers
/// are told anything, in units of 1 / `MOVE_SCALE` of a decile's larger value.
const MIN_MOVE: u64 = MOVE_SCALE;
const MOVE_SCALE: u64 = 1 << 20;

/// How the priority levels are used: what CUTOFFS tells the peers, and how
/// many levels grants may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Division {
    /// Longest message (bytes) of each level, the highest level being the
    /// most urgent; 0 for levels that do not exist.
    pub(crate) cutoffs: [u32; MAX_LEVELS],
    /// Grants use the levels `0..scheduled_levels`; at least 1. Level 0 may
    /// carry unscheduled packets too.
    pub(crate) scheduled_levels: u8,
}

impl Division {
    /// Before any traffic was seen. Half of the levels (rounded up) are
    /// unscheduled; with eight levels 200 / 2800 / 15000 / maximum on levels
    /// 7 / 6 / 5 / 4. With fewer the short messages keep their bounds, since
    /// they suffer most from company: three unscheduled levels are 200 / 2800
    /// / maximum, two are 2800 / maximum, one is for all.
    pub(crate) fn initial(levels: u8, max_message: u32) -> Self {
        let levels = clamp_levels(levels);
        let bounds: &[u32] = match levels {
            7.. => &[200, 2800, 15_000],
            5..=6 => &[200, 2800],
            3..=4 => &[2800],
            _ => &[],
        };
        Self::from_bounds(levels, bounds, max_message)
    }

    /// Cutoffs that somebody insists on; levels that do not exist are cleared.
    pub(crate) fn fixed(mut cutoffs: [u32; MAX_LEVELS], levels: u8, max_message: u32) -> Self {
        let levels = clamp_levels(levels);
        for cutoff in cutoffs.iter_mut().skip(levels) {
            *cutoff = 0;
        }
        Self::from_cutoffs(cutoffs, levels, max_message)
    }

    /// `bounds` for the highest levels, everything else without a bound.
    fn from_bounds(levels: usize, bounds: &[u32], max_message: u32) -> Self {
        let mut cutoffs = [0; MAX_LEVELS];
        let mut bounds = bounds.iter();
        for cutoff in cutoffs.iter_mut().take(levels).rev() {
            *cutoff = bounds
                .next()
                .map_or(max_message, |&bound| bound.min(max_message));
        }
        Self::from_cutoffs(cutoffs, levels, max_message)
    }

    /// The highest level without a bound is the lowest unscheduled one.
    fn from_cutoffs(cutoffs: [u32; MAX_LEVELS], levels: usize, max_message: u32) -> Self {
        let lowest_unscheduled = cutoffs
            .iter()
            .take(levels)
            .rposition(|&cutoff| cutoff >= max_message)
            .unwrap_or(0);
        Self {
            cutoffs,
            scheduled_levels: (lowest_unscheduled as u8).max(1),
        }
    }
}

/// Watches incoming messages and decides the division.
pub(crate) struct CutoffPolicy {
    levels: usize,
    unscheduled_bytes: u32,
    max_message: u32,
    recent: Histogram,
    /// Of the traffic that the present division was made for.
    deciles: Deciles,
    division: Division,
}

impl CutoffPolicy {
    /// For `levels` priority levels (1 to 8; other values are clamped) and
    /// senders that send `unscheduled_bytes` of a message without a grant.
    pub(crate) fn new(levels: u8, unscheduled_bytes: u32, max_message: u32) -> Self {
        Self {
            levels: clamp_levels(levels),
            unscheduled_bytes,
            max_message,
            recent: Histogram::new(max_message),
            deciles: [0; 9],
            division: Division::initial(levels, max_message),
        }
    }

    /// Counts a message, request or response, when its first packet comes.
    #[inline]
    pub(crate) fn record(&mut self, message_length: u32) {
        self.recent.record(message_length);
    }

    /// Looks at the messages since the last look. A new division if there
    /// were enough of them, their lengths are distributed differently from
    /// those the present division was made for, and that makes a difference.
    pub(crate) fn revise(&mut self) -> Option<Division> {
        if self.recent.messages() < MIN_MESSAGES {
            return None;
        }
        let deciles = self.recent.deciles();
        let moved = distance(&deciles, &self.deciles) >= MIN_MOVE;
        let division = moved.then(|| {
            divide(
                &self.recent,
                self.levels,
                self.unscheduled_bytes,
                self.max_message,
            )
        });
        self.recent.clear();
        let division = division?;
        self.deciles = deciles;
        if division == self.division {
            return None;
        }
        self.division = division;
        Some(division)
    }
}

fn clamp_levels(levels: u8) -> usize {
    usize::from(levels).clamp(1, MAX_LEVELS)
}

/// The sum over the deciles of |a - b| / max(a, b), times `MOVE_SCALE`.
fn distance(a: &Deciles, b: &Deciles) -> u64 {
    a.iter()
        .zip(b)
        .map(|(&a, &b)| u64::from(a.abs_diff(b)) * MOVE_SCALE / u64::from(a.max(b).max(1)))
        .sum()
}

/// Splits the levels so that scheduled and unscheduled ones carry about the
/// same bytes each, and the unscheduled ones among themselves too.
fn divide(
    histogram: &Histogram,
    levels: usize,
    unscheduled_bytes: u32,
    max_message: u32,
) -> Division {
    let count = levels as u64;
    let total = histogram.total_bytes().max(1);
    let unscheduled: u64 = histogram
        .classes()
        .map(|class| class.unscheduled(unscheduled_bytes))
        .sum();
    let wanted = ((2 * count * unscheduled + total) / (2 * total)).max(1);
    let quota = if wanted >= count {
        1 + total / count
    } else {
        1 + unscheduled / wanted
    };

    let mut cutoffs = [0; MAX_LEVELS];
    let mut open = cutoffs.iter_mut().take(levels).rev().peekable();
    let mut seen = 0;
    let mut target = quota;
    for class in histogram.classes() {
        if target >= unscheduled {
            break;
        }
        seen += class.unscheduled(unscheduled_bytes);
        if seen >= target {
            if let Some(cutoff) = open.next() {
                *cutoff = class.upper;
            }
            target = seen + quota;
        }
    }
    for cutoff in open {
        *cutoff = max_message;
    }
    Division::from_cutoffs(cutoffs, levels, max_message)
}
