//! The operator's steps: what it remembers and does when it starts, lists, gets an object from the watch, or
//! gets an answer. It must not decide about an object, nor what an answer means: it asks Etch's own code.

use crate::laws::Law;
use crate::object::{Begun, NextStep, Stand, Taken};
use crate::parts::{Answer, Known, Next, Parts, Past, Pending, Seen};
use crate::server::Tag;
use crate::state::{Action, Server, State};
use crate::system::System;
use crate::tables::Id;
use crate::task::{Conclusion, PastReport, Phase, Problem, Report, Task, VERIFICATIONS, Work, WorkStep};
use e2e::simulator::sabotage::Sabotage;

impl System {
    /// Has Etch begin with the CRD as it is now.
    pub(crate) fn start(&self, state: &mut State, forgets: bool) {
        let (parts, world, release) = (&*self.parts, state.world, state.crd);
        let releases = &parts.worlds[world as usize].releases;
        let crd = &releases[release as usize].crd;
        let is_this = |other: u8| {
            let other = &releases[other as usize].crd;
            (other.compiled().digest(), &other.storage().name)
                == (crd.compiled().digest(), &crd.storage().name)
        };
        let disagreed = |generation: u8| releases[generation as usize].crd.versions_disagree();
        let fresh = Known { versions_disagree: crd.versions_disagree(), ..Known::default() };
        let report = state.report.filter(|_| !forgets);
        let (mut known, report) = match report {
            Some(report) if is_this(report.release) => {
                let known = Known {
                    through: report.through,
                    excepted: report.excepted,
                    versions_disagree: crd.versions_disagree()
                        || release > report.generation + 1
                        || disagreed(report.generation),
                    servers_lag: false,
                };
                let may_drop_by_lag = !crd.versions_disagree() && known.versions_disagree;
                let verify = report.verify || may_drop_by_lag && crd.compiled().has_defaults();
                (if report.through.is_some() { known } else { fresh }, Report { verify, ..report })
            }
            report => {
                let mut previous: Vec<PastReport> =
                    report.iter().flat_map(|report| report.previous.into_iter().flatten()).collect();
                let back = previous
                    .iter()
                    .position(|past| is_this(past.release))
                    .map(|index| previous.remove(index));
                if let Some(Report { release, through, excepted, verify, .. }) = report {
                    previous.insert(0, PastReport { release, through, excepted, verify });
                }
                let known = match back {
                    Some(PastReport { through: Some(through), excepted, .. }) => Known {
                        through: Some(through),
                        excepted,
                        versions_disagree: true,
                        servers_lag: false,
                    },
                    _ => fresh,
                };
                let mut all = previous.into_iter();
                let previous = [all.next(), all.next(), all.next()];
                let verify = crd.compiled().has_defaults();
                let generation = release;
                (known, Report { release, generation, through: None, excepted: None, verify, previous })
            }
        };
        let is_settled = |past: PastReport| past.through.is_some() && !past.verify;
        let past: [Past; 3] = report.previous.map(|past| past.map(|past| (past.release, is_settled(past))));
        if parts.is(Sabotage::RemembersTooMuch)
            && let Some(report) = state.report
        {
            known.through =
                known.through.or(report.through).or(report.previous[0].and_then(|past| past.through));
        }
        let mut report = report;
        if parts.is(Sabotage::VerifiesNothing) {
            report.verify = false;
        }
        let processed = report.through.is_some();
        let mut task = Task {
            release,
            phase: Phase::List,
            sweep: 0,
            wrote: false,
            asked: false,
            listed: 0,
            known,
            covered: known.through,
            proved: None,
            problem: None,
            processed,
            suspect: None,
            verify: report.verify,
            verifies: false,
            past,
            heard: None,
        };
        task.known.servers_lag = task.verify && (task.covered.is_none() || task.known.versions_disagree);
        let follows = !parts.worlds[world as usize].follow.is_empty();
        let may_move = follows && !processed && parts.has_changes(world, release, &past);
        if !crd.compiled().has_defaults() && !may_move {
            task.phase = Phase::Idle;
        }
        if parts.is(Sabotage::RecordsAhead) {
            report.through = Some(state.revision);
        }
        state.report = Some(report);
        state.task = Some(task);
    }

    /// Ends the task; a request that is under way may still arrive.
    pub(crate) fn stop(state: &mut State, parts: &Parts) {
        if let Some(Task { phase: Phase::Work(Work { step: WorkStep::Sent(machine), .. }), .. }) = state.task
        {
            state.stray = Some(parts.pending(machine));
        }
        state.task = None;
    }

    /// Takes up an object as it was seen.
    fn take_up(&self, state: &mut State, task: Task, seen: Seen, known: Known, sweeps: bool) {
        let stand = self.parts.begin(Begun {
            world: state.world,
            release: task.release,
            seen,
            known,
            past: task.past,
            follows: !task.processed || known.excepted == Some(seen.tag.uid),
            may_lag: task.verify && !task.verifies,
        });
        self.go_on(state, task, stand, sweeps);
    }

    /// Does what the object's machine asks for.
    fn go_on(&self, state: &mut State, mut task: Task, stand: Stand, sweeps: bool) {
        let Stand { machine, seen, is_suspect, next } = stand;
        if is_suspect {
            task.suspect = Some(seen.tag);
        }
        let step = match next {
            NextStep::Write(write) => WorkStep::Sent(write),
            NextStep::Read => WorkStep::Read,
            NextStep::Done(conclusion) => return self.conclude(state, task, seen, sweeps, conclusion),
            NextStep::Stop { has_lost_owners: true } => {
                state.broken = state.broken.or(Some(Law::Owners));
                return;
            }
            NextStep::Stop { has_lost_owners: false } => {
                task.sweep_again(0);
                state.task = Some(task);
                return;
            }
        };
        task.phase = Phase::Work(Work { machine, seen, step, sweeps });
        state.task = Some(task);
    }

    /// Goes on after an answer.
    fn answered(&self, state: &mut State, task: Task, work: Work, write: Id, answer: Answer) {
        let taken = match self.parts.answered(write, answer) {
            Next::Send(write) => {
                let phase = Phase::Work(Work { step: WorkStep::Sent(write), ..work });
                state.task = Some(Task { phase, ..task });
                return;
            }
            Next::Done(write) => Taken::Ended(write),
            Next::Failed => Taken::Unanswered,
        };
        self.take(state, task, work, taken);
    }

    fn take(&self, state: &mut State, task: Task, work: Work, taken: Taken) {
        let stand = self.parts.take(work.machine, taken);
        self.go_on(state, task, stand, work.sweeps);
    }

    /// Notes the outcome for the object, and judges what is reported of it.
    fn conclude(&self, state: &mut State, mut task: Task, seen: Seen, sweeps: bool, conclusion: Conclusion) {
        let tag = match conclusion {
            Conclusion::Written(revision) => Tag { revision, ..seen.tag },
            _ => seen.tag,
        };
        let is_said = match conclusion {
            Conclusion::Stored => true,
            Conclusion::AlreadyStored | Conclusion::Written(_) => {
                task.proved = Some(tag);
                true
            }
            Conclusion::Gone | Conclusion::Problem(_) => false,
        };
        // Reports are about the release that Etch knows, and its conditions name that.
        let is_current = state.crd == task.release && !state.restored;
        if let Some(live) = state.live.filter(|live| is_said && is_current && live.tag == tag) {
            let was_behind = live.is_late || seen.by < task.release;
            let may_be_wrong = conclusion == Conclusion::Stored && task.verify && was_behind;
            if !may_be_wrong && !self.parts.is_stored(state.world, task.release, live.content) {
                state.broken = state.broken.or(Some(Law::Persisted));
            }
        }
        let uid = tag.uid;
        task.problem = match conclusion {
            Conclusion::Problem(problem) => Some((tag, problem)),
            _ => task.problem.filter(|(tag, _)| tag.uid != uid),
        };
        task.wrote |= matches!(conclusion, Conclusion::Written(_));
        task.asked |= !matches!(conclusion, Conclusion::Stored | Conclusion::Problem(Problem::Held));
        if sweeps {
            self.end_sweep(state, task);
            return;
        }
        task.phase = Phase::Watch;
        task.known.excepted = task.problem.map(|(tag, _)| tag.uid);
        if let Some(report) = &mut state.report
            && report.excepted != task.known.excepted
        {
            report.excepted = task.known.excepted;
            report.through = report.through.filter(|_| self.is_on_record(state.crd, task.release));
        }
        state.task = Some(task);
    }

    /// Ends a sweep: another one follows where it wrote, and else the report.
    fn end_sweep(&self, state: &mut State, mut task: Task) {
        let crd = &self.parts.worlds[state.world as usize].releases[task.release as usize].crd;
        let is_unknown = task.problem.is_some_and(|(_, problem)| problem == Problem::Unknown);
        let is_verified = match task.sweep {
            0 => !task.wrote,
            _ => !task.asked || is_unknown,
        };
        let asked = task.asked || task.sweep > 0;
        let keeps = task.verify && !task.verifies && task.covered.is_some() && !task.known.versions_disagree;
        task.known = Known {
            through: Some(task.listed),
            excepted: task.problem.map(|(tag, _)| tag.uid),
            versions_disagree: crd.versions_disagree(),
            servers_lag: task.known.servers_lag,
        };
        if !is_verified && task.sweep < VERIFICATIONS {
            task.sweep_again(task.sweep + 1);
            state.task = Some(task);
            return;
        }
        let is_same = state.report.is_some_and(|report| report.excepted == task.known.excepted);
        let is_current = state.report.is_some_and(|report| report.generation == task.release);
        let is_unchanged = task.covered.is_some() && is_current && !task.verifies && !asked && is_same;
        if is_unchanged || keeps {
            task.known.through = task.covered;
        }
        task.known.servers_lag = false;
        if task.verifies {
            (task.verify, task.verifies, task.suspect) = (false, false, None);
        }
        task.processed = true;
        task.phase = if crd.compiled().has_defaults() { Phase::Watch } else { Phase::Idle };
        if let Some(report) = &mut state.report {
            let record = (task.known.through, task.known.excepted);
            let is_on_record =
                record == (report.through, report.excepted) || self.is_on_record(state.crd, task.release);
            report.through = record.0.filter(|_| is_on_record);
            report.excepted = record.1;
            report.generation = task.release;
            report.verify = task.verify;
        }
        state.task = Some(task);
    }

    /// Whether a report is a record: the CRD is still the one that it is about.
    fn is_on_record(&self, crd: u8, release: u8) -> bool {
        crd == release || self.parts.is(Sabotage::RecordsWhatIsOver)
    }

    fn list(&self, state: &mut State, mut task: Task, server: Server) {
        let by = Self::by(state, server);
        task.listed = state.revision;
        task.heard = state.live.map(|live| live.tag);
        let Some(live) = state.live else {
            task.problem = None;
            return self.end_sweep(state, task);
        };
        let is_known = task.sweep > 0
            && task.problem.is_some_and(|(tag, problem)| tag == live.tag && problem != Problem::Unknown);
        if is_known || task.proved == Some(live.tag) {
            return self.end_sweep(state, task);
        }
        let seen = Seen { by, content: live.content, tag: live.tag };
        let known = match task.suspect == Some(live.tag) {
            true => Known { versions_disagree: task.known.versions_disagree, ..Known::default() },
            false => task.known,
        };
        self.take_up(state, task, seen, known, true);
    }

    pub(crate) fn act_on_objects(&self, state: &mut State, mut task: Task, action: Action) {
        let seen = |state: &State, server| {
            let live = state.live?;
            Some(Seen { by: Self::by(state, server), content: live.content, tag: live.tag })
        };
        match (action, task.phase) {
            (Action::List(server), Phase::List) => {
                Self::spend(state, server);
                self.list(state, task, server);
            }
            (Action::Event(server) | Action::Retry(server), Phase::Watch) => {
                Self::spend(state, server);
                let Some(seen) = seen(state, server) else { return };
                let is_proved = task.proved == Some(seen.tag) || self.parts.is(Sabotage::HearsNothing);
                task.heard = Some(seen.tag);
                match is_proved && matches!(action, Action::Event(_)) {
                    true => state.task = Some(task),
                    false => self.take_up(state, task, seen, task.known, false),
                }
            }
            (Action::Verify, Phase::Watch) => {
                task.verifies = true;
                task.known.servers_lag = true;
                task.covered = task.known.through;
                task.sweep_again(0);
                state.task = Some(task);
            }
            (Action::Answer(server), Phase::Work(work)) => {
                let WorkStep::Sent(machine) = work.step else { return };
                Self::spend(state, server);
                let answer = self.process_ours(state, server, self.parts.pending(machine));
                self.answered(state, task, work, machine, answer);
                if self.parts.is(Sabotage::CreatesWhatIsGone) && state.live.is_none() {
                    let menu = &self.parts.worlds[state.world as usize].menu;
                    let request = self.parts.requests.id(menu[0].clone());
                    self.process_ours(state, server, Pending { request, ..self.parts.pending(machine) });
                }
            }
            (Action::LoseAnswer(server), Phase::Work(work)) => {
                let WorkStep::Sent(machine) = work.step else { return };
                Self::spend(state, server);
                state.left.faults -= 1;
                self.process_ours(state, server, self.parts.pending(machine));
                self.unanswered(state, task, work);
            }
            (Action::GiveUp, Phase::Work(work)) => {
                let WorkStep::Sent(machine) = work.step else { return };
                state.left.faults -= 1;
                state.stray = Some(self.parts.pending(machine));
                self.unanswered(state, task, work);
            }
            (Action::Read(server), Phase::Work(work)) => {
                Self::spend(state, server);
                match seen(state, server) {
                    Some(fresh) => self.take(state, task, work, Taken::Read(fresh)),
                    None => self.conclude(state, task, work.seen, work.sweeps, Conclusion::Gone),
                }
            }
            _ => {}
        }
    }

    /// Goes on where no answer has come.
    fn unanswered(&self, state: &mut State, task: Task, work: Work) {
        let believes = self.parts.is(Sabotage::BelievesInSilence);
        self.take(state, task, work, if believes { Taken::Believed } else { Taken::Unanswered });
    }
}
