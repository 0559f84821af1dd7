#![doc = include_str!("../README.md")]
//!
//! # What this is
//! The API server's errors about default values, whole objects and whole CRDs ([`crd`]), and the errors that
//! it should report and does not. Nothing that is checked is changed, and where a check is stricter or laxer
//! than the server's, its documentation must state so.
//!
//! Findings' fields hold places and names; their details may quote values.

mod allowed;
pub mod crd;
mod defaults;
mod field;
mod lists;
mod metadata;
mod number;
mod patterns;
mod types;
mod value;
mod violation;

use serde_json::Value;

use field::Field;
use kube_structural_schema::finding::{Finding, Kind, Refused};
use kube_structural_schema::schema::Schema;
use patterns::Patterns;
use types::Form;

pub use defaults::{DefaultFindings, default, defaults};

/// Whether a namespace can have this name.
pub fn is_namespace_name(name: &str) -> bool {
    metadata::names::dns_label(name).is_empty()
}

/// Whether a custom resource can have this name.
pub fn is_object_name(name: &str) -> bool {
    metadata::names::dns_subdomain(name).is_empty()
}

/// A schema with what validating many objects with it needs only once.
#[derive(Debug)]
pub struct Validator<'s> {
    schema: &'s Schema,
    prepared: Prepared,
}

/// What validating many objects with one schema needs only once, apart from the schema.
#[derive(Debug)]
pub struct Prepared {
    patterns: Patterns,
    rules: Option<kube_validation_rules::Program>,
}

/// What creating an object would be refused for, as far as its schema decides that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectFindings {
    /// Of its values, the metadata of objects inside it, and its sets and maps.
    pub values: Vec<Finding>,
    /// Of its rules.
    pub rules: Vec<Finding>,
    /// Whether there are rules that were not run because of what is in `values`; the server reports that in a
    /// finding of its own.
    pub rules_skipped: bool,
    /// Rules that could not be evaluated because a value does not fit its schema, where those are kept apart.
    pub misfits: Vec<Finding>,
}

impl<'s> Validator<'s> {
    /// Prepares a schema: its rules are compiled now, its patterns when an object first needs them.
    pub fn new(schema: &'s Schema) -> Self {
        Self { schema, prepared: Prepared::of(schema) }
    }

    /// Checks an object as it is read, with its defaults filled in.
    ///
    /// Its own type and metadata are taken for granted: the server that it comes from has checked them.
    pub fn object(&self, object: &Value) -> ObjectFindings {
        let values = self.prepared.values(self.schema, object);
        let mut found = ObjectFindings { values, ..ObjectFindings::default() };
        if let Some(rules) = &self.prepared.rules {
            found.rules_skipped = found.values.iter().any(|finding| blocks_rules(finding.kind));
            if !found.rules_skipped {
                rules.validate(object, None, "", kube_validation_rules::RUNTIME_BUDGET, &mut found.rules);
            }
        }
        found
    }

    /// Checks an object that exists, as it is read: like [`Self::object`], with what updates of it are
    /// refused for. The server lets wrong values pass that an update leaves as they are, and then runs the
    /// rules: those that [`Self::object`] skips, and those that compare the object with itself as `oldSelf`.
    pub fn existing(&self, object: &Value) -> ObjectFindings {
        let mut found = self.object(object);
        let Some(rules) = &self.prepared.rules else { return found };
        if found.rules_skipped {
            rules.validate(object, None, "", kube_validation_rules::RUNTIME_BUDGET, &mut found.rules);
        }
        if !rules.compares_with_old() {
            return found;
        }
        let mut of_updates = Vec::new();
        rules.validate(object, Some(object), "", kube_validation_rules::RUNTIME_BUDGET, &mut of_updates);
        for finding in of_updates.into_iter().filter(|finding| finding.refused == Refused::Always) {
            let is_it = |known: &&mut Finding| {
                (known.kind, known.place(), known.requirement())
                    == (finding.kind, finding.place(), finding.requirement())
            };
            match found.rules.iter_mut().find(is_it) {
                Some(known) => known.refused = Refused::Always,
                None => found.rules.push(finding.refusing(Refused::EveryUpdate)),
            }
        }
        found
    }
}

impl Prepared {
    /// Prepares a schema: its rules are compiled now, its patterns when an object first needs them.
    pub fn of(schema: &Schema) -> Self {
        Self { patterns: Patterns::of(schema), rules: kube_validation_rules::Program::compile(schema, true) }
    }

    /// Checks an object as an update that leaves it as it is: `oldSelf` is the object itself. Rules are run
    /// whatever else is wrong, as on a server that lets through what was wrong before.
    ///
    /// `schema` is the one that was prepared, and `budget` what the rules may cost; it is left with what
    /// remains.
    pub fn unchanged(&self, schema: &Schema, object: &Value, budget: &mut i64) -> Vec<Finding> {
        let mut found = self.values(schema, object);
        if let Some(rules) = &self.rules {
            *budget = rules.validate(object, Some(object), "", *budget, &mut found);
        }
        found
    }

    /// Checks a value that stands inside an object, and if it replaces one, by its rules about the change.
    /// Rules are run whatever else is wrong, as on a server that accepts what was wrong before; those that
    /// cannot be evaluated because of a value of another type are kept apart.
    ///
    /// `schema` is the one that was prepared, and `budget` what the rules may cost; it is left with what
    /// remains.
    pub fn embedded(
        &self,
        schema: &Schema,
        value: &Value,
        old: Option<&Value>,
        budget: &mut i64,
    ) -> ObjectFindings {
        let mut found = ObjectFindings { values: self.values(schema, value), ..ObjectFindings::default() };
        if let Some(rules) = &self.rules {
            *budget = rules.validate_any(value, old, *budget, &mut found.rules, &mut found.misfits);
        }
        found
    }

    /// The rules that do not compile.
    pub fn broken_rules(&self) -> Vec<kube_validation_rules::BrokenRule> {
        self.rules.as_ref().map(kube_validation_rules::Program::broken_rules).unwrap_or_default()
    }

    fn values(&self, schema: &Schema, object: &Value) -> Vec<Finding> {
        let violations = value::check(Form::Props, &self.patterns, schema, object);
        let mut values: Vec<_> = violations.iter().map(|violation| violation.finding("")).collect();
        let of_values = values.len();
        metadata::check(schema, object, false, &mut Field::default(), &mut values);
        values[of_values..].iter_mut().for_each(|finding| finding.refused = Refused::Always);
        let of_metadata = values.len();
        lists::check(schema, object, &mut Field::default(), &mut values);
        values[of_metadata..].iter_mut().for_each(|finding| finding.refused = Refused::Never);
        values
    }
}

/// Checks an object as it is read, with its defaults filled in: what creating it would be refused for, in the
/// server's order.
///
/// For one object; [`Validator`] prepares a schema for many. Rules are not run where the values alone are
/// refused in a way that rules count on, as on the server.
pub fn validate(schema: &Schema, object: &Value) -> Vec<Finding> {
    let ObjectFindings { mut values, rules, .. } = Validator::new(schema).object(object);
    values.extend(rules);
    values
}

impl ObjectFindings {
    /// Whether the object would be created.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty() && self.rules.is_empty()
    }

    /// All findings in the server's order. Where `rules_skipped` is set, the server adds that it did so.
    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.values.iter().chain(&self.rules)
    }
}

/// Rules may count on these checks: they are not run over objects that fail them.
///
/// Source: apiextensions-apiserver `pkg/registry/customresource/strategy.go`, `hasBlockingErr`.
fn blocks_rules(kind: Kind) -> bool {
    matches!(kind, Kind::NotSupported | Kind::Required | Kind::TooLong | Kind::TooMany | Kind::TypeInvalid)
}

#[cfg(test)]
mod tests;
