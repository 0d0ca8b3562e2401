//! Homa: remote procedure calls whose short messages stay fast while long ones
//! fill the network.
//!
//! Homa is a transport for data centres. There is nothing to connect: a client
//! sends a *request* to a port, the server answers with a *response*, and both
//! are messages of 1 byte to 1 MB. Receivers hand out *grants* to the shortest
//! messages first and use the priority queues of the switches, so that a small
//! message never waits behind a large one, and a thousand servers that answer
//! at once do not overflow a buffer. It is meant for networks whose delays are
//! microseconds, not for the internet.
//!
//! This crate is the whole of it for an application: an [`Endpoint`] over UDP
//! (works everywhere, needs no privileges) or over raw IP (works with the Linux
//! kernel module), on tokio, or without a runtime in [`blocking`].
//!
//! # Ten lines
//!
//! A server that answers in upper case, and a client:
//!
//! ```
//! # #[cfg(feature = "tokio")]
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let endpoint = homa::Endpoint::bind("127.0.0.1:4000").await?;
//! let server = endpoint.server(4000)?;
//! tokio::spawn(async move {
//!     while let Some(request) = server.accept().await {
//!         let answer = request.message().to_vec().to_ascii_uppercase();
//!         let _ = request.reply(answer); // an error says that the client is gone
//!     }
//! });
//!
//! let client = homa::Endpoint::client_only().await?.client();
//! let reply = client.call("127.0.0.1:4000", "hello").await?;
//! assert_eq!(reply.into_bytes(), "HELLO");
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "tokio"))]
//! # fn main() {}
//! ```
//!
//! More are in `examples/`: `echo`, `key_value`, and `fan_out`, which asks many
//! servers at once and reports who missed the deadline.
//!
//! # What is guaranteed
//!
//! - A request is executed *at most once*, whatever the network does; if the
//!   call succeeds, exactly once.
//! - Every call ends: with the reply, or with an [`Error`] that names the
//!   cause, in bounded time. A server that is at work on the request shows that
//!   it is alive, so a slow handler is no time-out; a
//!   [`deadline`](Call::deadline) ends the call whatever happens.
//! - Calls are independent: there is no order between two of them.
//! - Nothing is encrypted or authenticated, and packets on the way are
//!   protected by no more than UDP's checksum. Use it in networks that you
//!   trust.
//!
//! # Errors
//!
//! | error | the call | what to do |
//! |---|---|---|
//! | [`Timeout`](Error::Timeout) | peer silent for 100 ms ([`Builder::timeout`]) | retry elsewhere |
//! | [`DeadlineExceeded`](Error::DeadlineExceeded) | the caller's time is up | |
//! | [`PortClosed`](Error::PortClosed) | host there, server not; known at once | start it, try another |
//! | [`ServerGone`](Error::ServerGone) | the same, but it may have been executed before | |
//! | [`HostUnreachable`](Error::HostUnreachable) | no route, nobody there | |
//! | [`ProtocolUnsupported`](Error::ProtocolUnsupported) | raw IP to a host without Homa | use UDP |
//! | [`Refused`](Error::Refused) | by the server: [`Request::refuse`], or it has too many | back off |
//! | [`DroppedWithoutAnswer`](Error::DroppedWithoutAnswer) | a bug or panic in the server | |
//! | [`Cancelled`](Error::Cancelled) | ended by the other end | |
//! | [`PeerRestarted`](Error::PeerRestarted) | may or may not have been executed | |
//! | [`PeerShutDown`](Error::PeerShutDown) | not executed, or cut off | try another |
//! | [`Stale`](Error::Stale) | so late that it was not executed for safety | |
//! | [`TooLarge`](Error::TooLarge), [`TooLargeForPeer`](Error::TooLargeForPeer) | says the limit | split it |
//! | [`Empty`](Error::Empty) | a message has at least one byte | |
//! | [`Unsupported`](Error::Unsupported) | the peer is not of this project | |
//! | [`Resolve`](Error::Resolve), [`NoAddress`](Error::NoAddress) | the host name | |
//! | [`ShutDown`](Error::ShutDown) | this endpoint has ended | |
//!
//! [`Error::may_have_executed`] says which of them leave it open whether the
//! server has seen the request. Starting an endpoint or a server can fail with
//! [`PortInUse`](Error::PortInUse), [`NoPermission`](Error::NoPermission) (raw
//! IP without CAP_NET_RAW), [`WrongPort`](Error::WrongPort) and their
//! neighbours; replies with [`ClientGone`](Error::ClientGone).
//!
//! # Cancel safety
//!
//! Every async method says what dropping its future does. In short: dropping a
//! call cancels it at the server too; dropping [`Server::accept`] loses no
//! request; dropping a one-way message's future lets it go on. A server learns
//! of a cancelled call from [`Request::cancelled`].
//!
//! # Limits
//!
//! Nothing grows without bound; every limit is a method of [`Builder`].
//!
//! | what | default | at the limit |
//! |---|---|---|
//! | calls and one-way messages under way | 65,536 | calls wait, `try_call` gives the message back |
//! | bytes of their messages | 256 MiB | the same |
//! | bytes of one message | 1,000,000 | [`Error::TooLarge`] |
//! | bytes of incomplete incoming messages | 256 MiB | senders are held back |
//! | complete requests that nobody has accepted | 65,536 | clients get [`Error::Refused`] |
//! | bytes of replies that clients have not taken | 1 GiB | [`Error::RepliesFull`] |
//! | peers | 16,384 | idle ones are forgotten, else [`Error::Full`] |
//!
//! # Host names and addresses
//!
//! Wherever an address is asked for, a `SocketAddr`, a `"10.0.0.1:4000"`, a
//! `("host", 4000)` or a `"host:4000"` will do ([`Address`]). A name is looked
//! up with the system's resolver, off the async threads, and its first address
//! of a family that the endpoint has is used. A server on `0.0.0.0` or `[::]`
//! replies from the address that the request was sent to.
//!
//! # One endpoint per process
//!
//! [`Client`] and [`Server`] are views of one [`Endpoint`]. Use one endpoint
//! for all that a process does: what it grants is budgeted per endpoint, and
//! two of them would promise the link twice. The same is true of two processes
//! on one host, for which the kernel module is the answer.

#![forbid(unsafe_code)]

mod address;
pub mod blocking;
mod builder;
#[cfg(feature = "tokio")]
mod client;
#[cfg(feature = "tokio")]
mod driver;
#[cfg(feature = "tokio")]
mod endpoint;
mod error;
mod failure;
mod open;
mod random;
mod request;
#[cfg(feature = "tokio")]
mod running;
#[cfg(feature = "tokio")]
mod server;
mod shared;
mod stats;

pub use address::Address;
#[cfg(feature = "tokio")]
pub use builder::Async;
pub use builder::{Blocking, Builder};
#[cfg(feature = "tokio")]
pub use client::{Call, CallFuture, Client, OneWay, OneWayFuture};
#[cfg(feature = "tokio")]
pub use endpoint::Endpoint;
pub use error::{Error, TryError};
pub use homa_core::{Config, ConfigError, Extensions, Settings};
pub use homa_datapath as datapath;
pub use homa_engine::{Drained, Kind, Message};
pub use request::Request;
#[cfg(feature = "tokio")]
pub use server::Server;
pub use stats::{Sample, SampleKind, Stats};
