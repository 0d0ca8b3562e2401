//! An RPC that an async caller waits for, from the name of the peer to the
//! end: the address is looked up if need be, the limits waited for, then the
//! engine has it.
//!
//! The first poll of a call to an address in numbers, below the limits, sends
//! the request before it returns.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use homa_engine::{CallError, CallOptions, Engine, Permit, Reserve, SubmitError};
use tokio::task::JoinHandle;

use crate::driver::Alarm;
use crate::failure::About;
use crate::shared::{Deadline, Home, Shared};
use crate::{Address, Error, Message, TryError};

/// What differs between calls and one-way messages.
pub(crate) trait Way {
    type Output;
    type Under: Future<Output = Result<Self::Output, CallError>> + Unpin;

    fn begin(
        engine: &Arc<Engine>,
        to: SocketAddr,
        message: Message,
        options: CallOptions,
    ) -> Result<Self::Under, SubmitError>;

    fn begin_in(
        permit: Permit,
        to: SocketAddr,
        message: Message,
        options: CallOptions,
    ) -> Result<Self::Under, SubmitError>;
}

pub(crate) enum CallWay {}

impl Way for CallWay {
    type Output = Message;
    type Under = homa_engine::Call;

    fn begin(
        engine: &Arc<Engine>,
        to: SocketAddr,
        message: Message,
        options: CallOptions,
    ) -> Result<Self::Under, SubmitError> {
        engine.call(to, message, options)
    }

    fn begin_in(
        permit: Permit,
        to: SocketAddr,
        message: Message,
        options: CallOptions,
    ) -> Result<Self::Under, SubmitError> {
        permit.call(to, message, options)
    }
}

pub(crate) enum SendWay {}

impl Way for SendWay {
    type Output = ();
    type Under = homa_engine::OneWay;

    fn begin(
        engine: &Arc<Engine>,
        to: SocketAddr,
        message: Message,
        options: CallOptions,
    ) -> Result<Self::Under, SubmitError> {
        engine.send(to, message, options)
    }

    fn begin_in(
        permit: Permit,
        to: SocketAddr,
        message: Message,
        options: CallOptions,
    ) -> Result<Self::Under, SubmitError> {
        permit.send(to, message, options)
    }
}

/// An RPC on its way.
pub(crate) struct Running<W: Way> {
    shared: Arc<Shared>,
    deadline: Option<Deadline>,
    bytes: usize,
    stage: Stage<W>,
}

enum Stage<W: Way> {
    /// Not polled yet.
    New(Address, Message),
    /// The resolver works.
    LookUp(
        Waiting<JoinHandle<Result<SocketAddr, Error>>>,
        Address,
        Message,
    ),
    /// A limit is reached.
    Room(Waiting<Reserve>, SocketAddr, Message),
    /// The engine has it.
    Under(W::Under, SocketAddr),
    Over,
}

/// What is waited for, with the caller's deadline.
struct Waiting<F> {
    future: F,
    alarm: Option<Alarm>,
}

impl<F: Future + Unpin> Waiting<F> {
    fn new(shared: &Shared, deadline: Option<Deadline>, future: F) -> Self {
        let alarm = match (&shared.home, deadline) {
            (Home::Task(control), Some(deadline)) => Some(Alarm::new(control.clone(), deadline.at)),
            _ => None,
        };
        Self { future, alarm }
    }

    /// `None`: the deadline has passed.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<F::Output>> {
        if let Poll::Ready(output) = Pin::new(&mut self.future).poll(cx) {
            return Poll::Ready(Some(output));
        }
        match &mut self.alarm {
            Some(alarm) => Pin::new(alarm).poll(cx).map(|()| None),
            None => Poll::Pending,
        }
    }
}

impl<W: Way> Running<W> {
    pub(crate) fn new(
        shared: Arc<Shared>,
        to: Address,
        message: Message,
        deadline: Option<Deadline>,
    ) -> Self {
        Self {
            shared,
            deadline,
            bytes: message.len(),
            stage: Stage::New(to, message),
        }
    }

    /// Starts now or not at all.
    pub(crate) fn start_now(
        shared: &Arc<Shared>,
        to: SocketAddr,
        message: Message,
    ) -> Result<Self, TryError> {
        let to = match Address::from(to).known(shared.families) {
            Some(known) => known?,
            None => to,
        };
        let mut running = Self {
            shared: shared.clone(),
            deadline: shared.default_deadline(),
            bytes: message.len(),
            stage: Stage::Over,
        };
        match W::begin(&shared.engine, to, message, running.options()) {
            Ok(under) => {
                running.stage = Stage::Under(under, to);
                Ok(running)
            }
            Err(error) => Err(running.about(to).submit_error(error)),
        }
    }

    fn options(&self) -> CallOptions {
        CallOptions {
            deadline: self.deadline.map(|deadline| deadline.at),
            local_port: None,
        }
    }

    fn about(&self, peer: SocketAddr) -> About {
        About {
            peer,
            bytes: self.bytes,
            deadline: self.deadline,
        }
    }

    fn deadline_exceeded(&self, peer: Address) -> Error {
        Error::DeadlineExceeded {
            peer,
            deadline: self
                .deadline
                .map(|deadline| deadline.given)
                .unwrap_or_default(),
        }
    }

    /// Hands the message to the engine, or waits for room.
    fn begin(&mut self, to: SocketAddr, message: Message) -> Result<(), Error> {
        let begun = W::begin(&self.shared.engine, to, message, self.options());
        match begun.map_err(|error| self.about(to).submit_error(error)) {
            Ok(under) => self.stage = Stage::Under(under, to),
            Err(TryError::Full(message)) => {
                let reserve = self.shared.engine.reserve(message.len());
                let waiting = Waiting::new(&self.shared, self.deadline, reserve);
                self.stage = Stage::Room(waiting, to, message);
            }
            Err(TryError::Failed(error)) => return Err(error),
        }
        Ok(())
    }

    fn look_up(&mut self, to: Address, message: Message) {
        let families = self.shared.families;
        let name = to.clone();
        let resolver = tokio::task::spawn_blocking(move || name.look_up_one(families));
        let waiting = Waiting::new(&self.shared, self.deadline, resolver);
        self.stage = Stage::LookUp(waiting, to, message);
    }

    /// One step; `Pending` and `Ready` are of the whole.
    fn step(&mut self, cx: &mut Context<'_>) -> Result<Step<W::Output>, Error> {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::New(to, message) => {
                match to.known(self.shared.families) {
                    Some(known) => self.begin(known?, message)?,
                    None => self.look_up(to, message),
                }
                Ok(Step::Further)
            }
            Stage::LookUp(mut waiting, to, message) => match waiting.poll(cx) {
                Poll::Pending => {
                    self.stage = Stage::LookUp(waiting, to, message);
                    Ok(Step::Wait)
                }
                Poll::Ready(None) => Err(self.deadline_exceeded(to)),
                Poll::Ready(Some(Ok(found))) => {
                    self.begin(found?, message)?;
                    Ok(Step::Further)
                }
                // The runtime is shutting down.
                Poll::Ready(Some(Err(_))) => Err(Error::ShutDown),
            },
            Stage::Room(mut waiting, to, message) => match waiting.poll(cx) {
                Poll::Pending => {
                    self.stage = Stage::Room(waiting, to, message);
                    Ok(Step::Wait)
                }
                Poll::Ready(None) => Err(self.deadline_exceeded(to.into())),
                Poll::Ready(Some(permit)) => {
                    let permit = permit.map_err(|cause| self.about(to).submit_cause(cause))?;
                    match W::begin_in(permit, to, message, self.options()) {
                        Ok(under) => self.stage = Stage::Under(under, to),
                        Err(error) => match self.about(to).submit_error(error) {
                            // Not with a permit; but if so, wait again.
                            TryError::Full(message) => self.begin(to, message)?,
                            TryError::Failed(error) => return Err(error),
                        },
                    }
                    Ok(Step::Further)
                }
            },
            Stage::Under(mut under, to) => match Pin::new(&mut under).poll(cx) {
                Poll::Pending => {
                    self.stage = Stage::Under(under, to);
                    Ok(Step::Wait)
                }
                Poll::Ready(Ok(output)) => Ok(Step::Done(output)),
                Poll::Ready(Err(error)) => Err(self.about(to).call_error(error)),
            },
            Stage::Over => Ok(Step::Wait),
        }
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<W::Output, Error>> {
        // The usual case, without moving the call out and in.
        if let Stage::Under(under, to) = &mut self.stage {
            let to = *to;
            let polled = Pin::new(under).poll(cx);
            return polled.map(|result| {
                self.stage = Stage::Over;
                result.map_err(|error| self.about(to).call_error(error))
            });
        }
        loop {
            match self.step(cx) {
                Ok(Step::Further) => {}
                Ok(Step::Wait) => return Poll::Pending,
                Ok(Step::Done(output)) => return Poll::Ready(Ok(output)),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

enum Step<T> {
    Further,
    Wait,
    Done(T),
}
