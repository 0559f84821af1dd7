//! ETCH013: defaults that together break a rule of the object they are in.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::rule::{Report, Rule, Severity};
use super::site::{Site, each, is_default_of_core};
use super::subject::Subject;
use etch_core::field::place_in;
use kube_crd_validation::validate;
use kube_structural_schema::compile::Compiled;
use kube_structural_schema::finding::Finding;
use kube_structural_schema::json::Json;
use kube_structural_schema::schema::{self, Constraints, Schema, SchemaType};
use kube_validation_rules::{NamedField, OwnRule, Program, RUNTIME_BUDGET};

/// A rule may ask for so many fields that are not there; more are not tried in all their combinations.
const MOST_TRIED: usize = 8;

pub(super) const RULE: Rule = Rule {
    code: "ETCH013",
    name: "default-breaks-parent-rule",
    severity: Severity::Warning,
    summary: "defaults together break a rule of the object that contains them",
    help: "\
The server validates each default by itself, and never the object that they form together. If that object breaks a rule
(x-kubernetes-validations, allOf, anyOf, oneOf, not, maxProperties), the server refuses an object that sets nothing. After an
upgrade that adds such a default, it also refuses the next write to objects that were valid. A field with a default is always
there: if it meets a clause of oneOf, breaks a rule together with another field or takes the only place, users cannot choose
the other field.

Choose defaults that satisfy the rule together, or write the rule about fields that users can change. Not reported are rules
that require a field without a default or the name of a reference, unless the object itself is a default.",
    check: Some(check),
};

fn check(subject: &Subject<'_>, report: &mut Report<'_>) {
    for version in subject.in_use() {
        each(&version.schema, &mut |site| {
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
        match clauses(constraints, &filled, &empty) {
            Some(message) => messages.push(message),
            None => messages
                .extend(unusable(schema, constraints, &filled).or_else(|| values(schema, &filled, &empty))),
        }
    }
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
    let mut findings = Vec::new();
    program.validate(filled, None, "", RUNTIME_BUDGET, &mut findings);
    let mut messages = Vec::new();
    for rule in &schema.rules {
        let Some(own) = OwnRule::compile(rule, schema, is_whole) else { continue };
        // An evaluation that fails is about fields that are missing here and need not be elsewhere.
        match own.holds(filled) {
            Some(false) if own.holds(empty) != Some(false) && is_settled(&own, site, filled) => {
                // A duplicate has no detail.
                let detail = |finding: &Finding| match finding.detail.as_str() {
                    "" => rule.name().to_owned(),
                    detail => detail.to_owned(),
                };
                let broken = findings.iter().filter(|finding| said(rule, finding)).map(detail);
                messages.extend(broken.map(|detail| format!("its defaults break a rule: {detail}")));
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
fn said(rule: &schema::Rule, finding: &Finding) -> bool {
    finding.requirement() == rule.name()
}

/// Whether no user has to set more: whatever else is set does not change that the rule is broken, or the
/// object itself comes by default. Otherwise the rule may be the one that requires the missing field. The
/// empty name of a reference, which CRDs copy from Kubernetes, counts as missing.
fn is_settled(rule: &OwnRule, site: &Site<'_>, filled: &Value) -> bool {
    let is_missing = |field: &NamedField| match filled.get(&field.name) {
        Some(value) => is_default_of_core(&field.name, value),
        None => true,
    };
    let missing = || rule.fields().map(|fields| fields.iter().filter(|field| is_missing(field)));
    site.default().is_some()
        || missing().is_some_and(|mut missing| missing.all(|field| field.only_presence))
            && absent(rule, filled).is_some_and(|absent| {
                choices(site.schema, filled, &absent).all(|(_, value)| rule.holds(&value) == Some(false))
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

/// Clauses that only require fields to be there.
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

/// What the defaults make impossible, whatever else is set: their fields cannot be left out.
fn unusable(schema: &Schema, constraints: &Constraints, filled: &Value) -> Option<String> {
    let Value::Object(filled) = filled else { return None };
    let mut clauses = constraints.one_of.iter().filter_map(|clause| given(clause, filled));
    if clauses.clone().any(|(by_default, names)| by_default == names.len())
        && let Some((_, names)) = clauses.find(|(by_default, names)| *by_default < names.len())
    {
        return Some(format!(
            "its defaults meet a clause of oneOf, so that an object with {} meets two",
            names.join(" and ")
        ));
    }
    if let Some((by_default, names)) = constraints.not.as_deref().and_then(|clause| given(clause, filled))
        && (1..names.len()).contains(&by_default)
    {
        let others: Vec<_> = names.iter().filter(|name| !filled.contains_key(*name)).cloned().collect();
        return Some(format!("its defaults and {} meet the clause of not", others.join(" and ")));
    }
    let max = constraints.max_properties?;
    let is_required = |name: &str| constraints.required.iter().any(|other| other == name);
    let is_by_default = |(name, field): (&str, &Schema)| field.default.is_some() && !is_required(name);
    if !schema.properties.iter().any(is_by_default) {
        return None;
    }
    // A required field takes a place, too, whoever gives it.
    let others = schema.properties.iter().map(|(name, _)| name).filter(|name| !filled.contains_key(*name));
    let (given, optional): (Vec<&str>, Vec<&str>) = others.partition(|name| is_required(name));
    let other = match max.cmp(&i64::try_from(filled.len() + given.len()).ok()?) {
        Ordering::Less => given.first(),
        Ordering::Equal => optional.first(),
        Ordering::Greater => None,
    };
    other.map(|other| format!("its defaults leave no room for {other}: maxProperties: {max}"))
}

/// How many of the fields that a clause requires are there, and all of them; `None` if it requires more than
/// fields.
fn given<'c>(clause: &'c Schema, filled: &Map<String, Value>) -> Option<(usize, &'c [String])> {
    let names = &*clause.constraints.as_deref()?.required;
    let by_default = names.iter().filter(|name| filled.contains_key(*name)).count();
    (asks_only_for_fields(clause) && !names.is_empty()).then_some((by_default, names))
}

/// How the values of defaults break the clauses: the server checks each default against its own schema alone.
fn values(schema: &Schema, filled: &Value, empty: &Value) -> Option<String> {
    let Value::Object(fields) = filled else { return None };
    let constraints = schema.constraints.as_deref()?;
    let mut named = Vec::new();
    let all = [&constraints.all_of, &constraints.any_of, &constraints.one_of];
    all.into_iter().flatten().chain(constraints.not.as_deref()).for_each(|clause| names(clause, &mut named));
    // The clauses may require a field that has no default.
    if named.is_empty() || !named.iter().all(|name| fields.contains_key(*name)) {
        return None;
    }
    let known = validate(schema, empty);
    let of_fields: Vec<Finding> = fields
        .iter()
        .filter_map(|(name, field)| Some((name, validate(schema.properties.get(name)?, field))))
        .flat_map(|(name, found)| found.into_iter().map(move |finding| inside(name, finding)))
        .collect();
    let same = |one: &Finding, other: &Finding| {
        one.place() == other.place() && one.kind == other.kind && one.requirement() == other.requirement()
    };
    let is_new = |finding: &&Finding| {
        !known.iter().chain(&of_fields).any(|other| same(finding, other))
            && !schema.rules.iter().any(|rule| said(rule, finding))
    };
    let found = validate(schema, filled);
    let first = found.iter().find(is_new)?;
    let place = place_in(first.place(), schema, filled);
    let at = if place.is_root() { String::new() } else { format!("{place}: ") };
    Some(format!("its defaults break a clause of allOf, anyOf, oneOf or not: {at}{}", first.requirement()))
}

/// The fields that a clause names, here and below.
fn names<'a>(clause: &'a Schema, found: &mut Vec<&'a str>) {
    found.extend(clause.properties.iter().map(|(name, _)| name));
    let Some(constraints) = clause.constraints.as_deref() else { return };
    found.extend(constraints.required.iter().map(String::as_str));
    let all = [&constraints.all_of, &constraints.any_of, &constraints.one_of];
    all.into_iter().flatten().chain(constraints.not.as_deref()).for_each(|clause| names(clause, found));
}

/// A finding about a field as one about the object that it is in.
fn inside(name: &str, finding: Finding) -> Finding {
    let field = match finding.place() {
        "<nil>" => name.to_owned(),
        below if below.starts_with('[') => format!("{name}{below}"),
        below => format!("{name}.{below}"),
    };
    Finding { field, unnamed: None, ..finding }
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
    let mut fields = Map::new();
    for (name, property) in schema.properties.iter() {
        let is_there = super::site::requires(schema, name) || is_root && name == "spec";
        if is_there && property.default.is_none() && property.kind == SchemaType::Object {
            fields.insert(name.to_owned(), emptiest(property, false));
        }
    }
    Value::Object(fields)
}
