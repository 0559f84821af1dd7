//! Patterns in which `*` stands for any run of characters.

/// Whether a text matches a pattern in which `*` stands for any run of characters.
///
/// Each part between two stars is taken where it first occurs, which is never worse than a later place: the
/// time is bounded by the product of both lengths, however many stars there are.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let head = parts.next().unwrap_or_default();
    let Some(tail) = parts.next_back() else { return pattern == text };
    let Some(mut rest) = text.strip_prefix(head) else { return false };
    for part in parts {
        match rest.find(part) {
            Some(index) => rest = &rest[index + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_run_of_characters() {
        for (pattern, text) in [
            ("*", ""),
            ("*", "a"),
            ("a*", "a"),
            ("a*a", "aa"),
            ("*.b.*", "a.b.c"),
            ("a*b*c", "abbc"),
            ("**", "x"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in
            [("", "a"), ("a", "ab"), ("a*a", "a"), ("*b", "bc"), ("a*b*c", "acb"), ("*.b.*", "b")]
        {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
        let (pattern, text) = ("*a".repeat(126), "a".repeat(125));
        assert!(!matches(&pattern, &text), "and soon");
    }
}
