//! Steps, and the town in which they happen.

mod state;
mod step;

pub(crate) use state::Town;
pub(crate) use step::{Arrival, Id, Step, steps};
