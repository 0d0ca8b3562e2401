//! What is said to a node and by it: JSON, a line each, over its standard
//! input and output.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::baseline::UnloadedPoint;

/// The first line to a node: what it shall be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// What carries the RPCs.
    pub carrier: Carrier,
    /// Where it serves.
    pub listen: SocketAddr,
    /// Whom it calls: the other nodes.
    pub peers: Vec<SocketAddr>,
    /// A workload's name or file, or one size.
    pub workload: String,
    /// Longer messages are cut to this length, bytes.
    pub max_message: u32,
    /// Mean rate of its requests, 1/s.
    pub rpcs_per_s: f64,
    /// Load before the window, ms.
    pub warmup_ms: u64,
    /// The window, ms.
    pub duration_ms: u64,
    /// How long RPCs may end after the window, ms.
    pub drain_ms: u64,
    /// Decides sizes, gaps and destinations.
    pub seed: u64,
    /// RPCs of each size of the unloaded baseline.
    pub unloaded_rpcs: usize,
}

/// What carries the RPCs of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Carrier {
    /// Homa.
    Homa {
        /// Over raw IP instead of UDP.
        raw: bool,
        /// Levels that the network has, 1 to 8.
        priorities: u8,
        /// Rate of the host's link, bit/s.
        link_bps: u64,
        /// Round trip of a full packet on the idle network, software
        /// included, µs.
        rtt_us: u64,
        /// Buffer of a switch port, bytes.
        buffer_bytes: u64,
    },
    /// TCP.
    Tcp {
        /// Connections to each peer at most; of each class, if there are two.
        connections: usize,
        /// Name of the congestion control.
        congestion: String,
        /// RPCs with shorter requests have connections of their own with the
        /// highest priority; 0: no classes.
        urgent_below: u32,
    },
}

/// The lines to a node after the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Reach all peers, which are listening by now.
    Connect,
    /// Measure round trips without load.
    Unloaded,
    /// Make the load and measure.
    Load,
}

/// The lines of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Said {
    /// It serves.
    Listening,
    /// It serves and has reached all its peers.
    Ready {
        /// Lines on the set-up, by name.
        details: Vec<(String, String)>,
    },
    /// The answer to [`Order::Unloaded`].
    Unloaded(Vec<UnloadedPoint>),
    /// The answer to [`Order::Load`].
    Loaded(Box<Measured>),
    /// It cannot go on.
    Failed(String),
}

/// What a node measured in its window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Of each RPC that finished: length of the request, from due to sent (ns),
    /// from sent to complete (ns).
    pub samples: Vec<(u32, u64, u64)>,
    /// RPCs that did not finish, by length of the request.
    pub unfinished: BTreeMap<u32, u64>,
    /// Of these, those that failed.
    pub failed: u64,
    /// Why the first one failed.
    pub first_failure: Option<String>,
    /// Payload of requests and responses of RPCs that ended in the window,
    /// bit/s.
    pub goodput_bps: f64,
    /// Payload of requests and responses that became due in the window, bit/s.
    pub offered_bps: f64,
    /// What the transport counted from the first request on.
    pub counters: Vec<(String, u64)>,
}
