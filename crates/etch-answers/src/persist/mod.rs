//! `etch persist`: what a pass by hand did, or would do.

pub mod place;
mod plan;
pub mod policy_warnings;
mod print;
mod progress;

use etch_core::call_error::CallError;
use etch_core::engine::by_hand::Passed;

pub use self::plan::Plans;
pub use self::print::{document, table};
pub use self::progress::in_words;
use crate::failures::Failure;

/// What is reported of one CRD.
#[derive(Debug, Default)]
pub struct CrdPass {
    /// Its name.
    pub crd: String,
    /// What was done, or would be.
    pub passed: Passed,
    /// What would be done to each object, of a dry run.
    pub plans: Plans,
    /// Where policies forbid it.
    pub warnings: Vec<String>,
    /// Why the CRD does not record for later commands what was proved.
    pub unrecorded: Option<String>,
    /// The object behind which it began.
    pub after: Option<String>,
    /// Why it was not completed.
    pub error: Option<String>,
    /// The command with which to continue, where it was not completed.
    pub resume: Option<String>,
    /// Whether it was interrupted.
    pub is_ended: bool,
}

/// Why a pass over every object proves nothing about versions.
pub const UNSERVED: &str = "not recorded at which version the objects are stored: the CRD was changed less than \
    11 minutes ago, or its managedFields do not show when, and an API server that lags behind may store \
    objects at another version; run it again later";

/// Why a pass leaves no record, and what follows from that.
pub fn unrecorded(error: &CallError, is_every_object: bool) -> String {
    let why = match error.code() {
        Some(403) => "you may not patch the CRD".to_owned(),
        _ => error.to_string(),
    };
    let unknown = match is_every_object {
        true => {
            "other commands and the guard cannot know that these objects are stored at the storage version"
        }
        false => {
            "for some minutes after a change of the schema, other commands cannot know that these objects \
             store their defaults"
        }
    };
    format!("not recorded, because {why}: {unknown}")
}

impl CrdPass {
    /// Whether it failed before anything was read.
    pub fn is_nothing(&self) -> bool {
        let Passed { counts, dropped, .. } = &self.passed;
        self.error.is_some() && self.resume.is_none() && counts.objects == 0 && dropped.is_empty()
    }

    /// Whether the answer for each object is known and no write is left.
    pub fn is_complete(&self) -> bool {
        let counts = self.passed.counts;
        counts.unknown + counts.due + counts.unproved == 0
            && self.passed.verified
            && self.passed.lost.is_none()
    }

    /// Why it was not completed, and how to continue.
    pub fn failure(&self) -> Option<Failure> {
        let error = self.error.clone()?;
        let resume = self.resume.as_ref().map(|resume| format!("; to resume: {resume}"));
        Some(Failure { crd: self.crd.clone(), error, resume: resume.unwrap_or_default() })
    }
}
