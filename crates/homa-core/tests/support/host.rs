//! One host: an endpoint, what it knows of the others, and its messages.

use std::collections::HashMap;

use homa_core::{Config, Endpoint, Identity, Mechanisms, PeerHandle, RpcHandle, Settings, Time};

use super::Service;
use super::ledger::Tag;

/// Longest packet from the Homa header on: Ethernet, IPv4.
pub(crate) const PACKET_BYTES: u32 = 1480;

pub(crate) struct Host {
    pub(crate) endpoint: Endpoint,
    pub(crate) settings: Settings,
    /// How often it has been restarted.
    pub(crate) life: u32,
    /// Of each other host.
    pub(crate) peers: Vec<Option<PeerHandle>>,
    pub(crate) messages: HashMap<RpcHandle, Messages>,
    pub(crate) service: Service,
    /// When its link has sent what was handed to it.
    pub(crate) idle_at: Time,
    pub(crate) packets_sent: u64,
    /// Longest packet that it sends.
    pub(crate) packet_bytes: u32,
}

/// The bytes of one RPC at one end.
pub(crate) struct Messages {
    pub(crate) tag: Tag,
    pub(crate) outgoing: Vec<u8>,
    pub(crate) incoming: Vec<u8>,
}

impl Host {
    pub(crate) fn new(index: usize, hosts: usize, config: &Config, seed: u64, now: Time) -> Self {
        let settings = config.settings().expect("a valid configuration");
        let mut host = Self {
            endpoint: Endpoint::new(
                settings.clone(),
                Identity {
                    first_id: now.as_nanos() + 1_000_000,
                    instance: seed | 1,
                    hash_seed: seed,
                },
            ),
            settings,
            life: 0,
            peers: vec![None; hosts],
            messages: HashMap::new(),
            service: Service::default(),
            idle_at: now,
            packets_sent: 0,
            packet_bytes: PACKET_BYTES,
        };
        host.greet(index, now);
        host
    }

    fn greet(&mut self, index: usize, now: Time) {
        for (other, peer) in self.peers.iter_mut().enumerate() {
            *peer = (other != index).then(|| {
                let (peer, evicted) = self
                    .endpoint
                    .add_peer(now, self.packet_bytes)
                    .expect("room for every peer");
                assert_eq!(evicted, None);
                peer
            });
        }
        self.endpoint.listen(4000);
    }

    /// Other packets than Ethernet's, for messages from now on.
    pub(crate) fn set_packet_bytes(&mut self, packet_bytes: u32) {
        self.packet_bytes = packet_bytes;
        for peer in self.peers.iter().flatten() {
            self.endpoint.set_packet_bytes(*peer, packet_bytes);
        }
    }

    /// The same address, a new life.
    pub(crate) fn restart(&mut self, index: usize, seed: u64, now: Time) {
        self.endpoint = Endpoint::new(
            self.settings.clone(),
            Identity {
                first_id: now.as_nanos() + 1_000_000,
                instance: seed | 1,
                hash_seed: seed,
            },
        );
        self.life += 1;
        self.messages.clear();
        self.greet(index, now);
    }

    pub(crate) fn peer(&self, other: usize) -> PeerHandle {
        self.peers[other].expect("another host")
    }

    pub(crate) fn other(&self, peer: PeerHandle) -> usize {
        self.peers
            .iter()
            .position(|known| *known == Some(peer))
            .expect("a known peer")
    }

    pub(crate) fn uses(&self, mechanism: Mechanisms) -> bool {
        self.settings.mechanisms.has(mechanism)
    }
}
