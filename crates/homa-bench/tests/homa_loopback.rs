//! The whole harness over Homa on loopback: server thread, client here.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed step of a test's set-up is a failed test"
)]

use std::net::{SocketAddr, UdpSocket};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use homa_bench::arrivals::Load;
use homa_bench::error::BenchError;
use homa_bench::homa::{Client, Options, Server};
use homa_bench::message::ResponseSize;
use homa_bench::ping::{self, AnswerOutcome};
use homa_bench::progress::Silent;
use homa_bench::run::{self, End, Outcome, Setup, Verify};
use homa_bench::stop::Stop;
use homa_bench::transport::{ServerCounters, Transport};
use homa_bench::workload::Workload;
use homa_datapath::{Faults, TapOptions};

const SPIN: Duration = Duration::from_micros(20);

struct TestServer {
    address: SocketAddr,
    counters: Arc<ServerCounters>,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl TestServer {
    fn start() -> Self {
        Self::on("127.0.0.1:0", &Options::default())
    }

    fn on(address: &str, options: &Options) -> Self {
        let mut server = Server::bind(address.parse().unwrap(), options).unwrap();
        let stop = Stop::new();
        let (address, counters) = (server.local_address(), server.counters());
        let asked = stop.clone();
        let thread = std::thread::spawn(move || server.run(SPIN, &asked).unwrap());
        Self {
            address,
            counters,
            stop,
            thread: Some(thread),
        }
    }

    fn stop(&mut self) {
        self.stop.request();
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn setup(workload: &str, load: Load) -> Setup {
    let workload = Workload::parse(workload).unwrap().clamped(8, 1_000_000);
    Setup {
        warmup: Duration::from_millis(100),
        duration: Duration::from_millis(500),
        spin: SPIN,
        silence: Duration::from_secs(20),
        drain: Duration::from_secs(10),
        verify: Verify::Bytes,
        unloaded_rpcs: 5,
        interval: Duration::from_millis(100),
        ..Setup::new(workload, load)
    }
}

fn closed(outstanding: usize) -> Load {
    Load::Closed {
        outstanding: NonZeroUsize::new(outstanding).unwrap(),
    }
}

fn connect(servers: &[&TestServer]) -> Client {
    let addresses: Vec<SocketAddr> = servers.iter().map(|server| server.address).collect();
    Client::connect(&addresses, Options::default()).unwrap()
}

fn with_faults(faults: Faults) -> Options {
    Options {
        tap: Some(TapOptions {
            seed: Some(7),
            transmit: faults.clone(),
            receive: faults,
            ..TapOptions::default()
        }),
        ..Options::default()
    }
}

fn counter(outcome: &Outcome, name: &str) -> u64 {
    let found = outcome.counters.iter().find(|(known, _)| known == name);
    found.unwrap_or_else(|| panic!("no counter {name}")).1
}

#[test]
fn run__open_loop_counts_agree_with_the_server() {
    let servers = [TestServer::start(), TestServer::start()];
    let mut client = connect(&[&servers[0], &servers[1]]);
    let setup = setup(
        "w2",
        Load::Open {
            rpcs_per_s: 4_000.0,
        },
    );
    let outcome = run::run(&mut client, &setup, &Stop::new(), &mut Silent).unwrap();
    assert!(matches!(outcome.end, End::Complete), "{:?}", outcome.end);
    let totals = &outcome.totals;
    // 2000 expected; five standard deviations are 224.
    assert!((1_776..2_224).contains(&totals.due), "{totals:?}");
    assert_eq!((totals.unfinished, totals.failed), (0, 0), "{totals:?}");
    let served = servers
        .each_ref()
        .map(|server| server.counters.totals().requests);
    assert!(served[0] + served[1] >= totals.due);
    assert!(
        served.iter().all(|&count| count > 800),
        "uniform destinations: {served:?}"
    );
    assert!(outcome.digest.all.slowdown_unloaded.is_some());
    // Counted under load: warm-up included, the baseline not.
    let started = counter(&outcome, "core.requests_started");
    assert!(started >= totals.due && started < totals.due + 800);
    assert!(counter(&outcome, "datapath.tx_packets") >= started);
}

#[test]
fn run__long_messages_both_ways() {
    let server = TestServer::start();
    let mut client = connect(&[&server]);
    let mut setup = setup("1m", closed(24));
    setup.workload = Workload::fixed(8_000_000).unwrap();
    // All 24 are due in the window, however slow this build is.
    setup.warmup = Duration::ZERO;
    setup.drain = Duration::from_secs(30);
    let outcome = run::run(&mut client, &setup, &Stop::new(), &mut Silent).unwrap();
    assert!(matches!(outcome.end, End::Complete), "{:?}", outcome.end);
    assert!(outcome.totals.finished >= 24, "{:?}", outcome.totals);
    assert_eq!(outcome.totals.unfinished, 0, "{:?}", outcome.totals);
}

#[test]
fn run__fixed_response_sizes_over_ipv6() {
    let server = TestServer::on("[::1]:0", &Options::default());
    for bytes in [1, 100_000] {
        let mut client = connect(&[&server]);
        let mut setup = setup("50", closed(4));
        setup.response = ResponseSize::Fixed(bytes);
        setup.unloaded_rpcs = 0;
        let before = server.counters.totals();
        let outcome = run::run(&mut client, &setup, &Stop::new(), &mut Silent).unwrap();
        drop(client);
        let after = server.counters.totals();
        assert_eq!(outcome.totals.unfinished, 0, "{:?}", outcome.totals);
        let requests = after.requests - before.requests;
        assert!(requests > 10);
        assert_eq!(
            after.response_bytes - before.response_bytes,
            requests * u64::from(bytes)
        );
    }
}

#[test]
fn run__any_address_serves_both_families() {
    let server = TestServer::on("[::]:0", &Options::default());
    let port = server.address.port();
    let addresses = [
        SocketAddr::from(([127, 0, 0, 1], port)),
        SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 1], port)),
    ];
    let mut client = Client::connect(&addresses, Options::default()).unwrap();
    let setup = setup("100", closed(2));
    let outcome = run::run(&mut client, &setup, &Stop::new(), &mut Silent).unwrap();
    assert!(outcome.totals.finished > 10, "{:?}", outcome.totals);
    assert_eq!(outcome.totals.unfinished, 0);
}

#[test]
fn run__lost_packets_cost_time_and_no_rpc() {
    let server = TestServer::start();
    let options = with_faults(Faults {
        loss: 0.02,
        duplicate: 0.02,
        reorder: 0.02,
        ..Faults::default()
    });
    let mut client = Client::connect(&[server.address], options).unwrap();
    let mut setup = setup("20000", closed(8));
    setup.unloaded_rpcs = 0;
    let outcome = run::run(&mut client, &setup, &Stop::new(), &mut Silent).unwrap();
    assert!(matches!(outcome.end, End::Complete), "{:?}", outcome.end);
    let totals = &outcome.totals;
    assert!(totals.finished > 20, "{totals:?}");
    assert_eq!(totals.unfinished, 0, "{totals:?}");
    assert!(counter(&outcome, "datapath.tap_rx_lost") > 0);
    assert!(counter(&outcome, "core.packets_sent.RESEND") > 0);
}

#[test]
fn run__changed_bytes_are_noticed_and_counted() {
    let server = TestServer::start();
    // Above UDP's checksum, so that nobody but --verify can tell.
    let options = with_faults(Faults {
        corrupt: 0.02,
        ..Faults::default()
    });
    let mut client = Client::connect(&[server.address], options).unwrap();
    let mut setup = setup("1200", closed(4));
    setup.unloaded_rpcs = 0;
    setup.drain = Duration::from_secs(2);
    let outcome = run::run(&mut client, &setup, &Stop::new(), &mut Silent).unwrap();
    assert!(matches!(outcome.end, End::Complete), "{:?}", outcome.end);
    let totals = &outcome.totals;
    assert!(totals.corrupt > 0 && totals.finished > 0, "{totals:?}");
    assert!(totals.corrupt < totals.finished, "{totals:?}");
}

#[test]
fn run__a_server_that_goes_ends_the_run_and_keeps_what_was_measured() {
    let mut server = TestServer::start();
    let mut client = connect(&[&server]);
    let mut setup = setup("100", closed(4));
    setup.unloaded_rpcs = 0;
    setup.duration = Duration::from_secs(30);
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(400));
        server.stop();
    });
    let begin = Instant::now();
    let outcome = run::run(&mut client, &setup, &Stop::new(), &mut Silent).unwrap();
    assert!(begin.elapsed() < Duration::from_secs(10));
    stopper.join().unwrap();
    let End::Failed(error) = &outcome.end else {
        panic!("{:?}", outcome.end);
    };
    assert!(matches!(error, BenchError::PeerLost { .. }), "{error}");
    assert!(outcome.totals.finished > 10);
}

#[test]
fn run__nothing_but_failures_end_it() {
    let server = TestServer::start();
    let mut client = connect(&[&server]);
    let mut setup = setup("100", closed(2));
    setup.unloaded_rpcs = 0;
    setup.duration = Duration::from_secs(30);
    setup.silence = Duration::from_millis(400);
    // A server that takes requests and never answers, at the same port.
    let address = server.address;
    drop(server);
    let silent = UdpSocket::bind(address).unwrap();
    let begin = Instant::now();
    let outcome = run::run(&mut client, &setup, &Stop::new(), &mut Silent).unwrap();
    drop(silent);
    assert!(begin.elapsed() < Duration::from_secs(10));
    let End::Failed(error) = &outcome.end else {
        panic!("{:?}", outcome.end);
    };
    let text = error.to_string();
    assert!(
        text.contains(&format!("UDP port {}", address.port())),
        "{text}"
    );
}

#[test]
fn connect__a_closed_port_is_refused_at_once() {
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let begin = Instant::now();
    let Err(error) = Client::connect(&[address], Options::default()) else {
        panic!("nobody is there");
    };
    assert!(begin.elapsed() < Duration::from_millis(500));
    assert!(matches!(error, BenchError::Refused { .. }), "{error}");
}

#[test]
fn connect__a_silent_port_says_what_to_check() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let Err(error) = Client::connect(&[address], Options::default()) else {
        panic!("nobody is there");
    };
    let text = error.to_string();
    let expected = format!("firewall drop UDP port {}", address.port());
    assert!(text.contains(&expected), "{text}");
}

#[test]
fn bind__a_port_in_use_is_told() {
    let server = TestServer::start();
    let Err(error) = Server::bind(server.address, &Options::default()) else {
        panic!("the port is taken");
    };
    assert!(matches!(error, BenchError::InUse { .. }), "{error}");
}

#[test]
fn ping__answers_losses_and_idle_pauses() {
    let mut server = TestServer::start();
    let mut client = connect(&[&server]);
    let mut setup = ping::Setup {
        size_bytes: 100,
        response: ResponseSize::Echo,
        count: Some(3),
        interval: Duration::from_millis(30),
        timeout: Duration::from_millis(300),
        spin: Duration::ZERO,
        verify: Verify::Bytes,
    };
    let stop = Stop::new();
    let (summaries, error) = ping::ping(&mut client, &setup, &stop, &mut |answer| {
        assert!(
            matches!(answer.outcome, AnswerOutcome::Rtt(_)),
            "{answer:?}"
        );
    });
    assert!(error.is_none());
    assert_eq!((summaries[0].sent, summaries[0].answered), (3, 3));
    let address = server.address;
    server.stop();
    drop(server);
    let _silent = UdpSocket::bind(address).unwrap();
    setup.count = Some(1);
    let (summaries, _) = ping::ping(&mut client, &setup, &stop, &mut |_| {});
    assert_eq!((summaries[0].sent, summaries[0].answered), (1, 0));
}

#[test]
fn wait__sleeps_while_nothing_happens_and_wakes_in_time() {
    let server = TestServer::start();
    let mut client = connect(&[&server]);
    let mut completions = Vec::new();
    // Acknowledgements of the greeting.
    std::thread::sleep(Duration::from_millis(20));
    let begin = Instant::now();
    let used = homa_bench::host::process_cpu_time().unwrap();
    let mut turns = 0;
    while begin.elapsed() < Duration::from_millis(300) {
        client.poll(&mut completions).unwrap();
        client.wait(begin + Duration::from_millis(300)).unwrap();
        turns += 1;
    }
    assert!(begin.elapsed() < Duration::from_millis(350));
    assert!(turns < 1_000, "{turns} turns without anything to do");
    let _ = used;
}
