//! ETCH014: defaults of fields that a transition rule forbids to change.

use super::super::path::TrailStep;
use super::site::{Site, each};
use super::{Report, Rule, Severity, Subject};

pub(super) const RULE: Rule = Rule {
    code: "ETCH014",
    name: "immutable-default",
    severity: Severity::Warning,
    summary: "a field that a validation rule compares with its old value has a default",
    help: "\
A rule with `oldSelf` sees the old object with its defaults filled in. Objects that are older than the default seem to have
had it all along: their users can never set another value, and once the default changes, every write of such a user is a
forbidden change.

Leave the default out and let the controller choose, or let the rule pass where the field was never set.",
    check,
};

fn check(subject: &Subject<'_>, report: &mut Report<'_>) {
    for version in subject.in_use() {
        each(&version.schema, &mut |site| {
            if site.default().is_some()
                && !site.is_copy_of_core()
                && let Some(holder) = compared_at(site)
            {
                let message = format!("a rule of {holder} compares the field with its old value");
                report.add(&version.name, site.path(), message);
            }
        });
    }
}

/// The place whose rule compares a field, or what it is part of, with its old value.
fn compared_at(site: &Site<'_>) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    let mut at = site;
    loop {
        let rules = at.schema.rules.iter();
        if rules
            .flat_map(|rule| compared(&rule.rule))
            .any(|compared| compared.iter().zip(&names).all(|(a, b)| a == b) && compared.len() <= names.len())
        {
            return Some(at.path().to_string());
        }
        match at.step {
            TrailStep::Field(name) => names.insert(0, name),
            // Old items are found again only in lists of type map, and old values under their key: rules below see them,
            // rules above name them by an expression that is not looked into.
            _ => return None,
        }
        at = at.up?;
    }
}

/// The fields of `oldSelf` that a rule compares with those of `self`: each as the names below its place.
///
/// `has(oldSelf.x)` compares nothing, and a comparison that asks for more or less is a limit and no ban.
fn compared(rule: &str) -> Vec<Vec<&str>> {
    let mut found = Vec::new();
    for (start, _) in rule.match_indices("oldSelf") {
        let before = rule[..start].trim_end();
        let chain = chain(&rule[start + "oldSelf".len()..]);
        let Some((names, after)) = chain else { continue };
        let is_word =
            before.ends_with(|last: char| last.is_ascii_alphanumeric() || matches!(last, '_' | '.'));
        let compares = after.trim_start().starts_with("==") || before.ends_with("==");
        if !is_word && compares {
            found.push(names);
        }
    }
    found
}

/// The names of `.a.b`, and what follows; none where the chain ends in a call or an index.
fn chain(mut rest: &str) -> Option<(Vec<&str>, &str)> {
    let mut names = Vec::new();
    while let Some(below) = rest.strip_prefix('.') {
        let end =
            below.find(|each: char| !each.is_ascii_alphanumeric() && each != '_').unwrap_or(below.len());
        names.push(&below[..end]);
        rest = &below[end..];
    }
    let ends =
        !rest.starts_with(['(', '[', '_']) && !rest.starts_with(|next: char| next.is_ascii_alphanumeric());
    ends.then_some((names, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_with_the_old_value_are_found() {
        let cases: [(&str, &[&[&str]]); 7] = [
            ("self == oldSelf", &[&[]]),
            ("oldSelf==self", &[&[]]),
            ("self.a.b == oldSelf.a.b && has(self.c) == has(oldSelf.c)", &[&["a", "b"]]),
            ("!has(oldSelf.x) || oldSelf.x == self.x", &[&["x"]]),
            ("self >= oldSelf", &[]),
            ("size(self) == size(oldSelf)", &[]),
            ("self.size() == oldSelf.size()", &[]),
        ];
        for (rule, expected) in cases {
            assert_eq!(
                compared(rule),
                expected.iter().map(|names| names.to_vec()).collect::<Vec<_>>(),
                "{rule}"
            );
        }
    }
}
