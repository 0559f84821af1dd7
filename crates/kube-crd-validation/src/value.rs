//! The walk over a value beside its schema.
//! Defaults and objects differ only in how their schema is read.
//!
//! Upstream's validators report what other libraries have no notion of: which branch of an `anyOf` failed
//! best, by a count of passed checks; a type error beside the errors of the same value's parts; one error for
//! several of the same text. Objects are judged by these sets of errors, so the walk is written here and not
//! taken from a crate.
//!
//! Source: kube-openapi `pkg/validation/validate`.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::allowed::{is_allowed, is_same};
use super::number;
use super::patterns::Patterns;
use super::types::{Form, Types};
use super::violation::{Violation, What};
use go_text::number::Num;
use go_text::regexp::PatternError;
use kube_structural_schema::format;
use kube_structural_schema::schema::{Additional, Constraints, Schema};
use kube_validation_rules::is_stopped;

/// Everything that is wrong with a value. Of violations with the same text one is reported, as upstream does.
pub(super) fn check<'v>(
    form: Form,
    patterns: &'v Patterns,
    schema: &'v Schema,
    value: &'v Value,
) -> Vec<Violation<'v>> {
    let mut walk = Walk { form, patterns, path: String::new(), found: Vec::new() };
    walk.value(schema, value, false);
    if walk.found.len() > 1 {
        let mut seen = HashSet::new();
        walk.found.retain(|violation| seen.insert(violation.message()));
    }
    walk.found
}

struct Walk<'v> {
    form: Form,
    patterns: &'v Patterns,
    /// As upstream writes it: `spec.ports[0].name`, and a leading dot in front of an undeclared property of
    /// the root.
    path: String,
    found: Vec<Violation<'v>>,
}

/// How many checks a value has passed: upstream's `MatchCount`. It decides which branch's errors are shown.
type Passed = u64;

impl<'v> Walk<'v> {
    /// Checks a value; what it violates is appended to `found`.
    fn value(&mut self, schema: &'v Schema, value: &'v Value, nested: bool) -> Passed {
        if is_stopped() {
            return 0;
        }
        let constraints = schema.constraints.as_deref();
        let types = Types::of(self.form, schema);
        if value.is_null() {
            let passed = self.is_null_allowed(types, schema.nullable);
            self.allowed_values(constraints, value);
            return passed;
        }
        let format = self.format(types, constraints);
        let mut passed = 1;
        if !types.is_empty() || !format.is_empty() {
            passed += 1 + Passed::from(self.is_of_type(types, format, value));
        }
        passed += 2 + constraints.map_or(0, |constraints| self.clauses(constraints, value));
        match value {
            Value::String(text) => passed += self.text(constraints, format, text),
            Value::Number(number) => passed += self.number(constraints, types, format, Num::of(number)),
            Value::Array(items) => passed += 2 + self.items(schema, constraints, items, nested),
            _ => {}
        }
        self.allowed_values(constraints, value);
        passed += 1;
        if let Value::Object(fields) = value {
            passed += 1 + self.fields(schema, constraints, fields, nested);
        }
        passed
    }

    fn is_null_allowed(&mut self, types: Types<'v>, nullable: bool) -> Passed {
        if types.is_empty() || types.contains("null") || nullable {
            return 1;
        }
        self.report(What::Type { expected: types.to_string(), actual: "null" });
        0
    }

    /// The format as the form of the schema has it.
    fn format(&self, types: Types<'v>, constraints: Option<&'v Constraints>) -> &'v str {
        let format = constraints.map_or("", |constraints| &*constraints.format);
        let known = match (self.form, types.only()) {
            (Form::Structural, _) => true,
            (Form::Props, "" | "string") => format::check(format).is_some(),
            (Form::Props, "integer") => matches!(format, "int32" | "int64"),
            (Form::Props, "number") => matches!(format, "float" | "double"),
            _ => false,
        };
        if known { format } else { "" }
    }

    /// A format can stand in for a type: with one, any text and any array is of a type that is not numeric.
    fn is_of_type(&mut self, types: Types<'v>, format: &str, value: &Value) -> bool {
        let (actual, actual_format) = match value {
            Value::Null => ("null", ""),
            Value::Bool(_) => ("boolean", ""),
            Value::Number(number) => match Num::of(number) {
                Num::Int(_) => ("integer", "int64"),
                Num::Float(_) => ("number", "float64"),
            },
            Value::String(_) => ("string", ""),
            Value::Array(_) => ("array", ""),
            Value::Object(_) => ("object", ""),
        };
        let converts = match value {
            Value::Number(number) => match Num::of(number) {
                Num::Int(_) => types.contains("number"),
                Num::Float(float) => number::is_integer(float) && types.contains("integer"),
            },
            _ => false,
        };
        let fits = types.contains(actual) || converts;
        if !format.is_empty() {
            if matches!(value, Value::String(_) | Value::Array(_)) {
                if !types.contains("number") && !types.contains("integer") {
                    return true;
                }
            } else if !fits && actual_format != format {
                self.report(What::Type { expected: format.to_owned(), actual: actual_format });
                return false;
            }
        }
        if !fits {
            self.report(What::Type { expected: types.to_string(), actual });
        }
        fits
    }

    /// `anyOf`, `oneOf`, `allOf` and `not`, in upstream's order.
    fn clauses(&mut self, constraints: &'v Constraints, value: &'v Value) -> Passed {
        let mut passed = 0;
        if !constraints.any_of.is_empty() {
            passed += self.any_of(&constraints.any_of, value);
        }
        if !constraints.one_of.is_empty() {
            passed += self.one_of(&constraints.one_of, value);
        }
        if !constraints.all_of.is_empty() {
            passed += self.all_of(&constraints.all_of, value);
        }
        if let Some(clause) = &constraints.not {
            let start = self.found.len();
            self.value(clause, value, true);
            let valid = self.found.len() == start;
            self.found.truncate(start);
            if valid {
                self.report(What::Not);
            }
        }
        passed
    }

    fn any_of(&mut self, clauses: &'v [Schema], value: &'v Value) -> Passed {
        let start = self.found.len();
        let mut best: Option<Attempt<'v>> = None;
        for clause in clauses {
            let attempt = self.attempt(clause, value);
            if attempt.found.is_empty() {
                return attempt.passed;
            }
            best = Attempt::better(best, attempt);
        }
        debug_assert_eq!(self.found.len(), start, "attempts leave nothing behind");
        self.report(What::AnyOf);
        self.accept(best)
    }

    fn one_of(&mut self, clauses: &'v [Schema], value: &'v Value) -> Passed {
        let (mut valid, mut first) = (0, 0);
        let mut best: Option<Attempt<'v>> = None;
        for clause in clauses {
            let attempt = self.attempt(clause, value);
            if attempt.found.is_empty() {
                if valid == 0 {
                    first = attempt.passed;
                }
                valid += 1;
                best = None;
            } else if valid == 0 {
                best = Attempt::better(best, attempt);
            }
        }
        if valid == 1 {
            return first;
        }
        self.report(What::OneOf { valid });
        self.accept(best)
    }

    fn all_of(&mut self, clauses: &'v [Schema], value: &'v Value) -> Passed {
        let (mut passed, mut valid) = (0, 0);
        for clause in clauses {
            let start = self.found.len();
            passed += self.value(clause, value, true);
            valid += usize::from(self.found.len() == start);
        }
        if valid < clauses.len() {
            self.report(What::AllOf { none: valid == 0 });
        }
        passed
    }

    fn attempt(&mut self, clause: &'v Schema, value: &'v Value) -> Attempt<'v> {
        let start = self.found.len();
        let passed = self.value(clause, value, true);
        Attempt { passed, found: self.found.split_off(start) }
    }

    fn accept(&mut self, best: Option<Attempt<'v>>) -> Passed {
        let Some(Attempt { passed, found }) = best else { return 0 };
        self.found.extend(found);
        passed
    }

    /// Of lengths and pattern only the first violation is reported.
    fn text(&mut self, constraints: Option<&'v Constraints>, format: &'v str, text: &'v str) -> Passed {
        if let Some(constraints) = constraints {
            let length = || i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
            if let Some(max) = constraints.max_length.filter(|max| length() > *max) {
                self.report(What::TooLong(max));
            } else if let Some(min) = constraints.min_length.filter(|min| length() < *min) {
                self.report(What::TooShort(min));
            } else if !constraints.pattern.is_empty() {
                self.pattern(&constraints.pattern, text);
            }
        }
        let Some(check) = format::check(format) else { return 1 };
        if !check(text) {
            self.report(What::Format { name: format, text });
        }
        2
    }

    fn pattern(&mut self, pattern: &'v str, text: &str) {
        match self.patterns.matches(pattern, text) {
            Ok(true) => {}
            Ok(false) => self.report(What::Pattern { pattern, problem: None }),
            Err(PatternError::Syntax(error)) => {
                self.report(What::Pattern { pattern, problem: Some(error.to_string()) });
            }
            Err(PatternError::TooLarge) => self.report(What::Unchecked { pattern }),
        }
    }

    fn number(
        &mut self,
        constraints: Option<&'v Constraints>,
        types: Types<'v>,
        format: &'v str,
        number: Num,
    ) -> Passed {
        let none = Constraints::default();
        let type_name = match types.only() {
            name @ ("integer" | "number") => name,
            _ => "",
        };
        let format = match (type_name, format) {
            ("integer", "int32" | "int64") | ("number", "float" | "double") => format,
            _ => "",
        };
        number::check(number, constraints.unwrap_or(&none), type_name, format, |what| {
            self.found.push(Violation { path: self.path.clone(), what });
        });
        2
    }

    fn items(
        &mut self,
        schema: &'v Schema,
        constraints: Option<&'v Constraints>,
        items: &'v [Value],
        nested: bool,
    ) -> Passed {
        let mut passed = 0;
        if let Some(schema) = &schema.items {
            for (index, item) in items.iter().enumerate() {
                let length = self.path.len();
                self.path.push('[');
                self.path.push_str(&index.to_string());
                self.path.push(']');
                passed += self.value(schema, item, nested);
                self.path.truncate(length);
            }
        }
        let Some(constraints) = constraints else { return passed };
        let size = i64::try_from(items.len()).unwrap_or(i64::MAX);
        if let Some(min) = constraints.min_items.filter(|min| size < *min) {
            self.report(What::TooFewItems(min));
        }
        if let Some(max) = constraints.max_items.filter(|max| size > *max) {
            self.report(What::TooManyItems(max));
        }
        if constraints.unique_items
            && items
                .iter()
                .enumerate()
                .any(|(index, item)| items[..index].iter().any(|other| is_same(item, other)))
        {
            self.report(What::Duplicates);
        }
        passed
    }

    fn fields(
        &mut self,
        schema: &'v Schema,
        constraints: Option<&'v Constraints>,
        fields: &'v Map<String, Value>,
        nested: bool,
    ) -> Passed {
        let mut passed = 0;
        if let Some(constraints) = constraints {
            let size = i64::try_from(fields.len()).unwrap_or(i64::MAX);
            if let Some(min) = constraints.min_properties.filter(|min| size < *min) {
                self.report(What::TooFewProperties(min));
            }
            if let Some(max) = constraints.max_properties.filter(|max| size > *max) {
                self.report(What::TooManyProperties(max));
            }
        }
        let additional = schema.additional.as_ref().filter(|_| !(nested && self.form == Form::Structural));
        for (name, field) in fields {
            let length = self.path.len();
            if let Some(property) = schema.properties.get(name) {
                if length > 0 {
                    self.path.push('.');
                }
                self.path.push_str(name);
                passed += self.value(property, field, nested);
            } else {
                match additional {
                    Some(Additional::Schema(schema)) => {
                        self.path.push('.');
                        self.path.push_str(name);
                        passed += self.value(schema, field, nested);
                    }
                    Some(Additional::Bool(false)) => self.report(What::Unexpected(name)),
                    Some(Additional::Bool(true)) | None => {}
                }
            }
            self.path.truncate(length);
        }
        for name in constraints.into_iter().flat_map(|constraints| &constraints.required) {
            if !fields.contains_key(name) {
                let path = format!("{}.{name}", self.path);
                self.found.push(Violation { path, what: What::Required(name) });
            }
        }
        passed
    }

    fn allowed_values(&mut self, constraints: Option<&'v Constraints>, value: &Value) {
        let Some(constraints) = constraints else { return };
        let allowed = &constraints.allowed;
        if !allowed.is_empty() && !allowed.iter().any(|allowed| is_allowed(value, allowed)) {
            self.report(What::Enum(allowed));
        }
    }

    fn report(&mut self, what: What<'v>) {
        self.found.push(Violation { path: self.path.clone(), what });
    }
}

/// The result of one clause of several.
struct Attempt<'v> {
    passed: Passed,
    found: Vec<Violation<'v>>,
}

impl<'v> Attempt<'v> {
    /// The one that has passed more checks; the first of equals.
    fn better(best: Option<Self>, attempt: Self) -> Option<Self> {
        match best {
            Some(best) if best.passed >= attempt.passed => Some(best),
            _ => Some(attempt),
        }
    }
}
