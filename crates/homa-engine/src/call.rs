//! The client's handles: calls, one-way messages, and room for them.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use homa_core::Kind;

use crate::admission::Ticket;
use crate::calls::CallKey;
use crate::inner::Inner;
use crate::state::Life;
use crate::submit::{Room, Submission};
use crate::{CallError, Engine, Message, SubmitCause, SubmitError};

/// How to make a call.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallOptions {
    /// The call fails with [`CallError::DeadlineExceeded`] then.
    pub deadline: Option<Instant>,
    /// The port that the response comes to: one of this endpoint; by default
    /// its own.
    pub local_port: Option<u16>,
}

impl CallOptions {
    /// With a deadline.
    pub fn until(deadline: Instant) -> Self {
        Self {
            deadline: Some(deadline),
            ..Self::default()
        }
    }
}

/// Submits, and sends before it returns.
fn submit(
    engine: &Arc<Engine>,
    to: SocketAddr,
    message: Message,
    kind: Kind,
    options: CallOptions,
    room: Room,
) -> Result<Pending, SubmitError> {
    let inner = engine.inner();
    let submission = Submission {
        to,
        message: &message,
        kind,
        local_port: options.local_port,
        deadline: options.deadline.map(|deadline| inner.clock.time(deadline)),
        room,
    };
    match inner.quietly(|state, now| state.submit(now, &submission)) {
        Ok(key) => {
            inner.flush_and_settle();
            Ok(Pending {
                engine: engine.clone(),
                peer: to,
                key: Some(key),
            })
        }
        Err(cause) => {
            inner.settle();
            Err(SubmitError { message, cause })
        }
    }
}

/// What a call and a one-way message have in common.
struct Pending {
    engine: Arc<Engine>,
    peer: SocketAddr,
    /// `None` once the outcome is fetched.
    key: Option<CallKey>,
}

impl Pending {
    fn inner(&self) -> &Inner {
        self.engine.inner()
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Message, CallError>> {
        let Some(key) = self.key else {
            return Poll::Ready(Err(CallError::Cancelled));
        };
        let inner = self.engine.inner();
        let polled = inner.quietly(|state, now| state.poll_call(now, key, cx.waker()));
        if polled.is_ready() {
            self.key = None;
            // An acknowledgement may be due, and somebody may have got room.
            inner.flush_and_settle();
        }
        polled
    }

    fn wait_until(&mut self, until: Option<Instant>) -> Option<Result<Message, CallError>> {
        let engine = self.engine.clone();
        engine.inner().block_on(until, |cx| self.poll(cx))
    }

    fn cancel(&mut self) {
        if let Some(key) = self.key.take() {
            let inner = self.engine.inner();
            inner.quietly(|state, now| state.cancel_call(now, key));
            inner.flush_and_settle();
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            let inner = self.inner();
            inner.quietly(|state, now| state.forget_call(now, key));
            inner.flush_and_settle();
        }
    }
}

/// A call under way: a future of the response. Dropping it cancels the call,
/// and the server is told.
#[must_use = "a call that is dropped is cancelled"]
pub struct Call(Pending);

impl Call {
    pub(crate) fn start(
        engine: &Arc<Engine>,
        to: SocketAddr,
        message: Message,
        options: CallOptions,
        room: Room,
    ) -> Result<Self, SubmitError> {
        submit(engine, to, message, Kind::Call, options, room).map(Self)
    }

    /// Whom it was sent to.
    pub fn peer(&self) -> SocketAddr {
        self.0.peer
    }

    /// Blocks until the response is here or the call has failed, which
    /// [`CallOptions::deadline`] bounds.
    pub fn wait(mut self) -> Result<Message, CallError> {
        self.0.wait_until(None).unwrap_or(Err(CallError::Cancelled))
    }

    /// Blocks no longer than that; `None`: not yet. The call goes on.
    pub fn wait_until(&mut self, until: Instant) -> Option<Result<Message, CallError>> {
        self.0.wait_until(Some(until))
    }

    /// Ends the call; the server is told.
    pub fn cancel(mut self) {
        self.0.cancel();
    }
}

impl Future for Call {
    type Output = Result<Message, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(cx)
    }
}

/// A one-way message under way: a future that is ready when the message has
/// been delivered. Dropping it lets the message go on.
pub struct OneWay(Pending);

impl OneWay {
    pub(crate) fn start(
        engine: &Arc<Engine>,
        to: SocketAddr,
        message: Message,
        options: CallOptions,
        room: Room,
    ) -> Result<Self, SubmitError> {
        submit(engine, to, message, Kind::OneWay, options, room).map(Self)
    }

    /// Whom it was sent to.
    pub fn peer(&self) -> SocketAddr {
        self.0.peer
    }

    /// Blocks until it is delivered or has failed.
    pub fn wait(mut self) -> Result<(), CallError> {
        self.0
            .wait_until(None)
            .unwrap_or(Err(CallError::Cancelled))
            .map(drop)
    }

    /// Blocks no longer than that; `None`: not yet. The message goes on.
    pub fn wait_until(&mut self, until: Instant) -> Option<Result<(), CallError>> {
        self.0.wait_until(Some(until)).map(|done| done.map(drop))
    }

    /// Takes the message back if it has not been delivered.
    pub fn cancel(mut self) {
        self.0.cancel();
    }
}

impl Future for OneWay {
    type Output = Result<(), CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(cx).map(|done| done.map(drop))
    }
}

/// Waits for room for one call or one-way message: a future. First come, first
/// served; dropping it gives up its place.
#[must_use = "the place in the queue is given up when this is dropped"]
pub struct Reserve {
    engine: Arc<Engine>,
    bytes: u64,
    ticket: Option<Ticket>,
}

impl Reserve {
    pub(crate) fn new(engine: &Arc<Engine>, bytes: usize) -> Self {
        Self {
            engine: engine.clone(),
            bytes: bytes as u64,
            ticket: None,
        }
    }

    fn poll_permit(&mut self, cx: &mut Context<'_>) -> Poll<Result<Permit, SubmitCause>> {
        let inner = self.engine.inner();
        let (bytes, ticket) = (self.bytes, &mut self.ticket);
        let polled = inner.timelessly(|state| {
            if state.life == Life::Closed {
                return Poll::Ready(Err(SubmitCause::ShutDown));
            }
            state.admission.poll(ticket, bytes, cx.waker()).map(Ok)
        });
        polled.map(|room| {
            room.map(|()| Permit {
                engine: self.engine.clone(),
                bytes: Some(bytes),
            })
        })
    }

    /// Blocks until there is room.
    pub fn wait(mut self) -> Result<Permit, SubmitCause> {
        let engine = self.engine.clone();
        engine
            .inner()
            .block_on(None, |cx| self.poll_permit(cx))
            .unwrap_or(Err(SubmitCause::Full))
    }

    /// Blocks no longer than that; `None`: no room yet, the place is kept.
    pub fn wait_until(&mut self, until: Instant) -> Option<Result<Permit, SubmitCause>> {
        let engine = self.engine.clone();
        engine
            .inner()
            .block_on(Some(until), |cx| self.poll_permit(cx))
    }
}

impl Future for Reserve {
    type Output = Result<Permit, SubmitCause>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.poll_permit(cx)
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.engine
                .inner()
                .with(|state, _| state.admission.leave(ticket, &mut state.wakes));
        }
    }
}

/// Room for one call or one-way message of as many bytes as were reserved.
/// Unused, it goes back when dropped.
#[must_use = "the room goes back when this is dropped"]
pub struct Permit {
    engine: Arc<Engine>,
    /// `None` once used.
    bytes: Option<u64>,
}

impl Permit {
    /// [`Engine::call`] in this room. If the message is refused, the room goes
    /// back.
    pub fn call(
        mut self,
        to: SocketAddr,
        message: impl Into<Message>,
        options: CallOptions,
    ) -> Result<Call, SubmitError> {
        let (message, room) = self.room(message.into())?;
        let call = Call::start(&self.engine, to, message, options, room)?;
        self.bytes = None;
        Ok(call)
    }

    /// [`Engine::send`] in this room.
    pub fn send(
        mut self,
        to: SocketAddr,
        message: impl Into<Message>,
        options: CallOptions,
    ) -> Result<OneWay, SubmitError> {
        let (message, room) = self.room(message.into())?;
        let sent = OneWay::start(&self.engine, to, message, options, room)?;
        self.bytes = None;
        Ok(sent)
    }

    /// The room, if the message fits.
    fn room(&self, message: Message) -> Result<(Message, Room), SubmitError> {
        match self.bytes {
            Some(bytes) if message.len() as u64 <= bytes => Ok((message, Room::Reserved(bytes))),
            _ => Err(SubmitError {
                message,
                cause: SubmitCause::Full,
            }),
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(bytes) = self.bytes.take() {
            self.engine
                .inner()
                .with(|state, _| state.admission.release(bytes, &mut state.wakes));
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

opaque!(Call, OneWay, Reserve, Permit);
