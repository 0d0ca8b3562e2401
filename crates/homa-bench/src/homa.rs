//! Homa behind the harness's trait, and its echo server: each one engine that
//! nobody drives but the loop here, on one thread, as TCP's side is.
//!
//! Invariants: the engine has no thread of its own ([`Drive::External`]); who
//! waits for a call is told by a waker that names it, so that a turn costs what
//! happened in it, not what is outstanding; both sides sleep with the kernel's
//! timer precision. Not here: how long to spin, which is the harness's, and
//! anything of the protocol.
//!
//! [`Drive::External`]: homa_engine::Drive::External

mod answering;
mod client;
mod counters;
mod node;
mod open;
mod ready;
mod server;
mod sleeper;

pub use client::Client;
pub use node::{Listening, Node};
pub use open::{Carrier, Options};
pub use server::Server;
