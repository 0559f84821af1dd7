//! Which request of which workload gets which fault, and which user acts at which request.

use std::time::Duration;

use e2e::faults::{Fault, Rule, Seen, Verb};

use crate::users::Deed;
use crate::workload::{GROUP, Workload, name};

/// A workload and its faults.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) workload: Workload,
    /// What a user does at a request, which waits until that is done.
    pub(crate) deed: Option<(Spot, Deed)>,
    pub(crate) fault: Option<(Spot, Fault)>,
}

/// Which requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spot {
    pub(crate) place: Place,
    /// Only of this object.
    pub(crate) object: Option<usize>,
    /// The first of them.
    pub(crate) nth: usize,
    /// How many in a row.
    pub(crate) times: usize,
}

/// Which kind of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// Writes of objects.
    Objects,
    /// Pages of objects.
    Lists,
    /// Watches of objects.
    Watches,
    /// Reads of one object.
    Reads,
    /// Writes of the CRD's conditions.
    Conditions,
    /// Writes of the report.
    Reports,
    /// Reads of the CRD.
    Crds,
    /// The watch of all CRDs, which all plans that are played together share.
    AllCrds,
}

pub(crate) const SHORT: Duration = Duration::from_millis(700);

/// What servers, proxies and networks do to a request that changes something.
const WRITES: [Fault; 12] = [
    Fault::Refuse,
    Fault::LoseAnswer,
    Fault::CutAnswer,
    Fault::GarbleAnswer,
    Fault::DelayRequest(SHORT),
    Fault::DelayAnswer(SHORT),
    Fault::Answer { code: 429, reason: "TooManyRequests", retry_after: Some(1) },
    Fault::Answer { code: 503, reason: "ServiceUnavailable", retry_after: None },
    Fault::Answer { code: 500, reason: "InternalError", retry_after: None },
    Fault::Answer { code: 504, reason: "Timeout", retry_after: None },
    Fault::KillBefore,
    Fault::KillAfter,
];

const READS: [Fault; 8] = [
    Fault::Refuse,
    Fault::CutAnswer,
    Fault::GarbleAnswer,
    Fault::SplitAnswer,
    Fault::DelayAnswer(SHORT),
    Fault::Answer { code: 410, reason: "Expired", retry_after: None },
    Fault::Answer { code: 503, reason: "ServiceUnavailable", retry_after: Some(1) },
    Fault::KillAfter,
];

const WATCHES: [Fault; 12] = [
    Fault::Refuse,
    Fault::CloseWatch,
    Fault::GoneInWatch,
    Fault::ErrorInWatch,
    Fault::GarbleWatch,
    Fault::CutWatch,
    Fault::RepeatEvents,
    Fault::DelayEvents(SHORT),
    Fault::SplitAnswer,
    Fault::Answer { code: 410, reason: "Expired", retry_after: None },
    Fault::Answer { code: 429, reason: "TooManyRequests", retry_after: Some(1) },
    Fault::KillBefore,
];

impl Place {
    pub(crate) const ALL: [Self; 8] = [
        Self::Objects,
        Self::Lists,
        Self::Watches,
        Self::Reads,
        Self::Conditions,
        Self::Reports,
        Self::Crds,
        Self::AllCrds,
    ];

    pub(crate) fn faults(self) -> &'static [Fault] {
        match self {
            Self::Objects | Self::Conditions | Self::Reports => &WRITES,
            Self::Lists | Self::Reads | Self::Crds => &READS,
            Self::Watches | Self::AllCrds => &WATCHES,
        }
    }

    fn is_write(self) -> bool {
        matches!(self, Self::Objects | Self::Conditions | Self::Reports)
    }

    /// The verb, the resource and the object, if any, of its requests.
    fn requests(self, plural: &str) -> (Verb, String, Option<String>) {
        let crd = format!("{plural}.{GROUP}");
        let (crds, reports) = ("customresourcedefinitions".to_owned(), "defaultsreports".to_owned());
        match self {
            Self::Objects => (Verb::Patch, plural.to_owned(), None),
            Self::Lists => (Verb::List, plural.to_owned(), None),
            Self::Watches => (Verb::Watch, plural.to_owned(), None),
            Self::Reads => (Verb::Get, plural.to_owned(), None),
            Self::Conditions => (Verb::Patch, crds, Some(crd)),
            Self::Reports => (Verb::Patch, reports, Some(crd)),
            Self::Crds => (Verb::Get, crds, Some(crd)),
            Self::AllCrds => (Verb::Watch, crds, None),
        }
    }

    fn rule(self, plural: &str) -> Rule {
        let (verb, resource, name) = self.requests(plural);
        // Requests that are only counted get no fault.
        Rule { id: 0, verbs: vec![verb], resource, name, nth: 0..0, fault: Fault::Hold }
    }

    /// The requests of its kind.
    pub(crate) fn of<'a>(self, plural: &str, seen: &'a [Seen]) -> Vec<&'a Seen> {
        let rule = self.rule(plural);
        seen.iter().filter(|seen| rule.fits(&seen.target)).collect()
    }
}

impl Spot {
    fn rule(self, id: usize, plural: &str, fault: Fault) -> Rule {
        let rule = self.place.rule(plural);
        let name = self.object.map(name).or(rule.name);
        Rule { id, name, nth: self.nth..self.nth + self.times, fault, ..rule }
    }
}

impl Plan {
    /// The rules for the CRD of this plural, for the plan of this number.
    pub(crate) fn rules(&self, number: usize, plural: &str) -> Vec<Rule> {
        let held = self.deed.map(|(spot, _)| {
            let fault = if spot.place.is_write() { Fault::Hold } else { Fault::HoldAnswer };
            spot.rule(2 * number, plural, fault)
        });
        let fault = self.fault.map(|(spot, fault)| spot.rule(2 * number + 1, plural, fault));
        held.into_iter().chain(fault).collect()
    }

    /// The number of the plan that has a rule.
    pub(crate) fn of_rule(id: usize) -> usize {
        id / 2
    }

    /// The object that its user acts on.
    pub(crate) fn acted_on(&self) -> String {
        let (spot, deed) = self.deed.map_or((None, None), |(spot, deed)| (spot.object, Some(deed)));
        let fits = |index: &usize| deed.is_none_or(|deed| deed.fits(*index));
        name(spot.or_else(|| (0..4).find(fits)).unwrap_or_default())
    }

    /// Whether all its faults have happened.
    pub(crate) fn has_struck(&self, number: usize, seen: &[Seen]) -> bool {
        let has_struck = |id: usize| {
            let befallen = seen.iter().filter_map(|seen| Some((seen, seen.fault?)));
            let mut its = befallen.filter(|(_, (rule, _))| *rule == id);
            its.any(|(seen, (_, fault))| match fault {
                Fault::LoseEvent(nth) => seen.events() > nth,
                fault => !fault.needs_events() || seen.events() > 0,
            })
        };
        (self.deed.is_none() || has_struck(2 * number))
            && (self.fault.is_none() || has_struck(2 * number + 1))
    }

    /// Whether all other plans feel it.
    pub(crate) fn kills(&self) -> bool {
        self.fault.is_some_and(|(_, fault)| matches!(fault, Fault::KillBefore | Fault::KillAfter))
    }

    /// Whether it affects a request that all plans share or wait for, so that only one of its kind is played
    /// at a time.
    pub(crate) fn is_for_all(&self) -> bool {
        self.fault.is_some_and(|(spot, fault)| match fault {
            Fault::Stall | Fault::StallAnswer => spot.place == Place::Crds,
            _ => spot.place == Place::AllCrds,
        })
    }

    /// The word for plans with the same fault.
    pub(crate) fn class(&self) -> String {
        match (self.fault, self.deed) {
            (Some((_, fault)), _) => fault.class(),
            (None, Some((_, deed))) => deed.class().to_owned(),
            (None, None) => "nothing".to_owned(),
        }
    }
}
