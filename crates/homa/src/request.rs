//! One request, and the right to answer it.

use std::fmt;
use std::future::{pending, poll_fn};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use homa_engine::{AbortCode, Incoming, Kind, Responder};

use crate::failure::respond_error;
use crate::shared::Shared;
use crate::{Error, Message};

/// A request that a server has accepted, or a one-way message.
///
/// It owns the right to answer: [`reply`](Self::reply) and
/// [`refuse`](Self::refuse) take it, so nothing can be answered twice. They
/// never block, and may be called from any task or thread. Dropped without
/// either, also by a panic, the client is told so at once
/// ([`Error::DroppedWithoutAnswer`]).
///
/// While it is there, its endpoint is.
#[must_use = "dropping a request tells its client that it was dropped without an answer"]
pub struct Request {
    peer: SocketAddr,
    local: SocketAddr,
    kind: Kind,
    message: Message,
    responder: Option<Responder>,
    /// The last request keeps the endpoint alive until it is answered.
    shared: Arc<Shared>,
}

impl Request {
    pub(crate) fn new(incoming: Incoming, shared: &Arc<Shared>) -> Self {
        let bound = || {
            shared
                .local_addresses()
                .into_iter()
                .map(|address| address.ip())
                .find(|ip| ip.is_ipv4() == incoming.peer.is_ipv4())
        };
        let unknown: IpAddr = if incoming.peer.is_ipv4() {
            [0; 4].into()
        } else {
            [0; 16].into()
        };
        Self {
            peer: incoming.peer,
            local: SocketAddr::new(
                incoming.local.or_else(bound).unwrap_or(unknown),
                incoming.port,
            ),
            kind: incoming.kind,
            message: incoming.message,
            responder: incoming.responder,
            shared: shared.clone(),
        }
    }

    /// Who asks.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The own address and port that the request was sent to, and that the
    /// reply is sent from.
    pub fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// Whether it wants a reply.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What is asked.
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// What is asked, to keep; afterwards [`message`](Self::message) is empty.
    pub fn take_message(&mut self) -> Message {
        std::mem::take(&mut self.message)
    }

    /// Answers. The reply is sent before this returns, as far as the protocol
    /// lets it; the rest goes on by itself.
    ///
    /// # Errors
    ///
    /// [`Error::Empty`], [`Error::TooLarge`]: the client is told that the
    /// request was dropped. [`Error::RepliesFull`]: it is told that the request
    /// is refused. [`Error::ClientGone`], [`Error::OneWay`]: nobody waits.
    /// [`Error::ShutDown`].
    pub fn reply(mut self, message: impl Into<Message>) -> Result<(), Error> {
        let Some(responder) = self.responder.take() else {
            return Err(Error::OneWay);
        };
        let id = responder.into_id();
        let Err(error) = self.shared.engine.respond(id, message.into()) else {
            return Ok(());
        };
        let error = respond_error(&error);
        let code = match error {
            Error::RepliesFull => AbortCode::Refused,
            _ => AbortCode::Dropped,
        };
        self.shared.engine.abort(id, code);
        Err(error)
    }

    /// Tells the client that its request is refused: [`Error::Refused`]. A
    /// one-way message was delivered all the same.
    pub fn refuse(mut self) {
        if let Some(responder) = self.responder.take() {
            responder.abort(AbortCode::Refused);
        }
    }

    /// Waits until nobody waits for the reply any more: the client has
    /// cancelled the call or is gone. For one-way messages never.
    ///
    /// ```no_run
    /// # async fn work(_: &homa::Request) -> &'static str { "" }
    /// # async fn example(request: homa::Request) -> Result<(), homa::Error> {
    /// tokio::select! {
    ///     reply = work(&request) => request.reply(reply)?,
    ///     () = request.cancelled() => {}
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Dropping the future has no effect. If several wait for one request, the
    /// last is woken.
    pub async fn cancelled(&self) {
        match &self.responder {
            Some(responder) => poll_fn(|cx| responder.poll_cancelled(cx)).await,
            None => pending().await,
        }
    }

    /// Whether nobody waits for the reply any more. Of a one-way message that
    /// is not said.
    pub fn is_cancelled(&self) -> bool {
        self.responder.as_ref().is_some_and(|r| {
            r.poll_cancelled(&mut std::task::Context::from_waker(std::task::Waker::noop()))
                .is_ready()
        })
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("peer", &self.peer)
            .field("local_address", &self.local)
            .field("kind", &self.kind)
            .field("message", &self.message)
            .finish_non_exhaustive()
    }
}
