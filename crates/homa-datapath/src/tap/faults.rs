//! What goes wrong on purpose, and the dice that decide when.
//!
//! Every packet draws the same number of times, whatever happens to it, so the
//! fate of the n-th packet of a direction depends on the seed, the
//! probabilities and n only: not on time, sizes, or the fate of others.

use std::time::Duration;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore, SeedableRng};

/// Faults of one direction. Probabilities are from 0 (never) to 1 (always) and
/// independent of each other; a lost packet suffers nothing else.
#[derive(Clone, Debug, PartialEq)]
pub struct Faults {
    /// Probability that a packet vanishes.
    pub loss: f64,
    /// Probability that a packet comes twice, one after the other.
    pub duplicate: f64,
    /// Probability that bits of a packet are flipped, before it is duplicated.
    /// The tap is above the checksum of UDP, which would have made the kernel
    /// drop it, and below that of raw packets.
    pub corrupt: f64,
    /// Bits flipped in a corrupted packet; the same one may be hit twice.
    pub corrupt_bits: u32,
    /// Probability that a packet is held until others have overtaken it.
    pub reorder: f64,
    /// Packets that overtake a reordered one.
    pub reorder_packets: u32,
    /// Longest time that a reordered packet is held when too few overtake it.
    pub reorder_hold: Duration,
    /// Probability that a packet is delayed; then it is not reordered too.
    pub delay: f64,
    /// Shortest delay.
    pub delay_min: Duration,
    /// Longest delay; delays are spread evenly between the two.
    pub delay_max: Duration,
}

impl Default for Faults {
    /// None.
    fn default() -> Self {
        Self {
            loss: 0.0,
            duplicate: 0.0,
            corrupt: 0.0,
            corrupt_bits: 1,
            reorder: 0.0,
            reorder_packets: 3,
            reorder_hold: Duration::from_millis(1),
            delay: 0.0,
            delay_min: Duration::from_micros(100),
            delay_max: Duration::from_millis(1),
        }
    }
}

impl Faults {
    /// Whether anything can go wrong.
    pub fn any(&self) -> bool {
        let Self {
            loss,
            duplicate,
            corrupt,
            reorder,
            delay,
            ..
        } = self;
        [loss, duplicate, corrupt, reorder, delay]
            .into_iter()
            .any(|probability| *probability > 0.0)
    }
}

/// What happens to one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fate {
    pub(super) lost: bool,
    pub(super) duplicated: bool,
    pub(super) corrupted: bool,
    pub(super) hold: Hold,
    /// What the bits to flip follow from.
    dice: u64,
}

/// How long a packet stays behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    No,
    UntilOvertaken,
    For(Duration),
}

/// Decides the fates of one direction's packets.
pub(super) struct Dice {
    faults: Faults,
    random: Pcg64Mcg,
}

impl Dice {
    /// `lane` tells directions of one seed apart.
    pub(super) fn new(faults: Faults, seed: u64, lane: u64) -> Self {
        let random = Pcg64Mcg::seed_from_u64(seed ^ lane.rotate_right(2));
        Self { faults, random }
    }

    pub(super) fn faults(&self) -> &Faults {
        &self.faults
    }

    pub(super) fn throw(&mut self) -> Fate {
        let [loss, duplicate, corrupt, reorder, delay, dice] =
            [(); 6].map(|()| self.random.next_u64());
        let faults = &self.faults;
        let lost = hits(loss, faults.loss);
        let hold = if lost {
            Hold::No
        } else if hits(delay, faults.delay) {
            let spread = faults.delay_max.saturating_sub(faults.delay_min);
            Hold::For(faults.delay_min + spread.mul_f64(fraction(dice)))
        } else if hits(reorder, faults.reorder) {
            Hold::UntilOvertaken
        } else {
            Hold::No
        };
        Fate {
            lost,
            duplicated: !lost && hits(duplicate, faults.duplicate),
            corrupted: !lost && hits(corrupt, faults.corrupt),
            hold,
            dice,
        }
    }
}

impl Fate {
    /// Flips `bits` random bits.
    pub(super) fn corrupt(&self, packet: &mut [u8], bits: u32) {
        let mut random = Pcg64Mcg::seed_from_u64(self.dice);
        let count = packet.len() as u64 * 8;
        for _ in 0..bits {
            if let Some(bit) = random.next_u64().checked_rem(count) {
                packet[(bit / 8) as usize] ^= 1 << (bit % 8);
            }
        }
    }
}

/// A number from 0 (included) to 1 (not): 53 random bits, which a double holds
/// exactly.
#[allow(clippy::cast_precision_loss, reason = "53 bits are exact")]
fn fraction(random: u64) -> f64 {
    (random >> 11) as f64 / (1_u64 << 53) as f64
}

fn hits(random: u64, probability: f64) -> bool {
    fraction(random) < probability
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    fn all() -> Faults {
        Faults {
            loss: 0.1,
            duplicate: 0.2,
            corrupt: 0.3,
            reorder: 0.25,
            delay: 0.05,
            ..Faults::default()
        }
    }

    fn fates(faults: &Faults, seed: u64, lane: u64) -> Vec<Fate> {
        let mut dice = Dice::new(faults.clone(), seed, lane);
        (0..20_000).map(|_| dice.throw()).collect()
    }

    #[test]
    fn throw__probabilities_are_within_bounds() {
        let fates = fates(&all(), 42, 0);
        let share = |wanted: fn(&Fate) -> bool| {
            let count = fates.iter().filter(|fate| wanted(fate)).count();
            f64::from(count as u32) / f64::from(fates.len() as u32)
        };
        // Five standard deviations of 20,000 throws are below 0.02.
        for (name, share, expected) in [
            ("loss", share(|fate| fate.lost), 0.1),
            ("duplicate", share(|fate| fate.duplicated), 0.9 * 0.2),
            ("corrupt", share(|fate| fate.corrupted), 0.9 * 0.3),
            (
                "delay",
                share(|fate| matches!(fate.hold, Hold::For(_))),
                0.9 * 0.05,
            ),
            (
                "reorder",
                share(|fate| fate.hold == Hold::UntilOvertaken),
                0.9 * 0.95 * 0.25,
            ),
        ] {
            assert!((share - expected).abs() < 0.02, "{name}: {share}");
        }
    }

    #[test]
    fn throw__same_seed_same_fates() {
        assert_eq!(fates(&all(), 7, 0), fates(&all(), 7, 0));
        assert_ne!(fates(&all(), 7, 0), fates(&all(), 8, 0));
        assert_ne!(fates(&all(), 7, 0), fates(&all(), 7, 1));
    }

    #[test]
    fn throw__one_fault_does_not_move_another() {
        let only_loss = Faults {
            loss: 0.1,
            ..Faults::default()
        };
        let (some, more) = (fates(&only_loss, 7, 0), fates(&all(), 7, 0));
        assert!(some.iter().zip(&more).all(|(a, b)| a.lost == b.lost));
    }

    #[test]
    fn throw__extremes_and_delay_range() {
        let mut always = all();
        (always.loss, always.delay) = (0.0, 1.0);
        for fate in fates(&always, 1, 0) {
            let Hold::For(delay) = fate.hold else {
                panic!("{fate:?} is not delayed");
            };
            assert!(delay >= always.delay_min && delay <= always.delay_max);
            assert!(!fate.lost);
        }
    }

    #[test]
    fn corrupt__flips_that_many_bits() {
        let mut dice = Dice::new(all(), 3, 0);
        for _ in 0..100 {
            let mut packet = [0; 100];
            dice.throw().corrupt(&mut packet, 1);
            let ones: u32 = packet.iter().map(|byte| byte.count_ones()).sum();
            assert_eq!(ones, 1);
        }
        dice.throw().corrupt(&mut [], 1);
    }
}
