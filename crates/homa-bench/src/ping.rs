//! One RPC after another, each reported as it ends.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::arrivals::Arrival;
use crate::driver::{Driver, Manner, Verify};
use crate::error::BenchError;
use crate::message::ResponseSize;
use crate::quantile::{P99_SAMPLES, Quantile, quantile};
use crate::stop::Stop;
use crate::transport::{PeerIndex, Transport};

/// What to ping with.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Length of requests in bytes.
    pub size_bytes: u32,
    /// Length of responses.
    pub response: ResponseSize,
    /// RPCs to each server; without end if none.
    pub count: Option<u64>,
    /// From the start of one RPC to the start of the next.
    pub interval: Duration,
    /// An RPC that takes longer is lost.
    pub timeout: Duration,
    /// As in [`crate::run::Setup::spin`].
    pub spin: Duration,
    /// What is checked of responses.
    pub verify: Verify,
}

/// How one RPC went.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Counts from 1 for each server.
    pub sequence: u64,
    /// Which server.
    pub peer: PeerIndex,
    /// What came of it.
    pub outcome: AnswerOutcome,
}

/// What came of one RPC.
#[derive(Clone, Debug, PartialEq)]
pub enum AnswerOutcome {
    /// The response came after this time.
    Rtt(Duration),
    /// No response in time.
    Lost,
    /// The transport says why not.
    Failed(String),
}

/// All answers of one server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// RPCs started.
    pub sent: u64,
    /// Responses that came in time.
    pub answered: u64,
    /// Round trips, µs; nothing without answers.
    pub rtt_us: Option<RttSummary>,
}

/// Of the round trips, in µs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RttSummary {
    /// Shortest.
    pub min: f64,
    /// Mean.
    pub avg: f64,
    /// Median; lost RPCs are infinite here and in p99.
    pub p50: Quantile,
    /// Needs 100 RPCs.
    pub p99: Quantile,
    /// Longest of those that came.
    pub max: f64,
}

/// Pings every server in turn until the count is reached or `stop` requested.
/// The summaries are in the order of the servers; the error, if any, is why it
/// ended early.
pub fn ping(
    transport: &mut dyn Transport,
    setup: &Setup,
    stop: &Stop,
    report: &mut dyn FnMut(&Answer),
) -> (Vec<Summary>, Option<BenchError>) {
    let peers = transport.peers().len();
    let mut tallies = vec![Tally::default(); peers];
    let manner = Manner {
        response: setup.response,
        verify: setup.verify,
        spin: setup.spin,
        // The timeout of a single RPC decides here.
        silence: Duration::MAX,
    };
    let mut driver = Driver::new(transport, manner);
    let mut due = Instant::now();
    let mut error = None;
    'rounds: for sequence in 1..=setup.count.unwrap_or(u64::MAX) {
        for (index, tally) in tallies.iter_mut().enumerate() {
            if stop.requested() {
                break 'rounds;
            }
            let peer = PeerIndex(index);
            match one(&mut driver, setup, peer, stop) {
                // Stopped in the middle: neither answered nor lost.
                Ok(None) => break 'rounds,
                Ok(Some(outcome)) => {
                    tally.add(&outcome);
                    report(&Answer {
                        sequence,
                        peer,
                        outcome,
                    });
                }
                Err(failure) => {
                    tally.sent += 1;
                    error = Some(failure);
                    break 'rounds;
                }
            }
        }
        due = (due + setup.interval).max(Instant::now());
        if setup.count == Some(sequence) {
            break;
        }
        if let Err(failure) = pause(&mut driver, due, stop) {
            error = Some(failure);
            break;
        }
    }
    (tallies.into_iter().map(Tally::summary).collect(), error)
}

/// One RPC; nothing if stopped before its end.
fn one(
    driver: &mut Driver<'_>,
    setup: &Setup,
    peer: PeerIndex,
    stop: &Stop,
) -> Result<Option<AnswerOutcome>, BenchError> {
    let intended = Instant::now();
    let deadline = intended + setup.timeout;
    driver.start(Arrival {
        intended,
        size_bytes: setup.size_bytes,
        peer,
    })?;
    let mut outcome = None;
    loop {
        driver.step(deadline, |ended| {
            outcome = Some(match ended.result {
                Ok(()) => AnswerOutcome::Rtt(ended.at.saturating_duration_since(ended.sent)),
                Err(trouble) => AnswerOutcome::Failed(trouble.into_text()),
            });
        })?;
        if outcome.is_some() {
            return Ok(outcome);
        }
        if stop.requested() {
            return Ok(None);
        }
        if Instant::now() >= deadline {
            driver.abandon();
            return Ok(Some(AnswerOutcome::Lost));
        }
    }
}

/// Waits, and notices a server that goes away meanwhile.
fn pause(driver: &mut Driver<'_>, due: Instant, stop: &Stop) -> Result<(), BenchError> {
    while Instant::now() < due && !stop.requested() {
        driver.step(due, |_| {})?;
    }
    Ok(())
}

#[derive(Clone, Debug, Default)]
struct Tally {
    sent: u64,
    rtts_us: Vec<f64>,
}

impl Tally {
    fn add(&mut self, outcome: &AnswerOutcome) {
        self.sent += 1;
        if let AnswerOutcome::Rtt(rtt) = outcome {
            self.rtts_us.push(rtt.as_nanos() as f64 / 1e3);
        }
    }

    fn summary(mut self) -> Summary {
        let answered = self.rtts_us.len() as u64;
        let lost = self.sent - answered;
        let rtt_us = (answered > 0).then(|| RttSummary {
            min: self.rtts_us.iter().copied().fold(f64::INFINITY, f64::min),
            avg: self.rtts_us.iter().sum::<f64>() / answered as f64,
            max: self.rtts_us.iter().copied().fold(0.0, f64::max),
            p50: quantile(&mut self.rtts_us, lost, 0.5, 1),
            p99: quantile(&mut self.rtts_us, lost, 0.99, P99_SAMPLES),
        });
        Summary {
            sent: self.sent,
            answered,
            rtt_us,
        }
    }
}
