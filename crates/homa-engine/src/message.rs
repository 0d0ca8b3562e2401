//! A message: bytes in one or more chunks.
//!
//! Incoming messages are handed over as the chunks they were assembled in,
//! outgoing ones are sent from the chunks they were given in; nothing here
//! copies unless it is asked to.

use std::collections::{VecDeque, vec_deque};
use std::fmt;

use bytes::{Buf, Bytes, BytesMut};

/// The bytes of a request or a response.
///
/// Cheap to clone: chunks are reference counted. Reads like any
/// [`bytes::Buf`]; reading takes the bytes out.
#[derive(Clone, Default)]
pub struct Message {
    /// None of them is empty.
    chunks: Chunks,
    /// Sum of their lengths.
    length: usize,
}

/// Most messages are one chunk, which takes no allocation.
#[derive(Clone)]
enum Chunks {
    One(Bytes),
    Many(VecDeque<Bytes>),
}

impl Default for Chunks {
    fn default() -> Self {
        Self::One(Bytes::new())
    }
}

impl Message {
    /// A message of no bytes, to push chunks to.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes in it.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it has no bytes. Such a message cannot be sent.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Its chunks in order; none is empty.
    pub fn chunks(&self) -> impl ExactSizeIterator<Item = &Bytes> {
        match &self.chunks {
            Chunks::One(chunk) => ChunkIter::One((!chunk.is_empty()).then_some(chunk)),
            Chunks::Many(chunks) => ChunkIter::Many(chunks.iter()),
        }
    }

    /// Adds a chunk at the end; an empty one changes nothing.
    pub fn push(&mut self, chunk: impl Into<Bytes>) {
        let chunk = chunk.into();
        if chunk.is_empty() {
            return;
        }
        self.length += chunk.len();
        match &mut self.chunks {
            Chunks::One(first) if first.is_empty() => *first = chunk,
            Chunks::One(first) => {
                let first = std::mem::take(first);
                self.chunks = Chunks::Many(VecDeque::from([first, chunk]));
            }
            Chunks::Many(chunks) => chunks.push_back(chunk),
        }
    }

    /// All bytes in one piece; copies only if there are several chunks.
    pub fn into_bytes(self) -> Bytes {
        match self.chunks {
            Chunks::One(chunk) => chunk,
            Chunks::Many(mut chunks) if chunks.len() == 1 => chunks.pop_front().unwrap_or_default(),
            Chunks::Many(chunks) => {
                let mut whole = BytesMut::with_capacity(self.length);
                for chunk in &chunks {
                    whole.extend_from_slice(chunk);
                }
                whole.freeze()
            }
        }
    }

    /// A copy of all bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut whole = Vec::with_capacity(self.length);
        for chunk in self.chunks() {
            whole.extend_from_slice(chunk);
        }
        whole
    }

    /// Copies as many bytes as fit, from the start, and says how many.
    pub fn copy_to(&self, mut target: &mut [u8]) -> usize {
        let mut copied = 0;
        for chunk in self.chunks() {
            let count = chunk.len().min(target.len());
            let (head, rest) = target.split_at_mut(count);
            head.copy_from_slice(chunk.get(..count).unwrap_or_default());
            copied += count;
            target = rest;
        }
        copied
    }
}

enum ChunkIter<'a> {
    One(Option<&'a Bytes>),
    Many(vec_deque::Iter<'a, Bytes>),
}

impl<'a> Iterator for ChunkIter<'a> {
    type Item = &'a Bytes;

    fn next(&mut self) -> Option<&'a Bytes> {
        match self {
            Self::One(chunk) => chunk.take(),
            Self::Many(chunks) => chunks.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let count = match self {
            Self::One(chunk) => usize::from(chunk.is_some()),
            Self::Many(chunks) => chunks.len(),
        };
        (count, Some(count))
    }
}

impl ExactSizeIterator for ChunkIter<'_> {}

impl Buf for Message {
    fn remaining(&self) -> usize {
        self.length
    }

    fn chunk(&self) -> &[u8] {
        match &self.chunks {
            Chunks::One(chunk) => chunk,
            Chunks::Many(chunks) => chunks.front().map_or(&[], |chunk| chunk),
        }
    }

    fn advance(&mut self, count: usize) {
        assert!(count <= self.length, "advance beyond the end of a message");
        self.length -= count;
        match &mut self.chunks {
            Chunks::One(chunk) => chunk.advance(count),
            Chunks::Many(chunks) => {
                let mut left = count;
                while let Some(first) = chunks.front_mut() {
                    if left < first.len() {
                        first.advance(left);
                        return;
                    }
                    left -= first.len();
                    chunks.pop_front();
                }
            }
        }
    }

    fn copy_to_bytes(&mut self, count: usize) -> Bytes {
        assert!(count <= self.length, "reading beyond the end of a message");
        let first = match &mut self.chunks {
            Chunks::One(chunk) => Some(chunk),
            Chunks::Many(chunks) => chunks.front_mut(),
        };
        if let Some(first) = first
            && count < first.len()
        {
            self.length -= count;
            return first.split_to(count);
        }
        let mut whole = BytesMut::with_capacity(count);
        while whole.len() < count {
            let chunk = self.chunk();
            let take = chunk.len().min(count - whole.len());
            whole.extend_from_slice(chunk.get(..take).unwrap_or_default());
            self.advance(take);
        }
        whole.freeze()
    }
}

impl From<Bytes> for Message {
    fn from(bytes: Bytes) -> Self {
        Self {
            length: bytes.len(),
            chunks: Chunks::One(bytes),
        }
    }
}

macro_rules! from_bytes_like {
    ($($source:ty),+) => {$(
        impl From<$source> for Message {
            fn from(source: $source) -> Self {
                Self::from(Bytes::from(source))
            }
        }
    )+};
}

from_bytes_like!(
    Vec<u8>,
    String,
    Box<[u8]>,
    BytesMut,
    &'static [u8],
    &'static str
);

impl<const N: usize> From<&'static [u8; N]> for Message {
    fn from(source: &'static [u8; N]) -> Self {
        Self::from(Bytes::from_static(source))
    }
}

impl From<Message> for Bytes {
    fn from(message: Message) -> Self {
        message.into_bytes()
    }
}

impl FromIterator<Bytes> for Message {
    fn from_iter<I: IntoIterator<Item = Bytes>>(chunks: I) -> Self {
        let mut message = Self::new();
        for chunk in chunks {
            message.push(chunk);
        }
        message
    }
}

impl Extend<Bytes> for Message {
    fn extend<I: IntoIterator<Item = Bytes>>(&mut self, chunks: I) {
        for chunk in chunks {
            self.push(chunk);
        }
    }
}

impl PartialEq<[u8]> for Message {
    fn eq(&self, other: &[u8]) -> bool {
        let mut rest = other;
        self.length == other.len()
            && self.chunks().all(|chunk| {
                let (head, tail) = rest.split_at(chunk.len().min(rest.len()));
                rest = tail;
                chunk == head
            })
    }
}

impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        let (mut left, mut right) = (self.clone(), other.clone());
        if left.length != right.length {
            return false;
        }
        while left.length > 0 {
            let count = left.chunk().len().min(right.chunk().len());
            if left.chunk().get(..count) != right.chunk().get(..count) {
                return false;
            }
            left.advance(count);
            right.advance(count);
        }
        true
    }
}

impl Eq for Message {}

impl fmt::Debug for Message {
    /// The length, not the bytes: they may be many, and secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Message({} bytes)", self.length)
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    fn in_chunks(bytes: &[u8], of: usize) -> Message {
        bytes.chunks(of).map(Bytes::copy_from_slice).collect()
    }

    #[test]
    fn into_bytes__one_chunk_is_not_copied() {
        let bytes = Bytes::from(vec![7; 100]);
        let address = bytes.as_ptr();
        assert_eq!(Message::from(bytes).into_bytes().as_ptr(), address);
    }

    #[test]
    fn buf__reads_across_chunks() {
        let bytes: Vec<u8> = (0..100).collect();
        for of in [1, 3, 7, 99, 100] {
            let mut message = in_chunks(&bytes, of);
            assert_eq!(message.remaining(), 100);
            assert_eq!(message.get_u8(), 0);
            assert_eq!(message.get_u32(), 0x0102_0304);
            assert_eq!(message.copy_to_bytes(10)[..], bytes[5..15]);
            message.advance(5);
            assert_eq!(message, bytes[20..]);
            assert_eq!(message.clone().into_bytes()[..], bytes[20..]);
            let mut target = [0; 30];
            assert_eq!(message.copy_to(&mut target), 30);
            assert_eq!(target, bytes[20..50]);
            message.advance(80);
            assert!(message.is_empty() && message.chunk().is_empty());
        }
    }

    #[test]
    fn eq__does_not_depend_on_the_chunks() {
        let bytes: Vec<u8> = (0..100).collect();
        assert_eq!(in_chunks(&bytes, 7), in_chunks(&bytes, 11));
        assert_ne!(in_chunks(&bytes[1..], 7), in_chunks(&bytes[..99], 7));
        assert_ne!(in_chunks(&bytes, 7), bytes[..99]);
    }

    #[test]
    fn push__empty_chunks_are_not_kept() {
        let mut message = Message::from("");
        message.push(Bytes::new());
        assert_eq!(message.chunks().len(), 0);
        message.push("a");
        message.push(Bytes::new());
        message.push("b");
        assert_eq!(message.chunks().len(), 2);
        assert_eq!(message, b"ab"[..]);
    }
}
