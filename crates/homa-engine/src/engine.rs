//! The public face; bodies follow.
#![allow(
    missing_docs,
    unused_variables,
    clippy::unimplemented,
    clippy::needless_pass_by_value,
    reason = "signatures only"
)]
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{BorrowedFd, RawFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use homa_core::Kind;
use homa_datapath::Datapath;
use homa_wire::AbortCode;

use crate::{
    CallError, EngineConfig, ListenError, Message, RespondError, StartError, SubmitCause,
    SubmitError,
};

/// One endpoint. Dropping the last handle closes it hard.
pub struct Engine(());

/// What a turn of [`Engine::drive`] left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// When to call again at the latest, whatever arrives; `None`: only when a descriptor is ready.
    pub next: Option<Instant>,
    /// Call again at once: there was more than one turn may do, or it cannot be told.
    pub more: bool,
    /// Call again also when this descriptor is writable.
    pub writable: Option<RawFd>,
}

impl Engine {
    pub fn new(config: EngineConfig, datapath: Box<dyn Datapath>) -> Result<Arc<Self>, StartError> {
        unimplemented!()
    }
    pub fn local_addresses(&self) -> Vec<SocketAddr> {
        unimplemented!()
    }
    pub fn settings(&self) -> homa_core::Settings {
        unimplemented!()
    }
    /// Starts a call; the request is sent before this returns.
    pub fn call(
        self: &Arc<Self>,
        to: SocketAddr,
        message: impl Into<Message>,
        options: CallOptions,
    ) -> Result<Call, SubmitError> {
        unimplemented!()
    }
    /// Sends a one-way message.
    pub fn send(
        self: &Arc<Self>,
        to: SocketAddr,
        message: impl Into<Message>,
        options: CallOptions,
    ) -> Result<OneWay, SubmitError> {
        unimplemented!()
    }
    /// Waits for room for one call (or one-way message) of `bytes` bytes: fair, first come first served.
    pub fn reserve(self: &Arc<Self>, bytes: usize) -> Reserve {
        unimplemented!()
    }
    /// Port 0: over UDP the port of the datapath, over raw IP any free one.
    pub fn listen(self: &Arc<Self>, port: u16) -> Result<Listener, ListenError> {
        unimplemented!()
    }
    pub fn respond(&self, request: RequestId, message: Message) -> Result<(), RespondError> {
        unimplemented!()
    }
    pub fn abort(&self, request: RequestId, code: AbortCode) {
        unimplemented!()
    }
    /// Ready when nobody waits for the response any more.
    pub fn poll_cancelled(&self, request: RequestId, cx: &mut Context<'_>) -> Poll<()> {
        unimplemented!()
    }
    /// One bounded turn.
    pub fn drive(&self) -> Turn {
        unimplemented!()
    }
    /// What to poll for readability. Always the same ones.
    pub fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        unimplemented!()
    }
    /// For [`crate::Drive::External`]: wake this when `drive` must be called earlier than the last turn said. One at a time, the latest counts. Register before the turn.
    pub fn register_driver(&self, waker: &Waker) {
        unimplemented!()
    }
    /// Blocks the thread until `poll` is ready, driving meanwhile; `None` when the deadline passed first.
    pub fn block_on<T>(
        &self,
        deadline: Option<Instant>,
        poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Option<T> {
        unimplemented!()
    }
    /// Refuses new requests from now on, and new calls when no request is in service.
    pub fn begin_shutdown(&self) {
        unimplemented!()
    }
    /// Ready when nothing is under way.
    pub fn poll_drained(&self, cx: &mut Context<'_>) -> Poll<()> {
        unimplemented!()
    }
    /// Blocking: begin_shutdown, wait, flush acks, close.
    pub fn shutdown(&self, deadline: Instant) -> Drained {
        unimplemented!()
    }
    /// Ends everything now; every waiter is woken with "shut down".
    pub fn close(&self) {
        unimplemented!()
    }
}

/// Whether everything under way ended well before the deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    Yes,
    No,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct CallOptions {
    /// The call fails with [`CallError::DeadlineExceeded`] then.
    pub deadline: Option<Instant>,
    /// The port the response comes to: one of this endpoint; by default its own.
    pub local_port: Option<u16>,
}

/// A call under way; dropping it cancels it.
pub struct Call(());
impl Call {
    pub fn peer(&self) -> SocketAddr {
        unimplemented!()
    }
    /// Blocks. Use the deadline of the options to bound it.
    pub fn wait(self) -> Result<Message, CallError> {
        unimplemented!()
    }
    /// Blocks until `until` at most; `None`: not yet.
    pub fn wait_until(&mut self, until: Instant) -> Option<Result<Message, CallError>> {
        unimplemented!()
    }
    /// The server is told.
    pub fn cancel(self) {
        unimplemented!()
    }
}
impl Future for Call {
    type Output = Result<Message, CallError>;
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        unimplemented!()
    }
}

/// A one-way message under way: ready when delivered. Dropping it lets it go on.
pub struct OneWay(());
impl OneWay {
    pub fn peer(&self) -> SocketAddr {
        unimplemented!()
    }
    pub fn wait(self) -> Result<(), CallError> {
        unimplemented!()
    }
    pub fn wait_until(&mut self, until: Instant) -> Option<Result<(), CallError>> {
        unimplemented!()
    }
    pub fn cancel(self) {
        unimplemented!()
    }
}
impl Future for OneWay {
    type Output = Result<(), CallError>;
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        unimplemented!()
    }
}

/// Waits its turn for room; dropping it gives up its place.
pub struct Reserve(());
impl Reserve {
    pub fn wait(self) -> Result<Permit, SubmitCause> {
        unimplemented!()
    }
    pub fn wait_until(&mut self, until: Instant) -> Option<Result<Permit, SubmitCause>> {
        unimplemented!()
    }
}
impl Future for Reserve {
    type Output = Result<Permit, SubmitCause>;
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        unimplemented!()
    }
}
/// Room for one call or one-way message. Unused, it goes back when dropped.
pub struct Permit(());
impl Permit {
    pub fn call(
        self,
        to: SocketAddr,
        message: impl Into<Message>,
        options: CallOptions,
    ) -> Result<Call, SubmitError> {
        unimplemented!()
    }
    pub fn send(
        self,
        to: SocketAddr,
        message: impl Into<Message>,
        options: CallOptions,
    ) -> Result<OneWay, SubmitError> {
        unimplemented!()
    }
}

/// Receives the requests to one port. Clones share them; the port closes with the last.
#[derive(Clone)]
pub struct Listener(());
impl Listener {
    pub fn port(&self) -> u16 {
        unimplemented!()
    }
    /// The next request, as a future or blocking. Cancel-safe: dropping it loses nothing.
    pub fn accept(&self) -> Accept {
        unimplemented!()
    }
    pub fn try_accept(&self) -> Option<Incoming> {
        unimplemented!()
    }
}
/// Waits for a request. `None`: shut down.
pub struct Accept(());
impl Accept {
    pub fn wait(self) -> Option<Incoming> {
        unimplemented!()
    }
    pub fn wait_until(&mut self, until: Instant) -> Accepted {
        unimplemented!()
    }
}
impl Future for Accept {
    type Output = Option<Incoming>;
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        unimplemented!()
    }
}
pub enum Accepted {
    Request(Incoming),
    TimedOut,
    ShutDown,
}

/// A complete request or one-way message.
pub struct Incoming {
    pub peer: SocketAddr,
    /// The own address it came to.
    pub local: Option<IpAddr>,
    /// The own port it came to.
    pub port: u16,
    pub kind: Kind,
    pub message: Message,
    /// `None` for a one-way message.
    pub responder: Option<Responder>,
}

/// The right to answer one request. Dropped unused, the client is told (`AbortCode::Dropped`).
pub struct Responder(());
impl Responder {
    pub fn id(&self) -> RequestId {
        unimplemented!()
    }
    /// Gives up the duty to answer to the caller, who then uses [`Engine::respond`] or [`Engine::abort`].
    pub fn into_id(self) -> RequestId {
        unimplemented!()
    }
    pub fn respond(self, message: impl Into<Message>) -> Result<(), RespondError> {
        unimplemented!()
    }
    pub fn abort(self, code: AbortCode) {
        unimplemented!()
    }
    pub fn poll_cancelled(&self, cx: &mut Context<'_>) -> Poll<()> {
        unimplemented!()
    }
}
/// Names a request in service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(pub(crate) homa_core::RpcHandle);
