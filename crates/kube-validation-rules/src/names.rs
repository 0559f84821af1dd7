//! How property names are spelled as CEL identifiers: `foo-bar` is `foo__dash__bar`.
//!
//! Source: apiserver `pkg/cel/escaping.go`.

use std::borrow::Cow;

/// The words that CEL's grammar keeps for itself; a property of such a name is written `__name__`.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The escape sequences, and what each stands for. The first must be looked for first.
const SEQUENCES: [(&str, &str); 4] =
    [("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__")];

/// The identifier for a property name; `None` if CEL has no way to name it.
pub(super) fn escape(name: &str) -> Option<Cow<'_, str>> {
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(Cow::Owned(format!("__{name}__")));
    }
    if !name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b'/')) {
        return None;
    }
    if !name.contains(['.', '-', '/']) && !name.contains("__") {
        return Some(Cow::Borrowed(name));
    }
    let mut escaped = String::with_capacity(name.len() + 16);
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        let sequence = SEQUENCES.iter().find(|(plain, _)| rest.starts_with(plain));
        match sequence {
            Some((plain, spelled)) => {
                escaped.push_str(spelled);
                rest = &rest[plain.len()..];
            }
            None => {
                escaped.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    Some(Cow::Owned(escaped))
}

/// Whether CEL's grammar keeps a word for itself.
pub(super) fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// The property name behind an identifier; `None` if it holds a sequence that no name escapes to.
pub(super) fn unescape(identifier: &str) -> Option<Cow<'_, str>> {
    if !identifier.contains("__") {
        return Some(Cow::Borrowed(identifier));
    }
    let mut name = String::with_capacity(identifier.len());
    let mut rest = identifier;
    while let Some(first) = rest.chars().next() {
        let Some(word) = enclosed(rest) else {
            name.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        };
        let sequence_len = word.len() + 4;
        match word {
            "underscores" => name.push_str("__"),
            "dot" => name.push('.'),
            "dash" => name.push('-'),
            "slash" => name.push('/'),
            reserved if RESERVED.contains(&reserved) && sequence_len == identifier.len() => {
                name.push_str(reserved)
            }
            _ => return None,
        }
        rest = &rest[sequence_len..];
    }
    Some(Cow::Owned(name))
}

/// The text between two pairs of underscores that `text` starts with.
fn enclosed(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("__")?;
    let end = inner.find('_')?;
    (end > 0 && inner[end..].starts_with("__")).then(|| &inner[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_and_back() {
        let cases = [
            ("a", Some("a")),
            ("a1_b", Some("a1_b")),
            ("a.a", Some("a__dot__a")),
            ("a-a", Some("a__dash__a")),
            ("a/a", Some("a__slash__a")),
            ("a__a", Some("a__underscores__a")),
            ("a___a", Some("a__underscores___a")),
            ("a____a", Some("a__underscores____underscores__a")),
            ("a__dot__a", Some("a__underscores__dot__underscores__a")),
            ("namespace", Some("__namespace__")),
            ("in", Some("__in__")),
            ("intrue", Some("intrue")),
            ("int", Some("int")),
            ("$a", None),
            ("a$", None),
            ("é", None),
            ("1a", None),
            ("", None),
            ("-a", Some("__dash__a")),
        ];
        for (name, expected) in cases {
            let escaped = escape(name);
            assert_eq!(escaped.as_deref(), expected, "{name}");
            if let Some(escaped) = escaped {
                assert_eq!(unescape(&escaped).as_deref(), Some(name), "{escaped}");
            }
        }
    }

    #[test]
    fn an_unknown_sequence_names_nothing() {
        let cases = [
            ("a__dots__b", None),
            ("a__in__", None),
            ("__int__", None),
            ("a__", Some("a__")),
            ("__a", Some("__a")),
            ("a___b", Some("a___b")),
            ("__dot____dot__", Some("..")),
        ];
        for (identifier, expected) in cases {
            assert_eq!(unescape(identifier).as_deref(), expected, "{identifier}");
        }
    }
}
