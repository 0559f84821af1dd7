//! Estimates as a least and a most, with arithmetic that stops at the largest number.
//!
//! Source: cel-go `checker/cost.go`, `SizeEstimate` and `CostEstimate`.

/// A size or a cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) min: u64,
    pub(crate) max: u64,
}

impl Range {
    /// Of what nothing is known.
    pub(crate) const UNKNOWN: Self = Self { min: 0, max: u64::MAX };
    /// What [`Self::union`] starts from.
    pub(crate) const NOTHING: Self = Self { min: u64::MAX, max: 0 };

    pub(crate) fn fixed(value: u64) -> Self {
        Self { min: value, max: value }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub(crate) fn times(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// So many times as much, rounded up.
    pub(crate) fn scaled(self, factor: f64) -> Self {
        Self { min: scale(self.min, factor), max: scale(self.max, factor) }
    }

    /// From the lesser least to the greater most.
    pub(crate) fn union(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

fn scale(value: u64, factor: f64) -> u64 {
    // A float beyond the largest number becomes that number.
    (value as f64 * factor).ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_number_is_the_end() {
        let all = Range::UNKNOWN;
        assert_eq!(all.plus(Range::fixed(1)), Range { min: 1, max: u64::MAX });
        assert_eq!(all.times(Range::fixed(2)).max, u64::MAX);
        assert_eq!(all.times(Range::fixed(0)).max, 0);
        assert_eq!(all.scaled(2.0).max, u64::MAX);
        assert_eq!(all.scaled(0.1).max, 1_844_674_407_370_955_264);
        assert_eq!(Range::fixed(1).scaled(0.1), Range::fixed(1));
        assert_eq!(Range::NOTHING.union(Range::fixed(3)), Range::fixed(3));
    }
}
