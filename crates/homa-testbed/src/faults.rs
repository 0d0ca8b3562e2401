//! What goes wrong on a link, and the dice that decide when.

use std::time::Duration;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::{RngCore, SeedableRng};

/// What a link does to frames, in both directions. Probabilities are from 0
/// (never) to 1 (always) and independent of each other; a lost frame suffers
/// nothing else. Only frames to one station suffer, not broadcasts.
#[derive(Clone, Debug, PartialEq)]
pub struct Faults {
    /// Probability that a frame vanishes.
    pub loss: f64,
    /// Probability that a frame comes twice.
    pub duplicate: f64,
    /// Probability that one byte of the IP packet, anywhere in it, is another
    /// one. Ethernet's own checksum is not there to find that; those of IP, UDP,
    /// TCP and Homa find every such damage.
    pub corrupt: f64,
    /// Probability that a frame is held for [`reorder_hold`](Self::reorder_hold)
    /// while others overtake it.
    pub reorder: f64,
    /// How long.
    pub reorder_hold: Duration,
    /// What every frame takes to cross the link.
    pub delay: Duration,
    /// What it takes longer at most, spread evenly; frames overtake each other.
    pub jitter: Duration,
}

impl Default for Faults {
    /// None.
    fn default() -> Self {
        Self {
            loss: 0.0,
            duplicate: 0.0,
            corrupt: 0.0,
            reorder: 0.0,
            reorder_hold: Duration::from_micros(300),
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
        }
    }
}

/// What happens to one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fate {
    pub(crate) lost: bool,
    pub(crate) duplicated: bool,
    pub(crate) corrupted: bool,
    pub(crate) reordered: bool,
    /// All delays together.
    pub(crate) hold: Duration,
    /// What the damage follows from.
    damage: u64,
}

/// Decides the fates of the frames of one sender: the n-th one's depends on
/// the seed, the probabilities and n only.
pub(crate) struct Dice(Pcg64Mcg);

impl Dice {
    pub(crate) fn new(seed: u64, sender: usize) -> Self {
        let lane = (sender as u64 + 1).rotate_right(8);
        Self(Pcg64Mcg::seed_from_u64(seed ^ lane))
    }

    pub(crate) fn throw(&mut self, faults: &Faults) -> Fate {
        let [loss, duplicate, corrupt, reorder, jitter, damage] =
            [(); 6].map(|()| self.0.next_u64());
        let lost = hits(loss, faults.loss);
        let reordered = !lost && hits(reorder, faults.reorder);
        let held = if reordered {
            faults.reorder_hold
        } else {
            Duration::ZERO
        };
        Fate {
            lost,
            duplicated: !lost && hits(duplicate, faults.duplicate),
            corrupted: !lost && hits(corrupt, faults.corrupt),
            reordered,
            hold: faults.delay + faults.jitter.mul_f64(fraction(jitter)) + held,
            damage,
        }
    }
}

impl Fate {
    /// Changes one byte.
    pub(crate) fn damage(&self, packet: &mut [u8]) {
        let Some(at) = (self.damage >> 8).checked_rem(packet.len() as u64) else {
            return;
        };
        if let Some(byte) = packet.get_mut(at as usize) {
            // Not by 0.
            *byte ^= (self.damage % 255) as u8 + 1;
        }
    }
}

fn hits(random: u64, probability: f64) -> bool {
    fraction(random) < probability
}

/// A number from 0 (included) to 1 (not).
#[allow(clippy::cast_precision_loss, reason = "53 bits are exact")]
fn fraction(random: u64) -> f64 {
    (random >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
#[allow(non_snake_case, reason = "test names are function__case")]
mod tests {
    use super::*;

    #[test]
    fn throw__follows_the_seed_and_nothing_else() {
        let faults = Faults {
            loss: 0.1,
            duplicate: 0.1,
            corrupt: 0.1,
            reorder: 0.1,
            ..Faults::default()
        };
        let fates = |seed| {
            let mut dice = Dice::new(seed, 0);
            (0..1000)
                .map(|_| dice.throw(&faults))
                .collect::<Vec<Fate>>()
        };
        assert_eq!(fates(1), fates(1));
        assert_ne!(fates(1), fates(2));
        let count = |is: fn(&Fate) -> bool| fates(1).iter().filter(|fate| is(fate)).count();
        for count in [
            count(|fate| fate.lost),
            count(|fate| fate.duplicated),
            count(|fate| fate.corrupted),
            count(|fate| fate.reordered),
        ] {
            assert!((60..=140).contains(&count), "{count} of 1000 at 10 %");
        }
    }

    #[test]
    fn throw__without_faults_nothing_happens() {
        let mut dice = Dice::new(7, 1);
        for _ in 0..1000 {
            let fate = dice.throw(&Faults::default());
            assert!(!(fate.lost || fate.duplicated || fate.corrupted || fate.reordered));
            assert_eq!(fate.hold, Duration::ZERO);
        }
    }

    #[test]
    fn damage__changes_exactly_one_byte() {
        let mut dice = Dice::new(3, 0);
        for length in 1..200 {
            let fate = dice.throw(&Faults::default());
            let mut packet = vec![0; length];
            fate.damage(&mut packet);
            assert_eq!(packet.iter().filter(|byte| **byte != 0).count(), 1);
        }
        dice.throw(&Faults::default()).damage(&mut []);
    }
}
