//! When the operator has something left to do, what that is, and what must be so where it has not.
//! It must not do it.

use etch_core::object_machine::ATTEMPTS;
use etch_core::plan::{Outcome, Ownership};

use crate::laws::{self, Law};
use crate::object::{Begun, NextStep};
use crate::parts::{Answer, Known, Next, Seen};
use crate::state::{Action, Server, State};
use crate::system::System;
use crate::task::{Phase, Problem, Task, Work, WorkStep};

impl System {
    /// What is so where Etch has nothing left to do.
    pub(crate) fn judge_rest(&self, state: &mut State) {
        let (Some(task), None) = (state.task, state.broken) else { return };
        let Some(live) = state.live.filter(|_| self.is_at_rest(state)) else { return };
        let world = &self.parts.worlds[state.world as usize];
        let content = self.parts.contents.get(live.content);
        if task.phase == Phase::Watch && laws::keeps_an_entry(world, &content) {
            state.broken = Some(Law::Owners);
            return;
        }
        if task.phase != Phase::Watch || task.problem.is_some() {
            return;
        }
        if !self.parts.is_stored(state.world, task.release, live.content) {
            state.broken = Some(Law::Undone);
            return;
        }
        if self.is_left_behind(state, &task) {
            state.broken = Some(Law::Follows);
            return;
        }
        // Under `ownership: Own` what others have stored is Etch's own only once Etch is asked to write it.
        if world.terms.ownership == Ownership::Own {
            return;
        }
        let stand = self.parts.begin(Begun {
            world: state.world,
            release: task.release,
            seen: Seen { by: state.crd, content: live.content, tag: live.tag },
            known: Known { versions_disagree: true, ..Known::default() },
            past: [None; 3],
            follows: false,
            may_lag: false,
        });
        let NextStep::Write(mut machine) = stand.next else { return };
        // Owners in the terms of a version that is gone: moving them is a change, and nothing else could ask.
        if self.parts.is_rewrite(machine) {
            return;
        }
        let by = state.crd;
        for _ in 0..ATTEMPTS {
            let request = self.parts.pending(machine).request;
            let done = self.parts.handle(state.world, by, Some((live.content, live.tag)), request);
            if done.as_ref().is_ok_and(|after| *after != Some(live.content)) {
                state.broken = Some(Law::Idempotence);
                return;
            }
            let answer = match done {
                Ok(_) => Answer::Object(Seen { by, content: live.content, tag: live.tag }),
                Err(refused) => Answer::Refused(refused),
            };
            match self.parts.answered(machine, answer) {
                Next::Send(next) => machine = next,
                Next::Done(ended) => match self.parts.ended(ended) {
                    (Outcome::AlreadyStored(_) | Outcome::Written { .. }, _) => return,
                    _ => break,
                },
                Next::Failed => break,
            }
        }
        state.broken = Some(Law::Idempotence);
    }

    /// Whether a value stays at an old default though it should follow. Only where no server has lagged
    /// behind, nothing was restored, and no request has outlived its task: a user who brings an old value
    /// back after the pass is assumed to mean it.
    fn is_left_behind(&self, state: &State, task: &Task) -> bool {
        let world = &self.parts.worlds[state.world as usize];
        let Some(live) = state.live else { return false };
        if state.is_outrun
            || state.left.behind < self.bounds.behind
            || state.left.restores < self.bounds.restores
        {
            return false;
        }
        let release = |release: u8| &world.releases[release as usize];
        let content = self.parts.contents.get(live.content);
        for (earlier, is_settled) in task.past.into_iter().flatten() {
            if laws::stays_behind(world, release(task.release), release(earlier), &content) {
                return true;
            }
            if is_settled {
                break;
            }
        }
        false
    }

    /// Whether Etch has nothing left to do in this state.
    pub(crate) fn is_at_rest(&self, state: &State) -> bool {
        let is_current = state.behind == state.crd && state.stray.is_none() && !state.restored;
        let is_done = |task: Task| {
            let has_heard = state.live.is_none_or(|live| task.heard == Some(live.tag));
            let waits = task.problem.is_some_and(|(_, problem)| problem != Problem::Held);
            task.release == state.crd
                && match task.phase {
                    Phase::Idle => true,
                    Phase::Watch => has_heard && !task.verify && !waits,
                    Phase::List | Phase::Work(_) => false,
                }
        };
        is_current && state.task.is_some_and(is_done)
    }

    /// Whether the defaults that the second server still gives were reported to Etch at any time.
    ///
    /// A limit: if they were not, for example because Etch is installed within minutes after a change, it
    /// cannot distinguish an old default that such a server shows or stores from a user's value.
    pub(crate) fn is_told(&self, state: &State) -> bool {
        let releases = &self.parts.worlds[state.world as usize].releases;
        let told = state.report.into_iter().flat_map(|report| {
            let before = report.previous.into_iter().flatten().map(|past| past.release);
            before.chain([report.release])
        });
        let behind = &releases[state.behind as usize].crd;
        let mut told = told.map(|release| &releases[release as usize].crd);
        self.is_strict
            || !behind.compiled().has_defaults()
            || told.any(|crd| crd.compiled().digest() == behind.compiled().digest())
    }

    /// What Etch can do next, by each server that can answer.
    pub(crate) fn of_etch(&self, state: &State, task: Task, actions: &mut Vec<Action>) {
        let is_behind = state.behind != state.crd && state.left.behind > 0 && self.is_told(state);
        let mut by_any = |action: fn(Server) -> Action| {
            for server in [Server::First, Server::Behind] {
                let is_there = server == Server::First || is_behind;
                if is_there && self.parts.answers(state.world, Self::by(state, server), task.release) {
                    actions.push(action(server));
                }
            }
        };
        match task.phase {
            Phase::Idle => {}
            Phase::List => by_any(Action::List),
            Phase::Work(Work { step: WorkStep::Read, .. }) => by_any(Action::Read),
            Phase::Work(Work { step: WorkStep::Sent(_), .. }) => {
                by_any(Action::Answer);
                if state.left.faults > 0 {
                    by_any(Action::LoseAnswer);
                    if state.stray.is_none() {
                        actions.push(Action::GiveUp);
                    }
                }
            }
            Phase::Watch => {
                let waits = task.problem.is_some_and(|(_, problem)| problem != Problem::Held);
                if state.live.is_some_and(|live| task.heard != Some(live.tag)) {
                    by_any(Action::Event);
                } else if waits && state.live.is_some() && state.behind == state.crd {
                    actions.push(Action::Retry(Server::First));
                }
                // No server lags behind for so long.
                if task.verify && state.behind >= task.release {
                    actions.push(Action::Verify);
                }
            }
        }
    }
}
