//! The calling side: calls and one-way messages.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::running::{CallWay, Running, SendWay};
use crate::shared::{Deadline, Shared};
use crate::{Address, Error, Message, TryError};

/// Makes calls: a cheap view of an [`Endpoint`](crate::Endpoint).
///
/// Clone it freely; all clones, and all servers of the endpoint, share its
/// socket, its limits and its grants.
#[derive(Clone)]
pub struct Client {
    pub(crate) shared: Arc<Shared>,
}

impl Client {
    /// Calls a server: sends it a request and waits for the reply.
    ///
    /// ```no_run
    /// # async fn example(client: homa::Client) -> Result<(), homa::Error> {
    /// use std::time::Duration;
    ///
    /// let reply = client
    ///     .call("kv.example:4000", "get x")
    ///     .deadline(Duration::from_millis(50))
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The request is executed at most once, whatever the network does. While a
    /// limit on RPCs or bytes in flight is reached, the call waits for its turn.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the call: the server is told, and sees it in
    /// [`Request::cancelled`](crate::Request::cancelled). It may have executed
    /// the request by then. Dropped before it was polled, nothing is sent.
    pub fn call(&self, peer: impl Into<Address>, message: impl Into<Message>) -> Call {
        Call {
            shared: self.shared.clone(),
            peer: peer.into(),
            message: message.into(),
            deadline: self.shared.default_deadline(),
        }
    }

    /// Sends a one-way message, which is done when the peer has it: there is no
    /// reply. It is delivered at most once.
    ///
    /// Only towards endpoints of this project; towards others it fails with
    /// [`Error::Unsupported`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future after its first poll lets the message go on, without
    /// anybody knowing whether it arrived. Before, nothing is sent.
    pub fn send(&self, peer: impl Into<Address>, message: impl Into<Message>) -> OneWay {
        OneWay {
            shared: self.shared.clone(),
            peer: peer.into(),
            message: message.into(),
            deadline: self.shared.default_deadline(),
        }
    }

    /// Like [`call`](Self::call), but sends now or not at all.
    ///
    /// # Errors
    ///
    /// [`TryError::Full`] has the message when a limit on RPCs or bytes in
    /// flight is reached: wait for [`ready`](Self::ready), or shed load.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future cancels the call, as that of [`call`](Self::call).
    /// The request has been sent by then.
    pub fn try_call(
        &self,
        peer: SocketAddr,
        message: impl Into<Message>,
    ) -> Result<CallFuture, TryError> {
        Running::start_now(&self.shared, peer, message.into()).map(CallFuture)
    }

    /// Like [`send`](Self::send), but sends now or not at all.
    ///
    /// # Errors
    ///
    /// As those of [`try_call`](Self::try_call).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future lets the message go on.
    pub fn try_send(
        &self,
        peer: SocketAddr,
        message: impl Into<Message>,
    ) -> Result<OneWayFuture, TryError> {
        Running::start_now(&self.shared, peer, message.into()).map(OneWayFuture)
    }

    /// Waits until a message of one byte would be let in. By the time of the
    /// next call others may have taken the place.
    ///
    /// # Errors
    ///
    /// [`Error::ShutDown`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives the place in the queue up, and nothing else.
    pub async fn ready(&self) -> Result<(), Error> {
        match self.shared.engine.reserve(1).await {
            Ok(_place_that_is_given_back) => Ok(()),
            Err(_) => Err(Error::ShutDown),
        }
    }
}

/// A call that has not started: await it, perhaps after a
/// [`deadline`](Self::deadline).
#[must_use = "a call does nothing until it is awaited"]
pub struct Call {
    shared: Arc<Shared>,
    peer: Address,
    message: Message,
    deadline: Option<Deadline>,
}

impl Call {
    /// Fails with [`Error::DeadlineExceeded`] after this time, counted from
    /// now, whatever the call is waiting for. The server is told.
    pub fn deadline(mut self, time: Duration) -> Self {
        self.deadline = Deadline::after(time);
        self
    }
}

impl IntoFuture for Call {
    type Output = Result<Message, Error>;
    type IntoFuture = CallFuture;

    fn into_future(self) -> CallFuture {
        CallFuture(Running::new(
            self.shared,
            self.peer,
            self.message,
            self.deadline,
        ))
    }
}

/// The reply to come. Dropping it cancels the call.
#[must_use = "dropping it cancels the call"]
pub struct CallFuture(Running<CallWay>);

impl Future for CallFuture {
    type Output = Result<Message, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.get_mut().0.poll(cx)
    }
}

/// A one-way message that has not started: await it, perhaps after a
/// [`deadline`](Self::deadline).
#[must_use = "nothing is sent until it is awaited"]
pub struct OneWay {
    shared: Arc<Shared>,
    peer: Address,
    message: Message,
    deadline: Option<Deadline>,
}

impl OneWay {
    /// Gives up after this time, counted from now.
    pub fn deadline(mut self, time: Duration) -> Self {
        self.deadline = Deadline::after(time);
        self
    }
}

impl IntoFuture for OneWay {
    type Output = Result<(), Error>;
    type IntoFuture = OneWayFuture;

    fn into_future(self) -> OneWayFuture {
        OneWayFuture(Running::new(
            self.shared,
            self.peer,
            self.message,
            self.deadline,
        ))
    }
}

/// The delivery to come. Dropping it lets the message go on.
#[must_use = "nothing is sent until it is awaited"]
pub struct OneWayFuture(Running<SendWay>);

impl Future for OneWayFuture {
    type Output = Result<(), Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.get_mut().0.poll(cx)
    }
}
