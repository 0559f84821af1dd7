//! The schemas of one place before and after, and the walk over all places that both declare.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};

use super::allowed::Allowed;
use super::keywords::{ANYTHING, NOTHING, fields, is_set, keeps_unknown, list, present, property, values};
use super::needed::needs;
use crate::rule::{Finding, Rule, Severity};
use crate::site::shown;
use kube_structural_schema::path::{Path, Step};

pub(super) const LOOSENED: Rule = Rule {
    code: "ETCH325",
    name: "loosened",
    severity: Severity::Info,
    summary: "an upgrade allows values that were refused before",
    help: "\
A limit, pattern, format, validation rule or clause is weaker than before, or no longer there. All objects
that were valid stay valid. A client that relies on the old limit, such as a controller of the old release
after a rollback, may meet values that it does not expect.",
    check: None,
};

/// What was found between two schemas.
pub(super) struct Changes {
    pub(super) found: Vec<Change>,
    pub(super) checks: &'static [Check],
}

/// Compares two schemas of the same place in one respect.
pub(super) type Check = fn(&Pair<'_>, &mut Changes);

/// A change at a place of a schema.
pub(super) struct Change {
    pub(super) rule: &'static Rule,
    pub(super) path: Path,
    pub(super) message: String,
}

impl Changes {
    /// None yet; these checks find them.
    pub(super) fn checked_by(checks: &'static [Check]) -> Self {
        Self { found: Vec::new(), checks }
    }

    /// Whether an error was found at this place.
    pub(super) fn has_error_at(&self, path: &Path) -> bool {
        self.found.iter().any(|found| found.path == *path && found.rule.severity == Severity::Error)
    }

    /// Adds one.
    pub(super) fn add(&mut self, rule: &'static Rule, path: Path, message: impl Into<String>) {
        self.found.push(Change { rule, path, message: message.into() });
    }
}

/// A change as a finding about a version.
pub(super) fn finding(
    Change { rule, path, message }: Change,
    version: &str,
    version_index: Option<usize>,
) -> Finding {
    Finding { version_index, ..Finding::new(rule, version, path, message) }
}

/// What every resource has of them, declared or not, and what the server lets a schema limit.
static RESOURCE: LazyLock<Value> = LazyLock::new(|| {
    let text = json!({ "type": "string" });
    let metadata = json!({ "type": "object", "properties": { "name": text, "generateName": text } });
    json!({ "properties": { "apiVersion": text, "kind": text, "metadata": metadata } })
});
/// The schemas of one place.
pub(super) struct Pair<'a> {
    pub(super) old: &'a Value,
    pub(super) new: &'a Value,
    /// The place, as values have it.
    pub(super) path: Path,
    /// Whether the object or map around it must have it, or a number of fields, or may have to.
    pub(super) is_needed: bool,
    /// Whether the old schema of the object around it requires it.
    pub(super) was_required: bool,
    /// The new schema outside of clauses, which has the type and the defaults.
    pub(super) declared: &'a Value,
    /// The metadata of a resource.
    pub(super) is_metadata: bool,
    /// The clause that both stand in, such as `allOf[0]`; empty outside of clauses.
    pub(super) inside: String,
}

impl<'a> Pair<'a> {
    pub(super) fn root(old: &'a Value, new: &'a Value) -> Self {
        Self {
            old,
            new,
            declared: new,
            path: Path::root(),
            is_needed: true,
            was_required: true,
            is_metadata: false,
            inside: String::new(),
        }
    }

    /// Runs all checks on this place and on those below that both schemas restrict.
    pub(super) fn walk(&self, changes: &mut Changes) {
        if self.old == self.new {
            return;
        }
        let before = changes.found.len();
        for check in changes.checks {
            check(self, changes);
        }
        if !self.inside.is_empty() {
            // What a clause inside of this one has found names its own place.
            for change in
                changes.found[before..].iter_mut().filter(|change| !change.message.starts_with("in "))
            {
                change.message = format!("in {}: {}", self.inside, change.message);
            }
        }
        self.below(changes);
    }

    fn below(&self, changes: &mut Changes) {
        for (name, new) in fields(self.new) {
            if let Some(old) = property(self.old, name).or_else(|| self.undeclared(name)) {
                self.child(old, new, Step::Field(name.clone())).walk(changes);
            }
        }
        // What has become a key of a map: its value is compared with the schema of the values.
        for (name, old) in fields(self.old).filter(|(name, _)| property(self.new, name).is_none()) {
            if let Some(new) = values(self.new) {
                self.child(old, new, Step::Field(name.clone())).walk(changes);
            }
        }
        if let Some(new) = present(self.new, "items")
            && let Some(old) = present(self.old, "items").or_else(|| self.unknown())
        {
            self.child(old, new, Step::Items).walk(changes);
        }
        if let Some(new) = values(self.new)
            && let Some(old) = values(self.old).or_else(|| self.unknown())
        {
            self.child(old, new, Step::Values).walk(changes);
        }
    }

    fn child<'b>(&self, old: &'b Value, new: &'b Value, step: Step) -> Pair<'b>
    where
        'a: 'b,
    {
        let declared = if self.is_in_clause() { declared(self.declared, &step) } else { new };
        let mut required = list(self.new, "required").iter();
        let is_needed = match &step {
            Step::Field(name) => required.any(|other| other == name),
            _ => required.next().is_some(),
        };
        let mut required_before = list(self.old, "required").iter();
        let was_required = matches!(&step, Step::Field(name) if required_before.any(|other| other == name));
        let is_counted = present(self.new, "minProperties").is_some_and(|least| *least != 0);
        // What drops a null leaves the object without the field.
        let loses_nulls = is_set(old, "nullable") && !is_set(new, "nullable");
        let is_asked_for =
            loses_nulls && matches!(&step, Step::Field(name) if self.is_asked_for_by_others(name));
        let is_metadata = self.is_resource() && matches!(&step, Step::Field(name) if name == "metadata");
        let path = self.path.join(step);
        let inside = self.inside.clone();
        let is_needed = is_needed || is_counted || is_asked_for;
        Pair { old, new, declared, path, is_needed, was_required, is_metadata, inside }
    }

    /// Whether some of these keywords of the new schema may refuse a value that was allowed, other than null.
    /// What clauses of several imply is not worked out.
    pub(super) fn may_refuse(&self, keywords: &[&str]) -> bool {
        let mut part = Map::new();
        // The format of a number counts beside a type.
        for keyword in keywords.iter().copied().chain(["type"]) {
            part.extend(present(self.new, keyword).map(|value| (keyword.to_owned(), value.clone())));
        }
        self.is_in_clause() || !Allowed::at(self.old, self.new).all_fit(&part.into())
    }

    /// Whether it is of a whole object: its own, or one that is embedded.
    pub(super) fn is_whole(&self) -> bool {
        self.path.is_root() || is_set(self.new, "x-kubernetes-embedded-resource")
    }

    /// Whether a clause or a rule may need a field that `required` does not name.
    fn is_asked_for_by_others(&self, name: &str) -> bool {
        asks_for(self.new, name) || !self.is_in_clause() && needs(self.new, self.is_whole(), name)
    }

    /// The old schema of a field that it does not declare; `None` if it drops such fields, so that no object
    /// has them.
    fn undeclared(&self, name: &str) -> Option<&'a Value> {
        self.implied(name).or_else(|| values(self.old)).or_else(|| self.unknown())
    }

    /// The schema of a field that every resource has.
    fn implied(&self, name: &str) -> Option<&'a Value> {
        let declared: &Value = match self.is_metadata {
            true => property(&RESOURCE, "metadata")?,
            false if self.is_resource() => &RESOURCE,
            false => return None,
        };
        property(declared, name)
    }

    /// The old schema of what it does not declare, other than values of a map.
    fn unknown(&self) -> Option<&'a Value> {
        if self.is_in_clause() { Some(&*NOTHING) } else { keeps_unknown(self.old).then(|| &*ANYTHING) }
    }

    /// Whether the values are resources before and after: objects of the CRD, or embedded ones.
    pub(super) fn is_resource(&self) -> bool {
        const KEYWORD: &str = "x-kubernetes-embedded-resource";
        self.path.is_root() || is_set(self.old, KEYWORD) && is_set(self.new, KEYWORD)
    }

    /// Whether both stand in a clause, which restricts values and declares none.
    pub(super) fn is_in_clause(&self) -> bool {
        !self.inside.is_empty()
    }
}

/// Whether a clause of a schema requires a field.
fn asks_for(schema: &Value, name: &str) -> bool {
    let clauses = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|keyword| list(schema, keyword));
    let is_named = |clause: &Value| list(clause, "required").iter().any(|other| other == name);
    clauses.into_iter().any(|clause| is_named(clause) || asks_for(clause, name))
}

/// The schema of a place below one.
fn declared<'a>(schema: &'a Value, step: &Step) -> &'a Value {
    let below = match step {
        Step::Field(name) => property(schema, name).or_else(|| values(schema)),
        Step::Items | Step::Index(_) => present(schema, "items"),
        Step::Values | Step::Key(_) => values(schema),
    };
    below.unwrap_or(&NOTHING)
}

/// What a keyword was, for a message about what it is now.
pub(super) fn before(old: Option<&Value>) -> String {
    match old {
        Some(old) => format!("it was {}", shown(old)),
        None => "there was none".to_owned(),
    }
}
