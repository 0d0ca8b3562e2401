//! One TCP connection, either side: bytes in, bytes out, readiness.
//!
//! Events are edge-triggered: what was ready stays marked here until a call
//! finds that it is not. Invariant: a link whose `wants_turn` is false has
//! nothing to do before its next event.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Read, Write};

use mio::event::Event;
use mio::net::TcpStream;

use super::frame::{self, Decoder, HEADER_BYTES, Message};

/// Read at most this much from a connection before others have their turn.
pub(super) const TURN_BYTES: usize = 256 << 10;

/// Messages per vectored write.
const GATHER_MESSAGES: usize = 16;

/// Why a connection ends.
#[derive(Debug)]
pub(super) enum LinkEnd {
    /// Closed by the other side, between two messages.
    Closed,
    /// Closed by the other side in the middle of a message.
    ClosedInside,
    /// The kernel's word.
    Broken(io::Error),
    /// Bytes that are no frame.
    Malformed(&'static str),
}

#[derive(Debug)]
struct Outgoing {
    header: [u8; HEADER_BYTES],
    body: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Readable {
    /// Nothing before the next event.
    No,
    Yes,
    /// The other side has closed: no further event will come, so read to the
    /// end.
    ToTheEnd,
}

/// A connection and what waits on it.
#[derive(Debug)]
pub(super) struct Link {
    stream: TcpStream,
    decoder: Decoder,
    outgoing: VecDeque<Outgoing>,
    /// Bytes of the first outgoing message, header included, already written.
    written: usize,
    unsent_bytes: usize,
    readable: Readable,
    writable: bool,
}

impl Link {
    /// Wraps a non-blocking stream, already registered, that has no event yet.
    pub(super) fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            decoder: Decoder::default(),
            outgoing: VecDeque::new(),
            written: 0,
            unsent_bytes: 0,
            readable: Readable::No,
            writable: true,
        }
    }

    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(super) fn stream_mut(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Bytes given to [`Link::push`] that the kernel has not taken.
    pub(super) fn unsent_bytes(&self) -> usize {
        self.unsent_bytes
    }

    /// Notes an event.
    pub(super) fn note(&mut self, event: &Event) {
        if event.is_read_closed() || event.is_error() {
            self.readable = Readable::ToTheEnd;
        } else if event.is_readable() && self.readable == Readable::No {
            self.readable = Readable::Yes;
        }
        if event.is_writable() || event.is_error() {
            self.writable = true;
        }
    }

    /// True if a read may find something.
    pub(super) fn wants_read(&self) -> bool {
        self.readable != Readable::No
    }

    /// True if a write may take something.
    pub(super) fn wants_write(&self) -> bool {
        self.writable && !self.outgoing.is_empty()
    }

    /// Queues a message; its length was checked against the limit.
    pub(super) fn push(&mut self, id: u64, body: Vec<u8>) {
        self.unsent_bytes += HEADER_BYTES + body.len();
        self.outgoing.push_back(Outgoing {
            header: frame::header(id, body.len() as u32),
            body,
        });
    }

    /// Reads once, at most `scratch`, and appends the messages completed.
    pub(super) fn read(
        &mut self,
        scratch: &mut [u8],
        out: &mut Vec<Message>,
    ) -> Result<(), LinkEnd> {
        match self.stream.read(scratch) {
            Ok(0) if self.decoder.between_messages() => Err(LinkEnd::Closed),
            Ok(0) => Err(LinkEnd::ClosedInside),
            Ok(count) => {
                // A short read has emptied the socket: the next byte brings an
                // event. That saves the call that would say so.
                if count < scratch.len() && self.readable == Readable::Yes {
                    self.readable = Readable::No;
                }
                self.decoder
                    .feed(&scratch[..count], out)
                    .map_err(LinkEnd::Malformed)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.readable = Readable::No;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(LinkEnd::Broken(error)),
        }
    }

    /// Writes until all is written or the kernel takes no more.
    pub(super) fn write(&mut self) -> Result<(), LinkEnd> {
        while self.wants_write() {
            match self.write_once() {
                Ok(0) => return Err(LinkEnd::Broken(io::ErrorKind::WriteZero.into())),
                Ok(count) => self.note_written(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Not connected yet: an event will tell.
                Err(error) if error.kind() == io::ErrorKind::NotConnected => self.writable = false,
                Err(error) => return Err(LinkEnd::Broken(error)),
            }
        }
        Ok(())
    }

    fn write_once(&mut self) -> io::Result<usize> {
        let mut slices = [IoSlice::new(&[]); 2 * GATHER_MESSAGES];
        let mut used = 0;
        let mut skip = self.written;
        for message in self.outgoing.iter().take(GATHER_MESSAGES) {
            for part in [&message.header[..], &message.body[..]] {
                let start = skip.min(part.len());
                skip -= start;
                if start < part.len() {
                    slices[used] = IoSlice::new(&part[start..]);
                    used += 1;
                }
            }
        }
        (&self.stream).write_vectored(&slices[..used])
    }

    fn note_written(&mut self, count: usize) {
        self.unsent_bytes -= count;
        self.written += count;
        while let Some(first) = self.outgoing.front() {
            let whole = HEADER_BYTES + first.body.len();
            if self.written < whole {
                break;
            }
            self.written -= whole;
            self.outgoing.pop_front();
        }
    }
}
