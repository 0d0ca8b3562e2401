//! One endpoint among two peers that send whatever they like and one that keeps
//! to the rules. Lists of packets and of what the application does, shrunk to
//! the shortest that breaks something.
//!
//! Always, after each step: no panic, no overflow, no endless output; tables
//! within their limits; what is sent makes sense; no request is handed over
//! twice; no RPC has an event after its last one. In the end: every call of
//! and to the honest peer was answered, and nothing is left (`docs/protocol.md`
//! §8).

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(clippy::panic, reason = "a test fails by panicking")]

mod town;

use homa_core::{Config, Extensions, IncomingCounts, Mechanisms};
use homa_wire::{Ack, Body, Data};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use town::{Arrival, Id, Step, Town, steps};

fn any_config() -> impl Strategy<Value = Config> {
    (
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        1u8..=8,
        prop_oneof![Just(40_000u32), Just(1), Just(1424), Just(3000)],
        prop_oneof![Just(400_000u32), Just(1), Just(5000)],
        any::<bool>(),
    )
        .prop_map(
            |(extensions, paced, tight, levels, unscheduled, incoming, all)| Config {
                extensions: if extensions {
                    Extensions::On
                } else {
                    Extensions::Off
                },
                link_rate_bps: paced.then_some(1_000_000_000),
                priorities: levels,
                // With fewer than peers, silent messages take turns in the way.
                max_overcommit: levels.max(3),
                unscheduled_bytes: Some(unscheduled),
                max_incoming_bytes: Some(incoming),
                incoming_counts: if all {
                    IncomingCounts::All
                } else {
                    IncomingCounts::Managed
                },
                // Small tables, so that they are full soon.
                max_rpcs: if tight { 32 } else { 128 },
                max_peers: 8,
                max_message_bytes: if tight { 100_000 } else { 1_000_000 },
                buffer_bytes: if tight { 200_000 } else { 2_000_000 },
                ..Config::default()
            },
        )
}

fn run(config: &Config, list: Vec<Step>) {
    let mut town = Town::new(config);
    for step in list {
        town.step(&step);
    }
    town.end();
}

fn regressions() -> ProptestConfig {
    ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/hostile.proptest-regressions"
        )))),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(regressions())]

    #[test]
    fn endpoint__any_packets_harm_nobody_else(config in any_config(), list in steps(200)) {
        run(&config, list);
    }
}

/// The check itself must be able to fail.
#[test]
#[should_panic(expected = "handed over twice")]
fn town__sees_a_request_handed_over_twice() {
    let config = Config {
        mechanisms: Mechanisms::ALL.without(Mechanisms::TOMBSTONES),
        ..Config::default()
    };
    // 106 / 2 leaves 2: it is taken, and answered by a later step.
    let data = Data {
        message_length: 100,
        ..Data::default()
    };
    let arrive = |body, payload| {
        Step::Arrive(Arrival {
            peer: 0,
            source_port: 40_000,
            destination_port: 4000,
            id: Id::Theirs(106),
            body,
            payload,
        })
    };
    let request = || arrive(Body::Data(data.at(0)), 100);
    let list = vec![
        request(),
        Step::Respond(0, 100),
        arrive(Body::Ack(Ack::default(), None), 0),
        request(),
    ];
    run(&config, list);
}
