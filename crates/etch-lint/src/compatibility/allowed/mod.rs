//! The values that a schema allowed at a place, and whether all of them fit what a new schema says there, or none
//! does. A yes is certain; a no may be something that is not worked out.

mod counts;
mod numbers;
mod strings;

use serde_json::{Value, json};

use super::pair::{
    ANYTHING, META, NOTHING, fields, is_set, keeps_unknown, list, present, property, text, values,
};
use kube_crd_validation::Validator;
use kube_structural_schema::json::{Json, same};
use kube_structural_schema::path::Step;
use kube_structural_schema::schema::Schema;

/// How many clauses of anyOf and oneOf are assumed at once.
const DEEPEST: usize = 2;
/// How many clauses one of them may have.
const MOST_CLAUSES: usize = 24;

/// The values that were allowed at a place, as the new schema reads them.
#[derive(Clone)]
pub(super) struct Allowed<'a> {
    /// What all of them satisfy. The first one is the schema outside of clauses.
    held: Vec<&'a Value>,
    /// What none of them satisfies.
    denied: Vec<&'a Value>,
    /// The new schema outside of clauses.
    now: &'a Value,
    /// Whether no object has a value there.
    is_absent: bool,
    /// Whether the values are resources.
    is_resource: bool,
    /// Whether all fields are kept, as those of `metadata`.
    is_open: bool,
    /// How many clauses are assumed.
    depth: usize,
}

impl<'a> Allowed<'a> {
    /// Whole objects.
    pub(super) fn root(old: &'a Value, now: &'a Value) -> Self {
        let mut root = Self {
            held: Vec::new(),
            denied: Vec::new(),
            now,
            is_absent: false,
            is_resource: true,
            is_open: false,
            depth: 0,
        };
        root.hold(old);
        root
    }

    /// Adds what a schema says, and the clauses that hold with it.
    fn hold(&mut self, schema: &'a Value) {
        self.held.push(schema);
        let only = ["anyOf", "oneOf"].into_iter().map(|keyword| list(schema, keyword));
        for clause in list(schema, "allOf").iter().chain(only.filter(|clauses| clauses.len() == 1).flatten())
        {
            self.hold(clause);
        }
        self.denied.extend(present(schema, "not"));
    }

    /// Those that satisfy one of some clauses, and if only one may hold, none of the others.
    fn in_case(&self, clauses: &'a [Value], index: usize, is_only: bool) -> Self {
        let mut case = Self { depth: self.depth + 1, ..self.clone() };
        case.hold(&clauses[index]);
        let others = clauses.iter().enumerate().filter(|(other, _)| is_only && *other != index);
        case.denied.extend(others.map(|(_, clause)| clause));
        case
    }

    /// The values at a place below.
    pub(super) fn child(&self, step: &Step) -> Self {
        let below = |schema: &'a Value| match step {
            Step::Field(name) | Step::Key(name) => property(schema, name).or_else(|| values(schema)),
            Step::Items | Step::Index(_) => present(schema, "items"),
            Step::Values => values(schema),
        };
        let is_kept = |schema| {
            let is_of_resource = matches!(step, Step::Field(name) if META.contains(&name.as_str()));
            keeps_unknown(schema) || self.is_open || self.is_resource && is_of_resource
        };
        let declared = |schema| below(schema).or_else(|| is_kept(schema).then_some(&*ANYTHING));
        let (before, now) = (declared(self.held[0]), declared(self.now));
        let is_embedded = |schema: Option<&Value>| {
            schema.is_some_and(|schema| is_set(schema, "x-kubernetes-embedded-resource"))
        };
        let mut child = Self {
            held: Vec::new(),
            denied: Vec::new(),
            now: now.unwrap_or(&NOTHING),
            is_absent: self.is_absent || before.is_none() || now.is_none(),
            is_resource: is_embedded(before) && is_embedded(now),
            is_open: self.is_open || self.is_resource && *step == Step::Field("metadata".to_owned()),
            depth: self.depth,
        };
        child.hold(before.unwrap_or(&NOTHING));
        self.held[1..].iter().filter_map(|&schema| below(schema)).for_each(|schema| child.hold(schema));
        child
    }

    fn field(&self, name: &str) -> Self {
        self.child(&Step::Field(name.to_owned()))
    }

    /// Whether every value fits a schema.
    pub(super) fn all_fit(&self, schema: &Value) -> bool {
        let Some(keywords) = schema.as_object() else { return false };
        if self.new_default().is_some_and(|default| fits(default, schema) != Some(true)) {
            return false;
        }
        if self.is_absent || self.held.contains(&schema) {
            return true;
        }
        if let Some(values) = self.values() {
            return values.iter().all(|value| fits(value, schema) == Some(true));
        }
        keywords.keys().all(|keyword| self.all_fit_keyword(keyword, schema))
            || self.in_each_case(|case| case.all_fit(schema))
    }

    /// Whether no value fits a schema.
    pub(super) fn none_fits(&self, schema: &Value) -> bool {
        let Some(keywords) = schema.as_object() else { return false };
        if self.new_default().is_some_and(|default| fits(default, schema) != Some(false)) {
            return false;
        }
        if self.is_absent || self.denied.contains(&schema) {
            return true;
        }
        if let Some(values) = self.values() {
            return values.iter().all(|value| fits(value, schema) == Some(false));
        }
        keywords.keys().any(|keyword| self.none_fits_keyword(keyword, schema))
            || self.is_denied(schema)
            || self.in_each_case(|case| case.none_fits(schema))
    }

    /// Whether what satisfies a schema satisfies one that none of the values does.
    fn is_denied(&self, schema: &Value) -> bool {
        self.depth < DEEPEST && {
            let mut fitting = Allowed { depth: self.depth + 1, ..self.clone() };
            fitting.hold(schema);
            self.denied.iter().any(|denied| fitting.all_fit(denied))
        }
    }

    /// Whether something holds by each clause of an anyOf or a oneOf.
    fn in_each_case(&self, holds: impl Fn(&Self) -> bool) -> bool {
        let all = |keyword, is_only| {
            self.held.iter().any(|&schema| {
                let clauses = list(schema, keyword);
                (2..=MOST_CLAUSES).contains(&clauses.len())
                    && (0..clauses.len()).all(|index| holds(&self.in_case(clauses, index, is_only)))
            })
        };
        self.depth < DEEPEST && (all("anyOf", false) || all("oneOf", true))
    }

    fn all_fit_keyword(&self, keyword: &str, schema: &Value) -> bool {
        let clauses = list(schema, keyword);
        match keyword {
            _ if schema[keyword].is_null() || !self.is_judged_by(keyword) => true,
            "format" if ["integer", "number"].contains(&text(schema, "type")) => {
                numbers::all_fit(self, keyword, schema)
            }
            "minimum" | "maximum" | "multipleOf" => numbers::all_fit(self, keyword, schema),
            "enum" | "format" | "pattern" | "minLength" | "maxLength" => {
                strings::all_fit(self, keyword, schema)
            }
            "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
                counts::all_fit(self, keyword, schema)
            }
            "required" => names(schema).all(|name| self.has(name)),
            "properties" => fields(schema).all(|(name, below)| self.field(name).all_fit(below)),
            "items" => self.child(&Step::Items).all_fit(&schema[keyword]),
            "allOf" => clauses.iter().all(|clause| self.all_fit(clause)),
            "anyOf" => clauses.is_empty() || clauses.iter().any(|clause| self.all_fit(clause)),
            "oneOf" => clauses.is_empty() || self.is_one(clauses),
            "not" => self.none_fits(&schema[keyword]),
            "type" => self.kind() == Some(text(schema, keyword)),
            "uniqueItems" => !is_set(schema, keyword),
            "additionalProperties" => is_set(schema, keyword),
            "description" | "title" | "example" | "externalDocs" | "default" | "nullable"
            | "exclusiveMinimum" | "exclusiveMaximum" => true,
            _ => false,
        }
    }

    fn none_fits_keyword(&self, keyword: &str, schema: &Value) -> bool {
        let clauses = list(schema, keyword);
        let is_refused = |value: &Value| self.held.iter().any(|held| fits(value, held) == Some(false));
        match keyword {
            _ if schema[keyword].is_null() || !self.is_judged_by(keyword) => false,
            "enum" => !clauses.is_empty() && clauses.iter().all(is_refused),
            "pattern" | "minLength" | "maxLength" | "format" => strings::none_fits(self, schema),
            "minimum" | "maximum" => numbers::none_fits(self, keyword, schema),
            "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
                counts::none_fits(self, keyword, schema)
            }
            "required" => names(schema).any(|name| self.lacks(name)),
            "properties" => fields(schema).any(|(name, below)| {
                let is_there = self.has(name) || names(schema).any(|required| required == name);
                is_there && self.field(name).none_fits(below)
            }),
            "allOf" => clauses.iter().any(|clause| self.none_fits(clause)),
            "anyOf" => !clauses.is_empty() && clauses.iter().all(|clause| self.none_fits(clause)),
            "oneOf" => {
                let fitting = clauses.iter().filter(|clause| self.all_fit(clause)).count();
                !clauses.is_empty() && (fitting > 1 || clauses.iter().all(|clause| self.none_fits(clause)))
            }
            "not" => self.all_fit(&schema[keyword]),
            _ => false,
        }
    }

    /// Whether every value fits the same one of some clauses, and none fits another.
    fn is_one(&self, clauses: &[Value]) -> bool {
        let fitting = clauses.iter().position(|clause| self.all_fit(clause));
        fitting.is_some_and(|fitting| {
            let mut others = clauses.iter().enumerate().filter(|(index, _)| *index != fitting);
            others.all(|(_, clause)| self.none_fits(clause))
        })
    }

    /// Whether every value has a field.
    fn has(&self, name: &str) -> bool {
        let field = self.field(name);
        if present(field.now, "default").is_some() {
            return true;
        }
        let is_required = || self.held.iter().any(|schema| names(schema).any(|required| required == name));
        // What a default gave need not be stored.
        let is_own = present(field.held[0], "default").is_none() && !field.loses_nulls();
        !field.is_absent && is_own && (is_required() || counts::has_all_fields(self))
    }

    /// Whether no value has a field.
    fn lacks(&self, name: &str) -> bool {
        let field = self.field(name);
        field.is_absent && present(field.now, "default").is_none()
    }

    fn loses_nulls(&self) -> bool {
        is_set(self.held[0], "nullable") && !is_set(self.now, "nullable")
    }

    /// A default that objects get though the old schema did not give it.
    fn new_default(&self) -> Option<&'a Value> {
        let old = present(self.held[0], "default");
        present(self.now, "default").filter(|new| !old.is_some_and(|old| same(old, new)))
    }

    /// The type of the values; `None` if there may be several.
    fn kind(&self) -> Option<&'a str> {
        let is_any = is_set(self.held[0], "x-kubernetes-int-or-string");
        Some(text(self.held[0], "type")).filter(|kind| !is_any && !kind.is_empty())
    }

    /// Whether a keyword judges values of the type.
    fn is_judged_by(&self, keyword: &str) -> bool {
        let kinds: &[&str] = match keyword {
            "minimum" | "maximum" | "multipleOf" => &["integer", "number"],
            "minLength" | "maxLength" | "pattern" => &["string"],
            "minItems" | "maxItems" | "items" => &["array"],
            "minProperties" | "maxProperties" | "required" | "properties" => &["object"],
            _ => return true,
        };
        self.kind().is_none_or(|kind| kinds.contains(&kind))
    }

    /// All values, where they are few and none of them has parts. A null is not among them.
    fn values(&self) -> Option<Vec<Value>> {
        let named = self.held.iter().map(|schema| list(schema, "enum")).find(|values| !values.is_empty());
        let mut values = match (named, self.kind()) {
            (Some(values), _) => values.to_vec(),
            (None, Some("boolean")) => vec![json!(false), json!(true)],
            (None, Some("integer")) => numbers::values(self)?,
            _ => return None,
        };
        values.retain(|value| {
            !value.is_null() && self.held.iter().all(|schema| fits(value, schema) != Some(false))
        });
        (!values.iter().any(|value| value.is_object() || value.is_array())).then_some(values)
    }
}

/// Whether a value satisfies a schema; `None` if the schema cannot be read.
fn fits(value: &Value, schema: &Value) -> Option<bool> {
    const FIELD: &str = "value";
    let document = Json::from(json!({ "type": "object", "properties": { FIELD: schema } }));
    let schema = Schema::parse(&document).ok()?;
    Some(Validator::new(&schema).object(&json!({ FIELD: value })).is_empty())
}

fn names(schema: &Value) -> impl Iterator<Item = &str> {
    list(schema, "required").iter().filter_map(Value::as_str)
}

#[cfg(test)]
mod tests;
