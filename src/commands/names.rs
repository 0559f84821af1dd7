//! What namespaces and custom resources can be called.
//! It must not ask whether there is one of that name.

/// How long the name of a namespace can be, and that of an object.
const NAMESPACE: usize = 63;
const OBJECT: usize = 253;

/// Whether a namespace can have this name: a label of RFC 1123.
pub(crate) fn is_namespace(text: &str) -> bool {
    text.len() <= NAMESPACE && is_label(text)
}

/// Whether a custom resource can have this name: labels with dots between them.
pub(crate) fn is_object(text: &str) -> bool {
    text.len() <= OBJECT && text.split('.').all(is_label)
}

/// Lower case letters, digits, and `-` between them.
fn is_label(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = text.bytes().next().zip(text.bytes().next_back());
    ends.is_some_and(|(first, last)| is_letter(first) && is_letter(last))
        && text.bytes().all(|byte| is_letter(byte) || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_the_server_takes() {
        for name in ["web", "a", "0", "a-b", "a--b", &"x".repeat(63)] {
            assert!(is_namespace(name) && is_object(name), "{name}");
        }
        for name in ["a.b", "a-1.b.c", &"x".repeat(253)] {
            assert!(!is_namespace(name) && is_object(name), "{name}");
        }
        for name in ["", "Web", "-a", "a-", "a_b", "a/b", "a b", ".a", "a.", "a..b", "ä", &"x".repeat(254)] {
            assert!(!is_namespace(name) && !is_object(name), "{name}");
        }
    }
}
