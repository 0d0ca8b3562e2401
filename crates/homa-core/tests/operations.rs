//! Lists of what applications and the network do, against a model small enough
//! to be right at a glance: of every request it knows how it may end. Unlike
//! the random worlds these lists are shrunk to the shortest that fails, and
//! what ever failed is run again first.
//!
//! The world itself compares every byte, and counts executions.

#![allow(non_snake_case, reason = "test names are function__case")]

mod support;

use homa_core::{Config, Extensions, Failure, Kind};
use homa_wire::PacketType;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use support::{Fate, LinkFaults, MS, Outcome, Service, World, config};

#[derive(Clone, Debug)]
enum Operation {
    /// From the first host to the second, or back.
    Request {
        back: bool,
        length: u32,
        response: u32,
        kind: Kind,
    },
    /// The client of the n-th last request gives it up after some time.
    Abort(usize, u64),
    /// How long applications take, and whether they refuse.
    Serve(u64, bool),
    /// Every n-th packet of a type is lost, comes twice, or late.
    Fault(PacketType, usize, Fate),
    /// Loss, duplicates and delays of all packets.
    Weather(u32, u32, u32),
    Heal,
    Run(u64),
    Restart(usize),
}

/// How a request may end, given what happened.
#[derive(Clone, Copy, Default)]
struct Model {
    aborted: bool,
    refused: bool,
    lost: bool,
    restarted: bool,
    /// Not every endpoint has the extensions.
    plain: bool,
}

impl Model {
    fn allows(self, kind: Kind, outcome: Outcome) -> bool {
        match outcome {
            Outcome::Response => kind == Kind::Call,
            Outcome::Delivered => kind == Kind::OneWay,
            Outcome::Aborted => self.aborted,
            Outcome::ClientGone => self.restarted,
            Outcome::Failed(failure) => match failure {
                // To a plain endpoint a refusal looks like silence.
                Failure::Timeout => self.lost || self.restarted || (self.refused && self.plain),
                Failure::Refused => self.refused,
                Failure::Unsupported => self.plain && kind == Kind::OneWay,
                Failure::PeerRestarted => self.restarted,
                _ => false,
            },
        }
    }
}

fn length() -> impl Strategy<Value = u32> {
    prop_oneof![
        4 => 1u32..3000,
        2 => prop::sample::select(vec![1424, 1425, 2848, 24_999, 25_000, 25_001, 26_424]),
        2 => 3000u32..100_000,
        1 => Just(1_000_000u32),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    let fate = prop_oneof![
        3 => Just(Fate::Drop),
        1 => Just(Fate::Twice),
        1 => (0u64..30 * MS).prop_map(Fate::Late),
    ];
    prop_oneof![
        8 => (any::<bool>(), length(), length(), prop::bool::weighted(0.15)).prop_map(
            |(back, length, response, one_way)| Operation::Request {
                back,
                length,
                response,
                kind: if one_way { Kind::OneWay } else { Kind::Call },
            }
        ),
        1 => (0usize..5, 0u64..3 * MS).prop_map(|(n, wait)| Operation::Abort(n, wait)),
        1 => (0u64..20 * MS, prop::bool::weighted(0.2))
            .prop_map(|(time, refuse)| Operation::Serve(time, refuse)),
        2 => (prop::sample::select(PacketType::ALL.to_vec()), 1usize..4, fate)
            .prop_map(|(packet_type, n, fate)| Operation::Fault(packet_type, n, fate)),
        1 => (0u32..200, 0u32..200, 0u32..300).prop_map(|(a, b, c)| Operation::Weather(a, b, c)),
        1 => Just(Operation::Heal),
        4 => prop_oneof![0u64..100_000, 0u64..5 * MS, 0u64..150 * MS].prop_map(Operation::Run),
        1 => prop::bool::weighted(0.3).prop_flat_map(|restart| if restart {
            (0usize..2).prop_map(Operation::Restart).boxed()
        } else {
            Just(Operation::Run(MS)).boxed()
        }),
    ]
}

fn any_config() -> impl Strategy<Value = Config> {
    (
        prop::bool::weighted(0.3),
        1u8..=8,
        prop_oneof![3 => Just(None), 1 => (1u32..20_000).prop_map(Some)],
        prop_oneof![3 => Just(None), 1 => (3000u32..100_000).prop_map(Some)],
    )
        .prop_map(
            |(plain, priorities, unscheduled_bytes, max_incoming_bytes)| Config {
                extensions: if plain {
                    Extensions::Off
                } else {
                    Extensions::On
                },
                priorities,
                unscheduled_bytes,
                max_incoming_bytes,
                ..config()
            },
        )
}

fn run(configs: &[Config; 2], operations: &[Operation]) {
    let mut world = World::new(1, configs);
    let mut model = Model {
        plain: configs.iter().any(|c| c.extensions == Extensions::Off),
        ..Model::default()
    };
    let mut tags = Vec::new();
    for operation in operations {
        match *operation {
            Operation::Request {
                back,
                length,
                response,
                kind,
            } => {
                let (client, server) = if back { (1, 0) } else { (0, 1) };
                let made = world.request(client, server, length, response, kind);
                tags.extend(made.ok());
            }
            Operation::Abort(n, wait) => {
                if let Some(tag) = tags.iter().rev().nth(n) {
                    model.aborted = true;
                    world.abort_after(*tag, wait);
                }
            }
            Operation::Serve(time_ns, refuse) => {
                model.refused |= refuse;
                for host in &mut world.hosts {
                    host.service = Service {
                        time_ns,
                        take_ns: time_ns / 4,
                        refuse_permille: if refuse { 500 } else { 0 },
                    };
                }
            }
            Operation::Fault(packet_type, n, fate) => {
                model.lost |= matches!(fate, Fate::Drop | Fate::Late(_));
                world.script(move |seen| {
                    let hit = seen.packet.body.packet_type() == packet_type && seen.nth % n == 0;
                    if hit { fate } else { Fate::Pass }
                });
            }
            Operation::Weather(loss_permille, duplicate_permille, reorder_permille) => {
                model.lost |= loss_permille > 0 || reorder_permille > 0;
                world.heal();
                world.faults = LinkFaults {
                    loss_permille,
                    duplicate_permille,
                    reorder_permille,
                    jitter_ns: 10 * MS,
                };
            }
            Operation::Heal => world.heal(),
            Operation::Run(ns) => world.run_for(ns),
            Operation::Restart(host) => {
                model.restarted = true;
                world.restart(host);
            }
        }
    }
    world.heal();
    world.run_until_ended(20_000 * MS);
    for entry in &world.ledger.entries {
        let outcome = entry.outcome.expect("it has ended");
        assert!(model.allows(entry.kind, outcome), "{entry:?}");
        let done = matches!(outcome, Outcome::Response | Outcome::Delivered);
        assert!(!done || !entry.executions.is_empty(), "{entry:?}");
        let lives = world.hosts[entry.server].life as usize + 1;
        assert!(entry.executions.len() <= lives, "{entry:?}");
    }
    world.run_until_idle(30_000 * MS);
    world.assert_balanced();
}

fn kept() -> ProptestConfig {
    ProptestConfig {
        cases: 200,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/tests/operations.proptest-regressions"
        )))),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(kept())]

    #[test]
    fn endpoints__agree_with_the_model(
        a in any_config(),
        b in any_config(),
        operations in vec(operation(), 0..40),
    ) {
        run(&[a, b], &operations);
    }
}
