//! Comparisons over loopback: the same requests for all, no favour for who is
//! first, and an end in the middle loses nothing.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed step of a test's set-up is a failed test"
)]

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::thread::JoinHandle;
use std::time::Duration;

use homa_bench::arrivals::Load;
use homa_bench::compare::{self, Comparison, Connect, Part, Plan};
use homa_bench::error::BenchError;
use homa_bench::homa::{self, Options};
use homa_bench::progress::{Interval, Progress, Silent};
use homa_bench::quantile::Quantile;
use homa_bench::report::Report;
use homa_bench::run::{Setup, Verify};
use homa_bench::stop::Stop;
use homa_bench::tcp::{self, Congestion};
use homa_bench::transport::Transport;
use homa_bench::workload::Workload;
use homa_datapath::{Faults, TapOptions};

const SPIN: Duration = Duration::from_micros(20);

/// An echo server for each protocol.
struct Servers {
    homa: SocketAddr,
    tcp: SocketAddr,
    stop: Stop,
    threads: Vec<JoinHandle<()>>,
}

impl Servers {
    fn start() -> Self {
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let stop = Stop::new();
        let (one, other) = (stop.clone(), stop.clone());
        let mut homa = homa::Server::bind(any, &Options::default()).unwrap();
        let mut tcp = tcp::Server::bind(any, &Congestion::System).unwrap();
        Self {
            homa: homa.local_address(),
            tcp: tcp.local_address().unwrap(),
            stop,
            threads: vec![
                std::thread::spawn(move || homa.run(SPIN, &one).unwrap()),
                std::thread::spawn(move || tcp.run(SPIN, &other).unwrap()),
            ],
        }
    }

    fn homa(&self) -> Connect<'static> {
        let address = self.homa;
        Box::new(move || {
            homa::Client::connect(&[address], Options::default())
                .map(|client| Box::new(client) as Box<dyn Transport>)
        })
    }

    fn tcp(&self) -> Connect<'static> {
        let address = self.tcp;
        Box::new(move || {
            tcp::Client::connect(&[address], tcp::DEFAULT_CONNECTIONS, Congestion::System)
                .map(|client| Box::new(client) as Box<dyn Transport>)
        })
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.stop.request();
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }
}

fn part(title: &str, workload: &str, load: Load, duration: Duration) -> Part {
    let workload = Workload::parse(workload).unwrap().clamped(8, 1_000_000);
    Part {
        title: title.into(),
        setup: Setup {
            warmup: Duration::from_millis(20),
            duration,
            spin: SPIN,
            silence: Duration::from_secs(20),
            drain: Duration::from_secs(10),
            verify: Verify::Bytes,
            interval: Duration::from_millis(100),
            ..Setup::new(workload, load)
        },
    }
}

fn one_at_a_time(duration: Duration) -> Part {
    let outstanding = NonZeroUsize::MIN;
    part("latency", "100", Load::Closed { outstanding }, duration)
}

fn plan(parts: Vec<Part>, rounds: u32) -> Plan {
    Plan {
        parts,
        rounds,
        command: Vec::new(),
    }
}

#[test]
fn compare__both_get_the_same_requests() {
    let servers = Servers::start();
    let half_a_second = Duration::from_millis(500);
    let load = Load::Open {
        rpcs_per_s: 1_000.0,
    };
    let plan = plan(
        vec![
            one_at_a_time(half_a_second),
            part("workload", "w2", load, half_a_second),
        ],
        2,
    );
    let mut transports = [servers.homa(), servers.tcp()];
    let found = compare::compare(&mut transports, &plan, &Stop::new(), &mut Silent).unwrap();
    let names: Vec<_> = found
        .reports
        .iter()
        .map(|report| (&report.title[..], report.setup.protocol))
        .collect();
    assert_eq!(
        names,
        [
            ("latency", "homa"),
            ("latency", "tcp"),
            ("workload", "homa"),
            ("workload", "tcp")
        ]
    );
    assert_eq!((found.end, found.rounds), ("complete", 2));
    let [.., homa, tcp] = &found.reports[..] else {
        panic!("four reports");
    };
    assert!(homa.totals.due > 300, "{:?}", homa.totals);
    assert_eq!(homa.totals.due, tcp.totals.due);
    assert!((homa.totals.measured_s - 0.5).abs() < 0.01);
    assert_eq!(lengths(homa), lengths(tcp));
    let table = compare::render(&found);
    for text in [
        "Latency: requests of 100 B, one at a time",
        "Workload w2: requests of",
        "TCP/Homa",
        "congestion control: ",
        "sent again",
        "Over loopback",
    ] {
        assert!(table.contains(text), "{text}: {table}");
    }
    let json: serde_json::Value = serde_json::from_str(&found.json()).unwrap();
    assert_eq!(json["schema"], "homa-bench-comparison");
    assert_eq!(json["reports"].as_array().unwrap().len(), 4);
}

/// How many RPCs of each length there were.
fn lengths(report: &Report) -> Vec<(u32, u64)> {
    report
        .digest
        .lengths
        .iter()
        .map(|row| (row.up_to_bytes, row.samples))
        .collect()
}

/// A comparison that favoured a place in the order would show it here. Noise
/// that spoils one attempt hardly spoils three in the same way.
#[test]
fn compare__a_protocol_beside_itself_is_its_equal() {
    let servers = Servers::start();
    let plan = plan(vec![one_at_a_time(Duration::from_millis(600))], 12);
    let mut ratios = Vec::new();
    for _ in 0..5 {
        let mut transports = [servers.homa(), servers.homa()];
        let found = compare::compare(&mut transports, &plan, &Stop::new(), &mut Silent).unwrap();
        let ratio = median_us(&found, 1) / median_us(&found, 0);
        if (0.8..1.25).contains(&ratio) {
            return;
        }
        ratios.push(ratio);
    }
    panic!("{ratios:?}");
}

fn median_us(found: &Comparison, index: usize) -> f64 {
    match found.reports[index].digest.all.latency_from_send_us.p50 {
        Quantile::Value(value) => value,
        other => panic!("{other:?}: {:?}", found.reports[index].totals),
    }
}

/// Asks to stop when the second transport has its turn.
struct StopsInSecondTurn(Stop);

impl Progress for StopsInSecondTurn {
    fn turn(&mut self, name: &str) {
        if name.starts_with("tcp") {
            self.0.request();
        }
    }

    fn interval(&mut self, _: &Interval) {}
}

#[test]
fn compare__interrupted_keeps_what_it_has() {
    let servers = Servers::start();
    let plan = plan(vec![one_at_a_time(Duration::from_secs(1))], 5);
    let stop = Stop::new();
    let mut progress = StopsInSecondTurn(stop.clone());
    let mut transports = [servers.homa(), servers.tcp()];
    let found = compare::compare(&mut transports, &plan, &stop, &mut progress).unwrap();
    assert_eq!((found.end, found.rounds), ("interrupted", 1));
    assert!(found.reports[0].totals.finished > 0);
    let table = compare::render(&found);
    assert!(table.contains("interrupted in round 1 of 5"), "{table}");
}

#[test]
fn compare__faults_on_one_side_are_said() {
    let servers = Servers::start();
    let address = servers.homa;
    let lossy: Connect<'_> = Box::new(move || {
        let faults = Faults {
            loss: 0.01,
            ..Faults::default()
        };
        let options = Options {
            tap: Some(TapOptions {
                seed: Some(1),
                transmit: faults.clone(),
                receive: faults,
                ..TapOptions::default()
            }),
            ..Options::default()
        };
        homa::Client::connect(&[address], options)
            .map(|client| Box::new(client) as Box<dyn Transport>)
    });
    let plan = plan(vec![one_at_a_time(Duration::from_millis(100))], 1);
    let mut transports = [lossy, servers.tcp()];
    let found = compare::compare(&mut transports, &plan, &Stop::new(), &mut Silent).unwrap();
    let table = compare::render(&found);
    assert!(table.contains("damaged on purpose"), "{table}");
}

#[test]
fn compare__a_failure_keeps_what_there_was_before() {
    let servers = Servers::start();
    let plan = plan(vec![one_at_a_time(Duration::from_millis(100))], 2);
    let mut transports: [Connect<'_>; 2] = [
        servers.homa(),
        Box::new(|| Err(BenchError::Transport("it went away".into()))),
    ];
    let found = compare::compare(&mut transports, &plan, &Stop::new(), &mut Silent).unwrap();
    assert_eq!(found.end, "failed");
    assert_eq!(found.error.as_deref(), Some("it went away"));
    assert!(found.reports[0].totals.finished > 0);
    assert!(compare::render(&found).contains("failed in round 1: it went away"));
    // Nothing measured: nothing to keep.
    transports.reverse();
    let error = compare::compare(&mut transports, &plan, &Stop::new(), &mut Silent).unwrap_err();
    assert_eq!(error.to_string(), "it went away");
}
