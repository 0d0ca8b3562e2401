//! The kernel's counters of queueing disciplines, over netlink: one question,
//! answered for all devices of the namespace that the socket was opened in.
//! `tc -s` tells the same, but takes a process each time.

use std::io;
use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

/// Numbers of linux/netlink.h, linux/rtnetlink.h and linux/gen_stats.h.
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const RTM_NEWQDISC: u16 = 36;
const RTM_GETQDISC: u16 = 38;
const NLM_F_REQUEST_DUMP: u16 = 0x301;
const TCA_STATS2: u16 = 7;
const TCA_STATS_BASIC: u16 = 1;
const TCA_STATS_QUEUE: u16 = 3;
/// Above this bit an attribute's type has flags.
const TYPE_MASK: u16 = 0x3fff;
const MESSAGE_HEADER_BYTES: usize = 16;
const TC_HEADER_BYTES: usize = 20;
const ATTRIBUTE_HEADER_BYTES: usize = 4;
/// The kernel puts no more into one answer.
const ANSWER_BYTES: usize = 32 << 10;

/// The counters of one queueing discipline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueCounters {
    pub(crate) device: u32,
    /// The class above it.
    pub(crate) parent: u32,
    /// Since it was made.
    pub(crate) bytes: u64,
    /// Since it was made.
    pub(crate) packets: u32,
    /// Since it was made.
    pub(crate) drops: u32,
    /// Bytes in it now.
    pub(crate) backlog: u32,
}

pub(crate) struct QueueReader {
    socket: OwnedFd,
    sequence: u32,
    answer: Vec<u8>,
}

impl QueueReader {
    /// Reads the queues of the calling thread's namespace.
    pub(crate) fn open() -> io::Result<Self> {
        // No protocol is number 0, which is NETLINK_ROUTE.
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        Ok(Self {
            socket,
            sequence: 0,
            answer: vec![0; ANSWER_BYTES],
        })
    }

    /// All queues as they are now.
    pub(crate) fn read(&mut self, mut each: impl FnMut(&QueueCounters)) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let question = question(self.sequence);
        send(&self.socket, &question, SendFlags::empty())?;
        loop {
            let (length, _) = recv(&self.socket, &mut self.answer[..], RecvFlags::empty())?;
            let answer = self.answer.get(..length).unwrap_or_default();
            for message in messages(answer) {
                if message.sequence != self.sequence {
                    continue;
                }
                match message.kind {
                    NLMSG_DONE => return Ok(()),
                    NLMSG_ERROR => {
                        let code = u32_at(message.body, 0).map_or(0, u32::cast_signed);
                        return Err(io::Error::from_raw_os_error(code.wrapping_neg()));
                    }
                    RTM_NEWQDISC => {
                        if let Some(counters) = counters(message.body) {
                            each(&counters);
                        }
                    }
                    _ => {}
                }
            }
        }
    }
}

/// A request for all queueing disciplines of all devices.
fn question(sequence: u32) -> Vec<u8> {
    let length = MESSAGE_HEADER_BYTES + TC_HEADER_BYTES;
    let mut question = Vec::with_capacity(length);
    question.extend((length as u32).to_ne_bytes());
    question.extend(RTM_GETQDISC.to_ne_bytes());
    question.extend(NLM_F_REQUEST_DUMP.to_ne_bytes());
    question.extend(sequence.to_ne_bytes());
    question.resize(length, 0);
    question
}

struct NetlinkMessage<'a> {
    kind: u16,
    sequence: u32,
    body: &'a [u8],
}

/// Splits an answer at its lengths, which count from 4 to 4 bytes.
fn messages(mut answer: &[u8]) -> impl Iterator<Item = NetlinkMessage<'_>> {
    std::iter::from_fn(move || {
        let length = u32_at(answer, 0)? as usize;
        let message = NetlinkMessage {
            kind: u16_at(answer, 4)?,
            sequence: u32_at(answer, 8)?,
            body: answer.get(MESSAGE_HEADER_BYTES..length)?,
        };
        answer = answer.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    })
}

fn attributes(mut list: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(list, 0)?);
        let kind = u16_at(list, 2)? & TYPE_MASK;
        let value = list.get(ATTRIBUTE_HEADER_BYTES..length)?;
        list = list.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    })
}

fn counters(body: &[u8]) -> Option<QueueCounters> {
    let mut counters = QueueCounters {
        device: u32_at(body, 4)?,
        parent: u32_at(body, 12)?,
        ..QueueCounters::default()
    };
    let (_, statistics) =
        attributes(body.get(TC_HEADER_BYTES..)?).find(|(kind, _)| *kind == TCA_STATS2)?;
    for (kind, value) in attributes(statistics) {
        match kind {
            TCA_STATS_BASIC => {
                counters.bytes = u64_at(value, 0)?;
                counters.packets = u32_at(value, 8)?;
            }
            TCA_STATS_QUEUE => {
                counters.backlog = u32_at(value, 4)?;
                counters.drops = u32_at(value, 8)?;
            }
            _ => {}
        }
    }
    Some(counters)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_ne_bytes(*bytes))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*bytes))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u64::from_ne_bytes(*bytes))
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = ((value.len() + ATTRIBUTE_HEADER_BYTES) as u16)
            .to_ne_bytes()
            .to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn queue_message() -> Vec<u8> {
        let mut body = vec![0; 4];
        for word in [7_u32, 0x10_0000, 0x1_0010, 2] {
            body.extend(word.to_ne_bytes());
        }
        body.extend(attribute(1, b"bfifo\0"));
        let mut basic = 1_000_000_u64.to_ne_bytes().to_vec();
        basic.extend(700_u32.to_ne_bytes());
        let queue: Vec<u8> = [3_u32, 4500, 11, 0, 0]
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        let nested = [attribute(1, &basic), attribute(3, &queue)].concat();
        body.extend(attribute(TCA_STATS2, &nested));
        body
    }

    #[test]
    fn counters__are_read() {
        assert_eq!(
            counters(&queue_message()),
            Some(QueueCounters {
                device: 7,
                parent: 0x1_0010,
                bytes: 1_000_000,
                packets: 700,
                drops: 11,
                backlog: 4500,
            })
        );
    }

    #[test]
    fn counters__of_cut_messages_are_none_or_the_same() {
        let body = queue_message();
        for length in 0..body.len() {
            let cut = counters(&body[..length]);
            assert!(cut.is_none() || cut.unwrap().device == 7);
        }
    }

    #[test]
    fn messages__end_where_lengths_are_nonsense() {
        let mut answer = question(1);
        answer.extend(question(2));
        assert_eq!(messages(&answer).count(), 2);
        answer[0] = 0;
        assert_eq!(messages(&answer).count(), 0);
    }
}
