//! Which requests a workload leads to without faults, and the plans that follow from that.

use std::collections::BTreeMap;
use std::ops::Range;

use e2e::faults::{Fault, Seen};

use crate::plan::{Place, Plan, Spot};
use crate::users::{DEEDS, Deed};
use crate::workload::{WORKLOADS, Workload, name};

/// How many times each lesson is played: what not each of them shows is left to chance.
const LESSONS: usize = 3;
/// How many requests of a kind are met each, where there is no end to their number.
const REPEATED: usize = 3;
/// The same for the events of one watch.
const EVENTS: usize = 8;

/// What came by when a plan without any fault was played.
pub(crate) struct Learned {
    plan: Plan,
    /// How many writes of each object.
    writes: BTreeMap<usize, usize>,
    counts: BTreeMap<Place, usize>,
    /// How many events each watch had, of objects and of CRDs.
    events: BTreeMap<Place, Vec<usize>>,
}

/// What is played to learn: each workload, and two in which a user comes between Etch's reads and writes, so
/// that it reads an object again.
pub(crate) fn lessons() -> Vec<Plan> {
    let mut all = WORKLOADS.map(|workload| Plan { workload, deed: None, fault: None }).to_vec();
    // The second write of a rewrite, and the first one of a move.
    for (workload, nth) in [(Workload::NewVersion, 1), (Workload::Follow, 1)] {
        let spot = Spot { place: Place::Objects, object: Some(0), nth, times: 1 };
        all.push(Plan { workload, deed: Some((spot, Deed::Edit)), fault: None });
    }
    all.repeat(LESSONS)
}

/// What all lessons of the same plan have in common, in the order of the plans.
pub(crate) fn common(learned: Vec<Learned>) -> Vec<Learned> {
    let mut all: Vec<Learned> = Vec::new();
    for one in learned {
        match all.iter_mut().find(|other| other.plan == one.plan) {
            Some(other) => other.keep_common(&one),
            None => all.push(one),
        }
    }
    all
}

impl Learned {
    pub(crate) fn new(plan: Plan, plural: &str, seen: &[Seen]) -> Self {
        let events = |place: Place| place.of(plural, seen).iter().map(|watch| watch.events()).collect();
        let mut writes = BTreeMap::new();
        for write in Place::Objects.of(plural, seen) {
            let index = (0..10).find(|index| write.target.name == Some(name(*index)));
            *writes.entry(index.unwrap_or_default()).or_default() += 1;
        }
        Self {
            plan,
            writes,
            counts: Place::ALL.into_iter().map(|place| (place, place.of(plural, seen).len())).collect(),
            events: [Place::Watches, Place::AllCrds]
                .into_iter()
                .map(|place| (place, events(place)))
                .collect(),
        }
    }

    /// Forgets what another lesson of the same plan does not show.
    fn keep_common(&mut self, other: &Self) {
        self.writes.retain(|index, count| {
            *count = other.writes.get(index).map_or(0, |others| *others.min(count));
            *count > 0
        });
        for (place, count) in &mut self.counts {
            *count = other.counts[place].min(*count);
        }
        for (place, watches) in &mut self.events {
            let others = &other.events[place];
            watches.truncate(others.len());
            watches.iter_mut().zip(others).for_each(|(events, others)| *events = *others.min(events));
        }
    }

    /// What was learned, in one line.
    pub(crate) fn line(&self) -> String {
        let Self { plan, writes, counts, events } = self;
        let with = plan.deed.map_or("", |(_, deed)| deed.class());
        format!("{:?} {with}: writes {writes:?}, requests {counts:?}, events {events:?}", plan.workload)
    }

    /// The requests of a kind, each as a place for a fault.
    fn spots(&self, place: Place) -> Vec<Spot> {
        let spot = |object: Option<usize>, nths: Range<usize>| {
            nths.map(move |nth| Spot { place, object, nth, times: 1 })
        };
        match place {
            // Every one.
            Place::Objects => {
                self.writes.iter().flat_map(|(index, count)| spot(Some(*index), 0..*count)).collect()
            }
            // There is one watch, which all plans share.
            Place::AllCrds => spot(None, 0..1).collect(),
            place => spot(None, 0..self.counts[&place].min(REPEATED)).collect(),
        }
    }

    /// The fault of each request.
    fn plans(&self) -> Vec<Plan> {
        let mut plans = Vec::new();
        for place in Place::ALL {
            for spot in self.spots(place) {
                let fault = |fault: &Fault| Plan { fault: Some((spot, *fault)), ..self.plan };
                if !self.meets(place) {
                    continue;
                }
                let events =
                    self.events.get(&place).and_then(|all| all.get(spot.nth)).copied().unwrap_or_default();
                let faults = place.faults().iter().filter(|fault| events > 0 || !fault.needs_events());
                plans.extend(faults.map(fault));
                plans.extend((0..events.min(EVENTS)).map(|nth| fault(&Fault::LoseEvent(nth))));
                plans.extend(
                    self.deeds(spot).into_iter().map(|deed| Plan { deed: Some((spot, deed)), ..self.plan }),
                );
            }
        }
        plans
    }

    /// Whether requests of a kind are to get faults in this workload.
    fn meets(&self, place: Place) -> bool {
        match (self.plan.deed, place) {
            // That lesson is only about the reads.
            (Some(_), place) => place == Place::Reads,
            // All others are as much concerned, whatever their workload.
            (None, Place::AllCrds) => self.plan.workload == Workload::Upgrade,
            (None, _) => true,
        }
    }

    /// What users do at a request.
    fn deeds(&self, spot: Spot) -> Vec<Deed> {
        let at_place: &[Deed] = match spot.place {
            _ if self.plan.deed.is_some() => &[],
            Place::Objects => &DEEDS,
            Place::Conditions | Place::Reports => &[Deed::Edit, Deed::Upgrade],
            Place::Lists => &[Deed::Edit, Deed::Recreate, Deed::Mark, Deed::Upgrade],
            Place::Crds => &[Deed::Upgrade],
            Place::Watches | Place::Reads | Place::AllCrds => &[],
        };
        let is_apt = |deed: &&Deed| match self.plan.workload {
            // There, users act already.
            Workload::Users => **deed == Deed::Upgrade,
            // Any user's write destroys what the schema does not know.
            Workload::Hidden => **deed == Deed::Upgrade && spot.place != Place::Objects,
            _ => spot.object.is_none_or(|index| deed.fits(index)),
        };
        at_place.iter().filter(is_apt).copied().collect()
    }

    /// Requests that are never answered: they take more than a minute each.
    fn stalls(&self) -> Vec<Plan> {
        if self.plan.deed.is_some() {
            return Vec::new();
        }
        let is_met = |place: &Place| match place {
            Place::AllCrds => false,
            // CRDs are read one after the other, so that all others wait.
            Place::Crds => self.plan.workload == Workload::Upgrade,
            _ => true,
        };
        let mut plans = Vec::new();
        for place in Place::ALL.into_iter().filter(is_met) {
            let spots = self.spots(place);
            let some = [spots.first(), spots.last()].into_iter().flatten();
            for (spot, fault) in some.zip([Fault::Stall, Fault::StallAnswer]) {
                plans.push(Plan { fault: Some((*spot, fault)), ..self.plan });
            }
        }
        plans
    }
}

/// Every fault at every request, in an order that the seed decides; then what is never answered.
pub(crate) fn all(learned: &[Learned], seed: u64) -> (Vec<Plan>, Vec<Plan>) {
    let mut plans: Vec<Plan> = learned.iter().flat_map(Learned::plans).collect();
    fastrand::Rng::with_seed(seed).shuffle(&mut plans);
    (plans, learned.iter().flat_map(Learned::stalls).collect())
}

/// One each of the plans that give the same kind of request the same fault: as many as CI has time for. The
/// seed decides which, and some faults affect several requests in a row.
pub(crate) fn share(learned: &[Learned], seed: u64) -> Vec<Plan> {
    let mut kinds: BTreeMap<_, Vec<Plan>> = BTreeMap::new();
    for plan in all(learned, seed).0 {
        let place = plan.fault.map(|(spot, _)| spot.place).or(plan.deed.map(|(spot, _)| spot.place));
        // What all plans share has room for one at a time.
        let class = if plan.is_for_all() { String::new() } else { plan.class() };
        kinds.entry((place, class)).or_default().push(plan);
    }
    let mut plans = Vec::new();
    for (index, of_kind) in kinds.into_values().enumerate() {
        let turn = index + usize::try_from(seed).unwrap_or_default();
        let workload = WORKLOADS[turn % WORKLOADS.len()];
        let Some(plan) = of_kind.iter().find(|plan| plan.workload == workload).or(of_kind.first()) else {
            continue;
        };
        let mut plan = *plan;
        let is_once = plan.kills() || plan.is_for_all();
        if let Some((spot, _)) = plan.fault.as_mut().filter(|(_, fault)| !is_once && !fault.needs_events()) {
            spot.times = 1 + turn % 3;
        }
        plans.push(plan);
    }
    plans
}
