//! The echo server: one thread, one event loop, any number of connections.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::net::TcpListener;
use mio::{Interest, Token};

use super::congestion::Congestion;
use super::events::EventSet;
use super::frame::{MAX_MESSAGE_BYTES, Message};
use super::link::{Link, LinkEnd, TURN_BYTES};
use crate::error::BenchError;
use crate::message;
use crate::stop::{STOP_LATENCY, Stop};
use crate::transport::ServerCounters;

const LISTENER: Token = Token(usize::MAX - 1);

/// A connection whose client leaves this many bytes of responses untaken is
/// not read until it takes some: the server's memory is bounded by what one
/// client can make it hold, not by how fast it asks.
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
    queued: bool,
}

impl Server {
    /// Listens on `address` (port 0: any).
    pub fn bind(address: SocketAddr, congestion: &Congestion) -> Result<Self, BenchError> {
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
        congestion.apply(&listener)?;
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
        while !stop.requested() {
            let now = Instant::now();
            if !self.ready.is_empty() {
                busy_at = now;
            }
            if now.duration_since(busy_at) < spin || !self.ready.is_empty() {
                self.events.collect_now()
            } else {
                self.events.collect_until(now + STOP_LATENCY)
            }
            .map_err(BenchError::system("epoll"))?;
            self.note_events();
            // One turn for each link that was ready when the round began.
            for _ in 0..self.ready.len() {
                if let Some(index) = self.ready.pop_front() {
                    self.turn(index);
                }
            }
        }
        Ok(())
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
            self.links[index] = Some(Slot {
                link: Link::new(stream),
                queued: false,
            });
        }
    }

    fn turn(&mut self, index: usize) {
        let Some(Some(slot)) = self.links.get_mut(index) else {
            return;
        };
        slot.queued = false;
        let link = &mut slot.link;
        let result = Self::serve(link, &mut self.scratch, &mut self.messages, &self.counters);
        match result {
            Ok(()) => {
                let blocked = link.unsent_bytes() >= MAX_UNSENT_BYTES;
                if link.wants_write() || (link.wants_read() && !blocked) {
                    slot.queued = true;
                    self.ready.push_back(index);
                }
            }
            Err(end) => {
                if matches!(end, LinkEnd::Malformed(_)) {
                    self.counters.add_refused();
                }
                // A socket that cannot be taken out leaves the set when closed.
                let _ = self.events.registry().deregister(link.stream_mut());
                self.links[index] = None;
                self.free.push(index);
            }
        }
    }

    fn serve(
        link: &mut Link,
        scratch: &mut [u8],
        messages: &mut Vec<Message>,
        counters: &ServerCounters,
    ) -> Result<(), LinkEnd> {
        link.write()?;
        if !link.wants_read() || link.unsent_bytes() >= MAX_UNSENT_BYTES {
            return Ok(());
        }
        messages.clear();
        let read = link.read(scratch, messages);
        for request in messages.drain(..) {
            let request_bytes = request.body.len();
            let Some(response) = message::response_to(request.body, MAX_MESSAGE_BYTES) else {
                return Err(LinkEnd::Malformed(
                    "a response longer than allowed is wanted",
                ));
            };
            counters.add_request(request_bytes, response.len());
            link.push(request.id, response);
        }
        link.write()?;
        read
    }
}
