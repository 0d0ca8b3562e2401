//! Load, recording and reports for request-response transports.
//!
//! One harness measures every transport, so that a comparison of Homa and TCP
//! differs in the transport and in nothing else: the message sizes
//! ([`workload`]), the moments requests are due ([`arrivals`]), the main loop
//! ([`run`]), what is recorded ([`recorder`]) and how it is shown ([`report`])
//! know only the trait [`transport::Transport`].
//!
//! Invariants: everything runs on the caller's thread; random choices come from
//! a seed that the report prints; a latency is measured from the moment a
//! request was *due*, so that a stalled client cannot hide a slow server; an
//! RPC that never finished counts as an infinite latency.
//!
//! Owned here: Homa ([`homa`]) and TCP ([`tcp`]) behind that trait, and how two
//! of them are compared ([`compare`]). Not here: the protocol, which is in
//! `homa-engine` and below, and the command line. Slowdown follows
//! `docs/protocol.md` §19.

#![forbid(unsafe_code)]
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "statistics: counts and nanoseconds become f64 and back, far below 2^53"
)]

pub mod arrivals;
pub mod baseline;
pub mod classes;
pub mod compare;
mod driver;
pub mod error;
mod events;
pub mod homa;
pub mod host;
pub mod message;
pub mod node;
pub mod ping;
pub mod progress;
pub mod quantile;
pub mod recorder;
pub mod report;
pub mod run;
pub mod stop;
pub mod tcp;
pub mod transport;

pub use homa_workload as workload;
