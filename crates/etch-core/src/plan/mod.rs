//! The decision about one object: what is missing in etcd, and the least harmful write that stores it.
//! A [`Plan`] is inert: operator, CLI and webhooks perform or print the same one.

mod alteration;
mod body;
mod breach;
mod clock;
pub mod counted;
mod decide;
mod dropped;
mod embed;
mod exceptions;
mod follow;
mod hidden;
mod hidden_evidence;
mod history;
mod lag_check;
mod likely;
pub mod memory;
mod misfit;
mod outcome;
mod owned_apply;
mod persisted;
mod pin;
mod places;
mod prediction;
mod presence;
mod proof;
mod record;
mod repeat;
mod rewrite;
mod room;
mod stored_at;
mod through_status;
mod undeclared;
mod unstore;
mod write_machine;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::selection::Selection;
use crate::words::words;
use kube_structural_schema::json::Json;
use kube_structural_schema::path::Path;

pub use breach::Broken;
pub use clock::{Clock, Witness};
pub use decide::{ahead_of_rewrite, decide, rewritten};
pub use embed::{Embedding, Withheld, embed, harmed};
pub use exceptions::Exceptions;
pub use follow::{
    Change, Following, OldDefault, changes, follow, has_followed, is_followable, past, past_of, shows_past,
};
pub use hidden::{hidden, still_hidden};
pub use hidden_evidence::{Cleared, FormerDefault, HiddenEvidence};
pub use history::{History, HistoryBuilder};
pub use lag_check::with_lag_check;
pub use likely::{Likely, Since, changes_owners, likely};
pub use outcome::{Outcome, Rejection, RejectionKind};
pub use persisted::{PERSISTED_ANNOTATION, Persisted, Shown, shown_former};
pub use pin::pinned;
pub use places::{filled_elsewhere, has_gap, skip, unproved};
pub use prediction::{Prediction, predict};
pub use proof::Proof;
pub use record::{Coverage, Record, last_write_stores};
pub use repeat::repeat;
pub use rewrite::{release, renamed};
pub use stored_at::{StoredAt, stored_at};
pub use through_status::through_status;
pub use unstore::{KeptBecause, RecordedDefault, Standing, StoredDefault, Unstorable, Unstoring};
pub use write_machine::{PatchKind, Request, Step, WriteMachine};

/// What to do about one object.
#[derive(Clone, Debug, PartialEq)]
pub enum Plan {
    /// Etch must not write it; [`unproved`] lists the defaults that it may lack.
    Skip(Skip),
    /// Nothing is missing, and this shows it without a request.
    Stored(Proof),
    /// Something is missing, and writing would do harm.
    Hold(Held),
    /// Something is, or may be, missing.
    Write(Write),
}

words! {
    /// Why an object is not written, whatever it lacks. Nothing that is on record covers such an object: no
    /// pass has checked it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Skip {
        /// It carries the annotation that asks for it.
        Ignored,
        /// The same, with a value that is neither `true` nor `false`.
        IgnoredUnclear,
        /// It has a deletionTimestamp.
        Terminating,
        /// It is nested deeper than [`DEPTH`](kube_structural_schema::json::DEPTH).
        TooDeep,
        /// The policy does not select it.
        NotSelected,
    }
}

impl Skip {
    /// Whether the object's annotation asks for it.
    pub fn is_by_annotation(self) -> bool {
        matches!(self, Self::Ignored | Self::IgnoredUnclear)
    }

    /// Why Etch does not write the object, in a few words.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Ignored => "ignored by annotation",
            Self::IgnoredUnclear => "ignored by annotation, whose value is neither \"true\" nor \"false\"",
            Self::Terminating => "being deleted",
            Self::TooDeep => "nested more than 1,000 levels deep",
            Self::NotSelected => "not selected by the policy (objects)",
        }
    }
}

/// Why an object is held, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Which harm a write would do.
    pub reason: Hold,
    /// Where, in the object's own terms; at least one.
    pub paths: Vec<Path>,
    /// What the object would break with the defaults at these places, where they are not themselves invalid.
    pub broken: Vec<Broken>,
}

words! {
    /// What harm a write would do.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Hold {
        /// It would destroy fields that etcd still holds and the schema no longer knows (facts R4, W12).
        HiddenFields,
        /// The object does not fit the storage version's schema by type, and the server would forget its
        /// owners (fact W16).
        Misfit,
        /// It would get a default that is itself invalid, or that makes the object invalid which is valid
        /// without it (facts B2, D7).
        InvalidDefaults,
    }
}

/// One write, as the body that is sent. Every one names the uid, so that it can neither create nor bring back
/// an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// How it is sent.
    pub strategy: Strategy,
    /// What is sent.
    pub body: Body,
    /// Whether storing must be proved by a repeat that changes nothing (facts W6, W10).
    pub prove: bool,
    /// The places whose default is missing in etcd, or may be: the topmost ones, in the object's own terms.
    pub missing: Vec<Path>,
    /// The places whose value only a dry run can show to be stored; see [`with_lag_check`].
    pub doubtful: Vec<Doubt>,
    /// Whether the object is decided about again after the identity that goes ahead of a rewrite: a server
    /// that lags behind then shows an old default where the object showed none; see [`with_lag_check`].
    pub decides_again: bool,
}

impl Write {
    /// A write that nothing has to prove, for these places.
    pub fn new(strategy: Strategy, body: Body, missing: Vec<Path>) -> Self {
        Self { strategy, body, prove: false, missing, doubtful: Vec::new(), decides_again: false }
    }
}

/// A place whose value a server that lags behind may have filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Doubt {
    /// Which one, in the object's own terms.
    pub place: Path,
    /// What the default gives there now; `None` if it is gone.
    pub default: Option<Json>,
}

/// The body of a write.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// Server-side apply of the identity alone: it makes nothing ours (fact W2).
    Identity(Json),
    /// Server-side apply that names values, too: they become ours (fact W3).
    Values(Json),
    /// A merge patch of the metadata alone: of the identity, and of the owners where they are rewritten.
    Metadata(Json),
    /// A JSON patch.
    Operations(Json),
}

impl Body {
    /// The JSON of the body.
    pub fn json(&self) -> &Json {
        match self {
            Self::Identity(json) | Self::Values(json) | Self::Metadata(json) | Self::Operations(json) => json,
        }
    }

    /// The operations of a JSON patch; none of any other body.
    pub fn operations(&self) -> &[Value] {
        match self {
            Self::Operations(json) => json.as_array().map_or(&[], Vec::as_slice),
            Self::Identity(_) | Self::Values(_) | Self::Metadata(_) => &[],
        }
    }
}

words! {
    /// The ways to make the server store what it shows.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Strategy {
        /// Server-side apply, never forced: of the identity alone (fact W2), or of the computed values under
        /// `ownership: Own`.
        Apply,
        /// An empty merge patch, for objects without `managedFields` (fact W5).
        Merge,
        /// A merge patch that rewrites the owners in the terms of the storage version (facts W9, W17, W18),
        /// or without our own entry.
        Rewrite,
        /// A JSON patch that moves old defaults without an owner to the new ones, and our entry for them
        /// removed after it.
        Follow,
        /// Server-side apply of the identity alone to the object's status, where admission has refused
        /// another write of it (fact W11).
        Status,
        /// A JSON patch of the defaults of an embedded extension, tried in a dry run before, and our entry
        /// for them removed after it.
        Embed,
    }
}

impl Held {
    /// Held for this, at these places.
    pub fn new(reason: Hold, paths: Vec<Path>) -> Self {
        Self { reason, paths, broken: Vec::new() }
    }

    /// The same without the keys of maps, which are data of users.
    #[must_use]
    pub fn without_keys(mut self) -> Self {
        self.paths.iter_mut().for_each(|path| *path = path.without_keys());
        self.broken.iter_mut().for_each(|broken| broken.place = broken.place.without_keys());
        self
    }

    /// The first few things that the object would break, as `.spec: a rule; .spec.b: another`; empty where it
    /// would break none.
    pub fn broken_in_short(&self) -> String {
        const SHOWN: usize = 3;
        let mut texts: Vec<String> = self.broken.iter().take(SHOWN).map(Broken::to_string).collect();
        if self.broken.len() > SHOWN {
            texts.push(format!("and {} more", self.broken.len() - SHOWN));
        }
        texts.join("; ")
    }
}

/// What a policy allows for the objects of a CRD.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// Whether the defaults that Etch stores become fields of Etch's manager.
    pub ownership: Ownership,
    /// What Etch does with objects with hidden fields.
    pub hidden_fields: HiddenFields,
    /// Whether Etch also writes objects of a storage version without defaults, to have them stored there.
    pub moves: bool,
    /// Whether objects may be stored at another version even if the CRD's `status.storedVersions` has none.
    pub doubts_stored_versions: bool,
    /// Whether Etch also writes objects only to rewrite owners at versions that are no longer served (fact
    /// W18).
    pub repairs: bool,
    /// Whether Etch writes objects whose own write admission refuses through their status (fact W11).
    pub writes_status: bool,
    /// Which objects are written at all.
    pub selection: Selection,
}

/// Who owns the defaults that Etch has stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Ownership {
    /// No manager: the next client that sets the field gets no conflict.
    #[default]
    None,
    /// The manager `etch`.
    Own,
}

/// What Etch does with objects with hidden fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum HiddenFields {
    /// They are not written, and reported.
    #[default]
    Hold,
    /// They are written, which destroys the hidden fields.
    Drop,
}

#[cfg(test)]
mod tests;
