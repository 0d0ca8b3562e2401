//! In an idle network every message takes exactly the time that the formula
//! says, to the picosecond: links, switches, software, and grants that come
//! early enough.
#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    non_snake_case,
    reason = "tests: set-ups are known to be good, and names are function__case"
)]

use homa_sim::homa::{Homa, HomaSetup};
use homa_sim::ideal::Ideal;
use homa_sim::packet::HostId;
use homa_sim::sigcomm18;
use homa_sim::time::SimTime;
use homa_sim::topology::{Forwarding, Paths, Shape, Topology};
use homa_sim::traffic::Traffic;
use homa_sim::transport::Pattern;
use homa_sim::wire::WireSizes;
use homa_sim::world::{Observer, Record, World};
use homa_workload::Workload;

#[derive(Default)]
struct Log(Vec<Record>);

impl Observer for Log {
    fn done(&mut self, record: &Record) {
        self.0.push(*record);
    }
}

fn setup() -> HomaSetup {
    let mut setup = sigcomm18::setup(&Workload::fixed(3_000_000).unwrap(), 4);
    setup.config.max_rpcs = 64;
    setup
}

fn quiet_world(topology: &Topology, setup: &HomaSetup) -> World<Homa, Log> {
    let settings = setup.config.settings().unwrap();
    let hosts = topology.hosts();
    let transports = (0..hosts)
        .map(|own| Homa::new(setup, &settings, 1, HostId(own), hosts))
        .collect();
    let traffic = Traffic {
        workload: Workload::fixed(1).unwrap(),
        payload_bps: 0.0,
        pattern: Pattern::OneWay,
    };
    World::new(topology.clone(), transports, traffic, 1, Log::default()).unwrap()
}

/// Picoseconds for one message at a time, from host 0.
fn times_alone(topology: &Topology, to: u16) -> Vec<u64> {
    let mut world = quiet_world(topology, &setup());
    for bytes in SIZES {
        let next = world.now() + 5_000_000_000;
        world.send(HostId(0), HostId(to), bytes, Pattern::OneWay);
        world.run(next);
        assert_eq!(world.messages_under_way(), 0);
    }
    let records = &world.observer().0;
    assert_eq!(records.len(), SIZES.len());
    records
        .iter()
        .map(|record| record.done.since(record.started))
        .collect()
}

const SIZES: [u32; 12] = [
    1, 17, 18, 500, 1442, 1443, 2884, 9328, 9329, 10_771, 30_000, 3_000_000,
];

fn exact() -> Ideal {
    Ideal::Exact {
        wire_sizes: WireSizes::Sigcomm18,
        payload_bytes: sigcomm18::PAYLOAD_BYTES,
        unscheduled_bytes: sigcomm18::UNSCHEDULED_BYTES,
    }
}

fn check(topology: &Topology) {
    for to in [1, 100] {
        for (bytes, found) in SIZES.into_iter().zip(times_alone(topology, to)) {
            let expected = exact().ps(topology, HostId(0), HostId(to), bytes);
            assert_eq!(found, expected, "{bytes} bytes to host {to}");
        }
    }
}

fn one_path() -> Topology {
    Topology {
        paths: Paths::Hash,
        ..sigcomm18::topology()
    }
}

#[test]
fn alone__as_computed_with_store_and_forward() {
    check(&one_path());
}

#[test]
fn alone__as_computed_with_cut_through() {
    check(&Topology {
        forwarding: Forwarding::CutThrough,
        ..one_path()
    });
}

#[test]
fn alone__as_computed_at_one_switch() {
    let topology = Topology {
        shape: Shape::Single { hosts: 101 },
        ..one_path()
    };
    check(&topology);
}

#[test]
fn alone__spraying_lets_a_short_last_packet_overtake() {
    let topology = sigcomm18::topology();
    for (bytes, found) in SIZES.into_iter().zip(times_alone(&topology, 100)) {
        let computed = exact().ps(&topology, HostId(0), HostId(100), bytes);
        // At most by the time that the packets before it take in the fabric.
        assert!(found <= computed, "{bytes}: {found} {computed}");
        assert!(
            computed - found <= 2 * 1538 * 200,
            "{bytes}: {found} {computed}"
        );
    }
}

#[test]
fn alone__close_to_the_formula_of_2018() {
    let topology = sigcomm18::topology();
    for bytes in SIZES {
        let exact = exact().ps(&topology, HostId(0), HostId(100), bytes);
        let published = Ideal::Sigcomm18.ps(&topology, HostId(0), HostId(100), bytes);
        let ratio = exact as f64 / published as f64;
        assert!((1.0..1.03).contains(&ratio), "{bytes}: {ratio}");
    }
}

#[test]
fn echo__takes_both_ways() {
    let topology = sigcomm18::topology();
    let mut world = quiet_world(&topology, &setup());
    world.send(HostId(0), HostId(100), 1000, Pattern::Echo);
    world.run(SimTime::from_secs_f64(0.1));
    let records = &world.observer().0;
    assert_eq!(records.len(), 1);
    let one_way = exact().ps(&topology, HostId(0), HostId(100), 1000);
    assert_eq!(records[0].done.since(records[0].started), 2 * one_way);
    assert_eq!(world.messages_under_way(), 0);
}
