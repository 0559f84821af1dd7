//! Warnings of admission, in the form that every client shows.

/// The longest warning that every client shows, in bytes. Source: Kubernetes API, `Warning` headers of
/// admission.
const LONGEST_WARNING: usize = 256;

/// A warning in the form that every client shows: of this length, and one line. The API server drops a
/// warning with a control character, and a message in YAML easily ends with a line break. Source:
/// `NewWarningHeader` in apimachinery.
pub fn shortened(warning: String) -> String {
    const MORE: &str = "…";
    let is_blank = |c: char| c.is_whitespace() || c.is_control();
    let words = warning.split(is_blank).filter(|word| !word.is_empty());
    let mut warning = words.collect::<Vec<_>>().join(" ");
    if warning.len() > LONGEST_WARNING {
        warning.truncate(warning.floor_char_boundary(LONGEST_WARNING - MORE.len()));
        warning.push_str(MORE);
    }
    warning
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_one_line() {
        let lines = "\n two\r\n\tlines\u{1b}of\u{85}text\u{2028}\u{7f}\n".to_owned();
        assert_eq!(shortened(lines), "two lines of text");
        let long = shortened(format!("{}end", "\n".repeat(1_000)));
        assert_eq!(long, "end", "what is left out does not count");
    }

    #[test]
    fn a_warning_is_as_long_as_clients_show() {
        assert_eq!(shortened("short".to_owned()), "short");
        let long = shortened("é".repeat(400));
        assert!(long.len() <= LONGEST_WARNING && long.ends_with('…'), "{} bytes", long.len());
    }
}
