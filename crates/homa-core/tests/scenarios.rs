//! Trouble that other implementations had, as worlds with both ends; the names
//! carry the numbers that the packet scripts name too. Each says which rule of
//! `docs/protocol.md` keeps it away.

#![allow(non_snake_case, reason = "test names are function__case")]

mod support;

use std::cell::Cell;
use std::rc::Rc;

use homa_core::{Config, Endpoint, Failure, Identity, Kind, Mechanisms, Time, Verdict};
use homa_wire::{Body, Data, Packet, PacketType, SenderId};
use support::{Fate, MS, Outcome, US, World, config};

fn all_answered(world: &World) {
    for entry in &world.ledger.entries {
        let good = matches!(entry.outcome, Some(Outcome::Response | Outcome::Delivered));
        assert!(good && entry.executions.len() == 1, "{entry:?}");
    }
}

/// §4, §6: every length around the edges of packets and of the unscheduled
/// bytes, with grants and without, ends with the last packet.
#[test]
fn scenario_15__lengths_around_every_edge() {
    for edge in [1424, 2848, 25_000, 26_424] {
        for length in [edge - 1, edge, edge + 1] {
            let mut world = World::pair(15, &config());
            world.call(0, 1, length, length);
            world.run_until_idle(100 * MS);
            all_answered(&world);
            let data = world.hosts[0].endpoint.counters().sent_of(PacketType::Data);
            let scheduled = length.saturating_sub(25_000);
            let packets = (length - scheduled).div_ceil(1424) + scheduled.div_ceil(1424);
            assert_eq!(data, u64::from(packets), "{length}");
        }
    }
}

/// §7, §14: 200 RPCs to a stalled peer cost a bounded number of RESENDs.
#[test]
fn scenario_06__resends_to_a_stalled_peer_are_bounded() {
    let mut world = World::pair(6, &config());
    for _ in 0..200 {
        world.call(0, 1, 100, 100);
    }
    world.script(|seen| {
        if seen.from == 1 {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    world.run_for(50 * MS);
    let resends = world.hosts[0]
        .endpoint
        .counters()
        .sent_of(PacketType::Resend);
    assert!(resends > 0 && resends <= 64 * 10, "{resends}");
    world.heal();
    world.run_until_idle(2000 * MS);
    all_answered(&world);
}

/// §8: the original of a request arrives after its retry has been answered and
/// acked: it is not executed again.
#[test]
fn scenario_09__a_late_original_is_not_executed_again() {
    let mut world = World::pair(9, &config());
    world.script(|seen| match seen.packet.body {
        Body::Data(_) if seen.from == 0 && seen.nth == 0 => Fate::Late(60 * MS),
        _ => Fate::Pass,
    });
    world.call(0, 1, 100, 100);
    world.run_until_idle(30 * MS);
    world.run_for(100 * MS);
    all_answered(&world);
    let counters = world.hosts[1].endpoint.counters();
    assert_eq!(counters.duplicates_suppressed, 1);
}

/// §14: while software is late by milliseconds, retransmission does not
/// multiply the traffic.
#[test]
fn scenario_10__delays_do_not_multiply_traffic() {
    let mut world = World::pair(10, &config());
    world.delay_ns = 4 * MS;
    for _ in 0..20 {
        world.call(0, 1, 50_000, 50_000);
    }
    world.run_until_idle(5000 * MS);
    all_answered(&world);
    for host in &world.hosts {
        let counters = host.endpoint.counters();
        let again = counters.retransmitted_bytes;
        // Round trips of 8 ms against RESENDs after 5: each byte once at most.
        assert!(again <= counters.sent_bytes, "{again}");
    }
}

/// §6: many messages of 1000 bytes, which the pacer holds back, keep the link
/// as busy as it may be.
#[test]
fn scenario_26__messages_of_1000_bytes_fill_the_link() {
    let mut world = World::pair(26, &config());
    // Learns that one-way messages are known.
    world.call(0, 1, 10, 10);
    world.run_until_ended(10 * MS);
    let start = world.now;
    for _ in 0..3000 {
        world.request(0, 1, 1000, 1, Kind::OneWay).expect("room");
    }
    world.run_until_ended(100 * MS);
    all_answered(&world);
    let took_ns = world.now.since(start);
    // 1000 + 56 + 78 bytes at 9.9 Gbit/s.
    let ideal_ns = 3000 * (1134 * 8 * 100 / 99 / 10);
    assert!(took_ns < ideal_ns * 13 / 10, "{took_ns} of {ideal_ns}");
    assert!(took_ns > ideal_ns * 9 / 10, "it is paced: {took_ns}");
}

/// Time until one long message is through while shorter ones never stop.
fn long_among_short(mechanisms: Mechanisms) -> u64 {
    let config = Config {
        mechanisms,
        max_overcommit: 1,
        ..config()
    };
    // The long one comes from host 0, the others from hosts 1 to 6.
    let configs: Vec<Config> = (0..8).map(|_| config.clone()).collect();
    let mut world = World::new(27, &configs);
    let start = world.now;
    let long = world.call(0, 7, 1_000_000, 1);
    while world.ledger.entry(long).outcome.is_none() {
        for client in 1..7 {
            let entries = world.ledger.entries.iter();
            let open = entries.filter(|e| e.client == client && e.outcome.is_none());
            if open.count() < 2 {
                world.call(client, 7, 300_000, 1);
            }
        }
        world.run_for(20 * US);
        if world.now.since(start) > 200 * MS {
            break;
        }
    }
    world.now.since(start)
}

/// §12: one long message among shorter ones that never stop is not starved,
/// because of the share of the oldest.
#[test]
fn scenario_27__the_longest_message_is_not_starved() {
    let with = long_among_short(Mechanisms::ALL);
    assert!(with < 100 * MS, "{with}");
    let without = long_among_short(Mechanisms::ALL.without(Mechanisms::FIFO_GRANTS));
    assert!(without > with * 3 / 2, "{without} against {with}");
}

/// §16: a client that vanished with responses pending: reclaimed in bounded
/// time, with bounded probes.
#[test]
fn scenario_28__a_vanished_client_is_forgotten() {
    let mut world = World::pair(28, &config());
    for _ in 0..100 {
        world.call(0, 1, 100, 100_000);
    }
    world.script(|seen| {
        if seen.to == 0 || seen.nth >= 100 {
            Fate::Drop
        } else {
            Fate::Pass
        }
    });
    world.run_for(MS);
    world.script(|_| Fate::Drop);
    world.run_for(3000 * MS);
    let server = &world.hosts[1].endpoint;
    assert_eq!(server.gauges().server_outgoing, 0);
    assert_eq!(server.counters().reclaimed, 100);
    let probes = server.counters().sent_of(PacketType::NeedAck);
    assert!(probes <= 100 * 20, "{probes}");
    let failed = world.ledger.entries.iter();
    assert!(failed.clone().count() == 100);
    for entry in failed {
        assert_eq!(entry.outcome, Some(Outcome::Failed(Failure::Timeout)));
    }
}

/// §8, §20: a server that comes back at once as another instance: its clients
/// are told quickly, and new calls work.
#[test]
fn scenario_33__a_restarted_server_is_noticed() {
    let mut world = World::pair(33, &config());
    world.call(0, 1, 10, 10);
    world.run_until_idle(20 * MS);
    world.hosts[1].service.time_ns = 1000 * MS;
    let lost = world.call(0, 1, 100, 100);
    world.run_for(MS);
    world.restart(1);
    world.hosts[1].service.time_ns = 0;
    world.run_until_ended(20 * MS);
    assert_eq!(
        world.ledger.entry(lost).outcome,
        Some(Outcome::Failed(Failure::PeerRestarted))
    );
    let next = world.call(0, 1, 100, 100);
    world.run_until_idle(2000 * MS);
    assert_eq!(world.ledger.entry(next).outcome, Some(Outcome::Response));
}

/// §5, §17: ten large requests from two clients into memory for two: they wait
/// and all of them come through.
#[test]
fn scenario_41__more_messages_than_memory() {
    let small = Config {
        buffer_bytes: 2_000_000,
        ..config()
    };
    let mut world = World::new(41, &[config(), config(), small]);
    world.hosts[2].service.take_ns = 3 * MS;
    for _ in 0..5 {
        world.call(0, 2, 900_000, 100);
        world.call(1, 2, 900_000, 100);
    }
    world.run_until_idle(5000 * MS);
    world.assert_balanced();
    all_answered(&world);
    let counters = world.hosts[2].endpoint.counters();
    assert!(counters.buffer_waits > 0);
}

/// §7: a dead peer is probed and given up; nothing spins.
#[test]
fn scenario_51__a_dead_peer_costs_little() {
    let mut world = World::pair(51, &config());
    let packets = Rc::new(Cell::new(0));
    let seen = Rc::clone(&packets);
    world.script(move |_| {
        seen.set(seen.get() + 1);
        Fate::Drop
    });
    for _ in 0..20 {
        world.call(0, 1, 100_000, 100);
    }
    world.run_until_idle(1000 * MS);
    // 18 unscheduled packets each, and 19 rounds of one RESEND.
    assert!(packets.get() <= 20 * (18 + 20), "{}", packets.get());
}

/// §8: state after many calls is that of a few.
#[test]
fn scenario_53__state_does_not_grow() {
    let mut world = World::pair(53, &config());
    for _ in 0..100 {
        for _ in 0..50 {
            world.call(0, 1, 100, 100);
        }
        world.run_until_ended(100 * MS);
    }
    world.run_until_idle(100 * MS);
    world.assert_balanced();
    all_answered(&world);
}

/// §8.3: a peer that sends nothing but holes leaves room for the others.
#[test]
fn hostile_peer__holes_leave_room_for_others() {
    let config = Config {
        max_rpcs: 1024,
        ..config()
    };
    let now = Time::from_nanos(1);
    let identity = Identity {
        first_id: 2,
        instance: 1,
        hash_seed: 1,
    };
    let mut endpoint = Endpoint::new(config.settings().expect("valid"), identity);
    let (mallory, _) = endpoint.add_peer(now, 1480).expect("room");
    let (alice, _) = endpoint.add_peer(now, 1480).expect("room");
    endpoint.listen(4000);
    let data = |id, offset| {
        let data = Data {
            message_length: 900_000,
            incoming: 900_000,
            cutoff_version: 1,
            ..Data::default()
        };
        Packet::new(40_000, 4000, SenderId(id), Body::Data(data.at(offset)))
    };
    for id in 0..300 {
        for hole in 1..=64 {
            endpoint.packet(now, mallory, &data(2 * id + 2, hole * 1000), 10);
        }
    }
    let held = endpoint.gauges().ranges;
    assert!(
        held >= 1000 && held <= endpoint.settings().max_ranges / 2,
        "{held}"
    );
    for hole in 1..=64 {
        let verdict = endpoint.packet(now, alice, &data(2, hole * 1000), 10);
        assert!(!matches!(verdict, Verdict::Drop(_)), "{hole}: {verdict:?}");
    }
}
