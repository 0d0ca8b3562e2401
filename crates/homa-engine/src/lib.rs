//! Joins the protocol core, a datapath, message memory and timers into one
//! object with a bounded turn: [`Engine`].

mod config;
mod engine;
mod error;
mod message;

pub use config::{Drive, EngineConfig, TosMap};
pub use engine::{
    Accept, Accepted, Call, CallOptions, Drained, Engine, Incoming, Listener, OneWay, Permit,
    RequestId, Reserve, Responder, Turn,
};
pub use error::{
    CallError, ListenError, RespondCause, RespondError, StartError, SubmitCause, SubmitError,
};
pub use homa_core::Kind;
pub use homa_wire::AbortCode;
pub use message::Message;
