//! What is found about both objects of an update, within bounds.

use std::collections::{HashMap, HashSet};
use std::hash::RandomState;

use super::found::Found;
use crate::former::Extension;
use crate::request::Subject;
use crate::spec::Severity;

/// How many findings of a kind a schema lists: of those that refuse, of those that warn, and of the rules of
/// both that cannot be evaluated. An author reads no more, and an object may give rise to a million.
const MOST: usize = 100;

/// What is found about a request, as far as it is listed.
#[derive(Debug, Default)]
pub(super) struct Listed {
    pub(super) found: Vec<Found>,
    /// How many there are of each kind.
    counts: HashMap<(Severity, bool), usize>,
}

impl Listed {
    pub(super) fn add(&mut self, found: Found) {
        let count = self.counts.entry((found.severity, found.is_unevaluated())).or_default();
        *count += 1;
        if *count <= MOST {
            self.found.push(found);
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.counts.values().all(|count| *count <= MOST)
    }

    /// Leaves out the rules that cannot be evaluated.
    pub(super) fn drop_unevaluated(&mut self) {
        self.found.retain(|found| !found.is_unevaluated());
        self.counts.retain(|(_, is_unevaluated), _| !is_unevaluated);
    }

    /// Of which severity there are more than are listed.
    pub(super) fn more(&self) -> Vec<Severity> {
        let is_more = |severity: &Severity| {
            [false, true].iter().any(|kind| self.counts.get(&(*severity, *kind)).is_some_and(|n| *n > MOST))
        };
        [Severity::Deny, Severity::Warn].into_iter().filter(is_more).collect()
    }
}

/// What is wrong with the old object: no more than a number each, because there may be very many.
#[derive(Debug, Default)]
pub(super) struct Known {
    hasher: RandomState,
    identities: HashSet<u64>,
}

impl Known {
    /// Whether the old object has what is found about the new one.
    fn has(&self, found: &Found, subject: &Subject<'_>) -> bool {
        let extension = found.extension.map(|index| &subject.extensions[index]);
        let at = match extension {
            None => None,
            // The old object cannot have had what is wrong with a new extension.
            Some(Extension { former: None, .. }) => return false,
            Some(Extension { former, .. }) => former.as_ref(),
        };
        !found.about_change && self.identities.contains(&found.identity(&self.hasher, at))
    }

    /// What is found about the new object, as a warning if the old one has it as well.
    pub(super) fn ratcheted(&self, found: Found, subject: &Subject<'_>) -> Found {
        let severity = if self.has(&found, subject) { Severity::Warn } else { found.severity };
        Found { severity, ..found }
    }

    /// Adds what is found about the old object.
    pub(super) fn add(&mut self, found: &Found, subject: &Subject<'_>) {
        let at = found.extension.map(|index| &subject.extensions[index].at);
        self.identities.insert(found.identity(&self.hasher, at));
    }
}
