//! Reads packet captures and finds the Homa packets in them.
//!
//! Two layers, each usable alone: [`Capture`] turns a pcap or pcapng file
//! into [`Record`]s, one frame each, and [`Frame::parse`] turns a record into
//! what it says about Homa: a packet, an ICMP error about one, or bytes that
//! claim to be one. `homa decode` prints what comes out.
//!
//! Invariants: memory is bounded by [`MAX_RECORD_LENGTH`] whatever a file
//! claims; no file, however broken, makes anything here panic; an error says
//! at which offset of the file what is wrong, and everything before it has
//! been read.
//!
//! What is *not* here: the packet formats (`homa-wire`), writing captures
//! (`homa-datapath`), and output. Encapsulation is `docs/protocol.md` §1.

#![forbid(unsafe_code)]

mod capture;
mod error;
mod frame;
mod icmp;
mod link;
mod pcap;
mod pcapng;
mod source;
mod udp_rule;

pub use capture::{Capture, MAX_INTERFACES, MAX_RECORD_LENGTH, Record};
pub use error::{CaptureError, Part, Problem};
pub use frame::{Content, Frame, Glimpse, Homa, Unparsed};
pub use icmp::IcmpError;
pub use link::LinkType;
pub use udp_rule::{UdpGuess, UdpRule};
