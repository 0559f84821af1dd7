//! What a pass would do to each object.

use etch::cluster::ObjectSource;
use etch_answers::action::{Action, Places, in_words};
use etch_answers::sample::Sample;
use etch_core::audit::is_due;
use etch_core::crd::Crd;
use etch_core::engine::by_hand::Passed;
use etch_core::engine::stage::is_left_out;
use etch_core::object::Identity;
use etch_core::plan::{Broken, HiddenFields, Plan, Record, Skip, Strategy, decide, still_hidden};
use futures::TryStreamExt;
use kube_structural_schema::path::Path;
use serde_json::Value;

use super::{Persist, Work};
use crate::commands::of_list;

/// The reason of a write without which nothing shows whether the object stores its defaults.
pub(super) const UNPROVED: &str = "unproved";

/// The action on a hidden field that a write would destroy.
const DROP: &str = "drop";

/// What would be done to one object.
pub(super) struct Planned {
    pub(super) action: Action,
    /// What the object would break with its defaults, where it is held for that.
    pub(super) broken: Vec<Broken>,
    /// The hidden fields that the write would destroy.
    pub(super) dropped: Vec<Path>,
}

/// What would be done to objects: the first of them by name, and how many of all by what and where in the
/// schema.
#[derive(Default)]
pub(super) struct Plans {
    pub(super) objects: Sample<Planned>,
    pub(super) summary: Places,
}

impl Plans {
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

impl Persist {
    /// What a pass would do to each object, and in numbers.
    pub(super) async fn plan(
        &self,
        work: &Work<'_>,
        crd: &Crd,
        record: &Record,
        after: Option<&String>,
    ) -> anyhow::Result<(Passed, Plans)> {
        let objects = Sample::new(self.limit.of(self.output));
        let (mut passed, mut plans) = (Passed::default(), Plans { objects, ..Plans::default() });
        let (source, terms) = (ObjectSource::from(work.cluster.clone()), self.terms());
        let mut pages = source.pages(vec![crd.resource()], &work.scope);
        while let Some(page) = pages.try_next().await.map_err(of_list)? {
            for object in page.views() {
                if is_left_out(&object, after) {
                    passed.left_out += 1;
                    continue;
                }
                let counts = &mut passed.counts;
                counts.objects += 1;
                let (mut broken, mut dropped) = (Vec::new(), Vec::new());
                let (word, reason, paths) = match decide(&object, crd, &terms, record) {
                    Plan::Stored(_) => {
                        counts.already_stored += 1;
                        continue;
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
                        let is_due = is_due(&object, crd, &terms, record, &write);
                        if terms.hidden_fields == HiddenFields::Drop {
                            dropped = still_hidden(&object, crd, record);
                        }
                        *(if is_due { &mut counts.due } else { &mut counts.unproved }) += 1;
                        (sent(write.strategy), (!is_due).then_some(UNPROVED), write.missing)
                    }
                };
                let action = Action { word, reason, paths };
                plans.add(object.identity(), Planned { action, broken, dropped });
            }
        }
        passed.verified = passed.left_out == 0;
        Ok((passed, plans))
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
