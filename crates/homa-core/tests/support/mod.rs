//! A small world for tests: endpoints on a virtual clock, links with faults
//! between them, and applications that keep real bytes.
//!
//! Everything is decided by one seed, so a failure that prints its seed can be
//! repeated. Every packet is emitted to bytes and parsed again on its way.
//!
//! What it checks on its own, always: payload bytes are those of the message
//! at the place where the verdict puts them, no request is executed twice by
//! one life of a server, and no time passes without end.

#![allow(
    dead_code,
    reason = "several test binaries share this, none uses all of it"
)]
#![allow(
    clippy::panic,
    reason = "a world in which something is wrong says so and stops"
)]

mod app;
mod host;
mod ledger;
mod link;
mod random;
mod world;

pub(crate) use app::Service;
pub(crate) use ledger::Outcome;
pub(crate) use link::{Fate, LinkFaults, Seen};
pub(crate) use random::Random;
pub(crate) use world::World;

/// Nanoseconds per microsecond.
pub(crate) const US: u64 = 1_000;
/// Nanoseconds per millisecond.
pub(crate) const MS: u64 = 1_000_000;

/// Settings of a small fabric: 10 Gbit/s and 20 us.
pub(crate) fn config() -> homa_core::Config {
    homa_core::Config {
        link_rate_bps: Some(10_000_000_000),
        rtt_ns: Some(20_000),
        max_rpcs: 4096,
        max_peers: 16,
        buffer_bytes: 16 << 20,
        ..homa_core::Config::default()
    }
}
