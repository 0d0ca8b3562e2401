//! Looks after a driver outside.
//!
//! A task of an async runtime is only as punctual as the runtime: behind ten
//! thousand tasks that are ready, or one that computes for a second, it is
//! late, and an endpoint that neither grants nor answers for 100 ms looks dead
//! to its peers. So a thread looks every [`PATIENCE`] whether there was a turn.
//! If there was none it makes one. When nothing has happened for [`AWAKE`] it
//! sleeps on the descriptors, and an idle endpoint costs nothing.

use std::time::{Duration, Instant};

use crate::inner::Inner;
use crate::lead::NEVER;
use crate::sleep::{Woken, rest, sleep};
use crate::state::State;
use crate::turn::Trouble;

/// How long the driver outside may take: a RESEND interval, and a twentieth of
/// the silence after which peers give up.
const PATIENCE: Duration = Duration::from_millis(5);

/// How long after the last turn the thread goes on looking, so that calls
/// every now and then do not wake it each time.
const AWAKE: Duration = Duration::from_millis(100);

/// Turns that the thread makes in a row; the driver outside may be back.
const TURNS_IN_A_ROW: u32 = 16;

impl Inner {
    /// The thread's whole life.
    pub(crate) fn watch(&self) {
        let mut seen = self.turns();
        let mut active_at = Instant::now();
        while !self.is_stopped() {
            rest(&self.thread_alarm, Some(PATIENCE));
            let now = self.turns();
            if now != seen {
                seen = now;
                active_at = Instant::now();
                continue;
            }
            if self.stand_in() == Found::Something {
                active_at = Instant::now();
            } else if active_at.elapsed() > AWAKE {
                self.sleep_until_something_happens();
                active_at = Instant::now();
            }
            seen = self.turns();
        }
    }

    fn turns(&self) -> u64 {
        self.timelessly(|state| state.counters.turns)
    }

    /// Does what the driver outside has not done, if there is anything.
    fn stand_in(&self) -> Found {
        let mut trouble = Trouble::Likely;
        let mut found = Found::Nothing;
        for _ in 0..TURNS_IN_A_ROW {
            let late = self.quietly(|state, now| state.next_due(now).is_some_and(|at| at <= now));
            let done = self.turn(trouble);
            trouble = Trouble::Unknown;
            if late || done.received > 0 {
                found = Found::Something;
            }
            if !done.more {
                break;
            }
        }
        if found == Found::Something {
            self.timelessly(|state| state.counters.takeovers += 1);
        }
        found
    }

    /// Until a packet arrives, or a while after something was due.
    fn sleep_until_something_happens(&self) {
        let (now, due) = self.quietly(|state: &mut State, now| (now, state.next_due(now)));
        let timeout = due
            .filter(|due| *due < NEVER)
            .map(|due| Duration::from_nanos(due.since(now)).max(PATIENCE));
        let woken = sleep(&*self.datapath, &self.thread_alarm, None, timeout);
        if woken == Woken::Trouble {
            // It would end every sleep, and the one outside may not look.
            self.turn(Trouble::Likely);
        }
    }
}

/// Whether there was anything to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Something,
    Nothing,
}
