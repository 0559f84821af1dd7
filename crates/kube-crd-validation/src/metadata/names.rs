//! The naming rules of Kubernetes, and the server's message if one is broken.
//!
//! Source: apimachinery `pkg/api/validate/content` and `pkg/util/validation/validation.go`.

/// The text in small letters: one character for each, as in Go.
pub(crate) fn small(text: &str) -> String {
    text.chars().filter_map(|letter| letter.to_lowercase().next()).collect()
}

/// A label of RFC 1123: a namespace.
pub(crate) fn dns_label(name: &str) -> Vec<String> {
    let mut problems = too_long(name, 63, "characters");
    if !is_label(name, |first| first.is_ascii_lowercase() || first.is_ascii_digit()) {
        problems.push(if is_subdomain(name) {
            "must not contain dots".to_owned()
        } else {
            malformed(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and \
                 end with an alphanumeric character",
                LABEL,
                &["my-name", "123-abc"],
            )
        });
    }
    problems
}

/// A label of RFC 1035, which begins with a letter: a kind in small letters.
pub(crate) fn dns_1035_label(name: &str) -> Vec<String> {
    let mut problems = too_long(name, 63, "characters");
    if !is_label(name, |first| first.is_ascii_lowercase()) {
        problems.push(malformed(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character",
            "[a-z]([-a-z0-9]*[a-z0-9])?",
            &["my-name", "abc-123"],
        ));
    }
    problems
}

/// The key of a label or an annotation, or a finalizer: a name, perhaps with a subdomain in front.
pub(crate) fn qualified_name(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let parts: Vec<&str> = name.split('/').collect();
    let name = match *parts.as_slice() {
        [name] => name,
        [prefix, name] => {
            let prefixed = match prefix.is_empty() {
                true => vec!["must be non-empty".to_owned()],
                false => subdomain(prefix, "bytes"),
            };
            problems.extend(prefixed.into_iter().map(|problem| format!("prefix part {problem}")));
            name
        }
        _ => {
            let text = malformed(KEY_MESSAGE, KEY, KEY_EXAMPLES);
            return vec![format!(
                "a valid label key {text} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    }
    problems.extend(too_long(name, 63, "bytes").into_iter().map(|problem| format!("name part {problem}")));
    if !is_key(name) {
        problems.push(format!("name part {}", malformed(KEY_MESSAGE, KEY, KEY_EXAMPLES)));
    }
    problems
}

/// The value of a label, which may be empty.
pub(crate) fn label_value(value: &str) -> Vec<String> {
    let mut problems = too_long(value, 63, "bytes");
    if !value.is_empty() && !is_key(value) {
        problems.push(malformed(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
             start and end with an alphanumeric character",
            "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
            &["MyValue", "my_value", "12345"],
        ));
    }
    problems
}

/// What can stand between two slashes of a request's path.
pub(crate) fn path_segment(name: &str) -> Vec<String> {
    match name {
        "." | ".." => vec![format!("may not be '{name}'")],
        _ => path_segment_prefix(name),
    }
}

/// What such a name can begin with.
pub(crate) fn path_segment_prefix(name: &str) -> Vec<String> {
    ["/", "%"]
        .into_iter()
        .filter(|part| name.contains(part))
        .map(|part| format!("may not contain '{part}'"))
        .collect()
}

const LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const KEY_MESSAGE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                           alphanumeric character";
const KEY_EXAMPLES: &[&str] = &["MyName", "my.name", "123-abc"];

/// A subdomain of RFC 1123: the name of most objects.
pub(crate) fn dns_subdomain(name: &str) -> Vec<String> {
    subdomain(name, "characters")
}

/// A subdomain whose length errors give in these units.
fn subdomain(name: &str, unit: &str) -> Vec<String> {
    let mut problems = too_long(name, 253, unit);
    if !is_subdomain(name) {
        problems.push(malformed(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
             start and end with an alphanumeric character",
            SUBDOMAIN,
            &["example.com"],
        ));
    }
    problems
}

fn is_subdomain(name: &str) -> bool {
    name.split('.').all(|label| is_label(label, |first| first.is_ascii_lowercase() || first.is_ascii_digit()))
}

fn is_label(name: &str, is_first: impl Fn(u8) -> bool) -> bool {
    let small = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.bytes().all(|byte| small(byte) || byte == b'-')
        && name.bytes().next().is_some_and(is_first)
        && name.bytes().next_back().is_some_and(small)
}

fn is_key(name: &str) -> bool {
    let end = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    end(name.bytes().next())
        && end(name.bytes().next_back())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// Lengths count bytes, whatever unit the message names.
fn too_long(name: &str, max: usize, unit: &str) -> Vec<String> {
    if name.len() > max { vec![format!("must be no more than {max} {unit}")] } else { Vec::new() }
}

fn malformed(message: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<_> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{message} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_judged_as_by_the_server() {
        type Rule = fn(&str) -> Vec<String>;
        let long = "a".repeat(64);
        let cases: [(Rule, &[&str], &[&str]); 5] = [
            (dns_label, &["a", "0a-b"], &["", "-a", "a-", "A", "a.b", "é", &long]),
            (dns_1035_label, &["a", "a0"], &["", "0a", "a_b", &long]),
            (
                qualified_name,
                &["a", "A_b.c", "example.com/A", "a/b"],
                &["", "/a", "a/", "a/b/c", "-a", "a b", "A.com/a", &long],
            ),
            (label_value, &["", "a", "A_b.c"], &["-a", "a.", "a/b", &long]),
            (path_segment, &["a", "...", "A b"], &[".", "..", "a/b", "%"]),
        ];
        for (rule, good, bad) in cases {
            for name in good {
                assert_eq!(rule(name), [""; 0], "{name:?}");
            }
            for name in bad {
                assert_ne!(rule(name), [""; 0], "{name:?}");
            }
        }
    }

    #[test]
    fn objects_are_called_as_the_server_lets_them() {
        use crate::{is_namespace_name, is_object_name};
        for name in ["web", "a", "0", "a-b", "a--b", &"x".repeat(63)] {
            assert!(is_namespace_name(name) && is_object_name(name), "{name}");
        }
        for name in ["a.b", "a-1.b.c", &"x".repeat(253)] {
            assert!(!is_namespace_name(name) && is_object_name(name), "{name}");
        }
        for name in ["", "Web", "-a", "a-", "a_b", "a/b", "a b", ".a", "a.", "a..b", "ä", &"x".repeat(254)] {
            assert!(!is_namespace_name(name) && !is_object_name(name), "{name}");
        }
    }

    #[test]
    fn problems_add_up() {
        assert_eq!(
            qualified_name(&format!("/{}-", "a".repeat(63))),
            [
                "prefix part must be non-empty",
                "name part must be no more than 63 bytes",
                "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                 alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                 '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            ]
        );
        assert_eq!(dns_label("a.b"), ["must not contain dots"]);
        assert_eq!(path_segment("a/%"), ["may not contain '/'", "may not contain '%'"]);
    }
}
