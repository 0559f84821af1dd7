//! ETCH013: defaults that together break a rule of the object they are in.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::broken_clause;
use super::rule::{Report, Rule, Severity};
use super::site::{Site, is_default_of_core};
use super::subject::Subject;
use kube_structural_schema::compile::Compiled;
use kube_structural_schema::finding::Finding;
use kube_structural_schema::json::Json;
use kube_structural_schema::schema::{self, Schema, SchemaType};
use kube_validation_rules::{NamedField, OwnRule, Program, RUNTIME_BUDGET};

/// A rule may ask for so many fields that are not there; more are not tried in all their combinations.
const MOST_TRIED: usize = 8;

/// What findings about rules begin with that cannot be evaluated.
const UNEVALUATED: &str = "a rule cannot be evaluated: ";

pub(super) const RULE: Rule = Rule {
    code: "ETCH013",
    name: "default-breaks-parent-rule",
    severity: Severity::Warning,
    summary: "defaults together break a rule of the object that contains them",
    help: "\
The server validates each default by itself, and never the object that they form together. If that object
breaks a rule (x-kubernetes-validations, allOf, anyOf, oneOf, not, enum, maxProperties), or a rule fails with
it, as a division by the default 0 does, the server refuses an object that sets nothing. After an upgrade that
adds such a default, it also refuses the next write to objects that were valid. A field with a default is
always there: if it meets a clause of oneOf, breaks a rule together with another field or takes the only
place, users cannot choose the other field.

Choose defaults that satisfy the rule together, or write the rule about fields that users can change. Not
reported are rules that require a field without a default or the name of a reference, unless the object itself
is a default.",
    check: Some(check),
};

fn check(subject: &Subject<'_>, report: &mut Report<'_>) {
    subject.each_site(&mut |version, site| {
        if site.schema.kind == SchemaType::Object {
            // The result of the object's own default is known for certain (ETCH004).
            let is_known = |finding: &Finding| finding.default_site() == site.path();
            if site.default().is_some() && version.default_findings().beyond_server.iter().any(is_known) {
                return;
            }
            for message in broken(site) {
                report.add(&version.name, site.path(), message);
            }
        }
    });
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
    let mut messages = broken_clause::broken(site, &filled, &empty);
    messages.extend(rules(site, &filled, &empty));
    messages
}

/// The rules that the defaults break, and those by which they exclude other fields.
fn rules(site: &Site<'_>, filled: &Value, empty: &Value) -> Vec<String> {
    let schema = site.schema;
    let is_whole = site.up.is_none() || schema.embedded_resource;
    let Some(program) = Program::compile(schema, is_whole).filter(|_| !schema.rules.is_empty()) else {
        return Vec::new();
    };
    let validate = |value: &Value| {
        let mut findings = Vec::new();
        program.validate(value, None, "", RUNTIME_BUDGET, &mut findings);
        findings
    };
    let (findings, known) = (validate(filled), validate(empty));
    let mut messages = Vec::new();
    for rule in &schema.rules {
        let Some(own) = OwnRule::compile(rule, schema, is_whole) else { continue };
        match own.holds(filled) {
            Some(false) if own.holds(empty) != Some(false) && is_settled(&own, site, filled) => {
                // A duplicate has no detail.
                let detail = |finding: &Finding| match finding.detail.as_str() {
                    "" => rule.name().to_owned(),
                    detail => detail.to_owned(),
                };
                let broken = findings.iter().filter(|finding| wording(rule, finding)).map(detail);
                messages.extend(broken.map(|detail| format!("its defaults break a rule: {detail}")));
            }
            None if own.holds(empty) != Some(false) && is_never_met(&own, site, filled) => {
                messages.extend(failure(&own, rule, &findings, &known, empty));
            }
            Some(true) => {
                let excluded = excluded(&own, site, filled, empty);
                if !excluded.is_empty() {
                    messages.push(format!(
                        "its defaults exclude {} by a rule: {}",
                        excluded.join(", "),
                        rule.name()
                    ));
                }
            }
            _ => {}
        }
    }
    let mut known = BTreeSet::new();
    messages.retain(|message| known.insert(message.clone()));
    messages
}

/// Whether a finding is that a rule does not hold, whatever message its expression gives.
fn wording(rule: &schema::Rule, finding: &Finding) -> bool {
    finding.requirement() == rule.name()
}

/// Why a rule cannot be evaluated because of the defaults; `known` are the findings about an object without
/// them. A key that is missing in what users give need not be missing there.
fn failure(
    own: &OwnRule,
    rule: &schema::Rule,
    found: &[Finding],
    known: &[Finding],
    empty: &Value,
) -> Option<String> {
    let is_it = |finding: &&Finding| {
        finding.requirement().strip_prefix(UNEVALUATED).is_some_and(|name| name == rule.name())
    };
    let lacks_key = |finding: &Finding| finding.detail.starts_with("no such key");
    let is_about_users = own.fields()?.iter().any(|field| empty.get(&field.name).is_some());
    if known.iter().filter(is_it).any(|finding| !lacks_key(finding)) {
        return None;
    }
    let first = found.iter().find(|finding| is_it(finding) && !(is_about_users && lacks_key(finding)))?;
    Some(format!("its defaults make a rule fail: {}", first.detail))
}

/// Whether no user has to set more, or the object itself comes by default. Otherwise the rule may be the one
/// that requires the missing field.
fn is_settled(rule: &OwnRule, site: &Site<'_>, filled: &Value) -> bool {
    site.default().is_some() || is_never_met(rule, site, filled)
}

/// Whether the rule is not met whatever else is set: it reads only fields that are there, or asks whether
/// others are. The empty name of a reference, which CRDs copy from Kubernetes, counts as missing.
fn is_never_met(rule: &OwnRule, site: &Site<'_>, filled: &Value) -> bool {
    let is_missing = |field: &NamedField| match filled.get(&field.name) {
        Some(value) => is_default_of_core(&field.name, value),
        None => true,
    };
    let missing = || rule.fields().map(|fields| fields.iter().filter(|field| is_missing(field)));
    missing().is_some_and(|mut missing| missing.all(|field| field.only_presence))
        && absent(rule, filled).is_some_and(|absent| {
            choices(site.schema, filled, &absent).all(|(_, value)| rule.holds(&value) != Some(true))
        })
}

/// The fields that no object can have because of the defaults: the rule asks only which fields are there, and
/// every object with such a field breaks it, although one without the defaults need not.
fn excluded(rule: &OwnRule, site: &Site<'_>, filled: &Value, empty: &Value) -> Vec<String> {
    let asks_for_presence =
        rule.fields().is_some_and(|fields| fields.iter().all(|field| field.only_presence));
    let Some(absent) = absent(rule, filled).filter(|_| asks_for_presence) else { return Vec::new() };
    let outcomes = |base: &Value, name: &str| -> Vec<Option<bool>> {
        let with_it = choices(site.schema, base, &absent).filter(|(chosen, _)| chosen.contains(&name));
        with_it.map(|(_, value)| rule.holds(&value)).collect()
    };
    let is_excluded = |name: &&&str| {
        outcomes(filled, name).iter().all(|holds| *holds == Some(false))
            && outcomes(empty, name).contains(&Some(true))
    };
    absent.iter().filter(is_excluded).map(|name| (*name).to_owned()).collect()
}

/// The fields that a rule names and an object lacks; `None` if there are too many to try them all.
fn absent<'r>(rule: &'r OwnRule, value: &Value) -> Option<Vec<&'r str>> {
    let names = rule.fields()?.iter().map(|field| &*field.name);
    let absent: Vec<&str> = names.filter(|name| value.get(*name).is_none()).collect();
    (absent.len() <= MOST_TRIED).then_some(absent)
}

/// An object with every choice of the absent fields. Their values are made up.
fn choices<'c>(
    schema: &'c Schema,
    base: &'c Value,
    absent: &'c [&'c str],
) -> impl Iterator<Item = (Vec<&'c str>, Value)> {
    (0..1_usize << absent.len()).map(move |choice| {
        let is_chosen = |(index, name): (usize, &&'c str)| (choice >> index & 1 == 1).then_some(*name);
        let chosen: Vec<&str> = absent.iter().enumerate().filter_map(is_chosen).collect();
        let mut value = base.clone();
        for name in &chosen {
            value[*name] = schema.properties.get(name).map_or(json!({}), zero);
        }
        (chosen, value)
    })
}

/// A value of a type.
fn zero(schema: &Schema) -> Value {
    match schema.kind {
        SchemaType::String => json!(""),
        SchemaType::Integer | SchemaType::Number => json!(0),
        SchemaType::Boolean => json!(false),
        SchemaType::Array => json!([]),
        _ if schema.int_or_string => json!(0),
        _ => json!({}),
    }
}

/// An object with the required objects and nothing else; a whole one has a `spec` as well.
fn emptiest(schema: &Schema, is_root: bool) -> Value {
    let mut fields = Map::new();
    for (name, property) in schema.properties.iter() {
        let is_there = super::site::requires(schema, name) || is_root && name == "spec";
        if is_there && property.default.is_none() && property.kind == SchemaType::Object {
            fields.insert(name.to_owned(), emptiest(property, false));
        }
    }
    Value::Object(fields)
}
