//! The server's own answers.

use std::collections::BTreeMap;

use go_text::regexp::Pattern;
use go_text::time::Time;
use serde_json::{Value, json};

use super::{check, look, parse_date_time, parse_duration};

/// By format, texts near the border with the answers of `strfmt.Default` of kube-openapi (the revision of
/// Kubernetes 1.37), compiled with Go 1.26.8.
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
fn texts_of_a_format_look_like_it() {
    let formats: BTreeMap<String, BTreeMap<String, Vec<String>>> =
        serde_json::from_str(SERVER).expect("JSON");
    for (name, answers) in formats {
        let Some(look) = look(&name) else {
            assert_eq!(name, "password");
            continue;
        };
        let pattern = Pattern::new(&look.pattern).expect("a pattern");
        let is_like = |text: &str| {
            let is_short = look.most.is_none_or(|most| text.chars().count() <= most as usize);
            is_short && pattern.matches(text)
        };
        let others: Vec<_> = answers["valid"].iter().filter(|text| !is_like(text)).collect();
        assert_eq!(others, [""; 0], "{name}");
        let taken = answers["invalid"].iter().find(|text| is_like(text));
        assert!(!look.is_exact || taken.is_none(), "{name}: {taken:?}");
    }
}

#[test]
fn other_formats_are_not_checked() {
    for name in ["", "int32", "ip", "UUID", "date time", "regex", "uuid6"] {
        assert!(check(name).is_none(), "{name:?}");
    }
}

/// What `strfmt` of kube-openapi (the revision of Kubernetes 1.37) reads of thousands of awkward texts, which
/// go-text keeps beside Go's own answers.
#[test]
fn times_and_durations_are_read_as_strfmt_does() {
    let agree = |lines: &str, ours: &dyn Fn(&str) -> Value| {
        assert!(lines.lines().count() >= 1000);
        for line in lines.lines() {
            let case: Value = serde_json::from_str(line).expect("a case is JSON");
            assert_eq!(ours(case["text"].as_str().expect("a text")), case["strfmt"], "{line}");
        }
    };
    agree(include_str!("duration.jsonl"), &|text| json!(parse_duration(text)));
    let moment = |time: Time| {
        let (nano, utc) = (time.to_rfc3339_nano(), time.utc().to_rfc3339());
        json!([time.seconds, time.nanos, time.offset, time.is_zero(), nano, utc])
    };
    agree(include_str!("time.jsonl"), &|text| json!(parse_date_time(text).map(moment)));
}
