//! Client and server on one endpoint, driven by one thread: a host that calls
//! others and is called by them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use homa_engine::Engine;

use super::answering::Answering;
use super::client::Client;
use super::open::Options;
use crate::error::BenchError;
use crate::transport::{Completion, Found, PeerIndex, Tag, Transport};

/// A host that serves and does not call yet.
pub struct Listening {
    engine: Arc<Engine>,
    answering: Answering,
    options: Options,
}

impl Listening {
    /// Opens the endpoint and serves on it.
    pub fn bind(address: SocketAddr, options: Options) -> Result<Self, BenchError> {
        let engine = options.open_server(address)?;
        Ok(Self {
            answering: Answering::new(engine.clone(), address)?,
            engine,
            options,
        })
    }

    /// Adds the client. Nobody is called before the first request.
    pub fn call(self, peers: &[SocketAddr]) -> Result<Node, BenchError> {
        Ok(Node {
            client: Client::on(self.engine, peers, self.options)?,
            answering: self.answering,
        })
    }
}

/// A host that serves and calls: a [`Transport`] that answers requests whenever
/// it is polled.
pub struct Node {
    client: Client,
    answering: Answering,
}

impl Transport for Node {
    fn protocol(&self) -> &'static str {
        self.client.protocol()
    }

    fn peers(&self) -> &[SocketAddr] {
        self.client.peers()
    }

    fn traffic(&self, peer: PeerIndex) -> String {
        self.client.traffic(peer)
    }

    fn max_message_bytes(&self) -> u32 {
        self.client.max_message_bytes()
    }

    fn details(&self) -> Vec<(String, String)> {
        self.client.details()
    }

    fn counters(&self) -> Vec<(String, u64)> {
        self.client.counters()
    }

    fn submit(&mut self, tag: Tag, peer: PeerIndex, request: Vec<u8>) -> Result<(), BenchError> {
        self.client.submit(tag, peer, request)
    }

    fn poll(&mut self, completions: &mut Vec<Completion>) -> Result<Found, BenchError> {
        let found = self.client.poll(completions)?;
        // What the turn brought in; who is answered may be answered further by
        // the next turn, so there is one before any sleep.
        if self.answering.answer_some() {
            return Ok(Found::Something);
        }
        Ok(found)
    }

    fn wait(&mut self, deadline: Instant) -> Result<(), BenchError> {
        self.client.wait(deadline)
    }

    fn abandon_all(&mut self) {
        self.client.abandon_all();
    }
}
