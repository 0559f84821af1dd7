//! ETCH014: defaults of fields that a transition rule forbids to change.

use serde_json::{Value, json};

use super::rule::{Report, Rule, Severity};
use super::site::{Site, each};
use super::subject::Subject;
use kube_structural_schema::json::Json;
use kube_structural_schema::path::TrailStep;
use kube_structural_schema::schema::Schema;
use kube_validation_rules::{Program, RUNTIME_BUDGET};

pub(super) const RULE: Rule = Rule {
    code: "ETCH014",
    name: "immutable-default",
    severity: Severity::Warning,
    summary: "a field that a validation rule compares with its old value has a default",
    help: "\
A rule with `oldSelf` sees the old object with its defaults filled in. Objects that are older than the default seem to have
always had it: their users can never set another value, and once the default changes, every write by such a user is a
forbidden change.

Remove the default and let the controller choose the value, or let the rule pass if the old value is the default. Such rules
are not reported.",
    check: Some(check),
};

fn check(subject: &Subject<'_>, report: &mut Report<'_>) {
    for version in subject.in_use() {
        each(&version.schema, &mut |site| {
            if let Some(default) = site.default()
                && !site.is_copy_of_core()
                && let Some(holder) = held_at(site, default)
            {
                let message = format!("a rule of {holder} compares the field with its old value");
                report.add(&version.name, site.path(), message);
            }
        });
    }
}

/// The place whose rule holds a field, or what it is part of, to its old value, as long as that is the
/// default.
fn held_at(site: &Site<'_>, default: &Value) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    let mut at = site;
    loop {
        let holds = |rule: &str| {
            compared(rule).iter().any(|compared| names.starts_with(compared))
                && !allows_change_from_default(rule, &names, site.schema, default)
        };
        if at.schema.rules.iter().any(|rule| holds(&rule.rule)) {
            return Some(at.path().to_string());
        }
        match at.step {
            TrailStep::Field(name) => names.insert(0, name),
            // Old items are found again only in lists of type map, and old values under their key: rules
            // below see them, rules above name them by an expression that is not looked into.
            _ => return None,
        }
        at = at.up?;
    }
}

/// Whether a rule accepts every other value where the old one is the default, as
/// `oldSelf != 'Active' || self == oldSelf` does for a field that begins as `Inactive`.
///
/// It is evaluated over an object with this field alone. A rule that needs another one does not compile
/// there, and counts as a ban.
fn allows_change_from_default(rule: &str, names: &[&str], field: &Schema, default: &Value) -> bool {
    let others = others(field, default);
    if others.is_empty() {
        return false;
    }
    let around = |inner: Value, wrap: &dyn Fn(&str, Value) -> Value| {
        names.iter().rev().fold(inner, |inner, name| wrap(name, inner))
    };
    let mut document = around(
        json!({"type": field.kind.as_str()}),
        &|name, below| json!({"type": "object", "properties": {name: below}}),
    );
    document["x-kubernetes-validations"] = json!([{"rule": rule}]);
    let Some(program) = Schema::parse(&document).ok().and_then(|schema| Program::compile(&schema, false))
    else {
        return false;
    };
    let object = |value: &Value| Json::from(around(value.clone(), &|name, below| json!({name: below})));
    let old = object(default);
    let passes = |other: &Value| {
        let mut findings = Vec::new();
        program.validate(&object(other), Some(&old), "", RUNTIME_BUDGET, &mut findings);
        findings.is_empty()
    };
    others.iter().all(passes)
}

/// Values that a user may want instead of the default: all that the schema lists, or one; none of an object
/// or a list.
fn others(field: &Schema, default: &Value) -> Vec<Value> {
    let made_up = match default {
        Value::Bool(flag) => json!(!flag),
        Value::String(text) => json!(format!("{text}x")),
        Value::Number(number) => match number.as_i64().and_then(|number| number.checked_add(1)) {
            Some(other) => json!(other),
            None => json!(number.as_f64().unwrap_or_default() + 1.0),
        },
        Value::Null | Value::Array(_) | Value::Object(_) => return Vec::new(),
    };
    let listed = field.constraints.iter().flat_map(|constraints| constraints.allowed.iter());
    let mut listed: Vec<Value> =
        listed.map(|value| Value::clone(value)).filter(|value| value != default).collect();
    if listed.is_empty() {
        listed.push(made_up);
    }
    listed
}

/// The fields of `oldSelf` that a rule compares with those of `self`: each as the names below its place.
///
/// `has(oldSelf.x)` compares nothing, and a comparison for more or less is a limit, not a ban.
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

/// The names of `.a.b`, and what follows; `None` if the chain ends in a call or an index.
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
    fn a_rule_that_lets_go_of_the_default_bans_nothing() {
        let allows_change_from_default = |rule: &str, field: Value| {
            let default = field["default"].clone();
            let field = Schema::parse(&field).expect("a schema");
            [
                allows_change_from_default(rule, &[], &field, &default),
                allows_change_from_default(&rule.replace("elf", "elf.a"), &["a"], &field, &default),
            ]
        };
        let state =
            |default: &str| json!({"type": "string", "enum": ["Active", "Inactive"], "default": default});
        let once_active = "oldSelf != 'Active' || self == oldSelf";
        assert_eq!(allows_change_from_default(once_active, state("Inactive")), [true; 2]);
        assert_eq!(allows_change_from_default(once_active, state("Active")), [false; 2]);
        assert_eq!(allows_change_from_default("self == oldSelf", state("Inactive")), [false; 2]);
        let text = || json!({"type": "string", "default": ""});
        assert_eq!(allows_change_from_default("oldSelf == '' || self == oldSelf", text()), [true; 2]);
        assert_eq!(allows_change_from_default("oldSelf == 'x' || self == oldSelf", text()), [false; 2]);
        let number = || json!({"type": "integer", "default": 0});
        assert_eq!(allows_change_from_default("oldSelf == 0 || self == oldSelf", number()), [true; 2]);
        assert_eq!(
            allows_change_from_default("oldSelf == self", json!({"type": "boolean", "default": true})),
            [false; 2]
        );
        assert_eq!(
            allows_change_from_default("self == oldSelf || true", json!({"type": "object", "default": {}})),
            [false; 2]
        );
        let field = Schema::parse(&text()).expect("a schema");
        let elsewhere = "self.a == oldSelf.a || oldSelf.b";
        assert!(
            !super::allows_change_from_default(elsewhere, &["a"], &field, &json!("")),
            "it asks for another field"
        );
    }

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
