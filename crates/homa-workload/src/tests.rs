use super::*;
use proptest::prelude::*;
use rand::SeedableRng;
use rand_pcg::Pcg64Mcg;

fn named(name: &str) -> Workload {
    Workload::parse(name).unwrap()
}

fn sampled(workload: &Workload, seed: u64, count: usize) -> Vec<u32> {
    let mut rng = Pcg64Mcg::seed_from_u64(seed);
    let mut sizes: Vec<u32> = (0..count).map(|_| workload.sample(&mut rng)).collect();
    sizes.sort_unstable();
    sizes
}

#[test]
fn mean_bytes__known_values_capped_and_not() {
    // Published means, and those with the cap of 1,000,000 bytes.
    for (name, mean, capped) in [
        ("w1", 189.0, 189.0),
        ("w2", 442.0, 433.0),
        ("w3", 2928.0, 2423.0),
        ("w4", 127_797.0, 60_175.0),
        ("w5", 2_564_690.0, 385_316.0),
    ] {
        let workload = named(name);
        let near = |found: f64, wanted: f64| (found / wanted - 1.0).abs() < 0.005;
        assert!(
            near(workload.mean_bytes(), mean),
            "{name}: {}",
            workload.mean_bytes()
        );
        let cut = workload.clamped(1, DEFAULT_MAX_MESSAGE_BYTES);
        assert!(
            near(cut.mean_bytes(), capped),
            "{name}: {}",
            cut.mean_bytes()
        );
        assert!(cut.max_bytes() <= DEFAULT_MAX_MESSAGE_BYTES);
    }
}

#[test]
fn quantile_bytes__known_values() {
    assert_eq!(named("w4").quantile_bytes(0.5), 662);
    assert_eq!(named("w1").quantile_bytes(0.9), 503);
    assert_eq!(named("w5").quantile_bytes(1.0), 29_400_000);
    assert_eq!(named("w3").quantile_bytes(0.0), 8);
}

#[test]
fn clamped__merges_points_beyond_the_ends() {
    let workload = Workload::from_csv("t", "10,0.25\n20,0.5\n30,0.75\n40,1\n").unwrap();
    let cut = workload.clamped(15, 30);
    let points: Vec<_> = cut
        .points()
        .iter()
        .map(|p| (p.size_bytes, p.cumulative))
        .collect();
    assert_eq!(points, [(15, 0.25), (20, 0.5), (30, 1.0)]);
    assert!((cut.mean_bytes() - (0.25 * 15.0 + 0.25 * 20.0 + 0.5 * 30.0)).abs() < 1e-9);
}

#[test]
fn thinned__keeps_steps_and_the_end() {
    let w3 = named("w3");
    let thin = w3.thinned();
    assert!(
        thin.points().len() < w3.points().len() / 2,
        "{}",
        thin.points().len()
    );
    assert_eq!(thin.max_bytes(), w3.max_bytes());
    assert!((thin.mean_bytes() / w3.mean_bytes() - 1.0).abs() < 0.1);
    for pair in thin.points().windows(2) {
        let added = pair[1].cumulative - pair[0].cumulative;
        let ratio = f64::from(pair[1].size_bytes) / f64::from(pair[0].size_bytes);
        // A point kept for its ratio may itself be close; its successor is not.
        assert!(added >= 0.0 && ratio > 1.0);
    }
}

#[test]
fn parse__sizes_names_and_nonsense() {
    assert_eq!(named("1000").points().len(), 1);
    assert_eq!(named("64k").max_bytes(), 64_000);
    assert_eq!(named("1.5MB").max_bytes(), 1_500_000);
    assert_eq!(named("W2").name(), "w2");
    let message = Workload::parse("w9").unwrap_err().to_string();
    assert!(message.contains("w1, w2, w3, w4, w5, starve"), "{message}");
    assert!(matches!(
        Workload::parse("0"),
        Err(WorkloadError::Size { bytes: 0 })
    ));
    assert!(Workload::parse("5000m").is_err());
    assert_eq!(parse_size("inf"), None);
    assert_eq!(parse_size("1.5"), None);
}

#[test]
fn sample__same_seed_same_sizes() {
    assert_eq!(
        sampled(&named("w3"), 7, 1000),
        sampled(&named("w3"), 7, 1000)
    );
    assert_ne!(
        sampled(&named("w3"), 7, 1000),
        sampled(&named("w3"), 8, 1000)
    );
}

#[test]
fn sample__means_and_quantiles_of_the_built_in_ones() {
    const COUNT: usize = 200_000;
    for (name, _) in BUILT_IN {
        let workload = named(name).clamped(8, DEFAULT_MAX_MESSAGE_BYTES);
        let sizes = sampled(&workload, 1, COUNT);
        let mean = sizes.iter().map(|&size| f64::from(size)).sum::<f64>() / COUNT as f64;
        assert!(
            (mean / workload.mean_bytes() - 1.0).abs() < 0.06,
            "{name}: {mean} against {}",
            workload.mean_bytes()
        );
        for fraction in [0.1, 0.5, 0.9, 0.99] {
            let found = sizes[(fraction * COUNT as f64) as usize];
            // Within five standard deviations of the asked fraction.
            let spread = 5.0 * (fraction * (1.0 - fraction) / COUNT as f64).sqrt();
            let low = workload.quantile_bytes(fraction - spread);
            let high = workload.quantile_bytes(fraction + spread);
            assert!(
                (low..=high).contains(&found),
                "{name} {fraction}: {found} {low} {high}"
            );
        }
    }
}

prop_compose! {
    fn any_workload()(steps in prop::collection::vec((1_u32..5_000, 1_u32..100), 1..40))
        -> Workload
    {
        let total: u32 = steps.iter().map(|step| step.1).sum();
        let (mut size, mut seen) = (0, 0);
        let lines: Vec<String> = steps.iter().map(|(add, weight)| {
            size += add;
            seen += weight;
            format!("{size},{}", f64::from(seen) / f64::from(total))
        }).collect();
        let text = lines.join("\n");
        Workload::from_csv("any", &text).unwrap()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn sample__matches_any_distribution(workload in any_workload(), seed: u64) {
        const COUNT: usize = 20_000;
        let sizes = sampled(&workload, seed, COUNT);
        for point in workload.points() {
            let found = sizes.partition_point(|&size| size <= point.size_bytes) as f64
                / COUNT as f64;
            let p = point.cumulative;
            let spread = 5.5 * (p * (1.0 - p) / COUNT as f64).sqrt() + 1e-9;
            prop_assert!((found - p).abs() <= spread, "{} at {}", found, p);
            prop_assert!((workload.fraction_up_to(point.size_bytes) - p).abs() < 1e-12);
        }
    }

    #[test]
    fn clamped__mean_is_between_the_limits(
        workload in any_workload(), min in 1_u32..2_000, more in 0_u32..100_000,
    ) {
        let cut = workload.clamped(min, min + more);
        prop_assert!(cut.mean_bytes() >= f64::from(min) - 1e-6);
        prop_assert!(cut.mean_bytes() <= f64::from(min + more) + 1e-6);
        prop_assert!((cut.points().last().unwrap().cumulative - 1.0).abs() < 1e-12);
    }
}
