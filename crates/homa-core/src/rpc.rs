//! One RPC: who is at both ends, where it stands, and its two messages.
//!
//! States are those of `docs/protocol.md` §4. Role and id are one thing: the
//! id's lowest bit. A client's id is assigned when its first packet leaves, so
//! that ids grow in the order in which the server can first see them, and a
//! peer's floor (§8) never overtakes a request that waited here.

use homa_wire::{AbortCode, RpcId};

use crate::incoming::Incoming;
use crate::outgoing::Outgoing;
use crate::sending::Lane;
use crate::table::Handle;
use crate::time::Time;

/// Names an RPC of this endpoint; after the RPC has ended it names nothing,
/// and every call with it does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RpcHandle(pub(crate) Handle);

impl RpcHandle {
    /// A small number, unique among the RPCs alive: an index for tables that
    /// the host keeps beside the core's.
    pub fn index(self) -> u32 {
        self.0.index()
    }

    /// Tells RPCs apart that had the same index one after another.
    pub fn generation(self) -> u32 {
        self.0.generation()
    }
}

/// Whether a request wants a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A request that is answered by a response.
    Call,
    /// A message that is done when it is delivered.
    OneWay,
}

/// Where an RPC stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Sending: a request (client) or a response (server).
    Outgoing,
    /// Receiving, until the application has taken the message.
    Incoming,
    /// The server's application works on it.
    InService,
    /// Over, except that the host has not taken its last event.
    Ended,
}

/// Why an RPC failed, as its client is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Failure {
    /// The peer was silent for too long.
    Timeout,
    /// No server on that port: the request was not executed.
    PortClosed,
    /// No server on that port any more, as far as can be told; the request may
    /// or may not have been executed.
    ServerGone,
    /// The host cannot be reached.
    HostUnreachable,
    /// The host does not speak Homa this way.
    ProtocolUnsupported,
    /// The server refused the request.
    Refused,
    /// The server dropped the request without an answer.
    Dropped,
    /// Ended at the other end's wish.
    Cancelled,
    /// The message is longer than the peer accepts, or the peer does not know
    /// this kind of message.
    TooLarge,
    /// The peer does not have a feature that the message needs.
    Unsupported,
    /// The other endpoint is shutting down.
    ShuttingDown,
    /// The request came so late that it may have been executed before.
    Stale,
    /// The peer restarted; the request may or may not have been executed.
    PeerRestarted,
}

impl Failure {
    pub(crate) fn from_abort(code: AbortCode) -> Self {
        match code {
            AbortCode::Refused => Self::Refused,
            AbortCode::Cancelled => Self::Cancelled,
            AbortCode::TooLarge => Self::TooLarge,
            AbortCode::PortClosed => Self::PortClosed,
            AbortCode::ShuttingDown => Self::ShuttingDown,
            AbortCode::Stale => Self::Stale,
            AbortCode::Dropped | AbortCode::Other(_) => Self::Dropped,
        }
    }
}

/// How an RPC ended, and so which event the host still gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Failed(Failure),
    Delivered,
    Released,
}

/// What the host has not been told yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    None,
    /// The incoming message is complete.
    Complete,
    /// The client is gone, the application still works.
    Cancelled,
    /// It is over.
    Ended(Ending),
}

/// Whether a server RPC's client still wants the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    Waiting,
    Gone,
}

/// Whether anything but the table and its peer may know an RPC: a queue of
/// probes or of held messages, the grants, the waiting for memory, ranges of
/// its messages. Most RPCs of one packet each way meet none of these, and end
/// without asking each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ties {
    None,
    Perhaps,
}

/// Whether the index leads to an RPC: not before it has an id, and not when
/// its tombstone has taken its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Indexed {
    No,
    Yes,
}

pub(crate) struct Rpc {
    pub(crate) id: RpcId,
    /// Of peer and id: its place in the index, once it has an id.
    pub(crate) hash: u64,
    /// Slot of the peer; a peer with RPCs is never forgotten.
    pub(crate) peer: u32,
    pub(crate) local_port: u16,
    pub(crate) remote_port: u16,
    pub(crate) kind: Kind,
    pub(crate) phase: Phase,
    pub(crate) client: Client,
    pub(crate) notice: Notice,
    pub(crate) ties: Ties,
    pub(crate) indexed: Indexed,
    /// Order of creation: ties between ranks go to the older.
    pub(crate) age: u64,
    pub(crate) outgoing: Outgoing,
    /// Where the outgoing message stands among those that may send.
    pub(crate) lane: Lane,
    pub(crate) incoming: Incoming,
    pub(crate) silence: Silence,
    /// Server: the unscheduled limit that the client asked for, as log2; 0 is none.
    pub(crate) response_limit_log2: u8,
    /// Priority of the FIFO grant that is due, instead of that by rank.
    pub(crate) grant_priority: Option<u8>,
}

/// Whose packet an error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SaidOf {
    ThisRpc,
    Another,
}

/// What the timers of one RPC know (`docs/protocol.md` §14, §16).
pub(crate) struct Silence {
    /// When the RPC was last heard of, or last had no reason to be.
    pub(crate) since: Time,
    /// When it was last asked about.
    pub(crate) probed_at: Time,
    /// Bytes of all messages that had arrived here by the later of these.
    pub(crate) arrived_by_then: u64,
    /// Probes sent in vain since then.
    pub(crate) unanswered: u32,
    /// How far the RESEND set that is being sent has come.
    pub(crate) cursor: u32,
    /// Priority to ask for in it.
    pub(crate) priority: u8,
    /// When the whole response had been sent.
    pub(crate) sent_at: Time,
    /// When the last RPC_UNKNOWN or RESEND(0, −1) made the client send all again.
    pub(crate) repeated_at: Time,
}

impl Rpc {
    pub(crate) fn is_client(&self) -> bool {
        self.id.is_client()
    }

    /// No packet of its request was ever sent again.
    pub(crate) fn was_sent_once(&self) -> bool {
        self.outgoing.answered_at == Time::ZERO && self.silence.repeated_at == Time::ZERO
    }

    /// What it means for a client's RPC that nobody is there, or that there is
    /// nobody with that port or protocol (`failure`), said about a packet of its
    /// own or of another RPC.
    ///
    /// The whole request may have reached somebody who has gone since, unless
    /// what is said is about the only packets that were ever sent of it.
    pub(crate) fn nobody_there(&self, failure: Failure, said: SaidOf) -> Failure {
        let of_first_packets =
            said == SaidOf::ThisRpc && self.was_sent_once() && self.silence.probed_at == Time::ZERO;
        if self.outgoing.fully_sent() && !of_first_packets {
            Failure::ServerGone
        } else {
            failure
        }
    }

    pub(crate) fn server_port(&self) -> u16 {
        if self.is_client() {
            self.remote_port
        } else {
            self.local_port
        }
    }

    /// DATA may arrive for it.
    pub(crate) fn may_receive(&self) -> bool {
        let is_called = self.phase == Phase::Outgoing && self.is_client();
        self.phase == Phase::Incoming || (is_called && self.kind == Kind::Call)
    }

    /// The next packet must come from the peer: silence means something.
    pub(crate) fn expects(&self) -> bool {
        match self.phase {
            Phase::Outgoing if self.is_client() => !self.outgoing.has_granted_unsent(),
            Phase::Incoming => self.incoming.expects(),
            Phase::Outgoing | Phase::InService | Phase::Ended => false,
        }
    }
}

impl Silence {
    pub(crate) fn starting(now: Time) -> Self {
        Self {
            since: now,
            probed_at: Time::ZERO,
            arrived_by_then: 0,
            unanswered: 0,
            cursor: 0,
            priority: 7,
            sent_at: now,
            repeated_at: Time::ZERO,
        }
    }

    /// Something was heard that shows the peer at work on this RPC.
    pub(crate) fn heard(&mut self, now: Time) {
        self.since = now;
        self.unanswered = 0;
    }
}
