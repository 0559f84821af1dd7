//! When two answers agree, and in few words how they differ.
//! Only the differences that are written here are forgiven.
//!
//! `read` agrees by the whole object, `structural` by type, field and detail of every violation, `defaults`
//! and `validate` by the set of (type, field) pairs, `crd-create` and `crd-update` by the set of (type,
//! field, detail), and a refused document just by being refused. In a detail that quotes Go's compiler of
//! regular expressions or that of CEL, the words behind `error` may differ.

use std::collections::{BTreeMap, BTreeSet};

use kube_structural_schema::json::{self};
use serde_json::Value;

use super::vector::{Issue, Op, Outcome};

/// How many differences a diff names, and how many characters of a value it shows.
const SHOWN: usize = 6;
const SHOWN_VALUE: usize = 100;

/// Compares an answer with the right one.
///
/// # Errors
/// The differences, one a line, a few of them at most: `-` is what was expected, `+` what came.
pub fn compare(op: Op, expected: &Outcome, found: &Outcome) -> Result<(), String> {
    match (expected, found) {
        (Outcome::Issues(_), Outcome::Wavering { .. }) => compare(op, expected, &settle(found, expected)),
        (Outcome::Refused(_), Outcome::Refused(_)) => Ok(()),
        (Outcome::Object(expected), Outcome::Object(found)) => {
            let mut differences = Vec::new();
            objects("", expected, found, &mut differences);
            verdict(differences)
        }
        (Outcome::Issues(expected), Outcome::Issues(found)) if op == Op::Structural => {
            verdict(counted(expected, found, |issue| {
                format!("{} {} {}", issue.kind, issue.field, shorten(&issue.detail))
            }))
        }
        (Outcome::Issues(expected), Outcome::Issues(found)) if op.is_about_crds() => {
            let set = |issues: &[Issue]| -> BTreeSet<Issue> { issues.iter().map(without_quotes).collect() };
            let (wanted, came) = (set(expected), set(found));
            let show = |sign: char, issue: &Issue| {
                format!("{sign} {} {} {}", issue.kind, issue.field, shorten(&issue.detail))
            };
            let missing = wanted.difference(&came).map(|issue| show('-', issue));
            verdict(missing.chain(came.difference(&wanted).map(|issue| show('+', issue))).collect())
        }
        (Outcome::Issues(expected), Outcome::Issues(found)) => {
            let pairs = |issues: &[Issue]| -> BTreeSet<(String, String)> {
                issues.iter().map(|issue| (issue.kind.clone(), issue.field.clone())).collect()
            };
            let (wanted, came) = (pairs(expected), pairs(found));
            let side = |sign: char, pairs: BTreeSet<&(String, String)>, issues: &[Issue]| -> Vec<String> {
                pairs
                    .into_iter()
                    .map(|(kind, field)| {
                        let detail = issues
                            .iter()
                            .find(|issue| issue.kind == *kind && issue.field == *field)
                            .map_or("", |issue| &issue.detail);
                        format!("{sign} {kind} {field} {}", shorten(detail))
                    })
                    .collect()
            };
            let mut differences = side('-', wanted.difference(&came).collect(), expected);
            differences.extend(side('+', came.difference(&wanted).collect(), found));
            verdict(differences)
        }
        (expected, found) => Err(format!("- {}\n+ {}", gist(expected), gist(found))),
    }
}

/// [`compare`], and the words about rules that could not be evaluated too: those are Go's own errors.
///
/// # Errors
/// As there.
pub fn compare_words(op: Op, expected: &Outcome, found: &Outcome) -> Result<(), String> {
    compare(op, expected, found)?;
    let settled = settle(found, expected);
    let (Outcome::Issues(expected), Outcome::Issues(found)) = (expected, &settled) else { return Ok(()) };
    let words = |issues: &[Issue]| -> BTreeSet<Issue> {
        let is_failure = |issue: &&Issue| {
            issue.detail.contains(" evaluating rule: ") || issue.detail.contains(" signature for rule: ")
        };
        issues.iter().filter(is_failure).map(without_quotes).collect()
    };
    let (wanted, came) = (words(expected), words(found));
    let show = |sign: char, issue: &Issue| format!("{sign} {} {} {}", issue.kind, issue.field, issue.detail);
    let missing = wanted.difference(&came).map(|issue| show('-', issue));
    verdict(missing.chain(came.difference(&wanted).map(|issue| show('+', issue))).collect())
}

/// An issue without what it quotes of a compiler's words.
pub fn without_quotes(issue: &Issue) -> Issue {
    let quote =
        ["error parsing regexp", "ERROR: <input>"].into_iter().find_map(|start| issue.detail.find(start));
    let detail = issue.detail[..quote.unwrap_or(issue.detail.len())].to_owned();
    Issue { kind: issue.kind.clone(), field: issue.field.clone(), detail }
}

/// A wavering answer with that one of each group that was expected, if it was one of them; any other answer
/// as it is.
pub fn settle(answer: &Outcome, expected: &Outcome) -> Outcome {
    let (Outcome::Wavering { certain, either }, Outcome::Issues(expected)) = (answer, expected) else {
        return answer.clone();
    };
    let wanted =
        |issue: &&Issue| expected.iter().any(|other| other.kind == issue.kind && other.field == issue.field);
    let chosen = either.iter().filter_map(|group| group.iter().find(wanted).or(group.first()));
    Outcome::Issues(certain.iter().chain(chosen).cloned().collect())
}

fn verdict(mut differences: Vec<String>) -> Result<(), String> {
    if differences.is_empty() {
        return Ok(());
    }
    let more = differences.len().saturating_sub(SHOWN);
    differences.truncate(SHOWN);
    if more > 0 {
        differences.push(format!("  … and {more} more"));
    }
    Err(differences.join("\n"))
}

/// The differences between two lists as multisets.
fn counted(expected: &[Issue], found: &[Issue], show: impl Fn(&Issue) -> String) -> Vec<String> {
    let mut surplus: BTreeMap<&Issue, isize> = BTreeMap::new();
    for issue in found {
        *surplus.entry(issue).or_default() += 1;
    }
    for issue in expected {
        *surplus.entry(issue).or_default() -= 1;
    }
    surplus
        .into_iter()
        .filter(|(_, count)| *count != 0)
        .map(|(issue, count)| {
            let sign = if count < 0 { '-' } else { '+' };
            let times = if count.abs() > 1 { format!(" ({} times)", count.abs()) } else { String::new() };
            format!("{sign} {}{times}", show(issue))
        })
        .collect()
}

fn objects(at: &str, expected: &Value, found: &Value, differences: &mut Vec<String>) {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            let keys: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
            for key in keys {
                let at = format!("{at}.{key}");
                match (expected.get(key), found.get(key)) {
                    (Some(expected), Some(found)) => objects(&at, expected, found, differences),
                    (Some(expected), None) => differences.push(format!("- {at}: {}", show(expected))),
                    (None, Some(found)) => differences.push(format!("+ {at}: {}", show(found))),
                    (None, None) => {}
                }
            }
        }
        (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => {
            for (index, (expected, found)) in expected.iter().zip(found).enumerate() {
                objects(&format!("{at}[{index}]"), expected, found, differences);
            }
        }
        (expected, found) if json::same(expected, found) => {}
        (expected, found) => {
            differences.push(format!("- {at}: {}\n+ {at}: {}", show(expected), show(found)));
        }
    }
}

fn gist(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Object(object) => format!("object {}", show(object)),
        Outcome::Issues(issues) => format!("{} violations", issues.len()),
        Outcome::Wavering { certain, either } => format!("{} violations", certain.len() + either.len()),
        Outcome::Refused(error) => format!("refused: {}", shorten(error)),
    }
}

fn show(value: &Value) -> String {
    let text = json::Json::from(value.clone()).to_vec();
    shorten(&String::from_utf8_lossy(&text))
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN_VALUE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn issue(kind: &str, field: &str, detail: &str) -> Issue {
        Issue { kind: kind.to_owned(), field: field.to_owned(), detail: detail.to_owned() }
    }

    #[test]
    fn objects_agree_by_value() {
        let object = |value: Value| Outcome::Object(value.into());
        assert_eq!(compare(Op::Read, &object(json!({"a": 1.0})), &object(json!({"a": 1}))), Ok(()));
        let diff = compare(Op::Read, &object(json!({"a": [1], "b": 2})), &object(json!({"a": [2], "c": 3})));
        assert_eq!(diff, Err("- .a[0]: 1\n+ .a[0]: 2\n- .b: 2\n+ .c: 3".to_owned()));
    }

    #[test]
    fn structural_violations_agree_with_their_details_and_number() {
        let one = Outcome::Issues(vec![issue("t", "f", "d")]);
        let two = Outcome::Issues(vec![issue("t", "f", "d"), issue("t", "f", "d")]);
        let other = Outcome::Issues(vec![issue("t", "f", "e")]);
        assert_eq!(compare(Op::Structural, &one, &one), Ok(()));
        assert_eq!(compare(Op::Structural, &one, &two), Err("+ t f d".to_owned()));
        assert_eq!(compare(Op::Structural, &one, &other), Err("- t f d\n+ t f e".to_owned()));
        assert_eq!(compare(Op::Validate, &two, &other), Ok(()));
    }

    #[test]
    fn crds_agree_by_details_save_for_a_compilers_words() {
        let wording = |detail: &str| Outcome::Issues(vec![issue("t", "f", detail)]);
        let twice = Outcome::Issues(vec![issue("t", "f", "d"), issue("t", "f", "d")]);
        assert_eq!(compare(Op::CrdCreate, &wording("d"), &twice), Ok(()));
        assert!(compare(Op::CrdCreate, &wording("d"), &wording("e")).is_err());
        let wrong = |words: &str| wording(&format!("isn't: error parsing regexp: {words}"));
        assert_eq!(compare(Op::CrdUpdate, &wrong("a"), &wrong("b")), Ok(()));
    }

    #[test]
    fn one_of_a_group_is_enough_and_needed() {
        let (a, b, c) = (issue("t", "a", ""), issue("t", "b", ""), issue("t", "c", ""));
        let wavering =
            Outcome::Wavering { certain: vec![c.clone()], either: vec![vec![a.clone(), b.clone()]] };
        let expected = |issues: &[&Issue]| Outcome::Issues(issues.iter().copied().cloned().collect());
        assert_eq!(compare(Op::Defaults, &expected(&[&a, &c]), &wavering), Ok(()));
        assert_eq!(compare(Op::Defaults, &expected(&[&b, &c]), &wavering), Ok(()));
        assert!(compare(Op::Defaults, &expected(&[&a, &b, &c]), &wavering).is_err());
        assert!(compare(Op::Defaults, &expected(&[&c]), &wavering).is_err());
    }

    #[test]
    fn a_refusal_agrees_with_any_refusal_and_with_nothing_else() {
        let refused = |why: &str| Outcome::Refused(why.to_owned());
        assert_eq!(compare(Op::Read, &refused("a"), &refused("b")), Ok(()));
        assert!(compare(Op::Defaults, &refused("a"), &Outcome::Issues(vec![])).is_err());
    }
}
