//! When existing objects are checked by a schema: once for each change of it, of its facts and of what its
//! author asks for; again after a check that could not see everything; and for defaults that are to be stored.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::api::{ExistingObjects, SETTLING};
use crate::checked_schema::{CheckedSchema, Inputs};
use crate::tally::{FORBIDDEN, INCOMPLETE, OWNERS_LOST};
use etch_core::engine::backoff::Backoff;

/// How long a schema and its facts have to stay unchanged before Etch stores defaults by them.
const SETTLE: Duration = Duration::from_secs(10);
/// How often objects are looked for that lack defaults which are to be stored.
const PERSIST_AGAIN: Duration = Duration::from_secs(3_600);
/// How long after one check the next follows at the earliest, where only facts have changed: some change all
/// the time.
const FACTS_SETTLE: Duration = Duration::from_secs(30);
/// The waits after a check that could not see everything.
const FIRST_WAIT: Duration = Duration::from_secs(5);
const LAST_WAIT: Duration = Duration::from_secs(300);

/// The last check by each schema.
#[derive(Debug, Default)]
pub struct CheckSchedule {
    last: BTreeMap<String, LastCheck>,
}

/// A check that is over.
#[derive(Debug)]
struct LastCheck {
    inputs: Inputs,
    at: Instant,
    /// When to check again by the same inputs.
    again: Option<Instant>,
    /// Whether a policy has kept defaults from being stored, in some objects or in all.
    is_withheld: bool,
    backoff: Backoff,
}

impl LastCheck {
    /// When to check again by these inputs; `None` if nothing asks for it.
    fn due(&self, inputs: &Inputs) -> Option<Instant> {
        let Inputs { uid, generation, asked, facts } = inputs;
        let last = &self.inputs;
        if (uid, generation, asked) != (&last.uid, &last.generation, &last.asked) {
            Some(self.at)
        } else if *facts != last.facts {
            Some(self.at + FACTS_SETTLE)
        } else {
            self.again
        }
    }
}

impl CheckSchedule {
    /// The schemas that are due, of those that are known; and, where none is, when the next one will be.
    pub fn due<'k>(
        &mut self,
        known: &'k [CheckedSchema],
        now: Instant,
    ) -> (Vec<&'k CheckedSchema>, Option<Instant>) {
        self.last.retain(|name, _| known.iter().any(|schema| schema.name == *name));
        let at = |schema: &CheckedSchema| match self.last.get(&schema.name) {
            Some(last) => last.due(&schema.inputs),
            None => Some(now),
        };
        let times: Vec<Option<Instant>> = known.iter().map(at).collect();
        let is_due = |at: &Option<Instant>| at.is_some_and(|at| at <= now);
        let due = known.iter().zip(&times).filter(|(_, at)| is_due(at)).map(|(schema, _)| schema);
        (due.collect(), times.iter().flatten().min().copied())
    }

    /// The names of those by which defaults are stored: by what was checked before, and has not changed
    /// since.
    pub fn storing<'k>(&self, due: &[&'k CheckedSchema]) -> BTreeSet<&'k str> {
        let is_settled = |schema: &&&CheckedSchema| {
            schema.persist && self.last.get(&schema.name).is_some_and(|last| last.inputs == schema.inputs)
        };
        due.iter().filter(is_settled).map(|schema| &*schema.name).collect()
    }

    /// Has those checked again whose defaults a policy has kept from being stored.
    pub fn policies_changed(&mut self, now: Instant) {
        self.last.values_mut().filter(|last| last.is_withheld).for_each(|last| last.again = Some(now));
    }

    /// Records what a check has found, and sets when to check again; whether the author has asked for it.
    /// `seed` differs from check to check.
    pub fn checked(
        &mut self,
        schema: &CheckedSchema,
        found: &ExistingObjects,
        is_withheld: bool,
        now: Instant,
        seed: u64,
    ) -> bool {
        let before = self.last.remove(&schema.name);
        let is_asked = before.as_ref().is_some_and(|last| last.inputs.asked != schema.inputs.asked);
        let mut backoff =
            before.map_or_else(|| Backoff::new(FIRST_WAIT, LAST_WAIT, seed), |last| last.backoff);
        let reason = found.persisted.as_ref().map_or("", |persisted| &*persisted.reason);
        let wait = match reason {
            _ if !found.complete => Some(backoff.failed(now, None)),
            INCOMPLETE | FORBIDDEN => Some(backoff.failed(now, None)),
            SETTLING => Some(SETTLE),
            OWNERS_LOST => None,
            _ => schema.persist.then_some(PERSIST_AGAIN),
        };
        if found.complete && ![INCOMPLETE, FORBIDDEN].contains(&reason) {
            backoff.succeeded();
        }
        let (inputs, again) = (schema.inputs.clone(), wait.map(|wait| now + wait));
        let last = LastCheck { inputs, at: now, again, is_withheld, backoff };
        self.last.insert(schema.name.clone(), last);
        is_asked
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, OnceLock};

    use serde_json::{Value, json};

    use super::*;
    use crate::Compiled;
    use crate::api::PersistedDefaults;

    fn after(seconds: u64) -> Instant {
        static START: OnceLock<Instant> = OnceLock::new();
        #[expect(clippy::disallowed_methods, reason = "there is no other way to make one")]
        let start = *START.get_or_init(Instant::now);
        start + Duration::from_secs(seconds)
    }

    fn schema(name: &str, facts: Value) -> CheckedSchema {
        let spec = json!({ "targets": [{ "version": "v1", "resource": "things", "path": ".spec" }] });
        let declared = serde_json::from_value(spec).expect("a declaration");
        let schema = Compiled::new(&declared).unwrap_or_else(|problems| panic!("{problems:?}"));
        let inputs = Inputs { uid: name.to_owned(), generation: 1, asked: None, facts };
        let (schema, name) = (Arc::new(schema), name.to_owned());
        CheckedSchema { name, inputs, schema, persist: false, restricted: false }
    }

    fn complete() -> ExistingObjects {
        ExistingObjects { complete: true, ..ExistingObjects::default() }
    }

    fn persisted(reason: &str) -> ExistingObjects {
        let persisted = PersistedDefaults { reason: reason.to_owned(), ..PersistedDefaults::default() };
        ExistingObjects { persisted: Some(persisted), ..complete() }
    }

    /// The names of those that are due, and in how many seconds the next one is.
    fn due(schedule: &mut CheckSchedule, known: &[CheckedSchema], at: u64) -> (Vec<String>, Option<u64>) {
        let (due, next) = schedule.due(known, after(at));
        let names = due.iter().map(|schema| schema.name.clone()).collect();
        (names, next.map(|next| next.saturating_duration_since(after(at)).as_secs()))
    }

    #[test]
    fn a_schema_is_checked_once_for_each_change() {
        let mut schedule = CheckSchedule::default();
        let mut known = [schema("a", json!({ "id": 1 })), schema("b", Value::Null)];
        assert_eq!(due(&mut schedule, &known, 0).0, ["a", "b"]);
        for schema in &known {
            assert!(!schedule.checked(schema, &complete(), false, after(0), 1));
        }
        assert_eq!(due(&mut schedule, &known, 9_000), (vec![], None));
        known[0].inputs.facts = json!({ "id": 2 });
        assert_eq!(due(&mut schedule, &known, 10), (vec![], Some(20)), "facts may change all the time");
        known[1].inputs.asked = Some("again".to_owned());
        assert_eq!(due(&mut schedule, &known, 10).0, ["b"]);
        assert!(schedule.checked(&known[1], &complete(), false, after(10), 1), "its author has asked for it");
        assert_eq!(due(&mut schedule, &known, 30).0, ["a"]);
        // One that is created anew is another one.
        assert_eq!(due(&mut schedule, &[], 40).0, [""; 0]);
        assert_eq!(due(&mut schedule, &known[1..], 40).0, ["b"]);
    }

    #[test]
    fn a_check_that_could_not_see_everything_is_repeated_ever_more_seldom() {
        let (mut schedule, known) = (CheckSchedule::default(), [schema("a", Value::Null)]);
        let (mut now, mut waits) = (0, Vec::new());
        for _ in 0..12 {
            schedule.checked(&known[0], &ExistingObjects::default(), false, after(now), 1);
            let wait = due(&mut schedule, &known, now).1.expect("another check");
            waits.push(wait);
            now += wait + 1;
        }
        let longest = LAST_WAIT.as_secs();
        assert!(waits.is_sorted_by(|before, after| after >= before || *after > longest / 2), "{waits:?}");
        assert!(waits[0] <= FIRST_WAIT.as_secs() && waits[11] > longest / 2, "{waits:?}");
        schedule.checked(&known[0], &complete(), false, after(now), 1);
        assert_eq!(due(&mut schedule, &known, now), (vec![], None));
    }

    #[test]
    fn defaults_are_stored_by_what_has_stood_unchanged_and_looked_for_each_hour() {
        let mut schedule = CheckSchedule::default();
        let mut known = [CheckedSchema { persist: true, ..schema("a", Value::Null) }];
        let storing = |schedule: &mut CheckSchedule, known: &[CheckedSchema], at: u64| {
            let (due, _) = schedule.due(known, after(at));
            schedule.storing(&due).into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(storing(&mut schedule, &known, 0), [""; 0], "it was not checked before");
        schedule.checked(&known[0], &persisted(SETTLING), false, after(0), 1);
        assert_eq!(due(&mut schedule, &known, 0), (vec![], Some(SETTLE.as_secs())));
        assert_eq!(storing(&mut schedule, &known, SETTLE.as_secs()), ["a"]);
        schedule.checked(&known[0], &persisted("Persisted"), false, after(20), 1);
        assert_eq!(due(&mut schedule, &known, 20), (vec![], Some(PERSIST_AGAIN.as_secs())));
        known[0].inputs.generation += 1;
        assert_eq!(storing(&mut schedule, &known, 30), [""; 0], "it has changed");
        schedule.checked(&known[0], &persisted(OWNERS_LOST), true, after(30), 1);
        assert_eq!(due(&mut schedule, &known, 90_000), (vec![], None), "it waits for its author");
        schedule.policies_changed(after(40));
        assert_eq!(due(&mut schedule, &known, 40).0, ["a"], "a policy had withheld defaults");
    }
}
