//! The same without an async runtime: callers block.
//!
//! The names are those of the async half, and so are the rules; what waits
//! here blocks the thread and takes a time-out where it makes sense. A caller
//! that waits drives the endpoint itself, so a round trip needs no hand-over
//! between threads; a thread of the endpoint answers when no caller waits.
//!
//! ```no_run
//! use homa::blocking::Endpoint;
//!
//! // A server:
//! let endpoint = Endpoint::bind("0.0.0.0:4000")?;
//! for mut request in &endpoint.server(4000)? {
//!     let message = request.take_message();
//!     request.reply(message)?;
//! }
//!
//! // And a client:
//! let client = Endpoint::client_only()?.client();
//! let reply = client.call("kv.example:4000", "get x").wait()?;
//! # Ok::<(), homa::Error>(())
//! ```

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use homa_core::Settings;
use homa_engine::{Drained, Drive, Listener};

pub use call::{Call, OneWay, Pending, PendingOneWay};

use crate::builder::Blocking;
use crate::open;
use crate::shared::{self, Home, Shared};
use crate::{Address, Builder, Error, Message, Request, Stats, TryError};

mod call;

/// A place to call from and to serve on, without a runtime; one
/// UDP port, or raw IP.
///
/// Cheap to clone; all clones are the same endpoint. When the last handle to
/// it is dropped, that drop waits until everybody has their replies, for a
/// second at most ([`Builder::linger`]).
#[derive(Clone)]
pub struct Endpoint {
    shared: Arc<Shared>,
}

impl Endpoint {
    /// An endpoint on this address and port; see [`Builder::bind`].
    ///
    /// # Errors
    ///
    /// [`Error::PortInUse`], [`Error::NotLocal`], [`Error::Resolve`], and others
    /// of [`Builder::build`].
    pub fn bind(address: impl Into<Address>) -> Result<Self, Error> {
        Self::builder().bind(address).build()
    }

    /// An endpoint that only calls, on a port of its own choice.
    ///
    /// # Errors
    ///
    /// As those of [`Builder::build`].
    pub fn client_only() -> Result<Self, Error> {
        Self::builder().build()
    }

    /// Everything else that can be said about an endpoint.
    pub fn builder() -> Builder<Blocking> {
        Builder::new()
    }

    /// A server on a port. Over UDP that is the endpoint's own port and no
    /// other; over raw IP any port, and below 32768 by custom.
    ///
    /// # Errors
    ///
    /// [`Error::WrongPort`], [`Error::ServerExists`], [`Error::PortInUse`]
    /// (raw: by a UDP socket), [`Error::ShutDown`].
    pub fn server(&self, port: u16) -> Result<Server, Error> {
        Ok(Server {
            listener: self.shared.listen(port)?,
            shared: self.shared.clone(),
        })
    }

    /// A client.
    pub fn client(&self) -> Client {
        Client {
            shared: self.shared.clone(),
        }
    }

    /// The UDP port; over raw IP an endpoint has none of its own.
    pub fn port(&self) -> Option<u16> {
        self.shared.port()
    }

    /// The addresses that it is bound to.
    pub fn local_addresses(&self) -> Vec<SocketAddr> {
        self.shared.local_addresses()
    }

    /// Looks a name up: its first address of a family that this endpoint has.
    ///
    /// # Errors
    ///
    /// [`Error::Resolve`], [`Error::NoAddress`].
    pub fn resolve(&self, address: impl Into<Address>) -> Result<SocketAddr, Error> {
        address.into().look_up_one(self.shared.families)
    }

    /// Every setting with its value, given or derived; printing it gives one
    /// line each.
    pub fn settings(&self) -> Settings {
        self.shared.engine.settings()
    }

    /// What it has done, and what it holds right now.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// Ends in good order: requests are refused from now on, those accepted
    /// may still be answered and calls under way may end, for `timeout` at
    /// most. Then everything that still waits, here and at the other ends, is
    /// told so, and the endpoint is closed.
    pub fn shutdown(&self, timeout: Duration) -> Drained {
        self.shared.engine.shutdown(shared::after(timeout))
    }
}

impl Builder<Blocking> {
    /// Makes the endpoint.
    ///
    /// # Errors
    ///
    /// Everything that can be wrong with addresses, permissions and settings:
    /// see [`Error`].
    pub fn build(self) -> Result<Endpoint, Error> {
        let options = self.options;
        let datapath = open::open(&options)?;
        let (engine, families) = shared::start(&options, datapath, Drive::Inline)?;
        Ok(Endpoint {
            shared: Arc::new(Shared {
                engine,
                families,
                default_deadline: options.default_deadline,
                linger: options.linger,
                home: Home::Thread,
            }),
        })
    }
}

/// Makes calls: a cheap view of an [`Endpoint`].
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

impl Client {
    /// A call to a server: [`wait`](Call::wait) for the reply, or
    /// [`start`](Call::start) it and wait later.
    ///
    /// The request is executed at most once, whatever the network does.
    pub fn call(&self, peer: impl Into<Address>, message: impl Into<Message>) -> Call {
        Call::new(self.shared.clone(), peer.into(), message.into())
    }

    /// A one-way message, which is done when the peer has it.
    ///
    /// Only towards endpoints of this project; towards others it fails with
    /// [`Error::Unsupported`].
    pub fn send(&self, peer: impl Into<Address>, message: impl Into<Message>) -> OneWay {
        OneWay::new(self.shared.clone(), peer.into(), message.into())
    }

    /// Starts a call now or not at all; never blocks.
    ///
    /// # Errors
    ///
    /// [`TryError::Full`] has the message when a limit on RPCs or bytes in
    /// flight is reached.
    pub fn try_call(
        &self,
        peer: SocketAddr,
        message: impl Into<Message>,
    ) -> Result<Pending, TryError> {
        self.call(peer, message).try_start()
    }

    /// Starts a one-way message now or not at all; never blocks.
    ///
    /// # Errors
    ///
    /// As those of [`try_call`](Self::try_call).
    pub fn try_send(
        &self,
        peer: SocketAddr,
        message: impl Into<Message>,
    ) -> Result<PendingOneWay, TryError> {
        self.send(peer, message).try_start()
    }
}

/// Accepts the requests to one port: a cheap view of an [`Endpoint`].
///
/// Clones share the requests, for instance a thread each. When the last clone
/// is dropped, the port is closed and clients are told so.
#[derive(Clone)]
pub struct Server {
    listener: Listener,
    shared: Arc<Shared>,
}

/// What came of waiting for a request.
#[derive(Debug)]
pub enum Accepted {
    /// A request.
    Request(Request),
    /// None came in time.
    TimedOut,
    /// The endpoint is shut down: there will be none.
    ShutDown,
}

impl Server {
    /// The port.
    pub fn port(&self) -> u16 {
        self.listener.port()
    }

    /// Waits for the next request. `None`: the endpoint is shut down.
    pub fn accept(&self) -> Option<Request> {
        let incoming = self.listener.accept().wait()?;
        Some(Request::new(incoming, &self.shared))
    }

    /// Waits for the next request, but not for long.
    pub fn accept_within(&self, time: Duration) -> Accepted {
        match self.listener.accept().wait_until(shared::after(time)) {
            homa_engine::Accepted::Request(incoming) => {
                Accepted::Request(Request::new(incoming, &self.shared))
            }
            homa_engine::Accepted::TimedOut => Accepted::TimedOut,
            homa_engine::Accepted::ShutDown => Accepted::ShutDown,
        }
    }

    /// The next request, if there is one now.
    pub fn try_accept(&self) -> Option<Request> {
        let incoming = self.listener.try_accept()?;
        Some(Request::new(incoming, &self.shared))
    }

    /// Requests one after another, until the endpoint is shut down.
    pub fn iter(&self) -> Requests {
        Requests {
            server: self.clone(),
        }
    }
}

impl IntoIterator for &Server {
    type Item = Request;
    type IntoIter = Requests;

    fn into_iter(self) -> Requests {
        self.iter()
    }
}

/// The requests of a server, until the endpoint is shut down.
#[derive(Clone, Debug)]
pub struct Requests {
    server: Server,
}

impl Iterator for Requests {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        self.server.accept()
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("local_addresses", &self.local_addresses())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("local_addresses", &self.shared.local_addresses())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("port", &self.port())
            .finish_non_exhaustive()
    }
}
