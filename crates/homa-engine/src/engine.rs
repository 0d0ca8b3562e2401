//! The engine as its users see it.

use std::fmt;
use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use homa_core::Settings;
use homa_datapath::Datapath;
use homa_wire::AbortCode;

use crate::call::{Call, CallOptions, OneWay, Reserve};
use crate::counters::Stats;
use crate::inner::{Inner, lock};
use crate::lead::NEVER;
use crate::listener::{Listener, RequestId};
use crate::state::{Block, Seat};
use crate::submit::Room;
use crate::{EngineConfig, ListenError, Message, RespondError, StartError, SubmitError};

/// One endpoint: a protocol core on a datapath, with the memory of its
/// messages and somebody who drives it.
///
/// All methods may be called from any thread. Handles of calls, listeners and
/// requests keep the engine alive; when the last is gone it closes hard, which
/// [`Engine::shutdown`] before avoids.
pub struct Engine {
    inner: Arc<Inner>,
}

/// What a turn of [`Engine::drive`] left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// When to call again at the latest, whatever arrives; `None`: only when a
    /// descriptor is ready.
    pub next: Option<Instant>,
    /// Call again at once: there was more than one turn may do, or that cannot
    /// be told.
    pub more: bool,
    /// Call again also when this descriptor is writable.
    pub writable: Option<RawFd>,
}

/// Whether everything that was under way ended well before the deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// It did.
    Yes,
    /// Some of it was ended.
    No,
}

impl Engine {
    /// An endpoint on a datapath, driven as the settings say.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "settings are made for one engine"
    )]
    pub fn new(config: EngineConfig, datapath: Box<dyn Datapath>) -> Result<Arc<Self>, StartError> {
        let inner = Arc::new(Inner::new(&config, datapath)?);
        inner.start()?;
        Ok(Arc::new(Self { inner }))
    }

    pub(crate) fn inner(&self) -> &Inner {
        &self.inner
    }

    /// The addresses of the datapath, with the real port (raw: 0).
    pub fn local_addresses(&self) -> Vec<SocketAddr> {
        self.inner.datapath.local_addresses()
    }

    /// The protocol's settings, as they were derived.
    pub fn settings(&self) -> Settings {
        self.inner.timelessly(|state| state.core.settings().clone())
    }

    /// Everything that is counted. Costs a walk over all RPCs.
    pub fn stats(&self) -> Stats {
        self.inner.stats()
    }

    /// Starts a call. What of the request may be sent at once has been sent
    /// when this returns.
    pub fn call(
        self: &Arc<Self>,
        to: SocketAddr,
        message: impl Into<Message>,
        options: CallOptions,
    ) -> Result<Call, SubmitError> {
        Call::start(self, to, message.into(), options, Room::Ask)
    }

    /// Sends a one-way message: delivered means done, there is no response.
    pub fn send(
        self: &Arc<Self>,
        to: SocketAddr,
        message: impl Into<Message>,
        options: CallOptions,
    ) -> Result<OneWay, SubmitError> {
        OneWay::start(self, to, message.into(), options, Room::Ask)
    }

    /// Waits for room for one call or one-way message of `bytes` bytes. First
    /// come, first served, also before those that do not wait.
    pub fn reserve(self: &Arc<Self>, bytes: usize) -> Reserve {
        Reserve::new(self, bytes)
    }

    /// Takes requests to a port. 0 is, over UDP, the port of the datapath,
    /// and over raw IP any free one.
    pub fn listen(self: &Arc<Self>, port: u16) -> Result<Listener, ListenError> {
        Listener::open(self, port)
    }

    /// Answers a request; the response is sent before this returns, unless
    /// [`crate::Sending::NextTurn`] was chosen.
    pub fn respond(&self, request: RequestId, message: Message) -> Result<(), RespondError> {
        let inner = &self.inner;
        let answered = inner.quietly(|state, now| state.respond(now, request.0, &message));
        inner.flush_and_settle();
        answered.map_err(|cause| RespondError { message, cause })
    }

    /// Ends a request in service without a response; the client is told why.
    /// Does nothing if it is answered or over.
    pub fn abort(&self, request: RequestId, code: AbortCode) {
        self.inner
            .quietly(|state, now| state.abort(now, request.0, code));
        self.inner.flush_and_settle();
    }

    pub(crate) fn drop_request(&self, request: RequestId) {
        self.inner.quietly(|state, now| {
            state.counters.requests_dropped += 1;
            state.abort(now, request.0, AbortCode::Dropped);
        });
        self.inner.flush_and_settle();
    }

    /// Ready when nobody waits for the response to a request any more, or it
    /// is answered. One task at a time: the latest is woken.
    pub fn poll_cancelled(&self, request: RequestId, cx: &mut Context<'_>) -> Poll<()> {
        self.inner
            .timelessly(|state| state.poll_cancelled(request.0, cx))
    }

    /// One bounded turn: receives, sends, does what is due. Any thread may call
    /// it at any time; with [`crate::Drive::External`] somebody must, and with
    /// [`crate::Drive::Watched`] should.
    pub fn drive(&self) -> Turn {
        let inner = &self.inner;
        let done = inner.outside_turn();
        let mut more = done.more;
        let (next, writable) = inner.with(|state, now| {
            let writable = match state.blocked {
                Some(Block::Writable(descriptor)) => Some(descriptor),
                _ => None,
            };
            let next = state
                .next_due(now)
                .map(|due| done.flushed.postpone(now, due));
            more |= next.is_some_and(|next| next <= now);
            if inner.drive.is_outside() {
                state.fallback = if more {
                    Seat::Awake
                } else {
                    Seat::Asleep(next.unwrap_or(NEVER))
                };
            }
            (next, writable)
        });
        Turn {
            next: next.and_then(|at| inner.clock.instant(at)),
            more,
            writable,
        }
    }

    /// A descriptor is in error: the next turn asks what the network said, also
    /// if packets arrive.
    pub fn expect_errors(&self) {
        self.inner.errors_wanted.store(true, Ordering::Relaxed);
    }

    /// The descriptors to poll for readability. Always the same ones.
    pub fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        self.inner.datapath.descriptors()
    }

    /// For drivers outside: the waker is woken when
    /// [`Engine::drive`] must be called earlier than its last turn said, once
    /// for each turn. One at a time, the latest counts; register before the
    /// turn.
    pub fn register_driver(&self, waker: &Waker) {
        let mut place = lock(&self.inner.outside);
        match &mut *place {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
    }

    /// Blocks the thread until `poll` is ready, driving the engine if nobody
    /// else does; `None` when the deadline came first.
    ///
    /// `poll` is called again whenever its context was woken.
    pub fn block_on<T>(
        &self,
        deadline: Option<Instant>,
        poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Option<T> {
        self.inner.block_on(deadline, poll)
    }

    /// Takes no new requests from now on; those that no application has taken
    /// are refused. New calls are refused too, unless a request is in service.
    pub fn begin_shutdown(&self) {
        self.inner.begin_shutdown();
    }

    /// Ready when nothing is under way any more: requests are answered,
    /// responses acknowledged, calls over.
    pub fn poll_drained(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.inner.poll_drained(cx)
    }

    /// Begins the shutdown, blocks until nothing is under way or the deadline
    /// has come, and closes.
    pub fn shutdown(&self, deadline: Instant) -> Drained {
        self.inner.shutdown(deadline)
    }

    /// Ends everything now: the other ends are told, every waiter is woken and
    /// told that the endpoint is shut down.
    pub fn close(&self) {
        self.inner.close();
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.inner.close();
        self.inner.end_thread();
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("addresses", &self.local_addresses())
            .finish_non_exhaustive()
    }
}
