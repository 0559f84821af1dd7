//! ETCH014: defaults of fields that a transition rule forbids to change.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::rule::{Report, Rule, Severity};
use super::site::Site;
use super::subject::Subject;
use kube_structural_schema::json::Json;
use kube_structural_schema::path::TrailStep;
use kube_structural_schema::schema::{Rule as SchemaRule, Schema};
use kube_validation_rules::{OwnRule, Program, RUNTIME_BUDGET};

pub(super) const RULE: Rule = Rule {
    code: "ETCH014",
    name: "immutable-default",
    severity: Severity::Warning,
    summary: "a field that a validation rule compares with its old value has a default",
    help: "\
A rule with `oldSelf` sees the old object with its defaults filled in. Objects that are older than the default
seem to have always had it: their users can never set another value, and once the default changes, every write
by such a user is a forbidden change.

Remove the default and let the controller choose the value, or let the rule pass if the old value is the
default. Such rules are not reported.",
    check: Some(check),
};

fn check(subject: &Subject<'_>, report: &mut Report<'_>) {
    let mut known = Known::new();
    subject.each_site(&mut |version, site| {
        if let Some(default) = site.default()
            && !site.is_copy_of_core()
            && let Some(holder) = held_at(site, default, &mut known)
        {
            let message = format!("a rule of {holder} compares the field with its old value");
            report.add(&version.name, site.path(), message);
        }
    });
}

/// What rules compare with `oldSelf`, by where they are in memory: each is compiled once.
type Known = BTreeMap<*const SchemaRule, Vec<Vec<String>>>;

/// The place whose rule holds a field, or what it is part of, to its old value, as long as that is the
/// default.
fn held_at(site: &Site<'_>, default: &Value, known: &mut Known) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    let mut at = site;
    loop {
        let mut holds = |rule: &SchemaRule| {
            let is_whole = at.up.is_none() || at.schema.embedded_resource;
            let compared =
                known.entry(std::ptr::from_ref(rule)).or_insert_with(|| compared(rule, at.schema, is_whole));
            compared.iter().any(|compared| begins_with(&names, compared))
                && !allows_change_from_default(rule, &names, site.schema, default)
        };
        if at.schema.rules.iter().any(&mut holds) {
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

fn begins_with(names: &[&str], start: &[String]) -> bool {
    names.len() >= start.len() && names.iter().zip(start).all(|(name, other)| name == other)
}

/// The fields of `oldSelf` that a rule compares with `==`: each as the names below its place.
fn compared(rule: &SchemaRule, schema: &Schema, is_whole: bool) -> Vec<Vec<String>> {
    if !rule.rule.contains("oldSelf") {
        return Vec::new();
    }
    let own = OwnRule::compile(rule, schema, is_whole);
    own.iter().flat_map(OwnRule::compared_with_old).map(<[String]>::to_vec).collect()
}

/// Whether a rule accepts every other value where the old one is the default, as
/// `oldSelf != 'Active' || self == oldSelf` does for a field that begins as `Inactive`.
///
/// It is evaluated over an object with this field alone. A rule that needs another one does not compile
/// there, and counts as a ban.
fn allows_change_from_default(rule: &SchemaRule, names: &[&str], field: &Schema, default: &Value) -> bool {
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
    document["x-kubernetes-validations"] =
        json!([{"rule": rule.rule, "optionalOldSelf": rule.optional_old_self}]);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_lets_go_of_the_default_bans_nothing() {
        let allows = |rule: &str, names: &[&str], field: &Schema, default: &Value| {
            allows_change_from_default(&own(rule, false), names, field, default)
        };
        let allows_change_from_default = |rule: &str, field: Value| {
            let default = field["default"].clone();
            let field = Schema::parse(&field).expect("a schema");
            [
                allows(rule, &[], &field, &default),
                allows(&rule.replace("elf", "elf.a"), &["a"], &field, &default),
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
        assert!(!allows(elsewhere, &["a"], &field, &json!("")), "it asks for another field");
    }

    #[test]
    fn comparisons_with_the_old_value_are_found() {
        let text = || json!({"type": "string"});
        let schema = json!({"type": "object", "properties": {"a": {"type": "object",
            "properties": {"b": text()}},
            "c": text(), "x": text(), "a-b": text(), "namespace": text()}});
        let schema = Schema::parse(&schema).expect("a schema");
        let cases: [(&str, &[&[&str]]); 16] = [
            ("self == oldSelf", &[&[]]),
            ("oldSelf==self", &[&[]]),
            ("self.a.b == oldSelf.a.b && has(self.c) == has(oldSelf.c)", &[&["a", "b"]]),
            ("!has(oldSelf.x) || oldSelf.x == self.x", &[&["x"]]),
            ("self.x >= oldSelf.x", &[]),
            ("size(self.x) == size(oldSelf.x)", &[]),
            ("self.x.size() == oldSelf.x.size()", &[]),
            ("self.?x == oldSelf.?x", &[&["x"]]),
            ("self.?a.?b.orValue('') == oldSelf.?a.?b.orValue('')", &[&["a", "b"]]),
            ("self.a__dash__b == oldSelf.a__dash__b", &[&["a-b"]]),
            ("self.__namespace__ == oldSelf.?namespace.value()", &[&["namespace"]]),
            ("(oldSelf.x) == (self.x)", &[&["x"]]),
            ("has(oldSelf.x) == has(self.x)", &[]),
            ("'oldSelf == self' == self.x", &[]),
            ("[self].all(oldSelf, oldSelf == self)", &[]),
            ("(has(oldSelf.x) ? oldSelf.x : '') == self.x", &[&["x"]]),
        ];
        for (rule, expected) in cases {
            assert_eq!(compared(&own(rule, false), &schema, false), expected, "{rule}");
        }
        let optional = own("!oldSelf.hasValue() || oldSelf.value().x == self.x", true);
        assert_eq!(compared(&optional, &schema, false), [["x"]]);
        let cases: [(&str, &[&[&str]]); 9] = [
            ("oldSelf.optMap(old, old.x == self.x).orValue(true)", &[&["x"]]),
            ("oldSelf.optMap(old, old.x).orValue(self.x) == self.x", &[&["x"]]),
            ("oldSelf.optFlatMap(old, old.?a.?b).orValue('') == self.a.b", &[&["a", "b"]]),
            ("oldSelf.?a.optMap(a, a.b == self.a.b).orValue(true)", &[&["a", "b"]]),
            (
                "oldSelf.optMap(o, optional.of(o.a).optMap(o, o.b == self.c).value()).orValue(true)",
                &[&["a", "b"]],
            ),
            ("oldSelf.optMap(old, [self].all(old, old.x == self.x)).orValue(true)", &[]),
            ("optional.of(self).optMap(old, old.x == self.c).orValue(true)", &[]),
            ("(oldSelf.hasValue() ? oldSelf.value().x : self.x) == self.x", &[&["x"]]),
            ("oldSelf.optMap(old, has(old.x)).orValue(true) == has(self.x)", &[]),
        ];
        for (rule, expected) in cases {
            assert_eq!(compared(&own(rule, true), &schema, false), expected, "{rule}");
        }
    }

    fn own(rule: &str, optional_old_self: bool) -> SchemaRule {
        let rule = json!({"rule": rule, "optionalOldSelf": optional_old_self});
        let schema = json!({"type": "object", "x-kubernetes-validations": [rule]});
        Schema::parse(&schema).expect("a schema").rules[0].clone()
    }
}
