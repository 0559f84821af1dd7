//! Go's own answers to thousands of awkward texts, written by `e2e/oracle/ports` with Go 1.26.8.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::base64::{Alphabet, decode};
use super::strconv::{format_float, parse_float, quote};
use super::time::{Time, parse_duration};
use super::url::Url;
use super::{fmt, json, mail};

/// Compares the answers of `ours` with Go's for each case, of which there must be many.
fn agree(lines: &str, ours: impl Fn(&str, &Value) -> Value) {
    let mut count = 0;
    for line in lines.lines() {
        let case: Value = serde_json::from_str(line).expect("a case is JSON");
        let text = case["text"].as_str().unwrap_or_default();
        let Value::Object(answers) = ours(text, &case) else { panic!("answers are an object") };
        for (name, answer) in answers {
            assert_eq!(answer, case[&name], "{name} of {line}");
        }
        count += 1;
    }
    assert!(count >= 1000, "only {count} cases");
}

#[test]
fn base64_is_decoded_as_in_go() {
    let hex = |bytes: Vec<u8>| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    agree(include_str!("go-1.26/base64.jsonl"), |text, _| {
        json!({
            "standard": decode(text.as_bytes(), Alphabet::Standard).map(hex),
            "url": decode(text.as_bytes(), Alphabet::Url).map(hex),
        })
    });
}

#[test]
fn durations_are_read_as_in_go() {
    agree(include_str!("go-1.26/duration.jsonl"), |text, _| json!({ "nanos": parse_duration(text) }));
    let twice = "9223372036854775808ns".repeat(2);
    assert_eq!(parse_duration(&twice), Some(0), "Go's sum wraps around");
}

#[test]
fn times_are_read_and_written_as_in_go() {
    let moment = |time: Time| {
        let (nano, utc) = (time.to_rfc3339_nano(), time.utc().to_rfc3339());
        json!([time.seconds, time.nanos, time.offset, time.is_zero(), nano, utc])
    };
    agree(include_str!("go-1.26/time.jsonl"), |text, _| {
        json!({
            "rfc3339": Time::parse_rfc3339(text).map(moment),
            "local": Time::parse_local(text).map(moment),
            "date": Time::parse_date(text).map(moment),
        })
    });
}

#[test]
fn urls_are_read_and_written_as_in_go() {
    let parts = |url: Url| {
        json!({
            "string": url.to_string(), "scheme": url.scheme(), "host": url.host(), "hostname": url.hostname(),
            "port": url.port(), "path": url.escaped_path(), "query": url.query(),
        })
    };
    agree(include_str!("go-1.26/url.jsonl"), |text, _| {
        json!({
            "request": Url::parse_request_uri(text).ok().map(|url| url.to_string()),
            "url": Url::parse(text).ok().map(parts),
        })
    });
}

#[test]
fn mail_addresses_are_read_as_in_go() {
    agree(include_str!("go-1.26/mail.jsonl"), |text, _| json!({ "address": mail::is_address(text) }));
}

#[test]
fn texts_are_quoted_as_in_go() {
    agree(include_str!("go-1.26/quote.jsonl"), |text, _| json!({ "quote": quote(text) }));
}

#[test]
fn floats_are_read_and_written_as_in_go() {
    let bits =
        |float: f64| format!("{:x}", if float.is_nan() { 0x7ff8_0000_0000_0001 } else { float.to_bits() });
    agree(include_str!("go-1.26/float.jsonl"), |text, case| {
        if case.get("text").is_some() {
            return json!({ "bits": parse_float(text).map(bits) });
        }
        let bits = u64::from_str_radix(case["bits"].as_str().expect("bits"), 16).expect("a number");
        let float = f64::from_bits(bits);
        let mut ours = BTreeMap::from([("shown", format_float(float))]);
        if case.get("json").is_some() {
            ours.insert("json", json::marshal(&json!(float)));
        }
        json!(ours)
    });
}

#[test]
fn documents_are_written_as_in_go() {
    agree(
        include_str!("go-1.26/json.jsonl"),
        |_, case| json!({ "json": json::marshal(&case["value"]), "shown": fmt::value(&case["value"]) }),
    );
}
