//! Calls of all lengths, over real sockets, across a link that loses,
//! duplicates, reorders and changes packets: each request is executed once, and
//! every byte of request and reply is the one that was sent.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(clippy::unwrap_used, reason = "helpers of tests may fail the test")]

mod common;

use common::calls::{Carrier, LONG, Outcome, Role, Server, call_all, count, open};
use common::{kernel_counter, pair, testbed};
use homa::Stats;
use homa_testbed::{Faults, Host, Network, Options, Testbed, Wire, WireCounters};

/// Lengths of requests and replies, and how many calls of each at once: short
/// ones of less than a packet, the last that fits one packet over UDP (IPv6,
/// IPv4), what is sent without grants, and the longest.
const CALLS: [(usize, usize); 7] = [
    (1, 100),
    (100, 100),
    (1_416, 60),
    (1_424, 60),
    (40_000, 16),
    (500_000, 3),
    (1_000_000, 3),
];

/// What one kind of trouble does, in the endpoints' eyes.
struct Seen {
    client: Stats,
    server: Stats,
    wire: WireCounters,
    /// Datagrams that the hosts' kernels found damaged.
    bad_checksums: u64,
}

impl Seen {
    fn both(&self, group: &str, name: &str) -> u64 {
        count(&self.client, group, name) + count(&self.server, group, name)
    }
}

/// Runs calls with these faults and looks at what both ends say.
fn run(
    testbed: &Testbed,
    carrier: Carrier,
    v6: bool,
    seed: u64,
    faults: Faults,
    calls: &[(usize, usize)],
) -> Seen {
    let [client_host, server_host] = pair(testbed);
    let before: u64 = testbed.hosts().iter().map(bad_checksums).sum();
    let wire = testbed.wire().unwrap();
    wire.set_faults(&Wire { seed, faults });
    let server = Server::start(server_host, carrier, LONG);
    let client = open(client_host, carrier, Role::Client, LONG);
    let to = if v6 {
        server_host.v6()
    } else {
        server_host.v4()
    };
    let mut outcome = Outcome::default();
    for (length, calls) in calls {
        call_all(&client, to, *length, *calls, &mut outcome);
    }
    let total: usize = calls.iter().map(|(_, calls)| calls).sum();
    assert_eq!(outcome.succeeded, total, "{:?}", outcome.failures);
    outcome.check_executions(&server.executed());
    let after: u64 = testbed.hosts().iter().map(bad_checksums).sum();
    Seen {
        client: client.stats(),
        server: server.endpoint.stats(),
        wire: wire.counters(),
        bad_checksums: after - before,
    }
}

/// UDP datagrams of both families that the host's kernel dropped because of
/// their checksum.
fn bad_checksums(host: &Host) -> u64 {
    kernel_counter(host, "Udp", "InCsumErrors") + kernel_counter(host, "Udp6", "InCsumErrors")
}

/// Both families, 1 % and 5 %.
fn each(test: &str, carrier: Carrier, faults: fn(f64) -> Faults, check: fn(&Seen, f64)) {
    let options = Options {
        network: Network::Wire(Wire::default()),
        ..Options::default()
    };
    let Some(testbed) = testbed(test, &options) else {
        return;
    };
    for v6 in [false, true] {
        for share in [0.01, 0.05] {
            let seed = 40 + u64::from(v6);
            let seen = run(&testbed, carrier, v6, seed, faults(share), &CALLS);
            assert_eq!(seen.wire.oversize, 0);
            check(&seen, share);
        }
    }
    testbed.verify().unwrap();
}

fn clean(test: &str, carrier: Carrier) {
    let options = Options {
        network: Network::Wire(Wire::default()),
        ..Options::default()
    };
    let Some(testbed) = testbed(test, &options) else {
        return;
    };
    for v6 in [false, true] {
        let seen = run(&testbed, carrier, v6, 1, Faults::default(), &CALLS);
        // Over 3 MB each way, most of it in full packets.
        assert!(seen.wire.frames > 4_000, "{:?}", seen.wire);
        assert_eq!(seen.both("core", "timeouts"), 0);
        assert_eq!(seen.bad_checksums, 0);
    }
}

#[test]
fn clean__udp() {
    clean("clean__udp", Carrier::Udp);
}

#[test]
fn clean__raw() {
    clean("clean__raw", Carrier::Raw);
}

fn loss(share: f64) -> Faults {
    Faults {
        loss: share,
        ..Faults::default()
    }
}

fn loss_is_seen(seen: &Seen, share: f64) {
    assert!(seen.wire.lost > 0, "{share}: {:?}", seen.wire);
    assert!(seen.both("core", "retransmitted_bytes") > 0, "{share}");
    assert!(seen.both("core", "holes_opened") > 0, "{share}");
}

#[test]
fn loss__udp() {
    each("loss__udp", Carrier::Udp, loss, loss_is_seen);
}

#[test]
fn loss__raw() {
    each("loss__raw", Carrier::Raw, loss, loss_is_seen);
}

fn duplication(share: f64) -> Faults {
    Faults {
        duplicate: share,
        ..Faults::default()
    }
}

fn duplication_is_seen(seen: &Seen, share: f64) {
    assert!(seen.wire.duplicated > 0, "{share}: {:?}", seen.wire);
    let received = seen.both("core", "duplicate_bytes") + seen.both("core", "packets_dropped");
    assert!(received > 0, "{share}: nobody saw a packet twice");
}

#[test]
fn duplication__udp() {
    each(
        "duplication__udp",
        Carrier::Udp,
        duplication,
        duplication_is_seen,
    );
}

#[test]
fn duplication__raw() {
    each(
        "duplication__raw",
        Carrier::Raw,
        duplication,
        duplication_is_seen,
    );
}

fn reordering(share: f64) -> Faults {
    Faults {
        reorder: share,
        ..Faults::default()
    }
}

fn reordering_is_seen(seen: &Seen, share: f64) {
    assert!(seen.wire.reordered > 0, "{share}: {:?}", seen.wire);
    assert!(seen.both("core", "holes_opened") > 0, "{share}");
}

#[test]
fn reordering__udp() {
    each(
        "reordering__udp",
        Carrier::Udp,
        reordering,
        reordering_is_seen,
    );
}

#[test]
fn reordering__raw() {
    each(
        "reordering__raw",
        Carrier::Raw,
        reordering,
        reordering_is_seen,
    );
}

fn corruption(share: f64) -> Faults {
    Faults {
        corrupt: share,
        ..Faults::default()
    }
}

#[test]
fn corruption__udp() {
    each(
        "corruption__udp",
        Carrier::Udp,
        corruption,
        |seen, share| {
            assert!(seen.wire.corrupted > 0, "{share}: {:?}", seen.wire);
            assert!(seen.bad_checksums > 0, "{share}: {:?}", seen.wire);
            assert!(seen.both("core", "retransmitted_bytes") > 0, "{share}");
        },
    );
}

#[test]
fn corruption__raw() {
    each(
        "corruption__raw",
        Carrier::Raw,
        corruption,
        |seen, share| {
            assert!(seen.wire.corrupted > 0, "{share}: {:?}", seen.wire);
            assert!(seen.both("engine", "packets_corrupt") > 0, "{share}");
            assert!(seen.both("core", "retransmitted_bytes") > 0, "{share}");
        },
    );
}

fn everything(share: f64) -> Faults {
    Faults {
        loss: share,
        duplicate: share,
        reorder: share,
        corrupt: share,
        ..Faults::default()
    }
}

#[test]
fn everything__udp() {
    each("everything__udp", Carrier::Udp, everything, loss_is_seen);
}

#[test]
fn everything__raw() {
    each("everything__raw", Carrier::Raw, everything, loss_is_seen);
}

/// Rounds with endpoints that know nothing of each other yet: most of what can
/// go wrong between two of them does so at their first packets.
const ROUNDS: u64 = 20;

fn short_calls(test: &str, carrier: Carrier) {
    let options = Options {
        network: Network::Wire(Wire::default()),
        ..Options::default()
    };
    let Some(testbed) = testbed(test, &options) else {
        return;
    };
    let mut lost = 0;
    for round in 0..ROUNDS {
        let calls = [(1, 100), (100, 100), (1_416, 60)];
        let faults = everything(0.05);
        let seen = run(&testbed, carrier, round % 2 == 1, round, faults, &calls);
        lost += seen.wire.lost;
    }
    assert!(lost > 500, "{lost}");
    testbed.verify().unwrap();
}

#[test]
fn short_calls__udp() {
    short_calls("short_calls__udp", Carrier::Udp);
}

#[test]
fn short_calls__raw() {
    short_calls("short_calls__raw", Carrier::Raw);
}
