//! From options to an engine on a datapath.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use homa_core::{Config, ConfigError, LARGEST_MESSAGE_BYTES, Settings};
use homa_datapath::{
    BindError, Datapath, Offload, Raw, RawOptions, Tap, TapOptions, Udp, UdpOptions,
};
use homa_engine::{Drive, Engine, EngineConfig, Sending, StartError};

use crate::error::BenchError;

/// What carries Homa packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carrier {
    /// UDP datagrams.
    #[default]
    Udp,
    /// IP protocol 146, as the reference module speaks it; one endpoint a
    /// network namespace, and only with CAP_NET_RAW.
    Raw,
}

/// How to make an endpoint, client or server.
#[derive(Clone, Debug)]
pub struct Options {
    /// What carries the packets.
    pub carrier: Carrier,
    /// Settings of the protocol.
    pub core: Config,
    /// Segmentation offload of UDP, both ways.
    pub offload: Offload,
    /// Records packets, or makes things go wrong.
    pub tap: Option<TapOptions>,
}

impl Default for Options {
    /// UDP, and the protocol's defaults, but for the longest message, which is
    /// the longest that there can be, with memory for some.
    fn default() -> Self {
        let core = Config::default();
        Self {
            carrier: Carrier::default(),
            core: Config {
                max_message_bytes: LARGEST_MESSAGE_BYTES,
                buffer_bytes: core.buffer_bytes + u64::from(LARGEST_MESSAGE_BYTES),
                ..core
            },
            offload: Offload::Auto,
            tap: None,
        }
    }
}

impl Options {
    /// Every value that the protocol will run with.
    pub fn settings(&self) -> Result<Settings, ConfigError> {
        self.core.settings()
    }

    /// Opens an endpoint for clients of `peers`.
    pub(super) fn open_client(&self, peers: &[SocketAddr]) -> Result<Arc<Engine>, BenchError> {
        let mut addresses: Vec<SocketAddr> = Vec::new();
        if peers.iter().any(SocketAddr::is_ipv4) {
            addresses.push((Ipv4Addr::UNSPECIFIED, 0).into());
        }
        if peers.iter().any(SocketAddr::is_ipv6) {
            addresses.push((Ipv6Addr::UNSPECIFIED, 0).into());
        }
        self.open(&addresses)
    }

    /// Opens an endpoint for a server on one address; `[::]` is both families,
    /// as with TCP.
    pub(super) fn open_server(&self, address: SocketAddr) -> Result<Arc<Engine>, BenchError> {
        let mut addresses = vec![address];
        if address.ip() == IpAddr::from(Ipv6Addr::UNSPECIFIED) {
            addresses.push((Ipv4Addr::UNSPECIFIED, address.port()).into());
        }
        self.open(&addresses)
    }

    fn open(&self, addresses: &[SocketAddr]) -> Result<Arc<Engine>, BenchError> {
        let address = addresses
            .first()
            .copied()
            .unwrap_or_else(|| (Ipv4Addr::UNSPECIFIED, 0).into());
        let datapath = self
            .datapath(addresses)
            .map_err(|error| bind_error(address, error))?;
        let datapath: Box<dyn Datapath> = match &self.tap {
            None => datapath,
            Some(options) => Box::new(Tap::new(datapath, options).map_err(|source| {
                let path = options.capture.as_deref().unwrap_or("".as_ref());
                BenchError::Transport(format!("cannot record into {}: {source}", path.display()))
            })?),
        };
        let config = EngineConfig {
            core: self.core.clone(),
            drive: Drive::External,
            // Both loops drive right after they have submitted.
            sending: Sending::NextTurn,
            // The harness limits what is outstanding.
            max_outgoing_bytes: u64::MAX / 2,
            ..EngineConfig::default()
        };
        Engine::new(config, datapath).map_err(|error| match error {
            StartError::System { what, source } => BenchError::System {
                action: what,
                source,
            },
            other => BenchError::Transport(other.to_string()),
        })
    }

    fn datapath(&self, addresses: &[SocketAddr]) -> Result<Box<dyn Datapath>, BindError> {
        Ok(match self.carrier {
            Carrier::Udp => Box::new(Udp::bind(&UdpOptions {
                addresses: addresses.to_vec(),
                gso: self.offload,
                gro: self.offload,
                ..UdpOptions::default()
            })?),
            Carrier::Raw => Box::new(Raw::open(&RawOptions {
                addresses: addresses
                    .iter()
                    .map(SocketAddr::ip)
                    .filter(|address| !address.is_unspecified())
                    .collect(),
                ..RawOptions::default()
            })?),
        })
    }

    /// What a firewall would see.
    pub(super) fn traffic(&self, peer: SocketAddr) -> String {
        match self.carrier {
            Carrier::Udp => format!(
                "UDP port {} (and is --datapath udp the server's too)",
                peer.port()
            ),
            Carrier::Raw => "IP protocol 146 (and is --datapath raw the server's too)".into(),
        }
    }

    /// What a reader must know to repeat a run.
    pub(super) fn details(&self, settings: &Settings) -> Vec<(String, String)> {
        let datapath = match (self.carrier, self.offload) {
            (Carrier::Raw, _) => "raw IP",
            (Carrier::Udp, Offload::Off) => "UDP without segmentation offload",
            (Carrier::Udp, _) => "UDP",
        };
        let link = settings.link_rate_bps.map_or_else(
            || "not paced".into(),
            |rate| format!("paced to {} Gbit/s", rate as f64 / 1e9),
        );
        let mut details = vec![
            ("datapath".into(), datapath.into()),
            (
                "settings".into(),
                format!(
                    "{} priorities, unscheduled {} B, incoming at most {} B, {link}",
                    settings.priorities, settings.unscheduled_bytes, settings.max_incoming_bytes
                ),
            ),
        ];
        if let Some(tap) = &self.tap {
            if tap.transmit.any() || tap.receive.any() {
                let f = &tap.receive;
                details.push((
                    "faults".into(),
                    format!(
                        "loss {}, duplicates {}, reordered {}, corrupt {}, delayed {} of packets each way",
                        f.loss, f.duplicate, f.reorder, f.corrupt, f.delay
                    ),
                ));
            }
            if let Some(path) = &tap.capture {
                details.push(("recorded into".into(), path.display().to_string()));
            }
        }
        details
    }
}

fn bind_error(address: SocketAddr, error: BindError) -> BenchError {
    match error {
        BindError::InUse { .. } => BenchError::InUse {
            address,
            protocol: "homa",
        },
        BindError::System { call, source } => BenchError::System {
            action: call,
            source,
        },
        BindError::RawOwned => BenchError::Transport(format!(
            "{error}: client and server need hosts or namespaces of their own with --datapath raw"
        )),
        other => BenchError::Transport(other.to_string()),
    }
}
