//! Bytes of a file in order, with their offset. Owns the rule that lengths
//! claimed by a file never decide how much memory is taken: the buffer grows
//! as bytes really arrive.

use std::io::{self, BufReader, Read};

use crate::error::{CaptureError, Part, Problem};

pub(crate) struct Source<R> {
    reader: BufReader<R>,
    offset: u64,
}

impl<R: Read> Source<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self {
            reader: BufReader::with_capacity(64 << 10, reader),
            offset: 0,
        }
    }

    /// Bytes read so far.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Appends up to `count` bytes to `buffer`, fewer only at the end of the
    /// file, and says how many.
    pub(crate) fn read(&mut self, buffer: &mut Vec<u8>, count: u64) -> Result<u64, CaptureError> {
        let read = self.reader.by_ref().take(count).read_to_end(buffer);
        self.count(read.map(|count| count as u64))
    }

    /// Appends exactly `count` bytes of `part`, which began at `start`.
    pub(crate) fn read_exact(
        &mut self,
        buffer: &mut Vec<u8>,
        count: u64,
        part: Part,
        start: u64,
    ) -> Result<(), CaptureError> {
        let before = self.offset - start;
        let read = self.read(buffer, count)?;
        complete(before + read, before + count, part, start)
    }

    /// Leaves out exactly `count` bytes of `part`, which began at `start`.
    pub(crate) fn skip(&mut self, count: u64, part: Part, start: u64) -> Result<(), CaptureError> {
        let before = self.offset - start;
        let read = io::copy(&mut self.reader.by_ref().take(count), &mut io::sink());
        let read = self.count(read)?;
        complete(before + read, before + count, part, start)
    }

    fn count(&mut self, read: io::Result<u64>) -> Result<u64, CaptureError> {
        match read {
            Ok(count) => {
                self.offset += count;
                Ok(count)
            }
            Err(error) => Err(CaptureError {
                offset: self.offset,
                problem: Problem::Read(error),
            }),
        }
    }
}

fn complete(found: u64, wanted: u64, part: Part, offset: u64) -> Result<(), CaptureError> {
    if found == wanted {
        return Ok(());
    }
    Err(CaptureError {
        offset,
        problem: Problem::Truncated {
            part,
            wanted,
            found,
        },
    })
}
