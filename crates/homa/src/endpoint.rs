//! The async endpoint: what is bound, who uses it, how it ends.

use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use homa_core::Settings;
use homa_engine::{Drained, Drive};

use crate::builder::Async;
use crate::driver::{self, Alarm};
use crate::open;
use crate::shared::{self, Home, Shared};
use crate::{Address, Builder, Client, Error, Server, Stats};

/// A place to call from and to serve on: one UDP port, or raw IP.
///
/// Cheap to clone; all clones are the same endpoint, and so are its
/// [`Client`]s and [`Server`]s. It lives on the tokio runtime on which it was
/// made: a task there answers for it while nobody calls. When that runtime
/// ends, everything that waits fails with [`Error::ShutDown`].
///
/// When the last handle to it is dropped ([`Request`](crate::Request)s and
/// calls under way count as handles), the task goes on until everybody has
/// their replies, for a second at most ([`Builder::linger`]). The port is free
/// again after that. [`shutdown`](Self::shutdown) does the same when told to.
#[derive(Clone)]
pub struct Endpoint {
    shared: Arc<Shared>,
}

impl Endpoint {
    /// An endpoint on this address and port; see [`Builder::bind`].
    ///
    /// # Errors
    ///
    /// [`Error::PortInUse`], [`Error::NotLocal`], [`Error::Resolve`],
    /// [`Error::NoRuntime`], and others of [`Builder::build`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind.
    pub async fn bind(address: impl Into<Address>) -> Result<Self, Error> {
        Self::builder().bind(address).build().await
    }

    /// An endpoint that only calls, on a port of its own choice.
    ///
    /// # Errors
    ///
    /// As those of [`Builder::build`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind.
    pub async fn client_only() -> Result<Self, Error> {
        Self::builder().build().await
    }

    /// Everything else that can be said about an endpoint.
    pub fn builder() -> Builder<Async> {
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
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect.
    pub async fn resolve(&self, address: impl Into<Address>) -> Result<SocketAddr, Error> {
        let address = address.into();
        let families = self.shared.families;
        if let Some(known) = address.known(families) {
            return known;
        }
        tokio::task::spawn_blocking(move || address.look_up_one(families))
            .await
            .unwrap_or(Err(Error::ShutDown))
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
    /// told so, and the endpoint is closed: every call and
    /// [`accept`](Server::accept) ends.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the endpoint without new requests and not
    /// closed; call it again to go on.
    pub async fn shutdown(&self, timeout: Duration) -> Drained {
        let engine = &self.shared.engine;
        let Home::Task(control) = &self.shared.home else {
            return engine.shutdown(Instant::now() + timeout);
        };
        engine.begin_shutdown();
        let mut alarm = Instant::now()
            .checked_add(timeout)
            .map(|at| Alarm::new(control.clone(), at));
        let drained = poll_fn(|cx| {
            if engine.poll_drained(cx).is_ready() {
                return Poll::Ready(Drained::Yes);
            }
            match &mut alarm {
                Some(alarm) => Pin::new(alarm).poll(cx).map(|()| Drained::No),
                None => Poll::Pending,
            }
        })
        .await;
        engine.close();
        control.end();
        drained
    }
}

impl Builder<Async> {
    /// Makes the endpoint, on the tokio runtime that this is called on.
    ///
    /// # Errors
    ///
    /// Everything that can be wrong with addresses, permissions and settings:
    /// see [`Error`]. [`Error::NoRuntime`] outside of a runtime.
    ///
    /// # Panics
    ///
    /// As all of tokio's I/O does, on a runtime made without `enable_io`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind.
    pub async fn build(self) -> Result<Endpoint, Error> {
        let options = self.options;
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(Error::NoRuntime);
        }
        let datapath = if open::must_look_up(&options) {
            let options = options.clone();
            tokio::task::spawn_blocking(move || open::open(&options))
                .await
                .unwrap_or(Err(Error::ShutDown))?
        } else {
            open::open(&options)?
        };
        let (engine, families) = shared::start(&options, datapath, Drive::Watched)?;
        let control = driver::spawn(&engine, options.driving, options.spin)?;
        Ok(Endpoint {
            shared: Arc::new(Shared {
                engine,
                families,
                default_deadline: options.default_deadline,
                linger: options.linger,
                home: Home::Task(control),
            }),
        })
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
