//! The cluster of the simulator, in which one thing after another may happen, and any of them. Nothing here
//! decides: the machines of Etch do, and the simulator's servers answer.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use simulator::bounds::Bounds;
use simulator::cluster::{Cluster, Happening, Violation};
use simulator::dice::{Dice, Script};
use simulator::laws::Law;
use simulator::sabotage::Sabotage;
use simulator::worlds::World;
use stateright::{Model, Property};

/// After so many waits for nothing, what is left to be done is left forever.
const WAITS: usize = 100;

/// The worlds with their bounds.
#[derive(Clone)]
pub(crate) struct System {
    pub(crate) worlds: Vec<Arc<World>>,
    pub(crate) bounds: Bounds,
    pub(crate) sabotage: Option<Sabotage>,
    /// Whether a limit counts as a broken law.
    pub(crate) is_strict: bool,
    /// When every life begins.
    pub(crate) begun: Instant,
    ends: Ends,
}

/// What is broken in the end, by the world and the digest of the cluster that comes to rest: many ways lead
/// to each.
type Ends = Arc<Mutex<HashMap<(usize, u64), Option<Broken>>>>;

/// A cluster, and what may still happen to it.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) cluster: Arc<Cluster>,
    world: usize,
    left: Left,
    has_backup: bool,
    pub(crate) broken: Option<Broken>,
    digest: u64,
}

/// What may still happen, apart from what the cluster's script counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Left {
    users: u8,
    crashes: u8,
    upgrades: u8,
    restores: u8,
}

/// A law that is broken, and how.
#[derive(Clone, Debug)]
pub(crate) struct Broken {
    pub(crate) law: Option<Law>,
    pub(crate) what: String,
}

/// Something that happens, or the result of what is under way.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Action {
    /// A user sends a request.
    User { request: usize, is_behind: bool },
    /// The CRD changes.
    Upgrade { is_slow: bool },
    /// The server that lags behind has caught up.
    CatchUp,
    /// Etch ends, and starts again.
    Crash,
    /// etcd is backed up.
    BackUp,
    /// etcd is restored.
    Restore,
    /// What is under way goes on.
    Step(Step),
    /// Time passes until Etch has something to do.
    Wait,
}

/// Choices and their outcomes.
#[derive(Clone)]
pub(crate) struct Step {
    choices: Vec<usize>,
    /// `None` if it is to be found out once more.
    result: Option<(Arc<Cluster>, Option<Violation>)>,
}

impl Step {
    /// It, and the choices that come after these.
    fn take(choices: Vec<usize>, cluster: &Cluster) -> (Self, Option<Vec<usize>>) {
        let mut cluster = cluster.clone();
        if let Some(script) = cluster.script() {
            script.follow(choices.clone());
        }
        let broken = cluster.step().err();
        let following = cluster.script().and_then(|script| {
            let following = script.following();
            script.follow(Vec::new());
            following
        });
        (Self { choices, result: Some((Arc::new(cluster), broken)) }, following)
    }
}

impl PartialEq for Step {
    fn eq(&self, other: &Self) -> bool {
        self.choices == other.choices
    }
}

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.choices.fmt(f)
    }
}

impl Action {
    /// It, to be done once more.
    pub(crate) fn again(self) -> Self {
        match self {
            Self::Step(step) => Self::Step(Step { result: None, ..step }),
            action => action,
        }
    }
}

impl System {
    pub(crate) fn new(worlds: Vec<Arc<World>>, bounds: Bounds, sabotage: Option<Sabotage>) -> Self {
        let ends = Ends::default();
        Self { worlds, bounds, sabotage, is_strict: false, begun: Instant::now(), ends }
    }

    fn begin(&self, world: usize) -> State {
        let Bounds { users, crashes, faults, upgrades, behind, restores } = self.bounds;
        let dice = Dice::scripted(Script::new(faults, behind));
        let worlds = [self.worlds[world].clone()];
        let mut cluster = Cluster::new(&worlds, Duration::ZERO, self.sabotage, dice, self.begun);
        if self.is_strict {
            cluster.be_strict();
        }
        let left = Left { users, crashes, upgrades, restores };
        State { cluster: Arc::new(cluster), world, left, has_backup: false, broken: None, digest: 0 }
    }

    /// The state after an action; its trace, if it has one, is extended.
    pub(crate) fn after(&self, last: &State, action: &Action) -> State {
        let mut state = last.clone();
        let mut stepped = None;
        if let Action::Step(step) = action {
            let Step { choices, result } = step;
            let taken = result.clone().or_else(|| Step::take(choices.clone(), &state.cluster).0.result);
            if let Some((cluster, broken)) = taken {
                (state.cluster, stepped) = (cluster, broken);
            }
        }
        let cluster = Arc::make_mut(&mut state.cluster);
        let left = &mut state.left;
        // No other process changes reports then.
        let are_reports_ours = left.crashes == 0
            && left.restores == 0
            && !state.has_backup
            && !cluster.has_strays()
            && cluster.script().is_some_and(|script| script.faults == 0);
        let (mut broken, mut happening) = (None, None);
        match action {
            Action::User { request, is_behind } => {
                left.users -= 1;
                if let Some(script) = cluster.script().filter(|_| *is_behind) {
                    script.behind -= 1;
                }
                let user =
                    Happening::User { resource: 0, object: 0, request: *request, is_behind: *is_behind };
                happening = Some(user);
            }
            Action::Upgrade { is_slow } => {
                left.upgrades -= 1;
                happening = Some(Happening::Upgrade { resource: 0, is_back: false, is_slow: *is_slow });
            }
            Action::CatchUp => happening = Some(Happening::CatchUp(0)),
            Action::Crash => {
                left.crashes -= 1;
                happening = Some(Happening::Crash);
            }
            Action::BackUp => {
                left.restores -= 1;
                state.has_backup = true;
                happening = Some(Happening::BackUp(0));
            }
            Action::Restore => {
                state.has_backup = false;
                happening = Some(Happening::Restore(0));
            }
            Action::Step(_) => broken = stepped,
            Action::Wait => {
                let mut waits = 0..WAITS;
                while broken.is_none() && !cluster.has_choices() && !cluster.has_reported() {
                    cluster.wait();
                    broken = match waits.next() {
                        Some(_) => cluster.bring_on(are_reports_ours).err(),
                        None => cluster.clone().rest().err(),
                    };
                }
            }
        }
        if let Some(happening) = happening {
            cluster.happen(&happening);
        }
        broken = broken.or_else(|| cluster.bring_on(are_reports_ours).err());
        let is_known = !cluster.has_news() && !cluster.resources()[0].lags();
        let has_reported = broken.is_none() && is_known && cluster.has_reported();
        state.digest = cluster.digest();
        state.broken = match has_reported {
            true => self.end((state.world, state.digest), cluster),
            false => broken.map(Broken::of),
        };
        state
    }

    /// What is broken once nothing is left to be done.
    fn end(&self, of: (usize, u64), cluster: &Cluster) -> Option<Broken> {
        let known = self.ends.lock().get(&of).cloned();
        known.unwrap_or_else(|| {
            let mut end = cluster.clone();
            let broken = end.rest().and_then(|()| end.judge()).err().map(Broken::of);
            self.ends.lock().insert(of, broken.clone());
            broken
        })
    }

    /// All choices that can be made next.
    fn choices(&self, state: &State, actions: &mut Vec<Action>) {
        let mut choices = Some(Vec::new());
        while let Some(next) = choices {
            let (step, following) = Step::take(next, &state.cluster);
            actions.push(Action::Step(step));
            choices = following;
        }
    }
}

impl Broken {
    fn of(violation: Violation) -> Self {
        Self { law: violation.law, what: violation.to_string() }
    }
}

impl Model for System {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut states = Vec::new();
        for (index, world) in self.worlds.iter().enumerate() {
            let mut empty = self.begin(index);
            for request in 0..world.menu.len() {
                let mut state = empty.clone();
                let cluster = Arc::make_mut(&mut state.cluster);
                cluster.happen(&Happening::User { resource: 0, object: 0, request, is_behind: false });
                if !cluster.resources()[0].objects.is_empty() {
                    state.digest = cluster.digest();
                    states.push(state);
                }
            }
            empty.digest = empty.cluster.digest();
            states.push(empty);
        }
        states
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.broken.is_some() {
            return;
        }
        let mut cluster = (*state.cluster).clone();
        let behind = cluster.script().map_or(0, |script| script.behind);
        let resource = &cluster.resources()[0];
        let (lags, is_served) = (resource.lags(), resource.may_store_late() && resource.was_reported());
        if state.left.users > 0 {
            for request in 0..self.worlds[state.world].menu.len() {
                actions.push(Action::User { request, is_behind: false });
                if behind > 0 && is_served {
                    actions.push(Action::User { request, is_behind: true });
                }
            }
        }
        if state.left.upgrades > 0 && resource.may_upgrade() {
            actions.push(Action::Upgrade { is_slow: false });
            if behind > 0 {
                actions.push(Action::Upgrade { is_slow: true });
            }
        }
        if lags {
            actions.push(Action::CatchUp);
        }
        if state.left.crashes > 0 {
            actions.push(Action::Crash);
        }
        if state.left.restores > 0 && !state.has_backup {
            actions.push(Action::BackUp);
        }
        if state.has_backup {
            actions.push(Action::Restore);
        }
        if cluster.has_choices() || cluster.has_news() {
            self.choices(state, actions);
        } else if !cluster.has_reported() {
            actions.push(Action::Wait);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        Some(self.after(last, &action))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(Law::Values.name(), |_, state: &State| !state.breaks(Some(Law::Values))),
            Property::always(Law::Race.name(), |_, state: &State| !state.breaks(Some(Law::Race))),
            Property::always(Law::Creates.name(), |_, state: &State| !state.breaks(Some(Law::Creates))),
            Property::always(Law::Owners.name(), |_, state: &State| !state.breaks(Some(Law::Owners))),
            Property::always(Law::Hidden.name(), |_, state: &State| !state.breaks(Some(Law::Hidden))),
            Property::always(Law::Persisted.name(), |_, state: &State| !state.breaks(Some(Law::Persisted))),
            Property::always(Law::Idempotence.name(), |_, state: &State| {
                !state.breaks(Some(Law::Idempotence))
            }),
            Property::always(Law::Undone.name(), |_, state: &State| !state.breaks(Some(Law::Undone))),
            Property::always(Law::Follows.name(), |_, state: &State| !state.breaks(Some(Law::Follows))),
            Property::always(Law::Allowed.name(), |_, state: &State| !state.breaks(Some(Law::Allowed))),
            Property::always(TRUE, |_, state: &State| !state.breaks(None)),
            Property::sometimes(RESTS, |_, state: &State| state.cluster.as_ref().clone().has_reported()),
        ]
    }
}

/// What is reported in the end is true.
pub(crate) const TRUE: &str = "in the end conditions and reports are true";
/// Etch comes to rest.
pub(crate) const RESTS: &str = "Etch rests";

impl State {
    fn breaks(&self, law: Option<Law>) -> bool {
        self.broken.as_ref().is_some_and(|broken| broken.law == law)
    }
}

impl Hash for State {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { world, left, has_backup, digest, broken, .. } = self;
        let broken = broken.as_ref().map(|broken| broken.law);
        (world, left, has_backup, digest, broken).hash(state);
    }
}

impl PartialEq for State {
    fn eq(&self, other: &Self) -> bool {
        let of = |state: &Self| (state.world, state.left, state.has_backup, state.digest);
        of(self) == of(other)
    }
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let objects = &self.cluster.resources()[0].objects;
        f.debug_struct("State")
            .field("objects", objects)
            .field("broken", &self.broken)
            .finish_non_exhaustive()
    }
}
