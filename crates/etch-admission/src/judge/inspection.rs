//! What is wrong with one of the objects of a request, and with its extensions.

use std::borrow::Cow;

use serde_json::Value;

use super::found::{Found, Source};
use super::listed::{Known, Listed};
use crate::answer::FieldError;
use crate::compile::{Compiled, CompiledReference, CompiledRule};
use crate::correlated::correlated;
use crate::fill::index_of;
use crate::former::Extension;
use crate::place::{Location, indices, value_at, with_indices, written};
use crate::request::{Lookup, Request, Subject};
use crate::run::{Failure, Run};
use crate::scope::Bound;
use crate::spec::{Rule, Scope, Severity, UnknownFields};
use crate::unchanged::Touch;
use crate::view::view;
use etch_core::field::place_in;
use kube_structural_schema::finding::{Finding, Kind};
use kube_structural_schema::json::Json;
use kube_structural_schema::prune::prune;

/// Which of the two objects of an update is looked at.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side<'k> {
    /// The object as it is to be, and what is wrong with the old one as far as that is known.
    New(Option<&'k Known>),
    /// The object before the request, judged as if an update left it unchanged: of the rules about a change,
    /// only what keeps them from being evaluated counts, if that matters.
    Old { unevaluated: bool },
}

/// What rules are run over: an extension or an object.
pub(super) struct Place<'p> {
    scope: Scope,
    bound: Bound<'p>,
    /// Which of the extensions; `None` for the object.
    extension: Option<usize>,
    /// As errors write it; empty for the object.
    written: String,
}

impl<'p> Place<'p> {
    fn of_object(request: &'p Request<'_>) -> Self {
        let bound = Bound::of(request);
        Self { scope: Scope::Object, bound, extension: None, written: String::new() }
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

pub(super) struct Inspection<'r, 'q> {
    compiled: &'r Compiled,
    request: &'r Request<'q>,
    subject: &'r Subject<'r>,
    run: Run<'r>,
    touch: Touch,
    side: Side<'r>,
    /// What is found about the new object.
    pub(super) listed: Listed,
    /// What is found about the old one.
    pub(super) known: Known,
    /// Whether the rules have cost what they may, and that is reported.
    is_spent: bool,
}

impl<'r, 'q> Inspection<'r, 'q> {
    /// Looks at everything of one of the objects of a request.
    pub(super) fn of(
        compiled: &'r Compiled,
        request: &'r Request<'q>,
        subject: &'r Subject<'r>,
        run: Run<'r>,
        touch: Touch,
        side: Side<'r>,
    ) -> Self {
        let (listed, known, is_spent) = (Listed::default(), Known::default(), false);
        let mut inspection = Self { compiled, request, subject, run, touch, side, listed, known, is_spent };
        inspection.rules(&Place::of_object(request));
        if subject.extensions.is_empty() && touch == Touch::Extension {
            inspection.missing();
        }
        for (index, extension) in subject.extensions.iter().enumerate() {
            inspection.extension(index, extension);
        }
        inspection
    }

    /// Reports what is wrong at a place of an extension. `below` and `mark` distinguish it from another.
    fn report(
        &mut self,
        extension: Option<usize>,
        source: Source,
        severity: Severity,
        error: FieldError,
        below: impl Into<String>,
        mark: impl Into<String>,
    ) {
        let (below, mark) = (below.into(), mark.into());
        let (about_change, group) = (false, None);
        self.add(Found { error, source, extension, below, mark, severity, about_change, group });
    }

    fn add(&mut self, found: Found) {
        match self.side {
            Side::New(None) => self.listed.add(found),
            Side::New(Some(known)) => self.listed.add(known.ratcheted(found, self.subject)),
            Side::Old { .. } => self.known.add(&found, self.subject),
        }
    }

    fn missing(&mut self) {
        let Some(required) = &self.compiled.required else { return };
        let field = required.field.clone().unwrap_or_else(|| self.subject.field());
        let detail = required.message.as_deref().unwrap_or("it must be set").to_owned();
        let error = FieldError { field, kind: Kind::Required, detail };
        self.report(None, Source::Missing, Severity::Deny, error, "", "");
    }

    fn extension(&mut self, index: usize, extension: &Extension) {
        let bound = Bound::of(self.request).extension(extension);
        let Some(own) = bound.own else { return };
        let seen = |value| match &self.compiled.extension {
            Some(extension) => view(value, &extension.schema),
            None => Cow::Borrowed(value),
        };
        let (own_view, old_view) = (seen(own), bound.old.map(seen));
        let bound = Bound { own: Some(&own_view), old: old_view.as_deref(), ..bound };
        let written = self.subject.target.written(&extension.at);
        let place = Place { scope: Scope::Extension, bound, extension: Some(index), written };
        if self.touch == Touch::Extension {
            self.schema(&place, &own_view, old_view.as_deref());
        }
        self.rules(&place);
        if self.touch == Touch::Extension {
            self.references(&place, &own_view);
        }
    }

    /// Judges an extension by its schema.
    fn schema(&mut self, place: &Place<'_>, own: &Value, old: Option<&Value>) {
        let Some(extension) = &self.compiled.extension else { return };
        let check = |old: Option<&Value>, budget: &mut i64| {
            extension.prepared.embedded(&extension.schema, own, old, budget)
        };
        let was_spent = self.run.is_spent();
        let is_new = matches!(self.side, Side::New(_));
        let mut found = check(old.filter(|_| is_new), &mut self.run.budget);
        // The last rule is the one that cost too much.
        let exceeds = !was_spent && self.run.is_spent();
        let too_expensive = exceeds.then(|| found.rules.pop()).flatten();
        if matches!(self.side, Side::Old { unevaluated: true }) {
            found.misfits = check(old, &mut self.run.budget).misfits;
        }
        let error = |finding: &Finding| FieldError {
            field: join(&place.written, relative(finding)),
            kind: finding.kind,
            detail: finding.detail.clone(),
        };
        let place_of = |finding: &Finding| {
            let at = place_in(relative(finding), &extension.schema, own);
            correlated(at.steps(), &extension.schema, own)
        };
        for finding in &found.values {
            let source = Source::Value(finding.kind);
            let mark = match finding.kind {
                // A value that was of another type before is as wrong as it was only while it is the same.
                Kind::TypeInvalid => at_field(own, relative(finding)).map(text),
                // The place of some is in the detail only.
                _ if relative(finding).is_empty() => Some(finding.detail.clone()),
                _ => finding.asked.as_deref().map(str::to_owned),
            };
            let (at, mark) = (place_of(finding), mark.unwrap_or_default());
            self.report(place.extension, source, Severity::Deny, error(finding), at, mark);
        }
        for finding in &found.rules {
            let (at, mark) = (place_of(finding), finding.asked.as_deref().unwrap_or_default());
            self.report(place.extension, Source::SchemaRule, Severity::Deny, error(finding), at, mark);
        }
        if let Some(finding) = &too_expensive {
            self.too_expensive(Severity::Deny, error(finding));
        }
        for finding in &found.misfits {
            let (at, source) = (place_of(finding), Source::Unevaluated(None));
            self.report(place.extension, source, Severity::Deny, error(finding), at, &*finding.detail);
        }
        let severity = match self.compiled.unknown_fields {
            UnknownFields::Warn => Severity::Warn,
            UnknownFields::Deny => Severity::Deny,
            UnknownFields::Keep | UnknownFields::Prune => return,
        };
        let mut pruned = Json::from(own.clone());
        prune(&mut pruned, &extension.schema, true, &mut |at| {
            let at = at.to_path();
            let detail = "the schema has no such field".to_owned();
            let field = join(&place.written, &written(at.steps()));
            let error = FieldError { field, kind: Kind::Invalid, detail };
            let below = correlated(at.steps(), &extension.schema, own);
            self.report(place.extension, Source::Unknown, severity, error, below, "");
        });
    }

    fn rules(&mut self, place: &Place<'_>) {
        let compiled = self.compiled;
        for (index, rule) in compiled.rules.iter().enumerate() {
            if rule.scope != place.scope || !self.is_for(rule, place) {
                continue;
            }
            match &rule.for_each {
                None => self.rule(index, rule, place, &Location::new()),
                Some(items) => {
                    let Some(root) = place.bound.own.or(place.bound.object) else { continue };
                    items.visit(root, &Location::new(), &mut |at, _| self.rule(index, rule, place, at));
                }
            }
        }
    }

    /// Whether a rule applies to this request.
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
        if self.is_spent {
            return;
        }
        let root = place.bound.own.or(place.bound.object);
        let number = at.last().and_then(index_of);
        let item = root.and_then(|root| value_at(root, at));
        let values = Bound { index: number.as_ref(), item, ..place.bound }.values();
        let changes = rule.names_old_self || rule.names_old_object;
        let is_old = matches!(self.side, Side::Old { .. });
        let holds = self.run.holds(&rule.rule, &values);
        let is_too_expensive = holds.as_ref().is_err_and(Failure::is_too_expensive);
        let (source, kind, detail) = match holds {
            Ok(true) => return,
            Err(failure) if failure.is_misfit() => {
                let source = Source::Unevaluated(Some(index));
                (
                    source,
                    Kind::Invalid,
                    format!("cannot evaluate the rule: {failure}: {}", rule.declared.rule.trim()),
                )
            }
            Err(Failure::OutOfBudget) => {
                let field = place.field(rule.declared.field.as_deref(), at);
                let detail = format!("cannot evaluate the rule: {}", Failure::OutOfBudget);
                let error = FieldError { field, kind: Kind::Invalid, detail };
                let refuses = |rule: &CompiledRule| rule.severity == Severity::Deny;
                let severity = match self.compiled.rules.iter().any(refuses) {
                    true => Severity::Deny,
                    false => Severity::Warn,
                };
                return self.too_expensive(severity, error);
            }
            // An update that leaves everything unchanged shows nothing about a change.
            _ if is_old && changes => return,
            Ok(false) => (Source::Rule(index), rule.kind, self.message(rule, &values)),
            Err(failure) => {
                let detail = format!("cannot evaluate the rule: {failure}: {}", rule.declared.rule.trim());
                (Source::Rule(index), Kind::Invalid, detail)
            }
        };
        let field = place.field(rule.declared.field.as_deref(), at);
        self.add(Found {
            error: FieldError { field, kind, detail },
            source,
            extension: place.extension,
            below: self.below(place, at),
            mark: String::new(),
            severity: rule.severity,
            about_change: changes && source == Source::Rule(index)
                || is_too_expensive && self.touch == Touch::Extension,
            group: rule.declared.group.clone(),
        });
    }

    /// Reports that the rules cost too much. This stands for all that are not evaluated, which the old object
    /// may have kept: that it was as expensive excuses them only where the extensions are as they were.
    fn too_expensive(&mut self, severity: Severity, error: FieldError) {
        self.is_spent = true;
        self.add(Found {
            error,
            source: Source::Cost,
            extension: None,
            below: String::new(),
            mark: String::new(),
            severity,
            about_change: self.touch == Touch::Extension,
            group: None,
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
            reference.place.visit(own, &Location::new(), &mut |at, name| {
                let name = name.as_str().unwrap_or_default();
                let found =
                    if name.is_empty() { Ok(false) } else { self.is_dangling(reference, place, name) };
                let (detail, mark) = match found {
                    Ok(false) => return,
                    Ok(true) => {
                        let message = reference.declared.message.clone();
                        let none = || format!("no such {}", reference.declared.resource);
                        (message.unwrap_or_else(none), name)
                    }
                    // It is the same fault with any name.
                    Err(failure) => (format!("cannot evaluate its namespace: {failure}"), ""),
                };
                let field = place.field(reference.declared.field.as_deref(), at);
                let error = FieldError { field, kind: Kind::Invalid, detail };
                let (source, severity) = (Source::Reference(index), reference.severity);
                self.report(place.extension, source, severity, error, self.below(place, at), mark);
            });
        }
    }

    /// A place below what rules are run over, by which it is found in the old object.
    fn below(&self, place: &Place<'_>, at: &Location) -> String {
        match (&self.compiled.extension, place.bound.own) {
            (Some(extension), Some(own)) => correlated(at, &extension.schema, own),
            _ => written(at),
        }
    }

    /// Whether a reference leads nowhere, as far as that is known.
    ///
    /// # Errors
    /// Its namespace cannot be evaluated.
    fn is_dangling(
        &mut self,
        reference: &CompiledReference,
        place: &Place<'_>,
        name: &str,
    ) -> Result<bool, Failure> {
        let namespace = match &reference.namespace {
            Some(source) => match self.run.text(source, &place.bound.values())? {
                namespace if namespace.is_empty() => return Ok(false),
                namespace => namespace,
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
        Ok((self.request.exists)(&lookup) == Some(false))
    }
}

/// The field of a finding below the value that was checked; the value itself is `<nil>` there.
fn relative(finding: &Finding) -> &str {
    finding.field.strip_prefix("<nil>").unwrap_or(&finding.field).trim_start_matches('.')
}

/// The value that an error is about: at a field as API servers write it, `disks[0].name`.
fn at_field<'v>(value: &'v Value, field: &str) -> Option<&'v Value> {
    let field = field.trim_start_matches('.');
    if field.is_empty() {
        return Some(value);
    }
    if let Some(rest) = field.strip_prefix('[') {
        let (key, rest) = rest.split_once(']')?;
        let below = match value {
            Value::Array(items) => items.get(key.parse::<usize>().ok()?)?,
            value => value.get(key)?,
        };
        return at_field(below, rest);
    }
    // A name may contain what separates names.
    let ends = field.match_indices(['.', '[']).map(|(end, _)| end).chain([field.len()]);
    let below = |name: &str| match value {
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        value => value.get(name),
    };
    ends.filter(|end| *end > 0).find_map(|end| at_field(below(&field[..end])?, &field[end..]))
}

fn text(value: &Value) -> String {
    String::from_utf8_lossy(&Json::from(value.clone()).to_vec()).into_owned()
}
