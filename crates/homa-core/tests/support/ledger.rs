//! What was asked for, what was executed, and how it ended: the truth that
//! endpoints are compared with.

use std::collections::HashMap;

use homa_core::{Failure, Kind};

/// Names one request of the whole world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Tag(pub(crate) usize);

/// How a request ended at its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Response,
    Delivered,
    Failed(Failure),
    /// The client's application gave it up.
    Aborted,
    /// The client itself went away.
    ClientGone,
}

/// One request and what became of it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) client: usize,
    pub(crate) server: usize,
    pub(crate) length: u32,
    pub(crate) response_length: u32,
    pub(crate) kind: Kind,
    pub(crate) outcome: Option<Outcome>,
    /// (host, life) of every execution.
    pub(crate) executions: Vec<(usize, u32)>,
}

#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) entries: Vec<Entry>,
    /// (client host, life of it, RPC id at the client) → request.
    by_id: HashMap<(usize, u32, u64), Tag>,
}

impl Ledger {
    pub(crate) fn add(&mut self, entry: Entry) -> Tag {
        self.entries.push(entry);
        Tag(self.entries.len() - 1)
    }

    pub(crate) fn entry(&self, tag: Tag) -> &Entry {
        &self.entries[tag.0]
    }

    pub(crate) fn identify(&mut self, client: usize, life: u32, id: u64, tag: Tag) {
        let before = self.by_id.insert((client, life, id), tag);
        assert!(
            before.is_none_or(|before| before == tag),
            "id {id} of host {client} names two requests"
        );
    }

    /// The request with this id, of any life of the client: ids never repeat.
    pub(crate) fn find(&self, client: usize, lives: u32, id: u64) -> Option<Tag> {
        (0..=lives).find_map(|life| self.by_id.get(&(client, life, id)).copied())
    }

    pub(crate) fn executed(&mut self, tag: Tag, server: usize, life: u32) {
        let entry = &mut self.entries[tag.0];
        assert!(
            !entry.executions.contains(&(server, life)),
            "{tag:?} executed twice by host {server}, life {life}: {entry:?}"
        );
        entry.executions.push((server, life));
    }

    pub(crate) fn ended(&mut self, tag: Tag, outcome: Outcome) {
        let entry = &mut self.entries[tag.0];
        assert_eq!(entry.outcome, None, "{tag:?} ended twice, now {outcome:?}");
        entry.outcome = Some(outcome);
    }

    pub(crate) fn open(&self) -> usize {
        self.entries.iter().filter(|e| e.outcome.is_none()).count()
    }
}

/// Byte `at` of a message: differs between messages and along each of them.
pub(crate) fn byte(tag: Tag, is_response: bool, at: u32) -> u8 {
    let salt = (tag.0 as u32)
        .wrapping_mul(2)
        .wrapping_add(u32::from(is_response));
    let x = at ^ salt.wrapping_mul(0x9e37_79b1);
    (x.wrapping_mul(0x85eb_ca6b) >> 13) as u8
}

/// The whole message.
pub(crate) fn message(tag: Tag, is_response: bool, length: u32) -> Vec<u8> {
    (0..length).map(|at| byte(tag, is_response, at)).collect()
}
