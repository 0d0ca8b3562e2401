//! What the network says about a peer (`docs/protocol.md` §17): ICMP errors,
//! after the host has matched them to a peer.
//!
//! Anybody can send ICMP, so an error counts only if the packet it quotes is
//! one of ours: its ports and id name a live RPC with that peer.

use homa_wire::SenderId;

use crate::endpoint::Endpoint;
use crate::peer::PeerHandle;
use crate::rpc::{Ending, Failure, Phase, SaidOf};
use crate::time::Time;
use crate::tombstone::Epitaph;

/// What cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreachable {
    /// The port: its RPCs end.
    Port,
    /// The protocol: all RPCs with the peer end.
    Protocol,
    /// The host: all RPCs with the peer end.
    Host,
}

/// The header that an ICMP error quotes: one of our own packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quoted {
    /// Our port.
    pub source_port: u16,
    /// The peer's port.
    pub destination_port: u16,
    /// The RPC as we know it; `None` where the quote was too short to tell,
    /// and then only the ports are compared.
    pub sender_id: Option<SenderId>,
}

impl Endpoint {
    /// The network reports that `peer` cannot be reached. Costs a step for
    /// each RPC with the peer; says how many ended.
    pub fn unreachable(
        &mut self,
        now: Time,
        peer: PeerHandle,
        what: Unreachable,
        quoted: Quoted,
    ) -> u32 {
        let Some(known) = self.peers.get(peer.0) else {
            return 0;
        };
        let first = known.members.front();
        let matches = |slot: u32| {
            self.rpcs.slot(slot).is_some_and(|rpc| {
                rpc.local_port == quoted.source_port
                    && rpc.remote_port == quoted.destination_port
                    && rpc.id.0 != 0
                    && quoted.sender_id.is_none_or(|id| id == rpc.id.to_sender())
            })
        };
        let quoted_slot = match quoted.sender_id {
            Some(id) => self.lookup(peer.index(), homa_wire::RpcId(id.0), |_| true),
            None => None,
        };
        let ours = match quoted.sender_id {
            Some(_) => quoted_slot.is_some_and(matches),
            None => self.member_links.iter(&known.members).any(matches),
        };
        if !ours {
            return 0;
        }
        let failure = match what {
            Unreachable::Port => Failure::PortClosed,
            Unreachable::Protocol => Failure::ProtocolUnsupported,
            Unreachable::Host => Failure::HostUnreachable,
        };
        let mut ended = 0;
        let mut at = first;
        while let Some(slot) = at {
            at = self.next_member(peer.index(), slot);
            let Some(rpc) = self.rpcs.slot(slot) else {
                continue;
            };
            if what == Unreachable::Port && rpc.remote_port != quoted.destination_port {
                continue;
            }
            match (rpc.is_client(), rpc.phase) {
                // What has not been sent was not refused.
                (true, _) if rpc.id.0 == 0 || rpc.incoming.is_complete() => continue,
                (true, _) if what == Unreachable::Host => {
                    self.end(slot, Ending::Failed(failure));
                }
                (true, _) => {
                    let said = if quoted_slot == Some(slot) {
                        SaidOf::ThisRpc
                    } else {
                        SaidOf::Another
                    };
                    let failure = rpc.nobody_there(failure, said);
                    self.end(slot, Ending::Failed(failure));
                }
                (false, Phase::InService) => self.client_gone(slot),
                (false, _) => {
                    self.bury(now, slot, Epitaph::Silent);
                    self.end(slot, Ending::Released);
                }
            }
            ended += 1;
        }
        self.counters.ended_by_icmp += u64::from(ended);
        ended
    }

    /// The RPC after `slot` among those of a peer. To be asked before `slot`
    /// may end.
    pub(crate) fn next_member(&self, peer: u32, slot: u32) -> Option<u32> {
        let members = &self.peers.slot(peer)?.members;
        self.member_links.next(members, slot)
    }
}
