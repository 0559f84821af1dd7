//! Chance that depends on a seed alone.

use crate::random::Random;

/// Numbers that follow from a seed.
#[derive(Clone, Debug)]
pub struct Dice(Random);

impl Dice {
    /// The numbers of a seed.
    pub fn of(seed: u64) -> Self {
        Self(Random::of(seed))
    }

    /// A number below `sides`, which is not zero.
    pub fn roll(&mut self, sides: usize) -> usize {
        (self.0.next() % sides as u64) as usize
    }
}
