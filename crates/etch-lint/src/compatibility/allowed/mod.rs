//! The values that a schema allowed at a place, and whether all of them fit what a new schema says there, or none
//! does. A yes is certain; a no may be something that is not worked out.

mod counts;
mod numbers;
mod place;
mod strings;
mod values;

use serde_json::Value;

pub(super) use place::Allowed;
use place::{fits, names};

use super::keywords::{fields, is_set, list, text};
use kube_structural_schema::path::Step;

/// How many clauses of anyOf and oneOf are assumed at once.
const DEEPEST: usize = 2;
/// How many clauses one of them may have.
const MOST_CLAUSES: usize = 24;

impl<'a> Allowed<'a> {
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
}

#[cfg(test)]
mod tests;
