//! The mechanisms of the protocol, each of which can be switched off.
//!
//! Nobody should switch one off in production. They are here so that a test
//! can show that it fails without the mechanism it is about, and so that the
//! simulator can ask what each is worth.

macro_rules! mechanisms {
    ($($(#[doc = $doc:literal])+ $name:ident = $bit:literal,)*) => {
        /// A set of mechanisms.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct Mechanisms(u64);

        impl Mechanisms {
            $($(#[doc = $doc])+ pub const $name: Self = Self(1 << $bit);)*
            /// Everything, the only sensible set outside experiments.
            pub const ALL: Self = Self($((1 << $bit))|*);
            /// Every mechanism with its name.
            pub const NAMES: &'static [(&'static str, Self)] =
                &[$((stringify!($name), Self::$name)),*];
        }
    };
}

mechanisms! {
    /// More than one message is granted at once.
    OVERCOMMIT = 0,
    /// A message is granted only so far ahead of what it received.
    WINDOW = 1,
    /// The total of granted and not received bytes is bounded.
    MAX_INCOMING = 2,
    /// Fewest remaining bytes first, at the receiver.
    GRANT_SRPT = 3,
    /// One active message a peer before any peer gets a second.
    PEER_FAIRNESS = 4,
    /// A share of the link for the oldest incoming message.
    FIFO_GRANTS = 5,
    /// Grants to different messages at different priorities.
    GRANT_PRIORITIES = 6,
    /// Unscheduled priorities by the receiver's cutoffs.
    CUTOFFS = 7,
    /// New cutoffs as the traffic changes.
    CUTOFFS_REVISION = 8,
    /// Fewest remaining bytes first, at the sender.
    SEND_SRPT = 9,
    /// DATA waits for the NIC.
    PACING = 10,
    /// Short messages do not wait for the NIC.
    PACER_BYPASS = 11,
    /// A share of the link for the oldest outgoing message.
    SEND_FIFO = 12,
    /// Receivers ask again for what is missing.
    RESEND = 13,
    /// Probes to one peer take turns.
    RESEND_ROTATION = 14,
    /// Probes to one peer are bounded.
    RESEND_LIMIT = 15,
    /// A RESEND repeated within an interval is answered once.
    RESEND_ONCE = 16,
    /// A RESEND beyond the grant acts as a grant.
    IMPLICIT_GRANT = 17,
    /// "Alive, but not now."
    BUSY = 18,
    /// RPC_UNKNOWN as the answer to a RESEND.
    RPC_UNKNOWN = 19,
    /// RPCs fail after silence.
    TIMEOUT = 20,
    /// The silence of a whole peer fails its RPCs, and soon; that of one RPC
    /// does much later.
    PEER_SILENCE = 21,
    /// Acks ride on DATA.
    ACK_PIGGYBACK = 22,
    /// Servers ask for acks.
    NEED_ACK = 23,
    /// They ask less and less often.
    NEED_ACK_BACKOFF = 24,
    /// Server state of a dead peer is reclaimed.
    RECLAIM = 25,
    /// Finished RPCs are remembered.
    TOMBSTONES = 26,
    /// Requests below the floor of a peer are refused.
    FLOOR = 27,
    /// Incoming memory is bounded.
    BUFFER_LIMIT = 28,
    /// A peer may fill only its share of the incoming memory.
    BUFFER_SHARE = 29,
    /// Part of the memory lets one message complete in any case.
    BUFFER_RESERVE = 30,
    /// The other end is told when an RPC is ended.
    ABORT = 31,
    /// Responses have small unscheduled parts when many are expected.
    INCAST_LIMIT = 32,
    /// RPCs sent to a former life of the peer fail.
    INSTANCE_CHECK = 33,
    /// Holes of one message are bounded.
    HOLE_LIMIT = 34,
    /// Server RPCs of one peer are bounded.
    RPC_SHARE = 35,
    /// A link that is full of other messages excuses silence.
    BUSY_LINK = 36,
}

impl Mechanisms {
    /// Whether every mechanism of `other` is in this set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// This set without those of `other`.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The mechanism with this name, in any case.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, m)| *m)
    }
}

impl Default for Mechanisms {
    fn default() -> Self {
        Self::ALL
    }
}
