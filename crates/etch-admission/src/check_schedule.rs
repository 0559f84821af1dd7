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
