//! Which fault befalls which requests of which workload. It must not play them.

use std::time::Duration;

use e2e::faults::{Fault, Rule, Verb};

use crate::workload::{GROUP, WORKLOADS, Workload};

/// A workload and what befalls it.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) workload: Workload,
    pub(crate) place: Place,
    pub(crate) nth: usize,
    /// How many requests in a row.
    pub(crate) times: usize,
    pub(crate) fault: Fault,
}

/// Which requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

const SHORT: Duration = Duration::from_millis(700);

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
    fn faults(self) -> &'static [Fault] {
        match self {
            Self::Objects | Self::Conditions | Self::Reports => &WRITES,
            Self::Lists | Self::Reads | Self::Crds => &READS,
            Self::Watches => &WATCHES,
        }
    }
}

impl Plan {
    /// The rule for the CRD of this plural.
    pub(crate) fn rule(&self, plural: &str) -> Rule {
        let crd = format!("{plural}.{GROUP}");
        let (verbs, resource, name) = match self.place {
            Place::Objects => (vec![Verb::Patch], plural, None),
            Place::Lists => (vec![Verb::List], plural, None),
            Place::Watches => (vec![Verb::Watch], plural, None),
            Place::Reads => (vec![Verb::Get], plural, None),
            Place::Conditions => (vec![Verb::Patch], "customresourcedefinitions", Some(crd)),
            Place::Reports => (vec![Verb::Patch], "defaultsreports", Some(crd)),
            Place::Crds => (vec![Verb::Get], "customresourcedefinitions", Some(crd)),
        };
        let nth = self.nth..self.nth + self.times;
        Rule { verbs, resource: resource.to_owned(), name, nth, fault: self.fault }
    }

    /// Whether all other plans feel it.
    pub(crate) fn kills(&self) -> bool {
        matches!(self.fault, Fault::KillBefore | Fault::KillAfter)
    }
}

const PLACES: [Place; 7] = [
    Place::Objects,
    Place::Lists,
    Place::Watches,
    Place::Conditions,
    Place::Reports,
    Place::Crds,
    Place::Reads,
];

/// Every fault at every place in every workload, at the first requests and, for writes of objects, at each of them.
pub(crate) fn all() -> Vec<Plan> {
    let mut plans = Vec::new();
    for workload in WORKLOADS {
        for place in PLACES {
            for fault in place.faults() {
                let nths = if place == Place::Objects { 0..OBJECT_WRITES } else { 0..2 };
                for nth in nths {
                    plans.push(Plan { workload, place, nth, times: 1, fault: *fault });
                }
            }
        }
    }
    plans
}

/// How many writes of objects there are in a workload, at least.
const OBJECT_WRITES: usize = 4;

/// As many as CI has time for: each fault at each place once, over the workloads in turn; some for several requests in a row.
pub(crate) fn share() -> Vec<Plan> {
    let seed: usize =
        std::env::var("FAULTS_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_default();
    let pairs = PLACES.into_iter().flat_map(|place| place.faults().iter().map(move |fault| (place, *fault)));
    let plans = pairs.enumerate().map(|(index, (place, fault))| {
        let index = index + seed;
        let workload = WORKLOADS[index % WORKLOADS.len()];
        Plan { workload, place, nth: index / WORKLOADS.len() % 2, times: 1 + index % 3, fault }
    });
    let mut plans: Vec<Plan> = plans.collect();
    for plan in plans.iter_mut().filter(|plan| plan.kills()) {
        plan.times = 1;
    }
    plans
}
