//! What the owner of an engine may choose, and its limits.

use std::time::Duration;

use homa_core::Identity;

/// Settings of an [`crate::Engine`].
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// The protocol's.
    pub core: homa_core::Config,
    /// Who drives the engine.
    pub drive: Drive,
    /// When what callers submit is sent.
    pub sending: Sending,
    /// How long a blocking caller polls the datapath before it sleeps. 0 is
    /// best where cores are shared. Where a core is to spare, waking a sleeping
    /// one costs 45 to 100 µs on a virtual machine, so that spinning as long
    /// as that halves the round trip.
    pub spin_before_sleep: Duration,
    /// Most calls and one-way messages of this endpoint that are under way,
    /// at most a quarter of [`homa_core::Config::max_rpcs`]. A call counts
    /// until its response is fetched. What is beyond it is refused with
    /// [`SubmitCause::Full`](crate::SubmitCause::Full).
    pub max_calls: u32,
    /// Most bytes of requests and one-way messages under way; a single larger
    /// message is let through when nothing else is.
    pub max_outgoing_bytes: u64,
    /// Most bytes of responses not yet acknowledged; one peer may hold twice
    /// what is still free.
    pub max_response_bytes: u64,
    /// Most complete requests that wait for a listener to take them; more are
    /// refused, which the client is told. Their memory is bounded by
    /// [`homa_core::Config::buffer_bytes`] besides.
    pub max_waiting_requests: u32,
    /// Priority levels on the network.
    pub tos: TosMap,
    /// Who this endpoint is; by default drawn from the wall clock and random
    /// numbers. Set it for tests that must repeat.
    pub identity: Option<Identity>,
}

impl Default for EngineConfig {
    fn default() -> Self {
        Self {
            core: homa_core::Config::default(),
            drive: Drive::Inline,
            sending: Sending::AtOnce,
            spin_before_sleep: Duration::ZERO,
            max_calls: 32_768,
            max_outgoing_bytes: 256 << 20,
            max_response_bytes: 1 << 30,
            max_waiting_requests: 65_536,
            tos: TosMap::default(),
            identity: None,
        }
    }
}

/// Who drives an engine: calls [`crate::Engine::drive`] when there is
/// something to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drive {
    /// Callers that wait do it themselves, without any hand-over. When none
    /// has for a millisecond, a thread of the engine does; it sleeps while
    /// there is nothing to do.
    Inline,
    /// A thread of the engine polls all the time: lowest latency, at the price
    /// of a core.
    Polling {
        /// After this long without anything to do, the thread sleeps until
        /// there is.
        idle: Duration,
    },
    /// Somebody outside does, for instance a task of an async runtime: see
    /// [`crate::Engine::register_driver`]. Blocking callers do as in
    /// [`Drive::Inline`], but the engine starts no thread.
    External,
    /// As [`Drive::External`], but a thread of the engine looks after it: when
    /// the one outside has not driven for 5 ms, because its runtime has ten
    /// thousand other tasks or one that computes, the thread does. It costs two
    /// hundred looks a second while anything goes on, and sleeps otherwise.
    Watched,
}

impl Drive {
    /// Whether somebody outside drives.
    pub(crate) fn is_outside(self) -> bool {
        matches!(self, Self::External | Self::Watched)
    }
}

/// When requests, responses and aborts leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sending {
    /// Before the call that submits them returns: lowest latency for one.
    AtOnce,
    /// In the next turn of the engine, whose driver is told: those that are
    /// submitted between two turns leave in as few system calls as there can
    /// be. For a loop that submits, then drives, then looks: with many short
    /// messages it needs a quarter of the processor time.
    NextTurn,
}

/// The IPv4 TOS (IPv6 traffic class) byte for each priority level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TosMap(pub [u8; 8]);

impl Default for TosMap {
    /// `priority << 5`, as the reference module sends it.
    fn default() -> Self {
        let mut map = [0; 8];
        for (byte, level) in map.iter_mut().zip(0..) {
            *byte = homa_wire::priority_to_tos(level);
        }
        Self(map)
    }
}

impl TosMap {
    /// A map to DSCP code points (0..=63), for networks that sort by them.
    pub const fn from_dscp(code_points: [u8; 8]) -> Self {
        let mut map = code_points;
        let mut level = 0;
        while level < map.len() {
            map[level] = (map[level] & 63) << 2;
            level += 1;
        }
        Self(map)
    }

    pub(crate) fn of(self, priority: u8) -> u8 {
        self.0.get(usize::from(priority)).copied().unwrap_or(0)
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn tos_map__defaults_to_the_top_three_bits() {
        let map = TosMap::default();
        assert_eq!((map.of(0), map.of(1), map.of(7)), (0, 0x20, 0xe0));
        assert_eq!(map.of(200), 0);
    }

    #[test]
    fn from_dscp__leaves_the_ecn_bits_clear() {
        let map = TosMap::from_dscp([0, 8, 16, 24, 32, 40, 46, 63]);
        assert_eq!((map.of(6), map.of(7)), (0xb8, 0xfc));
    }
}
