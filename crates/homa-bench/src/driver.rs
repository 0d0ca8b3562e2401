//! Starts RPCs, spins or sleeps, and pairs completions with what was sent.
//!
//! Owns the RPCs outstanding. Shared by the measurement, the unloaded baseline
//! and ping, so that all three spin, time and verify alike.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use homa_engine::Message;

use crate::arrivals::Arrival;
use crate::error::BenchError;
use crate::message::{Directive, ResponseSize};
use crate::stop::STOP_LATENCY;
use crate::transport::{Completion, Found, Outcome, PeerIndex, Tag, Transport};

/// Whether the bytes of responses are compared; their length always is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verify {
    /// Only the length.
    Length,
    /// Every byte.
    Bytes,
}

/// How a driver treats messages and time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    pub(crate) response: ResponseSize,
    pub(crate) verify: Verify,
    /// Look for events without sleeping for this long after the last one.
    pub(crate) spin: Duration,
    /// Give up on servers if RPCs are outstanding and none ends for this long.
    pub(crate) silence: Duration,
}

/// An RPC that ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) arrival: Arrival,
    pub(crate) sent: Instant,
    pub(crate) at: Instant,
    pub(crate) result: Result<(), Trouble>,
}

/// What was wrong with an RPC; the texts are for the user.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// It ended without a response.
    Failed(String),
    /// The response was not what was asked for.
    Corrupt(String),
}

impl Trouble {
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Failed(text) => text,
            Self::Corrupt(text) => format!("the response was wrong: {text}"),
        }
    }
}

#[derive(Debug)]
struct Pending {
    arrival: Arrival,
    directive: Directive,
    sent: Instant,
}

pub(crate) struct Driver<'a> {
    transport: &'a mut dyn Transport,
    manner: Manner,
    outstanding: HashMap<Tag, Pending>,
    next_tag: u64,
    completions: Vec<Completion>,
    /// Last time there was something to do.
    busy_at: Instant,
    /// End of the last step, or of the sleep after it.
    stepped_at: Instant,
    /// Whether something started since.
    started: bool,
    /// All time with something to do.
    busy: Duration,
    /// Last time something ended, or the first start after there was nothing.
    heard_at: Instant,
    /// Since when RPCs have ended with failures only.
    failing_since: Option<Instant>,
}

impl<'a> Driver<'a> {
    pub(crate) fn new(transport: &'a mut dyn Transport, manner: Manner) -> Self {
        let now = Instant::now();
        Self {
            transport,
            manner,
            outstanding: HashMap::new(),
            next_tag: 1,
            completions: Vec::new(),
            busy_at: now,
            stepped_at: now,
            started: false,
            busy: Duration::ZERO,
            heard_at: now,
            failing_since: None,
        }
    }

    pub(crate) fn counters(&self) -> Vec<(String, u64)> {
        self.transport.counters()
    }

    pub(crate) fn outstanding(&self) -> usize {
        self.outstanding.len()
    }

    /// Time with something to do since it was made; neither sleep nor spinning.
    pub(crate) fn busy(&self) -> Duration {
        self.busy
    }

    /// Sends the request of `arrival` now.
    pub(crate) fn start(&mut self, arrival: Arrival) -> Result<(), BenchError> {
        let tag = Tag(self.next_tag);
        self.next_tag += 1;
        let directive = Directive {
            response: self.manner.response,
            seed: tag.0 as u32,
        };
        let request = directive.message(arrival.size_bytes);
        let sent = Instant::now();
        if self.outstanding.is_empty() {
            self.heard_at = sent;
        }
        self.outstanding.insert(
            tag,
            Pending {
                arrival,
                directive,
                sent,
            },
        );
        self.transport.submit(tag, arrival.peer, request)?;
        self.started = true;
        Ok(())
    }

    /// Looks for ends once, and sleeps if there was nothing for a while and
    /// nothing is due before `until`. Calls `ended` for each RPC that ended.
    pub(crate) fn step(
        &mut self,
        until: Instant,
        mut ended: impl FnMut(Ended),
    ) -> Result<(), BenchError> {
        let polled = self.transport.poll(&mut self.completions);
        let mut result = Ok(());
        let any = !self.completions.is_empty();
        for completion in self.completions.drain(..) {
            // An RPC that was given up may still end: that is no news.
            let Some(pending) = self.outstanding.remove(&completion.tag) else {
                continue;
            };
            let outcome = match completion.outcome {
                Outcome::Failed(reason) => {
                    let since = *self.failing_since.get_or_insert(completion.at);
                    let waited = completion.at.saturating_duration_since(since);
                    if waited >= self.manner.silence {
                        let peer = pending.arrival.peer;
                        result = Err(BenchError::Failing {
                            peer: self.transport.peers()[peer.0],
                            protocol: self.transport.protocol(),
                            traffic: self.transport.traffic(peer),
                            reason: reason.clone(),
                            waited,
                        });
                    }
                    Err(Trouble::Failed(reason))
                }
                Outcome::Response(response) => {
                    self.failing_since = None;
                    check(&self.manner, &pending, &response).map_err(Trouble::Corrupt)
                }
            };
            ended(Ended {
                arrival: pending.arrival,
                sent: pending.sent,
                at: completion.at,
                result: outcome,
            });
        }
        result?;
        let found = polled?;
        let now = Instant::now();
        let turn = now.duration_since(self.stepped_at);
        self.stepped_at = now;
        if any {
            self.heard_at = now;
        }
        if any || self.started || found == Found::Something {
            self.started = false;
            self.busy += turn;
            self.busy_at = now;
            return Ok(());
        }
        self.check_silence(now)?;
        // The last bit before something is due is spun too: a late wake-up
        // would be counted as latency.
        let sleep_until = until.checked_sub(self.manner.spin).unwrap_or(now);
        if now.duration_since(self.busy_at) >= self.manner.spin && sleep_until > now {
            self.transport.wait(sleep_until.min(now + STOP_LATENCY))?;
            self.stepped_at = Instant::now();
        } else {
            // Who has the answer may be waiting for this very processor.
            std::thread::yield_now();
        }
        Ok(())
    }

    fn check_silence(&self, now: Instant) -> Result<(), BenchError> {
        let waited = now.duration_since(self.heard_at);
        if waited < self.manner.silence || self.outstanding.is_empty() {
            return Ok(());
        }
        let oldest = self.outstanding.values().min_by_key(|pending| pending.sent);
        let index = oldest.map_or(PeerIndex(0), |pending| pending.arrival.peer);
        Err(BenchError::Silent {
            peer: self.transport.peers()[index.0],
            protocol: self.transport.protocol(),
            traffic: self.transport.traffic(index),
            waited,
        })
    }

    /// Gives up on everything outstanding and returns what that was.
    pub(crate) fn abandon(&mut self) -> Vec<Arrival> {
        if self.outstanding.is_empty() {
            return Vec::new();
        }
        self.transport.abandon_all();
        let mut pending: Vec<(Tag, Pending)> = self.outstanding.drain().collect();
        pending.sort_unstable_by_key(|(tag, _)| *tag);
        pending
            .into_iter()
            .map(|(_, pending)| pending.arrival)
            .collect()
    }
}

fn check(manner: &Manner, pending: &Pending, response: &Message) -> Result<(), String> {
    let request_bytes = pending.arrival.size_bytes;
    match manner.verify {
        Verify::Bytes => pending.directive.verify(request_bytes, response),
        Verify::Length => {
            let found = response.len();
            let wanted = manner.response.bytes_for(request_bytes);
            if found == wanted as usize {
                Ok(())
            } else {
                Err(format!("{found} B instead of {wanted} B"))
            }
        }
    }
}
