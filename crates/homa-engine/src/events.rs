//! What the core has to say, and what the network says about packets sent.

use std::net::SocketAddr;

use homa_core::{Event, Quoted, RpcHandle, Time, Unreachable};
use homa_datapath::NetworkErrorKind;
use homa_wire::SenderId;

use crate::calls::{CallKey, Stage};
use crate::rpcs::{Role, ServiceStage};
use crate::state::State;

/// A network error, with what could be read of the packet it quotes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Report {
    pub(crate) remote: SocketAddr,
    pub(crate) kind: NetworkErrorKind,
    /// Own port, the peer's port: these come first in every packet.
    pub(crate) ports: Option<(u16, u16)>,
    pub(crate) sender_id: Option<SenderId>,
}

impl Report {
    pub(crate) fn new(remote: SocketAddr, kind: NetworkErrorKind, quoted: &[u8]) -> Self {
        let ports = quoted.first_chunk().map(|&[a, b, c, d]: &[u8; 4]| {
            (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
        });
        let sender_id = quoted
            .get(20..)
            .and_then(<[u8]>::first_chunk)
            .map(|id| SenderId(u64::from_be_bytes(*id)));
        Self {
            remote,
            kind,
            ports,
            sender_id,
        }
    }
}

/// Whether the core may have more to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MoreEvents {
    No,
    Yes,
}

impl State {
    /// Does what the core's events ask for, at most `most` of them.
    pub(crate) fn take_events(&mut self, now: Time, most: u32) -> MoreEvents {
        for _ in 0..most {
            let Some(event) = self.core.poll_event() else {
                return MoreEvents::No;
            };
            self.event(now, event);
        }
        MoreEvents::Yes
    }

    fn event(&mut self, now: Time, event: Event) {
        match event {
            Event::Request {
                rpc, local_port, ..
            } => self.offer(now, rpc, local_port),
            Event::Response { rpc, .. } => {
                if let Some(key) = self.call_of(rpc) {
                    self.call_over(key, Stage::Answered(rpc));
                } else {
                    self.core.taken(now, rpc);
                }
            }
            Event::Delivered { rpc } => self.call_ended(rpc, Stage::Delivered),
            Event::Failed { rpc, failure } => {
                self.call_ended(rpc, Stage::Failed(failure.into()));
            }
            Event::Cancelled { rpc } => {
                if let Some(service) = self.rpcs.service_mut(rpc)
                    && service.stage == ServiceStage::InService
                {
                    service.stage = ServiceStage::Cancelled;
                    self.wakes.extend(service.waker.take());
                }
            }
            Event::Released { rpc } => self.clear(rpc),
            // What a later core may add.
            _ => {}
        }
    }

    fn call_of(&self, rpc: RpcHandle) -> Option<CallKey> {
        match self.rpcs.get(rpc)?.role {
            Role::Client(key) => Some(key),
            Role::Server(_) => None,
        }
    }

    fn call_ended(&mut self, rpc: RpcHandle, stage: Stage) {
        let key = self.call_of(rpc);
        self.clear(rpc);
        if let Some(key) = key {
            self.call_over(key, stage);
        }
    }

    pub(crate) fn network_error(&mut self, now: Time, report: &Report) {
        self.counters.network_errors += 1;
        let what = match report.kind {
            NetworkErrorKind::PortClosed => Unreachable::Port,
            NetworkErrorKind::ProtocolUnsupported => Unreachable::Protocol,
            NetworkErrorKind::HostUnreachable => Unreachable::Host,
            NetworkErrorKind::PacketTooBig { max_packet } => {
                let peers: Vec<_> = self.peers.at(report.remote).collect();
                for peer in peers {
                    self.set_packet(peer, max_packet);
                }
                return;
            }
        };
        let (source_port, destination_port) = report
            .ports
            .unwrap_or((self.own.port, report.remote.port()));
        let quoted = Quoted {
            source_port,
            destination_port,
            sender_id: report.sender_id,
        };
        let peers: Vec<_> = self.peers.at(report.remote).collect();
        let mut ended = 0;
        for peer in peers {
            ended += self.core.unreachable(now, peer, what, quoted);
        }
        tracing::debug!(remote = %report.remote, ?what, ended, "network error");
        self.counters.network_errors_ignored += u64::from(ended == 0);
    }
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use homa_wire::{Body, MAX_HEADER_LENGTH, Packet};

    use super::*;

    #[test]
    fn report__reads_as_much_as_was_quoted() {
        let packet = Packet::new(0x1234, 0x5678, SenderId(0x0102_0304_0506_0708), Body::Busy);
        let mut bytes = [0; MAX_HEADER_LENGTH];
        packet.emit(&mut bytes).unwrap();
        let remote = "10.0.0.1:7".parse().unwrap();
        let report = |length| Report::new(remote, NetworkErrorKind::PortClosed, &bytes[..length]);
        assert_eq!(report(3).ports, None);
        assert_eq!(report(4).ports, Some((0x1234, 0x5678)));
        assert_eq!(report(27).sender_id, None);
        assert_eq!(report(28).sender_id, Some(packet.sender_id));
    }
}
