//! A seeded source of randomness whose sequence never changes with a library's version.
//! It must not be used where unpredictability matters.

/// SplitMix64: every seed is good, and a case number makes a new stream.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The stream of one case under a seed.
    pub fn new(seed: u64, case: u64) -> Self {
        let mut source = Self(seed);
        let seed = source.next_u64();
        let mut source = Self(seed ^ case.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        source.next_u64();
        source
    }

    /// The stream that begins with this state.
    pub fn of(state: u64) -> Self {
        Self(state)
    }

    /// The next number of all.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`, which must not be 0.
    pub fn below(&mut self, end: usize) -> usize {
        let wide = u128::from(self.next_u64()) * end as u128;
        usize::try_from(wide >> 64).expect("a product's upper half is below its second factor")
    }

    /// A number from `first` to `last`, both included.
    pub fn between(&mut self, first: usize, last: usize) -> usize {
        first + self.below(last - first + 1)
    }

    /// True in `percent` of 100 calls.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of the items, of which there must be one.
    pub fn pick<'a, T: ?Sized>(&mut self, items: &[&'a T]) -> &'a T {
        items[self.below(items.len())]
    }

    /// The index of a weight, as often as it is heavy; one weight must not be 0.
    pub fn weighted(&mut self, weights: &[usize]) -> usize {
        let mut left = self.below(weights.iter().sum());
        for (index, weight) in weights.iter().enumerate() {
            if left < *weight {
                return index;
            }
            left -= weight;
        }
        weights.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_the_same_forever() {
        let mut random = Random::new(7, 42);
        let first: Vec<_> = (0..6).map(|_| random.below(1000)).collect();
        let mut again = Random::new(7, 42);
        assert_eq!(first, (0..6).map(|_| again.below(1000)).collect::<Vec<_>>());
        let mut other = Random::new(7, 43);
        assert_ne!(first, (0..6).map(|_| other.below(1000)).collect::<Vec<_>>());
    }

    #[test]
    fn weights_are_followed() {
        let mut random = Random::new(1, 1);
        let mut counts = [0; 3];
        for _ in 0..1000 {
            counts[random.weighted(&[1, 0, 3])] += 1;
        }
        assert_eq!(counts[1], 0);
        assert!(counts[2] > 2 * counts[0], "{counts:?}");
        assert!(counts[0] > 0);
    }
}
