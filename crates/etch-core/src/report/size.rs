//! Keeps a report small, however many objects have problems: etcd refuses a report that is too large, and
//! then none is stored. Numbers stay, except those of what is left out.

use crate::api::{DefaultsReportStatus, ObjectProblem};

/// The size of a status, in bytes of JSON: with the metadata, a report stays below 64 KiB.
const LIMIT: usize = 60 * 1024;
/// The longest field that is listed, and the longest sentence, in bytes.
const LONGEST: usize = 512;
/// How many fields are listed of one object.
const PATHS: usize = 50;
/// How many fields are listed of one object, and how many objects in each list, where more is too much: the
/// first of these that is small enough.
const FEWER: [[usize; 2]; 5] = [[10, 50], [3, 50], [3, 20], [1, 10], [1, 3]];

/// Leaves out as much of a status as it takes.
///
/// First what only people read, then what the earlier defaults were, then what a restart can find out again.
pub fn fit(status: &mut DefaultsReportStatus) {
    for problem in problems(status) {
        let all = problem.paths.len();
        problem.paths.truncate(PATHS);
        problem.paths.retain(|path| path.len() <= LONGEST);
        problem.more_paths += (all - problem.paths.len()) as u64;
        cut(&mut problem.message);
    }
    for [paths, objects] in FEWER {
        if is_small(status) {
            return;
        }
        shorten(status, paths, objects);
    }
    for earlier in (0..status.previous.len()).rev() {
        let defaults = |status: &mut DefaultsReportStatus, left: usize| {
            let earlier = &mut status.previous[earlier];
            earlier.more_defaults += (earlier.defaults.len() - left) as u64;
            earlier.defaults.truncate(left);
        };
        let all = status.previous[earlier].defaults.len();
        if halve(status, all, defaults) {
            return;
        }
        // It is no longer known which objects these are: then nothing is known about the others either.
        status.previous[earlier].exceptions.clear();
        status.previous[earlier].open = None;
        status.previous[earlier].through = None;
    }
    let all = status.cleared.len();
    if halve(status, all, |status, left| status.cleared.truncate(left)) {
        return;
    }
    let all = status.changed.len();
    if halve(status, all, |status, left| status.changed.truncate(left)) {
        return;
    }
    let all = status.former_defaults.len();
    if halve(status, all, |status, left| status.former_defaults.truncate(left)) {
        return;
    }
    let all = status.defaults.len();
    halve(status, all, |status, left| {
        status.more_defaults += (status.defaults.len() - left) as u64;
        status.defaults.truncate(left);
    });
}

/// Shortens a list of this length by halves until the status is small enough; whether it is.
fn halve(
    status: &mut DefaultsReportStatus,
    mut length: usize,
    shorten: impl Fn(&mut DefaultsReportStatus, usize),
) -> bool {
    while !is_small(status) {
        if length == 0 {
            return false;
        }
        length /= 2;
        shorten(status, length);
    }
    true
}

/// Lists no more than so many fields of each object, and so many objects.
fn shorten(status: &mut DefaultsReportStatus, paths: usize, objects: usize) {
    let DefaultsReportStatus { held, rejected, ignored, terminating, too_deep, dropped, .. } = status;
    for list in [held, rejected, ignored, terminating, too_deep] {
        list.truncate(objects);
    }
    dropped.truncate(objects);
    for problem in problems(status) {
        problem.more_paths += problem.paths.len().saturating_sub(paths) as u64;
        problem.paths.truncate(paths);
    }
}

fn problems(status: &mut DefaultsReportStatus) -> impl Iterator<Item = &mut ObjectProblem> {
    let DefaultsReportStatus { held, rejected, ignored, terminating, too_deep, .. } = status;
    held.iter_mut().chain(rejected).chain(ignored).chain(terminating).chain(too_deep)
}

fn is_small(status: &DefaultsReportStatus) -> bool {
    serde_json::to_vec(status).is_ok_and(|json| json.len() <= LIMIT)
}

/// Cuts a sentence that is too long.
fn cut(text: &mut String) {
    const MORE: &str = " …";
    if text.len() > LONGEST {
        text.truncate(text.floor_char_boundary(LONGEST - MORE.len()));
        text.push_str(MORE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{ClearedObject, Counts, DefaultPath, DefaultValue, FormerDefault, PreviousDefaults};

    fn problem(index: usize, paths: usize) -> ObjectProblem {
        ObjectProblem {
            namespace: Some("n".repeat(63)),
            name: format!("{index}-{}", "o".repeat(200)),
            uid: format!("{index:036}"),
            reason: "Misfit".to_owned(),
            message: "ü".repeat(2000),
            paths: (0..paths).map(|path| format!(".spec.list[{path}].{}", "f".repeat(60))).collect(),
            more_paths: 7,
        }
    }

    fn previous() -> PreviousDefaults {
        let default = |index| DefaultValue {
            path: format!(".spec.{}{index}", "d".repeat(100)),
            value: Some("1".repeat(100)),
            nullable: false,
        };
        PreviousDefaults {
            exceptions: (0..100).map(|index| format!("{index:036}")).collect(),
            through: Some("77".to_owned()),
            defaults: (0..500).map(default).collect(),
            ..PreviousDefaults::default()
        }
    }

    #[test]
    fn a_report_is_small_whatever_it_is_about_and_counts_what_it_leaves_out() {
        let default = |index| DefaultPath {
            path: format!(".spec.{}{index}", "d".repeat(200)),
            value: Some("1".repeat(100)),
            ..DefaultPath::default()
        };
        let cleared = |index: usize| ClearedObject {
            name: index.to_string(),
            paths: vec!["p".repeat(100); 10],
            ..ClearedObject::default()
        };
        let counts = Counts { objects: 1000, held: 500, rejected: 500, ..Counts::default() };
        let mut status = DefaultsReportStatus {
            counts,
            held: (0..50).map(|index| problem(index, 50)).collect(),
            rejected: (0..50).map(|index| problem(index, 50)).collect(),
            defaults: (0..500).map(default).collect(),
            cleared: (0..500).map(cleared).collect(),
            previous: vec![previous(), previous(), previous()],
            former_defaults: (0..500)
                .map(|index| FormerDefault { path: format!(".spec.{}{index}", "f".repeat(200)), until: None })
                .collect(),
            ..DefaultsReportStatus::default()
        };
        fit(&mut status);
        assert!(is_small(&status));
        assert_eq!(status.counts, counts);
        let first = &status.held[0];
        assert_eq!(first.paths.len() as u64 + first.more_paths, 57);
        assert!(!first.paths.is_empty() && first.message.ends_with(" …"));
        assert_eq!(status.defaults.len() as u64 + status.more_defaults, 500);
        assert!(!status.defaults.is_empty(), "what a restart relies on is left out last");
        for earlier in &status.previous {
            assert_eq!(earlier.defaults.len() as u64 + earlier.more_defaults, 500);
            assert_eq!(earlier.exceptions.is_empty(), earlier.through.is_none());
        }
        let once = status.clone();
        fit(&mut status);
        assert_eq!(status, once, "what fits stays");
    }

    #[test]
    fn what_is_small_stays_as_it_is() {
        let small = DefaultsReportStatus {
            held: vec![ObjectProblem { message: "short".to_owned(), ..problem(1, 50) }],
            previous: vec![PreviousDefaults { defaults: Vec::new(), ..previous() }],
            ..DefaultsReportStatus::default()
        };
        let mut status = small.clone();
        fit(&mut status);
        assert_eq!(status, small);
    }

    #[test]
    fn a_field_that_is_too_long_is_counted() {
        let mut status =
            DefaultsReportStatus { rejected: vec![problem(1, 2)], ..DefaultsReportStatus::default() };
        status.rejected[0].paths.push("x".repeat(5000));
        fit(&mut status);
        assert_eq!((status.rejected[0].paths.len(), status.rejected[0].more_paths), (2, 8));
    }
}
