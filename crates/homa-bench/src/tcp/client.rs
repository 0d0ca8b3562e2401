//! The client: a pool of connections to each server behind the harness's trait.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpStream as BlockingStream};
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Interest, Token};

use super::congestion::Congestion;
use super::frame::{MAX_MESSAGE_BYTES, Message};
use super::link::{Link, LinkEnd, TURN_BYTES};
use super::sockets::Sockets;
use crate::error::BenchError;
use crate::events::EventSet;
use crate::transport::{Completion, Found, Outcome, PeerIndex, Tag, Transport};

/// Connections to each server unless asked otherwise.
pub const DEFAULT_CONNECTIONS: NonZeroUsize = NonZeroUsize::new(32).unwrap();

/// The first connection to a server must come up in this time.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// TCP's side of the comparison.
#[derive(Debug)]
pub struct Client {
    events: EventSet,
    addresses: Vec<SocketAddr>,
    pools: Vec<Pool>,
    links: Vec<Slot>,
    /// Links that have something to do now; each at most once.
    ready: VecDeque<usize>,
    scratch: Vec<u8>,
    messages: Vec<Message>,
    max_connections: NonZeroUsize,
    sockets: Sockets,
}

#[derive(Debug, Default)]
struct Pool {
    links: Vec<usize>,
    /// Links without RPCs; the last used is on top, its caches still warm.
    idle: Vec<usize>,
}

#[derive(Debug)]
struct Slot {
    link: Link,
    peer: PeerIndex,
    outstanding: usize,
    queued: bool,
}

impl Client {
    /// Connects once to each server, so that one that is not there is noticed
    /// before the run; more connections follow when they are needed.
    pub fn connect(
        addresses: &[SocketAddr],
        max_connections: NonZeroUsize,
        sockets: impl Into<Sockets>,
    ) -> Result<Self, BenchError> {
        let mut client = Self {
            events: EventSet::new().map_err(BenchError::system("epoll"))?,
            addresses: addresses.to_vec(),
            pools: addresses.iter().map(|_| Pool::default()).collect(),
            links: Vec::new(),
            ready: VecDeque::new(),
            scratch: vec![0; TURN_BYTES],
            messages: Vec::new(),
            max_connections,
            sockets: sockets.into(),
        };
        for (index, &address) in addresses.iter().enumerate() {
            let stream = connect_blocking(address)?;
            client.set_options(&stream)?;
            let link = client.add(PeerIndex(index), stream)?;
            client.pools[index].idle.push(link);
        }
        Ok(client)
    }

    fn add(&mut self, peer: PeerIndex, mut stream: TcpStream) -> Result<usize, BenchError> {
        let index = self.links.len();
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.events
            .registry()
            .register(&mut stream, Token(index), interest)
            .map_err(BenchError::system("epoll of a connection"))?;
        self.links.push(Slot {
            link: Link::new(stream),
            peer,
            outstanding: 0,
            queued: false,
        });
        self.pools[peer.0].links.push(index);
        Ok(index)
    }

    fn set_options(&self, stream: &TcpStream) -> Result<(), BenchError> {
        stream
            .set_nodelay(true)
            .map_err(BenchError::system("TCP_NODELAY"))?;
        self.sockets.apply(stream)
    }

    fn choose(&mut self, peer: PeerIndex) -> Result<usize, BenchError> {
        let pool = &mut self.pools[peer.0];
        if let Some(index) = pool.idle.pop() {
            return Ok(index);
        }
        if pool.links.len() < self.max_connections.get() {
            let address = self.addresses[peer.0];
            let stream = TcpStream::connect(address).map_err(BenchError::system("connect"))?;
            self.set_options(&stream)?;
            return self.add(peer, stream);
        }
        let links = &self.links;
        let load = |&index: &usize| {
            let slot: &Slot = &links[index];
            (slot.link.unsent_bytes(), slot.outstanding)
        };
        pool.links
            .iter()
            .copied()
            .min_by_key(load)
            .ok_or_else(|| BenchError::Transport("no connection".into()))
    }

    /// Whether a look would find work without any event.
    pub(super) fn has_work(&self) -> bool {
        !self.ready.is_empty()
    }

    pub(super) fn events(&self) -> &EventSet {
        &self.events
    }

    fn ended(&self, index: usize, end: LinkEnd) -> BenchError {
        let peer = self.addresses[self.links[index].peer.0];
        match end {
            LinkEnd::Malformed(reason) => BenchError::NotOurServer { peer, reason },
            LinkEnd::Broken(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                BenchError::Refused {
                    peer,
                    protocol: "tcp",
                }
            }
            LinkEnd::Broken(error) => BenchError::PeerLost {
                peer,
                reason: error.to_string(),
            },
            LinkEnd::ClosedInside => BenchError::PeerLost {
                peer,
                reason: "in the middle of a response".into(),
            },
            LinkEnd::Closed => BenchError::PeerLost {
                peer,
                reason: "end of data".into(),
            },
        }
    }

    fn turn(&mut self, index: usize, completions: &mut Vec<Completion>) -> Result<(), BenchError> {
        let slot = &mut self.links[index];
        slot.queued = false;
        let link = &mut slot.link;
        self.messages.clear();
        let mut result = link.write();
        if result.is_ok() && link.wants_read() {
            result = link.read(&mut self.scratch, &mut self.messages);
        }
        if !self.messages.is_empty() {
            let at = Instant::now();
            for response in self.messages.drain(..) {
                let Some(left) = slot.outstanding.checked_sub(1) else {
                    result = Err(LinkEnd::Malformed("a response that nobody asked for"));
                    break;
                };
                slot.outstanding = left;
                completions.push(Completion {
                    tag: Tag(response.id),
                    at,
                    outcome: Outcome::Response(response.body.into()),
                });
            }
            if slot.outstanding == 0 {
                self.pools[slot.peer.0].idle.push(index);
            }
        }
        result.map_err(|end| self.ended(index, end))?;
        let slot = &mut self.links[index];
        if slot.link.wants_write() || slot.link.wants_read() {
            slot.queued = true;
            self.ready.push_back(index);
        }
        Ok(())
    }

    fn note_events(&mut self) {
        for event in self.events.iter() {
            let index = event.token().0;
            if let Some(slot) = self.links.get_mut(index) {
                slot.link.note(event);
                if !slot.queued {
                    slot.queued = true;
                    self.ready.push_back(index);
                }
            }
        }
    }
}

impl Transport for Client {
    fn protocol(&self) -> &'static str {
        "tcp"
    }

    fn peers(&self) -> &[SocketAddr] {
        &self.addresses
    }

    fn traffic(&self, peer: PeerIndex) -> String {
        traffic(self.addresses[peer.0])
    }

    fn max_message_bytes(&self) -> u32 {
        MAX_MESSAGE_BYTES
    }

    fn details(&self) -> Vec<(String, String)> {
        let control = self.links.first().map_or_else(
            || "unknown".into(),
            |slot| Congestion::in_use(slot.link.stream()),
        );
        vec![
            (
                "connections".into(),
                format!("up to {} to each server, TCP_NODELAY", self.max_connections),
            ),
            ("congestion control".into(), control),
        ]
    }

    fn counters(&self) -> Vec<(String, u64)> {
        let segments = crate::host::tcp_retransmitted_segments().unwrap_or(0);
        vec![("host.tcp_retransmitted_segments".into(), segments)]
    }

    fn submit(&mut self, tag: Tag, peer: PeerIndex, request: Vec<u8>) -> Result<(), BenchError> {
        if request.len() > MAX_MESSAGE_BYTES as usize {
            return Err(BenchError::MessageTooLong {
                bytes: request.len() as u64,
                limit: u64::from(MAX_MESSAGE_BYTES),
                protocol: "tcp",
            });
        }
        let index = self.choose(peer)?;
        let slot = &mut self.links[index];
        slot.outstanding += 1;
        slot.link.push(tag.0, request);
        slot.link.write().map_err(|end| self.ended(index, end))
    }

    fn poll(&mut self, completions: &mut Vec<Completion>) -> Result<Found, BenchError> {
        self.events
            .collect_now()
            .map_err(BenchError::system("epoll"))?;
        self.note_events();
        if self.ready.is_empty() {
            return Ok(Found::Nothing);
        }
        for _ in 0..self.ready.len() {
            if let Some(index) = self.ready.pop_front() {
                self.turn(index, completions)?;
            }
        }
        Ok(Found::Something)
    }

    fn wait(&mut self, deadline: Instant) -> Result<(), BenchError> {
        if self.ready.is_empty() {
            self.events
                .collect_until(deadline)
                .map_err(BenchError::system("epoll"))?;
            self.note_events();
        }
        Ok(())
    }

    fn abandon_all(&mut self) {
        // Responses may be on their way on any busy connection, so those go;
        // the idle ones stay, under new indices.
        let old = std::mem::take(&mut self.links);
        self.ready.clear();
        for pool in &mut self.pools {
            *pool = Pool::default();
        }
        for mut slot in old {
            let registry = self.events.registry();
            // Closing takes a socket out of the set in any case.
            let _ = registry.deregister(slot.link.stream_mut());
            let index = self.links.len();
            let interest = Interest::READABLE | Interest::WRITABLE;
            if slot.outstanding == 0
                && registry
                    .register(slot.link.stream_mut(), Token(index), interest)
                    .is_ok()
            {
                slot.queued = false;
                let pool = &mut self.pools[slot.peer.0];
                pool.links.push(index);
                pool.idle.push(index);
                self.links.push(slot);
            }
        }
    }
}

fn connect_blocking(address: SocketAddr) -> Result<TcpStream, BenchError> {
    let stream =
        BlockingStream::connect_timeout(&address, CONNECT_TIMEOUT).map_err(
            |source| match source.kind() {
                io::ErrorKind::ConnectionRefused => BenchError::Refused {
                    peer: address,
                    protocol: "tcp",
                },
                io::ErrorKind::TimedOut => BenchError::Silent {
                    peer: address,
                    protocol: "tcp",
                    waited: CONNECT_TIMEOUT,
                    traffic: traffic(address),
                },
                _ => BenchError::Unreachable {
                    peer: address,
                    protocol: "tcp",
                    reason: source.to_string(),
                },
            },
        )?;
    stream
        .set_nonblocking(true)
        .map_err(BenchError::system("non-blocking mode of a connection"))?;
    Ok(TcpStream::from_std(stream))
}

fn traffic(address: SocketAddr) -> String {
    format!("TCP port {}", address.port())
}
