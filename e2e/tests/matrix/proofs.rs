//! What Etch concludes from the answer to a write of its own.

use anyhow::Result;
use e2e::matrix::{FollowUp, Places};
use etch_core::plan::{Plan, Record, Strategy, Terms, decide};

use crate::{Case, Differences, each_case};

/// What a reader sees and etcd does not hold after a request of Etch's, and after its repeat.
fn lacks(follow_up: &FollowUp) -> (Places, Places) {
    let then = follow_up.raw_then.as_ref().unwrap_or(&follow_up.raw);
    (follow_up.shows.beyond(&follow_up.raw.holds), follow_up.shows.beyond(&then.holds))
}

fn follow_ups<'a>(case: &Case<'a>) -> impl Iterator<Item = (&'static str, &'a FollowUp)> {
    let both = [("identity", &case.outcome.identity), ("empty", &case.outcome.empty)];
    both.into_iter().filter_map(|(name, follow_up)| Some((name, follow_up.as_ref()?)))
}

#[test]
fn a_request_that_leaves_the_resource_version_alone_proves_what_is_shown() -> Result<()> {
    let mut differences = Differences::default();
    each_case(|case| {
        for (name, follow_up) in follow_ups(case) {
            let (first, second) = lacks(follow_up);
            if follow_up.answer == "200" && !follow_up.written && !first.is_empty() {
                differences.add(name, case, &first);
            }
            if follow_up.repeat == "200" && !follow_up.rewritten && !second.is_empty() {
                differences.add(&format!("{name}, repeated"), case, &second);
            }
        }
    })?;
    differences.none()
}

#[test]
fn a_write_that_needs_no_proof_has_stored_what_is_shown() -> Result<()> {
    let mut differences = Differences::default();
    each_case(|case| {
        let record = Record { versions_disagree: case.crd.versions_disagree(), ..Record::default() };
        let Plan::Write(write) = decide(&case.object, case.crd, &Terms::default(), &record) else { return };
        let follow_up = match write.strategy {
            Strategy::Apply => &case.outcome.identity,
            Strategy::Merge => &case.outcome.empty,
            _ => return,
        };
        let Some(follow_up) = follow_up else { return };
        let (first, _) = lacks(follow_up);
        if !write.prove && follow_up.answer == "200" && !first.is_empty() {
            differences.add(write.strategy.as_str(), case, &first);
        }
    })?;
    differences.none()
}
