//! How Homa packets leave and enter a host.
//!
//! One trait, [`Datapath`], and its homes: [`udp`] (packets in UDP datagrams,
//! with segmentation offload both ways), raw (IP protocol 146, as the
//! reference module speaks it), in-process, and a tap around any of them that
//! records and injects faults. All of them move *batches*: a [`SendBatch`]
//! that the caller fills in place, a [`ReceiveBatch`] that it reads in place.
//!
//! What it owns: sockets, their buffers and options, the path MTU cache, the
//! errors that the network reports, and the counters of all that. This is the
//! only crate of the protocol's host side with `unsafe`; every block states
//! the invariant that makes it sound.
//!
//! Invariants:
//! - No allocation per packet or per call of `send` and `receive`.
//! - Nothing vanishes silently: a packet given to `send` is sent, still in
//!   the batch, or counted in a named drop counter.
//! - A packet's bytes are not looked into, but for the raw checksum.
//!
//! What is *not* here: what a packet means (`homa-wire`), which packet is next
//! (`homa-core`), and when to call (`homa-engine`). Implements
//! `docs/protocol.md` §1 (encapsulation), the raw checksum of §2 and the
//! network's side of §17 (ICMP).

mod counters;
mod datapath;
mod error;
mod headers;
mod path;
mod receive_batch;
mod route;
mod send_batch;
mod socket;

pub mod mem;
pub mod raw;
pub mod tap;
pub mod udp;

pub use counters::Counters;
pub use datapath::{Blocked, Datapath, Kind, Refusal, SendOutcome};
pub use error::{BindError, NetworkError, NetworkErrorKind};
pub use mem::{Mem, MemNetwork, MemOptions};
pub use path::Path;
pub use raw::{PortReservation, Raw, RawOptions, reserve_port};
pub use receive_batch::{BatchFull, Meta, ReceiveBatch, Rest};
pub use send_batch::{Outgoing, SendBatch};
pub use tap::{Faults, Tap, TapOptions};
pub use udp::{Offload, Udp, UdpOptions};

/// Longest Homa packet that any datapath carries, and the most bytes of one
/// super-packet. The kernel takes 65,507 bytes in one UDP send over IPv4; the
/// round number below it leaves room for every header.
pub const MAX_PACKET_BYTES: usize = 65_000;

/// Most packets of one super-packet: the kernel's `UDP_MAX_SEGMENTS` was 64
/// until 6.9, and more gains nothing.
pub const MAX_GROUP_PACKETS: usize = 64;
