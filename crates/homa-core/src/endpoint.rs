//! The protocol of one endpoint, without any I/O.
//!
//! Inputs are things that happened: a packet came ([`Endpoint::packet`]), time
//! passed ([`Endpoint::timeout`]), the application wants something
//! ([`Endpoint::request`], [`Endpoint::respond`], …). Outputs are asked for:
//! the next packet ([`Endpoint::poll_transmit`]), the next event
//! ([`Endpoint::poll_event`]), the time of the next timer
//! ([`Endpoint::next_timeout`]). After any input, ask for outputs until there
//! are none; asking late costs delay, never correctness, because nothing is
//! queued: every output is derived from the state when it is asked for.
//!
//! This file owns the struct, the look-ups, and the one `match` on the packet
//! type, whose arms are one call each. What the calls do is in the modules
//! named after their roles. Implements the order of checks of
//! `docs/protocol.md` §11.

use alloc::boxed::Box;
use alloc::vec;

use homa_wire::{Body, Capabilities, Features, Packet, PacketType, RpcId};

use crate::buffers::Buffers;
use crate::config::{Extensions, Settings};
use crate::counters::{Counters, DropReason, Gauges};
use crate::grant::Grants;
use crate::mechanism::Mechanisms;
use crate::pacer::Pacer;
use crate::peer::{Peer, PeerHandle};
use crate::probe::Probes;
use crate::replies::{Queued, Replies};
use crate::rpc::{Client, Ending, Indexed, Kind, Notice, Phase, Rpc, RpcHandle, Silence, Ties};
use crate::sending::{Lane, Sending};
use crate::table::{Handle, Heap, Index, Links, List, Queue, Ranges, Seed, Slab};
use crate::time::Time;
use crate::tombstone::{Stone, Tombstones};
use crate::{incoming::Incoming, outgoing::Outgoing};

/// What tells one life of an endpoint from another; the host draws it.
#[derive(Clone, Copy, Debug)]
pub struct Identity {
    /// First RPC id: the wall clock in nanoseconds, so that ids grow over
    /// restarts. Made even, and at least 2.
    pub first_id: u64,
    /// Random, told to peers that understand it; 0 becomes 1.
    pub instance: u64,
    /// Random, secret: keys the hash tables.
    pub hash_seed: u64,
}

/// What became of a received packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The first payload of a message: make room for it, then place the bytes.
    Begin(Placement),
    /// Further payload: place the bytes.
    Place(Placement),
    /// Used; there is nothing to place.
    Control,
    /// Not used, and counted.
    Drop(DropReason),
}

/// Where the payload of a packet belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The RPC whose incoming message it is.
    pub rpc: RpcHandle,
    /// Offset in the message of the first payload byte.
    pub offset: u32,
    /// Bytes of the message.
    pub message_length: u32,
}

/// What the peer, ports and id of a packet name.
#[derive(Clone, Copy)]
pub(crate) enum Named {
    /// The RPC in this slot.
    Alive(u32),
    /// One that ended a while ago.
    Finished(Stone),
    /// None that is known here.
    Nothing,
}

impl Named {
    pub(crate) fn alive(self) -> Option<u32> {
        match self {
            Self::Alive(slot) => Some(slot),
            Self::Finished(_) | Self::Nothing => None,
        }
    }
}

/// The caller names a peer that is not, or no longer, known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownPeer;

/// The Homa protocol of one endpoint. One owner, no locks: see the module.
pub struct Endpoint {
    pub(crate) settings: Settings,
    pub(crate) capabilities: Option<Capabilities>,
    pub(crate) next_id: u64,
    pub(crate) next_age: u64,
    pub(crate) rpcs: Slab<Rpc>,
    /// By peer and id: the RPCs alive and the tombstones.
    pub(crate) index: Index,
    pub(crate) seed: Seed,
    pub(crate) peers: Slab<Peer>,
    /// Peers, the least recently heard of first.
    pub(crate) peer_age: List,
    pub(crate) peer_age_links: Links,
    /// The last of them, so that a packet of the same peer need not look.
    pub(crate) latest_peer: u32,
    /// RPCs of each peer.
    pub(crate) member_links: Links,
    pub(crate) ports: Box<[u64]>,
    pub(crate) ranges: Ranges,
    pub(crate) sending: Sending,
    pub(crate) pacer: Pacer,
    pub(crate) grants: Grants,
    pub(crate) granting: crate::granting::Granting,
    pub(crate) buffers: Buffers,
    pub(crate) cutoffs: crate::unscheduled::OwnCutoffs,
    pub(crate) tombstones: Tombstones,
    pub(crate) replies: Replies,
    pub(crate) probes: Probes,
    /// Messages that wait to learn what their peer accepts.
    pub(crate) held_links: Links,
    /// When each RPC is to be looked at; an entry may be earlier than needed
    /// and outlive its RPC, so that RPCs shorter than a timer never touch it.
    pub(crate) timers: Heap<Time>,
    /// RPCs with a notice for the host.
    pub(crate) notices: Queue,
    pub(crate) server_rpcs: u32,
    pub(crate) client_calls: u32,
    pub(crate) counters: Counters,
    pub(crate) control: Control,
}

/// Whether anything but DATA may be there to be sent: a reply, a grant, a
/// probe, or memory that has come back. Whatever makes such a thing says so
/// here; a look at all of them that finds nothing takes it back. So the many
/// polls between which nothing of the kind happened cost one branch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Control {
    Nothing,
    Possible,
}

impl Endpoint {
    /// An endpoint with all the memory it will ever use. Pages of the tables
    /// are touched as they are needed.
    pub fn new(settings: Settings, identity: Identity) -> Self {
        let seed = Seed::new(identity.hash_seed);
        let max_rpcs = settings.max_rpcs;
        let features = Features::RESPONSE_LIMIT
            .with(Features::CHECKSUM)
            .with(Features::LARGE_MESSAGES)
            .with(Features::ONE_WAY)
            .with(Features::ABORT);
        let capabilities = (settings.extensions == Extensions::On).then(|| Capabilities {
            version: Capabilities::VERSION,
            features,
            instance: identity.instance.max(1),
        });
        Self {
            capabilities,
            next_id: (identity.first_id & !1).max(2),
            next_age: 1,
            rpcs: Slab::with_capacity(max_rpcs),
            index: Index::with_capacity(max_rpcs.saturating_add(settings.max_tombstones)),
            seed,
            peers: Slab::with_capacity(settings.max_peers),
            peer_age: List::default(),
            peer_age_links: Links::with_capacity(settings.max_peers),
            latest_peer: 0,
            member_links: Links::with_capacity(max_rpcs),
            ports: vec![0; 1024].into_boxed_slice(),
            ranges: Ranges::with_capacity(settings.max_ranges),
            sending: Sending::new(&settings),
            pacer: Pacer::new(&settings),
            grants: Grants::new(&settings),
            granting: crate::granting::Granting::new(&settings),
            buffers: Buffers::new(&settings),
            cutoffs: crate::unscheduled::OwnCutoffs::new(&settings),
            tombstones: Tombstones::new(&settings),
            replies: Replies::new(&settings),
            probes: Probes::new(&settings),
            held_links: Links::with_capacity(max_rpcs),
            timers: Heap::with_capacity(max_rpcs),
            notices: Queue::with_capacity(max_rpcs),
            server_rpcs: 0,
            client_calls: 0,
            counters: Counters::default(),
            control: Control::Possible,
            settings,
        }
    }

    /// The values this endpoint runs on.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What it has done so far.
    pub fn counters(&self) -> Counters {
        let mut counters = self.counters.clone();
        counters.grants_displaced = self.grants.displaced;
        counters
    }

    /// What there is right now. Costs a walk over all RPCs.
    pub fn gauges(&self) -> Gauges {
        let mut gauges = Gauges {
            peers: self.peers.len(),
            tombstones: self.tombstones.len(),
            buffer_bytes: self.buffers.used(),
            buffer_waiting: self.buffers.waiting(),
            incoming_bytes: self.granting.total_incoming(),
            managed_messages: self.grants.managed(),
            active_messages: self.grants.active(),
            sendable_messages: self.sending.len(),
            ranges: self.settings.max_ranges.saturating_sub(self.ranges.free()),
            ..Gauges::default()
        };
        for (_, rpc) in self.rpcs.iter() {
            let gauge = match (rpc.phase, rpc.is_client()) {
                (Phase::Outgoing, true) => &mut gauges.client_outgoing,
                (Phase::Outgoing, false) => &mut gauges.server_outgoing,
                (Phase::Incoming, true) => &mut gauges.client_incoming,
                (Phase::Incoming, false) => &mut gauges.server_incoming,
                (Phase::InService, _) => &mut gauges.server_in_service,
                (Phase::Ended, _) => &mut gauges.ended,
            };
            *gauge += 1;
        }
        gauges
    }

    /// Changes the link rate that DATA is paced to.
    pub fn set_link_rate_bps(&mut self, rate: Option<u64>) {
        self.settings.link_rate_bps = rate;
        self.pacer.configure(&self.settings);
    }

    /// Changes how far ahead of the NIC DATA may be sent, for instance when
    /// the host has measured how late its timers are.
    pub fn set_max_nic_backlog_ns(&mut self, ns: u64) {
        self.settings.max_nic_backlog_ns = ns;
        self.pacer.configure(&self.settings);
    }

    /// Accepts requests to a port. Port 0 is not one.
    pub fn listen(&mut self, port: u16) {
        if port != 0
            && let Some(word) = self.ports.get_mut(usize::from(port >> 6))
        {
            *word |= 1 << (port & 63);
        }
    }

    /// Stops accepting requests to a port; those accepted go on.
    pub fn unlisten(&mut self, port: u16) {
        if let Some(word) = self.ports.get_mut(usize::from(port >> 6)) {
            *word &= !(1 << (port & 63));
        }
    }

    pub(crate) fn serves(&self, port: u16) -> bool {
        self.ports
            .get(usize::from(port >> 6))
            .is_some_and(|word| word >> (port & 63) & 1 == 1)
    }

    pub(crate) fn uses(&self, mechanism: Mechanisms) -> bool {
        self.settings.mechanisms.has(mechanism)
    }

    /// Makes a peer known to which packets of at most `packet_bytes` can be
    /// sent (from the Homa header on; at least 57). If the table is full, the
    /// idle peer that has been silent longest is forgotten and named; if none
    /// is idle, there is no room.
    pub fn add_peer(
        &mut self,
        now: Time,
        packet_bytes: u32,
    ) -> Result<(PeerHandle, Option<PeerHandle>), NoRoom> {
        let evicted = if self.peers.is_full() {
            let peer = self.idle_peer(now).ok_or(NoRoom)?;
            self.remove_peer(now, peer);
            self.counters.peers_evicted += 1;
            Some(peer)
        } else {
            None
        };
        let handle = self
            .peers
            .insert(Peer::new(now, packet_bytes))
            .map_err(|_| NoRoom)?;
        self.renew(handle.index());
        self.counters.peers_created += 1;
        Ok((PeerHandle(handle), evicted))
    }

    /// Changes the longest packet for messages made from now on.
    pub fn set_packet_bytes(&mut self, peer: PeerHandle, packet_bytes: u32) {
        if let Some(peer) = self.peers.get_mut(peer.0) {
            peer.packet_bytes = packet_bytes;
        }
    }

    /// The longest silent of the idle peers, among the first few by age. Those
    /// that are not idle get their turn after all others, so that the idle ones
    /// behind them are found the next time.
    fn idle_peer(&mut self, now: Time) -> Option<PeerHandle> {
        const LOOK_AT: usize = 64;
        self.tombstones
            .sweep(now, &mut self.peers, &mut self.index, LOOK_AT as u32);
        for _ in 0..LOOK_AT {
            let slot = self.peer_age.front()?;
            if self.peers.slot(slot).is_some_and(Peer::is_idle) {
                return self.peers.handle(slot).map(PeerHandle);
            }
            self.peer_age_links.remove(&mut self.peer_age, slot);
            self.peer_age_links.push_back(&mut self.peer_age, slot);
        }
        None
    }

    fn remove_peer(&mut self, now: Time, peer: PeerHandle) {
        let slot = peer.index();
        self.tombstones
            .forget(now, slot, &mut self.peers, &mut self.index);
        self.probes.forget_peer(slot);
        self.peer_age_links.remove(&mut self.peer_age, slot);
        self.peers.remove(peer.0);
    }

    /// A packet came from `peer`, with `payload_length` bytes after its header
    /// (0 unless it is DATA).
    pub fn packet(
        &mut self,
        now: Time,
        peer: PeerHandle,
        packet: &Packet,
        payload_length: u32,
    ) -> Verdict {
        let Body::Data(data) = &packet.body else {
            return match self.control(now, peer, packet) {
                Ok(verdict) => verdict,
                Err(reason) => self.dropped(reason),
            };
        };
        self.counters.count_received(PacketType::Data);
        match self.heard(now, peer, packet) {
            Ok(from) => self.data(now, from, packet, data, payload_length),
            Err(reason) => self.dropped(reason),
        }
    }

    /// A packet is of no use.
    pub(crate) fn dropped(&mut self, reason: DropReason) -> Verdict {
        self.counters.count_drop(reason);
        Verdict::Drop(reason)
    }

    /// Any packet shows that its peer is there. Says in which slot that is.
    #[inline]
    fn heard(&mut self, now: Time, peer: PeerHandle, packet: &Packet) -> Result<u32, DropReason> {
        if packet.source_port == 0 || packet.destination_port == 0 {
            return Err(DropReason::PortZero);
        }
        let from = peer.index();
        let known = self.peers.get_mut(peer.0).ok_or(DropReason::UnknownPeer)?;
        known.last_heard = now;
        known.unanswered = 0;
        if self.latest_peer != from {
            self.renew(from);
        }
        Ok(from)
    }

    /// Makes a peer the one that was heard of last.
    #[inline(never)]
    fn renew(&mut self, peer: u32) {
        self.peer_age_links.remove(&mut self.peer_age, peer);
        self.peer_age_links.push_back(&mut self.peer_age, peer);
        self.latest_peer = peer;
    }

    /// A packet that is not DATA.
    #[inline(never)]
    fn control(
        &mut self,
        now: Time,
        peer: PeerHandle,
        packet: &Packet,
    ) -> Result<Verdict, DropReason> {
        self.counters.count_received(packet.body.packet_type());
        let from = self.heard(now, peer, packet)?;
        let hash = self.hash(from, packet.sender_id.to_local());
        let mut named = self.find(now, from, packet, hash);
        if packet.body.may_have_capabilities() {
            self.learn(now, from, named.alive(), &packet.body);
            named = self.find(now, from, packet, hash);
        }
        let rpc = named.alive();
        match &packet.body {
            Body::Data(_) => Ok(Verdict::Control),
            Body::Grant(grant) => self.grant(now, rpc, *grant),
            Body::Resend(resend) => self.resend(now, from, named, packet, *resend),
            Body::RpcUnknown(_) => self.rpc_unknown(now, rpc),
            Body::Busy => self.busy(now, rpc),
            Body::Cutoffs(cutoffs, _) => self.cutoffs(from, *cutoffs),
            Body::Freeze => Err(DropReason::Freeze),
            Body::NeedAck => self.need_ack(now, from, rpc, packet),
            Body::Ack(ack, _) => {
                self.ack(now, from, rpc, packet, *ack);
                Ok(Verdict::Control)
            }
            Body::Abort(code) => self.aborted(now, rpc, *code),
        }
    }

    /// What a packet from `peer` is about: peer, ports and id must all be right.
    /// `hash` is that of peer and id.
    #[inline(never)]
    pub(crate) fn find(&self, now: Time, peer: u32, packet: &Packet, hash: u64) -> Named {
        let id = packet.sender_id.to_local();
        let (local_port, remote_port) = (packet.destination_port, packet.source_port);
        let stone = |entry| self.tombstones.find(now, entry, (id, peer, remote_port));
        let found = self.index.find(hash, |entry| match self.rpcs.slot(entry) {
            Some(rpc) => {
                rpc.id == id
                    && rpc.peer == peer
                    && rpc.local_port == local_port
                    && rpc.remote_port == remote_port
            }
            None => stone(entry).is_some(),
        });
        match found {
            None => Named::Nothing,
            Some(entry) => match Stone::of_entry(entry) {
                Some(stone) => Named::Finished(stone),
                None => Named::Alive(entry),
            },
        }
    }

    /// The RPC with this peer and id that `matches`. Acks do not name the
    /// client's port, so it is not part of the hash.
    pub(crate) fn lookup(
        &self,
        peer: u32,
        id: RpcId,
        matches: impl Fn(&Rpc) -> bool,
    ) -> Option<u32> {
        self.index.find(self.hash(peer, id), |slot| {
            self.rpcs
                .slot(slot)
                .is_some_and(|rpc| rpc.id == id && rpc.peer == peer && matches(rpc))
        })
    }

    pub(crate) fn hash(&self, peer: u32, id: RpcId) -> u64 {
        self.seed.hash(id.0, u64::from(peer))
    }

    /// Creates an RPC. A server's is about to be put into the index.
    #[inline(always)]
    pub(crate) fn create(&mut self, now: Time, new: &NewRpc, role: Role) -> Option<Handle> {
        let peer = self.peers.slot_mut(new.peer)?;
        let client = role == Role::Client;
        let handle = self
            .rpcs
            .insert(Rpc {
                id: new.id,
                hash: new.hash,
                peer: new.peer,
                local_port: new.local_port,
                remote_port: new.remote_port,
                kind: new.kind,
                phase: if client {
                    Phase::Outgoing
                } else {
                    Phase::Incoming
                },
                client: Client::Waiting,
                notice: Notice::None,
                ties: Ties::None,
                indexed: if client { Indexed::No } else { Indexed::Yes },
                age: self.next_age,
                outgoing: new.outgoing,
                lane: Lane::None,
                incoming: Incoming::NONE,
                silence: Silence::starting(now),
                response_limit_log2: 0,
                grant_priority: None,
            })
            .ok()?;
        self.next_age += 1;
        if client {
            self.client_calls += 1;
        } else {
            peer.server_rpcs += 1;
            self.server_rpcs += 1;
        }
        self.member_links
            .push_back(&mut peer.members, handle.index());
        Some(handle)
    }

    /// Tells the host something about an RPC, at its next
    /// [`Endpoint::poll_event`].
    pub(crate) fn notify(&mut self, slot: u32, notice: Notice) {
        if let Some(rpc) = self.rpcs.slot_mut(slot) {
            rpc.notice = notice;
            self.notices.push(slot);
        }
    }

    /// Ends an RPC and keeps it only for its last event.
    pub(crate) fn end(&mut self, slot: u32, ending: Ending) {
        self.unlink(slot, Notice::Ended(ending));
        self.notices.push(slot);
    }

    /// Ends an RPC without an event: the host knows.
    pub(crate) fn discard(&mut self, slot: u32) {
        self.unlink(slot, Notice::None);
        self.rpcs.free_slot(slot);
    }

    /// Takes an RPC out of everything that finds it, but for its last notice.
    #[inline(always)]
    fn unlink(&mut self, slot: u32, notice: Notice) {
        let Some(rpc) = self.rpcs.slot_mut(slot) else {
            return;
        };
        rpc.notice = notice;
        if core::mem::replace(&mut rpc.phase, Phase::Ended) == Phase::Ended {
            return;
        }
        if rpc.indexed == Indexed::Yes {
            self.index.remove(rpc.hash, slot);
        }
        if rpc.lane != Lane::None {
            self.sending.remove(slot, rpc.lane);
            rpc.lane = Lane::None;
        }
        if let Some(peer) = self.peers.slot_mut(rpc.peer) {
            if rpc.is_client() {
                self.client_calls -= 1;
            } else {
                peer.server_rpcs -= 1;
                self.server_rpcs -= 1;
            }
            self.member_links.remove(&mut peer.members, slot);
            if rpc.incoming.charged > 0 {
                self.buffers.give_back(&mut rpc.incoming, peer);
                if !self.buffers.is_quiet() {
                    self.control = Control::Possible;
                }
            }
        }
        if rpc.ties == Ties::Perhaps {
            self.untie(slot);
        } else {
            self.check_untied(slot);
        }
    }

    /// Takes an RPC out of everything that [`Ties`] names.
    #[inline(never)]
    fn untie(&mut self, slot: u32) {
        let Some(rpc) = self.rpcs.slot_mut(slot) else {
            return;
        };
        self.ranges.clear(&mut rpc.outgoing.pending);
        self.ranges.clear(&mut rpc.outgoing.answered);
        let holes = rpc.incoming.holes.len();
        self.ranges.clear(&mut rpc.incoming.holes);
        if let Some(peer) = self.peers.slot_mut(rpc.peer) {
            peer.holes = peer.holes.saturating_sub(holes);
            self.held_links.remove(&mut peer.held, slot);
            self.probes.forget(slot, &mut peer.probes);
        }
        self.stop_granting(slot);
        self.release_memory(slot);
    }

    /// Checks, in tests, that nothing knows an RPC that has no ties.
    fn check_untied(&self, slot: u32) {
        debug_assert!(self.rpcs.slot(slot).is_none_or(|rpc| {
            rpc.outgoing.pending.is_empty()
                && rpc.outgoing.answered.is_empty()
                && rpc.incoming.holes.is_empty()
                && rpc.incoming.counted == 0
                && !rpc.incoming.is_managed()
                && !self.held_links.contains(slot)
                && !self.probes.contains(slot)
                && !self.buffers.knows(slot)
        }));
    }

    /// Queues a control packet that belongs to no RPC.
    pub(crate) fn reply(&mut self, peer: u32, packet: Packet) {
        self.control = Control::Possible;
        if self.replies.push(&mut self.peers, peer, packet) == Queued::Lost {
            self.counters.replies_dropped += 1;
        }
    }

    /// Answers a packet with a control packet about the same RPC.
    pub(crate) fn answer(&mut self, peer: u32, packet: &Packet, body: Body) {
        let sender_id = packet.sender_id.to_local().to_sender();
        let reply = Packet::new(packet.destination_port, packet.source_port, sender_id, body);
        self.reply(peer, reply);
    }

    /// Sends a control packet about an RPC.
    pub(crate) fn tell(&mut self, slot: u32, body: Body) {
        let Some(rpc) = self.rpcs.slot(slot) else {
            return;
        };
        let packet = Packet::new(rpc.local_port, rpc.remote_port, rpc.id.to_sender(), body);
        self.reply(rpc.peer, packet);
    }

    /// Looks at an RPC's timers at `at` or before.
    pub(crate) fn arm(&mut self, slot: u32, at: Time) {
        self.timers.lower(slot, at);
    }
}

/// Which end of an RPC this endpoint is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Client,
    Server,
}

/// What is known of an RPC when it is created.
pub(crate) struct NewRpc {
    /// 0 for a client, whose id comes with its first packet.
    pub(crate) id: RpcId,
    /// Of peer and id, if it has one.
    pub(crate) hash: u64,
    pub(crate) peer: u32,
    pub(crate) local_port: u16,
    pub(crate) remote_port: u16,
    pub(crate) kind: Kind,
    /// A client's request.
    pub(crate) outgoing: Outgoing,
}

/// A table is full: retry when RPCs have ended or peers have gone idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoRoom;

impl core::fmt::Display for NoRoom {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the table of peers is full and none is idle")
    }
}

impl core::error::Error for NoRoom {}
