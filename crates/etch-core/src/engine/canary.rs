//! The canary of a pass: a few objects are written and verified before all others, and what follows.
//!
//! ```text
//! Running ─┬─> (nothing else needed a write) ─────────────> an ordinary pass
//!          ├─> (no answer) ─> Running, later
//!          ├─> Rejected ─────────────┐
//!          ├─> Waiting ──────────────┴─> resumed ─> Passed ─> an ordinary pass
//!          └─> Passed, where the policy has `then: Continue`
//! ```
//!
//! While it is `Waiting` or `Rejected`, Etch counts and reports objects as in a pause. It belongs to one
//! generation of the CRD: the next one begins with a canary of its own, unless every object is on record by
//! then.
//!
//! An object counts when a write has changed it. One that a write finds to be stored shows nothing about the
//! others, and one that is held is not tried.
//!
//! [`CanaryRun`] has the progress and the hold, and every transition of this picture is a method of it;
//! `Trials` counts what a sweep does with the objects.

use std::collections::BTreeSet;

use crate::api::{AfterCanary, Amount, Canary, CanaryProgress, CanaryState};
use crate::condition::Reason;
use crate::crd::Crd;
use crate::object_state::ObjectState;
use crate::report::state::ReportState;

/// How many objects may be written.
#[derive(Clone, Copy, Debug)]
pub struct CanaryLimit {
    /// How many in all.
    pub objects: Amount,
    /// How many of them were written before this pass.
    pub written: u64,
}

impl CanaryLimit {
    /// How many may still be written where there are `all` objects.
    fn left(self, all: u64) -> u64 {
        self.objects.of(all).max(1).saturating_sub(self.written)
    }
}

/// The outcomes for the objects of a canary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CanaryCounts {
    /// Writes have changed these.
    pub written: u64,
    /// Writes of these were refused.
    pub refused: u64,
    /// The API server or a webhook did not answer about these.
    pub unanswered: u64,
    /// These would have been written, too.
    pub withheld: u64,
}

/// The canary in one sweep.
#[derive(Clone, Debug, Default)]
pub(super) struct Trials {
    /// The objects that are being written, by their place in the page.
    under_way: BTreeSet<usize>,
    pub(super) counts: CanaryCounts,
}

/// Whether another object may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Budget {
    /// It may.
    Open,
    /// That depends on the outcomes of the writes under way.
    Awaits,
    /// It may not.
    Spent,
}

impl Trials {
    /// Whether another object may be written where there are `all` objects.
    pub(super) fn budget(&self, limit: CanaryLimit, all: u64) -> Budget {
        let CanaryCounts { written, refused, unanswered, withheld: _ } = self.counts;
        let left = limit.left(all);
        if refused > 0 || written + unanswered >= left {
            Budget::Spent
        } else if written + unanswered + self.under_way.len() as u64 >= left {
            Budget::Awaits
        } else {
            Budget::Open
        }
    }

    /// Records that an object is being written.
    pub(super) fn begin(&mut self, index: usize) {
        self.under_way.insert(index);
    }

    /// Handles the outcome for an object, whether it was written or not.
    pub(super) fn end(&mut self, index: usize, state: &ObjectState) {
        let was_tried = self.under_way.remove(&index);
        let CanaryCounts { written, refused, unanswered, withheld } = &mut self.counts;
        match state {
            ObjectState::Written { .. } => *written += 1,
            ObjectState::Rejected(_) | ObjectState::Unknown if state.is_unanswered() => *unanswered += 1,
            ObjectState::Rejected(_) if was_tried => *refused += 1,
            ObjectState::Due | ObjectState::Unproved => *withheld += 1,
            ObjectState::Stored
            | ObjectState::AlreadyStored
            | ObjectState::Skipped(_)
            | ObjectState::Gone
            | ObjectState::Held(_)
            | ObjectState::Rejected(_)
            | ObjectState::Unknown => {}
        }
    }
}

/// Why Etch writes no further object until a user resumes the pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CanaryHold {
    /// The CRD's name.
    pub crd: String,
    /// Whether a write was refused.
    pub is_refused: bool,
    /// How many objects were written.
    pub written: u64,
}

impl CanaryHold {
    /// `None` if the canary does not stop Etch from writing other objects.
    pub fn of(progress: &CanaryProgress, crd: &str) -> Option<Self> {
        let is_refused = match progress.state {
            CanaryState::Waiting => false,
            CanaryState::Rejected => true,
            CanaryState::Running | CanaryState::Passed => return None,
        };
        Some(Self { crd: crd.to_owned(), is_refused, written: progress.written })
    }

    /// The reason of `DefaultsPersisted` meanwhile.
    pub fn reason(&self) -> Reason {
        if self.is_refused { Reason::CanaryRejected } else { Reason::CanaryWaiting }
    }
}

/// The canary of a CRD at one generation: how far it has come, and whether it keeps the present attempt from
/// writing.
#[derive(Clone, Debug)]
pub struct CanaryRun {
    crd: String,
    generation: i64,
    policy: Option<Canary>,
    /// The generation that a user has resumed, by an annotation of the CRD.
    resumed: Option<i64>,
    /// A report may be older than this. `None` before the canary begins.
    progress: Option<CanaryProgress>,
    /// Why the present attempt writes no object, if it may not.
    hold: Option<CanaryHold>,
}

/// What follows a pass that has written a canary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AfterTrials {
    /// The attempt continues and writes no other object.
    Hold,
    /// Another pass writes the others; the canary has written so many.
    Others(u64),
    /// Another pass tries those again about which there was no answer.
    Again,
}

impl CanaryRun {
    /// That of a CRD under a policy that may ask for none. `resumed` is the generation that a user has
    /// resumed.
    pub fn new(crd: &Crd, policy: Option<Canary>, resumed: Option<i64>) -> Self {
        let (crd, generation) = (crd.name().to_owned(), crd.generation());
        Self { crd, generation, policy, resumed, progress: None, hold: None }
    }

    /// Why the present attempt writes no object, if it may not.
    pub(super) fn hold(&self) -> Option<&CanaryHold> {
        self.hold.as_ref()
    }

    /// Why the next attempt would write none either, by what is known now.
    pub(super) fn lasting_hold(&self) -> Option<&CanaryHold> {
        self.hold().filter(|_| !self.is_resumed())
    }

    /// Whether a user has resumed what the present attempt holds.
    pub(super) fn is_resumed(&self) -> bool {
        self.is_resumed_by(self.resumed)
    }

    /// Whether a user resumes what the present attempt holds by naming this generation.
    pub fn is_resumed_by(&self, resumed: Option<i64>) -> bool {
        self.hold.is_some() && resumed == Some(self.generation)
    }

    /// Records the generation that a user has resumed.
    pub(super) fn set_resumed(&mut self, resumed: Option<i64>) {
        self.resumed = resumed;
    }

    /// Begins an attempt: whether it may write depends on the report that is to be read.
    pub(super) fn begin_attempt(&mut self) {
        self.hold = None;
    }

    /// Continues what this run or else the report knows, and finds out whether that holds the attempt. One
    /// that may write nothing, whatever the canary is, changes nothing.
    pub(super) fn open(&mut self, may_write: bool, report: &mut ReportState) {
        let known = self.progress.take().or_else(|| report.canary().cloned());
        let known = known.filter(|known| known.generation == self.generation);
        let opened = match self.policy {
            None => None,
            Some(_) if !may_write => known,
            Some(canary) => {
                let progress = progress(canary, known.as_ref(), self.generation, self.resumed);
                self.hold = CanaryHold::of(&progress, &self.crd);
                // One that has not begun may not be needed.
                Some(progress).filter(|progress| known.is_some() || progress.state == CanaryState::Passed)
            }
        };
        self.set(opened, report);
    }

    /// Begins a pass that writes: the canary that it begins with, if any is left. It needs none if every
    /// object `is_on_record`.
    pub(super) fn begin_pass(&mut self, is_on_record: bool, report: &mut ReportState) -> Option<CanaryLimit> {
        let canary = self.policy?;
        let progress = self.continued(canary);
        if progress.state != CanaryState::Running {
            return None;
        }
        if is_on_record {
            self.covers_all(progress.written, report);
            return None;
        }
        let limit = CanaryLimit { objects: canary.objects, written: progress.written };
        self.set(Some(progress), report);
        Some(limit)
    }

    /// Records that no other object needs a write than those of the canary, if it has begun.
    pub(super) fn covers_all(&mut self, written: u64, report: &mut ReportState) {
        if let Some(progress) = self.progress.take() {
            self.set(Some(CanaryProgress { state: CanaryState::Passed, written, ..progress }), report);
        }
    }

    /// Handles the outcomes for the canary's objects, in a pass that was completed or was not.
    pub(super) fn swept(&mut self, counts: CanaryCounts, is_complete: bool, report: &mut ReportState) {
        if let Some(canary) = self.policy {
            let progress = after(canary, &self.continued(canary), counts, is_complete);
            self.set(Some(progress), report);
        }
    }

    /// Ends the trials of a pass that was completed: finds out whether they hold the rest of the attempt.
    pub(super) fn end_trials(&mut self) -> AfterTrials {
        let progress = self.progress.as_ref();
        self.hold = progress.and_then(|progress| CanaryHold::of(progress, &self.crd));
        match progress {
            Some(_) if self.hold.is_some() => AfterTrials::Hold,
            Some(CanaryProgress { state: CanaryState::Passed, written, .. }) => AfterTrials::Others(*written),
            Some(_) | None => AfterTrials::Again,
        }
    }

    /// The progress from which a pass continues: a user resumes an attempt, not a pass.
    fn continued(&self, canary: Canary) -> CanaryProgress {
        progress(canary, self.progress.as_ref(), self.generation, None)
    }

    fn set(&mut self, progress: Option<CanaryProgress>, report: &mut ReportState) {
        report.set_canary(progress.clone());
        self.progress = progress;
    }
}

/// How far the canary of a generation has come: `known`, unless it is of another generation, the policy no
/// longer waits, or `resumed` is the generation that a user has resumed.
fn progress(
    canary: Canary,
    known: Option<&CanaryProgress>,
    generation: i64,
    resumed: Option<i64>,
) -> CanaryProgress {
    let known = known.filter(|known| known.generation == generation).cloned();
    let known = known.unwrap_or_else(|| CanaryProgress { generation, ..CanaryProgress::default() });
    let goes_on = canary.then == AfterCanary::Continue && known.state == CanaryState::Waiting;
    let is_resumed = resumed == Some(generation);
    CanaryProgress { state: if goes_on || is_resumed { CanaryState::Passed } else { known.state }, ..known }
}

/// How far the canary has come after a sweep with these results, complete or not.
fn after(canary: Canary, before: &CanaryProgress, counts: CanaryCounts, is_complete: bool) -> CanaryProgress {
    let state = match () {
        () if counts.refused > 0 => CanaryState::Rejected,
        () if counts.unanswered > 0 || !is_complete => CanaryState::Running,
        () if canary.then == AfterCanary::Continue => CanaryState::Passed,
        () => CanaryState::Waiting,
    };
    CanaryProgress { state, written: before.written + counts.written, generation: before.generation }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::crd::sample::{things, with_spec};
    use crate::plan::{Rejection, RejectionKind};

    fn written() -> ObjectState {
        ObjectState::Written { resource_version: "8".to_owned() }
    }

    fn rejected(kind: RejectionKind) -> ObjectState {
        ObjectState::Rejected(Rejection { kind, message: String::new(), fields: Vec::new() })
    }

    fn canary(then: AfterCanary) -> Canary {
        Canary { objects: Amount::Objects(2), then }
    }

    #[test]
    fn only_as_many_are_written_as_the_policy_says_and_what_was_stored_does_not_count() {
        let limit = CanaryLimit { objects: Amount::Objects(2), written: 0 };
        let mut trials = Trials::default();
        assert_eq!(trials.budget(limit, 9), Budget::Open);
        trials.begin(0);
        trials.begin(1);
        assert_eq!(trials.budget(limit, 9), Budget::Awaits);
        trials.end(0, &ObjectState::AlreadyStored);
        assert_eq!(trials.budget(limit, 9), Budget::Open);
        trials.end(1, &written());
        trials.begin(2);
        assert_eq!(trials.budget(limit, 9), Budget::Awaits);
        trials.end(2, &written());
        assert_eq!(trials.budget(limit, 9), Budget::Spent);
        trials.end(3, &ObjectState::Due);
        assert_eq!(trials.counts, CanaryCounts { written: 2, withheld: 1, ..CanaryCounts::default() });
        let resumed = CanaryLimit { written: 2, ..limit };
        assert_eq!(Trials::default().budget(resumed, 9), Budget::Spent, "an attempt before has written them");
    }

    #[test]
    fn a_percentage_is_one_of_all_objects_and_one_at_least() {
        let limit = CanaryLimit { objects: Amount::Percent(1), written: 0 };
        for (all, left) in [(0, 1), (20, 1), (100, 1), (101, 2), (800_000, 8_000)] {
            assert_eq!(limit.left(all), left, "of {all}");
        }
    }

    #[test]
    fn a_refusal_ends_it_at_once_and_an_answer_that_is_missing_takes_a_place() {
        let limit = CanaryLimit { objects: Amount::Objects(3), written: 0 };
        for (kind, expected) in
            [(RejectionKind::Admission, Budget::Spent), (RejectionKind::Unavailable, Budget::Open)]
        {
            let mut trials = Trials::default();
            trials.begin(0);
            trials.end(0, &rejected(kind));
            assert_eq!(trials.budget(limit, 9), expected, "{kind:?}");
        }
        let mut trials = Trials::default();
        trials.end(0, &rejected(RejectionKind::Admission));
        assert_eq!(trials.counts.refused, 0, "an earlier run was refused this one");
    }

    #[test]
    fn it_waits_until_its_own_generation_is_resumed_or_the_policy_goes_on() {
        let waiting = CanaryProgress { generation: 3, state: CanaryState::Waiting, written: 2 };
        let rejected = CanaryProgress { state: CanaryState::Rejected, ..waiting.clone() };
        let (wait, goes_on) = (canary(AfterCanary::Wait), canary(AfterCanary::Continue));
        for (policy, known, generation, resumed, expected) in [
            (wait, None, 3, None, CanaryState::Running),
            (wait, Some(&waiting), 3, None, CanaryState::Waiting),
            (wait, Some(&waiting), 3, Some(2), CanaryState::Waiting),
            (wait, Some(&waiting), 3, Some(3), CanaryState::Passed),
            (wait, Some(&waiting), 4, Some(3), CanaryState::Running),
            (wait, Some(&rejected), 3, Some(3), CanaryState::Passed),
            (goes_on, Some(&waiting), 3, None, CanaryState::Passed),
            (goes_on, Some(&rejected), 3, None, CanaryState::Rejected),
        ] {
            let found = progress(policy, known, generation, resumed);
            assert_eq!(found.state, expected, "{known:?} at {generation}, resumed {resumed:?}");
            assert_eq!(found.generation, generation);
            let holds = matches!(expected, CanaryState::Waiting | CanaryState::Rejected);
            assert_eq!(CanaryHold::of(&found, "things.example.com").is_some(), holds);
        }
    }

    fn run(then: AfterCanary, resumed: Option<i64>) -> CanaryRun {
        let crd = things(with_spec(json!({ "size": { "type": "integer", "default": 5 } })));
        CanaryRun::new(&crd, Some(canary(then)), resumed)
    }

    fn reported(run: &CanaryRun, state: CanaryState) -> ReportState {
        let mut report = ReportState::default();
        report.set_canary(Some(CanaryProgress { generation: run.generation, state, written: 1 }));
        report
    }

    #[test]
    fn the_report_shows_each_step_and_an_attempt_is_held_from_the_end_of_the_trials_until_it_is_resumed() {
        let mut run = run(AfterCanary::Wait, None);
        let (generation, mut report) = (run.generation, ReportState::default());
        let shown = |report: &ReportState| report.canary().map(|canary| (canary.state, canary.written));
        run.begin_attempt();
        run.open(true, &mut report);
        assert_eq!((shown(&report), run.hold()), (None, None), "it has not begun");
        let limit = run.begin_pass(false, &mut report).expect("it begins");
        assert_eq!((limit.written, shown(&report)), (0, Some((CanaryState::Running, 0))));
        run.swept(CanaryCounts { written: 1, ..CanaryCounts::default() }, false, &mut report);
        assert_eq!(shown(&report), Some((CanaryState::Running, 1)), "the pass was interrupted");
        assert_eq!(run.begin_pass(false, &mut report).expect("it goes on").written, 1);
        run.swept(CanaryCounts { written: 1, withheld: 3, ..CanaryCounts::default() }, true, &mut report);
        assert_eq!((shown(&report), run.hold()), (Some((CanaryState::Waiting, 2)), None));
        assert_eq!(run.end_trials(), AfterTrials::Hold);
        assert!(run.lasting_hold().is_some() && !run.is_resumed_by(Some(generation + 1)));
        run.set_resumed(Some(generation));
        assert!(run.hold().is_some() && run.lasting_hold().is_none(), "the attempt is held to its end");
        run.begin_attempt();
        let mut older = ReportState::default();
        run.open(true, &mut older);
        assert_eq!((shown(&older), run.hold()), (Some((CanaryState::Passed, 2)), None));
        assert!(run.begin_pass(false, &mut older).is_none(), "it is over");
    }

    #[test]
    fn another_pass_follows_trials_that_hold_nothing() {
        for (written, unanswered, expected) in [(2, 0, AfterTrials::Others(3)), (1, 1, AfterTrials::Again)] {
            let mut run = run(AfterCanary::Continue, None);
            let mut report = reported(&run, CanaryState::Running);
            run.open(true, &mut report);
            run.swept(CanaryCounts { written, unanswered, ..CanaryCounts::default() }, true, &mut report);
            assert_eq!((run.end_trials(), run.hold()), (expected, None));
        }
    }

    #[test]
    fn what_a_report_says_holds_only_an_attempt_that_may_write_under_a_policy_with_a_canary() {
        let held = run(AfterCanary::Wait, None);
        let without = CanaryRun { policy: None, ..held.clone() };
        for (mut run, may_write, is_shown, holds) in
            [(held.clone(), true, true, true), (held, false, true, false), (without, true, false, false)]
        {
            let mut report = reported(&run, CanaryState::Rejected);
            run.open(may_write, &mut report);
            assert_eq!((report.canary().is_some(), run.hold().is_some()), (is_shown, holds));
        }
    }

    #[test]
    fn a_canary_that_has_begun_is_over_once_every_object_is_on_record() {
        let mut run = run(AfterCanary::Wait, None);
        let mut report = reported(&run, CanaryState::Running);
        run.open(true, &mut report);
        assert!(run.begin_pass(true, &mut report).is_none());
        assert_eq!(report.canary().map(|canary| canary.state), Some(CanaryState::Passed));
        let (mut new, mut report) = (CanaryRun { progress: None, ..run }, ReportState::default());
        assert!(new.begin_pass(true, &mut report).is_none());
        assert!(report.canary().is_none(), "one that has not begun is not needed");
    }

    #[test]
    fn what_follows_depends_on_what_became_of_its_objects() {
        let before = CanaryProgress { generation: 3, state: CanaryState::Running, written: 1 };
        let counts =
            |written, refused, unanswered| CanaryCounts { written, refused, unanswered, withheld: 5 };
        let (wait, goes_on) = (canary(AfterCanary::Wait), canary(AfterCanary::Continue));
        for (policy, counts, is_complete, expected) in [
            (wait, counts(1, 0, 0), true, CanaryState::Waiting),
            (goes_on, counts(1, 0, 0), true, CanaryState::Passed),
            (goes_on, counts(1, 0, 0), false, CanaryState::Running),
            (goes_on, counts(1, 0, 1), true, CanaryState::Running),
            (goes_on, counts(1, 1, 1), true, CanaryState::Rejected),
            (goes_on, counts(1, 1, 0), false, CanaryState::Rejected),
        ] {
            let found = after(policy, &before, counts, is_complete);
            assert_eq!((found.state, found.written, found.generation), (expected, 2, 3), "{counts:?}");
        }
    }
}
