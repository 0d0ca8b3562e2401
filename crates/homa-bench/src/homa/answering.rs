//! Requests in, echoes out: what a server does between two turns of its engine.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

use homa_engine::{
    AbortCode, Engine, Incoming, ListenError, Listener, Message, RequestId, RespondCause,
};

use crate::error::BenchError;
use crate::message::{Answer, answer_to};
use crate::transport::ServerCounters;

/// Requests answered before the engine has its next turn.
const REQUESTS_AT_ONCE: usize = 64;

/// The listener of an engine that somebody else drives.
pub(super) struct Answering {
    engine: Arc<Engine>,
    listener: Listener,
    max_message_bytes: u32,
    /// Responses for which the engine had no room, oldest first. Nothing new is
    /// taken meanwhile.
    held: VecDeque<(RequestId, Message)>,
    pub(super) counters: Arc<ServerCounters>,
}

impl Answering {
    pub(super) fn new(engine: Arc<Engine>, address: SocketAddr) -> Result<Self, BenchError> {
        let listener = engine.listen(address.port()).map_err(|error| match error {
            ListenError::InUse { .. } => BenchError::InUse {
                address,
                protocol: "homa",
            },
            other => BenchError::Transport(format!("cannot listen on {address}: {other}")),
        })?;
        Ok(Self {
            max_message_bytes: engine.settings().max_message_bytes,
            engine,
            listener,
            held: VecDeque::new(),
            counters: Arc::default(),
        })
    }

    pub(super) fn port(&self) -> u16 {
        self.listener.port()
    }

    /// True if there was a request.
    pub(super) fn answer_some(&mut self) -> bool {
        while let Some((request, response)) = self.held.pop_front() {
            if !self.respond(request, response) {
                return false;
            }
        }
        for taken in 0..REQUESTS_AT_ONCE {
            let Some(incoming) = self.listener.try_accept() else {
                return taken > 0;
            };
            if !self.answer(incoming) {
                return true;
            }
        }
        true
    }

    /// False if the response is held back.
    fn answer(&mut self, incoming: Incoming) -> bool {
        // A one-way message wants no answer.
        let Some(responder) = incoming.responder else {
            self.counters.add_request(incoming.message.len(), 0);
            return true;
        };
        let mut head = [0; 8];
        let head_bytes = incoming.message.copy_to(&mut head);
        let request_bytes = incoming.message.len();
        let response = match answer_to(&head[..head_bytes], self.max_message_bytes) {
            Some(Answer::Echo) => incoming.message,
            Some(Answer::Made(response)) => response.into(),
            None => {
                self.counters.add_refused();
                responder.abort(AbortCode::Refused);
                return true;
            }
        };
        self.counters.add_request(request_bytes, response.len());
        self.respond(responder.into_id(), response)
    }

    /// False if the response is held back.
    fn respond(&mut self, request: RequestId, response: Message) -> bool {
        let Err(error) = self.engine.respond(request, response) else {
            return true;
        };
        match error.cause {
            RespondCause::Full => {
                self.held.push_front((request, error.message));
                false
            }
            // The client accepts no response of that length.
            RespondCause::TooLong { .. } => {
                self.counters.add_refused();
                self.engine.abort(request, AbortCode::TooLarge);
                true
            }
            // The client is gone, or this server about to be.
            _ => true,
        }
    }
}
