//! One list of counters, from which every view (command line, metrics,
//! kernel) is made. All of them only grow, except those of [`Gauges`].

use homa_wire::PacketType;

use crate::rpc::{Kind, Rpc};
use crate::sending::Choice;

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident,)*) => {
        /// What an endpoint has done since it started.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Counters {
            /// Packets received, by type in wire order ([`PacketType::ALL`]).
            pub received: [u64; PacketType::ALL.len()],
            /// Packets handed to the host for sending, by type in wire order.
            pub sent: [u64; PacketType::ALL.len()],
            /// DATA bytes sent, by priority.
            pub sent_bytes_by_priority: [u64; 8],
            /// Packets dropped, by [`DropReason`].
            pub dropped: [u64; DropReason::ALL.len()],
            $($(#[doc = $doc])+ pub $name: u64,)*
        }

        impl Counters {
            /// Every counter with its name, in a fixed order.
            pub fn each(&self, mut visit: impl FnMut(&str, Option<&str>, u64)) {
                for (kind, value) in PacketType::ALL.iter().zip(self.received) {
                    visit("packets_received", Some(kind.name()), value);
                }
                for (kind, value) in PacketType::ALL.iter().zip(self.sent) {
                    visit("packets_sent", Some(kind.name()), value);
                }
                for (level, value) in ["0", "1", "2", "3", "4", "5", "6", "7"]
                    .iter()
                    .zip(self.sent_bytes_by_priority)
                {
                    visit("sent_bytes_by_priority", Some(level), value);
                }
                for (reason, value) in DropReason::ALL.iter().zip(self.dropped) {
                    visit("packets_dropped", Some(reason.name()), value);
                }
                $(visit(stringify!($name), None, self.$name);)*
            }
        }
    };
}

counters! {
    /// Requests started here.
    requests_started,
    /// Responses received completely here.
    responses_received,
    /// Requests received completely here.
    requests_received,
    /// Responses started here.
    responses_started,
    /// One-way messages delivered at the other end.
    one_ways_delivered,
    /// One-way messages received completely here.
    one_ways_received,
    /// Payload bytes received for the first time.
    received_bytes,
    /// Payload bytes sent for the first time.
    sent_bytes,
    /// Payload bytes sent again.
    retransmitted_bytes,
    /// Payload bytes received again.
    duplicate_bytes,
    /// DATA that opened a hole in its message.
    holes_opened,
    /// Bytes granted.
    granted_bytes,
    /// Grants made to a message that had had to wait for room.
    grants_after_waiting,
    /// Active messages displaced by a better one.
    grants_displaced,
    /// Grants made to the oldest message beyond its turn.
    fifo_grants,
    /// Bytes of those.
    fifo_grant_bytes,
    /// DATA packets sent out of turn for the oldest outgoing message.
    fifo_sends,
    /// Times DATA had to wait for the NIC.
    paced_waits,
    /// Short DATA packets that did not wait although others had to.
    paced_bypasses,
    /// RESENDs received whose range was taken as a grant.
    implicit_grants,
    /// RESENDs for ranges that had just been sent again.
    resends_repeated,
    /// Probes (RESEND, NEED_ACK) put off because their peer had its share.
    probes_deferred,
    /// RESEND sets begun because of silence.
    resend_rounds,
    /// RESEND sets put off because the link was full of other messages.
    resends_put_off,
    /// NEED_ACKs sent again.
    need_acks_repeated,
    /// RPCs failed here by time-out.
    timeouts,
    /// RPCs failed early because their peer was silent as a whole.
    peer_timeouts,
    /// Server RPCs whose request never became complete.
    requests_discarded,
    /// Server RPCs given up because the peer is presumed dead.
    reclaimed,
    /// RPCs failed because the peer is another instance than before.
    peer_restarts,
    /// RPCs ended by RPC_UNKNOWN.
    ended_by_unknown,
    /// RPCs ended by ABORT.
    ended_by_abort,
    /// RPCs ended by ICMP.
    ended_by_icmp,
    /// Requests sent again as a whole after RPC_UNKNOWN.
    requests_repeated,
    /// Requests not executed because they had been before.
    duplicates_suppressed,
    /// Times the floor of a peer had to be raised.
    floors_raised,
    /// Requests refused because they were below the floor.
    stale_refused,
    /// Acks carried by DATA.
    acks_piggybacked,
    /// Acks received in any packet.
    acks_received,
    /// Acks that named no RPC waiting for one.
    acks_ignored,
    /// ACK packets sent because too many acks were owed.
    acks_overflowed,
    /// CUTOFFS that this endpoint computed from its traffic.
    cutoffs_revised,
    /// Requests that carried a limit for their response.
    response_limits_asked,
    /// Responses whose unscheduled part was limited at the client's wish.
    response_limits_kept,
    /// Messages that had to wait for buffer space.
    buffer_waits,
    /// Messages that completed from the reserve.
    buffer_reserve_used,
    /// Replies lost because too many waited.
    replies_dropped,
    /// Peers created.
    peers_created,
    /// Idle peers forgotten to make room.
    peers_evicted,
}

/// Why a packet was dropped: the peer's fault, or this endpoint's limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DropReason {
    /// Source or destination port 0.
    PortZero,
    /// Message length 0.
    LengthZero,
    /// Message longer than this endpoint accepts.
    LengthTooLong,
    /// The length differs from that of the message's first packet.
    LengthChanged,
    /// Payload beyond the end of the message.
    PastEnd,
    /// All bytes were there already.
    Duplicate,
    /// More holes than are tracked.
    TooManyHoles,
    /// No memory for the message now.
    NoBuffer,
    /// No such RPC.
    UnknownRpc,
    /// No server on that port.
    PortClosed,
    /// A request that was executed before.
    Executed,
    /// A request below the peer's floor.
    Stale,
    /// The table of RPCs is full, or the peer has its share of it.
    TableFull,
    /// Does not fit the state of its RPC.
    WrongState,
    /// A debugging packet of the reference module.
    Freeze,
    /// The peer's handle is no longer valid.
    UnknownPeer,
    /// An ABORT or acknowledgement from the wrong end.
    WrongRole,
}

impl DropReason {
    /// Every reason, in the order of [`Counters::dropped`].
    pub const ALL: [Self; 17] = [
        Self::PortZero,
        Self::LengthZero,
        Self::LengthTooLong,
        Self::LengthChanged,
        Self::PastEnd,
        Self::Duplicate,
        Self::TooManyHoles,
        Self::NoBuffer,
        Self::UnknownRpc,
        Self::PortClosed,
        Self::Executed,
        Self::Stale,
        Self::TableFull,
        Self::WrongState,
        Self::Freeze,
        Self::UnknownPeer,
        Self::WrongRole,
    ];

    /// The reason as metrics write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PortZero => "port_zero",
            Self::LengthZero => "length_zero",
            Self::LengthTooLong => "length_too_long",
            Self::LengthChanged => "length_changed",
            Self::PastEnd => "past_end",
            Self::Duplicate => "duplicate",
            Self::TooManyHoles => "too_many_holes",
            Self::NoBuffer => "no_buffer",
            Self::UnknownRpc => "unknown_rpc",
            Self::PortClosed => "port_closed",
            Self::Executed => "executed",
            Self::Stale => "stale",
            Self::TableFull => "table_full",
            Self::WrongState => "wrong_state",
            Self::Freeze => "freeze",
            Self::UnknownPeer => "unknown_peer",
            Self::WrongRole => "wrong_role",
        }
    }
}

impl Counters {
    pub(crate) fn count_received(&mut self, kind: PacketType) {
        if let Some(counter) = self.received.get_mut(wire_order(kind)) {
            *counter += 1;
        }
    }

    pub(crate) fn count_sent(&mut self, kind: PacketType) {
        if let Some(counter) = self.sent.get_mut(wire_order(kind)) {
            *counter += 1;
        }
    }

    #[inline]
    pub(crate) fn count_data_sent(&mut self, priority: u8, packet_bytes: u64, choice: Choice) {
        self.sent[wire_order(PacketType::Data)] += 1;
        if let Some(counter) = self.sent_bytes_by_priority.get_mut(usize::from(priority)) {
            *counter += packet_bytes;
        }
        match choice {
            Choice::Best => {}
            Choice::Bypass => self.paced_bypasses += 1,
            Choice::Oldest => self.fifo_sends += 1,
        }
    }

    /// An incoming message is complete.
    pub(crate) fn count_completed(&mut self, rpc: &Rpc) {
        match (rpc.is_client(), rpc.kind) {
            (true, _) => self.responses_received += 1,
            (false, Kind::Call) => self.requests_received += 1,
            (false, Kind::OneWay) => self.one_ways_received += 1,
        }
    }

    pub(crate) fn count_drop(&mut self, reason: DropReason) {
        if let Some(counter) = self.dropped.get_mut(reason as usize) {
            *counter += 1;
        }
    }

    /// Packets of one type received.
    pub fn received_of(&self, kind: PacketType) -> u64 {
        self.received.get(wire_order(kind)).copied().unwrap_or(0)
    }

    /// Packets of one type sent.
    pub fn sent_of(&self, kind: PacketType) -> u64 {
        self.sent.get(wire_order(kind)).copied().unwrap_or(0)
    }

    /// Packets dropped for one reason.
    pub fn dropped_for(&self, reason: DropReason) -> u64 {
        self.dropped.get(reason as usize).copied().unwrap_or(0)
    }
}

const fn wire_order(kind: PacketType) -> usize {
    match kind {
        PacketType::Abort => 9,
        other => other as usize - PacketType::Data as usize,
    }
}

/// How much there is right now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gauges {
    /// Client RPCs whose response has not begun.
    pub client_outgoing: u32,
    /// Client RPCs receiving their response.
    pub client_incoming: u32,
    /// Server RPCs receiving their request.
    pub server_incoming: u32,
    /// Server RPCs the application works on.
    pub server_in_service: u32,
    /// Server RPCs sending their response or waiting for its ack.
    pub server_outgoing: u32,
    /// RPCs that have ended and whose last event the host has not taken.
    pub ended: u32,
    /// Peers known.
    pub peers: u32,
    /// Finished RPCs remembered.
    pub tombstones: u32,
    /// Bytes of incoming messages held.
    pub buffer_bytes: u64,
    /// Messages waiting for buffer space.
    pub buffer_waiting: u32,
    /// Bytes granted and not yet received.
    pub incoming_bytes: u64,
    /// Messages that need grants.
    pub managed_messages: u32,
    /// Of these, messages that may be granted now.
    pub active_messages: u32,
    /// Messages with bytes that may be sent.
    pub sendable_messages: u32,
    /// Byte ranges tracked.
    pub ranges: u32,
}
