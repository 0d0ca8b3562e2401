//! Under load: runs repeat, nothing is lost without being counted, and what a
//! switch drops is sent again.
#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    non_snake_case,
    reason = "tests: set-ups are known to be good, and names are function__case"
)]

use homa_core::Config;
use homa_sim::homa::{Acquaintance, Homa, HomaSetup};
use homa_sim::packet::HostId;
use homa_sim::sigcomm18::{self, Conditions};
use homa_sim::slowdown::Slowdowns;
use homa_sim::time::SimTime;
use homa_sim::topology::{Buffer, Forwarding, Paths, Shape, Topology};
use homa_sim::traffic::Traffic;
use homa_sim::transport::{Pattern, Way};
use homa_sim::wire::WireSizes;
use homa_sim::world::{Observer, Record, World};
use homa_workload::Workload;

#[derive(Default)]
struct Sum {
    messages: u64,
    bytes: u64,
}

impl Observer for Sum {
    fn done(&mut self, record: &Record) {
        self.messages += 1;
        self.bytes += u64::from(record.bytes);
    }
}

/// Homa as it is configured by default for a 10 Gbit/s network, over IPv4.
fn as_in_life() -> HomaSetup {
    HomaSetup {
        config: Config {
            rtt_ns: Some(10_000),
            link_rate_bps: Some(10_000_000_000),
            max_rpcs: 16_384,
            max_peers: 64,
            ..Config::default()
        },
        payload_bytes: 1424,
        wire_sizes: WireSizes::Ipv4,
        acks: Way::Wire,
        acquaintance: Acquaintance::Strangers,
    }
}

fn small_topology() -> Topology {
    Topology {
        shape: Shape::LeafSpine {
            racks: 3,
            hosts_per_rack: 4,
            spines: 2,
        },
        ..sigcomm18::topology()
    }
}

fn run(topology: &Topology, setup: &HomaSetup, pattern: Pattern, seed: u64) -> World<Homa, Sum> {
    let settings = setup.config.settings().unwrap();
    let hosts = topology.hosts();
    let transports = (0..hosts)
        .map(|own| Homa::new(setup, &settings, seed, HostId(own), hosts))
        .collect();
    let traffic = Traffic {
        workload: Workload::parse("w3").unwrap().clamped(1, 200_000),
        payload_bps: 3e9,
        pattern,
    };
    let mut world =
        World::new(topology.clone(), transports, traffic, seed, Sum::default()).unwrap();
    world.run(SimTime::from_secs_f64(0.004));
    let until = world.now();
    world.quiet_from(until);
    // Long enough for losses to be noticed and mended, several times over.
    world.run(SimTime::from_secs_f64(0.4));
    world
}

#[test]
fn one_way__all_arrive_and_runs_repeat() {
    let hash = |seed| {
        let world = run(&small_topology(), &as_in_life(), Pattern::OneWay, seed);
        let counters = world.counters();
        assert!(counters.started > 1_000, "{counters:?}");
        assert_eq!(counters.done, counters.started, "{counters:?}");
        assert_eq!((counters.failed, counters.refused), (0, 0));
        assert_eq!(world.messages_under_way(), 0);
        assert_eq!(world.observer().messages, counters.done);
        world.trace_hash()
    };
    assert_eq!(hash(1), hash(1));
    assert_ne!(hash(1), hash(2));
}

#[test]
fn echo__all_are_answered() {
    for forwarding in [Forwarding::StoreAndForward, Forwarding::CutThrough] {
        let topology = Topology {
            forwarding,
            paths: Paths::Hash,
            ..small_topology()
        };
        let world = run(&topology, &as_in_life(), Pattern::Echo, 3);
        let counters = world.counters();
        assert_eq!(counters.done, counters.started, "{counters:?}");
        assert_eq!(counters.failed, 0);
    }
}

#[test]
fn drops__are_mended() {
    for buffer in [Buffer::PerPort(12_000), Buffer::Shared(20_000)] {
        let topology = Topology {
            buffer,
            ..small_topology()
        };
        let world = run(&topology, &as_in_life(), Pattern::OneWay, 4);
        let dropped = world.fabric().counters().dropped;
        assert!(dropped > 10, "{dropped}");
        let counters = world.counters();
        assert_eq!(counters.done, counters.started, "{buffer:?} {counters:?}");
        let resent: u64 = world
            .transports()
            .iter()
            .map(|homa| homa.endpoint().counters().retransmitted_bytes)
            .sum();
        assert!(resent > 0);
        let Buffer::PerPort(most) = buffer else {
            continue;
        };
        assert!(world.fabric().counters().most_waiting_bytes <= most);
    }
}

#[test]
fn marks__begin_where_they_are_told_to() {
    let marked = |above| {
        let topology = Topology {
            mark_above_bytes: Some(above),
            ..small_topology()
        };
        let world = run(&topology, &as_in_life(), Pattern::OneWay, 5);
        world.fabric().counters().marked
    };
    let (low, high) = (marked(3_000), marked(30_000));
    assert!(low > high, "{low} {high}");
    assert_eq!(marked(u64::MAX), 0);
}

#[test]
fn sigcomm18__short_messages_are_hardly_delayed() {
    let conditions = Conditions {
        workload: 3,
        load: 0.5,
        seed: 1,
        warm_up_s: 0.0002,
        // A class of sizes must have 1,000 messages to have a p99.
        measure_s: 0.005,
        drain_s: 0.01,
    };
    let mut outcome = sigcomm18::run(&conditions).unwrap();
    let classes = outcome.slowdowns.classes();
    let summary = Slowdowns::summary(&classes);
    assert!(summary.messages > 100_000, "{summary:?}");
    assert!((1.1..1.4).contains(&summary.mean), "{summary:?}");
    assert!((1.3..2.2).contains(&summary.p99_short_half), "{summary:?}");
    // The formula of 2018 counts fewer header bytes, never more.
    let known: Vec<f64> = classes
        .iter()
        .map(|class| class.p50)
        .filter(|p50| !p50.is_nan())
        .collect();
    assert!(known.len() > 10, "{}", known.len());
    assert!(known.iter().all(|p50| *p50 >= 1.0), "{known:?}");
    let short = Conditions {
        measure_s: 0.0003,
        ..conditions
    };
    let (one, again) = (
        sigcomm18::run(&short).unwrap(),
        sigcomm18::run(&short).unwrap(),
    );
    assert_eq!(one.trace_hash, again.trace_hash);
    assert_eq!(one.counters, again.counters);
    assert_ne!(one.trace_hash, outcome.trace_hash);
}

#[test]
fn run_seeds__the_same_traces_for_any_number_of_threads() {
    let conditions = Conditions {
        workload: 3,
        load: 0.8,
        seed: 1,
        warm_up_s: 0.0001,
        measure_s: 0.0003,
        drain_s: 0.0003,
    };
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let report = pool.install(|| sigcomm18::run_seeds(&conditions, &[1, 2, 3], |_| ()));
        report.unwrap()
    };
    let (one, three) = (with(1), with(3));
    let hashes: Vec<u64> = one.runs.iter().map(|run| run.trace_hash).collect();
    assert!(hashes[0] != hashes[1] && hashes[1] != hashes[2]);
    let again: Vec<u64> = three.runs.iter().map(|run| run.trace_hash).collect();
    assert_eq!(hashes, again);
    assert_eq!(one.trace_hash, three.trace_hash);
}
