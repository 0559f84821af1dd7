//! Command lines that a user pastes into a shell.

/// A word that a shell leaves as it is.
pub fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,@%+".contains(&byte);
    match !word.is_empty() && word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_shell_would_change_is_quoted() {
        for (word, expected) in [
            ("things.example.com", "things.example.com"),
            ("", "''"),
            ("a b", "'a b'"),
            ("$(rm -r .)", "'$(rm -r .)'"),
            ("it's", r"'it'\''s'"),
            ("a\nb", "'a\nb'"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }
}
