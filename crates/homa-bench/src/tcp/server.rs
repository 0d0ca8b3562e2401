//! The echo server: one thread, one event loop, any number of connections.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::net::TcpListener;
use mio::{Interest, Token};

use super::frame::{MAX_MESSAGE_BYTES, Message};
use super::link::{Link, LinkEnd, TURN_BYTES};
use super::sockets::Sockets;
use crate::error::BenchError;
use crate::events::EventSet;
use crate::message;
use crate::stop::{STOP_LATENCY, Stop};
use crate::transport::{Found, ServerCounters};

const LISTENER: Token = Token(usize::MAX - 1);

/// A connection whose client leaves this many bytes of responses untaken is
/// neither read nor answered until it takes some: what one connection can make
/// the server hold is this, one response and one read.
const MAX_UNSENT_BYTES: usize = 32 << 20;

/// Connections kept at once; more are refused by closing them.
const MAX_LINKS: usize = 4096;

/// An echo server on one address.
#[derive(Debug)]
pub struct Server {
    events: EventSet,
    listener: TcpListener,
    links: Vec<Option<Slot>>,
    free: Vec<usize>,
    /// Links that have something to do now; each at most once.
    ready: VecDeque<usize>,
    scratch: Vec<u8>,
    messages: Vec<Message>,
    counters: Arc<ServerCounters>,
}

#[derive(Debug)]
struct Slot {
    link: Link,
    /// Requests read but not answered yet: at most those of one read.
    waiting: VecDeque<Message>,
    queued: bool,
}

impl Server {
    /// Listens on `address` (port 0: any).
    pub fn bind(address: SocketAddr, sockets: impl Into<Sockets>) -> Result<Self, BenchError> {
        let events = EventSet::new().map_err(BenchError::system("epoll"))?;
        let mut listener = TcpListener::bind(address).map_err(|source| {
            if source.kind() == io::ErrorKind::AddrInUse {
                BenchError::InUse {
                    address,
                    protocol: "tcp",
                }
            } else {
                BenchError::Listen { address, source }
            }
        })?;
        sockets.into().apply(&listener)?;
        events
            .registry()
            .register(&mut listener, LISTENER, Interest::READABLE)
            .map_err(BenchError::system("epoll of the listening socket"))?;
        Ok(Self {
            events,
            listener,
            links: Vec::new(),
            free: Vec::new(),
            ready: VecDeque::new(),
            scratch: vec![0; TURN_BYTES],
            messages: Vec::new(),
            counters: Arc::default(),
        })
    }

    /// Where it listens.
    pub fn local_address(&self) -> Result<SocketAddr, BenchError> {
        self.listener
            .local_addr()
            .map_err(BenchError::system("address of the listening socket"))
    }

    /// What it has done so far; may be read from another thread.
    pub fn counters(&self) -> Arc<ServerCounters> {
        Arc::clone(&self.counters)
    }

    /// Serves until `stop` is requested. After work it looks for more without
    /// sleeping for `spin`.
    pub fn run(&mut self, spin: Duration, stop: &Stop) -> Result<(), BenchError> {
        let mut busy_at = Instant::now();
        let mut turned_at = busy_at;
        while !stop.requested() {
            let now = Instant::now();
            if now.duration_since(busy_at) < spin || !self.ready.is_empty() {
                self.events.collect_now()
            } else {
                let result = self.events.collect_until(now + STOP_LATENCY);
                turned_at = Instant::now();
                result
            }
            .map_err(BenchError::system("epoll"))?;
            self.note_events();
            if self.ready.is_empty() {
                // Who asks next may be waiting for this very processor.
                std::thread::yield_now();
                turned_at = Instant::now();
                continue;
            }
            self.round();
            busy_at = Instant::now();
            self.counters.add_busy(busy_at.duration_since(turned_at));
            turned_at = busy_at;
        }
        Ok(())
    }

    /// Serves what is ready now, without sleeping.
    pub(super) fn serve(&mut self) -> Result<Found, BenchError> {
        self.events
            .collect_now()
            .map_err(BenchError::system("epoll"))?;
        self.note_events();
        if self.ready.is_empty() {
            return Ok(Found::Nothing);
        }
        self.round();
        Ok(Found::Something)
    }

    /// Whether a look would find work without any event.
    pub(super) fn has_work(&self) -> bool {
        !self.ready.is_empty()
    }

    pub(super) fn events(&self) -> &EventSet {
        &self.events
    }

    /// One turn for each link that was ready when the round began.
    fn round(&mut self) {
        for _ in 0..self.ready.len() {
            if let Some(index) = self.ready.pop_front() {
                self.turn(index);
            }
        }
    }

    fn note_events(&mut self) {
        let mut accept = false;
        for event in self.events.iter() {
            if event.token() == LISTENER {
                accept = true;
            } else if let Some(Some(slot)) = self.links.get_mut(event.token().0) {
                slot.link.note(event);
                if !slot.queued {
                    slot.queued = true;
                    self.ready.push_back(event.token().0);
                }
            }
        }
        if accept {
            self.accept();
        }
    }

    fn accept(&mut self) {
        loop {
            let mut stream = match self.listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                // Out of descriptors or memory: those who are in are served on.
                Err(_) => {
                    self.counters.add_refused();
                    return;
                }
            };
            if self.links.len() - self.free.len() >= MAX_LINKS {
                self.counters.add_refused();
                continue;
            }
            let index = self.free.pop().unwrap_or_else(|| {
                self.links.push(None);
                self.links.len() - 1
            });
            let interest = Interest::READABLE | Interest::WRITABLE;
            let ready = stream.set_nodelay(true).and_then(|()| {
                self.events
                    .registry()
                    .register(&mut stream, Token(index), interest)
            });
            // A client may be gone again already: no reason to stop serving.
            if ready.is_err() {
                self.free.push(index);
                continue;
            }
            self.links[index] = Some(Slot::new(Link::new(stream)));
        }
    }

    fn turn(&mut self, index: usize) {
        let Some(Some(slot)) = self.links.get_mut(index) else {
            return;
        };
        slot.queued = false;
        match slot.serve(&mut self.scratch, &mut self.messages, &self.counters) {
            Ok(()) => {
                if slot.wants_turn() {
                    slot.queued = true;
                    self.ready.push_back(index);
                }
            }
            Err(end) => {
                if matches!(end, LinkEnd::Malformed(_)) {
                    self.counters.add_refused();
                }
                // A socket that cannot be taken out leaves the set when closed.
                let _ = self.events.registry().deregister(slot.link.stream_mut());
                self.links[index] = None;
                self.free.push(index);
            }
        }
    }
}

impl Slot {
    fn new(link: Link) -> Self {
        Self {
            link,
            waiting: VecDeque::new(),
            queued: false,
        }
    }

    fn has_room(&self) -> bool {
        self.link.unsent_bytes() < MAX_UNSENT_BYTES
    }

    fn wants_turn(&self) -> bool {
        let more = !self.waiting.is_empty() || self.link.wants_read();
        self.link.wants_write() || (self.has_room() && more)
    }

    fn serve(
        &mut self,
        scratch: &mut [u8],
        messages: &mut Vec<Message>,
        counters: &ServerCounters,
    ) -> Result<(), LinkEnd> {
        self.link.write()?;
        let mut read = Ok(());
        if self.waiting.is_empty() && self.has_room() && self.link.wants_read() {
            messages.clear();
            read = self.link.read(scratch, messages);
            self.waiting.extend(messages.drain(..));
        }
        while self.has_room()
            && let Some(request) = self.waiting.pop_front()
        {
            let request_bytes = request.body.len();
            let Some(response) = message::response_to(request.body, MAX_MESSAGE_BYTES) else {
                return Err(LinkEnd::Malformed(
                    "a response longer than allowed is wanted",
                ));
            };
            counters.add_request(request_bytes, response.len());
            self.link.push(request.id, response);
        }
        self.link.write()?;
        read
    }
}
