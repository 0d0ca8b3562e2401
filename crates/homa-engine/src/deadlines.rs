//! When calls must be over. Costs a step when a deadline is set, removed or
//! passed, and nothing in between.

use std::collections::BTreeSet;

use homa_core::Time;

use crate::calls::CallKey;

#[derive(Default)]
pub(crate) struct Deadlines {
    order: BTreeSet<(Time, CallKey)>,
}

impl Deadlines {
    pub(crate) fn set(&mut self, at: Time, call: CallKey) {
        self.order.insert((at, call));
    }

    pub(crate) fn remove(&mut self, at: Time, call: CallKey) {
        self.order.remove(&(at, call));
    }

    /// The first one.
    pub(crate) fn next(&self) -> Option<Time> {
        self.order.first().map(|(at, _)| *at)
    }

    /// Takes out one that has passed.
    pub(crate) fn pop(&mut self, now: Time) -> Option<CallKey> {
        let (at, call) = *self.order.first()?;
        (at <= now).then(|| {
            self.order.pop_first();
            call
        })
    }
}
