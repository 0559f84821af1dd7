//! ETCH308: validation rules in CEL.

use std::collections::BTreeMap;

use serde_json::Value;

use super::keywords::{is_set, list, text};
use super::pair::{Changes, LOOSENED, Pair};
use crate::rule::{Rule, Severity};
use crate::site::shown;

pub(super) const ADDED: Rule = Rule {
    code: "ETCH308",
    name: "rule-added",
    severity: Severity::Error,
    summary: "an upgrade adds or changes a validation rule",
    help: "\
An object that was valid may break the new rule. The API server refuses to create it again, and every update
that changes the object around the rule. A rule with oldSelf refuses updates only.

A rule whose text differs in more than spaces and comments counts as new: whether one rule allows all that
another does is not worked out. If the new one does, record that with --exceptions.",
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
type Key = (String, bool);

pub(super) type Rules<'a> = BTreeMap<Key, &'a Value>;

/// The texts of the rules that are only among these.
fn beside(these: &Rules<'_>, others: &Rules<'_>) -> Vec<String> {
    these.iter().filter(|(key, _)| !others.contains_key(*key)).map(|(_, text)| shown(text)).collect()
}

/// The rules by what they evaluate to, whatever the spaces and comments between their words.
pub(super) fn rules(schema: &Value) -> Rules<'_> {
    list(schema, "x-kubernetes-validations")
        .iter()
        .map(|rule| (key(text(rule, "rule"), is_set(rule, "optionalOldSelf")), &rule["rule"]))
        .collect()
}

pub(super) fn key(rule: &str, optional_old_self: bool) -> Key {
    (normalized(rule), optional_old_self)
}

/// The words of a rule without the spaces and comments between them, other than a space that separates two.
///
/// Source: cel-go `parser/gen/CEL.g4`.
fn normalized(rule: &str) -> String {
    let is_word = |character: char| character.is_alphanumeric() || character == '_';
    let (mut text, mut rest, mut is_apart) = (String::with_capacity(rule.len()), rule, false);
    while let Some(first) = rest.chars().next() {
        let is_space = matches!(first, ' ' | '\t' | '\n' | '\r' | '\u{c}');
        if is_space || rest.starts_with("//") {
            let length = if is_space { 1 } else { rest.find('\n').unwrap_or(rest.len()) };
            (rest, is_apart) = (&rest[length..], true);
            continue;
        }
        let is_quote = matches!(first, '\'' | '"' | '`');
        let prefix = &text[text.trim_end_matches(is_word).len()..];
        let is_raw =
            first == '`' || !is_apart && ["r", "br"].iter().any(|raw| prefix.eq_ignore_ascii_case(raw));
        let length = if is_quote { quoted(rest, first, is_raw) } else { first.len_utf8() };
        if is_apart && !prefix.is_empty() && (is_quote || is_word(first)) {
            text.push(' ');
        }
        text.push_str(&rest[..length]);
        (rest, is_apart) = (&rest[length..], false);
    }
    text
}

/// How long the text is that a rule begins with, with its quotes. A raw one has no escapes.
fn quoted(rule: &str, quote: char, is_raw: bool) -> usize {
    let thrice = String::from(quote).repeat(3);
    let end = if rule.starts_with(&thrice) { thrice.as_str() } else { &thrice[..1] };
    let mut at = end.len();
    while let Some(character) = rule[at..].chars().next() {
        if rule[at..].starts_with(end) {
            return at + end.len();
        }
        at += character.len_utf8();
        if character == '\\' && !is_raw {
            at += rule[at..].chars().next().map_or(0, char::len_utf8);
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::normalized;

    #[test]
    fn only_what_stands_between_words_does_not_count() {
        for (rule, same) in [
            ("self>1", " self  > 1\n"),
            ("self > 1 // positive", "// positive\nself > 1"),
            ("size(self.a)==0||self.b in ['x']", "size( self.a ) == 0 || self.b in [ 'x' ]"),
            (r"self != r'\'&&self != 'a b'", r"self != r'\' && self != 'a b'"),
            ("self != '''it's''' ", "self != '''it's'''"),
        ] {
            assert_eq!(normalized(rule), normalized(same), "{rule}");
        }
        for (rule, other) in [
            (r"self != r'\' && self != 'a  b'", r"self != r'\' && self != 'a b'"),
            ("self > 1 // x && self < 5", "self > 1 // x\n&& self < 5"),
            ("self != '// a'", "self != '// b'"),
            (r"self != 'it\'s  a'", r"self != 'it\'s a'"),
            ("self.`a b`", "self.`a  b`"),
            ("a in b", "ain b"),
        ] {
            assert_ne!(normalized(rule), normalized(other), "{rule}");
        }
    }
}
