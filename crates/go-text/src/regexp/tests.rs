//! Go's own answers, and the limits.

use serde_json::Value;

use super::{Pattern, PatternError, syntax_error};

/// Random patterns of awkward pieces with the result of Go 1.26.8: the error of `regexp.Compile`, or the
/// answer of `FindAllStringIndex` to a few texts.
const GO: &str = include_str!("go-1.26.jsonl");

#[test]
fn agrees_with_go() {
    for line in GO.lines() {
        let case: Value = serde_json::from_str(line).expect("a case is JSON");
        let pattern = case["pattern"].as_str().expect("a case has a pattern");
        assert_eq!(syntax_error(pattern).as_deref(), case["error"].as_str(), "{pattern:?}");
        let Some(texts) = case["found"].as_object() else { continue };
        let compiled = Pattern::new(pattern).expect("Go accepts it");
        for (text, expected) in texts {
            let found: Vec<_> = compiled.find_iter(text).map(|part| vec![part.start, part.end]).collect();
            assert_eq!(&serde_json::json!(found), expected, "{pattern:?} in {text:?}");
            assert_eq!(compiled.matches(text), !found.is_empty(), "{pattern:?} in {text:?}");
        }
    }
}

#[test]
fn nesting_beyond_a_call_stack_is_refused_without_overflow() {
    let parens = format!("{}a{}", "(".repeat(200_000), ")".repeat(200_000));
    let error = syntax_error(&parens).expect("too deep");
    assert!(error.starts_with("error parsing regexp: expression nests too deeply: `"), "{}", &error[..80]);
    assert!(syntax_error(&"(".repeat(200_000)).is_some_and(|error| error.contains("missing closing )")));
    let deep = format!("{}a{}", "(".repeat(999), ")".repeat(999));
    assert!(Pattern::new(&deep).is_ok_and(|pattern| pattern.matches("a")));
}

#[test]
fn size_is_limited_as_in_go_and_then_by_memory() {
    let long = "a{1000}".repeat(3356);
    assert!(syntax_error(&long).is_some_and(|error| error.contains("expression too large")));
    assert_eq!(syntax_error(&"a{1000}".repeat(3000)), None);
    assert!(Pattern::new(r"\pL{1000}").is_ok());
    assert!(matches!(Pattern::new(&r"\pL{1000}".repeat(3)), Err(PatternError::TooLarge)));
}
