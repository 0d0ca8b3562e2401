//! The Homa protocol, sans I/O.
//!
//! One [`Endpoint`] holds the whole protocol state of a host (or of a process
//! that owns its own endpoint): the RPCs, their messages, the peers. The same
//! code runs in a user's process, in a daemon, in the kernel and in a simulated
//! fabric, because everything that differs between them is an argument or a
//! return value:
//!
//! - *Payload never enters.* In goes a parsed header and the length of its
//!   payload; out comes a header and the byte range of the message that the
//!   host gathers from wherever it keeps it.
//! - *Time, randomness and memory are arguments.* No clock, no random numbers,
//!   no environment, no locks; every table is allocated when the endpoint is
//!   made. The same inputs give the same outputs, bit for bit.
//! - *Pull, don't push.* [`Endpoint::poll_transmit`] chooses each packet at the
//!   last moment; queueing it earlier would be the priority inversion that the
//!   protocol exists to avoid.
//!
//! A round trip, without a network:
//!
//! ```
//! use homa_core::{Config, Endpoint, Event, Identity, Kind, Request, Time};
//!
//! let identity = |n| Identity { first_id: 1000, instance: n, hash_seed: n };
//! let settings = Config::default().settings()?;
//! let mut client = Endpoint::new(settings.clone(), identity(1));
//! let mut server = Endpoint::new(settings, identity(2));
//! let now = Time::from_nanos(1);
//! let (to_server, _) = client.add_peer(now, 1480)?;
//! let (to_client, _) = server.add_peer(now, 1480)?;
//! server.listen(4000);
//!
//! let request = Request { local_port: 40000, remote_port: 4000, length: 100, kind: Kind::Call };
//! client.request(now, to_server, request)?;
//! let sent = client.poll_transmit(now).ok_or("nothing to send")?;
//! let payload = sent.payload.ok_or("no payload")?;
//! server.packet(now, to_client, &sent.packet, payload.length());
//! assert!(matches!(server.poll_event(), Some(Event::Request { length: 100, .. })));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The modules are the roles of the protocol: `data` and `incoming` (receiving),
//! `outgoing`, `sending` and `pacer` (sending), `grant` and `granting` (the
//! receiver's scheduling), `retransmit` and `probe` (loss and silence), `ack`
//! and `tombstone` (at-most-once), `buffers`, `unscheduled` and `cutoffs`
//! (priorities), `features` (the extensions). What is *not* here: sockets,
//! message memory, waiting applications (`homa-engine`), and bytes
//! (`homa-wire`).

#![no_std]
#![forbid(unsafe_code)]
#![allow(
    clippy::inline_always,
    reason = "only where the count of instructions per packet showed that it pays (examples/cost.rs)"
)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod ack;
mod buffers;
mod calls;
mod config;
mod counters;
mod cutoffs;
mod data;
mod endpoint;
mod features;
mod grant;
mod granting;
mod incoming;
mod mechanism;
mod outgoing;
mod pacer;
mod peer;
mod probe;
mod replies;
mod retransmit;
mod rpc;
mod sending;
mod table;
mod time;
mod timer;
mod tombstone;
mod transmit;
mod unreachable;
mod unscheduled;

pub use calls::{Event, Request, RequestError, RespondError};
pub use config::{
    Config, ConfigError, Extensions, IncomingCounts, LARGEST_MESSAGE_BYTES, LARGEST_OVERCOMMIT,
    STANDARD_MESSAGE_BYTES, Settings,
};
pub use counters::{Counters, DropReason, Gauges};
pub use endpoint::{Endpoint, Identity, NoRoom, Placement, UnknownPeer, Verdict};
pub use mechanism::Mechanisms;
pub use peer::PeerHandle;
pub use rpc::{Failure, Kind, Phase, RpcHandle};
pub use time::{MILLISECOND_NS, SECOND_NS, Time};
pub use timer::{MoreDue, TimerReason};
pub use transmit::{Payload, Transmit};
pub use unreachable::{Quoted, Unreachable};
