//! The naming rules of Kubernetes, and the server's message if one is broken.
//!
//! Source: apimachinery `pkg/util/validation/validation.go` and `pkg/api/validation/path`.

use kube_structural_schema::names::{self, CHARACTERS};

pub(crate) use kube_structural_schema::names::{label_value, qualified_name};

/// The text in small letters: one character for each, as in Go.
pub(crate) fn small(text: &str) -> String {
    text.chars().filter_map(|letter| letter.to_lowercase().next()).collect()
}

/// A label of RFC 1123: a namespace.
pub(crate) fn dns_label(name: &str) -> Vec<String> {
    names::dns_label(name, CHARACTERS)
}

/// A label of RFC 1035, which begins with a letter: a kind in small letters.
pub(crate) fn dns_1035_label(name: &str) -> Vec<String> {
    names::dns_1035_label(name, CHARACTERS)
}

/// A subdomain of RFC 1123: the name of most objects.
pub(crate) fn dns_subdomain(name: &str) -> Vec<String> {
    names::dns_subdomain(name, CHARACTERS)
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
                "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
                 with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
                 validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            ]
        );
        assert_eq!(dns_label("a.b"), ["must not contain dots"]);
        assert_eq!(path_segment("a/%"), ["may not contain '/'", "may not contain '%'"]);
    }
}
