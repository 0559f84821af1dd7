//! The system that is explored: etcd, two API servers of which one may lag behind, users, and the operator.
//! It must not decide for Etch; see `task` for what of it is modelled.

use stateright::{Model, Property};

use crate::laws::{self, Law};
use crate::parts::{Answer, Parts, Pending, Seen, Shared};
use crate::server::{Refused, Tag, Verb};
use crate::state::{Action, Backup, Left, Live, Server, State};
use crate::tables::Id;
use e2e::simulator::bounds::Bounds;

/// The worlds with their bounds.
#[derive(Clone)]
pub(crate) struct System {
    pub(crate) parts: Shared,
    pub(crate) bounds: Bounds,
    /// Whether a limit counts as a broken law: see [`laws::broken`].
    pub(crate) is_strict: bool,
}

impl System {
    pub(crate) fn new(parts: Parts, bounds: Bounds) -> Self {
        Self { parts: Shared::new(parts), bounds, is_strict: false }
    }

    pub(crate) fn by(state: &State, server: Server) -> u8 {
        match server {
            Server::First => state.crd,
            Server::Behind => state.behind,
        }
    }

    /// Spends what a server that lags behind may do.
    pub(crate) fn spend(state: &mut State, server: Server) {
        if server == Server::Behind {
            state.left.behind -= 1;
        }
    }

    /// Processes a request; the answer.
    pub(crate) fn process(&self, state: &mut State, server: Server, request: Id) -> Answer {
        let by = Self::by(state, server);
        let live = state.live.map(|live| (live.content, live.tag));
        match self.parts.handle(state.world, by, live, request) {
            Err(refused) => Answer::Refused(refused),
            Ok(Some(content)) if self.parts.requests.get(request).verb == Verb::DryRun => {
                let tag = state.live.expect("nobody makes a dry run on what is gone").tag;
                Answer::Object(Seen { by, content, tag })
            }
            Ok(None) => {
                state.revision += 1;
                state.live = None;
                Answer::Refused(Refused { code: 404, message: String::new() })
            }
            Ok(Some(content)) => {
                let live = match state.live {
                    Some(live) if live.content == content => live,
                    before => {
                        state.revision += 1;
                        if before.is_none() {
                            state.uids += 1;
                        }
                        let uid = before.map_or(state.uids, |live| live.tag.uid);
                        Live { content, tag: Tag { uid, revision: state.revision }, is_late: by != state.crd }
                    }
                };
                state.live = Some(live);
                Answer::Object(Seen { by, content, tag: live.tag })
            }
        }
    }

    /// Processes a request of Etch's, and judges what it does.
    pub(crate) fn process_ours(&self, state: &mut State, server: Server, pending: Pending) -> Answer {
        let before = state.live;
        let answer = self.process(state, server, pending.request);
        if state.live == before {
            return answer;
        }
        let world = &self.parts.worlds[state.world as usize];
        let law = match (before, state.live) {
            (Some(before), Some(_)) if before.tag.uid != pending.basis.uid => Some(Law::Creates),
            (Some(before), Some(after)) => {
                let race = (before.tag != pending.basis).then_some(Law::Race);
                let (before, after) =
                    (self.parts.contents.get(before.content), self.parts.contents.get(after.content));
                let served = (!self.is_strict).then(|| &world.releases[Self::by(state, server) as usize]);
                let release = &world.releases[state.crd as usize];
                // A default that changes while Etch's write is on its way comes too late for the object.
                let reader = (pending.release == state.crd).then_some(release);
                laws::broken(world, (release, served, reader), (&before, &after), pending.follows, &[])
                    .or(race)
            }
            _ => Some(Law::Creates),
        };
        state.broken = state.broken.or(law);
        answer
    }

    fn act(&self, state: &mut State, action: Action) {
        let parts = &*self.parts;
        match (action, state.task) {
            (Action::User(index, server), _) => {
                state.left.users -= 1;
                Self::spend(state, server);
                let request = parts.worlds[state.world as usize].menu[index as usize].clone();
                let _ = self.process(state, server, parts.requests.id(request));
            }
            (Action::Upgrade, _) => {
                state.left.upgrades -= 1;
                state.crd += 1;
                state.revision += 1;
                if state.left.behind == 0 {
                    state.behind = state.crd;
                }
            }
            (Action::CatchUp, _) => state.behind = state.crd,
            (Action::Backup, _) => {
                state.left.restores -= 1;
                state.backup = Some(Backup { live: state.live, report: state.report });
            }
            (Action::Restore, _) => {
                let Some(Backup { live, report }) = state.backup.take() else { return };
                state.revision += 1;
                state.restored = state.task.is_some();
                (state.live, state.report) = (live, report);
            }
            (Action::Start, None) => self.start(state, false),
            (Action::Learn, Some(_)) => {
                Self::stop(state, parts);
                self.start(state, false);
            }
            (Action::Notice, Some(_)) => {
                Self::stop(state, parts);
                self.start(state, true);
                state.restored = false;
            }
            (Action::Crash, Some(_)) => {
                state.left.crashes -= 1;
                Self::stop(state, parts);
                state.restored = false;
            }
            (Action::Arrive(server), _) => {
                Self::spend(state, server);
                if let Some(pending) = state.stray.take() {
                    state.is_outrun |= state.report.is_some_and(|report| report.release != pending.release);
                    self.process_ours(state, server, pending);
                }
            }
            (action, Some(task)) => self.act_on_objects(state, task, action),
            _ => {}
        }
    }
}

impl Model for System {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let Bounds { users, crashes, faults, upgrades, behind, restores } = self.bounds;
        let left = Left { users, crashes, faults, upgrades, behind, restores };
        let mut states = Vec::new();
        for (index, world) in self.parts.worlds.iter().enumerate() {
            let empty = State {
                world: u8::try_from(index).expect("there are few worlds"),
                crd: 0,
                behind: 0,
                revision: 1,
                uids: 0,
                live: None,
                report: None,
                task: None,
                stray: None,
                backup: None,
                restored: false,
                is_outrun: false,
                left,
                broken: None,
            };
            states.push(empty);
            for request in &world.menu {
                let mut state = empty;
                let _ = self.process(&mut state, Server::First, self.parts.requests.id(request.clone()));
                if state.live.is_some() {
                    states.push(state);
                }
            }
        }
        states
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.broken.is_some() {
            return;
        }
        let world = &self.parts.worlds[state.world as usize];
        let is_behind = state.behind != state.crd && state.left.behind > 0;
        if state.left.users > 0 {
            for index in 0..u8::try_from(world.menu.len()).expect("a menu is short") {
                actions.push(Action::User(index, Server::First));
                if is_behind {
                    actions.push(Action::User(index, Server::Behind));
                }
            }
        }
        if state.left.upgrades > 0 && (state.crd as usize) + 1 < world.releases.len() {
            // The server refuses to drop a version at which objects are stored.
            let next = &world.releases[state.crd as usize + 1];
            if state.live.is_none_or(|live| next.has(&self.parts.contents.get(live.content).version)) {
                actions.push(Action::Upgrade);
            }
        }
        if state.behind != state.crd {
            actions.push(Action::CatchUp);
        }
        if state.left.restores > 0 && state.backup.is_none() && state.task.is_some() {
            actions.push(Action::Backup);
        }
        if state.backup.is_some() {
            actions.push(Action::Restore);
        }
        if state.stray.is_some() {
            actions.push(Action::Arrive(Server::First));
            if is_behind && self.is_told(state) {
                actions.push(Action::Arrive(Server::Behind));
            }
        }
        match state.task {
            None => actions.push(Action::Start),
            Some(task) => {
                // A limit: a crash forgets which objects a server showed with an old default.
                if state.left.crashes > 0 && (self.is_strict || task.suspect.is_none()) {
                    actions.push(Action::Crash);
                }
                if task.release != state.crd {
                    actions.push(Action::Learn);
                }
                if state.restored {
                    actions.push(Action::Notice);
                }
                self.of_etch(state, task, actions);
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = *last;
        self.act(&mut state, action);
        self.judge_rest(&mut state);
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(Law::Values.name(), |_, state: &State| state.broken != Some(Law::Values)),
            Property::always(Law::Race.name(), |_, state: &State| state.broken != Some(Law::Race)),
            Property::always(Law::Creates.name(), |_, state: &State| state.broken != Some(Law::Creates)),
            Property::always(Law::Owners.name(), |_, state: &State| state.broken != Some(Law::Owners)),
            Property::always(Law::Hidden.name(), |_, state: &State| state.broken != Some(Law::Hidden)),
            Property::always(Law::Persisted.name(), |_, state: &State| state.broken != Some(Law::Persisted)),
            Property::always(Law::Idempotence.name(), |_, state: &State| {
                state.broken != Some(Law::Idempotence)
            }),
            Property::always(Law::Follows.name(), |_, state: &State| state.broken != Some(Law::Follows)),
            Property::always(Law::Undone.name(), |_, state: &State| state.broken != Some(Law::Undone)),
            Property::sometimes("Etch rests", |system: &Self, state: &State| system.is_at_rest(state)),
        ]
    }
}
