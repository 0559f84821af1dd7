//! The checks of a schema's default values, those that the server makes apart from those that it does not: it
//! refuses a CRD with a finding of the first kind, and serves one with a finding of the second, but then
//! refuses objects that get the default.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/schema/defaulting/{validation,surroundingobject}.go`, with
//! pruned defaults required.
//!
//! An object gets more than the server checks: the default as it was pruned, with the defaults below it.
//! Whether that is valid decides the second kind. The server checks it for no default, nor whether a set or a
//! list map has an item twice, nor the type of an int-or-string, and formats that count for no object let more
//! pass (fact D14).

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::field::Field;
use super::lists;
use super::metadata;
use super::patterns::Patterns;
use super::types::Form;
use super::value;
use kube_structural_schema::compile::Compiled;
use kube_structural_schema::defaults::meta::{Malformed, coerce};
use kube_structural_schema::finding::{Finding, Kind};
use kube_structural_schema::json::Json;
use kube_structural_schema::path::{Path, Step, Trail, TrailStep};
use kube_structural_schema::prune::prune;
use kube_structural_schema::schema::{Place, Schema};
use kube_validation_rules::{Program, RUNTIME_BUDGET};

/// What is wrong with the defaults of a schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefaultFindings {
    /// The errors of the API server when the CRD is written. Empty means that it accepts the defaults.
    pub by_server: Vec<Finding>,
    /// The errors of the server for every object that gets a default which it accepts: it does not look below
    /// `additionalProperties`, at sets and list maps, at the type of an int-or-string, nor at a default
    /// together with the defaults below it; and it accepts defaults by formats that count for no object.
    pub beyond_server: Vec<Finding>,
    /// Where the server stops at one of several findings, and which one it is differs from time to time: all
    /// of them. The first of each group is in `by_server`.
    pub either: Vec<Vec<Finding>>,
    /// The places of all defaults that are wrong, for the server or beyond it, sorted.
    pub sites: Vec<Path>,
    /// The places of all defaults that get a wrong one of [`Self::sites`] inside, sorted.
    pub spoiled: Vec<Path>,
}

/// How many values all defaults of a schema may have, with the defaults below them and the steps that lead to
/// them. What is beyond is not checked: it takes defaults of lists in defaults of lists, or thousands of
/// levels.
const ROOM: usize = 1 << 20;

impl DefaultFindings {
    /// Whether a server may give this answer: `by_server`, with any of each group in `either` in its place.
    /// Findings are compared by kind and field.
    pub fn may_be(&self, answer: &BTreeSet<(Kind, &str)>) -> bool {
        let key = |finding: &'_ Finding| (finding.kind, finding.field.clone());
        let mut answer: BTreeSet<(Kind, String)> =
            answer.iter().map(|(kind, field)| (*kind, (*field).to_owned())).collect();
        for group in &self.either {
            if let Some(given) = group.iter().find(|finding| answer.contains(&key(finding))) {
                answer.remove(&key(given));
                answer.extend(group.first().map(key));
            }
        }
        answer == self.by_server.iter().map(key).collect()
    }

    /// Whether nothing is wrong.
    pub fn is_empty(&self) -> bool {
        self.by_server.is_empty() && self.beyond_server.is_empty()
    }
}

/// Checks every default of a schema: pruned, with valid metadata, of valid values.
///
/// Fields are places in the schema below `openAPIV3Schema`, and in the default below its place.
pub fn defaults(schema: &Schema) -> DefaultFindings {
    check_all(schema, "openAPIV3Schema", true)
}

/// The errors of the server for a value as the default of a schema that is not a whole object. Fields are
/// places in the value, below `<nil>`.
pub fn default(schema: &Schema, value: &Value) -> Vec<Finding> {
    let mut list = List::default();
    let trail = Trail::ROOT;
    let standing = Standing { trail, object: schema, depth: 0, in_metadata: false, beyond_server: false };
    let (patterns, is_object) = (Patterns::of(schema), schema.embedded_resource);
    let value = Json::from(value.clone());
    check((&patterns, true), schema, &value, is_object, &standing, &mut Field::default(), &mut list);
    list.found
}

/// [`defaults`] of a schema at a place, requiring pruned ones or not.
pub(super) fn check_all(schema: &Schema, place: &str, require_pruned: bool) -> DefaultFindings {
    let mut walk = Walk {
        patterns: Patterns::of(schema),
        compiled: Compiled::new(schema),
        require_pruned,
        server: List::default(),
        beyond: List::default(),
        sites: BTreeSet::new(),
        spoiled: BTreeSet::new(),
        room: ROOM,
    };
    let root =
        Standing { trail: Trail::ROOT, object: schema, depth: 0, in_metadata: false, beyond_server: false };
    walk.schema(schema, true, &root, &mut Field::new(place));
    let Walk { server, beyond, sites, spoiled, .. } = walk;
    DefaultFindings {
        by_server: server.found,
        beyond_server: beyond.found,
        either: server.either,
        sites: sites.into_iter().collect(),
        spoiled: spoiled.into_iter().collect(),
    }
}

struct Walk {
    patterns: Patterns,
    compiled: Compiled,
    require_pruned: bool,
    server: List,
    beyond: List,
    sites: BTreeSet<Path>,
    spoiled: BTreeSet<Path>,
    /// What is left of [`ROOM`].
    room: usize,
}

/// Findings, and what the rules of further defaults may cost. Where nothing is left, the server stops
/// looking.
struct List {
    found: Vec<Finding>,
    either: Vec<Vec<Finding>>,
    budget: i64,
}

impl Default for List {
    fn default() -> Self {
        Self { found: Vec::new(), either: Vec::new(), budget: RUNTIME_BUDGET }
    }
}

/// Where a schema stands.
#[derive(Clone, Copy)]
struct Standing<'a> {
    /// The way from the root.
    trail: Trail<'a>,
    /// The whole object or embedded resource that it is part of.
    object: &'a Schema,
    /// How many steps that is from the root.
    depth: usize,
    /// Whether it is in the object's type or metadata, so that its default shows only as part of a whole
    /// object.
    in_metadata: bool,
    /// Whether the server does not come here.
    beyond_server: bool,
}

impl Walk {
    fn schema(&mut self, schema: &Schema, is_root: bool, standing: &Standing<'_>, at: &mut Field) {
        let is_object = is_root || schema.embedded_resource;
        let standing = if is_object {
            let depth = standing.trail.to_path().steps().len();
            &Standing { object: schema, depth, in_metadata: false, ..*standing }
        } else {
            standing
        };
        let before = self.sites.len();
        if let Some(default) = &schema.default {
            let mark = at.child("default");
            if standing.beyond_server {
                self.unpruned_beyond(schema, default, is_object, standing, at);
            } else if self.server.budget >= 0 {
                let found = self.server.found.len();
                check(
                    (&self.patterns, self.require_pruned),
                    schema,
                    default,
                    is_object,
                    standing,
                    at,
                    &mut self.server,
                );
                self.sites.extend((self.server.found.len() > found).then(|| standing.trail.to_path()));
            }
            at.back(mark);
        }
        let is_wrong = self.sites.len() > before;
        self.below(schema, is_object, standing, at);
        if schema.default.is_some() && !is_wrong {
            let mark = at.child("default");
            self.whole(schema, is_object, standing, at);
            at.back(mark);
        }
    }

    /// Where the server does not look, it drops silently what a default has too much.
    fn unpruned_beyond(
        &mut self,
        schema: &Schema,
        default: &Json,
        is_object: bool,
        standing: &Standing<'_>,
        at: &Field,
    ) {
        let mut unknown = false;
        if self.require_pruned && !standing.in_metadata {
            prune(&mut default.clone(), schema, is_object, &mut |_| unknown = true);
        }
        if unknown {
            self.beyond.found.push(Finding::new(
                Kind::Invalid,
                at.to_string(),
                "must not have unknown fields",
            ));
            self.sites.insert(standing.trail.to_path());
        }
    }

    /// Checks what an object gets: the default with the defaults below it, which have been checked. A default
    /// that gets an invalid one is not judged: that one is to be corrected first.
    fn whole(&mut self, schema: &Schema, is_object: bool, standing: &Standing<'_>, at: &mut Field) {
        if self.room == 0 {
            return;
        }
        let place = standing.trail.to_path();
        self.room = self.room.saturating_sub(place.steps().len());
        // One that is null, or for nulls that are values, is never filled in; the server does not serve a
        // version with one for the whole object that is none.
        let Some(site) = self.compiled.default_at(place.clone()) else {
            let is_none = |default: &&Json| place.is_root() && !default.is_null() && !default.is_object();
            if let Some(default) = schema.default.as_ref().filter(is_none) {
                self.value_of_objects(schema, default, at);
                self.sites.insert(place);
            }
            return;
        };
        let mut gets_wrong_one = false;
        site.gaps(&mut |gap| {
            let gap = gap.to_path().to_schema();
            let inside: Path = place.steps().iter().chain(gap.steps()).cloned().collect();
            gets_wrong_one |= self.sites.contains(&inside) || self.spoiled.contains(&inside);
        });
        if gets_wrong_one {
            self.spoiled.insert(place);
            return;
        }
        if self.beyond.budget < 0 {
            return;
        }
        let Some(value) = site.value_within(&mut self.room) else { return };
        let found = self.beyond.found.len();
        if standing.beyond_server || schema.default.as_ref() != Some(&value) {
            judge(&self.patterns, schema, &value, is_object, standing, at, &mut self.beyond);
        } else {
            // The server has checked this very value, but with formats that it passes over in objects, and
            // one of any type for an int-or-string.
            self.value_of_objects(schema, &value, at);
        }
        lists::check(schema, &value, at, &mut self.beyond.found);
        self.sites.extend((self.beyond.found.len() > found).then_some(place));
    }

    /// Checks a value as the server does in an object.
    fn value_of_objects(&mut self, schema: &Schema, value: &Json, at: &Field) {
        let place = at.to_string();
        let violations = value::check(Form::Props, &self.patterns, schema, value);
        self.beyond.found.extend(violations.iter().map(|violation| violation.finding(&place)));
    }

    fn below(&mut self, schema: &Schema, is_object: bool, standing: &Standing<'_>, at: &mut Field) {
        if let Some(items) = &schema.items {
            let mark = at.child("items");
            self.schema(
                items,
                false,
                &Standing { trail: standing.trail.join(TrailStep::Items), ..*standing },
                at,
            );
            at.back(mark);
        }
        let properties = at.child("properties");
        for (name, property) in schema.properties.iter() {
            let in_metadata =
                standing.in_metadata || is_object && matches!(name, "apiVersion" | "kind" | "metadata");
            let trail = standing.trail.join(TrailStep::Field(name));
            let mark = at.key(name);
            self.schema(property, false, &Standing { trail, in_metadata, ..*standing }, at);
            at.back(mark);
        }
        at.back(properties);
        if let Some(additional) = schema.additional_schema() {
            let trail = standing.trail.join(TrailStep::Values);
            let mark = at.child("additionalProperties");
            self.schema(additional, false, &Standing { trail, beyond_server: true, ..*standing }, at);
            at.back(mark);
        }
    }
}

/// Each check is made only if those before it found nothing, save that an unpruned default is checked
/// further.
fn check(
    (patterns, require_pruned): (&Patterns, bool),
    schema: &Schema,
    default: &Json,
    is_object: bool,
    standing: &Standing<'_>,
    at: &mut Field,
    list: &mut List,
) {
    let place = at.to_string();
    let mut default = default.clone();
    if standing.in_metadata {
        let problems = metadata_problems(&default, standing);
        if !problems.is_empty() {
            let detail = format!("must result in valid metadata: {}", aggregate(&problems));
            list.found.push(Finding::new(Kind::Invalid, place, detail));
            return;
        }
    } else {
        let mut unknown = false;
        if require_pruned {
            prune(&mut default.clone(), schema, is_object, &mut |_| unknown = true);
        }
        if unknown {
            list.found.push(Finding::new(Kind::Invalid, &*place, "must not have unknown fields"));
        }
        let misfits = metadata::misfits(schema, &default, is_object, at);
        if let Some(first) = misfits.first() {
            list.found.push(first.clone());
            list.either.extend(Some(misfits).filter(|misfits| misfits.len() > 1));
            return;
        }
        // Nothing is left to be dropped; the rest of metadata takes the form that the server
        // checks next.
        let _ = coerce(&mut default, schema, is_object, Malformed::Drop, &Place::root(""));
        let before = list.found.len();
        metadata::check(schema, &default, is_object, at, &mut list.found);
        if list.found.len() > before {
            return;
        }
    }
    let violations = value::check(Form::Structural, patterns, schema, &default);
    list.found.extend(violations.iter().map(|violation| violation.finding(&place)));
    if violations.is_empty()
        && let Some(rules) = Program::compile(schema, is_object)
    {
        list.budget = run(&rules, &default, &place, list);
    }
}

/// Judges what an object gets, as a part of it.
fn judge(
    patterns: &Patterns,
    schema: &Schema,
    value: &Json,
    is_object: bool,
    standing: &Standing<'_>,
    at: &mut Field,
    list: &mut List,
) {
    let place = at.to_string();
    let before = list.found.len();
    if standing.in_metadata {
        let problems = metadata_problems(value, standing);
        if !problems.is_empty() {
            let detail = format!("must result in valid metadata: {}", aggregate(&problems));
            list.found.push(Finding::new(Kind::Invalid, place, detail));
            return;
        }
    } else {
        metadata::check(schema, value, is_object, at, &mut list.found);
    }
    let violations = value::check(Form::Props, patterns, schema, value);
    list.found.extend(violations.iter().map(|violation| violation.finding(&place)));
    if list.found.len() == before
        && let Some(rules) = Program::compile(schema, is_object)
    {
        list.budget = run(&rules, value, &place, list);
    }
}

/// Runs the rules over a default as if it replaced itself, and then, for the rules that depend on whether it
/// replaces anything, as if it replaced nothing. The more expensive run is charged.
fn run(rules: &Program, default: &Value, place: &str, list: &mut List) -> i64 {
    let before = list.found.len();
    let left = rules.validate(default, Some(default), place, list.budget, &mut list.found);
    if list.found.len() > before {
        return left;
    }
    left.min(rules.validate(default, None, place, list.budget, &mut list.found))
}

/// What is wrong with the smallest whole object around a default in its metadata.
fn metadata_problems(default: &Value, standing: &Standing<'_>) -> Vec<Finding> {
    let mut object = Json::from(wrap(default.clone(), standing));
    if let Value::Object(fields) = &mut *object {
        let mut supply = |name: &str, text: &str| {
            fields.entry(name).or_insert_with(|| text.into());
        };
        supply("kind", "Validation");
        supply("apiVersion", "validation/v1");
    }
    // Upstream has no place here, so neither have its findings; they only make up a detail.
    if let Err(finding) = coerce(&mut object, standing.object, true, Malformed::Refuse, &Place::root("")) {
        return vec![finding];
    }
    let mut found = Vec::new();
    metadata::check(standing.object, &object, true, &mut Field::default(), &mut found);
    found
}

fn wrap(value: Value, standing: &Standing<'_>) -> Value {
    standing.trail.to_path().steps()[standing.depth..].iter().rev().fold(value, |value, step| match step {
        Step::Field(name) | Step::Key(name) => Value::Object(Map::from_iter([(name.clone(), value)])),
        // Any key will do; pruning of defaults uses this one as well.
        Step::Values => Value::Object(Map::from_iter([("*".to_owned(), value)])),
        Step::Index(_) | Step::Items => Value::Array(vec![value]),
    })
}

/// Several errors as one text; of equal ones one.
fn aggregate(findings: &[Finding]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in findings.iter().map(Finding::line) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    match lines.as_slice() {
        [only] => only.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}
