//! Calls and one-way messages of callers that block.
//!
//! Both are the same but for what they give back, so a macro writes them; the
//! way into the engine is written once, below.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use homa_engine::{CallError, CallOptions, Engine, Permit, SubmitError};

use crate::failure::About;
use crate::shared::{self, Deadline, Shared};
use crate::{Address, Error, Message, TryError};

/// How a kind of message gets into the engine.
struct Way<U> {
    begin: fn(&Arc<Engine>, SocketAddr, Message, CallOptions) -> Result<U, SubmitError>,
    begin_in: fn(Permit, SocketAddr, Message, CallOptions) -> Result<U, SubmitError>,
}

/// What has not started.
struct Intent {
    shared: Arc<Shared>,
    peer: Address,
    message: Message,
    deadline: Option<Deadline>,
}

impl Intent {
    fn new(shared: Arc<Shared>, peer: Address, message: Message) -> Self {
        Self {
            deadline: shared.default_deadline(),
            shared,
            peer,
            message,
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
            bytes: self.message.len(),
            deadline: self.deadline,
        }
    }

    fn try_start<U>(self, way: &Way<U>) -> Result<(U, About, Arc<Shared>), TryError> {
        let to = self.peer.look_up_one(self.shared.families)?;
        let (about, options) = (self.about(to), self.options());
        match (way.begin)(&self.shared.engine, to, self.message, options) {
            Ok(under) => Ok((under, about, self.shared)),
            Err(error) => Err(about.submit_error(error)),
        }
    }

    /// Starts it, after waiting for room if need be.
    fn start<U>(self, way: &Way<U>) -> Result<(U, About, Arc<Shared>), Error> {
        let to = self.peer.look_up_one(self.shared.families)?;
        let (about, options) = (self.about(to), self.options());
        let shared = self.shared;
        let mut begun = (way.begin)(&shared.engine, to, self.message, options);
        loop {
            let message = match begun {
                Ok(under) => return Ok((under, about, shared)),
                Err(error) => match about.submit_error(error) {
                    TryError::Full(message) => message,
                    TryError::Failed(error) => return Err(error),
                },
            };
            let mut reserve = shared.engine.reserve(message.len());
            let permit = match about.deadline {
                Some(deadline) => match reserve.wait_until(deadline.at) {
                    Some(permit) => permit,
                    None => return Err(about.deadline_exceeded()),
                },
                None => reserve.wait(),
            };
            let permit = permit.map_err(|cause| about.submit_cause(cause))?;
            begun = (way.begin_in)(permit, to, message, options);
        }
    }
}

const CALL: Way<homa_engine::Call> = Way {
    begin: |engine, to, message, options| engine.call(to, message, options),
    begin_in: |permit, to, message, options| permit.call(to, message, options),
};

const SEND: Way<homa_engine::OneWay> = Way {
    begin: |engine, to, message, options| engine.send(to, message, options),
    begin_in: |permit, to, message, options| permit.send(to, message, options),
};

macro_rules! way {
    (
        $(#[$intent_doc:meta])* $intent:ident,
        $(#[$pending_doc:meta])* $pending:ident,
        $way:ident, $under:ty, $output:ty, $not_waited:literal
    ) => {
        $(#[$intent_doc])*
        #[must_use = "nothing is sent until wait or start is called"]
        pub struct $intent(Intent);

        impl $intent {
            pub(super) fn new(shared: Arc<Shared>, peer: Address, message: Message) -> Self {
                Self(Intent::new(shared, peer, message))
            }

            /// Fails with [`Error::DeadlineExceeded`] after this time, counted
            /// from now; only the look-up of a host name is not cut short.
            pub fn deadline(mut self, time: Duration) -> Self {
                self.0.deadline = Deadline::after(time);
                self
            }

            /// Sends it, and waits for its end.
            ///
            /// # Errors
            ///
            /// See [`Error`].
            pub fn wait(self) -> Result<$output, Error> {
                self.start()?.wait()
            }

            /// Sends it, and returns; waits only while a limit on RPCs or bytes
            /// in flight is reached.
            ///
            /// # Errors
            ///
            /// What can be known before anything is sent.
            pub fn start(self) -> Result<$pending, Error> {
                let (under, about, shared) = self.0.start(&$way)?;
                Ok($pending { under, about, _shared: shared })
            }

            pub(super) fn try_start(self) -> Result<$pending, TryError> {
                let (under, about, shared) = self.0.try_start(&$way)?;
                Ok($pending { under, about, _shared: shared })
            }
        }

        impl fmt::Debug for $intent {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($intent))
                    .field("peer", &self.0.peer)
                    .field("message", &self.0.message)
                    .finish_non_exhaustive()
            }
        }

        $(#[$pending_doc])*
        #[must_use = $not_waited]
        pub struct $pending {
            under: $under,
            about: About,
            /// An endpoint lives while something of it is under way.
            _shared: Arc<Shared>,
        }

        impl $pending {
            /// Whom it goes to.
            pub fn peer(&self) -> SocketAddr {
                self.about.peer
            }

            /// Waits for its end.
            ///
            /// # Errors
            ///
            /// See [`Error`].
            pub fn wait(self) -> Result<$output, Error> {
                let about = self.about;
                self.under.wait().map_err(|error| about.call_error(error))
            }

            /// Waits for its end, but not for long; `None`: it goes on.
            pub fn wait_within(&mut self, time: Duration) -> Option<Result<$output, Error>> {
                self.wait_until(shared::after(time))
            }

            /// Waits for its end until then; `None`: it goes on.
            pub fn wait_until(&mut self, time: Instant) -> Option<Result<$output, Error>> {
                let about = self.about;
                let ended: Option<Result<$output, CallError>> = self.under.wait_until(time);
                ended.map(|result| result.map_err(|error| about.call_error(error)))
            }

            /// Ends it. The peer may have executed it all the same.
            pub fn cancel(self) {
                self.under.cancel();
            }
        }

        impl fmt::Debug for $pending {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($pending))
                    .field("peer", &self.about.peer)
                    .finish_non_exhaustive()
            }
        }
    };
}

way! {
    /// A call that has not started.
    Call,
    /// A call under way. Dropping it cancels it, and the server is told.
    Pending,
    CALL, homa_engine::Call, Message, "dropping it cancels the call"
}

way! {
    /// A one-way message that has not started.
    OneWay,
    /// A one-way message under way. Dropping it lets it go on.
    PendingOneWay,
    SEND, homa_engine::OneWay, (), "whether it was delivered is not known without waiting"
}
