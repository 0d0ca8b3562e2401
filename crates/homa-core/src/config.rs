//! Every limit and default of the protocol, in one place.
//!
//! [`Config`] is what a user writes: what is known about the network, and
//! whatever they insist on. [`Config::settings`] derives the rest
//! (`docs/protocol.md` §5–§7, §18) into [`Settings`], where every value is
//! concrete and visible; the core reads nothing else.

use core::fmt;

use crate::mechanism::Mechanisms;
use crate::time::{MILLISECOND_NS, SECOND_NS};

/// The most bytes a message may have towards an endpoint that is not known to
/// accept more: the reference module's limit.
pub const STANDARD_MESSAGE_BYTES: u32 = 1_000_000;
/// The largest value [`Config::max_message_bytes`] takes.
pub const LARGEST_MESSAGE_BYTES: u32 = 64 << 20;
/// The most messages that may be active at a receiver (`docs/protocol.md` §12).
pub const LARGEST_OVERCOMMIT: u8 = 8;

const DEFAULT_PACKET_BYTES: u32 = 1424;
const DEFAULT_UNSCHEDULED_BYTES: u32 = 40_000;
const MIN_INCOMING_BYTES: u64 = 64 << 10;
const MAX_INCOMING_BYTES: u64 = 400_000;
/// The rate assumed for the receiver's FIFO share when no link rate is known.
const NOMINAL_RATE_BPS: u64 = 10_000_000_000;

/// What a user may say. Every `None` is derived; see [`Config::settings`].
#[derive(Clone, Debug)]
pub struct Config {
    /// Rate of the host's link, in bits per second. Unknown means that DATA is
    /// not paced.
    pub link_rate_bps: Option<u64>,
    /// Round-trip time of a full packet including the software at both ends,
    /// in nanoseconds.
    pub rtt_ns: Option<u64>,
    /// Buffer of a switch port towards a host, in bytes, if known.
    pub switch_buffer_bytes: Option<u64>,
    /// Priority levels of the network, 1..=8.
    pub priorities: u8,
    /// Cutoffs to announce for ever, instead of those computed from the
    /// traffic: entry 7 is the highest level; for experiments.
    pub fixed_cutoffs: Option<[u32; 8]>,
    /// Bytes of a message that may be sent without a grant.
    pub unscheduled_bytes: Option<u32>,
    /// Bytes granted and not yet received that a receiver allows in total.
    pub max_incoming_bytes: Option<u32>,
    /// Bytes granted ahead of what was received, per message; `None` follows
    /// the number of active messages.
    pub window_bytes: Option<u32>,
    /// Messages that may be granted at once, 1..=8.
    pub max_overcommit: u8,
    /// Share of the link for the oldest incoming message, in 1/1000, at most 500.
    pub grant_fifo_permille: u32,
    /// Bytes by which the oldest incoming message is granted at a time.
    pub fifo_grant_bytes: u32,
    /// What counts towards [`Config::max_incoming_bytes`].
    pub incoming_counts: IncomingCounts,
    /// Longest message, in bytes; up to [`LARGEST_MESSAGE_BYTES`]. Above
    /// [`STANDARD_MESSAGE_BYTES`] only towards endpoints that say they accept it.
    pub max_message_bytes: u32,
    /// Silence after which a receiver asks again.
    pub resend_ns: Option<u64>,
    /// Time between further RESENDs.
    pub resend_interval_ns: Option<u64>,
    /// Silence after which an RPC fails.
    pub timeout_ns: u64,
    /// Time after the end of a response at which a server asks for an ACK.
    pub request_ack_ns: u64,
    /// How long a finished RPC is remembered.
    pub duplicate_lifetime_ns: u64,
    /// How far ahead of the NIC DATA may be sent; see [`Settings::max_nic_backlog_ns`].
    pub max_nic_backlog_ns: Option<u64>,
    /// Measured lateness of the host's timers, in nanoseconds.
    pub timer_lateness_ns: u64,
    /// Share of the link that DATA may use, in 1/100.
    pub max_link_usage_percent: u32,
    /// Share of the link for the oldest outgoing message, in 1/1000.
    pub pacer_fifo_permille: u32,
    /// Memory for incoming messages, in bytes, charged as bytes arrive.
    pub buffer_bytes: u64,
    /// RPCs of both roles alive at once.
    pub max_rpcs: u32,
    /// Peers known at once.
    pub max_peers: u32,
    /// Whether the extensions of `docs/protocol.md` §20 are used. Without them
    /// our packets cannot be told from the reference module's.
    pub extensions: Extensions,
    /// Mechanisms in use; for tests and experiments.
    pub mechanisms: Mechanisms,
}

/// Which bytes count as incoming (`docs/protocol.md` §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IncomingCounts {
    /// Those of messages that need grants, as the reference module does.
    Managed,
    /// Those of all messages known, as the draft says.
    All,
}

/// Whether the extensions are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extensions {
    /// Announce them, and use what the peer announces.
    On,
    /// Behave like the reference module on the wire.
    Off,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            link_rate_bps: None,
            rtt_ns: None,
            switch_buffer_bytes: None,
            priorities: 8,
            fixed_cutoffs: None,
            unscheduled_bytes: None,
            max_incoming_bytes: None,
            window_bytes: None,
            max_overcommit: LARGEST_OVERCOMMIT,
            grant_fifo_permille: 50,
            fifo_grant_bytes: 50_000,
            incoming_counts: IncomingCounts::Managed,
            max_message_bytes: STANDARD_MESSAGE_BYTES,
            resend_ns: None,
            resend_interval_ns: None,
            timeout_ns: 100 * MILLISECOND_NS,
            request_ack_ns: 2 * MILLISECOND_NS,
            duplicate_lifetime_ns: 4 * SECOND_NS,
            max_nic_backlog_ns: None,
            timer_lateness_ns: 0,
            max_link_usage_percent: 99,
            pacer_fifo_permille: 50,
            buffer_bytes: 256 << 20,
            max_rpcs: 131_072,
            max_peers: 16_384,
            extensions: Extensions::On,
            mechanisms: Mechanisms::ALL,
        }
    }
}

/// The values the protocol runs on. All of them are public so that a user can
/// see what was derived; [`fmt::Display`] prints one line each.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Link rate that DATA is paced to; `None` is unlimited.
    pub link_rate_bps: Option<u64>,
    /// Priority levels, 1..=8.
    pub priorities: u8,
    /// Cutoffs that never change; `None` follows the traffic.
    pub fixed_cutoffs: Option<[u32; 8]>,
    /// clamp(rate × RTT, 2 packets, 40,000); 40,000 if either is unknown.
    pub unscheduled_bytes: u32,
    /// clamp(8 × unscheduled, 64 KiB, 400,000), at most half of the switch buffer.
    pub max_incoming_bytes: u32,
    /// Fixed window per message, or `None` for max_incoming ÷ (active + 1).
    pub window_bytes: Option<u32>,
    /// Messages granted at once.
    pub max_overcommit: u8,
    /// Bytes by which the oldest message is granted at a time.
    pub fifo_grant_bytes: u32,
    /// Time between such grants, so that they take their share of the link.
    pub fifo_grant_interval_ns: u64,
    /// What counts as incoming.
    pub incoming_counts: IncomingCounts,
    /// Longest message sent or accepted.
    pub max_message_bytes: u32,
    /// max(5 ms, 4 × max_incoming ÷ rate).
    pub resend_ns: u64,
    /// The same as `resend_ns` unless given.
    pub resend_interval_ns: u64,
    /// Probes (RESEND and NEED_ACK) to one peer per `resend_interval_ns`.
    pub peer_probes: u32,
    /// Silence after which an RPC fails, if its whole peer was as silent; at
    /// least 4 × `resend_interval_ns`.
    pub timeout_ns: u64,
    /// RESENDs that must have been sent in vain before a time-out.
    pub timeout_resends: u32,
    /// Time from the end of a response to the first NEED_ACK.
    pub request_ack_ns: u64,
    /// Silence of a whole peer after which server RPCs that wait for it are
    /// reclaimed: 10 × `timeout_ns`.
    pub reclaim_ns: u64,
    /// Silence about one RPC after which it fails even though its peer lives: ¾
    /// of `duplicate_lifetime_ns`, and at least `timeout_ns`. After the former
    /// it is not sent again in any case, so that the server still remembers
    /// what it finished.
    pub patience_ns: u64,
    /// Silence about one RPC after which a server gives its response up even
    /// though the peer lives: 100 × `timeout_ns`.
    pub stall_ns: u64,
    /// How long a finished RPC is remembered. By default 4 s: in 3 s, ten
    /// thousand RPCs of one peer can each be asked about three times.
    pub duplicate_lifetime_ns: u64,
    /// Finished RPCs remembered in total; `max_peer_tombstones` of one peer.
    pub max_tombstones: u32,
    /// A quarter of `max_tombstones`: a peer that finishes more within
    /// `duplicate_lifetime_ns` has its floor raised.
    pub max_peer_tombstones: u32,
    /// max(5 µs, 2 packets, 2 × timer lateness), at most 1 ms.
    pub max_nic_backlog_ns: u64,
    /// Share of the link that DATA may use, in 1/100.
    pub max_link_usage_percent: u32,
    /// Share of the link for the oldest outgoing message, in 1/1000.
    pub pacer_fifo_permille: u32,
    /// Messages shorter than this are never held back by the pacer.
    pub pacer_bypass_bytes: u32,
    /// Shortest time between two CUTOFFS to one peer.
    pub cutoffs_interval_ns: u64,
    /// Shortest time between two looks at the traffic for new cutoffs.
    pub cutoffs_revision_ns: u64,
    /// Memory for incoming messages.
    pub buffer_bytes: u64,
    /// Part of it that is kept for one message at a time, so that a full pool
    /// always lets some message complete: `max_message_bytes`.
    pub buffer_reserve_bytes: u64,
    /// RPCs alive at once.
    pub max_rpcs: u32,
    /// Of these, other hosts' requests: three quarters, so that some are left
    /// for our own calls.
    pub max_server_rpcs: u32,
    /// Peers known at once.
    pub max_peers: u32,
    /// Holes tracked in one incoming message.
    pub max_holes: u32,
    /// Byte ranges tracked in all messages together.
    pub max_ranges: u32,
    /// Replies (BUSY, ACK, CUTOFFS, …) that may wait; 64 of them to one peer.
    pub max_replies: u32,
    /// Replies that may wait for one peer.
    pub max_peer_replies: u32,
    /// Smallest unscheduled part that the incast limit asks for.
    pub min_response_limit_bytes: u32,
    /// Whether extensions are used.
    pub extensions: Extensions,
    /// Mechanisms in use.
    pub mechanisms: Mechanisms,
}

/// A value that cannot be, and what to write instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConfigError {
    /// `priorities` is outside 1..=8.
    Priorities(u8),
    /// `max_overcommit` is outside 1..=8.
    Overcommit(u8),
    /// `max_message_bytes` is 0 or above [`LARGEST_MESSAGE_BYTES`].
    MessageBytes(u32),
    /// `buffer_bytes` is below twice the longest message.
    BufferBytes {
        /// What was asked for.
        given: u64,
        /// The least that works.
        least: u64,
    },
    /// A share is above its maximum.
    Share {
        /// The field's name.
        field: &'static str,
        /// The largest value.
        most: u32,
    },
    /// A value must not be 0.
    Zero {
        /// The field's name.
        field: &'static str,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Priorities(n) => write!(f, "priorities is {n}; use 1 to 8"),
            Self::Overcommit(n) => write!(f, "max_overcommit is {n}; use 1 to 8"),
            Self::MessageBytes(n) => {
                write!(
                    f,
                    "max_message_bytes is {n}; use 1 to {LARGEST_MESSAGE_BYTES}"
                )
            }
            Self::BufferBytes { given, least } => {
                write!(f, "buffer_bytes is {given}; two messages need {least}")
            }
            Self::Share { field, most } => write!(f, "{field} is above {most}"),
            Self::Zero { field } => write!(f, "{field} must not be 0"),
        }
    }
}

impl core::error::Error for ConfigError {}

impl Config {
    /// Derives everything that was left open, or says what cannot be.
    pub fn settings(&self) -> Result<Settings, ConfigError> {
        self.check()?;
        let rate = self.link_rate_bps;
        let unscheduled_bytes = self.unscheduled_bytes.unwrap_or_else(|| {
            let product = match (rate, self.rtt_ns) {
                (Some(rate), Some(rtt)) => bytes_in(rate, rtt),
                _ => u64::from(DEFAULT_UNSCHEDULED_BYTES),
            };
            let least = u64::from(2 * DEFAULT_PACKET_BYTES);
            product.clamp(least, u64::from(DEFAULT_UNSCHEDULED_BYTES)) as u32
        });
        let max_incoming_bytes = self.max_incoming_bytes.unwrap_or_else(|| {
            let wanted = 8 * u64::from(unscheduled_bytes);
            let mut bytes = wanted.clamp(MIN_INCOMING_BYTES, MAX_INCOMING_BYTES);
            if let Some(buffer) = self.switch_buffer_bytes {
                bytes = bytes.min((buffer / 2).max(u64::from(2 * DEFAULT_PACKET_BYTES)));
            }
            bytes as u32
        });
        let resend_ns = self.resend_ns.unwrap_or_else(|| {
            let four_windows =
                rate.map_or(0, |rate| time_for(4 * u64::from(max_incoming_bytes), rate));
            four_windows.max(5 * MILLISECOND_NS)
        });
        let resend_interval_ns = self.resend_interval_ns.unwrap_or(resend_ns);
        let timeout_ns = self.timeout_ns.max(resend_interval_ns.saturating_mul(4));
        let max_nic_backlog_ns = self.max_nic_backlog_ns.unwrap_or_else(|| {
            let two_packets = rate.map_or(0, |rate| {
                time_for(2 * (u64::from(DEFAULT_PACKET_BYTES) + 114), rate)
            });
            two_packets
                .max(5_000)
                .max(self.timer_lateness_ns.saturating_mul(2))
                .min(MILLISECOND_NS)
        });
        let fifo_rate =
            rate.unwrap_or(NOMINAL_RATE_BPS) / 1000 * u64::from(self.grant_fifo_permille);
        let mechanisms = if self.grant_fifo_permille == 0 {
            self.mechanisms.without(Mechanisms::FIFO_GRANTS)
        } else {
            self.mechanisms
        };
        let max_tombstones = self.max_rpcs.max(1024).saturating_mul(2);
        Ok(Settings {
            link_rate_bps: rate,
            priorities: self.priorities,
            fixed_cutoffs: self.fixed_cutoffs,
            unscheduled_bytes,
            max_incoming_bytes,
            window_bytes: self.window_bytes,
            max_overcommit: self.max_overcommit,
            fifo_grant_bytes: self.fifo_grant_bytes,
            fifo_grant_interval_ns: time_for(u64::from(self.fifo_grant_bytes), fifo_rate.max(1)),
            incoming_counts: self.incoming_counts,
            max_message_bytes: self.max_message_bytes,
            resend_ns,
            resend_interval_ns,
            peer_probes: 64,
            timeout_ns,
            patience_ns: (self.duplicate_lifetime_ns / 4 * 3).max(timeout_ns),
            timeout_resends: 3,
            request_ack_ns: self.request_ack_ns,
            reclaim_ns: self.timeout_ns.saturating_mul(10),
            stall_ns: self.timeout_ns.saturating_mul(100),
            duplicate_lifetime_ns: self.duplicate_lifetime_ns,
            max_tombstones,
            max_peer_tombstones: max_tombstones / 4,
            max_nic_backlog_ns,
            max_link_usage_percent: self.max_link_usage_percent,
            pacer_fifo_permille: self.pacer_fifo_permille,
            pacer_bypass_bytes: 1000,
            cutoffs_interval_ns: MILLISECOND_NS,
            cutoffs_revision_ns: SECOND_NS,
            buffer_bytes: self.buffer_bytes,
            buffer_reserve_bytes: u64::from(self.max_message_bytes),
            max_rpcs: self.max_rpcs,
            max_server_rpcs: self.max_rpcs - self.max_rpcs / 4,
            max_peers: self.max_peers,
            max_holes: 64,
            max_ranges: self.max_rpcs.saturating_mul(2).max(4096),
            max_replies: 4096,
            max_peer_replies: 64,
            min_response_limit_bytes: 256,
            extensions: self.extensions,
            mechanisms,
        })
    }

    fn check(&self) -> Result<(), ConfigError> {
        if !(1..=8).contains(&self.priorities) {
            return Err(ConfigError::Priorities(self.priorities));
        }
        if !(1..=LARGEST_OVERCOMMIT).contains(&self.max_overcommit) {
            return Err(ConfigError::Overcommit(self.max_overcommit));
        }
        if !(1..=LARGEST_MESSAGE_BYTES).contains(&self.max_message_bytes) {
            return Err(ConfigError::MessageBytes(self.max_message_bytes));
        }
        let least = 2 * u64::from(self.max_message_bytes);
        if self.buffer_bytes < least {
            return Err(ConfigError::BufferBytes {
                given: self.buffer_bytes,
                least,
            });
        }
        for (field, value, most) in [
            ("grant_fifo_permille", self.grant_fifo_permille, 500),
            ("pacer_fifo_permille", self.pacer_fifo_permille, 500),
            ("max_link_usage_percent", self.max_link_usage_percent, 100),
        ] {
            if value > most {
                return Err(ConfigError::Share { field, most });
            }
        }
        for (field, value) in [
            ("link_rate_bps", self.link_rate_bps.unwrap_or(1)),
            (
                "unscheduled_bytes",
                u64::from(self.unscheduled_bytes.unwrap_or(1)),
            ),
            (
                "max_incoming_bytes",
                u64::from(self.max_incoming_bytes.unwrap_or(1)),
            ),
            ("window_bytes", u64::from(self.window_bytes.unwrap_or(1))),
            ("fifo_grant_bytes", u64::from(self.fifo_grant_bytes)),
            ("resend_ns", self.resend_ns.unwrap_or(1)),
            ("resend_interval_ns", self.resend_interval_ns.unwrap_or(1)),
            ("timeout_ns", self.timeout_ns),
            ("request_ack_ns", self.request_ack_ns),
            (
                "max_link_usage_percent",
                u64::from(self.max_link_usage_percent),
            ),
            ("max_rpcs", u64::from(self.max_rpcs)),
            ("max_peers", u64::from(self.max_peers)),
        ] {
            if value == 0 {
                return Err(ConfigError::Zero { field });
            }
        }
        Ok(())
    }
}

impl Settings {
    /// Priority of control packets: the highest in use.
    pub fn control_priority(&self) -> u8 {
        self.priorities - 1
    }

    /// The level below that: FIFO grants, and unscheduled bytes to a peer
    /// whose cutoffs are not known.
    pub fn second_priority(&self) -> u8 {
        self.priorities.saturating_sub(2)
    }
}

impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.link_rate_bps {
            Some(rate) => writeln!(f, "link_rate_bps            {rate}")?,
            None => writeln!(f, "link_rate_bps            unlimited (DATA is not paced)")?,
        }
        match self.window_bytes {
            Some(window) => writeln!(f, "window_bytes             {window}")?,
            None => writeln!(
                f,
                "window_bytes             max_incoming_bytes / (active + 1)"
            )?,
        }
        for (name, value) in [
            ("priorities", u64::from(self.priorities)),
            ("unscheduled_bytes", u64::from(self.unscheduled_bytes)),
            ("max_incoming_bytes", u64::from(self.max_incoming_bytes)),
            ("max_overcommit", u64::from(self.max_overcommit)),
            ("fifo_grant_bytes", u64::from(self.fifo_grant_bytes)),
            ("fifo_grant_interval_ns", self.fifo_grant_interval_ns),
            ("max_message_bytes", u64::from(self.max_message_bytes)),
            ("resend_ns", self.resend_ns),
            ("resend_interval_ns", self.resend_interval_ns),
            ("peer_probes", u64::from(self.peer_probes)),
            ("timeout_ns", self.timeout_ns),
            ("timeout_resends", u64::from(self.timeout_resends)),
            ("request_ack_ns", self.request_ack_ns),
            ("reclaim_ns", self.reclaim_ns),
            ("patience_ns", self.patience_ns),
            ("stall_ns", self.stall_ns),
            ("duplicate_lifetime_ns", self.duplicate_lifetime_ns),
            ("max_tombstones", u64::from(self.max_tombstones)),
            ("max_peer_tombstones", u64::from(self.max_peer_tombstones)),
            ("max_nic_backlog_ns", self.max_nic_backlog_ns),
            (
                "max_link_usage_percent",
                u64::from(self.max_link_usage_percent),
            ),
            ("pacer_fifo_permille", u64::from(self.pacer_fifo_permille)),
            ("pacer_bypass_bytes", u64::from(self.pacer_bypass_bytes)),
            ("cutoffs_interval_ns", self.cutoffs_interval_ns),
            ("cutoffs_revision_ns", self.cutoffs_revision_ns),
            ("buffer_bytes", self.buffer_bytes),
            ("buffer_reserve_bytes", self.buffer_reserve_bytes),
            ("max_rpcs", u64::from(self.max_rpcs)),
            ("max_server_rpcs", u64::from(self.max_server_rpcs)),
            ("max_peers", u64::from(self.max_peers)),
            ("max_holes", u64::from(self.max_holes)),
            ("max_ranges", u64::from(self.max_ranges)),
            ("max_replies", u64::from(self.max_replies)),
            ("max_peer_replies", u64::from(self.max_peer_replies)),
            (
                "min_response_limit_bytes",
                u64::from(self.min_response_limit_bytes),
            ),
        ] {
            writeln!(f, "{name:<24} {value}")?;
        }
        writeln!(f, "incoming_counts          {:?}", self.incoming_counts)?;
        write!(f, "extensions               {:?}", self.extensions)
    }
}

/// Bytes that a link of `rate_bps` carries in `ns`.
fn bytes_in(rate_bps: u64, ns: u64) -> u64 {
    (u128::from(rate_bps) * u128::from(ns) / 8 / u128::from(SECOND_NS)).min(u128::from(u64::MAX))
        as u64
}

/// Nanoseconds that a link of `rate_bps` takes for `bytes`.
pub(crate) fn time_for(bytes: u64, rate_bps: u64) -> u64 {
    let ns = u128::from(bytes) * 8 * u128::from(SECOND_NS) / u128::from(rate_bps.max(1));
    ns.min(u128::from(u64::MAX)) as u64
}
