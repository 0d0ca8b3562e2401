//! The server's side: requests that are complete, their responses, and their
//! ends.

use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll, Waker};

use homa_core::{Kind, RpcHandle, Time};
use homa_wire::AbortCode;

use crate::listeners::{Port, Ticket};
use crate::outgoing::Outgoing;
use crate::rpcs::{Role, Service, ServiceStage};
use crate::state::{Life, State};
use crate::{ListenError, Message, RespondCause};

/// A request that an application takes.
pub(crate) struct Taken {
    pub(crate) rpc: RpcHandle,
    pub(crate) peer: SocketAddr,
    pub(crate) local: Option<IpAddr>,
    pub(crate) port: u16,
    pub(crate) kind: Kind,
    pub(crate) message: Message,
}

impl State {
    /// Whether a port may get a listener.
    pub(crate) fn may_listen(&self, port: u16) -> Result<(), ListenError> {
        if self.life != Life::Open {
            return Err(ListenError::ShutDown);
        }
        if self.listeners.contains(port) {
            return Err(ListenError::InUse { port });
        }
        Ok(())
    }

    pub(crate) fn listen(&mut self, number: u16, port: Port) -> Result<(), ListenError> {
        self.may_listen(number)?;
        self.listeners.insert(number, port);
        self.core.listen(number);
        Ok(())
    }

    /// A port's last listener is gone: what waits there is refused.
    pub(crate) fn unlisten(&mut self, now: Time, number: u16) {
        self.core.unlisten(number);
        let Some(port) = self.listeners.remove(number) else {
            return;
        };
        for rpc in port.queue {
            self.refuse(now, rpc, AbortCode::PortClosed);
        }
    }

    /// A request is complete.
    pub(crate) fn offer(&mut self, now: Time, rpc: RpcHandle, port: u16) {
        if self.life != Life::Open {
            self.counters.requests_shut_out += 1;
            self.refuse(now, rpc, AbortCode::ShuttingDown);
            return;
        }
        if self.listeners.waiting >= self.max_waiting_requests {
            self.counters.requests_refused += 1;
            self.refuse(now, rpc, AbortCode::Refused);
            return;
        }
        let Some(target) = self.listeners.get_mut(port) else {
            self.refuse(now, rpc, AbortCode::PortClosed);
            return;
        };
        if let Some(service) = self.rpcs.service_mut(rpc) {
            service.stage = ServiceStage::Queued;
            target.push(rpc, &mut self.wakes);
            self.listeners.waiting += 1;
        }
    }

    /// Ends a request that no application has.
    pub(crate) fn refuse(&mut self, now: Time, rpc: RpcHandle, code: AbortCode) {
        self.core.abort(now, rpc, code);
        self.clear(rpc);
    }

    /// The next request to a port, or a promise to wake; `None` after the end.
    pub(crate) fn poll_accept(
        &mut self,
        now: Time,
        number: u16,
        ticket: &mut Option<Ticket>,
        waker: &Waker,
    ) -> Poll<Option<Taken>> {
        if let Some(taken) = self.accept(now, number) {
            if let (Some(port), Some(ticket)) = (self.listeners.get_mut(number), ticket.take()) {
                port.served(ticket);
            }
            return Poll::Ready(Some(taken));
        }
        match self.listeners.get_mut(number) {
            Some(port) if self.life == Life::Open => {
                port.wait(ticket, waker);
                Poll::Pending
            }
            _ => Poll::Ready(None),
        }
    }

    /// The next request to a port.
    pub(crate) fn accept(&mut self, now: Time, number: u16) -> Option<Taken> {
        loop {
            let rpc = self.listeners.get_mut(number)?.queue.pop_front()?;
            self.listeners.waiting = self.listeners.waiting.saturating_sub(1);
            if let Some(taken) = self.take_request(now, rpc) {
                self.counters.requests_taken += 1;
                return Some(taken);
            }
        }
    }

    fn take_request(&mut self, now: Time, rpc: RpcHandle) -> Option<Taken> {
        let peer = self.rpcs.get(rpc)?.peer;
        let service = self.rpcs.service_mut(rpc)?;
        let (port, kind) = (service.port, service.kind);
        if service.stage != ServiceStage::Queued {
            return None;
        }
        service.stage = ServiceStage::InService;
        let path = self.peers.get(peer)?.path;
        let Some(message) = self.take_incoming(rpc) else {
            self.refuse(now, rpc, AbortCode::Dropped);
            return None;
        };
        self.core.taken(now, rpc);
        if kind == Kind::OneWay {
            self.clear(rpc);
        }
        Some(Taken {
            rpc,
            peer: path.remote,
            local: path.local,
            port,
            kind,
            message,
        })
    }

    /// The incoming message of an RPC, which is complete.
    pub(crate) fn take_incoming(&mut self, rpc: RpcHandle) -> Option<Message> {
        let entry = self.rpcs.get_mut(rpc)?;
        let (assembly, peer) = (entry.incoming.take()?, entry.peer);
        self.return_pages(peer, assembly.held() as u64);
        Some(assembly.finish())
    }

    pub(crate) fn respond(
        &mut self,
        now: Time,
        rpc: RpcHandle,
        message: &Message,
    ) -> Result<(), RespondCause> {
        if self.life == Life::Closed {
            return Err(RespondCause::ShutDown);
        }
        let most = self.core.settings().max_message_bytes;
        let entry = self.rpcs.get(rpc).ok_or(RespondCause::Gone)?;
        let peer = entry.peer;
        match &entry.role {
            Role::Client(_) => return Err(RespondCause::Gone),
            Role::Server(service) => match service.stage {
                ServiceStage::InService | ServiceStage::Cancelled => {}
                ServiceStage::Answered => return Err(RespondCause::Answered),
                ServiceStage::Arriving | ServiceStage::Queued => return Err(RespondCause::Gone),
            },
        }
        let length = u32::try_from(message.len())
            .ok()
            .filter(|length| *length <= most)
            .ok_or(RespondCause::TooLong { most })?;
        let bytes = u64::from(length);
        let holder = self.peers.get_mut(peer).ok_or(RespondCause::Gone)?;
        if !self.responses.take(&mut holder.response_bytes, bytes) {
            return Err(RespondCause::Full);
        }
        self.refresh_packet(now, peer);
        if let Err(error) = self.core.respond(now, rpc, length) {
            if let Some(holder) = self.peers.get_mut(peer) {
                self.responses.give_back(&mut holder.response_bytes, bytes);
            }
            return Err(self.not_answered(rpc, error));
        }
        if let Some(entry) = self.rpcs.get_mut(rpc) {
            entry.outgoing = Some(Outgoing::new(message));
        }
        if let Some(service) = self.rpcs.service_mut(rpc) {
            service.stage = ServiceStage::Answered;
            service.response_bytes = bytes;
            service.waker = None;
        }
        Ok(())
    }

    fn not_answered(&mut self, rpc: RpcHandle, error: homa_core::RespondError) -> RespondCause {
        use homa_core::RespondError;
        match error {
            RespondError::Empty => RespondCause::Empty,
            RespondError::TooLong { most } => RespondCause::TooLong { most },
            RespondError::Answered => RespondCause::Answered,
            // `Gone` and `NotInService`, and what a later core may add.
            _ => {
                self.counters.responses_unwanted += 1;
                self.clear(rpc);
                RespondCause::Gone
            }
        }
    }

    /// Ends a request that the application works on.
    pub(crate) fn abort(&mut self, now: Time, rpc: RpcHandle, code: AbortCode) {
        if let Some(service) = self.rpcs.service_mut(rpc)
            && service.is_in_service()
        {
            self.refuse(now, rpc, code);
        }
    }

    /// Ready when nobody waits for the response to a request any more.
    pub(crate) fn poll_cancelled(&mut self, rpc: RpcHandle, cx: &mut Context<'_>) -> Poll<()> {
        match self.rpcs.service_mut(rpc) {
            Some(service) if service.stage == ServiceStage::InService => {
                match &mut service.waker {
                    Some(known) => known.clone_from(cx.waker()),
                    none => *none = Some(cx.waker().clone()),
                }
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
    }
}

impl Service {
    pub(crate) fn is_in_service(&self) -> bool {
        matches!(
            self.stage,
            ServiceStage::InService | ServiceStage::Cancelled
        )
    }
}
