//! The TCP transport Homa is compared against: an echo server and a client,
//! each one event loop on one thread.
//!
//! A message is 16 bytes of frame header (magic, length, id) and its bytes.
//! The client has a pool of TCP connections to each server. A request goes to
//! an idle connection if there is one, else to a new one while the pool may
//! grow, else to the one with the fewest bytes waiting. TCP_NODELAY is set on
//! both sides.
//!
//! Invariants: both sides read whatever else they do, so long messages in both
//! directions cannot block each other; a server stops reading a connection
//! only while its own responses there are not taken. Not here: how long to
//! spin, which is the harness's.

mod client;
mod congestion;
mod frame;
mod link;
mod node;
mod server;
mod sockets;

pub use client::{Client, DEFAULT_CONNECTIONS};
pub use congestion::Congestion;
pub use frame::MAX_MESSAGE_BYTES;
pub use node::{Listening, Node, URGENT_TOS};
pub use server::Server;
pub use sockets::Sockets;
