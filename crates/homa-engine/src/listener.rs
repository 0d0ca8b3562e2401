//! The server's handles: a port that requests come to, and a request.

use std::fmt;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use homa_core::{Kind, RpcHandle};
use homa_datapath::Kind as Datapath;
use homa_datapath::{BindError, PortReservation, reserve_port};
use homa_wire::AbortCode;

use crate::listeners::{Port, Ticket};
use crate::service::Taken;
use crate::{Engine, ListenError, Message, RespondError};

/// Free ports tried before giving up.
const PORT_ATTEMPTS: u16 = 64;

/// Receives the requests to one port. Clones share them; the port closes with
/// the last.
#[derive(Clone)]
pub struct Listener(Arc<Open>);

/// An open port.
struct Open {
    engine: Arc<Engine>,
    port: u16,
}

impl Drop for Open {
    fn drop(&mut self) {
        let inner = self.engine.inner();
        inner.quietly(|state, now| state.unlisten(now, self.port));
        inner.flush_and_settle();
    }
}

impl Listener {
    pub(crate) fn open(engine: &Arc<Engine>, port: u16) -> Result<Self, ListenError> {
        let inner = engine.inner();
        let owned = inner.timelessly(|state| state.own.port);
        let (port, reservation) = match inner.kind {
            Datapath::Raw => {
                if port != 0 {
                    inner.timelessly(|state| state.may_listen(port))?;
                }
                let reservation = reserve(port)?;
                (reservation.port(), Some(reservation))
            }
            Datapath::Udp | Datapath::Mem if port == 0 || port == owned => (owned, None),
            Datapath::Udp | Datapath::Mem => return Err(ListenError::NotOurs { port, owned }),
        };
        inner.timelessly(|state| state.listen(port, Port::new(reservation)))?;
        Ok(Self(Arc::new(Open {
            engine: engine.clone(),
            port,
        })))
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.0.port
    }

    /// The next request, as a future or blocking. Dropping it loses nothing.
    pub fn accept(&self) -> Accept {
        Accept {
            open: self.0.clone(),
            ticket: None,
        }
    }

    /// A request that is here already.
    pub fn try_accept(&self) -> Option<Incoming> {
        let inner = self.0.engine.inner();
        let taken = inner.quietly(|state, now| state.accept(now, self.0.port))?;
        inner.flush_and_settle();
        Some(Incoming::new(&self.0.engine, taken))
    }
}

/// Keeps others from a port; 0 is any free one.
fn reserve(port: u16) -> Result<PortReservation, ListenError> {
    let refused = |source| ListenError::Reserve { port, source };
    if port != 0 {
        return reserve_port(port).map_err(|error| match error {
            BindError::InUse { .. } => ListenError::InUse { port },
            other => refused(other),
        });
    }
    let first = crate::identity::ephemeral_port();
    let mut attempts = (0..PORT_ATTEMPTS).map(|n| reserve_port(32_768 | first.wrapping_add(n)));
    let last = attempts.find(|attempt| !matches!(attempt, Err(BindError::InUse { .. })));
    last.unwrap_or_else(|| reserve_port(first)).map_err(refused)
}

/// Waits for a request: a future, or blocking. `None`: the endpoint was shut
/// down.
#[must_use = "nothing is accepted before this is polled or waited for"]
pub struct Accept {
    open: Arc<Open>,
    ticket: Option<Ticket>,
}

impl Accept {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Incoming>> {
        let inner = self.open.engine.inner();
        let (port, ticket) = (self.open.port, &mut self.ticket);
        let polled = inner.quietly(|state, now| state.poll_accept(now, port, ticket, cx.waker()));
        polled.map(|taken| {
            // Memory is free again: grants may be due.
            inner.flush_and_settle();
            taken.map(|taken| Incoming::new(&self.open.engine, taken))
        })
    }

    /// Blocks until a request is here.
    pub fn wait(mut self) -> Option<Incoming> {
        let open = self.open.clone();
        let inner = open.engine.inner();
        inner.block_on(None, |cx| self.poll_next(cx)).flatten()
    }

    /// Blocks no longer than that.
    pub fn wait_until(&mut self, until: Instant) -> Accepted {
        let open = self.open.clone();
        let inner = open.engine.inner();
        match inner.block_on(Some(until), |cx| self.poll_next(cx)) {
            Some(Some(incoming)) => Accepted::Request(incoming),
            Some(None) => Accepted::ShutDown,
            None => Accepted::TimedOut,
        }
    }
}

impl Future for Accept {
    type Output = Option<Incoming>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_next(cx)
    }
}

impl Drop for Accept {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.open.engine.inner().with(|state, _| {
                let wakes = &mut state.wakes;
                if let Some(port) = state.listeners.get_mut(self.open.port) {
                    port.leave(ticket, wakes);
                }
            });
        }
    }
}

/// What came of waiting for a request.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "made and taken apart once a request"
)]
pub enum Accepted {
    /// One came.
    Request(Incoming),
    /// None came in time.
    TimedOut,
    /// None will come.
    ShutDown,
}

/// A complete request or one-way message.
#[derive(Debug)]
pub struct Incoming {
    /// Who sent it.
    pub peer: SocketAddr,
    /// The own address it came to.
    pub local: Option<IpAddr>,
    /// The own port it came to.
    pub port: u16,
    /// Whether it wants a response.
    pub kind: Kind,
    /// Its bytes.
    pub message: Message,
    /// The right to answer; `None` for a one-way message.
    pub responder: Option<Responder>,
}

impl Incoming {
    fn new(engine: &Arc<Engine>, taken: Taken) -> Self {
        let responder = (taken.kind == Kind::Call).then(|| Responder {
            engine: engine.clone(),
            id: RequestId(taken.rpc),
            duty: Duty::ToAnswer,
        });
        Self {
            peer: taken.peer,
            local: taken.local,
            port: taken.port,
            kind: taken.kind,
            message: taken.message,
            responder,
        }
    }
}

/// Names a request in service; after its end it names nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(pub(crate) RpcHandle);

/// The right to answer one request. If it is dropped unused, the client is
/// told that the request was dropped.
#[must_use = "a request whose responder is dropped is dropped"]
pub struct Responder {
    engine: Arc<Engine>,
    id: RequestId,
    duty: Duty,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Duty {
    ToAnswer,
    Done,
}

impl Responder {
    /// The request.
    pub fn id(&self) -> RequestId {
        self.id
    }

    /// Leaves it to the caller to answer, with [`Engine::respond`] or
    /// [`Engine::abort`].
    pub fn into_id(mut self) -> RequestId {
        self.duty = Duty::Done;
        self.id
    }

    /// Answers; the response is sent before this returns, unless
    /// [`crate::Sending::NextTurn`] was chosen. After an error the
    /// request is ended as dropped; use [`Engine::respond`] to try again.
    pub fn respond(mut self, message: impl Into<Message>) -> Result<(), RespondError> {
        self.engine.respond(self.id, message.into())?;
        self.duty = Duty::Done;
        Ok(())
    }

    /// Ends the request without a response; the client is told why.
    pub fn abort(mut self, code: AbortCode) {
        self.duty = Duty::Done;
        self.engine.abort(self.id, code);
    }

    /// Ready when nobody waits for the response any more.
    pub fn poll_cancelled(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.engine.poll_cancelled(self.id, cx)
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        if self.duty == Duty::ToAnswer {
            self.engine.drop_request(self.id);
        }
    }
}

macro_rules! opaque {
    ($($name:ident),+) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )+};
}

opaque!(Listener, Accept, Responder);
