//! A discrete-event simulator of datacenter fabrics that drives the Homa
//! protocol core.
//!
//! Hundreds of hosts, each a [`homa_core::Endpoint`] exactly as it runs in a
//! process or a kernel, exchange messages without payload through links and
//! switches with strict priorities. The clock is virtual and counts
//! picoseconds; every random choice comes from a seed, so that a run repeats
//! to the same trace hash.
//!
//! The rooms, from the bottom up:
//!
//! - [`time`], [`events`], [`random`]: the clock, the queue of events, streams
//!   of random numbers by purpose;
//! - [`packet`], [`port`], [`topology`], [`fabric`]: packets on their way,
//!   output ports, and how switches are wired and choose ports;
//! - [`transport`]: what a host runs, with [`homa`] as the one this is about;
//! - [`traffic`]: who sends what to whom, and when;
//! - [`world`]: the loop that joins them;
//! - [`wire`], [`ideal`]: bytes on the wire, and the time that a message takes
//!   in an idle network;
//! - [`slowdown`], [`published`]: statistics by message size, and the published
//!   ones to compare with;
//! - [`sigcomm18`]: the conditions of the simulations of SIGCOMM 2018;
//! - [`report`]: the table and the JSON form of what was found.
//!
//! Invariants: no wall clock, no floating point in time, no order that depends
//! on addresses or hashing. What is *not* here: payload, sockets, and any
//! protocol of Homa. Slowdown is defined in `docs/protocol.md` §19.

#![forbid(unsafe_code)]
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "statistics: counts and times become f64 and back, far below 2^53"
)]

pub mod events;
pub mod fabric;
pub mod homa;
pub mod ideal;
pub mod packet;
pub mod port;
pub mod published;
pub mod random;
pub mod report;
pub mod sigcomm18;
pub mod slowdown;
pub mod time;
pub mod topology;
pub mod traffic;
pub mod transport;
pub mod wire;
pub mod world;
