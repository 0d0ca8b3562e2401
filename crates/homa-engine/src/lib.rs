//! Joins the protocol core, a datapath, message memory and timers into one
//! object with a bounded turn: [`Engine`].
//!
//! It owns what the core leaves to its host: the bytes of messages
//! ([`Message`]), the clock, who waits for what, how much may be under way at
//! once, and deadlines. There is one lock; system calls are made, and waiters
//! woken, after its release. No async runtime: tasks are woken through
//! [`std::task::Waker`], threads block in [`Engine::block_on`].
//!
//! Ways to drive it, with the same turn ([`Drive`]): a waiting caller
//! does it itself, with a thread of the engine as the driver of last resort; a
//! thread polls; or somebody outside calls [`Engine::drive`], with or without
//! a thread that looks after it.
//!
//! Invariants:
//! - Every call ends: with a response, or an error that names the cause.
//! - Every limit is a value that the caller sees, never a hang and never a
//!   panic; nothing that a peer sends can cause either.
//! - Whoever waits is woken when what it waits for has happened, and each
//!   event wakes one waiter.
//!
//! What is *not* here: the protocol (`homa-core`), sockets (`homa-datapath`),
//! and the interface for applications, async and blocking (`homa`). Implements
//! the host's side of `docs/protocol.md` §4 to §8 and §17.

#![forbid(unsafe_code)]

mod admission;
mod arrivals;
mod assembly;
mod call;
mod calls;
mod clock;
mod config;
mod counters;
mod deadlines;
mod engine;
mod error;
mod events;
mod flush;
mod identity;
mod inner;
mod integrity;
mod lateness;
mod lead;
mod listener;
mod listeners;
mod message;
mod outgoing;
mod park;
mod peers;
mod rpcs;
mod service;
mod shutdown;
mod sleep;
mod state;
mod submit;
mod thread;
mod transmit;
mod turn;
mod watch;

pub use call::{Call, CallOptions, OneWay, Permit, Reserve};
pub use config::{Drive, EngineConfig, Sending, TosMap};
pub use counters::{Counters, Gauges, Stats};
pub use engine::{Drained, Engine, Turn};
pub use error::{
    CallError, ListenError, RespondCause, RespondError, StartError, SubmitCause, SubmitError,
};
pub use homa_core::Kind;
pub use homa_wire::AbortCode;
pub use listener::{Accept, Accepted, Incoming, Listener, RequestId, Responder};
pub use message::Message;
