//! The server's own answers.

use std::collections::BTreeMap;

use super::check;

/// By format, texts near the border with the answers of `strfmt.Default` of kube-openapi (the revision of Kubernetes 1.37),
/// compiled with Go 1.26.8.
const SERVER: &str = include_str!("go-1.26.json");

#[test]
fn agrees_with_the_server() {
    let formats: BTreeMap<String, BTreeMap<String, Vec<String>>> =
        serde_json::from_str(SERVER).expect("JSON");
    assert_eq!(formats.len(), 27, "every format, one of them under two names");
    for (name, answers) in formats {
        let check = check(&name).expect("a known format");
        let wrong = |answer: &str, expected: bool| -> Vec<String> {
            answers[answer].iter().filter(|text| check(text) != expected).cloned().collect()
        };
        assert_eq!(wrong("valid", true), [""; 0], "{name}");
        assert_eq!(wrong("invalid", false), [""; 0], "{name}");
    }
}

#[test]
fn other_formats_are_not_checked() {
    for name in ["", "int32", "ip", "UUID", "date time", "regex", "uuid6"] {
        assert!(check(name).is_none(), "{name:?}");
    }
}
