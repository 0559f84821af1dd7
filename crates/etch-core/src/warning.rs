//! Warnings of admission, of a length that every client shows.

/// The longest warning that every client shows, in bytes. Source: Kubernetes API, `Warning` headers of
/// admission.
const LONGEST_WARNING: usize = 256;

/// A warning of a length that every client shows.
pub fn shortened(mut warning: String) -> String {
    const MORE: &str = "…";
    if warning.len() > LONGEST_WARNING {
        let end = (0..=LONGEST_WARNING - MORE.len()).rev().find(|end| warning.is_char_boundary(*end));
        warning.truncate(end.unwrap_or_default());
        warning.push_str(MORE);
    }
    warning
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_as_long_as_clients_show() {
        assert_eq!(shortened("short".to_owned()), "short");
        let long = shortened("é".repeat(400));
        assert!(long.len() <= LONGEST_WARNING && long.ends_with('…'), "{} bytes", long.len());
    }
}
