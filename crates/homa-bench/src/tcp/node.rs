//! Clients and servers in one thread: a host that calls others and is called by
//! them. With two classes, short RPCs have connections of their own that
//! switches serve first.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Instant;

use super::client::Client;
use super::congestion::Congestion;
use super::server::Server;
use super::sockets::Sockets;
use crate::error::BenchError;
use crate::events::EventSet;
use crate::transport::{Completion, Found, PeerIndex, Tag, Transport};

/// The TOS byte of the urgent class: the highest of eight priorities.
pub const URGENT_TOS: u8 = 7 << 5;

/// A host that serves and does not call yet.
#[derive(Debug)]
pub struct Listening {
    servers: Vec<Server>,
    congestion: Congestion,
    urgent_below: Option<u32>,
}

impl Listening {
    /// Serves on `address`, and the urgent class, which are requests shorter
    /// than `urgent_below` bytes, on the port after it.
    pub fn bind(
        address: SocketAddr,
        congestion: Congestion,
        urgent_below: Option<u32>,
    ) -> Result<Self, BenchError> {
        let mut servers = vec![Server::bind(address, &congestion)?];
        if urgent_below.is_some() {
            servers.push(Server::bind(next_port(address), urgent(&congestion))?);
        }
        Ok(Self {
            servers,
            congestion,
            urgent_below,
        })
    }

    /// Connects to every peer, which must be listening; of each class one
    /// connection at first, and at most `connections`.
    pub fn call(self, peers: &[SocketAddr], connections: NonZeroUsize) -> Result<Node, BenchError> {
        let bulk = Client::connect(peers, connections, &self.congestion)?;
        let urgent = match self.urgent_below {
            None => None,
            Some(below) => {
                let peers: Vec<SocketAddr> = peers.iter().copied().map(next_port).collect();
                let client = Client::connect(&peers, connections, urgent(&self.congestion))?;
                Some((below, client))
            }
        };
        let events = EventSet::new().map_err(BenchError::system("epoll"))?;
        let of_clients = [Some(&bulk), urgent.as_ref().map(|(_, client)| client)];
        let inner = of_clients.into_iter().flatten().map(Client::events);
        for set in inner.chain(self.servers.iter().map(Server::events)) {
            events
                .watch(set)
                .map_err(BenchError::system("epoll of an epoll"))?;
        }
        Ok(Node {
            bulk,
            urgent,
            servers: self.servers,
            events,
        })
    }
}

/// A host that serves and calls: a [`Transport`] that answers requests whenever
/// it is polled.
#[derive(Debug)]
pub struct Node {
    bulk: Client,
    /// With the length below which a request is urgent.
    urgent: Option<(u32, Client)>,
    servers: Vec<Server>,
    /// Those of all parts.
    events: EventSet,
}

impl Node {
    /// The urgent one first.
    fn clients_mut(&mut self) -> impl Iterator<Item = &mut Client> {
        let urgent = self.urgent.as_mut().map(|(_, client)| client);
        urgent.into_iter().chain([&mut self.bulk])
    }

    fn has_work(&self) -> bool {
        self.bulk.has_work()
            || self.urgent.iter().any(|(_, client)| client.has_work())
            || self.servers.iter().any(Server::has_work)
    }
}

impl Transport for Node {
    fn protocol(&self) -> &'static str {
        "tcp"
    }

    fn peers(&self) -> &[SocketAddr] {
        self.bulk.peers()
    }

    fn traffic(&self, peer: PeerIndex) -> String {
        self.bulk.traffic(peer)
    }

    fn max_message_bytes(&self) -> u32 {
        self.bulk.max_message_bytes()
    }

    fn details(&self) -> Vec<(String, String)> {
        let mut details = self.bulk.details();
        if let Some((below, _)) = &self.urgent {
            details.push((
                "priority by size".into(),
                format!("RPCs below {below} B in connections of their own, TOS {URGENT_TOS:#x}"),
            ));
        }
        details
    }

    fn submit(&mut self, tag: Tag, peer: PeerIndex, request: Vec<u8>) -> Result<(), BenchError> {
        match &mut self.urgent {
            Some((below, client)) if request.len() < *below as usize => {
                client.submit(tag, peer, request)
            }
            _ => self.bulk.submit(tag, peer, request),
        }
    }

    fn poll(&mut self, completions: &mut Vec<Completion>) -> Result<Found, BenchError> {
        let mut found = Found::Nothing;
        for client in self.clients_mut() {
            found = found.or(client.poll(completions)?);
        }
        for server in self.servers.iter_mut().rev() {
            found = found.or(server.serve()?);
        }
        Ok(found)
    }

    fn wait(&mut self, deadline: Instant) -> Result<(), BenchError> {
        if self.has_work() {
            return Ok(());
        }
        self.events
            .collect_until(deadline)
            .map_err(BenchError::system("epoll"))
    }

    fn abandon_all(&mut self) {
        self.clients_mut().for_each(Transport::abandon_all);
    }
}

fn next_port(mut address: SocketAddr) -> SocketAddr {
    address.set_port(address.port().wrapping_add(1));
    address
}

fn urgent(congestion: &Congestion) -> Sockets {
    Sockets {
        congestion: congestion.clone(),
        tos: URGENT_TOS,
    }
}
