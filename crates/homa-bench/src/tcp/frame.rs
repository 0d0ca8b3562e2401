//! Frames: 16 bytes in front of every message on a TCP connection.
//!
//! Magic (4 bytes), length of the message without this header (4 bytes), id
//! (8 bytes), big endian. A decoder takes bytes as they come, in any pieces.

/// Longest message in bytes that either side accepts.
pub const MAX_MESSAGE_BYTES: u32 = 256 << 20;

/// Bytes in front of each message.
pub(super) const HEADER_BYTES: usize = 16;

/// "HmB" and the version of the framing.
const MAGIC: [u8; 4] = *b"HmB\x01";

/// At most this much memory is reserved on the word of a header alone.
const RESERVE_BYTES: usize = 1 << 20;

/// A whole message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message {
    /// Chosen by the client, repeated by the server.
    pub(super) id: u64,
    /// The bytes.
    pub(super) body: Vec<u8>,
}

/// Writes a header. The caller has checked the length.
pub(super) fn header(id: u64, body_bytes: u32) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..4].copy_from_slice(&MAGIC);
    bytes[4..8].copy_from_slice(&body_bytes.to_be_bytes());
    bytes[8..].copy_from_slice(&id.to_be_bytes());
    bytes
}

/// Puts messages together.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    header: [u8; HEADER_BYTES],
    header_filled: usize,
    partial: Option<Partial>,
}

#[derive(Debug)]
struct Partial {
    message: Message,
    wanted: usize,
}

impl Decoder {
    /// Takes all of `bytes` and appends the messages they complete. The error
    /// is what is wrong with them; nothing can be decoded after one.
    pub(super) fn feed(
        &mut self,
        mut bytes: &[u8],
        out: &mut Vec<Message>,
    ) -> Result<(), &'static str> {
        loop {
            if let Some(mut partial) = self.partial.take() {
                let body = &mut partial.message.body;
                let take = bytes.len().min(partial.wanted - body.len());
                body.extend_from_slice(&bytes[..take]);
                bytes = &bytes[take..];
                if body.len() < partial.wanted {
                    self.partial = Some(partial);
                    return Ok(());
                }
                out.push(partial.message);
            }
            let take = bytes.len().min(HEADER_BYTES - self.header_filled);
            self.header[self.header_filled..self.header_filled + take]
                .copy_from_slice(&bytes[..take]);
            self.header_filled += take;
            bytes = &bytes[take..];
            if self.header_filled < HEADER_BYTES {
                return Ok(());
            }
            self.header_filled = 0;
            self.partial = Some(self.begin()?);
        }
    }

    /// True between two messages: no byte of an unfinished one has come.
    pub(super) fn between_messages(&self) -> bool {
        self.header_filled == 0 && self.partial.is_none()
    }

    fn begin(&self) -> Result<Partial, &'static str> {
        let [m0, m1, m2, m3, l0, l1, l2, l3, id @ ..] = self.header;
        if [m0, m1, m2, m3] != MAGIC {
            return Err("the magic number is missing");
        }
        let body_bytes = u32::from_be_bytes([l0, l1, l2, l3]);
        if body_bytes > MAX_MESSAGE_BYTES {
            return Err("a message is longer than 256 MiB");
        }
        let wanted = body_bytes as usize;
        Ok(Partial {
            message: Message {
                id: u64::from_be_bytes(id),
                body: Vec::with_capacity(wanted.min(RESERVE_BYTES)),
            },
            wanted,
        })
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn feed__any_pieces_give_the_messages(
            bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..8),
            piece_bytes in 1_usize..64,
        ) {
            let mut wire = Vec::new();
            for (id, body) in bodies.iter().enumerate() {
                wire.extend(header(id as u64, body.len() as u32));
                wire.extend(body);
            }
            let (mut decoder, mut out) = (Decoder::default(), Vec::new());
            for piece in wire.chunks(piece_bytes) {
                decoder.feed(piece, &mut out).unwrap();
            }
            prop_assert!(decoder.between_messages());
            let found: Vec<_> = out.into_iter().map(|message| message.body).collect();
            prop_assert_eq!(found, bodies);
        }
    }

    #[test]
    fn feed__other_services_are_noticed() {
        let mut out = Vec::new();
        let answer = b"HTTP/1.1 400 Bad Request\r\n";
        assert!(Decoder::default().feed(answer, &mut out).is_err());
        let long = header(1, MAX_MESSAGE_BYTES + 1);
        assert!(Decoder::default().feed(&long, &mut out).is_err());
        assert!(out.is_empty());
    }

    #[test]
    fn between_messages__false_in_the_middle() {
        let (mut decoder, mut out) = (Decoder::default(), Vec::new());
        decoder.feed(&header(1, 2)[..5], &mut out).unwrap();
        assert!(!decoder.between_messages());
        decoder.feed(&header(1, 2)[5..], &mut out).unwrap();
        decoder.feed(&[7], &mut out).unwrap();
        assert!(!decoder.between_messages());
        decoder.feed(&[8], &mut out).unwrap();
        assert!(decoder.between_messages());
        assert_eq!(
            out,
            [Message {
                id: 1,
                body: vec![7, 8]
            }]
        );
    }
}
