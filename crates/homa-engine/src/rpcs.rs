//! What the engine keeps for each RPC of the core, at the same index: the
//! bytes of its two messages, and whom it concerns.

use std::task::Waker;

use homa_core::{Kind, PeerHandle, RpcHandle};

use crate::assembly::Assembly;
use crate::calls::CallKey;
use crate::outgoing::Outgoing;

pub(crate) struct RpcEntry {
    pub(crate) rpc: RpcHandle,
    pub(crate) peer: PeerHandle,
    pub(crate) outgoing: Option<Outgoing>,
    pub(crate) incoming: Option<Assembly>,
    pub(crate) role: Role,
}

pub(crate) enum Role {
    Client(CallKey),
    Server(Service),
}

/// A request of another endpoint.
pub(crate) struct Service {
    pub(crate) kind: Kind,
    /// The own port it came to.
    pub(crate) port: u16,
    pub(crate) stage: ServiceStage,
    /// Who wants to know that nobody waits for the response any more.
    pub(crate) waker: Option<Waker>,
    /// Bytes of the response, charged to its peer.
    pub(crate) response_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServiceStage {
    /// Not complete.
    Arriving,
    /// Complete; no listener has taken it.
    Queued,
    /// The application works on it.
    InService,
    /// The same, and its client is gone.
    Cancelled,
    /// The response is under way.
    Answered,
}

#[derive(Default)]
pub(crate) struct Rpcs {
    entries: Vec<Option<RpcEntry>>,
    servers: u32,
}

impl Rpcs {
    /// Requests of others that have not ended.
    pub(crate) fn servers(&self) -> u32 {
        self.servers
    }

    pub(crate) fn insert(&mut self, entry: RpcEntry) -> Option<RpcEntry> {
        let index = entry.rpc.index() as usize;
        if self.entries.len() <= index {
            self.entries.resize_with(index + 1, || None);
        }
        let old = self.entries.get_mut(index)?.take();
        debug_assert!(old.is_none(), "an RPC that ended without a word");
        self.servers -= u32::from(old.as_ref().is_some_and(RpcEntry::is_server));
        self.servers += u32::from(entry.is_server());
        if let Some(place) = self.entries.get_mut(index) {
            *place = Some(entry);
        }
        old
    }

    pub(crate) fn get(&self, rpc: RpcHandle) -> Option<&RpcEntry> {
        self.entries
            .get(rpc.index() as usize)?
            .as_ref()
            .filter(|entry| entry.rpc == rpc)
    }

    pub(crate) fn get_mut(&mut self, rpc: RpcHandle) -> Option<&mut RpcEntry> {
        self.entries
            .get_mut(rpc.index() as usize)?
            .as_mut()
            .filter(|entry| entry.rpc == rpc)
    }

    pub(crate) fn service_mut(&mut self, rpc: RpcHandle) -> Option<&mut Service> {
        match &mut self.get_mut(rpc)?.role {
            Role::Server(service) => Some(service),
            Role::Client(_) => None,
        }
    }

    pub(crate) fn remove(&mut self, rpc: RpcHandle) -> Option<RpcEntry> {
        let place = self.entries.get_mut(rpc.index() as usize)?;
        if place.as_ref()?.rpc != rpc {
            return None;
        }
        let entry = place.take()?;
        self.servers -= u32::from(entry.is_server());
        Some(entry)
    }

    /// All requests of others.
    pub(crate) fn server_handles(&self) -> Vec<RpcHandle> {
        self.entries
            .iter()
            .flatten()
            .filter(|entry| entry.is_server())
            .map(|entry| entry.rpc)
            .collect()
    }
}

impl RpcEntry {
    fn is_server(&self) -> bool {
        matches!(self.role, Role::Server(_))
    }
}
