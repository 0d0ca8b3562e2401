//! The driver on a tokio runtime: a task that sleeps on the datapath's
//! descriptors and on a timer of its own, so that an endpoint whose callers are
//! busy or gone still grants, acknowledges and answers. When the runtime itself
//! is late, a thread of the engine stands in ([`homa_engine::Drive::Watched`]).
//!
//! Callers that wait are woken by it, and callers that send do so themselves:
//! in a ping-pong on a current-thread runtime a round trip is one wait for the
//! socket, one receive and one send, like TCP's.
//!
//! Invariants:
//! - Readiness is cleared *before* a turn, and a turn goes on until nothing is
//!   left; so what arrives during a turn is either seen by it or wakes the task
//!   again.
//! - The kernel's timer never fires later than the engine wants to be called.
//!   It may fire earlier: it is set again only if it would be too late, which
//!   saves a system call per round trip.
//! - When the task ends, for whatever reason, the engine is closed, so that
//!   nobody waits for a driver that is gone.
//!
//! Not tokio's timers: they are a millisecond coarse.

use std::future::Future;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use homa_engine::{Engine, Turn};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

pub(crate) use control::{Alarm, Control};

mod control;
mod timer;

use timer::Timer;

use crate::Error;
use crate::builder::Driving;

struct Driver {
    engine: Arc<Engine>,
    control: Arc<Control>,
    /// Nothing if a thread of the engine polls.
    sources: Vec<Source>,
    /// A descriptor whose send buffer is full.
    full: Option<AsyncFd<OwnedFd>>,
    timer: Timer,
    driving: Driving,
    spin: Duration,
    /// When a descriptor was last ready.
    busy_at: Instant,
}

/// A socket of the datapath.
struct Source {
    socket: Arc<AsyncFd<OwnedFd>>,
    /// Ready when the network has something to say: that does not make a socket
    /// readable, and a closed port should fail a call at once.
    error: Pin<Box<dyn Future<Output = io::Result<()>> + Send>>,
}

impl Source {
    fn new(fd: OwnedFd) -> io::Result<Self> {
        let socket = Arc::new(watch(fd, Interest::READABLE | Interest::ERROR)?);
        let error = Box::pin(error_of(socket.clone()));
        Ok(Self { socket, error })
    }
}

async fn error_of(socket: Arc<AsyncFd<OwnedFd>>) -> io::Result<()> {
    socket.ready(Interest::ERROR).await?.clear_ready();
    Ok(())
}

/// Starts the task.
///
/// # Panics
///
/// As tokio does where a runtime has no I/O.
pub(crate) fn spawn(
    engine: &Arc<Engine>,
    driving: Driving,
    spin: Duration,
) -> Result<Arc<Control>, Error> {
    let runtime = tokio::runtime::Handle::try_current().map_err(|_| Error::NoRuntime)?;
    let system = |doing| move |source: io::Error| Error::System { doing, source };
    let mut sources = Vec::new();
    if driving == Driving::Sleeping {
        for descriptor in engine.descriptors() {
            let source = descriptor
                .try_clone_to_owned()
                .and_then(Source::new)
                .map_err(system("watching a socket"))?;
            sources.push(source);
        }
    }
    let control = Arc::new(Control::default());
    runtime.spawn(Driver {
        engine: engine.clone(),
        control: control.clone(),
        sources,
        full: None,
        timer: Timer::new().map_err(system("making a timer"))?,
        driving,
        spin,
        busy_at: Instant::now(),
    });
    Ok(control)
}

impl Future for Driver {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        match this.turn(cx) {
            Ok(next) => next,
            // The runtime shuts down, or a descriptor is broken.
            Err(_) => Poll::Ready(()),
        }
    }
}

impl Driver {
    fn turn(&mut self, cx: &mut Context<'_>) -> io::Result<Poll<()>> {
        self.control.register(cx.waker());
        if self.control.has_ended() {
            return Ok(Poll::Ready(()));
        }
        self.timer.settle(cx)?;
        let mut next = None;
        if self.driving == Driving::Sleeping {
            self.engine.register_driver(cx.waker());
            let ready = self.settle(cx)?;
            let turn = self.engine.drive();
            next = turn.next;
            self.watch_writable(turn, cx)?;
            if turn.more || self.spins(ready) {
                cx.waker().wake_by_ref();
            }
        }
        let (alarm, close_at) = self.control.look();
        if let Some(at) = close_at
            && (self.engine.poll_drained(cx).is_ready() || Instant::now() >= at)
        {
            return Ok(Poll::Ready(()));
        }
        let next = [next, alarm, close_at].into_iter().flatten().min();
        self.timer.set(next, cx)?;
        Ok(Poll::Pending)
    }

    /// Clears what is ready and asks to be woken; says whether anything was.
    fn settle(&mut self, cx: &mut Context<'_>) -> io::Result<Ready> {
        let mut ready = Ready::No;
        for source in &mut self.sources {
            while let Poll::Ready(guard) = source.socket.poll_read_ready(cx) {
                guard?.clear_ready();
                ready = Ready::Yes;
            }
            while let Poll::Ready(error) = source.error.as_mut().poll(cx) {
                error?;
                source.error = Box::pin(error_of(source.socket.clone()));
                self.engine.expect_errors();
            }
        }
        if let Some(full) = &self.full
            && let Poll::Ready(guard) = full.poll_write_ready(cx)
        {
            guard?.clear_ready();
            self.full = None;
        }
        Ok(ready)
    }

    /// Whether to look again at once rather than sleep.
    fn spins(&mut self, ready: Ready) -> bool {
        if self.spin.is_zero() {
            return false;
        }
        let now = Instant::now();
        if ready == Ready::Yes {
            self.busy_at = now;
        }
        now.saturating_duration_since(self.busy_at) < self.spin
    }

    /// A second registration, only while it is needed: otherwise every packet
    /// that leaves the send buffer would wake the task.
    fn watch_writable(&mut self, turn: Turn, cx: &mut Context<'_>) -> io::Result<()> {
        let Some(fd) = turn.writable else {
            self.full = None;
            return Ok(());
        };
        if self.full.is_some() {
            return Ok(());
        }
        let descriptors = self.engine.descriptors();
        let Some(blocked) = descriptors
            .iter()
            .find(|descriptor| descriptor.as_raw_fd() == fd)
        else {
            return Ok(());
        };
        let full = watch(blocked.try_clone_to_owned()?, Interest::WRITABLE)?;
        if full.poll_write_ready(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        self.full = Some(full);
        Ok(())
    }
}

/// Has tokio watch a descriptor.
fn watch(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    #[allow(
        deprecated,
        reason = "deprecated for types that do not own their descriptor; an OwnedFd does"
    )]
    AsyncFd::with_interest(fd, interest)
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.engine.close();
        self.control.end();
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ready {
    Yes,
    No,
}
