//! What a host runs: a transport, seen from the network.
//!
//! The network never looks into a header. A transport is told what happened
//! and is asked for the next packet when the NIC can take one, so that it can
//! choose at the last moment.

use crate::packet::{Congested, HostId, MessageSlot};
use crate::time::SimTime;

/// A message to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Its slot in the world's table; packets carry it.
    pub message: MessageSlot,
    /// To whom.
    pub to: HostId,
    /// Its length.
    pub bytes: u32,
    /// Whether there is to be an answer.
    pub pattern: Pattern,
}

/// What a message is followed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// Nothing: it is done when it has arrived.
    OneWay,
    /// A response of the same length, at once.
    Echo,
}

/// A packet that leaves a host.
#[derive(Clone, Copy, Debug)]
pub struct Departure<H> {
    /// To whom.
    pub to: HostId,
    /// Bytes on the wire.
    pub wire_bytes: u32,
    /// 0..=7, larger is more urgent.
    pub priority: u8,
    /// Message that it belongs to.
    pub message: MessageSlot,
    /// For the transport at the other end.
    pub header: H,
    /// How it travels.
    pub way: Way,
}

/// How a packet travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Through NIC and switches.
    Wire,
    /// Beside the network: it arrives after the fixed delays and takes no
    /// bytes of any link. For packets that a model being reproduced does not
    /// have.
    Aside,
}

/// What a transport reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// At the receiver: a message is complete.
    Delivered(MessageSlot),
    /// At the sender: the response is complete.
    Answered(MessageSlot),
    /// At the sender: nothing of this message will be sent any more.
    Over(MessageSlot),
    /// At the sender: it has given the message up.
    Failed(MessageSlot),
}

/// The caller must wait: too much is outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused;

/// A transport at one host.
pub trait Transport {
    /// What packets carry.
    type Header: Copy;

    /// Starts a message.
    fn start(&mut self, now: SimTime, order: Order) -> Result<(), Refused>;

    /// A packet has arrived.
    fn receive(
        &mut self,
        now: SimTime,
        from: HostId,
        packet: Arrival<'_, Self::Header>,
        outcomes: &mut Vec<Outcome>,
    );

    /// The next packet, now that the NIC can take one.
    fn next_packet(&mut self, now: SimTime) -> Option<Departure<Self::Header>>;

    /// When [`Transport::timer`] is to be called.
    fn next_timer(&self, now: SimTime) -> Option<SimTime>;

    /// Time has passed.
    fn timer(&mut self, now: SimTime, outcomes: &mut Vec<Outcome>);
}

/// A packet as it arrives.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a, H> {
    /// The header.
    pub header: &'a H,
    /// Message that it belongs to.
    pub message: MessageSlot,
    /// Whether a switch marked it.
    pub congested: Congested,
}
