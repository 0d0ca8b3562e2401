//! Why own sends failed, kept until somebody asks.

use std::net::SocketAddr;
use std::sync::Mutex;

use super::lock;
use crate::counters::Cell;
use crate::{NetworkError, NetworkErrorKind};

/// Most errors that wait; more are counted only. An engine asks after every
/// send that dropped something, so one batch's worth of peers is plenty.
const LIMIT: usize = 64;
/// Bytes kept of the packet: a whole control header, or DATA's.
const QUOTED_BYTES: usize = 64;

#[derive(Clone, Copy)]
struct OwnError {
    remote: SocketAddr,
    kind: NetworkErrorKind,
    quoted: [u8; QUOTED_BYTES],
    quoted_length: usize,
}

/// A bounded list, allocated once.
pub(crate) struct OwnErrors(Mutex<Vec<OwnError>>);

impl OwnErrors {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Vec::with_capacity(LIMIT)))
    }

    pub(crate) fn push(
        &self,
        remote: SocketAddr,
        kind: NetworkErrorKind,
        packet: &[u8],
        lost: &Cell,
    ) {
        let mut list = lock(&self.0);
        if list.len() == LIMIT {
            lost.increment();
            return;
        }
        let quoted_length = packet.len().min(QUOTED_BYTES);
        let mut quoted = [0; QUOTED_BYTES];
        quoted[..quoted_length].copy_from_slice(&packet[..quoted_length]);
        list.push(OwnError {
            remote,
            kind,
            quoted,
            quoted_length,
        });
    }

    /// Whether none waits.
    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.0).is_empty()
    }

    /// Reports and forgets all, the newest first. Not locked while reporting.
    pub(crate) fn drain(&self, report: &mut dyn FnMut(NetworkError<'_>)) {
        for _ in 0..LIMIT {
            let Some(error) = lock(&self.0).pop() else {
                return;
            };
            report(NetworkError {
                remote: error.remote,
                kind: error.kind,
                quoted: &error.quoted[..error.quoted_length],
            });
        }
    }
}
