//! One host of a network that is compared under several protocols: a program
//! of one thread that serves, calls all others, and does what it is told
//! ([`talk`]) over its standard input and output.
//!
//! Client and server share the thread on purpose: hosts that are both are what
//! a datacenter has, and all protocols get the same number of threads. The
//! requests follow from the seed alone, so they are the same for each.

pub mod talk;

use std::io::{self, BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::arrivals::Load;
use crate::error::BenchError;
use crate::homa;
use crate::message::{Directive, MIN_REQUEST_BYTES, ResponseSize};
use crate::progress::Silent;
use crate::run::{self, End, Outcome, Setup};
use crate::stop::Stop;
use crate::tcp::{self, Congestion};
use crate::transport::{Outcome as CallOutcome, PeerIndex, Tag, Transport};
use crate::workload::Workload;
use talk::{Carrier, Measured, Order, Plan, Said};

/// How often an idle node looks for orders.
const ORDER_INTERVAL: Duration = Duration::from_millis(5);

/// Every peer must answer in this time.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);

/// RPCs outstanding at most: far above what a network that is not collapsing
/// holds. What must wait for it is late, and lateness is reported.
const CLIENT_MAX: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

/// Plays one host until the standard input ends.
pub fn run(stop: &Stop) -> Result<(), BenchError> {
    let result = play(stop);
    if let Err(error) = &result {
        // Whoever reads has gone, or will read why.
        let _ = say(&Said::Failed(error.to_string()));
    }
    result
}

fn play(stop: &Stop) -> Result<(), BenchError> {
    let mut input = BufReader::new(io::stdin());
    let mut line = String::new();
    input
        .read_line(&mut line)
        .map_err(BenchError::system("standard input"))?;
    let plan: Plan = serde_json::from_str(&line)
        .map_err(|error| BenchError::Transport(format!("not a plan: {error}")))?;
    let setup = setup(&plan)?;
    let orders = read_orders(input, stop.clone());
    let listening = Listening::bind(&plan)?;
    say(&Said::Listening)?;
    if !matches!(wait_for(&orders, stop), Some(Order::Connect)) {
        return Ok(());
    }
    let mut transport = listening.call(&plan.peers)?;
    greet(transport.as_mut(), stop)?;
    say(&Said::Ready {
        details: transport.details(),
    })?;
    let mut ended = Vec::new();
    while !stop.requested() {
        match orders.try_recv() {
            Ok(Order::Unloaded) => {
                let idle = Setup {
                    warmup: Duration::ZERO,
                    duration: Duration::ZERO,
                    unloaded_rpcs: plan.unloaded_rpcs,
                    ..setup.clone()
                };
                let outcome = run::run(transport.as_mut(), &idle, stop, &mut Silent)?;
                let points = outcome.unloaded.map(|unloaded| unloaded.points().to_vec());
                say(&Said::Unloaded(points.unwrap_or_default()))?;
            }
            Ok(Order::Load) => {
                let outcome = run::run(transport.as_mut(), &setup, stop, &mut Silent)?;
                say(&Said::Loaded(Box::new(measured(outcome)?)))?;
            }
            Ok(Order::Connect) | Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => break,
        }
        // Others may still need answers.
        transport.poll(&mut ended)?;
        ended.clear();
        transport.wait(Instant::now() + ORDER_INTERVAL)?;
    }
    Ok(())
}

/// Reads orders on a thread of its own, which sleeps while there are none. The
/// end of the input is a request to stop.
fn read_orders(input: BufReader<io::Stdin>, stop: Stop) -> Receiver<Order> {
    let (send, orders) = channel();
    thread::spawn(move || {
        for line in input.lines() {
            let Ok(order) = line.and_then(|line| Ok(serde_json::from_str(&line)?)) else {
                break;
            };
            if send.send(order).is_err() {
                break;
            }
        }
        stop.request();
    });
    orders
}

fn wait_for(orders: &Receiver<Order>, stop: &Stop) -> Option<Order> {
    while !stop.requested() {
        if let Ok(order) = orders.recv_timeout(ORDER_INTERVAL) {
            return Some(order);
        }
    }
    None
}

fn say(said: &Said) -> Result<(), BenchError> {
    let line = serde_json::to_string(said)
        .map_err(|error| BenchError::Transport(format!("cannot be said: {error}")))?;
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(BenchError::system("standard output"))
}

fn setup(plan: &Plan) -> Result<Setup, BenchError> {
    let sizes = Workload::parse(&plan.workload)
        .map_err(|error| BenchError::Transport(error.to_string()))?
        .clamped(MIN_REQUEST_BYTES, plan.max_message);
    let load = Load::Open {
        rpcs_per_s: plan.rpcs_per_s,
    };
    Ok(Setup {
        warmup: Duration::from_millis(plan.warmup_ms),
        duration: Duration::from_millis(plan.duration_ms),
        drain: Duration::from_millis(plan.drain_ms),
        seed: plan.seed,
        client_max: CLIENT_MAX,
        // The processors are shared by all hosts: none may spin.
        spin: Duration::ZERO,
        unloaded_rpcs: 0,
        ..Setup::new(sizes, load)
    })
}

/// A host that serves and does not call yet.
enum Listening {
    Homa(Box<homa::Listening>),
    Tcp(tcp::Listening, NonZeroUsize),
}

impl Listening {
    fn bind(plan: &Plan) -> Result<Self, BenchError> {
        Ok(match &plan.carrier {
            Carrier::Homa {
                raw,
                priorities,
                link_bps,
                rtt_us,
                buffer_bytes,
            } => {
                let mut options = homa::Options::default();
                if *raw {
                    options.carrier = homa::Carrier::Raw;
                }
                options.core.priorities = *priorities;
                options.core.link_rate_bps = Some(*link_bps);
                options.core.rtt_ns = Some(rtt_us * 1_000);
                options.core.switch_buffer_bytes = Some(*buffer_bytes);
                Self::Homa(Box::new(homa::Listening::bind(plan.listen, options)?))
            }
            Carrier::Tcp {
                connections,
                congestion,
                urgent_below,
            } => {
                let connections = NonZeroUsize::new(*connections).unwrap_or(NonZeroUsize::MIN);
                let urgent_below = (*urgent_below > 0).then_some(*urgent_below);
                let congestion = Congestion::Named(congestion.clone());
                Self::Tcp(
                    tcp::Listening::bind(plan.listen, congestion, urgent_below)?,
                    connections,
                )
            }
        })
    }

    fn call(self, peers: &[SocketAddr]) -> Result<Box<dyn Transport>, BenchError> {
        Ok(match self {
            Self::Homa(listening) => Box::new(listening.call(peers)?),
            Self::Tcp(listening, connections) => Box::new(listening.call(peers, connections)?),
        })
    }
}

/// One short RPC with each peer, while theirs are answered.
fn greet(transport: &mut dyn Transport, stop: &Stop) -> Result<(), BenchError> {
    let hello = Directive {
        response: ResponseSize::Echo,
        seed: 0,
    };
    let begin = Instant::now();
    let peers = transport.peers().to_vec();
    for peer in 0..peers.len() {
        let tag = Tag(u64::MAX - peer as u64);
        transport.submit(tag, PeerIndex(peer), hello.message(MIN_REQUEST_BYTES))?;
    }
    let mut missing: Vec<usize> = (0..peers.len()).collect();
    let mut ended = Vec::new();
    while !missing.is_empty() && !stop.requested() {
        transport.poll(&mut ended)?;
        for completion in ended.drain(..) {
            let peer = (u64::MAX - completion.tag.0) as usize;
            match completion.outcome {
                CallOutcome::Response(_) => missing.retain(|waiting| *waiting != peer),
                CallOutcome::Failed(_) => transport.submit(
                    completion.tag,
                    PeerIndex(peer),
                    hello.message(MIN_REQUEST_BYTES),
                )?,
            }
        }
        if let (Some(peer), true) = (missing.first(), begin.elapsed() > HELLO_TIMEOUT) {
            return Err(BenchError::Silent {
                peer: peers[*peer],
                protocol: transport.protocol(),
                waited: begin.elapsed(),
                traffic: transport.traffic(PeerIndex(*peer)),
            });
        }
        transport.wait(Instant::now() + ORDER_INTERVAL)?;
    }
    Ok(())
}

fn measured(outcome: Outcome) -> Result<Measured, BenchError> {
    if let End::Failed(error) = outcome.end {
        return Err(error);
    }
    let totals = outcome.totals;
    let recorder = &outcome.recorder;
    let unfinished = recorder.unfinished_by_size().clone();
    let finished_bytes: u64 = recorder.samples().map(|s| u64::from(s.size_bytes)).sum();
    let other_bytes: u64 = unfinished
        .iter()
        .map(|(size, count)| u64::from(*size) * count)
        .sum();
    Ok(Measured {
        samples: recorder
            .samples()
            .map(|sample| (sample.size_bytes, sample.waited_ns, sample.rtt_ns))
            .collect(),
        unfinished,
        failed: totals.failed,
        first_failure: totals.first_failure,
        goodput_bps: (totals.out_gbps + totals.in_gbps) * 1e9,
        // A response is as long as its request.
        offered_bps: 2.0 * 8.0 * (finished_bytes + other_bytes) as f64
            / totals.measured_s.max(1e-9),
        counters: outcome.counters,
    })
}
