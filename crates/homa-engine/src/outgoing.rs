//! An outgoing message, read by range: packets are gathered from the chunks
//! that the application gave.

use std::ops::Range;

use bytes::Bytes;

use crate::Message;

pub(crate) enum Outgoing {
    One(Bytes),
    Many {
        chunks: Box<[Bytes]>,
        /// Where each chunk ends, in bytes from the message's start.
        ends: Box<[usize]>,
    },
}

impl Outgoing {
    pub(crate) fn new(message: &Message) -> Self {
        if message.chunks().len() <= 1 {
            return Self::One(message.chunks().next().cloned().unwrap_or_default());
        }
        let mut end = 0;
        let ends = message.chunks().map(|chunk| {
            end += chunk.len();
            end
        });
        Self::Many {
            ends: ends.collect(),
            chunks: message.chunks().cloned().collect(),
        }
    }

    /// Copies a range of the message, which must be within it and as long as
    /// `target`. Costs the logarithm of the number of chunks besides.
    #[must_use]
    pub(crate) fn gather(&self, range: Range<usize>, target: &mut [u8]) -> Gathered {
        let copied = match self {
            Self::One(bytes) => bytes.get(range).map(|source| copy(source, target)),
            Self::Many { chunks, ends } => {
                let mut rest = target;
                let mut at = range.start;
                let mut index = ends.partition_point(|end| *end <= at);
                while at < range.end {
                    let (Some(chunk), Some(end)) = (chunks.get(index), ends.get(index)) else {
                        return Gathered::OutOfRange;
                    };
                    let stop = range.end.min(*end);
                    let offset = chunk.len() - (end - at);
                    let Some(source) = chunk.get(offset..offset + (stop - at)) else {
                        return Gathered::OutOfRange;
                    };
                    let Some((head, tail)) = rest.split_at_mut_checked(source.len()) else {
                        return Gathered::OutOfRange;
                    };
                    head.copy_from_slice(source);
                    rest = tail;
                    at = stop;
                    index += 1;
                }
                rest.is_empty().then_some(Gathered::Yes)
            }
        };
        copied.unwrap_or(Gathered::OutOfRange)
    }
}

fn copy(source: &[u8], target: &mut [u8]) -> Gathered {
    if source.len() != target.len() {
        return Gathered::OutOfRange;
    }
    target.copy_from_slice(source);
    Gathered::Yes
}

/// Whether the range was there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gathered {
    Yes,
    OutOfRange,
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn gather__any_range_of_any_chunks() {
        let bytes: Vec<u8> = (0..200).collect();
        for of in [1, 7, 50, 199, 200] {
            let message: Message = bytes.chunks(of).map(Bytes::copy_from_slice).collect();
            let outgoing = Outgoing::new(&message);
            for start in 0..200 {
                for end in start..=200 {
                    let mut target = vec![0; end - start];
                    assert_eq!(outgoing.gather(start..end, &mut target), Gathered::Yes);
                    assert_eq!(target, bytes[start..end]);
                }
            }
        }
    }

    #[test]
    fn gather__beyond_the_end_is_refused() {
        for of in [3, 10] {
            let message: Message = [0; 10].chunks(of).map(Bytes::copy_from_slice).collect();
            let outgoing = Outgoing::new(&message);
            let mut target = [0; 4];
            assert_eq!(outgoing.gather(8..12, &mut target), Gathered::OutOfRange);
            assert_eq!(outgoing.gather(0..3, &mut target), Gathered::OutOfRange);
        }
    }
}
