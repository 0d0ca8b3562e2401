//! What is in the messages: eight bytes that say what the response shall be,
//! then bytes that can be verified.
//!
//! The same on every transport. A request: how long the response shall be
//! (4 bytes, big endian; all ones for "as long as the request"), a seed (4
//! bytes), then bytes that follow from the seed and their position. A response:
//! an echo is the request, byte for byte; a response of another length has the
//! same eight bytes first, as far as it is that long, then the pattern.

use std::sync::OnceLock;

use homa_engine::Message;
use rand::{RngCore, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Shortest request in bytes.
pub const MIN_REQUEST_BYTES: u32 = 8;

const ECHO: u32 = u32::MAX;
/// A prime, so that no packet or page size divides it: a piece of a message in
/// the wrong place does not fit there.
const PATTERN_BYTES: usize = 1_048_573;

/// How long a response is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseSize {
    /// As long as its request, and the same bytes.
    Echo,
    /// This many bytes, at least 1 and below 4 GiB.
    Fixed(u32),
}

impl ResponseSize {
    /// Length in bytes of the response to a request of `request_bytes`.
    pub fn bytes_for(self, request_bytes: u32) -> u32 {
        match self {
            Self::Echo => request_bytes,
            Self::Fixed(bytes) => bytes,
        }
    }
}

/// What a request wants, read from its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directive {
    /// How long the response shall be.
    pub response: ResponseSize,
    /// Where in the pattern the bytes start.
    pub seed: u32,
}

impl Directive {
    /// Reads the first bytes of a request; `None` if it is too short to have
    /// them.
    pub fn parse(request: &[u8]) -> Option<Self> {
        let (response, rest) = request.split_first_chunk::<4>()?;
        let (seed, _) = rest.split_first_chunk::<4>()?;
        Some(Self {
            response: match u32::from_be_bytes(*response) {
                ECHO => ResponseSize::Echo,
                bytes => ResponseSize::Fixed(bytes),
            },
            seed: u32::from_be_bytes(*seed),
        })
    }

    fn emit(self) -> [u8; 8] {
        let response = match self.response {
            ResponseSize::Echo => ECHO,
            ResponseSize::Fixed(bytes) => bytes,
        };
        let (mut bytes, seed) = ([0; 8], self.seed.to_be_bytes());
        bytes[..4].copy_from_slice(&response.to_be_bytes());
        bytes[4..].copy_from_slice(&seed);
        bytes
    }

    /// Makes a message of `bytes` that starts with this directive: a request,
    /// or a response of another length than its request.
    pub fn message(self, bytes: u32) -> Vec<u8> {
        let length = bytes as usize;
        let mut message = Vec::with_capacity(length);
        let head = self.emit();
        message.extend_from_slice(&head[..length.min(head.len())]);
        while message.len() < length {
            let run = pattern_run(self.seed, message.len());
            let take = run.len().min(length - message.len());
            message.extend_from_slice(&run[..take]);
        }
        message
    }

    /// Checks a response to a request of `request_bytes` with this directive.
    /// The text says what differs first.
    pub fn verify(self, request_bytes: u32, response: &Message) -> Result<(), String> {
        let wanted_bytes = self.response.bytes_for(request_bytes) as usize;
        let found_bytes = response.len();
        if found_bytes != wanted_bytes {
            return Err(format!("{found_bytes} B instead of {wanted_bytes} B"));
        }
        let head = self.emit();
        let mut offset = 0;
        for piece in response.chunks() {
            let mut rest = &piece[..];
            while !rest.is_empty() {
                let wanted = match head.get(offset..) {
                    Some(left) if !left.is_empty() => left,
                    _ => pattern_run(self.seed, offset),
                };
                let take = wanted.len().min(rest.len());
                if rest[..take] != wanted[..take] {
                    let at = (0..take).find(|&i| rest[i] != wanted[i]).unwrap_or(0);
                    return Err(format!(
                        "byte {} of {found_bytes} is {:#04x} instead of {:#04x}",
                        offset + at,
                        rest[at],
                        wanted[at]
                    ));
                }
                rest = &rest[take..];
                offset += take;
            }
        }
        Ok(())
    }
}

/// What an echo server answers.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// The request itself.
    Echo,
    /// This.
    Made(Vec<u8>),
}

/// What an echo server answers to a request that begins with `head` (its first
/// 8 bytes are enough): the request itself, or a message of the length it asks
/// for. A request too short to ask is echoed. `None` if the length is 0 or
/// above `limit_bytes`.
pub fn answer_to(head: &[u8], limit_bytes: u32) -> Option<Answer> {
    match Directive::parse(head) {
        None
        | Some(Directive {
            response: ResponseSize::Echo,
            ..
        }) => Some(Answer::Echo),
        Some(
            directive @ Directive {
                response: ResponseSize::Fixed(bytes),
                ..
            },
        ) => (bytes > 0 && bytes <= limit_bytes).then(|| Answer::Made(directive.message(bytes))),
    }
}

/// The response to `request`, as [`answer_to`] has it.
pub fn response_to(request: Vec<u8>, limit_bytes: u32) -> Option<Vec<u8>> {
    Some(match answer_to(&request, limit_bytes)? {
        Answer::Echo => request,
        Answer::Made(response) => response,
    })
}

/// The bytes of the pattern for `offset` of a message, up to where it repeats.
fn pattern_run(seed: u32, offset: usize) -> &'static [u8] {
    static PATTERN: OnceLock<Vec<u8>> = OnceLock::new();
    let pattern = PATTERN.get_or_init(|| {
        let mut bytes = vec![0; PATTERN_BYTES];
        Pcg64Mcg::seed_from_u64(0x486f_6d61).fill_bytes(&mut bytes);
        bytes
    });
    &pattern[(seed as usize + offset) % PATTERN_BYTES..]
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    const ECHOED: Directive = Directive {
        response: ResponseSize::Echo,
        seed: 77,
    };

    #[test]
    fn parse__reads_what_message_wrote() {
        for directive in [
            ECHOED,
            Directive {
                response: ResponseSize::Fixed(12),
                seed: u32::MAX,
            },
        ] {
            for bytes in [8, 9, 100, 3_000_000] {
                let message = directive.message(bytes);
                assert_eq!(message.len(), bytes as usize);
                assert_eq!(Directive::parse(&message), Some(directive));
            }
        }
        assert_eq!(Directive::parse(&[0; 7]), None);
    }

    fn in_pieces(bytes: &[u8], piece_bytes: usize) -> Message {
        let pieces = bytes.chunks(piece_bytes);
        pieces.map(|piece| piece.to_vec().into()).collect()
    }

    #[test]
    fn verify__accepts_pieces_of_any_length() {
        let message = ECHOED.message(2_500_000);
        for piece_bytes in [3, 1400, 65_536, 2_500_000] {
            let pieces = in_pieces(&message, piece_bytes);
            assert_eq!(ECHOED.verify(2_500_000, &pieces), Ok(()));
        }
        let fixed = Directive {
            response: ResponseSize::Fixed(5),
            seed: 1,
        };
        assert_eq!(fixed.verify(100, &fixed.message(5).into()), Ok(()));
    }

    #[test]
    fn response_to__echo_fixed_and_refused() {
        let echoed = ECHOED.message(300);
        assert_eq!(response_to(echoed.clone(), 1_000), Some(echoed));
        assert_eq!(response_to(vec![1, 2, 3], 1_000), Some(vec![1, 2, 3]));
        let fixed = |bytes| Directive {
            response: ResponseSize::Fixed(bytes),
            seed: 5,
        };
        let response = response_to(fixed(900).message(20), 1_000).unwrap();
        assert_eq!(fixed(900).verify(20, &response.into()), Ok(()));
        assert_eq!(response_to(fixed(1_001).message(20), 1_000), None);
        assert_eq!(response_to(fixed(0).message(20), 1_000), None);
    }

    #[test]
    fn verify__finds_a_wrong_byte_a_swap_and_a_wrong_length() {
        let mut message = ECHOED.message(100_000);
        message[70_001] ^= 1;
        let problem = ECHOED.verify(100_000, &message.into()).unwrap_err();
        assert!(problem.starts_with("byte 70001 of 100000"), "{problem}");

        let message = ECHOED.message(4_200);
        let swapped = [&message[1400..2800], &message[..1400], &message[2800..]].concat();
        let swapped = in_pieces(&swapped, 1400);
        assert!(ECHOED.verify(4_200, &swapped).is_err());
        let message = Message::from(message);
        assert!(ECHOED.verify(4_201, &message).is_err());
        let other = Directive { seed: 78, ..ECHOED };
        assert!(other.verify(4_200, &message).is_err());
    }
}
