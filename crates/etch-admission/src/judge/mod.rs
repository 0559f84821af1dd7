//! The verdict on a request: everything that is wrong, not the first of it.

mod found;
mod inspection;
mod listed;

use std::collections::HashMap;

pub(super) use self::found::Found;
use self::found::Source;
use self::inspection::{Inspection, Side};
use super::answer::{Answer, FieldError};
use super::compile::Compiled;
use super::request::{Request, Subject};
use super::run::{Failure, Run};
use super::spec::{Enforcement, Operation, Ratcheting, Severity};
use super::unchanged::{Touch, touch};
use kube_structural_schema::finding::Kind;

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
        let mut listed = Inspection::of(self, request, &subject, run.clone(), touch, Side::New(None)).listed;
        if let Some(old) = request.old_object.filter(|_| ratchets && !listed.found.is_empty()) {
            let before = Request { object: old, old_object: Some(old), ..*request };
            let side = Side::Old { unevaluated: listed.found.iter().any(Found::is_unevaluated) };
            let mut run_before = Run::new(self);
            if let Some(former) = self.subject(&before, &mut run_before) {
                let known = Inspection::of(self, &before, &former, run_before, touch, side).known;
                if listed.is_complete() {
                    let all = std::mem::take(&mut listed).found;
                    all.into_iter()
                        .map(|found| known.ratcheted(found, &subject))
                        .for_each(|found| listed.add(found));
                } else {
                    // What is not listed may be what refuses.
                    listed =
                        Inspection::of(self, request, &subject, run, touch, Side::New(Some(&known))).listed;
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

    /// That it costs too much to determine what of a request the schema is for. It stands for all that would
    /// be found there.
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
