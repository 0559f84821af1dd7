//! What holds of every state, tally, condition and report, whatever the states of the objects.

use crate::api::{Counts, DefaultsReportStatus, ObjectProblem};
use crate::condition::{Condition, MAX_MESSAGE, Reason};
use crate::object_state::ObjectState;
use crate::report::tally::Tally;

/// etcd stores no more than 1.5 MiB, and keeps every version for minutes; a report stays far below that.
const REPORT: usize = 64 * 1024;

/// A problem has a reason in one word, and a sentence; what is stored has none.
pub(super) fn of_a_state(state: &ObjectState) {
    match state.problem() {
        Some(problem) => {
            assert!(!state.is_stored(), "{state:?}");
            assert!(problem.reason.chars().all(char::is_alphanumeric), "{problem:?}");
            assert!(!problem.message.is_empty() && !problem.message.ends_with('.'), "{problem:?}");
        }
        None => assert!(!state.is_unanswered(), "{state:?}"),
    }
}

/// Every object is in one number, and those that are remembered are among those that are counted.
pub(super) fn of_a_tally(tally: &Tally) {
    let counts = tally.counts();
    assert_eq!(counts.objects, sum(counts), "{counts:?}");
    let (problems, due) = (tally.problems().count() as u64, tally.due().count() as u64);
    assert!(problems <= counts.held + counts.rejected + counts.unknown && due <= counts.due, "{counts:?}");
    assert_eq!(tally.overflows(), problems < counts.held + counts.rejected + counts.unknown);
    let not_stored = counts.objects - counts.written - counts.already_stored;
    assert!(tally.phantoms() <= not_stored, "{} of {counts:?}", tally.phantoms());
}

/// The reason is one of ours, and the message is short.
pub(super) fn of_a_condition(condition: &Condition) {
    assert!(condition.message.len() <= MAX_MESSAGE, "{} bytes", condition.message.len());
    if condition.r#type == "DefaultsPersisted" {
        let reason = Reason::named(&condition.reason).expect("a reason");
        assert_eq!(condition.status == "True", reason == Reason::AllPersisted, "{condition:?}");
    }
}

/// It names no more objects than it counts, and is small.
pub(super) fn of_a_report(report: &DefaultsReportStatus) {
    let counts = report.counts;
    assert_eq!(counts.objects, sum(counts), "{counts:?}");
    let lists: [(&[ObjectProblem], u64); 5] = [
        (&report.held, counts.held),
        (&report.rejected, counts.rejected),
        (&report.ignored, counts.ignored),
        (&report.terminating, counts.terminating),
        (&report.too_deep, counts.too_deep),
    ];
    for (list, count) in lists {
        assert!(list.len() as u64 <= count && list.len() <= 50, "{} of {count}", list.len());
    }
    let bytes = serde_json::to_string(report).expect("JSON").len();
    assert!(bytes <= REPORT, "{bytes} bytes");
}

fn sum(counts: Counts) -> u64 {
    let Counts {
        objects: _,
        written,
        already_stored,
        due,
        unproved,
        held,
        rejected,
        ignored,
        terminating,
        too_deep,
        not_selected,
        unknown,
        // Of objects that are in another number too.
        dropped: _,
        followed: _,
        kept: _,
    } = counts;
    written
        + already_stored
        + due
        + unproved
        + held
        + rejected
        + ignored
        + terminating
        + too_deep
        + not_selected
        + unknown
}
