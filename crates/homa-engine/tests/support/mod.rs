//! Engines on a network in memory or on loopback, and an echo server.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use homa_datapath::{
    Counters, Datapath, Kind, MemNetwork, NetworkError, Path, ReceiveBatch, SendBatch, SendOutcome,
    Udp, UdpOptions,
};
use homa_engine::{Engine, EngineConfig, Listener, Message};

/// Long enough for any test, short enough to notice a hang.
pub const PATIENCE: Duration = Duration::from_secs(30);

pub fn patience() -> Instant {
    Instant::now() + PATIENCE
}

/// Settings with small tables: many engines live in one test.
pub fn config() -> EngineConfig {
    let mut config = EngineConfig::default();
    config.core.max_rpcs = 8192;
    config.core.max_peers = 256;
    config
}

pub fn udp() -> Box<dyn Datapath> {
    let address = "127.0.0.1:0".parse().unwrap();
    Box::new(Udp::bind(&UdpOptions::on(address)).unwrap())
}

/// UDP on loopback that looks at each batch before it is sent.
pub struct Hooked<F> {
    inner: Udp,
    hook: F,
}

impl<F: Fn(&mut SendBatch) + Send + Sync + 'static> Hooked<F> {
    pub fn udp(hook: F) -> Box<dyn Datapath> {
        let inner = Udp::bind(&UdpOptions::on("127.0.0.1:0".parse().unwrap())).unwrap();
        Box::new(Self { inner, hook })
    }
}

impl<F: Fn(&mut SendBatch) + Send + Sync> Datapath for Hooked<F> {
    fn kind(&self) -> Kind {
        self.inner.kind()
    }
    fn local_addresses(&self) -> Vec<SocketAddr> {
        self.inner.local_addresses()
    }
    fn max_packet(&self, path: &Path) -> usize {
        self.inner.max_packet(path)
    }
    fn send(&self, batch: &mut SendBatch) -> SendOutcome {
        (self.hook)(batch);
        self.inner.send(batch)
    }
    fn receive(&self, batch: &mut ReceiveBatch) -> io::Result<usize> {
        self.inner.receive(batch)
    }
    fn errors(&self, report: &mut dyn FnMut(NetworkError<'_>)) {
        self.inner.errors(report);
    }
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.inner.descriptors()
    }
    fn next_release(&self) -> Option<Instant> {
        self.inner.next_release()
    }
    fn counters(&self) -> Counters {
        self.inner.counters()
    }
}

static NEXT_PORT: AtomicU16 = AtomicU16::new(1000);

pub fn mem(network: &MemNetwork) -> Box<dyn Datapath> {
    let port = NEXT_PORT.fetch_add(1, Ordering::Relaxed);
    let address = SocketAddr::from(([10, 0, 0, 1], port));
    Box::new(network.endpoint(address).unwrap())
}

pub fn engine(datapath: Box<dyn Datapath>) -> Arc<Engine> {
    Engine::new(config(), datapath).unwrap()
}

pub fn address(engine: &Engine) -> SocketAddr {
    engine.local_addresses()[0]
}

/// Bytes that differ from place to place.
pub fn pattern(length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| (at.wrapping_mul(2_654_435_761) >> 16) as u8)
        .collect()
}

/// Answers every request with itself, until the engine is shut down.
pub fn echo(listener: Listener) -> JoinHandle<u32> {
    std::thread::spawn(move || {
        let mut answered = 0;
        while let Some(incoming) = listener.accept().wait() {
            if let Some(responder) = incoming.responder {
                let _ = responder.respond(incoming.message);
            }
            answered += 1;
        }
        answered
    })
}

pub fn call(
    engine: &Arc<Engine>,
    to: SocketAddr,
    message: impl Into<Message>,
) -> Result<Message, homa_engine::CallError> {
    let options = homa_engine::CallOptions::until(patience());
    engine.call(to, message, options).unwrap().wait()
}

/// Counts how often it is woken.
#[derive(Default)]
pub struct Bell(pub std::sync::atomic::AtomicUsize);

impl Bell {
    pub fn rung(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl std::task::Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Looks again and again until it is so.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = patience();
    while !is_so() {
        assert!(Instant::now() < until, "never: {what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}
