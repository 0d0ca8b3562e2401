//! Everything that can be said about an endpoint before it starts.
//!
//! One builder for both homes: the setters are the same, and what differs is
//! how [`build`](Builder::build) ends, which is written where each home is.

use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use homa_core::{Config, Extensions};
use homa_datapath::{Datapath, Faults, Offload};

use crate::Address;
use crate::open::Carrier;

/// Makes an endpoint: [`Endpoint::builder`](crate::Endpoint::builder), or
/// [`blocking::Endpoint::builder`](crate::blocking::Endpoint::builder).
///
/// Nothing must be said: without [`bind`](Self::bind) the endpoint has a port
/// of its own (32768 or above) on all addresses of both families, over UDP.
/// What is not said is derived; `endpoint.settings()` shows what came out.
///
/// `H` is the home: [`Async`] or [`Blocking`].
#[derive(Clone)]
#[must_use = "a builder does nothing until build is called"]
pub struct Builder<H> {
    pub(crate) options: Options,
    home: PhantomData<H>,
}

/// The home of an endpoint on a tokio runtime.
#[cfg(feature = "tokio")]
#[derive(Clone, Copy, Debug)]
pub enum Async {}

/// The home of an endpoint that has a thread of its own and blocks callers.
#[derive(Clone, Copy, Debug)]
pub enum Blocking {}

/// What was said, or its default.
#[derive(Clone)]
pub(crate) struct Options {
    pub(crate) addresses: Vec<Address>,
    pub(crate) carrier: Carrier,
    pub(crate) send_buffer_bytes: usize,
    pub(crate) receive_buffer_bytes: usize,
    pub(crate) offload: Offload,
    pub(crate) capture: Option<PathBuf>,
    pub(crate) faults: Option<(u64, Faults)>,
    pub(crate) protocol: Config,
    pub(crate) default_deadline: Option<Duration>,
    pub(crate) max_rpcs_in_flight: usize,
    pub(crate) max_bytes_in_flight: usize,
    pub(crate) max_reply_bytes: usize,
    pub(crate) max_requests_waiting: usize,
    pub(crate) linger: Duration,
    pub(crate) dscp: [u8; 8],
    pub(crate) spin: Duration,
    pub(crate) driving: Driving,
}

/// Who reads the socket when nobody calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Driving {
    /// Sleeps until something comes.
    Sleeping,
    /// A thread that never sleeps while there is traffic.
    Polling,
}

/// RPCs that one endpoint may have begun and not ended.
const DEFAULT_RPCS_IN_FLIGHT: usize = 65_536;
/// Bytes of requests that one endpoint may hold.
const DEFAULT_BYTES_IN_FLIGHT: usize = 256 << 20;
/// Bytes of replies that an endpoint may hold.
const DEFAULT_REPLY_BYTES: usize = 1 << 30;
/// Requests that one server holds and the application has not accepted.
const DEFAULT_REQUESTS_WAITING: usize = 65_536;

impl Default for Options {
    fn default() -> Self {
        Self {
            addresses: Vec::new(),
            carrier: Carrier::Udp,
            send_buffer_bytes: 1 << 20,
            receive_buffer_bytes: 4 << 20,
            offload: Offload::Auto,
            capture: None,
            faults: None,
            protocol: Config::default(),
            default_deadline: None,
            max_rpcs_in_flight: DEFAULT_RPCS_IN_FLIGHT,
            max_bytes_in_flight: DEFAULT_BYTES_IN_FLIGHT,
            max_reply_bytes: DEFAULT_REPLY_BYTES,
            max_requests_waiting: DEFAULT_REQUESTS_WAITING,
            linger: Duration::from_secs(1),
            // Class selectors: priority p is CS p, TOS p << 5.
            dscp: [0, 8, 16, 24, 32, 40, 48, 56],
            spin: Duration::ZERO,
            driving: Driving::Sleeping,
        }
    }
}

impl<H> Builder<H> {
    pub(crate) fn new() -> Self {
        Self {
            options: Options::default(),
            home: PhantomData,
        }
    }

    // ---- Where ----

    /// The address and port to have. `0.0.0.0:4000` is all IPv4 addresses,
    /// `[::]:4000` all addresses of both families (of IPv4 alone on a host
    /// without IPv6). Port 0 is any free one from 32768 on. A name is looked
    /// up; its first address of each family is taken. May be called twice, for
    /// one IPv4 and one IPv6 address with the same port.
    ///
    /// Replies leave from the address that the request came to, also where a
    /// host has several.
    pub fn bind(mut self, address: impl Into<Address>) -> Self {
        self.options.addresses.push(address.into());
        self
    }

    /// Carries packets over raw IP (protocol 146), as the Linux module speaks
    /// it, instead of UDP. Needs CAP_NET_RAW; one endpoint per network
    /// namespace, which may have servers on any number of ports. The port given
    /// to [`bind`](Self::bind) is not used.
    pub fn raw(mut self) -> Self {
        self.options.carrier = Carrier::Raw;
        self
    }

    /// Carries packets over a datapath of the caller's own, such as a
    /// [`MemNetwork`](crate::datapath::MemNetwork) in tests. What was given to
    /// [`bind`](Self::bind) is not used.
    pub fn datapath(mut self, datapath: impl Datapath + 'static) -> Self {
        self.options.carrier = Carrier::Given(Arc::new(datapath));
        self
    }

    /// Size of the sockets' buffers, in bytes; by default 1 MiB to send and
    /// 4 MiB to receive. Above `net.core.wmem_max` and `rmem_max` only with
    /// CAP_NET_ADMIN.
    pub fn socket_buffer_bytes(mut self, send: usize, receive: usize) -> Self {
        self.options.send_buffer_bytes = send;
        self.options.receive_buffer_bytes = receive;
        self
    }

    /// Sends and receives every UDP packet by itself, without segmentation
    /// offload (GSO, GRO).
    pub fn without_offload(mut self) -> Self {
        self.options.offload = Offload::Off;
        self
    }

    // ---- Limits ----

    /// The most calls and one-way messages of this endpoint that have begun
    /// and not ended; by default 65,536. Above it a call waits and `try_call`
    /// gives the message back. The builder raises `max_rpcs` of the protocol to
    /// twice this, so that requests of others find room too.
    pub fn max_rpcs_in_flight(mut self, rpcs: usize) -> Self {
        self.options.max_rpcs_in_flight = rpcs;
        self
    }

    /// The most bytes of requests that have been handed in and are still kept
    /// (until their RPC has ended); by default 256 MiB. Above it a call waits
    /// and `try_call` gives the message back; one message is always let in.
    pub fn max_bytes_in_flight(mut self, bytes: usize) -> Self {
        self.options.max_bytes_in_flight = bytes;
        self
    }

    /// The most bytes of replies that are kept until their clients have
    /// acknowledged them; by default 1 GiB. Above it, and where one client has
    /// most of it, a reply fails and its client is told that the request is
    /// refused.
    pub fn max_reply_bytes(mut self, bytes: usize) -> Self {
        self.options.max_reply_bytes = bytes;
        self
    }

    /// The most complete requests that wait for a server to accept them; by
    /// default 65,536. More are refused, so that their clients know at once.
    pub fn max_requests_waiting(mut self, requests: usize) -> Self {
        self.options.max_requests_waiting = requests;
        self
    }

    /// Longest message, sent or received, in bytes; by default 1,000,000, at
    /// most 64 MiB. More than 1,000,000 goes only to endpoints that allow it.
    pub fn max_message_bytes(mut self, bytes: u32) -> Self {
        self.options.protocol.max_message_bytes = bytes;
        self
    }

    /// Memory for incoming messages that are not complete, in bytes; by
    /// default 256 MiB, at least twice the longest message. When it is full,
    /// senders are held back; nothing is lost.
    pub fn buffer_bytes(mut self, bytes: u64) -> Self {
        self.options.protocol.buffer_bytes = bytes;
        self
    }

    /// Peers known at once; by default 16,384. Idle ones make room.
    pub fn max_peers(mut self, peers: u32) -> Self {
        self.options.protocol.max_peers = peers;
        self
    }

    // ---- Time ----

    /// The deadline of calls and one-way messages that give none. Without it
    /// they end by the protocol's own rules: never, as long as the server shows
    /// that it is alive and at work on the request.
    pub fn default_deadline(mut self, deadline: Duration) -> Self {
        self.options.default_deadline = Some(deadline);
        self
    }

    /// Silence of a peer after which its RPCs fail; by default 100 ms. Of a peer
    /// that is heard of, but not about this RPC, an RPC fails after 100 times as
    /// long.
    pub fn timeout(mut self, silence: Duration) -> Self {
        self.options.protocol.timeout_ns = nanos(silence);
        self
    }

    /// Silence after which lost packets are asked for again; by default 5 ms,
    /// or more on slow links.
    pub fn resend_after(mut self, silence: Duration) -> Self {
        self.options.protocol.resend_ns = Some(nanos(silence));
        self
    }

    /// How long what is under way may still take when the last handle to the
    /// endpoint is dropped, so that a reply just handed in gets there; by
    /// default 1 s.
    pub fn linger(mut self, time: Duration) -> Self {
        self.options.linger = time;
        self
    }

    // ---- The network ----

    /// Rate of the host's link, in bits per second. Without it data is not
    /// paced, and limits are those for fast networks.
    pub fn link_rate_bps(mut self, rate: u64) -> Self {
        self.options.protocol.link_rate_bps = Some(rate);
        self
    }

    /// Round-trip time of a full packet, with the software at both ends.
    pub fn rtt(mut self, rtt: Duration) -> Self {
        self.options.protocol.rtt_ns = Some(nanos(rtt));
        self
    }

    /// Buffer of a switch port towards a host, in bytes: not more than half of
    /// it is ever granted.
    pub fn switch_buffer_bytes(mut self, bytes: u64) -> Self {
        self.options.protocol.switch_buffer_bytes = Some(bytes);
        self
    }

    /// Priority levels that the network's switches tell apart, 1..=8; by
    /// default 8.
    pub fn priorities(mut self, levels: u8) -> Self {
        self.options.protocol.priorities = levels;
        self
    }

    /// The DSCP (0..=63) of each priority level, the most urgent last; by
    /// default the class selectors CS0 to CS7 (TOS = level << 5).
    pub fn dscp(mut self, of_priority: [u8; 8]) -> Self {
        self.options.dscp = of_priority;
        self
    }

    /// Whether the extensions of this project are used: errors that name their
    /// cause at once, one-way messages, long messages. Off makes packets that
    /// cannot be told from the Linux module's.
    pub fn extensions(mut self, extensions: Extensions) -> Self {
        self.options.protocol.extensions = extensions;
        self
    }

    /// Every setting of the protocol at once, for what has no method here. It
    /// replaces what the methods of the protocol have set before.
    pub fn protocol(mut self, config: Config) -> Self {
        self.options.protocol = config;
        self
    }

    // ---- The driver ----

    /// How long whoever waits looks at the socket again and again before it
    /// sleeps: a wake-up costs microseconds that spinning saves, and spinning
    /// costs the processor. 0 by default, and right where cores are few.
    pub fn spin_before_sleep(mut self, spin: Duration) -> Self {
        self.options.spin = spin;
        self
    }

    /// Gives the endpoint a thread that looks at the socket all the time while
    /// there is traffic, and sleeps a little when there has been none for some
    /// milliseconds. The lowest latency for the price of a core.
    pub fn polling(mut self) -> Self {
        self.options.driving = Driving::Polling;
        self
    }

    // ---- Looking and breaking ----

    /// Records every packet into a pcapng file, which Wireshark and
    /// `homa decode` read. Costs a copy of each packet.
    pub fn record_into(mut self, file: impl Into<PathBuf>) -> Self {
        self.options.capture = Some(file.into());
        self
    }

    /// Loses, duplicates, delays and corrupts packets on purpose, in both
    /// directions, repeatable from the seed: to try an application out on a bad
    /// network.
    pub fn faults(mut self, seed: u64, faults: Faults) -> Self {
        self.options.faults = Some((seed, faults));
        self
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
