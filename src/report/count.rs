//! How many of something, in words.

/// A number and what is counted: `1 object`, `2 objects`.
pub fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "object")), ["0 objects", "1 object", "2 objects"]);
    }
}
