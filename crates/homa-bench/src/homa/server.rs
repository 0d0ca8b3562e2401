//! The echo server: one endpoint, one listener, one loop.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use homa_engine::Engine;

use super::answering::Answering;
use super::counters;
use super::open::Options;
use super::sleeper::Sleeper;
use crate::error::BenchError;
use crate::stop::{STOP_LATENCY, Stop};
use crate::transport::{Found, ServerCounters};

/// How long a server that goes still delivers what it has answered.
const FAREWELL: Duration = Duration::from_millis(250);

/// An echo server on one address.
pub struct Server {
    engine: Arc<Engine>,
    sleeper: Sleeper,
    answering: Answering,
    address: SocketAddr,
}

impl Server {
    /// Listens on `address` (port 0: any).
    pub fn bind(address: SocketAddr, options: &Options) -> Result<Self, BenchError> {
        let engine = options.open_server(address)?;
        let answering = Answering::new(engine.clone(), address)?;
        Ok(Self {
            address: SocketAddr::new(address.ip(), answering.port()),
            sleeper: Sleeper::new(engine.clone())?,
            engine,
            answering,
        })
    }

    /// Where it listens.
    pub fn local_address(&self) -> SocketAddr {
        self.address
    }

    /// What it has done so far; may be read from another thread.
    pub fn counters(&self) -> Arc<ServerCounters> {
        Arc::clone(&self.answering.counters)
    }

    /// Reads the counters of the protocol and of what is below it, by name.
    pub fn protocol_counters(&self) -> impl Fn() -> Vec<(String, u64)> + Send + use<> {
        let engine = self.engine.clone();
        move || counters::list(&engine.stats())
    }

    /// Serves until `stop` is requested. After work it looks for more without
    /// sleeping for `spin`.
    pub fn run(&mut self, spin: Duration, stop: &Stop) -> Result<(), BenchError> {
        let mut busy_at = Instant::now();
        let mut turned_at = busy_at;
        while !stop.requested() {
            let found = self.sleeper.drive();
            let answered = self.answering.answer_some();
            let now = Instant::now();
            let turn = now.duration_since(turned_at);
            turned_at = now;
            if found == Found::Something || answered {
                self.answering.counters.add_busy(turn);
                busy_at = now;
            } else if now.duration_since(busy_at) >= spin {
                self.sleeper.sleep(now + STOP_LATENCY)?;
                turned_at = Instant::now();
            } else {
                // Who asks next may be waiting for this very processor.
                std::thread::yield_now();
            }
        }
        self.engine.shutdown(Instant::now() + FAREWELL);
        Ok(())
    }
}
