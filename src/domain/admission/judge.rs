//! The verdict on a request: everything that is wrong, not the first of it.
//! It must not set anything.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::Value;

use super::answer::{Answer, FieldError};
use super::compile::{Compiled, CompiledReference, CompiledRule};
use super::fill::index_of;
use super::place::{Location, indices, value_at, with_indices, written};
use super::request::{Lookup, Request, Subject};
use super::run::Run;
use super::scope::Bound;
use super::spec::{Enforcement, Operation, Ratcheting, Rule, Scope, Severity, UnknownFields};
use super::unchanged::{Touch, touch};
use super::view::view;
use crate::domain::finding::Kind;
use crate::domain::json::Json;
use crate::domain::prune::prune;

/// Something that is wrong, and by whose word.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) error: FieldError,
    source: Source,
    severity: Severity,
    /// It is about a change, so an old object cannot have had it.
    about_change: bool,
    /// Without an extension of the right types nothing else can be said of it.
    pub(super) blocks: bool,
}

impl Found {
    /// Whether it refuses the request as soon as the schema is enforced.
    pub(super) fn denies(&self) -> bool {
        self.severity == Severity::Deny
    }

    /// What asks for it, by its place in the declaration.
    pub(super) fn place(&self) -> String {
        match self.source {
            Source::Missing => "spec.required".to_owned(),
            Source::Schema(_) => "spec.schema".to_owned(),
            Source::Unknown => "spec.unknownFields".to_owned(),
            Source::Rule(index) => format!("spec.rules[{index}]"),
            Source::Reference(index) => format!("spec.references[{index}]"),
        }
    }
}

/// Who found it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Source {
    Missing,
    Schema(Kind),
    Unknown,
    Rule(usize),
    Reference(usize),
}

impl Compiled {
    /// Judges a request, with its defaults set.
    pub fn judge(&self, request: &Request<'_>) -> Answer {
        self.answer(self.found(request))
    }

    /// Everything that is to be said of a request, with what an old object had already as warnings.
    pub(super) fn found(&self, request: &Request<'_>) -> Vec<Found> {
        let mut run = Run::new(self);
        let Some(subject) = self.subject(request, &mut run) else { return Vec::new() };
        let ratchets = self.ratcheting == Ratcheting::Enabled && request.operation == Operation::Update;
        let touch = if ratchets { touch(request, &subject.extensions) } else { Touch::Extension };
        if touch == Touch::FinalizersOnly {
            return Vec::new();
        }
        let mut found = self.inspect(request, &subject, run, touch);
        if let Some(old) = request.old_object.filter(|_| ratchets && !found.is_empty()) {
            let before = Request { object: old, old_object: None, ..*request };
            let mut run = Run::new(self);
            let before = match self.subject(&before, &mut run) {
                Some(subject) => self.inspect(&before, &subject, run, touch),
                None => Vec::new(),
            };
            let before: HashSet<_> = before.iter().map(|found| (found.source, &*found.error.field)).collect();
            for found in &mut found {
                if !found.about_change && before.contains(&(found.source, &*found.error.field)) {
                    found.severity = Severity::Warn;
                }
            }
        }
        found
    }

    pub(super) fn answer(&self, found: Vec<Found>) -> Answer {
        let mut answer = Answer::default();
        for Found { error, severity, .. } in found {
            match (severity, self.enforcement) {
                (Severity::Deny, Enforcement::Deny) => answer.errors.push(error),
                _ => answer.warnings.push(error.warning()),
            }
        }
        answer
    }

    fn inspect<'r>(
        &'r self,
        request: &'r Request<'_>,
        subject: &'r Subject<'r>,
        run: Run<'r>,
        touch: Touch,
    ) -> Vec<Found> {
        let mut inspection = Inspection { compiled: self, request, subject, run, touch, found: Vec::new() };
        inspection.rules(&Place::of_object(request));
        if subject.extensions.is_empty() && touch == Touch::Extension {
            inspection.missing();
        }
        for location in &subject.extensions {
            inspection.extension(location);
        }
        inspection.found
    }
}

/// What rules are run over: an extension or an object.
struct Place<'p> {
    scope: Scope,
    bound: Bound<'p>,
    /// As errors write it; empty for the object.
    written: String,
}

impl<'p> Place<'p> {
    fn of_object(request: &'p Request<'_>) -> Self {
        Self { scope: Scope::Object, bound: Bound::of(request), written: String::new() }
    }

    /// The field of an error: as declared, or the place of the value itself.
    fn field(&self, declared: Option<&str>, value: &Location) -> String {
        match declared {
            Some(".") => self.written.clone(),
            Some(text) => match text.strip_prefix('.') {
                Some(below) => join(&self.written, &with_indices(below, indices(value))),
                None => with_indices(text, indices(value)),
            },
            None => join(&self.written, &written(value)),
        }
    }
}

fn join(base: &str, below: &str) -> String {
    if base.is_empty() || below.is_empty() || below.starts_with('[') {
        format!("{base}{below}")
    } else {
        format!("{base}.{below}")
    }
}

struct Inspection<'r, 'q> {
    compiled: &'r Compiled,
    request: &'r Request<'q>,
    subject: &'r Subject<'r>,
    run: Run<'r>,
    touch: Touch,
    found: Vec<Found>,
}

impl Inspection<'_, '_> {
    fn report(
        &mut self,
        source: Source,
        severity: Severity,
        kind: Kind,
        field: String,
        detail: impl Into<String>,
    ) {
        let error = FieldError { field, kind, detail: detail.into() };
        self.found.push(Found { error, source, severity, about_change: false, blocks: false });
    }

    fn missing(&mut self) {
        let Some(required) = &self.compiled.required else { return };
        let path = &self.subject.target.declared;
        let field = required.field.clone().unwrap_or_else(|| {
            path.reported_as.clone().unwrap_or_else(|| path.path.trim_start_matches('.').to_owned())
        });
        let detail = required.message.as_deref().unwrap_or("it must be set");
        let error = FieldError { field, kind: Kind::Required, detail: detail.to_owned() };
        self.found.push(Found {
            error,
            source: Source::Missing,
            severity: Severity::Deny,
            about_change: false,
            blocks: true,
        });
    }

    fn extension(&mut self, location: &Location) {
        let bound = Bound::of(self.request).extension(location);
        let Some(own) = bound.own else { return };
        let seen = |value| match &self.compiled.extension {
            Some(extension) => view(value, &extension.schema),
            None => Cow::Borrowed(value),
        };
        let (own_view, old_view) = (seen(own), bound.old.map(seen));
        let bound = Bound { own: Some(&own_view), old: old_view.as_deref(), ..bound };
        let place = Place { scope: Scope::Extension, bound, written: self.subject.target.written(location) };
        if self.touch == Touch::Extension && self.schema(&place, &own_view, old_view.as_deref()) {
            return;
        }
        self.rules(&place);
        if self.touch == Touch::Extension {
            self.references(&place, &own_view);
        }
    }

    /// Judges an extension by its schema; says whether it is of the wrong types.
    fn schema(&mut self, place: &Place<'_>, own: &Value, old: Option<&Value>) -> bool {
        let Some(extension) = &self.compiled.extension else { return false };
        let found = extension.prepared.embedded(&extension.schema, own, old, &mut self.run.budget);
        let mut misfits = false;
        for finding in found.iter() {
            let blocks = finding.kind == Kind::TypeInvalid;
            misfits |= blocks;
            let field = join(&place.written, finding.field.trim_start_matches('.'));
            self.report(Source::Schema(finding.kind), Severity::Deny, finding.kind, field, &*finding.detail);
            if let Some(last) = self.found.last_mut() {
                last.blocks = blocks;
            }
        }
        let severity = match self.compiled.unknown_fields {
            UnknownFields::Warn => Severity::Warn,
            UnknownFields::Deny => Severity::Deny,
            UnknownFields::Keep | UnknownFields::Prune => return misfits,
        };
        let mut unknown = Vec::new();
        let mut pruned = Json::from(own.clone());
        prune(&mut pruned, &extension.schema, true, &mut |at| unknown.push(at.to_path()));
        for path in unknown {
            let field = join(&place.written, &written(path.steps()));
            self.report(Source::Unknown, severity, Kind::Invalid, field, "the schema has no such field");
        }
        misfits
    }

    fn rules(&mut self, place: &Place<'_>) {
        let compiled = self.compiled;
        let mut spoken: HashSet<&str> = HashSet::new();
        for (index, rule) in compiled.rules.iter().enumerate() {
            let group = rule.declared.group.as_deref();
            if rule.scope != place.scope
                || !self.is_for(rule, place)
                || group.is_some_and(|group| spoken.contains(group))
            {
                continue;
            }
            let before = self.found.len();
            match &rule.for_each {
                None => self.rule(index, rule, place, &Location::new()),
                Some(items) => {
                    let Some(root) = place.bound.own.or(place.bound.object) else { continue };
                    for (at, _) in items.find(root, &Location::new()) {
                        self.rule(index, rule, place, &at);
                    }
                }
            }
            if self.found.len() > before {
                spoken.extend(group);
            }
        }
    }

    /// Whether a rule is about this request at all.
    fn is_for(&self, rule: &CompiledRule, place: &Place<'_>) -> bool {
        let Rule { operations, resources, .. } = &rule.declared;
        let about_change = rule.names_old_self || rule.names_old_object;
        (operations.is_empty() || operations.contains(&self.request.operation))
            && (resources.is_empty() || resources.contains(&self.subject.target.declared.resource))
            && (!rule.names_old_self || place.bound.old.is_some())
            && (!rule.names_old_object || self.request.old_object.is_some())
            && match self.touch {
                Touch::FinalizersOnly => false,
                Touch::Terminating => about_change,
                Touch::AroundExtension => about_change || rule.scope == Scope::Object,
                Touch::Extension => true,
            }
    }

    fn rule(&mut self, index: usize, rule: &CompiledRule, place: &Place<'_>, at: &Location) {
        let root = place.bound.own.or(place.bound.object);
        let number = at.last().and_then(index_of);
        let item = root.and_then(|root| value_at(root, at));
        let values = Bound { index: number.as_ref(), item, ..place.bound }.values();
        let (kind, detail) = match self.run.holds(&rule.rule, &values) {
            Ok(true) => return,
            Ok(false) => (rule.kind, self.message(rule, &values)),
            Err(failure) => {
                (Kind::Invalid, format!("cannot evaluate the rule: {failure}: {}", rule.declared.rule.trim()))
            }
        };
        let field = place.field(rule.declared.field.as_deref(), at);
        self.found.push(Found {
            error: FieldError { field, kind, detail },
            source: Source::Rule(index),
            severity: rule.severity,
            about_change: rule.names_old_self || rule.names_old_object,
            blocks: false,
        });
    }

    fn message(&mut self, rule: &CompiledRule, values: &[Option<&Value>]) -> String {
        let computed = rule.message.as_ref().and_then(|message| self.run.text(message, values).ok());
        match (computed.filter(|text| !text.trim().is_empty()), &rule.declared.message) {
            (Some(text), _) => text,
            (None, Some(text)) => text.clone(),
            (None, None) => format!("failed rule: {}", rule.declared.rule.trim()),
        }
    }

    fn references(&mut self, place: &Place<'_>, own: &Value) {
        let compiled = self.compiled;
        for (index, reference) in compiled.references.iter().enumerate() {
            for (at, name) in reference.place.find(own, &Location::new()) {
                let name = name.as_str().unwrap_or_default();
                if !name.is_empty() && self.is_dangling(reference, place, name) {
                    let field = place.field(reference.declared.field.as_deref(), &at);
                    let message = reference.declared.message.clone();
                    let detail =
                        message.unwrap_or_else(|| format!("no such {}", reference.declared.resource));
                    let (source, severity) = (Source::Reference(index), reference.severity);
                    self.report(source, severity, Kind::Invalid, field, detail);
                }
            }
        }
    }

    fn is_dangling(&mut self, reference: &CompiledReference, place: &Place<'_>, name: &str) -> bool {
        let namespace = match &reference.namespace {
            Some(source) => match self.run.text(source, &place.bound.values()) {
                Ok(namespace) if !namespace.is_empty() => namespace,
                _ => return false,
            },
            None => {
                let namespace = self.request.object.pointer("/metadata/namespace").and_then(Value::as_str);
                namespace.unwrap_or_default().to_owned()
            }
        };
        let declared = &reference.declared;
        let lookup = Lookup {
            group: &declared.group,
            version: declared.version.as_deref().unwrap_or("v1"),
            resource: &declared.resource,
            namespace: &namespace,
            name,
        };
        (self.request.exists)(&lookup) == Some(false)
    }
}
