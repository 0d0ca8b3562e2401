//! The client's side: calls and one-way messages, from submission to outcome.

use std::net::{IpAddr, SocketAddr};
use std::task::{Poll, Waker};

use homa_core::{Kind, PeerHandle, Request, RequestError, Time};
use homa_datapath::Path;
use homa_wire::AbortCode;

use crate::calls::{CallEntry, CallKey, Caller, Stage};
use crate::outgoing::Outgoing;
use crate::rpcs::{Role, RpcEntry};
use crate::state::{Life, State};
use crate::{CallError, Message, SubmitCause};

/// What is to be sent.
#[derive(Clone, Copy)]
pub(crate) struct Submission<'a> {
    pub(crate) to: SocketAddr,
    pub(crate) message: &'a Message,
    pub(crate) kind: Kind,
    pub(crate) local_port: Option<u16>,
    pub(crate) deadline: Option<Time>,
    pub(crate) room: Room,
}

/// Whether there is room for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// To be seen.
    Ask,
    /// Reserved before, for so many bytes.
    Reserved(u64),
}

impl State {
    /// Starts a call. On an error nothing has changed; a reservation stays the
    /// caller's.
    pub(crate) fn submit(
        &mut self,
        now: Time,
        submission: &Submission<'_>,
    ) -> Result<CallKey, SubmitCause> {
        let Submission { to, kind, room, .. } = *submission;
        let length = self.check(now, submission)?;
        let local_port = submission.local_port.unwrap_or(self.own.port);
        if local_port != self.own.port && !self.listeners.contains(local_port) {
            return Err(SubmitCause::LocalPort);
        }
        let peer = self.server(now, to)?;
        let bytes = match room {
            Room::Reserved(bytes) => bytes,
            Room::Ask if self.admission.take(u64::from(length)) => u64::from(length),
            Room::Ask => {
                self.counters.calls_not_taken += 1;
                return Err(SubmitCause::Full);
            }
        };
        let request = Request {
            local_port,
            remote_port: to.port(),
            length,
            kind,
        };
        let rpc = match self.core.request(now, peer, request) {
            Ok(rpc) => rpc,
            Err(error) => {
                if room == Room::Ask {
                    self.admission.release(bytes, &mut self.wakes);
                }
                return Err(cause(error));
            }
        };
        self.peers.asked(peer);
        let key = self.calls.insert(CallEntry {
            kind,
            stage: Stage::Waiting(rpc),
            waker: None,
            deadline: submission.deadline,
            bytes,
            caller: Caller::Interested,
        });
        if let Some(at) = submission.deadline {
            self.deadlines.set(at, key);
        }
        let old = self.rpcs.insert(RpcEntry {
            rpc,
            peer,
            outgoing: Some(Outgoing::new(submission.message)),
            incoming: None,
            role: Role::Client(key),
        });
        self.garbage.extend(old);
        self.waiting_calls += 1;
        self.counters.calls_started += 1;
        Ok(key)
    }

    fn check(&self, now: Time, submission: &Submission<'_>) -> Result<u32, SubmitCause> {
        match self.life {
            Life::Open => {}
            // What is in service may need calls to be answered.
            Life::Draining if self.rpcs.servers() > 0 => {}
            Life::Draining | Life::Closed => return Err(SubmitCause::ShutDown),
        }
        if submission.deadline.is_some_and(|at| at <= now) {
            return Err(SubmitCause::DeadlineExceeded);
        }
        let most = self.core.settings().max_message_bytes;
        let length = u32::try_from(submission.message.len())
            .ok()
            .filter(|length| *length <= most)
            .ok_or(SubmitCause::TooLong { most })?;
        if length == 0 {
            return Err(SubmitCause::Empty);
        }
        if submission.to.port() == 0 {
            return Err(SubmitCause::PortZero);
        }
        Ok(length)
    }

    /// The peer that a call to an address goes to.
    fn server(&mut self, now: Time, to: SocketAddr) -> Result<PeerHandle, SubmitCause> {
        let key = self.peers.key(to);
        if let Some(peer) = self.peers.server(key) {
            self.refresh_packet(now, peer);
            return Ok(peer);
        }
        let single = match key.ip() {
            IpAddr::V4(ip) => !ip.is_multicast() && !ip.is_broadcast(),
            IpAddr::V6(ip) => !ip.is_multicast(),
        };
        let family = |address: &SocketAddr| address.is_ipv4() == key.is_ipv4();
        if !single || !self.own.addresses.iter().any(family) {
            return Err(SubmitCause::Address);
        }
        self.add_peer(now, Path::to(key))
            .ok_or(SubmitCause::TooManyPeers)
    }

    /// The outcome of a call, or a promise to wake.
    pub(crate) fn poll_call(
        &mut self,
        now: Time,
        key: CallKey,
        waker: &Waker,
    ) -> Poll<Result<Message, CallError>> {
        let Some(entry) = self.calls.get_mut(key) else {
            return Poll::Ready(Err(CallError::Cancelled));
        };
        let outcome = match entry.stage {
            Stage::Waiting(_) => {
                match &mut entry.waker {
                    Some(known) => known.clone_from(waker),
                    none => *none = Some(waker.clone()),
                }
                return Poll::Pending;
            }
            Stage::Answered(rpc) => {
                let bytes = entry.bytes;
                let message = self.take_incoming(rpc);
                self.core.taken(now, rpc);
                self.clear(rpc);
                self.admission.release(bytes, &mut self.wakes);
                message.ok_or(CallError::NoMemory)
            }
            Stage::Delivered => Ok(Message::new()),
            Stage::Failed(error) => Err(error),
        };
        self.calls.remove(key);
        Poll::Ready(outcome)
    }

    /// Nobody will ask for the outcome any more. A call is cancelled; a
    /// one-way message goes on.
    pub(crate) fn forget_call(&mut self, now: Time, key: CallKey) {
        let Some(entry) = self.calls.get_mut(key) else {
            return;
        };
        match (entry.stage, entry.kind) {
            (Stage::Waiting(_), Kind::OneWay) => {
                entry.caller = Caller::Gone;
                entry.waker = None;
            }
            (Stage::Waiting(_), Kind::Call) => self.cancel_call(now, key),
            (Stage::Answered(rpc), _) => {
                let bytes = entry.bytes;
                // The server may forget its response.
                self.core.taken(now, rpc);
                self.clear(rpc);
                self.admission.release(bytes, &mut self.wakes);
                self.calls.remove(key);
            }
            (Stage::Delivered | Stage::Failed(_), _) => {
                self.calls.remove(key);
            }
        }
    }

    /// Ends a call at its caller's wish; the server is told.
    pub(crate) fn cancel_call(&mut self, now: Time, key: CallKey) {
        if let Some(entry) = self.calls.get_mut(key) {
            entry.caller = Caller::Gone;
            entry.waker = None;
            if let Stage::Waiting(_) = entry.stage {
                self.counters.calls_cancelled += 1;
                self.fail_call(now, key, CallError::Cancelled);
            } else {
                self.forget_call(now, key);
            }
        }
    }

    /// Ends a call that is under way with an error of ours.
    pub(crate) fn fail_call(&mut self, now: Time, key: CallKey, error: CallError) {
        let Some(entry) = self.calls.get_mut(key) else {
            return;
        };
        let Stage::Waiting(rpc) = entry.stage else {
            return;
        };
        self.core.abort(now, rpc, AbortCode::Cancelled);
        self.clear(rpc);
        self.call_over(key, Stage::Failed(error));
    }

    /// A call that was under way is over, or its response is here.
    pub(crate) fn call_over(&mut self, key: CallKey, stage: Stage) {
        let Some(entry) = self.calls.get_mut(key) else {
            return;
        };
        if !matches!(entry.stage, Stage::Waiting(_)) {
            return;
        }
        entry.stage = stage;
        let deadline = entry.deadline.take();
        self.wakes.extend(entry.waker.take());
        let (bytes, caller) = (entry.bytes, entry.caller);
        self.waiting_calls = self.waiting_calls.saturating_sub(1);
        if let Some(at) = deadline {
            self.deadlines.remove(at, key);
        }
        if !matches!(stage, Stage::Answered(_)) {
            self.admission.release(bytes, &mut self.wakes);
            if caller == Caller::Gone {
                self.calls.remove(key);
            }
        }
        if let Stage::Failed(error) = stage {
            tracing::debug!(%error, "call failed");
        }
        self.check_drained();
    }

    /// Ends calls whose deadline has passed, at most `most`.
    pub(crate) fn expire_calls(&mut self, now: Time, most: u32) {
        for _ in 0..most {
            let Some(key) = self.deadlines.pop(now) else {
                return;
            };
            self.counters.deadlines_exceeded += 1;
            self.fail_call(now, key, CallError::DeadlineExceeded);
        }
    }
}

fn cause(error: RequestError) -> SubmitCause {
    match error {
        RequestError::Empty => SubmitCause::Empty,
        RequestError::TooLong { most } => SubmitCause::TooLong { most },
        RequestError::PortZero => SubmitCause::PortZero,
        RequestError::UnknownPeer => SubmitCause::TooManyPeers,
        RequestError::Unsupported => SubmitCause::Unsupported,
        // `Full`, and what a later core may add.
        _ => SubmitCause::Full,
    }
}
