//! Summaries of many measurements: medians, percentiles, and numbers that are short enough to print.

/// The number in the middle; between two, their mean.
pub(super) fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// The number that so many percent of these, the smallest first, are below.
pub(super) fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let at = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or(f64::NAN)
}

/// A number with so many digits behind the point.
pub(super) fn rounded(number: f64, digits: i32) -> f64 {
    let factor = 10_f64.powi(digits);
    (number * factor).round() / factor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[3.0]), 3.0);
        assert_eq!(median(&[9.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), 3.0);
    }

    #[test]
    fn a_percentile_is_one_of_the_numbers() {
        let numbers: Vec<f64> = (0..200).map(f64::from).collect();
        assert_eq!((percentile(&numbers, 50), percentile(&numbers, 99)), (100.0, 198.0));
        assert_eq!(percentile(&[7.0], 99), 7.0);
        assert!(percentile(&[], 99).is_nan());
    }

    #[test]
    fn a_number_has_as_many_digits_as_are_asked_for() {
        assert_eq!((rounded(1.2345, 2), rounded(1.2345, 3)), (1.23, 1.235));
    }
}
