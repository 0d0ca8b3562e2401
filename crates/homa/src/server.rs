//! The serving side.

use std::fmt;
use std::sync::Arc;

use homa_engine::Listener;

use crate::Request;
use crate::shared::Shared;

/// Accepts the requests to one port: a cheap view of an
/// [`Endpoint`](crate::Endpoint).
///
/// Clones share the requests: each goes to one of those who accept. When the
/// last clone is dropped, the port is closed and clients are told so; requests
/// that were accepted can still be answered.
#[derive(Clone)]
pub struct Server {
    pub(crate) listener: Listener,
    pub(crate) shared: Arc<Shared>,
}

impl Server {
    /// The port.
    pub fn port(&self) -> u16 {
        self.listener.port()
    }

    /// Waits for the next request. `None`: the endpoint is shut down, and there
    /// will be none.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no request.
    pub async fn accept(&self) -> Option<Request> {
        let incoming = self.listener.accept().await?;
        Some(Request::new(incoming, &self.shared))
    }

    /// The next request, if there is one now.
    pub fn try_accept(&self) -> Option<Request> {
        let incoming = self.listener.try_accept()?;
        Some(Request::new(incoming, &self.shared))
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("port", &self.port())
            .finish_non_exhaustive()
    }
}
