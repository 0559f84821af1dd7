//! The verdict on a request: everything that is wrong, not the first of it.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use serde_json::Value;

use super::answer::{Answer, FieldError};
use super::compile::{Compiled, CompiledReference, CompiledRule};
use super::fill::index_of;
use super::former::Extension;
use super::place::{Location, indices, value_at, with_indices, written};
use super::request::{Lookup, Request, Subject};
use super::run::{Failure, Run};
use super::scope::Bound;
use super::spec::{Enforcement, Operation, Ratcheting, Rule, Scope, Severity, UnknownFields};
use super::unchanged::{Touch, touch};
use super::view::view;
use kube_structural_schema::finding::{Finding, Kind};
use kube_structural_schema::json::Json;
use kube_structural_schema::prune::prune;

/// A finding, with its source.
#[derive(Debug)]
pub(super) struct Found {
    /// What its reader sees. Several extensions may have the same text as their place.
    pub(super) error: FieldError,
    source: Source,
    /// Which of the extensions it is about; `None` for the object.
    extension: Option<usize>,
    /// Where, below the extension or the object.
    below: String,
    /// What distinguishes it from another by the same source at the same place.
    mark: String,
    severity: Severity,
    /// It is about a change, so an old object cannot have had it.
    about_change: bool,
    /// The group of its rule.
    group: Option<String>,
}

impl Found {
    /// Whether it refuses the request as soon as the schema is enforced.
    pub(super) fn denies(&self) -> bool {
        self.severity == Severity::Deny
    }

    /// Its source, by the place in the declaration.
    pub(super) fn place(&self) -> String {
        match self.source {
            Source::Missing => "spec.required".to_owned(),
            Source::Value(_) | Source::SchemaRule | Source::Unevaluated(None) => "spec.schema".to_owned(),
            Source::Unknown => "spec.unknownFields".to_owned(),
            Source::Rule(index) | Source::Unevaluated(Some(index)) => format!("spec.rules[{index}]"),
            Source::Reference(index) => format!("spec.references[{index}]"),
            Source::Cost | Source::More => "spec".to_owned(),
        }
    }

    /// Whether an extension is missing that must be there.
    pub(super) fn is_missing(&self) -> bool {
        self.source == Source::Missing
    }

    /// Whether an extension cannot have defaults: it is missing or of the wrong types.
    pub(super) fn prevents_defaults(&self) -> bool {
        self.is_missing() || self.is_type()
    }

    fn is_type(&self) -> bool {
        self.source == Source::Value(Kind::TypeInvalid)
    }

    /// Whether it is a rule that a value of another type keeps from being evaluated.
    fn is_unevaluated(&self) -> bool {
        matches!(self.source, Source::Unevaluated(_))
    }

    /// It as a warning, if the old object has it as well.
    fn ratcheted(self, known: &Known, subject: &Subject<'_>) -> Self {
        let severity = if known.has(&self, subject) { Severity::Warn } else { self.severity };
        Self { severity, ..self }
    }

    /// That there is more than is listed.
    fn more(severity: Severity, subject: &Subject<'_>) -> Self {
        let detail = "there are more violations than Etch lists".to_owned();
        Self {
            error: FieldError { field: subject.field(), kind: Kind::Invalid, detail },
            source: Source::More,
            extension: None,
            below: String::new(),
            mark: String::new(),
            severity,
            about_change: false,
            group: None,
        }
    }

    /// By what it is the same violation as one that an old object has; `extension` is where its extension
    /// stands there.
    fn identity(&self, hasher: &RandomState, extension: Option<&Location>) -> u64 {
        hasher.hash_one((self.source, extension, &self.below, &self.mark))
    }
}

/// The source of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Source {
    Missing,
    /// The schema, of a value.
    Value(Kind),
    /// A rule of the schema.
    SchemaRule,
    Unknown,
    Rule(usize),
    /// A rule of the declaration; without a number, one of the schema.
    Unevaluated(Option<usize>),
    Reference(usize),
    /// The rules together: they cost too much. That is so of the request as a whole.
    Cost,
    /// More than is listed.
    More,
}

/// How many findings of a kind a schema lists: of those that refuse, of those that warn, and of the rules of
/// both that cannot be evaluated. An author reads no more, and an object may give rise to a million.
const MOST: usize = 100;

/// What is found about a request, as far as it is listed.
#[derive(Debug, Default)]
struct Listed {
    found: Vec<Found>,
    /// How many there are of each kind.
    counts: HashMap<(Severity, bool), usize>,
}

impl Listed {
    fn add(&mut self, found: Found) {
        let count = self.counts.entry((found.severity, found.is_unevaluated())).or_default();
        *count += 1;
        if *count <= MOST {
            self.found.push(found);
        }
    }

    fn is_complete(&self) -> bool {
        self.counts.values().all(|count| *count <= MOST)
    }

    /// Leaves out the rules that cannot be evaluated.
    fn drop_unevaluated(&mut self) {
        self.found.retain(|found| !found.is_unevaluated());
        self.counts.retain(|(_, is_unevaluated), _| !is_unevaluated);
    }

    /// Of which severity there are more than are listed.
    fn more(&self) -> Vec<Severity> {
        let is_more = |severity: &Severity| {
            [false, true].iter().any(|kind| self.counts.get(&(*severity, *kind)).is_some_and(|n| *n > MOST))
        };
        [Severity::Deny, Severity::Warn].into_iter().filter(is_more).collect()
    }
}

/// What is wrong with the old object: no more than a number each, because there may be very many.
#[derive(Debug, Default)]
struct Known {
    hasher: RandomState,
    identities: HashSet<u64>,
}

impl Known {
    /// Whether the old object has what is found about the new one.
    fn has(&self, found: &Found, subject: &Subject<'_>) -> bool {
        let extension = found.extension.map(|index| &subject.extensions[index]);
        let at = match extension {
            None => None,
            // The old object cannot have had what is wrong with a new extension.
            Some(Extension { former: None, .. }) => return false,
            Some(Extension { former, .. }) => former.as_ref(),
        };
        !found.about_change && self.identities.contains(&found.identity(&self.hasher, at))
    }

    /// Adds what is found about the old object.
    fn add(&mut self, found: &Found, subject: &Subject<'_>) {
        let at = found.extension.map(|index| &subject.extensions[index].at);
        self.identities.insert(found.identity(&self.hasher, at));
    }
}

/// Which of the two objects of an update is looked at.
#[derive(Clone, Copy, Debug)]
enum Side<'k> {
    /// The object as it is to be, and what is wrong with the old one as far as that is known.
    New(Option<&'k Known>),
    /// The object before the request, judged as if an update left it unchanged: of the rules about a change,
    /// only what keeps them from being evaluated counts, if that matters.
    Old { unevaluated: bool },
}

impl Compiled {
    /// Judges a request, with its defaults set.
    pub fn judge(&self, request: &Request<'_>) -> Answer {
        self.answer(self.found(request))
    }

    /// All findings about a request, with those that an old object had already as warnings.
    pub(super) fn found(&self, request: &Request<'_>) -> Vec<Found> {
        self.found_with(self.ratcheting, request)
    }

    /// As [`Self::found`], with this in the place of what the schema declares.
    pub(super) fn found_with(&self, ratcheting: Ratcheting, request: &Request<'_>) -> Vec<Found> {
        let mut run = Run::new(self);
        let ratchets = ratcheting == Ratcheting::Enabled && request.operation == Operation::Update;
        let subject = self.subject(request, &mut run);
        if run.is_spent() {
            return self.undetermined(request, ratchets).into_iter().collect();
        }
        let Some(subject) = subject else { return Vec::new() };
        let touch =
            if ratchets { touch(request, subject.target, &subject.extensions) } else { Touch::Extension };
        if touch == Touch::FinalizersOnly {
            return Vec::new();
        }
        let mut listed = self.inspect(request, &subject, run.clone(), touch, Side::New(None)).listed;
        if let Some(old) = request.old_object.filter(|_| ratchets && !listed.found.is_empty()) {
            let before = Request { object: old, old_object: Some(old), ..*request };
            let side = Side::Old { unevaluated: listed.found.iter().any(Found::is_unevaluated) };
            let mut run_before = Run::new(self);
            if let Some(former) = self.subject(&before, &mut run_before) {
                let known = self.inspect(&before, &former, run_before, touch, side).known;
                if listed.is_complete() {
                    let all = std::mem::take(&mut listed).found;
                    all.into_iter()
                        .map(|found| found.ratcheted(&known, &subject))
                        .for_each(|found| listed.add(found));
                } else {
                    // What is not listed may be what refuses.
                    listed = self.inspect(request, &subject, run, touch, Side::New(Some(&known))).listed;
                }
            }
        }
        // The type itself has to be corrected first.
        if listed.found.iter().any(|found| found.is_type() && found.denies()) {
            listed.drop_unevaluated();
        }
        let more = listed.more().into_iter().map(|severity| Found::more(severity, &subject));
        let more: Vec<_> = more.collect();
        let mut found = listed.found;
        one_of_each_group(&mut found);
        found.extend(more);
        found
    }

    /// That it costs too much to determine what of a request the schema is for. It stands for all that would be
    /// found there.
    fn undetermined(&self, request: &Request<'_>, ratchets: bool) -> Option<Found> {
        let subject = Subject { target: self.target(request)?, extensions: self.all_extensions(request) };
        let touch =
            if ratchets { touch(request, subject.target, &subject.extensions) } else { Touch::Extension };
        let severity = match touch {
            Touch::FinalizersOnly => return None,
            Touch::Extension if self.may_refuse() => Severity::Deny,
            Touch::Terminating | Touch::AroundExtension | Touch::Extension => Severity::Warn,
        };
        let detail = format!("cannot evaluate `when`: {}", Failure::OutOfBudget);
        let error = FieldError { field: subject.field(), kind: Kind::Invalid, detail };
        Some(Found { error, source: Source::Cost, severity, ..Found::more(severity, &subject) })
    }

    /// Whether anything that it can find refuses a request.
    fn may_refuse(&self) -> bool {
        self.extension.is_some()
            || self.required.is_some()
            || self.rules.iter().any(|rule| rule.severity == Severity::Deny)
            || self.references.iter().any(|reference| reference.severity == Severity::Deny)
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

    fn inspect<'r, 'q>(
        &'r self,
        request: &'r Request<'q>,
        subject: &'r Subject<'r>,
        run: Run<'r>,
        touch: Touch,
        side: Side<'r>,
    ) -> Inspection<'r, 'q> {
        let (listed, known, is_spent) = (Listed::default(), Known::default(), false);
        let mut inspection =
            Inspection { compiled: self, request, subject, run, touch, side, listed, known, is_spent };
        inspection.rules(&Place::of_object(request));
        if subject.extensions.is_empty() && touch == Touch::Extension {
            inspection.missing();
        }
        for (index, extension) in subject.extensions.iter().enumerate() {
            inspection.extension(index, extension);
        }
        inspection
    }
}

/// Leaves of each group what its first rule has found in an extension: of those that refuse, if there are
/// any, so that an old violation hides no new one.
fn one_of_each_group(found: &mut Vec<Found>) {
    let of = |found: &Found| Some((found.group.clone()?, found.extension));
    let mut speaks: HashMap<_, (bool, Source)> = HashMap::new();
    for found in found.iter().filter(|found| !found.is_unevaluated()) {
        let Some(group) = of(found) else { continue };
        let first = speaks.entry(group).or_insert((found.denies(), found.source));
        if found.denies() && !first.0 {
            *first = (true, found.source);
        }
    }
    found.retain(|found| match of(found) {
        Some(_) if found.is_unevaluated() => true,
        Some(group) => speaks.get(&group).is_none_or(|(_, source)| *source == found.source),
        None => true,
    });
}

/// What rules are run over: an extension or an object.
struct Place<'p> {
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

struct Inspection<'r, 'q> {
    compiled: &'r Compiled,
    request: &'r Request<'q>,
    subject: &'r Subject<'r>,
    run: Run<'r>,
    touch: Touch,
    side: Side<'r>,
    /// What is found about the new object.
    listed: Listed,
    /// What is found about the old one.
    known: Known,
    /// Whether the rules have cost what they may, and that is reported.
    is_spent: bool,
}

impl Inspection<'_, '_> {
    /// Reports what is wrong at a place of an extension. `below` and `mark` tell it from another.
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
            Side::New(Some(known)) => self.listed.add(found.ratcheted(known, self.subject)),
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
        for finding in &found.values {
            let source = Source::Value(finding.kind);
            let mark = match finding.kind {
                // A value that was of another type before is as wrong as it was only while it is the same.
                Kind::TypeInvalid => at_field(own, relative(finding)).map(text),
                // The place of some is in the detail only.
                _ if relative(finding).is_empty() => Some(finding.detail.clone()),
                _ => finding.asked.as_deref().map(str::to_owned),
            };
            let (at, mark) = (relative(finding), mark.unwrap_or_default());
            self.report(place.extension, source, Severity::Deny, error(finding), at, mark);
        }
        for finding in &found.rules {
            let (at, mark) = (relative(finding), finding.asked.as_deref().unwrap_or_default());
            self.report(place.extension, Source::SchemaRule, Severity::Deny, error(finding), at, mark);
        }
        if let Some(finding) = &too_expensive {
            self.too_expensive(Severity::Deny, error(finding));
        }
        for finding in &found.misfits {
            let (at, source) = (relative(finding), Source::Unevaluated(None));
            self.report(place.extension, source, Severity::Deny, error(finding), at, &*finding.detail);
        }
        let severity = match self.compiled.unknown_fields {
            UnknownFields::Warn => Severity::Warn,
            UnknownFields::Deny => Severity::Deny,
            UnknownFields::Keep | UnknownFields::Prune => return,
        };
        let mut pruned = Json::from(own.clone());
        prune(&mut pruned, &extension.schema, true, &mut |at| {
            let at = written(at.to_path().steps());
            let detail = "the schema has no such field".to_owned();
            let error = FieldError { field: join(&place.written, &at), kind: Kind::Invalid, detail };
            self.report(place.extension, Source::Unknown, severity, error, at, "");
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
            below: written(at),
            mark: String::new(),
            severity: rule.severity,
            about_change: changes && source == Source::Rule(index)
                || is_too_expensive && self.touch == Touch::Extension,
            group: rule.declared.group.clone(),
        });
    }

    /// Reports that the rules cost too much. This stands for all that are not evaluated, which the old object may
    /// have kept: that it was as expensive excuses them only where the extensions are as they were.
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
                self.report(place.extension, source, severity, error, written(at), mark);
            });
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
