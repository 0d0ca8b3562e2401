//! Incoming messages by length, counted in bytes (`docs/protocol.md` §15):
//! what the division of the priority levels is made from.
//!
//! Owns 189 classes: of 64 bytes up to 4 KiB, of 1 KiB up to 128 KiB, and one
//! above. Invariants: the bytes of the classes add up to `total_bytes`;
//! memory is taken once.
//!
//! Not here: what follows from it (`cutoffs`).

use alloc::{boxed::Box, vec};

const FINE_BYTES: u32 = 64;
const FINE_CLASSES: usize = 64;
const FINE_END: u32 = FINE_BYTES * FINE_CLASSES as u32;
const COARSE_BYTES: u32 = 1024;
const COARSE_CLASSES: usize = 124;
const COARSE_END: u32 = FINE_END + COARSE_BYTES * COARSE_CLASSES as u32;
const CLASSES: usize = FINE_CLASSES + COARSE_CLASSES + 1;

/// Recording stops at this many bytes, so that sums times twice the number of
/// levels fit into 64 bits. At 400 Gbit/s that is two weeks without a look.
const MAX_BYTES: u64 = 1 << 56;

/// The message lengths (bytes) below which one tenth, two tenths ... nine
/// tenths of the messages are.
pub(super) type Deciles = [u32; 9];

/// Bytes of incoming messages by message length, over one or more intervals.
pub(crate) struct Histogram {
    /// Bytes of each class.
    bytes: Box<[u64]>,
    /// Messages above all bounded classes. (Those of the bounded classes
    /// follow from their bytes.)
    long_messages: u64,
    messages: u64,
    total_bytes: u64,
    /// What the class above all bounds is bounded by, bytes.
    max_message: u32,
}

impl Histogram {
    /// An empty histogram; messages are at most `max_message` bytes.
    pub(super) fn new(max_message: u32) -> Self {
        Self {
            bytes: vec![0; CLASSES].into_boxed_slice(),
            long_messages: 0,
            messages: 0,
            total_bytes: 0,
            max_message,
        }
    }

    /// Counts a message whose first packet came. O(1).
    #[inline]
    pub(crate) fn record(&mut self, message_length: u32) {
        if message_length == 0 || self.total_bytes >= MAX_BYTES {
            return;
        }
        let class = class_of(message_length);
        if let Some(bytes) = self.bytes.get_mut(class) {
            *bytes += u64::from(message_length);
        }
        if class == CLASSES - 1 {
            self.long_messages += 1;
        }
        self.messages += 1;
        self.total_bytes += u64::from(message_length);
    }

    /// How many messages were counted.
    pub(super) fn messages(&self) -> u64 {
        self.messages
    }

    /// The sum of their lengths.
    pub(super) fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.bytes.fill(0);
        self.long_messages = 0;
        self.messages = 0;
        self.total_bytes = 0;
    }

    /// The classes in the order of length.
    pub(super) fn classes(&self) -> impl Iterator<Item = Class> {
        (0..CLASSES).zip(&self.bytes).map(|(class, &bytes)| {
            let lower = class.checked_sub(1).map_or(0, upper_bound);
            if class == CLASSES - 1 {
                let mean = bytes.checked_div(self.long_messages).unwrap_or(0);
                return Class {
                    bytes,
                    messages: self.long_messages,
                    upper: self.max_message,
                    typical: mean as u32,
                };
            }
            let upper = upper_bound(class);
            let twice_mean = u64::from(upper) + u64::from(lower);
            Class {
                bytes,
                messages: estimate(bytes, twice_mean),
                upper: upper.min(self.max_message),
                typical: upper,
            }
        })
    }

    /// The lengths below which one tenth, two tenths ... of the messages are,
    /// as far as the classes tell.
    pub(super) fn deciles(&self) -> Deciles {
        let messages: u64 = self.classes().map(|class| class.messages).sum();
        let mut deciles = [0; 9];
        let mut wanted = (1u64..).zip(&mut deciles).peekable();
        let mut seen = 0;
        for class in self.classes() {
            seen += class.messages;
            while let Some((_, decile)) =
                wanted.next_if(|(tenths, _)| seen * 10 >= messages * tenths)
            {
                *decile = class.typical;
            }
        }
        deciles
    }
}

/// What the histogram says about one class.
#[derive(Clone, Copy)]
pub(super) struct Class {
    bytes: u64,
    messages: u64,
    /// Longest message of the class, bytes.
    pub(super) upper: u32,
    /// The length that stands for the class in a decile, bytes.
    typical: u32,
}

impl Class {
    /// The bytes of the class that senders may send without a grant.
    pub(super) fn unscheduled(&self, unscheduled_bytes: u32) -> u64 {
        if self.upper <= unscheduled_bytes {
            self.bytes
        } else {
            self.bytes
                .min(self.messages.saturating_mul(u64::from(unscheduled_bytes)))
        }
    }
}

/// Messages that make up `bytes` when their mean length is `twice_mean` / 2: to
/// the nearest, but not none if there are bytes.
fn estimate(bytes: u64, twice_mean: u64) -> u64 {
    let nearest = (2 * bytes + twice_mean / 2) / twice_mean.max(1);
    nearest.max(u64::from(bytes > 0))
}

fn class_of(length: u32) -> usize {
    if length <= FINE_END {
        (length.saturating_sub(1) / FINE_BYTES) as usize
    } else if length <= COARSE_END {
        FINE_CLASSES + ((length - FINE_END - 1) / COARSE_BYTES) as usize
    } else {
        CLASSES - 1
    }
}

/// Longest message of a bounded class.
fn upper_bound(class: usize) -> u32 {
    match (class + 1).checked_sub(FINE_CLASSES) {
        None => (class as u32 + 1) * FINE_BYTES,
        Some(coarse) => FINE_END + coarse as u32 * COARSE_BYTES,
    }
}
