//! Random numbers: one stream for each purpose and place, so that asking more
//! of one does not change another, and a logarithm that is the same on every
//! machine.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// A generator whose numbers do not change with the version of a library.
pub type Stream = Pcg64Mcg;

/// What random numbers are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Time between messages of a host.
    Gaps,
    /// Their sizes.
    Sizes,
    /// Their destinations.
    Destinations,
    /// Uplinks chosen by a switch.
    Spray,
    /// Keys of a host's hash tables.
    Keys,
}

/// The stream of a purpose at a place (host or switch) in the run of `seed`.
pub fn stream(seed: u64, purpose: Purpose, place: u32) -> Stream {
    let mut mixed = seed ^ 0x9e37_79b9_7f4a_7c15;
    for part in [purpose as u64 + 1, u64::from(place) + 1] {
        mixed = (mixed ^ part.wrapping_mul(0xbf58_476d_1ce4_e5b9)).rotate_left(23);
        mixed = (mixed ^ mixed >> 31).wrapping_mul(0x94d0_49bb_1331_11eb);
    }
    Pcg64Mcg::seed_from_u64(mixed ^ mixed >> 29)
}

/// An exponentially distributed number with mean 1.
pub fn exponential(stream: &mut Stream) -> f64 {
    // In (0, 1]: its logarithm is finite.
    let u = 1.0 - stream.random::<f64>();
    -ln(u)
}

/// The natural logarithm of a positive, normal number, from the four basic
/// operations only, which IEEE 754 fixes to the bit.
fn ln(x: f64) -> f64 {
    const EXPONENT_BIAS: u32 = 1023;
    const FRACTION_BITS: u32 = 52;
    let bits = x.to_bits();
    // The sign bit is 0.
    let mut exponent = f64::from((bits >> FRACTION_BITS) as u32) - f64::from(EXPONENT_BIAS);
    let fraction = bits & ((1 << FRACTION_BITS) - 1);
    let mut m = f64::from_bits(fraction | u64::from(EXPONENT_BIAS) << FRACTION_BITS);
    if m > std::f64::consts::SQRT_2 {
        m /= 2.0;
        exponent += 1.0;
    }
    // ln m = 2 artanh s with |s| < 0.172: 12 terms are beyond 2^-53.
    let s = (m - 1.0) / (m + 1.0);
    let square = s * s;
    let mut sum = 0.0;
    for term in (0..12_u32).rev() {
        sum = sum * square + 1.0 / f64::from(2 * term + 1);
    }
    2.0 * s * sum + exponent * std::f64::consts::LN_2
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::{Purpose, exponential, ln, stream};
    use proptest::prelude::{prop_assert, proptest};
    use rand::Rng;

    proptest! {
        #[test]
        fn ln__as_the_library(x in 1e-16_f64..1.0) {
            prop_assert!((ln(x) - x.ln()).abs() <= 4e-15 * x.ln().abs().max(1.0));
        }
    }

    #[test]
    fn exponential__mean_and_median() {
        let mut stream = stream(1, Purpose::Gaps, 0);
        let mut values: Vec<f64> = (0..100_000).map(|_| exponential(&mut stream)).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        assert!((mean - 1.0).abs() < 0.02, "{mean}");
        values.sort_unstable_by(f64::total_cmp);
        let median = values[values.len() / 2];
        assert!((median - std::f64::consts::LN_2).abs() < 0.02, "{median}");
    }

    #[test]
    fn stream__differs_by_seed_purpose_and_place() {
        let first = |seed, purpose, place| stream(seed, purpose, place).random::<u64>();
        let reference = first(1, Purpose::Gaps, 0);
        assert_eq!(reference, first(1, Purpose::Gaps, 0));
        for other in [
            first(2, Purpose::Gaps, 0),
            first(1, Purpose::Sizes, 0),
            first(1, Purpose::Gaps, 1),
        ] {
            assert_ne!(reference, other);
        }
    }
}
