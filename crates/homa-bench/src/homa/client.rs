//! The client: an endpoint and its calls behind the harness's trait.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use homa_core::Settings;
use homa_engine::{Call, CallError, CallOptions, Engine, Message, SubmitCause, SubmitError};

use super::counters;
use super::open::Options;
use super::ready::Ready;
use super::sleeper::Sleeper;
use crate::error::BenchError;
use crate::message::{Directive, MIN_REQUEST_BYTES, ResponseSize};
use crate::transport::{Completion, Found, Outcome, PeerIndex, Tag, Transport};

/// A server must answer its first call in this time.
const HELLO_TIMEOUT: Duration = Duration::from_secs(3);

/// How long a client that goes still tells servers what it has received.
const FAREWELL: Duration = Duration::from_millis(50);

/// Homa's side of the comparison.
pub struct Client {
    engine: Arc<Engine>,
    sleeper: Sleeper,
    options: Options,
    settings: Settings,
    addresses: Vec<SocketAddr>,
    slots: Vec<Slot>,
    free: Vec<usize>,
    ready: Arc<Ready>,
    /// Slots worth a look, the queue's other half.
    woken: Vec<usize>,
    /// What ended while it was submitted.
    early: VecDeque<Completion>,
}

/// Room for one call after another, with their waker.
struct Slot {
    waker: Waker,
    call: Option<(Tag, PeerIndex, Call)>,
}

impl Client {
    /// Makes a call to each server, so that one that is not there is noticed
    /// before the run.
    pub fn connect(addresses: &[SocketAddr], options: Options) -> Result<Self, BenchError> {
        let engine = options.open_client(addresses)?;
        let client = Self::on(engine, addresses, options)?;
        for &address in addresses {
            client.greet(address)?;
        }
        Ok(client)
    }

    /// A client on an endpoint that is there; calls nobody yet.
    pub(super) fn on(
        engine: Arc<Engine>,
        addresses: &[SocketAddr],
        options: Options,
    ) -> Result<Self, BenchError> {
        Ok(Self {
            sleeper: Sleeper::new(engine.clone())?,
            settings: engine.settings(),
            engine,
            options,
            addresses: addresses.to_vec(),
            slots: Vec::new(),
            free: Vec::new(),
            ready: Arc::default(),
            woken: Vec::new(),
            early: VecDeque::new(),
        })
    }

    /// One short call; again if it was lost.
    fn greet(&self, peer: SocketAddr) -> Result<(), BenchError> {
        let hello = Directive {
            response: ResponseSize::Echo,
            seed: 0,
        };
        let begin = Instant::now();
        let deadline = begin + HELLO_TIMEOUT;
        loop {
            let error = match self.engine.call(
                peer,
                hello.message(MIN_REQUEST_BYTES),
                CallOptions::until(deadline),
            ) {
                Ok(call) => match call.wait() {
                    Ok(_) => return Ok(()),
                    Err(error) => error,
                },
                Err(SubmitError {
                    cause: SubmitCause::DeadlineExceeded,
                    ..
                }) => CallError::DeadlineExceeded,
                Err(error) => return Err(refused(peer, &error)),
            };
            match error {
                CallError::Timeout | CallError::DeadlineExceeded if Instant::now() < deadline => {}
                CallError::Timeout | CallError::DeadlineExceeded => {
                    return Err(BenchError::Silent {
                        peer,
                        protocol: "homa",
                        waited: begin.elapsed(),
                        traffic: self.options.traffic(peer),
                    });
                }
                CallError::PortClosed | CallError::ServerGone => {
                    return Err(BenchError::Refused {
                        peer,
                        protocol: "homa",
                    });
                }
                CallError::ProtocolUnsupported => {
                    return Err(BenchError::Transport(format!(
                        "nobody speaks Homa over raw IP on {peer}: is `homa server --datapath raw` running there? Both sides must use the same --datapath"
                    )));
                }
                CallError::HostUnreachable => {
                    return Err(BenchError::Unreachable {
                        peer,
                        protocol: "homa",
                        reason: error.to_string(),
                    });
                }
                other => {
                    return Err(BenchError::Transport(format!(
                        "the first call to {peer} over homa failed: {other}"
                    )));
                }
            }
        }
    }

    /// Looks at the call of a slot; frees the slot if it has ended.
    fn look(&mut self, index: usize, at: Instant) -> Option<Result<Completion, BenchError>> {
        let slot = self.slots.get_mut(index)?;
        let (_, _, call) = slot.call.as_mut()?;
        let mut context = Context::from_waker(&slot.waker);
        let Poll::Ready(result) = Pin::new(call).poll(&mut context) else {
            return None;
        };
        let (tag, peer, _) = slot.call.take()?;
        self.free.push(index);
        Some(self.ended(tag, peer, at, result))
    }

    fn ended(
        &self,
        tag: Tag,
        peer: PeerIndex,
        at: Instant,
        result: Result<Message, CallError>,
    ) -> Result<Completion, BenchError> {
        let outcome = match result {
            Ok(response) => Outcome::Response(response),
            // The server is gone, and every further call would tell the same.
            Err(
                error @ (CallError::PortClosed
                | CallError::ServerGone
                | CallError::PeerShuttingDown),
            ) => {
                return Err(BenchError::PeerLost {
                    peer: self.addresses[peer.0],
                    reason: error.to_string(),
                });
            }
            Err(error @ CallError::ShutDown) => {
                return Err(BenchError::Transport(error.to_string()));
            }
            Err(error) => Outcome::Failed(error.to_string()),
        };
        Ok(Completion { tag, at, outcome })
    }

    fn free_slot(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            let index = self.slots.len();
            self.slots.push(Slot {
                waker: self.ready.waker(index),
                call: None,
            });
            index
        })
    }
}

impl Transport for Client {
    fn protocol(&self) -> &'static str {
        "homa"
    }

    fn peers(&self) -> &[SocketAddr] {
        &self.addresses
    }

    fn traffic(&self, peer: PeerIndex) -> String {
        self.options.traffic(self.addresses[peer.0])
    }

    fn max_message_bytes(&self) -> u32 {
        self.settings.max_message_bytes
    }

    fn details(&self) -> Vec<(String, String)> {
        self.options.details(&self.settings)
    }

    fn counters(&self) -> Vec<(String, u64)> {
        counters::list(&self.engine.stats())
    }

    fn submit(&mut self, tag: Tag, peer: PeerIndex, request: Vec<u8>) -> Result<(), BenchError> {
        let address = self.addresses[peer.0];
        let call = self
            .engine
            .call(address, request, CallOptions::default())
            .map_err(|error| refused(address, &error))?;
        let index = self.free_slot();
        self.slots[index].call = Some((tag, peer, call));
        // From this first look on the call has a waker.
        if let Some(ended) = self.look(index, Instant::now()) {
            self.early.push_back(ended?);
        }
        Ok(())
    }

    fn poll(&mut self, completions: &mut Vec<Completion>) -> Result<Found, BenchError> {
        let found = self.sleeper.drive();
        completions.extend(self.early.drain(..));
        if self.ready.is_empty() {
            return Ok(found);
        }
        let at = Instant::now();
        let mut woken = std::mem::take(&mut self.woken);
        self.ready.take(&mut woken);
        let mut result = Ok(Found::Something);
        for index in woken.drain(..) {
            match self.look(index, at) {
                None => {}
                Some(Ok(completion)) => completions.push(completion),
                Some(Err(error)) => result = Err(error),
            }
        }
        self.woken = woken;
        result
    }

    fn wait(&mut self, deadline: Instant) -> Result<(), BenchError> {
        if self.ready.is_empty() && self.early.is_empty() {
            self.sleeper.sleep(deadline)?;
        }
        Ok(())
    }

    fn abandon_all(&mut self) {
        self.early.clear();
        for (index, slot) in self.slots.iter_mut().enumerate() {
            // Dropping a call cancels it.
            if slot.call.take().is_some() {
                self.free.push(index);
            }
        }
    }
}

fn refused(peer: SocketAddr, error: &SubmitError) -> BenchError {
    match error.cause {
        SubmitCause::TooLong { most } => BenchError::MessageTooLong {
            bytes: error.message.len() as u64,
            limit: u64::from(most),
            protocol: "homa",
        },
        cause => BenchError::Transport(format!("no call to {peer} over homa: {cause}")),
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.abandon_all();
        self.engine.shutdown(Instant::now() + FAREWELL);
    }
}
