//! The whole harness over TCP on loopback: server thread, client here.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed step of a test's set-up is a failed test"
)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use homa_bench::arrivals::Load;
use homa_bench::error::BenchError;
use homa_bench::message::{Directive, ResponseSize};
use homa_bench::ping::{self, AnswerOutcome};
use homa_bench::progress::{Interval, Progress, Silent};
use homa_bench::quantile::Quantile;
use homa_bench::report::Report;
use homa_bench::run::{self, End, Setup, Verify};
use homa_bench::stop::Stop;
use homa_bench::tcp::{Client, Congestion, DEFAULT_CONNECTIONS, Server};
use homa_bench::transport::{ServerCounters, Transport};
use homa_bench::workload::Workload;

const SPIN: Duration = Duration::from_micros(20);

struct TestServer {
    address: SocketAddr,
    counters: Arc<ServerCounters>,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl TestServer {
    fn start() -> Self {
        let mut server = Server::bind("127.0.0.1:0".parse().unwrap(), &Congestion::System).unwrap();
        let stop = Stop::new();
        let (address, counters) = (server.local_address().unwrap(), server.counters());
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
    Client::connect(&addresses, DEFAULT_CONNECTIONS, Congestion::System).unwrap()
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
    assert_eq!((totals.unfinished, totals.failed), (0, 0));
    let served = servers
        .each_ref()
        .map(|server| server.counters.totals().requests);
    assert!(served[0] + served[1] >= totals.due);
    assert!(
        served.iter().all(|&count| count > 800),
        "uniform destinations: {served:?}"
    );
    assert_eq!(outcome.digest.all.samples, totals.due);
    let counted: u64 = outcome.digest.classes.iter().map(|row| row.samples).sum();
    assert_eq!(counted, totals.due);
    assert!(outcome.unloaded.is_some());
    assert!(outcome.digest.all.slowdown_unloaded.is_some());
}

#[test]
fn run__long_messages_both_ways_do_not_block_each_other() {
    let server = TestServer::start();
    // More in flight on two connections than all socket buffers hold.
    let mut client = Client::connect(
        &[server.address],
        NonZeroUsize::new(2).unwrap(),
        Congestion::System,
    )
    .unwrap();
    let mut setup = setup("1m", closed(24));
    setup.workload = Workload::fixed(8_000_000).unwrap();
    // All 24 are due in the window, however slow this build is.
    setup.warmup = Duration::ZERO;
    setup.drain = Duration::from_secs(30);
    let outcome = run::run(&mut client, &setup, &Stop::new(), &mut Silent).unwrap();
    assert!(matches!(outcome.end, End::Complete), "{:?}", outcome.end);
    assert!(outcome.totals.finished >= 24, "{:?}", outcome.totals);
    assert_eq!(outcome.totals.unfinished, 0);
}

#[test]
fn run__fixed_response_sizes() {
    let server = TestServer::start();
    for bytes in [1, 100_000] {
        let mut client = connect(&[&server]);
        let mut setup = setup("50", closed(4));
        setup.response = ResponseSize::Fixed(bytes);
        let before = server.counters.totals();
        let outcome = run::run(&mut client, &setup, &Stop::new(), &mut Silent).unwrap();
        assert!(matches!(outcome.end, End::Complete), "{:?}", outcome.end);
        let after = server.counters.totals();
        assert_eq!(
            after.response_bytes - before.response_bytes,
            (after.requests - before.requests) * u64::from(bytes)
        );
    }
}

#[test]
fn run__overload_is_infinite_and_said() {
    let server = TestServer::start();
    let mut client = connect(&[&server]);
    let mut setup = setup(
        "1m",
        Load::Open {
            rpcs_per_s: 200_000.0,
        },
    );
    setup.drain = Duration::from_millis(50);
    setup.unloaded_rpcs = 0;
    setup.client_max = NonZeroUsize::new(8).unwrap();
    let outcome = run::run(&mut client, &setup, &Stop::new(), &mut Silent).unwrap();
    let totals = outcome.totals.clone();
    assert!(totals.unfinished > totals.finished, "{totals:?}");
    assert!(totals.waited_for_client_max > 0);
    assert!((95_000..105_000).contains(&totals.due), "{totals:?}");
    assert_eq!(outcome.digest.all.latency_us.p99, Quantile::Infinite);
    let report = Report::new(&client, &setup, outcome, "", Vec::new());
    assert!(!report.is_complete());
    assert!(
        report.notes.iter().any(|note| note.starts_with("overload")),
        "{:?}",
        report.notes
    );
    let json: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
    assert_eq!(json["all"]["latency_us"]["p99"], "inf");
    assert_eq!(json["setup"]["protocol"], "tcp");
    assert!(report.table().contains("inf"));
}

#[derive(Default)]
struct StopAfter(u32, Stop);

impl Progress for StopAfter {
    fn interval(&mut self, _: &Interval) {
        self.0 = self.0.saturating_sub(1);
        if self.0 == 0 {
            self.1.request();
        }
    }
}

#[test]
fn run__interrupted_keeps_what_it_has() {
    let server = TestServer::start();
    let mut client = connect(&[&server]);
    let mut setup = setup("100", closed(2));
    setup.duration = Duration::from_secs(60);
    let stop = Stop::new();
    let start = Instant::now();
    let outcome = run::run(&mut client, &setup, &stop, &mut StopAfter(4, stop.clone())).unwrap();
    assert!(start.elapsed() < Duration::from_secs(20));
    assert!(matches!(outcome.end, End::Interrupted));
    assert!(outcome.totals.finished > 0 && outcome.totals.measured_s < 10.0);
    assert_eq!(outcome.totals.unfinished, 0);
}

struct Kill<'a>(&'a mut TestServer);

impl Progress for Kill<'_> {
    fn interval(&mut self, interval: &Interval) {
        if interval.at_s > 0.25 {
            self.0.stop();
        }
    }
}

#[test]
fn run__server_death_is_a_clear_error() {
    let mut server = TestServer::start();
    let mut client = connect(&[&server]);
    let mut setup = setup("100", closed(2));
    setup.duration = Duration::from_secs(60);
    let outcome = run::run(&mut client, &setup, &Stop::new(), &mut Kill(&mut server)).unwrap();
    let End::Failed(error) = outcome.end else {
        panic!("{:?}", outcome.end);
    };
    assert!(matches!(error, BenchError::PeerLost { .. }), "{error}");
    assert!(error.to_string().contains("did `homa server` stop there?"));
    assert!(outcome.totals.finished > 0);
    assert!(outcome.totals.unfinished > 0);
}

#[test]
fn connect__nobody_there() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = Client::connect(&[address], DEFAULT_CONNECTIONS, Congestion::System).unwrap_err();
    assert!(matches!(error, BenchError::Refused { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains("is `homa server --protocol tcp` running there")
    );
}

#[test]
fn connect__congestion_control_by_name() {
    let server = TestServer::start();
    let named = |name: &str| {
        Client::connect(
            &[server.address],
            DEFAULT_CONNECTIONS,
            Congestion::Named(name.into()),
        )
    };
    // Every kernel has reno.
    let client = named("reno").unwrap();
    assert!(
        client
            .details()
            .contains(&("congestion control".into(), "reno".into()))
    );
    let error = named("tortoise").unwrap_err().to_string();
    assert!(
        error.contains("`tortoise`") && error.contains("reno"),
        "{error}"
    );
}

#[test]
fn bind__port_taken() {
    let server = TestServer::start();
    let error = Server::bind(server.address, &Congestion::System).unwrap_err();
    assert!(matches!(error, BenchError::InUse { .. }), "{error}");
}

/// A service that is no Homa bench server: `answer` once, then silence.
fn other_service(answer: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 64];
        let _ = stream.read(&mut request);
        let _ = stream.write_all(answer);
        // Until the client goes.
        while matches!(stream.read(&mut request), Ok(1..)) {}
    });
    address
}

#[test]
fn run__another_service_on_the_port() {
    let address = other_service(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    let mut client = Client::connect(&[address], DEFAULT_CONNECTIONS, Congestion::System).unwrap();
    let setup = setup("100", closed(1));
    let error = run::run(&mut client, &setup, &Stop::new(), &mut Silent).unwrap_err();
    assert!(matches!(error, BenchError::NotOurServer { .. }), "{error}");
}

#[test]
fn run__a_silent_service() {
    let address = other_service(b"");
    let mut client = Client::connect(&[address], DEFAULT_CONNECTIONS, Congestion::System).unwrap();
    let mut setup = setup("100", closed(1));
    setup.silence = Duration::from_millis(300);
    let error = run::run(&mut client, &setup, &Stop::new(), &mut Silent).unwrap_err();
    assert!(matches!(error, BenchError::Silent { .. }), "{error}");
}

/// Echoes bytes as they come, the last one of each read changed.
fn corrupting_echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut bytes) {
            bytes[count - 1] ^= 0x80;
            let _ = stream.write_all(&bytes[..count]);
        }
    });
    address
}

#[test]
fn run__changed_bytes_are_noticed_if_asked() {
    for (verify, noticed) in [(Verify::Bytes, true), (Verify::Length, false)] {
        let mut client = Client::connect(
            &[corrupting_echo()],
            DEFAULT_CONNECTIONS,
            Congestion::System,
        )
        .unwrap();
        let mut setup = setup("100", closed(1));
        setup.verify = verify;
        let outcome = run::run(&mut client, &setup, &Stop::new(), &mut Silent).unwrap();
        assert!(matches!(outcome.end, End::Complete), "{:?}", outcome.end);
        let totals = &outcome.totals;
        assert_eq!(totals.corrupt, if noticed { totals.due } else { 0 });
        assert_eq!(totals.finished == 0, noticed, "{totals:?}");
        let reason = totals.first_failure.clone().unwrap_or_default();
        assert_eq!(reason.contains("byte 99 of 100"), noticed, "{reason}");
    }
}

#[test]
fn server__a_client_that_does_not_read_is_not_served_into_memory() {
    const REQUESTS: u64 = 500;
    const RESPONSE_BYTES: u32 = 1_000_000;
    let server = TestServer::start();
    let mut stream = TcpStream::connect(server.address).unwrap();
    let directive = Directive {
        response: ResponseSize::Fixed(RESPONSE_BYTES),
        seed: 0,
    };
    let mut requests = Vec::new();
    for id in 0..REQUESTS {
        requests.extend(b"HmB\x01");
        requests.extend(8_u32.to_be_bytes());
        requests.extend(id.to_be_bytes());
        requests.extend(directive.message(8));
    }
    stream.write_all(&requests).unwrap();
    std::thread::sleep(Duration::from_millis(400));
    // 32 in memory, and what socket buffers hold.
    let answered = server.counters.totals().requests;
    assert!((1..100).contains(&answered), "{answered}");
    let mut rest = vec![0; 1 << 20];
    let mut left = REQUESTS * u64::from(16 + RESPONSE_BYTES);
    while left > 0 {
        left -= stream.read(&mut rest).unwrap() as u64;
    }
    assert_eq!(server.counters.totals().requests, REQUESTS);
}

fn ping_setup(count: u64) -> ping::Setup {
    ping::Setup {
        size_bytes: 100,
        response: ResponseSize::Echo,
        count: Some(count),
        interval: Duration::from_millis(1),
        timeout: Duration::from_secs(5),
        spin: SPIN,
        verify: Verify::Bytes,
    }
}

#[test]
fn ping__answers_and_summary() {
    let server = TestServer::start();
    let mut client = connect(&[&server]);
    let mut sequences = Vec::new();
    let (summaries, error) =
        ping::ping(&mut client, &ping_setup(120), &Stop::new(), &mut |answer| {
            assert!(matches!(answer.outcome, AnswerOutcome::Rtt(_)));
            sequences.push(answer.sequence);
        });
    assert!(error.is_none());
    assert_eq!(sequences, (1..=120).collect::<Vec<_>>());
    assert_eq!((summaries[0].sent, summaries[0].answered), (120, 120));
    let rtt = summaries[0].rtt_us.unwrap();
    assert!(rtt.min <= rtt.avg && rtt.avg <= rtt.max);
    assert!(matches!(rtt.p99, Quantile::Value(p99) if p99 <= rtt.max));
}

#[test]
fn ping__no_answer_is_lost_and_the_next_has_a_new_connection() {
    let address = other_service(b"");
    let mut client = Client::connect(&[address], DEFAULT_CONNECTIONS, Congestion::System).unwrap();
    let mut setup = ping_setup(1);
    setup.timeout = Duration::from_millis(100);
    let mut outcomes = Vec::new();
    let (summaries, _) = ping::ping(&mut client, &setup, &Stop::new(), &mut |answer| {
        outcomes.push(answer.outcome.clone());
    });
    assert_eq!(outcomes, [AnswerOutcome::Lost]);
    assert_eq!((summaries[0].sent, summaries[0].answered), (1, 0));
    assert_eq!(client.peers(), [address]);
}
