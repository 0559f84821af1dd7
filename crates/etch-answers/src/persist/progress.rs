//! How far a pass has come, in words.

use etch_core::engine::by_hand::Progress;

use crate::counted;

/// How many objects are processed or verified, as a line of a terminal.
pub fn in_words(progress: &Progress) -> String {
    let Progress { counts, left_out, expected, verifies, migration: _ } = progress;
    let objects = match expected {
        Some(expected) => {
            format!("{} of {}", counts.objects, counted(expected.saturating_sub(*left_out), "object"))
        }
        None => counted(counts.objects, "object"),
    };
    let doing = if *verifies { "verified" } else { "processed" };
    format!("{objects} {doing}, {} written", counts.written)
}

#[cfg(test)]
mod tests {
    use etch_core::api::Counts;

    use super::*;

    #[test]
    fn a_total_is_shown_where_it_is_known() {
        let counts = Counts { objects: 70, written: 60, ..Counts::default() };
        let mut progress = Progress { counts, left_out: 20, expected: Some(120), ..Progress::default() };
        assert_eq!(in_words(&progress), "70 of 100 objects processed, 60 written");
        (progress.expected, progress.verifies) = (None, true);
        assert_eq!(in_words(&progress), "70 objects verified, 60 written");
        progress = Progress { expected: Some(1), ..Progress::default() };
        assert_eq!(in_words(&progress), "0 of 1 object processed, 0 written");
    }
}
