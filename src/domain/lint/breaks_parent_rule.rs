//! ETCH013: defaults that together break a rule of the object they are in.

use serde_json::{Map, Value};

use super::super::compile::Compiled;
use super::super::finding::Finding;
use super::super::json::{Json, level};
use super::super::schema::{self, Constraints, Schema, SchemaType};
use super::super::validate::cel::{Program, RUNTIME_BUDGET};
use super::rule::{Report, Rule, Severity};
use super::site::{Site, each, is_default_of_core};
use super::subject::Subject;

pub(super) const RULE: Rule = Rule {
    code: "ETCH013",
    name: "default-breaks-parent-rule",
    severity: Severity::Warning,
    summary: "defaults together break a rule of the object that contains them",
    help: "\
The server validates each default by itself, and never the object that they form together. If that object breaks a rule
(x-kubernetes-validations, oneOf, not, maxProperties), the server refuses an object that sets nothing. After an upgrade that
adds such a default, it also refuses the next write to objects that were valid.

Choose defaults that satisfy the rule together, or write the rule about fields that users can change. Not reported are rules
that require a field without a default or the name of a reference, unless the object itself is a default.",
    check: Some(check),
};

fn check(subject: &Subject<'_>, report: &mut Report<'_>) {
    for version in subject.in_use() {
        each(&version.schema, &mut |site| {
            if site.schema.kind == SchemaType::Object {
                for message in broken(site) {
                    report.add(&version.name, site.path(), message);
                }
            }
        });
    }
}

/// What the emptiest object of a place breaks with its defaults and not without them.
fn broken(site: &Site<'_>) -> Vec<String> {
    let schema = site.schema;
    if schema.rules.is_empty() && schema.constraints.is_none() {
        return Vec::new();
    }
    let compiled = Compiled::new(schema);
    if !compiled.has_defaults() {
        return Vec::new();
    }
    let empty = Json::from(emptiest(schema, site.up.is_none()));
    let mut filled = empty.clone();
    compiled.fill(&mut filled);
    let mut messages = Vec::new();
    if let Some(constraints) = &schema.constraints {
        messages.extend(clauses(constraints, &filled, &empty));
    }
    let is_whole = site.up.is_none() || schema.embedded_resource;
    if let Some(rules) = Program::compile(schema, is_whole).filter(|_| !schema.rules.is_empty()) {
        let run = |value: &Value| {
            let mut findings = Vec::new();
            rules.validate(value, None, "", RUNTIME_BUDGET, &mut findings);
            findings
        };
        let without = run(&empty);
        // An evaluation that fails is about fields that are missing here and need not be elsewhere.
        let is_decided = |finding: &Finding| !finding.detail.contains(" evaluating rule: ");
        for finding in run(&filled).into_iter().filter(is_decided) {
            let is_new = !without.iter().any(|known| known.detail == finding.detail);
            if is_new
                && schema.rules.iter().any(|rule| said(rule, &finding) && is_settled(rule, site, &filled))
            {
                messages.push(format!("its defaults break a rule: {}", finding.detail));
            }
        }
    }
    messages
}

/// Whether a finding may be a rule's. One with an expression for its message may have said anything.
fn said(rule: &schema::Rule, finding: &Finding) -> bool {
    let detail = finding.detail.trim();
    match rule.message.trim() {
        _ if !rule.message_expression.is_empty() => true,
        "" => detail.strip_prefix("failed rule: ").is_some_and(|text| text == rule.rule.trim()),
        message => detail == message,
    }
}

/// Whether nobody is asked for more: all fields that the rule names have a default, or the object itself comes by default.
/// Otherwise the rule may be the one that asks for the field that is missing. The empty name of a reference, which CRDs copy
/// from Kubernetes, is as good as missing.
fn is_settled(rule: &schema::Rule, site: &Site<'_>, filled: &Value) -> bool {
    let is_chosen = |name: &str| filled.get(name).is_some_and(|value| !is_default_of_core(name, value));
    site.default().is_some() || fields(&rule.rule).all(is_chosen)
}

/// The fields of `self` that a rule names.
fn fields(rule: &str) -> impl Iterator<Item = &str> {
    rule.match_indices("self.").map(|(start, found)| {
        let below = &rule[start + found.len()..];
        let end =
            below.find(|next: char| !next.is_ascii_alphanumeric() && next != '_').unwrap_or(below.len());
        &below[..end]
    })
}

/// Clauses that ask only which fields are there.
fn clauses(constraints: &Constraints, filled: &Value, empty: &Value) -> Option<String> {
    let (Value::Object(filled), Value::Object(empty)) = (filled, empty) else { return None };
    let met = |clause: &Schema| {
        let names = clause.constraints.as_ref().map(|constraints| &*constraints.required);
        names.is_some_and(|names| !names.is_empty() && names.iter().all(|name| filled.contains_key(name)))
            && asks_only_for_fields(clause)
    };
    if let Some(max) = constraints.max_properties
        && i64::try_from(filled.len()).is_ok_and(|count| count > max)
        && i64::try_from(empty.len()).is_ok_and(|count| count <= max)
    {
        return Some(format!("its defaults are more fields than maxProperties: {max}"));
    }
    if constraints.one_of.iter().filter(|clause| met(clause)).count() > 1 {
        return Some("its defaults meet more than one clause of oneOf".to_owned());
    }
    constraints
        .not
        .as_deref()
        .filter(|clause| met(clause))
        .map(|_| "its defaults meet the clause of not".to_owned())
}

fn asks_only_for_fields(clause: &Schema) -> bool {
    let Some(constraints) = &clause.constraints else { return false };
    clause.properties.is_empty()
        && constraints.not.is_none()
        && [&constraints.all_of, &constraints.any_of, &constraints.one_of]
            .iter()
            .all(|clauses| clauses.is_empty())
}

/// An object with the required objects and nothing else; a whole one has a `spec` as well.
fn emptiest(schema: &Schema, is_root: bool) -> Value {
    level(|| {
        let mut fields = Map::new();
        for (name, property) in schema.properties.iter() {
            let is_there = super::site::requires(schema, name) || is_root && name == "spec";
            if is_there && property.default.is_none() && property.kind == SchemaType::Object {
                fields.insert(name.to_owned(), emptiest(property, false));
            }
        }
        Value::Object(fields)
    })
}
