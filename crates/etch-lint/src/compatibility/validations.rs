//! ETCH308: validation rules in CEL.

use std::collections::BTreeMap;

use serde_json::Value;

use super::pair::{Changes, LOOSENED, Pair, is_set, list, text};
use crate::rule::{Rule, Severity};
use crate::site::shown;

pub(super) const ADDED: Rule = Rule {
    code: "ETCH308",
    name: "rule-added",
    severity: Severity::Error,
    summary: "an upgrade adds or changes a validation rule",
    help: "\
An object that was valid may break the new rule. The API server refuses to create it again, and every update that changes the
object around the rule. A rule with oldSelf refuses updates only.

A rule whose text differs in more than spaces counts as new: whether one rule allows all that another does is not worked out. If
the new one does, record that with --exceptions.",
    check: None,
};

pub(super) fn check(pair: &Pair<'_>, changes: &mut Changes) {
    let (old, new) = (rules(pair.old), rules(pair.new));
    for rule in beside(&new, &old) {
        let message = format!("the rule {rule} is new");
        changes.add(&ADDED, pair.path.clone(), message);
    }
    for rule in beside(&old, &new) {
        changes.add(&LOOSENED, pair.path.clone(), format!("the rule {rule} is gone"));
    }
}

/// What a rule evaluates to: its text, and whether it is evaluated without an old value.
type Rules<'a> = BTreeMap<(String, bool), &'a Value>;

/// The texts of the rules that are only among these.
fn beside(these: &Rules<'_>, others: &Rules<'_>) -> Vec<String> {
    these.iter().filter(|(key, _)| !others.contains_key(*key)).map(|(_, text)| shown(text)).collect()
}

/// The rules by what they evaluate to, whatever the spaces between their words.
fn rules(schema: &Value) -> Rules<'_> {
    list(schema, "x-kubernetes-validations")
        .iter()
        .map(|rule| ((normalized(text(rule, "rule")), is_set(rule, "optionalOldSelf")), &rule["rule"]))
        .collect()
}

/// The rule with one space for each run of them, outside of texts.
fn normalized(rule: &str) -> String {
    let mut text = String::with_capacity(rule.len());
    let mut quote = None;
    let mut escaped = false;
    for character in rule.trim().chars() {
        match quote {
            None if character.is_whitespace() => {
                if !text.ends_with(' ') {
                    text.push(' ');
                }
                continue;
            }
            None if matches!(character, '\'' | '"') => quote = Some(character),
            Some(end) if character == end && !escaped => quote = None,
            _ => {}
        }
        escaped = quote.is_some() && character == '\\' && !escaped;
        text.push(character);
    }
    text
}
