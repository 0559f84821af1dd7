//! The results for a CRD's objects after a pass, updated while the objects are watched.

use super::counted::CountedObjects;
use crate::api::{Counts, Settings};
use crate::crd::Crd;
use crate::plan::Record;
use crate::report::checkpoint::Checkpoint;
use crate::report::state::Times;
use crate::report::tally::Tally;
use crate::report::versions::ObjectVersions;

/// The results of a pass.
#[derive(Clone, Debug)]
pub struct PassState {
    /// The results for the objects.
    pub tally: Tally,
    /// Which objects need not be processed again.
    pub record: Record,
    /// States of objects that the pass has proved.
    pub proved: ObjectVersions,
    /// The resource version from which a watch misses nothing.
    pub watch_from: String,
    /// What identifies objects that the watch brings once more, or that had gone before they were counted.
    pub counted: CountedObjects,
    /// When the pass began and ended.
    pub times: Times,
    /// The resource version up to which every object was processed, or excepted.
    pub finished_through: Option<u64>,
    /// Since when, and why, changes of the objects are not noticed.
    pub watch_failure: Option<String>,
}

impl PassState {
    /// What remains of it for the next pass, if it is known which objects were processed.
    pub fn into_checkpoint(self) -> Option<Checkpoint> {
        let Self { record, proved, tally, .. } = self;
        record.through.is_some().then(|| Checkpoint {
            record,
            proved,
            writes: tally.writes(),
            ..Checkpoint::default()
        })
    }
}

/// Whether there is nothing to do for a CRD without defaults. Only where the policy follows changed defaults
/// may an object wait for what the last ones left behind: otherwise Etch writes none, whatever the reasons to
/// hold or reject it were.
pub fn has_nothing_left(crd: &Crd, settings: &Settings, counts: Counts) -> bool {
    let waiting = counts.held + counts.rejected + counts.unknown + counts.due + counts.unproved;
    !crd.gives_defaults() && (settings.follow.is_empty() || waiting == 0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::api::{DefaultsPolicySpec, Policies, assign};
    use crate::crd::sample::{things, with_spec};
    use crate::object::Identity;
    use crate::object_state::ObjectState;

    fn settings(policy: Value) -> Settings {
        let policy: DefaultsPolicySpec = serde_json::from_value(policy).expect("a policy");
        let policies = Policies::from([("default".to_owned(), policy)]);
        let assigned =
            assign(&policies, "things.example.com", "example.com", &BTreeMap::new(), Duration::ZERO);
        assigned.expect("it selects all").settings
    }

    #[test]
    fn an_object_waits_for_what_the_last_defaults_left_only_where_they_are_followed() {
        let with = things(with_spec(json!({ "size": { "type": "integer", "default": 5 } })));
        let without = things(with_spec(json!({ "size": { "type": "integer" } })));
        let keeps = settings(json!({}));
        let follows = settings(json!({ "onChange": [{ "path": ".spec.size", "action": "Follow" }] }));
        let (none, mut waiting) = (Tally::default(), Tally::default());
        waiting.add(Identity::default(), ObjectState::Unknown, &[]);
        for (crd, settings, tally, expected) in [
            (&with, &keeps, &none, false),
            (&without, &keeps, &none, true),
            (&without, &keeps, &waiting, true),
            (&without, &follows, &none, true),
            (&without, &follows, &waiting, false),
        ] {
            assert_eq!(has_nothing_left(crd, settings, tally.counts()), expected);
        }
    }
}
