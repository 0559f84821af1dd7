//! One finding, and its identity, by which it is compared with the findings of the old object.

use std::hash::{BuildHasher, RandomState};

use crate::answer::FieldError;
use crate::place::Location;
use crate::request::Subject;
use crate::spec::Severity;
use kube_structural_schema::finding::Kind;

/// A finding, with its source.
#[derive(Debug)]
pub(crate) struct Found {
    /// What its reader sees. Several extensions may have the same text as their place.
    pub(crate) error: FieldError,
    pub(super) source: Source,
    /// Which of the extensions it is about; `None` for the object.
    pub(super) extension: Option<usize>,
    /// Where, below the extension or the object: items of map lists by their keys.
    pub(super) below: String,
    /// What distinguishes it from another by the same source at the same place.
    pub(super) mark: String,
    pub(super) severity: Severity,
    /// It is about a change, so an old object cannot have had it.
    pub(super) about_change: bool,
    /// The group of its rule.
    pub(super) group: Option<String>,
}

impl Found {
    /// Whether it refuses the request as soon as the schema is enforced.
    pub(crate) fn denies(&self) -> bool {
        self.severity == Severity::Deny
    }

    /// Its source, by the place in the declaration.
    pub(crate) fn place(&self) -> String {
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
    pub(crate) fn is_missing(&self) -> bool {
        self.source == Source::Missing
    }

    /// Whether an extension cannot have defaults: it is missing or of the wrong types.
    pub(crate) fn prevents_defaults(&self) -> bool {
        self.is_missing() || self.is_type()
    }

    pub(super) fn is_type(&self) -> bool {
        self.source == Source::Value(Kind::TypeInvalid)
    }

    /// Whether it is a rule that a value of another type keeps from being evaluated.
    pub(super) fn is_unevaluated(&self) -> bool {
        matches!(self.source, Source::Unevaluated(_))
    }

    /// That there is more than is listed.
    pub(super) fn more(severity: Severity, subject: &Subject<'_>) -> Self {
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
    pub(super) fn identity(&self, hasher: &RandomState, extension: Option<&Location>) -> u64 {
        hasher.hash_one((self.source, extension, &self.below, &self.mark))
    }
}

/// The source of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Source {
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
