//! The echo server: one endpoint, one listener, one loop.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use homa_engine::{
    AbortCode, Engine, Incoming, ListenError, Listener, Message, RequestId, RespondCause,
};

use super::open::Options;
use super::sleeper::Sleeper;
use crate::error::BenchError;
use crate::message::{Answer, answer_to};
use crate::stop::{STOP_LATENCY, Stop};
use crate::transport::ServerCounters;

/// Requests answered before the engine has its next turn.
const REQUESTS_AT_ONCE: usize = 64;

/// How long a server that goes still delivers what it has answered.
const FAREWELL: Duration = Duration::from_millis(250);

/// An echo server on one address.
pub struct Server {
    engine: Arc<Engine>,
    listener: Listener,
    sleeper: Sleeper,
    address: SocketAddr,
    max_message_bytes: u32,
    /// Responses for which the engine had no room, oldest first. Nothing new is
    /// taken meanwhile.
    held: VecDeque<(RequestId, Message)>,
    counters: Arc<ServerCounters>,
}

impl Server {
    /// Listens on `address` (port 0: any).
    pub fn bind(address: SocketAddr, options: &Options) -> Result<Self, BenchError> {
        let engine = options.open_server(address)?;
        let listener = engine.listen(address.port()).map_err(|error| match error {
            ListenError::InUse { .. } => BenchError::InUse {
                address,
                protocol: "homa",
            },
            other => BenchError::Transport(format!("cannot listen on {address}: {other}")),
        })?;
        Ok(Self {
            address: SocketAddr::new(address.ip(), listener.port()),
            max_message_bytes: engine.settings().max_message_bytes,
            sleeper: Sleeper::new(engine.clone())?,
            engine,
            listener,
            held: VecDeque::new(),
            counters: Arc::default(),
        })
    }

    /// Where it listens.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// What it has done so far; may be read from another thread.
    pub fn counters(&self) -> Arc<ServerCounters> {
        Arc::clone(&self.counters)
    }

    /// Serves until `stop` is requested. After work it looks for more without
    /// sleeping for `spin`.
    pub fn run(&mut self, spin: Duration, stop: &Stop) -> Result<(), BenchError> {
        let mut busy_at = Instant::now();
        while !stop.requested() {
            let busy = self.sleeper.drive() | self.answer_some();
            let now = Instant::now();
            if busy {
                busy_at = now;
            } else if now.duration_since(busy_at) >= spin {
                self.sleeper.sleep(now + STOP_LATENCY)?;
            }
        }
        self.engine.shutdown(Instant::now() + FAREWELL);
        Ok(())
    }

    /// True if there was a request.
    fn answer_some(&mut self) -> bool {
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
