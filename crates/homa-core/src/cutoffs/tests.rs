//! Worked examples, the published workloads, and properties of any traffic.

#![allow(non_snake_case, reason = "test names are function__case")]
#![allow(clippy::cast_precision_loss, reason = "sums here are far below 2^52")]

extern crate std;

use super::*;
use proptest::prelude::*;
use std::{vec, vec::Vec};

const MAX: u32 = 1_000_000;

fn histogram(messages: &[(u32, u32)]) -> Histogram {
    let mut histogram = Histogram::new(MAX);
    for &(count, length) in messages {
        (0..count).for_each(|_| histogram.record(length));
    }
    histogram
}

#[test]
fn initial__keeps_the_defaults_of_eight_levels() {
    let division = Division::initial(8, MAX);
    assert_eq!(
        division.cutoffs,
        [MAX, MAX, MAX, MAX, MAX, 15_000, 2800, 200]
    );
    assert_eq!(division.scheduled_levels, 4);
}

#[test]
fn initial__halves_fewer_levels() {
    // Levels, unscheduled ones (highest first, without the unbounded one).
    let expected: [(u8, u8, &[u32]); 7] = [
        (7, 3, &[200, 2800, 15_000]),
        (6, 3, &[200, 2800]),
        (5, 2, &[200, 2800]),
        (4, 2, &[2800]),
        (3, 1, &[2800]),
        (2, 1, &[]),
        (1, 1, &[]),
    ];
    for (levels, scheduled, bounds) in expected {
        let division = Division::initial(levels, MAX);
        assert_eq!(division.scheduled_levels, scheduled, "{levels} levels");
        for level in 0..8 {
            let cutoff = match (levels - 1).checked_sub(level) {
                None => 0,
                Some(rank) => bounds.get(usize::from(rank)).copied().unwrap_or(MAX),
            };
            assert_eq!(division.cutoffs[usize::from(level)], cutoff);
        }
    }
}

#[test]
fn initial__of_short_messages_needs_one_unscheduled_level() {
    let division = Division::initial(8, 150);
    assert_eq!(division.cutoffs, [150; 8]);
    assert_eq!(division.scheduled_levels, 7);
    assert_eq!(Division::initial(4, 0).scheduled_levels, 3);
}

#[test]
fn divide__worked_example() {
    // T = 64,000 + 64,000 + 128,000 = 256,000. Of the long message (its class
    // ends at 128,000 and has one) 10,000 are unscheduled: U = 138,000.
    // n = floor(8 x 138 / 256 + 1/2) = 4, quota = 1 + 138,000 / 4 = 34,501.
    // Class 64 reaches it (64,000), target 98,501; class 640 reaches that
    // (128,000), target 162,501 is beyond U.
    let histogram = histogram(&[(1000, 64), (100, 640), (1, 128_000)]);
    let division = divide(&histogram, 8, 10_000, MAX);
    assert_eq!(division.cutoffs, [MAX, MAX, MAX, MAX, MAX, MAX, 640, 64]);
    assert_eq!(division.scheduled_levels, 5);
}

#[test]
fn divide__all_unscheduled_shares_level_0() {
    // T = U = 198,400 + 192,000 + 192,000 + 179,200 = 761,600; n = 4 = P, so
    // quota = 1 + T / P = 190,401, and targets 190,401, 388,801, 580,801.
    let histogram = histogram(&[(3100, 64), (1500, 128), (1000, 192), (700, 256)]);
    let division = divide(&histogram, 4, 10_000, MAX);
    assert_eq!(division.cutoffs, [MAX, 192, 128, 64, 0, 0, 0, 0]);
    assert_eq!(division.scheduled_levels, 1);
}

#[test]
fn divide__targets_follow_from_the_bytes_seen() {
    // T = U = 192,001 + 3 x 192,000; quota = 1 + T / 4 = 192,001, which class
    // 64 just reaches. Class 128 misses the next target (384,002) by a byte.
    let histogram = histogram(&[(3000, 64), (1, 1), (1500, 128), (1000, 192), (750, 256)]);
    let division = divide(&histogram, 4, 10_000, MAX);
    assert_eq!(division.cutoffs, [MAX, MAX, 192, 64, 0, 0, 0, 0]);
    assert_eq!(division.scheduled_levels, 1);
}

#[test]
fn divide__all_levels_share_all_bytes() {
    // T = 44,800 + 32,000 + 30,000 = 106,800; U = 86,800. n = 2 = P: quota is
    // half of T (53,401), not of U (43,401), since level 0 carries the rest.
    let histogram = histogram(&[(700, 64), (50, 640), (1, 30_000)]);
    let division = divide(&histogram, 2, 10_000, MAX);
    assert_eq!(division.cutoffs, [MAX, 640, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn divide__rounds_the_number_of_levels() {
    // Three short classes of 10,240 bytes each and 10,000 unscheduled bytes of
    // a long message: U = 40,720. With a long one of 56,320, T = 87,040 and
    // 8 U / T = 3.74: n = 4, quota 10,181. With 66,320, T = 97,040, 3.36: n =
    // 3, quota 13,574, and the class of the long one reaches the last target.
    let shorts = [(160, 64), (80, 128), (40, 256)];
    let of = |length| {
        let mut messages = shorts.to_vec();
        messages.push((1, length));
        divide(&histogram(&messages), 8, 10_000, MAX)
    };
    let four = of(56_320);
    assert_eq!(four.cutoffs, [MAX, MAX, MAX, MAX, MAX, 256, 128, 64]);
    assert_eq!(four.scheduled_levels, 4);
    let three = of(66_320);
    assert_eq!(three.cutoffs, [MAX, MAX, MAX, MAX, MAX, MAX, 66_560, 128]);
    assert_eq!(three.scheduled_levels, 5);
}

#[test]
fn divide__long_messages_leave_one_unscheduled_level() {
    // U / T = 1 / 50: n would be 0.
    let histogram = histogram(&[(100, 500_000)]);
    let division = divide(&histogram, 8, 10_000, MAX);
    assert_eq!(division.cutoffs, [MAX; 8]);
    assert_eq!(division.scheduled_levels, 7);
}

#[test]
fn divide__one_level_carries_everything() {
    for messages in [[(100, 64), (50, 640)], [(1, 64), (50, 640_000)]] {
        let division = divide(&histogram(&messages), 1, 10_000, MAX);
        assert_eq!(division.cutoffs, [MAX, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(division.scheduled_levels, 1);
    }
}

#[test]
fn unscheduled__is_limited_by_the_estimated_count() {
    // Class 9217..=10,240 (mean 9728): 2 x 20 x 10,000 / 19,456 = 20.6, 21
    // messages. It ends above the limit, so at most 21 times that.
    let histogram = histogram(&[(20, 10_000)]);
    let unscheduled = |limit| -> u64 { histogram.classes().map(|c| c.unscheduled(limit)).sum() };
    assert_eq!(unscheduled(10_240), 200_000);
    assert_eq!(unscheduled(9900), 200_000);
    assert_eq!(unscheduled(5000), 21 * 5000);
    assert_eq!(unscheduled(0), 0);
}

#[test]
fn record__puts_lengths_into_their_classes() {
    let expected = [
        (1, 64),
        (64, 64),
        (65, 128),
        (4032, 4032),
        (4033, 4096),
        (4096, 4096),
        (4097, 5120),
        (5120, 5120),
        (5121, 6144),
        (131_072, 131_072),
        (131_073, MAX),
        (MAX, MAX),
    ];
    for (length, upper) in expected {
        let histogram = histogram(&[(1, length)]);
        let of_any: Vec<u32> = histogram
            .classes()
            .filter(|class| class.unscheduled(u32::MAX) > 0)
            .map(|class| class.upper)
            .collect();
        assert_eq!(of_any, [upper], "length {length}");
    }
}

#[test]
fn deciles__count_messages_not_bytes() {
    // 60 messages of class 64 (mean 32), 40 of class 1024 (mean 992).
    let histogram = histogram(&[(60, 32), (40, 992)]);
    let (short, long) = (64, 1024);
    let expected = [short, short, short, short, short, short, long, long, long];
    assert_eq!(histogram.deciles(), expected);
}

#[test]
fn deciles__take_note_of_a_few_bytes() {
    let histogram = histogram(&[(1, 1), (1, 992)]);
    let (short, long) = (64, 1024);
    let expected = [short, short, short, short, short, long, long, long, long];
    assert_eq!(histogram.deciles(), expected);
}

#[test]
fn distance__sums_relative_moves() {
    let a = [100, 100, 100, 100, 100, 100, 100, 100, 0];
    let b = [50, 200, 100, 100, 100, 100, 100, 100, 0];
    assert_eq!(distance(&a, &b), MOVE_SCALE);
    assert_eq!(distance(&a, &a), 0);
    assert_eq!(distance(&[7; 9], &[0; 9]), 9 * MOVE_SCALE);
}

fn record(policy: &mut CutoffPolicy, count: u32, length: u32) {
    (0..count).for_each(|_| policy.record(length));
}

#[test]
fn revise__waits_for_enough_messages_and_keeps_them() {
    let mut policy = CutoffPolicy::new(8, 10_000, MAX);
    record(&mut policy, 5000, 300);
    assert_eq!(policy.revise(), None);
    record(&mut policy, 4999, 300);
    assert_eq!(policy.revise(), None);
    record(&mut policy, 1, 300);
    let division = policy.revise();
    assert_eq!(division.map(|division| division.cutoffs[7]), Some(320));
    assert_eq!(policy.recent.messages(), 0);
}

#[test]
fn revise__says_nothing_while_traffic_stays_the_same() {
    let mut policy = CutoffPolicy::new(8, 10_000, MAX);
    for round in 0..5 {
        // The shares of the lengths wander a little.
        record(&mut policy, 12_000 + 100 * round, 300);
        record(&mut policy, 9000, 3000);
        assert_eq!(policy.revise().is_some(), round == 0);
    }
}

#[test]
fn revise__notices_slow_drift() {
    // Each step is too small; the sum of them is not, since traffic is
    // compared with that of the last change, not with the last look.
    let mut policy = CutoffPolicy::new(8, 10_000, MAX);
    record(&mut policy, 10_000, 1000);
    assert!(policy.revise().is_some());
    let lengths = (1064..=2000).step_by(64);
    let changes = lengths
        .filter(|length| {
            record(&mut policy, 10_000, *length);
            policy.revise().is_some()
        })
        .count();
    assert!((2..=7).contains(&changes), "{changes} changes");
}

#[test]
fn revise__says_nothing_when_the_same_division_follows() {
    // Very different lengths, but each time one unscheduled level for all.
    let mut policy = CutoffPolicy::new(8, 10_000, MAX);
    record(&mut policy, 10_000, 900_000);
    assert_eq!(
        policy.revise().map(|division| division.scheduled_levels),
        Some(7)
    );
    record(&mut policy, 10_000, 200_000);
    assert_eq!(policy.revise(), None);
    assert_eq!(policy.deciles, [200_000; 9]);
}

#[test]
fn record__of_absurd_amounts_does_not_overflow() {
    let mut histogram = Histogram::new(u32::MAX);
    (0..1 << 25).for_each(|_| histogram.record(u32::MAX));
    assert!((1 << 56..(1 << 56) + (1 << 32)).contains(&histogram.total_bytes()));
    let division = divide(&histogram, 8, u32::MAX, u32::MAX);
    assert_eq!(division.scheduled_levels, 7);
}

/// Message lengths of a published workload, evenly spaced by frequency.
fn workload(csv: &str, samples: u32) -> Vec<u32> {
    let table: Vec<(u32, f64)> = csv
        .lines()
        .filter_map(|line| line.split_once(','))
        .filter_map(|(length, share)| Some((length.parse().ok()?, share.parse().ok()?)))
        .collect();
    (0..samples)
        .filter_map(|sample| {
            let share = (f64::from(sample) + 0.5) / f64::from(samples);
            let row = table.partition_point(|(_, cumulated)| *cumulated < share);
            table.get(row).or(table.last()).map(|(length, _)| *length)
        })
        .collect()
}

const W1: &str = include_str!("../../../../workloads/w1.csv");
const W2: &str = include_str!("../../../../workloads/w2.csv");
const W3: &str = include_str!("../../../../workloads/w3.csv");
const W4: &str = include_str!("../../../../workloads/w4.csv");
const W5: &str = include_str!("../../../../workloads/w5.csv");

fn revised(csv: &str, levels: u8) -> Division {
    let mut policy = CutoffPolicy::new(levels, 10_000, MAX);
    for length in workload(csv, 100_000) {
        policy.record(length);
    }
    policy.revise();
    policy.division
}

#[test]
fn revise__divides_the_published_workloads() {
    // The SIGCOMM 2018 simulations used 1, 3, 4, 7 and 7 scheduled levels with
    // about 10 kB unscheduled. The rule of §15 rounds the ratio of the bytes:
    // unscheduled are 99 %, 78 %, 30 %, 3 % and below 1 % of them.
    let scheduled = [W1, W2, W3, W4, W5].map(|csv| revised(csv, 8).scheduled_levels);
    assert_eq!(scheduled, [1, 2, 6, 7, 7]);
    let four = [W1, W2, W3, W4, W5].map(|csv| revised(csv, 4).scheduled_levels);
    assert_eq!(four, [1, 1, 3, 3, 3]);
}

#[test]
fn revise__gives_w1_all_levels() {
    let division = revised(W1, 8);
    let distinct: Vec<u32> = division.cutoffs[1..].to_vec();
    assert!(distinct.is_sorted_by(|a, b| a > b), "{distinct:?}");
    assert_eq!(division.cutoffs[0], MAX);
}

fn traffic() -> impl Strategy<Value = Vec<(u32, u32)>> {
    let length = prop_oneof![1u32..200, 1u32..5000, 1u32..140_000, 1u32..=MAX];
    prop::collection::vec((1u32..400, length), 1..30)
}

proptest! {
    #[test]
    fn divide__balances_the_unscheduled_levels(
        messages in traffic(),
        levels in 1usize..=8,
        limit in prop_oneof![0u32..100, 1000u32..50_000, Just(MAX)],
    ) {
        let histogram = histogram(&messages);
        let division = divide(&histogram, levels, limit, MAX);
        let cutoffs = &division.cutoffs;
        let scheduled = usize::from(division.scheduled_levels);

        prop_assert!(cutoffs.is_sorted_by(|a, b| a >= b));
        prop_assert_eq!(cutoffs[0], MAX);
        prop_assert!(cutoffs[..levels].iter().all(|cutoff| *cutoff > 0));
        prop_assert!(cutoffs[levels..].iter().all(|cutoff| *cutoff == 0));
        prop_assert!(scheduled >= 1 && scheduled <= (levels - 1).max(1));

        // What each level carries, by the rule that senders follow.
        let mut carried = vec![0u64; levels];
        let mut largest_class = 0;
        let mut longest = 0;
        let mut total = 0;
        for class in histogram.classes() {
            let bytes = class.unscheduled(limit);
            let level = cutoffs[..levels].iter().rposition(|cutoff| *cutoff >= class.upper);
            carried[level.unwrap_or(0)] += bytes;
            largest_class = largest_class.max(bytes);
            longest = bytes;
            total += bytes;
        }
        let lowest = cutoffs[..levels].iter().rposition(|cutoff| *cutoff == MAX).unwrap_or(0);
        prop_assert_eq!(scheduled, lowest.max(1));
        let unscheduled = levels - lowest;
        // Never more levels than the share of the bytes asks for.
        let wanted = levels as f64 * total as f64 / histogram.total_bytes() as f64;
        prop_assert!(unscheduled as f64 <= (wanted + 0.5).max(1.0));
        prop_assert!(carried[..lowest].iter().all(|bytes| *bytes == 0));
        let bounded = &carried[lowest + 1..];
        let quota = bounded.iter().min().copied().unwrap_or(total);
        for bytes in bounded {
            prop_assert!(bytes - quota <= largest_class);
        }
        // What is left for the last one is no more than the others have, but
        // for the class without bound, which cannot be split.
        prop_assert!(carried[lowest] <= quota + longest);
    }

    #[test]
    fn revise__never_panics(
        levels in any::<u8>(),
        limit in any::<u32>(),
        max_message in any::<u32>(),
        lengths in prop::collection::vec(any::<u32>(), 1..20),
    ) {
        let mut policy = CutoffPolicy::new(levels, limit, max_message);
        for length in lengths.iter().cycle().take(10_000) {
            policy.record(*length);
        }
        let division = policy.revise().unwrap_or(policy.division);
        prop_assert!((1..=7).contains(&division.scheduled_levels));
        prop_assert_eq!(division.cutoffs[0], max_message);
    }
}
