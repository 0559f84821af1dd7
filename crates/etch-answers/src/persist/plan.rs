//! What a pass would do to each object.

use etch_core::api::Counts;
use etch_core::audit::is_due;
use etch_core::crd::Crd;
use etch_core::object::{Identity, Object};
use etch_core::plan::{Broken, HiddenFields, Plan, Record, Skip, Strategy, Terms, decide, still_hidden};
use kube_structural_schema::path::Path;
use serde_json::Value;

use crate::action::{Action, Places, in_words};
use crate::sample::Sample;

/// The reason of a write without which nothing shows whether the object stores its defaults.
pub(super) const UNPROVED: &str = "unproved";

/// The action on a hidden field that a write would destroy.
const DROP: &str = "drop";

/// What would be done to one object.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) action: Action,
    /// What the object would break with its defaults, where it is held for that.
    pub(super) broken: Vec<Broken>,
    /// The hidden fields that the write would destroy.
    pub(super) dropped: Vec<Path>,
}

/// What would be done to objects: the first of them by name, and how many of all by what and where in the
/// schema.
#[derive(Debug, Default)]
pub struct Plans {
    pub(super) objects: Sample<Planned>,
    pub(super) summary: Places,
}

impl Plans {
    /// Of no object yet; it names at most so many, and all without a limit.
    pub fn new(limit: Option<usize>) -> Self {
        Self { objects: Sample::new(limit), ..Self::default() }
    }

    /// Adds what a pass would do to an object, and counts it.
    pub fn plan(&mut self, counts: &mut Counts, object: &Object, crd: &Crd, terms: &Terms, record: &Record) {
        counts.objects += 1;
        let (mut broken, mut dropped) = (Vec::new(), Vec::new());
        let (word, reason, paths) = match decide(object, crd, terms, record) {
            Plan::Stored(_) => {
                counts.already_stored += 1;
                return;
            }
            Plan::Skip(why) => {
                match why {
                    Skip::Ignored | Skip::IgnoredUnclear => counts.ignored += 1,
                    Skip::Terminating => counts.terminating += 1,
                    Skip::TooDeep => counts.too_deep += 1,
                    Skip::NotSelected => counts.not_selected += 1,
                }
                ("skip", Some(why.as_str()), Vec::new())
            }
            Plan::Hold(held) => {
                counts.held += 1;
                broken = held.broken;
                ("hold", Some(held.reason.as_str()), held.paths)
            }
            Plan::Write(write) => {
                let is_due = is_due(object, crd, terms, record, &write);
                if terms.hidden_fields == HiddenFields::Drop {
                    dropped = still_hidden(object, crd, record);
                }
                *(if is_due { &mut counts.due } else { &mut counts.unproved }) += 1;
                (sent(write.strategy), (!is_due).then_some(UNPROVED), write.missing)
            }
        };
        let action = Action { word, reason, paths };
        self.add(object.identity(), Planned { action, broken, dropped });
    }

    fn add(&mut self, identity: Identity, planned: Planned) {
        self.summary.add(&planned.action);
        if !planned.dropped.is_empty() {
            self.summary.add(&Action { word: DROP, reason: None, paths: planned.dropped.clone() });
        }
        self.objects.add(identity, planned);
    }

    /// Whether a write would destroy hidden fields.
    pub(super) fn drops(&self) -> bool {
        self.summary.has(DROP)
    }
}

impl Planned {
    pub(super) fn document(&self, identity: &Identity) -> Value {
        let mut document = self.action.document(identity);
        document["broken"] = self.broken.iter().map(Broken::to_string).collect();
        if !self.dropped.is_empty() {
            document["dropped"] = in_words(&self.dropped).into();
        }
        document
    }
}

/// The word for a way of writing.
fn sent(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Apply => "apply",
        Strategy::Merge => "merge",
        Strategy::Rewrite => "rewrite",
        Strategy::Follow => "follow",
        Strategy::Status => "status",
        Strategy::Embed => "embed",
    }
}
