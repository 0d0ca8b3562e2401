//! Who is who: addresses to the core's peers and back (`docs/protocol.md` §1).
//!
//! A peer is an address and port as observed (raw: an address), together with
//! the own address that it knows us by. Answers must leave from the address
//! that the question came to, so a peer that asks two of our addresses is two
//! peers here. To answer our own questions any of them may serve: the
//! *primary* peer of an address is the one that our calls go to, and whatever
//! comes from that address as a server belongs to it, whichever of our
//! addresses it came to.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use homa_core::{PeerHandle, SECOND_NS, Time};
use homa_datapath::{Kind, Path};

/// How long the longest packet to a peer is believed.
const PACKET_LIFETIME_NS: u64 = 10 * SECOND_NS;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    /// The client of the RPC that the packet is about.
    Client,
    /// Its server.
    Server,
}

pub(crate) struct PeerEntry {
    handle: PeerHandle,
    pub(crate) path: Path,
    place: Place,
    /// Whether requests of ours went there: then its source address is fixed
    /// by the kernel's choice, which the answers will tell.
    asked: bool,
    checked_at: Time,
    /// Bytes allocated for messages from it.
    pub(crate) page_bytes: u64,
    /// Bytes of responses to it that are not acknowledged.
    pub(crate) response_bytes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Primary,
    Other(IpAddr),
}

pub(crate) struct Peers {
    kind: Kind,
    /// By the handle's index.
    entries: Vec<Option<PeerEntry>>,
    primary: HashMap<SocketAddr, PeerHandle>,
    others: BTreeMap<(SocketAddr, IpAddr), PeerHandle>,
    /// The last sender found: packets come in runs.
    last: Option<(Path, Sender, PeerHandle)>,
    /// Longest packet that any peer was ever sent, in bytes.
    largest_packet: usize,
}

impl Peers {
    pub(crate) fn new(kind: Kind) -> Self {
        Self {
            kind,
            entries: Vec::new(),
            primary: HashMap::new(),
            others: BTreeMap::new(),
            last: None,
            largest_packet: homa_wire::MAX_HEADER_LENGTH,
        }
    }

    pub(crate) fn largest_packet(&self) -> usize {
        self.largest_packet
    }

    /// An address as peers are known by. Unspecified addresses mean this host.
    pub(crate) fn key(&self, remote: SocketAddr) -> SocketAddr {
        let port = match self.kind {
            Kind::Raw => 0,
            Kind::Udp | Kind::Mem => remote.port(),
        };
        match (remote.ip().to_canonical(), remote) {
            (IpAddr::V4(ip), _) if ip.is_unspecified() => (Ipv4Addr::LOCALHOST, port).into(),
            (IpAddr::V6(ip), _) if ip.is_unspecified() => (Ipv6Addr::LOCALHOST, port).into(),
            (IpAddr::V6(ip), SocketAddr::V6(remote)) if ip.is_unicast_link_local() => {
                SocketAddrV6::new(ip, port, 0, remote.scope_id()).into()
            }
            (ip, _) => (ip, port).into(),
        }
    }

    /// The peer that our calls to an address go to.
    pub(crate) fn server(&self, key: SocketAddr) -> Option<PeerHandle> {
        self.primary.get(&key).copied()
    }

    /// The peer that sent a packet, and whether its own address for it has
    /// just become known.
    pub(crate) fn sender(&mut self, path: &Path, sender: Sender) -> Option<PeerHandle> {
        if let Some((known, as_what, peer)) = &self.last
            && known == path
            && *as_what == sender
        {
            return Some(*peer);
        }
        let key = self.key(path.remote);
        let found = match (sender, path.local) {
            (Sender::Client, Some(local)) => self.client(key, local),
            _ => self.primary.get(&key).copied(),
        }?;
        if sender == Sender::Server
            && let Some(entry) = self.get_mut(found)
            && entry.path.local.is_none()
        {
            entry.path.local = path.local;
        }
        self.last = Some((*path, sender, found));
        Some(found)
    }

    fn client(&mut self, key: SocketAddr, local: IpAddr) -> Option<PeerHandle> {
        if !self.others.is_empty()
            && let Some(peer) = self.others.get(&(key, local))
        {
            return Some(*peer);
        }
        let peer = *self.primary.get(&key)?;
        let entry = self.get_mut(peer)?;
        match entry.path.local {
            Some(known) if known == local => Some(peer),
            None if !entry.asked => {
                entry.path.local = Some(local);
                Some(peer)
            }
            _ => None,
        }
    }

    /// Remembers a new peer. `path.local` is `None` where we ask first.
    pub(crate) fn insert(&mut self, now: Time, handle: PeerHandle, path: Path, packet: usize) {
        let key = self.key(path.remote);
        let place = match path.local {
            Some(local) if self.primary.contains_key(&key) => Place::Other(local),
            _ => Place::Primary,
        };
        match place {
            Place::Primary => self.primary.insert(key, handle),
            Place::Other(local) => self.others.insert((key, local), handle),
        };
        let index = handle.index() as usize;
        if self.entries.len() <= index {
            self.entries.resize_with(index + 1, || None);
        }
        if let Some(entry) = self.entries.get_mut(index) {
            *entry = Some(PeerEntry {
                handle,
                path: Path {
                    remote: key,
                    local: path.local,
                },
                place,
                asked: false,
                checked_at: now,
                page_bytes: 0,
                response_bytes: 0,
            });
        }
        self.largest_packet = self.largest_packet.max(packet);
        self.last = None;
    }

    /// Forgets a peer that the core has forgotten.
    pub(crate) fn remove(&mut self, handle: PeerHandle) {
        self.last = None;
        let Some(place) = self.entries.get_mut(handle.index() as usize) else {
            return;
        };
        let Some(entry) = place.take_if(|entry| entry.handle == handle) else {
            return;
        };
        match entry.place {
            Place::Primary => self.primary.remove(&entry.path.remote),
            Place::Other(local) => self.others.remove(&(entry.path.remote, local)),
        };
    }

    pub(crate) fn get(&self, handle: PeerHandle) -> Option<&PeerEntry> {
        self.entries
            .get(handle.index() as usize)?
            .as_ref()
            .filter(|entry| entry.handle == handle)
    }

    pub(crate) fn get_mut(&mut self, handle: PeerHandle) -> Option<&mut PeerEntry> {
        self.entries
            .get_mut(handle.index() as usize)?
            .as_mut()
            .filter(|entry| entry.handle == handle)
    }

    /// A request of ours goes to the peer.
    pub(crate) fn asked(&mut self, handle: PeerHandle) {
        if let Some(entry) = self.get_mut(handle) {
            entry.asked = true;
        }
    }

    /// The path to a peer if its longest packet should be looked up again.
    pub(crate) fn stale_path(&mut self, now: Time, handle: PeerHandle) -> Option<Path> {
        let entry = self.get_mut(handle)?;
        if now.since(entry.checked_at) < PACKET_LIFETIME_NS {
            return None;
        }
        entry.checked_at = now;
        Some(entry.path)
    }

    pub(crate) fn packet_grew(&mut self, packet: usize) {
        self.largest_packet = self.largest_packet.max(packet);
    }

    /// All peers with this address (raw: whatever the port).
    pub(crate) fn at(&self, remote: SocketAddr) -> impl Iterator<Item = PeerHandle> + '_ {
        let key = self.key(remote);
        let from = (key, IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let others = self.others.range(from..);
        self.primary.get(&key).copied().into_iter().chain(
            others
                .take_while(move |((remote, _), _)| *remote == key)
                .map(|(_, peer)| *peer),
        )
    }

    pub(crate) fn handles(&self) -> Vec<PeerHandle> {
        self.entries
            .iter()
            .flatten()
            .map(|entry| entry.handle)
            .collect()
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use homa_core::{Config, Endpoint, Identity};

    use super::*;

    struct World {
        core: Endpoint,
        peers: Peers,
    }

    impl World {
        fn new(kind: Kind) -> Self {
            let identity = Identity {
                first_id: 2,
                instance: 1,
                hash_seed: 1,
            };
            let config = Config {
                max_rpcs: 16,
                max_peers: 16,
                ..Config::default()
            };
            Self {
                core: Endpoint::new(config.settings().unwrap(), identity),
                peers: Peers::new(kind),
            }
        }

        fn add(&mut self, path: Path) -> PeerHandle {
            let now = Time::from_nanos(1);
            let (handle, evicted) = self.core.add_peer(now, 1480).unwrap();
            assert_eq!(evicted, None);
            self.peers.insert(now, handle, path, 1480);
            handle
        }
    }

    fn path(remote: &str, local: &str) -> Path {
        Path {
            remote: remote.parse().unwrap(),
            local: Some(local.parse().unwrap()),
        }
    }

    #[test]
    fn sender__client_of_two_addresses_is_two_peers() {
        let mut world = World::new(Kind::Udp);
        let first = path("10.0.0.1:5000", "10.0.0.8");
        let second = path("10.0.0.1:5000", "10.0.0.9");
        let one = world.add(first);
        assert_eq!(world.peers.sender(&second, Sender::Client), None);
        let two = world.add(second);
        assert_ne!(one, two);
        for (of, peer) in [(first, one), (second, two), (first, one)] {
            assert_eq!(world.peers.sender(&of, Sender::Client), Some(peer));
            assert_eq!(world.peers.get(peer).unwrap().path, of);
        }
        // What answers us belongs to the primary, wherever it comes to.
        assert_eq!(world.peers.sender(&second, Sender::Server), Some(one));
        let both: Vec<_> = world.peers.at(first.remote).collect();
        assert_eq!(both, [one, two]);
        world.peers.remove(two);
        assert_eq!(world.peers.sender(&second, Sender::Client), None);
        assert_eq!(world.peers.sender(&first, Sender::Client), Some(one));
    }

    #[test]
    fn sender__own_address_becomes_known_by_the_answer() {
        let mut world = World::new(Kind::Udp);
        let remote = "10.0.0.1:5000".parse().unwrap();
        let peer = world.add(Path::to(remote));
        world.peers.asked(peer);
        let other = path("10.0.0.1:5000", "10.0.0.9");
        // It asks us at an address that our own requests may not come from.
        assert_eq!(world.peers.sender(&other, Sender::Client), None);
        let answer = path("10.0.0.1:5000", "10.0.0.8");
        assert_eq!(world.peers.sender(&answer, Sender::Server), Some(peer));
        assert_eq!(world.peers.get(peer).unwrap().path, answer);
        assert_eq!(world.peers.sender(&answer, Sender::Client), Some(peer));
    }

    #[test]
    fn key__raw_has_no_port_and_mapped_addresses_are_plain() {
        let raw = Peers::new(Kind::Raw);
        assert_eq!(
            raw.key("10.0.0.1:77".parse().unwrap()),
            "10.0.0.1:0".parse().unwrap()
        );
        let udp = Peers::new(Kind::Udp);
        for (given, known) in [
            ("[::ffff:10.0.0.1]:77", "10.0.0.1:77"),
            ("0.0.0.0:77", "127.0.0.1:77"),
            ("[::]:77", "[::1]:77"),
        ] {
            assert_eq!(udp.key(given.parse().unwrap()), known.parse().unwrap());
        }
    }
}
