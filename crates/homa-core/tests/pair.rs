//! Two endpoints on a quiet network, and scenarios that need both ends.
//! Implements nothing; checks `docs/protocol.md` §4 to §8.

#![allow(non_snake_case, reason = "test names are function__case")]

mod support;

use homa_core::{Failure, Kind};
use homa_wire::{Body, PacketType};
use support::{Fate, MS, Outcome, World, config};

fn completes(world: &mut World, limit_ns: u64) {
    world.run_until_idle(limit_ns);
    world.assert_balanced();
    for entry in &world.ledger.entries {
        assert!(
            matches!(entry.outcome, Some(Outcome::Response | Outcome::Delivered)),
            "{entry:?}"
        );
        assert_eq!(entry.executions.len(), 1, "{entry:?}");
    }
}

#[test]
fn call__every_length_at_an_edge() {
    for length in [
        1, 1423, 1424, 1425, 2848, 2849, 24_999, 25_000, 25_001, 26_424, 26_425, 65_535, 400_000,
        999_999, 1_000_000,
    ] {
        let mut world = World::pair(1, &config());
        world.call(0, 1, length, 1);
        completes(&mut world, 200 * MS);
        let mut world = World::pair(1, &config());
        world.call(0, 1, 1, length);
        completes(&mut world, 200 * MS);
    }
}

#[test]
fn call__a_quiet_network_needs_no_retransmission() {
    let mut world = World::pair(2, &config());
    for n in 0..50 {
        world.call(0, 1, 1 + n * 7919, 1 + (49 - n) * 7919);
    }
    completes(&mut world, 1000 * MS);
    for host in &world.hosts {
        let counters = host.endpoint.counters();
        assert_eq!(counters.sent_of(PacketType::Resend), 0);
        assert_eq!(counters.retransmitted_bytes, 0);
    }
}

#[test]
fn one_way__delivered_once() {
    let mut world = World::pair(3, &config());
    for length in [1, 2000, 100_000] {
        world
            .request(0, 1, length, 1, Kind::OneWay)
            .expect("extensions are on");
    }
    completes(&mut world, 200 * MS);
    assert_eq!(world.hosts[0].endpoint.counters().one_ways_delivered, 3);
}

#[test]
fn call__dead_server_times_out() {
    let mut world = World::pair(4, &config());
    world.script(|seen| {
        if seen.from == 0 {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    let tag = world.call(0, 1, 100, 100);
    world.run_until_idle(200 * MS);
    assert_eq!(
        world.ledger.entry(tag).outcome,
        Some(Outcome::Failed(Failure::Timeout))
    );
    world.assert_balanced();
}

#[test]
fn call__first_packet_of_everything_lost() {
    let mut world = World::pair(5, &config());
    world.script(|seen| {
        if seen.nth == 0 {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    world.call(0, 1, 100_000, 100_000);
    world.call(0, 1, 10, 10);
    completes(&mut world, 1500 * MS);
}

#[test]
fn call__every_grant_lost_resends_are_grants() {
    let mut world = World::pair(6, &config());
    world.script(|seen| match seen.packet.body {
        Body::Grant(_) => Fate::Drop,
        _ => Fate::Pass,
    });
    world.call(0, 1, 300_000, 300_000);
    completes(&mut world, 2000 * MS);
    assert!(world.hosts[0].endpoint.counters().implicit_grants > 0);
}

/// More calls within the lifetime of a tombstone than a peer may have: the
/// floor rises, and still nothing is executed twice (§8.1).
#[test]
fn calls__more_than_tombstones_are_never_executed_twice() {
    let config = homa_core::Config {
        max_rpcs: 1024,
        ..config()
    };
    let mut world = World::pair(8, &config);
    world.faults = support::LinkFaults {
        loss_permille: 20,
        duplicate_permille: 200,
        reorder_permille: 200,
        jitter_ns: 30 * MS,
    };
    for round in 0..100 {
        for _ in 0..60 {
            let client = round % 2;
            world.call(client, 1 - client, 100, 100);
        }
        world.run_for(MS);
    }
    world.heal();
    world.run_until_idle(30_000 * MS);
    world.assert_balanced();
    let mut answered = 0;
    for entry in &world.ledger.entries {
        match entry.outcome {
            Some(Outcome::Response) => answered += 1,
            Some(Outcome::Failed(Failure::Stale)) => {}
            _ => assert_eq!(entry.outcome, None, "{entry:?}"),
        }
    }
    assert!(answered > 5000, "{answered} of 6000");
    let counters = world.hosts[1].endpoint.counters();
    assert!(counters.floors_raised > 0);
    assert!(counters.duplicates_suppressed > 0);
    assert!(counters.stale_refused > 0);
}

/// A server whose application is slow and whose table is small refuses by
/// silence, and its clients come through in the end.
#[test]
fn calls__to_a_full_server_come_through() {
    let small = homa_core::Config {
        max_rpcs: 16,
        ..config()
    };
    let mut world = World::new(9, &[config(), small]);
    world.hosts[1].service.time_ns = MS;
    for _ in 0..100 {
        world.call(0, 1, 3000, 3000);
    }
    completes(&mut world, 1000 * MS);
}
