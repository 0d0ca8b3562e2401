//! Ports with an application behind them: the complete requests that wait to
//! be taken, and the tasks and threads that wait for one.
//!
//! Each request wakes one waiter. A waiter that was woken and goes away
//! without taking anything wakes the next.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::task::Waker;

use homa_core::RpcHandle;
use homa_datapath::PortReservation;

/// A place among the waiters of a port.
pub(crate) type Ticket = u64;

#[derive(Default)]
pub(crate) struct Port {
    pub(crate) queue: VecDeque<RpcHandle>,
    next_ticket: Ticket,
    waiting: BTreeMap<Ticket, Waker>,
    woken: BTreeSet<Ticket>,
    /// Keeps others from the port where the datapath does not.
    _reservation: Option<PortReservation>,
}

impl Port {
    pub(crate) fn new(reservation: Option<PortReservation>) -> Self {
        Self {
            _reservation: reservation,
            ..Self::default()
        }
    }

    /// A request came.
    pub(crate) fn push(&mut self, rpc: RpcHandle, wakes: &mut Vec<Waker>) {
        self.queue.push_back(rpc);
        self.wake_one(wakes);
    }

    fn wake_one(&mut self, wakes: &mut Vec<Waker>) {
        if let Some((ticket, waker)) = self.waiting.pop_first() {
            self.woken.insert(ticket);
            wakes.push(waker);
        }
    }

    /// Waits for a request; called when the queue is empty.
    pub(crate) fn wait(&mut self, ticket: &mut Option<Ticket>, waker: &Waker) {
        let place = *ticket.get_or_insert_with(|| {
            self.next_ticket += 1;
            self.next_ticket
        });
        self.woken.remove(&place);
        self.waiting
            .entry(place)
            .and_modify(|known| known.clone_from(waker))
            .or_insert_with(|| waker.clone());
    }

    /// A waiter has taken a request.
    pub(crate) fn served(&mut self, ticket: Ticket) {
        self.waiting.remove(&ticket);
        self.woken.remove(&ticket);
    }

    /// A waiter goes away.
    pub(crate) fn leave(&mut self, ticket: Ticket, wakes: &mut Vec<Waker>) {
        self.waiting.remove(&ticket);
        if self.woken.remove(&ticket) && !self.queue.is_empty() {
            self.wake_one(wakes);
        }
    }

    fn wake_all(&mut self, wakes: &mut Vec<Waker>) {
        wakes.extend(std::mem::take(&mut self.waiting).into_values());
    }
}

#[derive(Default)]
pub(crate) struct Listeners {
    ports: HashMap<u16, Port>,
    /// Requests in all queues.
    pub(crate) waiting: u32,
}

impl Listeners {
    pub(crate) fn contains(&self, port: u16) -> bool {
        self.ports.contains_key(&port)
    }

    pub(crate) fn get_mut(&mut self, port: u16) -> Option<&mut Port> {
        self.ports.get_mut(&port)
    }

    pub(crate) fn insert(&mut self, number: u16, port: Port) {
        self.ports.insert(number, port);
    }

    pub(crate) fn remove(&mut self, number: u16) -> Option<Port> {
        let port = self.ports.remove(&number)?;
        self.waiting = self.waiting.saturating_sub(port.queue.len() as u32);
        Some(port)
    }

    /// Takes all requests out of the queues.
    pub(crate) fn drain(&mut self) -> Vec<RpcHandle> {
        self.waiting = 0;
        let mut numbers: Vec<_> = self.ports.keys().copied().collect();
        numbers.sort_unstable();
        let mut taken = Vec::new();
        for number in numbers {
            if let Some(port) = self.ports.get_mut(&number) {
                taken.extend(port.queue.drain(..));
            }
        }
        taken
    }

    pub(crate) fn wake_all(&mut self, wakes: &mut Vec<Waker>) {
        let mut numbers: Vec<_> = self.ports.keys().copied().collect();
        numbers.sort_unstable();
        for number in numbers {
            if let Some(port) = self.ports.get_mut(&number) {
                port.wake_all(wakes);
            }
        }
    }
}
