//! What the host's applications want: requests, responses, cancellation, and
//! the events they are told (`docs/protocol.md` §4, §8).

use core::fmt;

use homa_wire::{AbortCode, Body, Features, RpcId};

use crate::config::{Extensions, STANDARD_MESSAGE_BYTES, Settings};
use crate::counters::DropReason;
use crate::endpoint::{Endpoint, NewRpc, Role, Verdict};
use crate::features::needed;
use crate::mechanism::Mechanisms;
use crate::outgoing::Outgoing;
use crate::peer::{Peer, PeerHandle};
use crate::rpc::{Client, Ending, Failure, Kind, Notice, Phase, RpcHandle};
use crate::time::Time;
use crate::tombstone::Epitaph;

/// A request to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The port the response comes to; not 0.
    pub local_port: u16,
    /// The server's port; not 0.
    pub remote_port: u16,
    /// Bytes of the request, 1 up to [`crate::Settings::max_message_bytes`].
    pub length: u32,
    /// Whether there is to be a response.
    pub kind: Kind,
}

/// Why a request cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestError {
    /// A message has at least one byte.
    Empty,
    /// The message is too long.
    TooLong {
        /// The most bytes that this peer and this endpoint allow.
        most: u32,
    },
    /// Port 0 is not a port.
    PortZero,
    /// Too many RPCs: retry when some have ended.
    Full,
    /// The peer's handle is not valid (any more).
    UnknownPeer,
    /// The peer does not know one-way messages, or extensions are off.
    Unsupported,
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a message has at least one byte"),
            Self::TooLong { most } => write!(f, "the message is longer than {most} bytes"),
            Self::PortZero => f.write_str("port 0 is not a port"),
            Self::Full => f.write_str("too many RPCs are outstanding"),
            Self::UnknownPeer => f.write_str("the peer is not known any more"),
            Self::Unsupported => f.write_str("the peer does not accept one-way messages"),
        }
    }
}

impl core::error::Error for RequestError {}

/// Why a response cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RespondError {
    /// A message has at least one byte.
    Empty,
    /// The message is too long.
    TooLong {
        /// The most bytes that this peer and this endpoint allow.
        most: u32,
    },
    /// The RPC has a response already.
    Answered,
    /// The request has not been taken yet, or this is no server RPC.
    NotInService,
    /// The RPC is over, or its client is gone: nobody waits for the response.
    Gone,
}

impl fmt::Display for RespondError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("a message has at least one byte"),
            Self::TooLong { most } => write!(f, "the message is longer than {most} bytes"),
            Self::Answered => f.write_str("the request has been answered already"),
            Self::NotInService => f.write_str("there is no request to answer"),
            Self::Gone => f.write_str("the client no longer waits for the response"),
        }
    }
}

impl core::error::Error for RespondError {}

/// Something the host is told, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A request is complete. Hand it to the application, call
    /// [`Endpoint::taken`], and later [`Endpoint::respond`].
    Request {
        /// The RPC.
        rpc: RpcHandle,
        /// Who asks.
        peer: PeerHandle,
        /// The id as this server knows it.
        id: RpcId,
        /// The port it came to.
        local_port: u16,
        /// The client's port.
        remote_port: u16,
        /// Bytes of the request.
        length: u32,
        /// A one-way message has no response.
        kind: Kind,
    },
    /// The response of a call is complete. Call [`Endpoint::taken`].
    Response {
        /// The RPC.
        rpc: RpcHandle,
        /// Bytes of the response.
        length: u32,
    },
    /// A one-way message was delivered; the RPC is over.
    Delivered {
        /// The RPC.
        rpc: RpcHandle,
    },
    /// A call or one-way message failed; the RPC is over.
    Failed {
        /// The RPC.
        rpc: RpcHandle,
        /// Why.
        failure: Failure,
    },
    /// A server RPC's client is gone; the application may stop working on it.
    /// It still ends with [`Endpoint::respond`] or [`Endpoint::abort`].
    Cancelled {
        /// The RPC.
        rpc: RpcHandle,
    },
    /// A server RPC is over: its messages may be dropped.
    Released {
        /// The RPC.
        rpc: RpcHandle,
    },
}

impl Endpoint {
    /// Starts an RPC. The host keeps the message until the RPC is over.
    pub fn request(
        &mut self,
        now: Time,
        to: PeerHandle,
        request: Request,
    ) -> Result<RpcHandle, RequestError> {
        if request.length == 0 {
            return Err(RequestError::Empty);
        }
        if request.local_port == 0 || request.remote_port == 0 {
            return Err(RequestError::PortZero);
        }
        let extensions = self.settings.extensions == Extensions::On;
        let peer = self.peers.get(to.0).ok_or(RequestError::UnknownPeer)?;
        let most = most_towards(peer, &self.settings);
        if request.length > most {
            return Err(RequestError::TooLong { most });
        }
        let needs = needed(request.length, request.kind);
        if request.kind == Kind::OneWay
            && (!extensions
                || peer
                    .features
                    .is_some_and(|features| !features.contains(needs)))
        {
            return Err(RequestError::Unsupported);
        }
        let unscheduled = self.settings.unscheduled_bytes;
        let outgoing = Outgoing::new(request.length, unscheduled, payload_bytes(peer));
        let held = needs != Features::NONE && peer.features.is_none();
        let sendable = outgoing.is_sendable() && !held;
        let age = self.next_age;
        let new = NewRpc {
            id: RpcId::default(),
            hash: 0,
            peer: to.index(),
            local_port: request.local_port,
            remote_port: request.remote_port,
            kind: request.kind,
            outgoing,
        };
        let handle = self
            .create(now, &new, Role::Client)
            .ok_or(RequestError::Full)?;
        let slot = handle.index();
        self.counters.requests_started += 1;
        self.timers.lower(slot, now + self.settings.resend_ns);
        if held {
            self.hold(slot);
        }
        if let Some(rpc) = self.rpcs.slot_mut(slot) {
            rpc.silence.arrived_by_then = self.counters.received_bytes;
            if sendable {
                rpc.lane = self.sending.set(slot, request.length, request.length, age);
            }
        }
        Ok(RpcHandle(handle))
    }

    /// The first `bytes` bytes of an outgoing message exist now. Without this
    /// call all of them do; with it, from 0 on, only those.
    pub fn ready(&mut self, rpc: RpcHandle, bytes: u32) {
        if let Some(entry) = self.rpcs.get_mut(rpc.0)
            && entry.phase != Phase::Ended
        {
            entry.outgoing.ready = bytes.min(entry.outgoing.length);
            self.review_sending(rpc.index());
        }
    }

    /// The application has taken the incoming message: a request is in service
    /// from now on; a call is over, and its ack is owed.
    pub fn taken(&mut self, now: Time, rpc: RpcHandle) {
        let slot = rpc.index();
        let Some(entry) = self.rpcs.get_mut(rpc.0) else {
            return;
        };
        if entry.phase != Phase::Incoming || !entry.incoming.is_complete() {
            return;
        }
        if entry.is_client() {
            self.owe_ack(slot);
            self.discard(slot);
            return;
        }
        match entry.kind {
            Kind::Call => {
                entry.phase = Phase::InService;
                self.release_memory(slot);
            }
            Kind::OneWay => {
                self.tell(
                    slot,
                    Body::Ack(homa_wire::Ack::default(), self.capabilities),
                );
                self.bury(now, slot, Epitaph::Delivered);
                self.discard(slot);
            }
        }
    }

    /// Answers a request. On [`RespondError::Gone`] the RPC is over.
    pub fn respond(&mut self, now: Time, rpc: RpcHandle, length: u32) -> Result<(), RespondError> {
        let slot = rpc.index();
        let entry = self.rpcs.get_mut(rpc.0).ok_or(RespondError::Gone)?;
        match (entry.is_client(), entry.phase) {
            (false, Phase::InService) => {}
            (false, Phase::Outgoing) => return Err(RespondError::Answered),
            (_, Phase::Ended) => return Err(RespondError::Gone),
            _ => return Err(RespondError::NotInService),
        }
        if length == 0 {
            return Err(RespondError::Empty);
        }
        let peer = self.peers.slot(entry.peer).ok_or(RespondError::Gone)?;
        let most = most_towards(peer, &self.settings);
        if length > most {
            return Err(RespondError::TooLong { most });
        }
        if entry.client == Client::Gone {
            self.bury(now, slot, Epitaph::Silent);
            self.discard(slot);
            return Err(RespondError::Gone);
        }
        let mut unscheduled = self.settings.unscheduled_bytes;
        if (1..32).contains(&entry.response_limit_log2)
            && self.settings.mechanisms.has(Mechanisms::INCAST_LIMIT)
            && self.capabilities.is_some()
        {
            let limit = 1 << entry.response_limit_log2;
            if limit < unscheduled && limit < length {
                unscheduled = limit;
                self.counters.response_limits_kept += 1;
            }
        }
        self.counters.responses_started += 1;
        entry.phase = Phase::Outgoing;
        entry.outgoing = Outgoing::new(length, unscheduled, payload_bytes(peer));
        entry.silence.heard(now);
        if entry.outgoing.is_sendable() {
            entry.lane = self.sending.set(slot, length, length, entry.age);
        }
        self.timers.lower(slot, now + self.settings.timeout_ns);
        Ok(())
    }

    /// Ends an RPC at the host's wish and tells the other end: a client's call
    /// as cancelled, a server's with the given code. The RPC is over when this
    /// returns; there is no event.
    pub fn abort(&mut self, now: Time, rpc: RpcHandle, code: AbortCode) {
        let slot = rpc.index();
        let Some(entry) = self.rpcs.get(rpc.0) else {
            return;
        };
        let (client, phase, peer) = (entry.is_client(), entry.phase, entry.peer);
        let heard_of = entry.id.0 != 0 && phase != Phase::Ended;
        let waits = entry.client == Client::Waiting;
        // The reference module frees its state for an RPC_UNKNOWN, so that is
        // what a server of unknown kind is sent.
        let knows_abort = self.peers.slot(peer).is_some_and(|peer| {
            if client {
                peer.has(Features::ABORT)
            } else {
                peer.may_know_abort()
            }
        });
        let tells = self.uses(Mechanisms::ABORT) && self.capabilities.is_some() && heard_of;
        if !client && phase != Phase::Ended {
            let epitaph = if tells {
                Epitaph::Aborted(code)
            } else {
                Epitaph::Silent
            };
            self.bury(now, slot, epitaph);
        }
        match (client, knows_abort) {
            (true, true) if tells => self.tell(slot, Body::Abort(AbortCode::Cancelled)),
            (true, false) if tells => self.tell(slot, Body::RpcUnknown(self.capabilities)),
            (false, true) if tells && waits => self.tell(slot, Body::Abort(code)),
            _ => {}
        }
        self.discard(slot);
    }

    /// A GRANT arrives.
    pub(crate) fn grant(
        &mut self,
        now: Time,
        rpc: Option<u32>,
        grant: homa_wire::Grant,
    ) -> Result<Verdict, DropReason> {
        let highest = self.settings.control_priority();
        let slot = rpc.ok_or(DropReason::UnknownRpc)?;
        let rpc = self.rpcs.slot_mut(slot).ok_or(DropReason::UnknownRpc)?;
        if rpc.phase != Phase::Outgoing {
            return Err(DropReason::WrongState);
        }
        rpc.silence.heard(now);
        let message = &mut rpc.outgoing;
        message.granted = message.granted.max(grant.offset.min(message.length));
        message.priority = grant.priority.min(highest);
        self.review_sending(slot);
        Ok(Verdict::Control)
    }

    /// The next thing the host is to be told.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        if self.notices.is_empty() {
            return None;
        }
        self.next_event()
    }

    fn next_event(&mut self) -> Option<Event> {
        loop {
            let slot = self.notices.pop()?;
            // What it was queued for may be over.
            let rpc = self.rpcs.slot(slot);
            if rpc.is_some_and(|rpc| rpc.notice != Notice::None) {
                return self.event(slot);
            }
        }
    }

    /// What the host is to be told about an RPC.
    #[inline]
    fn event(&mut self, slot: u32) -> Option<Event> {
        let (handle, entry) = self.rpcs.entry_mut(slot)?;
        let rpc = RpcHandle(handle);
        match core::mem::replace(&mut entry.notice, Notice::None) {
            Notice::None => None,
            Notice::Complete if entry.is_client() => Some(Event::Response {
                rpc,
                length: entry.incoming.length,
            }),
            Notice::Complete => Some(Event::Request {
                rpc,
                peer: PeerHandle(self.peers.handle(entry.peer)?),
                id: entry.id,
                local_port: entry.local_port,
                remote_port: entry.remote_port,
                length: entry.incoming.length,
                kind: entry.kind,
            }),
            Notice::Cancelled => Some(Event::Cancelled { rpc }),
            Notice::Ended(ending) => {
                self.rpcs.free_slot(slot);
                Some(match ending {
                    Ending::Failed(failure) => Event::Failed { rpc, failure },
                    Ending::Delivered => Event::Delivered { rpc },
                    Ending::Released => Event::Released { rpc },
                })
            }
        }
    }
}

/// The most bytes that a message to this peer may have.
fn most_towards(peer: &Peer, settings: &Settings) -> u32 {
    let most = settings.max_message_bytes;
    let large = settings.extensions == Extensions::On
        && peer
            .features
            .is_none_or(|features| features.contains(Features::LARGE_MESSAGES));
    if large {
        most
    } else {
        most.min(STANDARD_MESSAGE_BYTES)
    }
}

/// Payload of a full packet to this peer.
fn payload_bytes(peer: &Peer) -> u32 {
    peer.packet_bytes
        .saturating_sub(homa_wire::DATA_HEADER_LENGTH as u32)
        .max(1)
}
