//! Drives an engine and sleeps when it has nothing to do.

use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use homa_engine::{Engine, Turn};
use mio::unix::SourceFd;
use mio::{Interest, Token};

use super::ready::Doorbell;
use crate::error::BenchError;
use crate::events::EventSet;
use crate::transport::Found;

/// An engine with the descriptors that wake it.
///
/// Events are edge-triggered: between two sleeps the engine is driven until a
/// turn finds nothing, so nothing that was there before a sleep is missed.
pub(super) struct Sleeper {
    engine: Arc<Engine>,
    events: EventSet,
    doorbell: Arc<Doorbell>,
    turn: Turn,
    /// The descriptor for which becoming writable is an event too.
    writable: Option<RawFd>,
}

impl Sleeper {
    pub(super) fn new(engine: Arc<Engine>) -> Result<Self, BenchError> {
        let events = EventSet::new().map_err(BenchError::system("epoll"))?;
        for descriptor in engine.descriptors() {
            events
                .registry()
                .register(
                    &mut SourceFd(&descriptor.as_raw_fd()),
                    Token(0),
                    Interest::READABLE,
                )
                .map_err(BenchError::system("epoll of the datapath"))?;
        }
        let doorbell = Arc::new(Doorbell::default());
        engine.register_driver(&Waker::from(doorbell.clone()));
        Ok(Self {
            engine,
            events,
            doorbell,
            turn: Turn {
                next: None,
                more: true,
                writable: None,
            },
            writable: None,
        })
    }

    /// One turn of the engine.
    pub(super) fn drive(&mut self) -> Found {
        self.doorbell.rang();
        self.turn = self.engine.drive();
        if self.turn.more {
            Found::Something
        } else {
            Found::Nothing
        }
    }

    /// Sleeps until the engine has something to do, or until `deadline`. Does
    /// not sleep if the last turn left something.
    pub(super) fn sleep(&mut self, deadline: Instant) -> Result<(), BenchError> {
        if self.turn.more || self.doorbell.rang() {
            return Ok(());
        }
        self.watch_writable(self.turn.writable)
            .map_err(BenchError::system("epoll of the datapath"))?;
        let until = self.turn.next.map_or(deadline, |next| next.min(deadline));
        self.events
            .collect_until(until)
            .map_err(BenchError::system("epoll"))
    }

    fn watch_writable(&mut self, wanted: Option<RawFd>) -> io::Result<()> {
        if wanted == self.writable {
            return Ok(());
        }
        let registry = self.events.registry();
        let watch = |descriptor: RawFd, interest| {
            registry.reregister(&mut SourceFd(&descriptor), Token(0), interest)
        };
        if let Some(before) = self.writable.take() {
            watch(before, Interest::READABLE)?;
        }
        if let Some(now) = wanted {
            watch(now, Interest::READABLE | Interest::WRITABLE)?;
            self.writable = wanted;
        }
        Ok(())
    }
}
