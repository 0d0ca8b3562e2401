//! The calls and one-way messages of this endpoint's applications: who waits
//! for them, and how they ended. An entry outlives its RPC until the caller
//! has fetched the outcome.

use std::task::Waker;

use homa_core::{Kind, RpcHandle, Time};

use crate::CallError;

/// Names a call; a stale one names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct CallKey {
    index: u32,
    generation: u32,
}

pub(crate) struct CallEntry {
    pub(crate) kind: Kind,
    pub(crate) stage: Stage,
    /// Who waits for the outcome.
    pub(crate) waker: Option<Waker>,
    pub(crate) deadline: Option<Time>,
    /// Bytes charged to the limit of outgoing bytes.
    pub(crate) bytes: u64,
    /// Whether somebody will fetch the outcome.
    pub(crate) caller: Caller,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Under way.
    Waiting(RpcHandle),
    /// The response is here, the core still has the RPC.
    Answered(RpcHandle),
    /// A one-way message was delivered.
    Delivered,
    /// It failed.
    Failed(CallError),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    Interested,
    Gone,
}

/// All of them.
#[derive(Default)]
pub(crate) struct Calls {
    entries: Vec<(u32, Option<CallEntry>)>,
    free: Vec<u32>,
}

impl Calls {
    pub(crate) fn insert(&mut self, entry: CallEntry) -> CallKey {
        if let Some(index) = self.free.pop()
            && let Some((generation, place)) = self.entries.get_mut(index as usize)
        {
            *place = Some(entry);
            let generation = *generation;
            return CallKey { index, generation };
        }
        let index = self.entries.len() as u32;
        self.entries.push((0, Some(entry)));
        CallKey {
            index,
            generation: 0,
        }
    }

    pub(crate) fn get_mut(&mut self, key: CallKey) -> Option<&mut CallEntry> {
        match self.entries.get_mut(key.index as usize)? {
            (generation, place) if *generation == key.generation => place.as_mut(),
            _ => None,
        }
    }

    pub(crate) fn remove(&mut self, key: CallKey) -> Option<CallEntry> {
        let (generation, place) = self.entries.get_mut(key.index as usize)?;
        if *generation != key.generation {
            return None;
        }
        let entry = place.take()?;
        *generation = generation.wrapping_add(1);
        self.free.push(key.index);
        Some(entry)
    }

    /// All that there are.
    pub(crate) fn keys(&self) -> Vec<CallKey> {
        self.entries
            .iter()
            .zip(0..)
            .filter(|((_, place), _)| place.is_some())
            .map(|(&(generation, _), index)| CallKey { index, generation })
            .collect()
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    fn entry() -> CallEntry {
        CallEntry {
            kind: Kind::Call,
            stage: Stage::Delivered,
            waker: None,
            deadline: None,
            bytes: 0,
            caller: Caller::Interested,
        }
    }

    #[test]
    fn get_mut__stale_key_names_nothing() {
        let mut calls = Calls::default();
        let first = calls.insert(entry());
        assert!(calls.remove(first).is_some());
        let second = calls.insert(entry());
        assert_eq!(first.index, second.index);
        assert!(calls.get_mut(first).is_none());
        assert!(calls.remove(first).is_none());
        assert!(calls.get_mut(second).is_some());
        assert_eq!(calls.keys(), [second]);
    }
}
