//! The sentence about a CRD, from the states of its objects. It names no value, and only a few objects.

mod problems;

use jiff::Timestamp;

use crate::api::{Counts, Mode, Pause, Settings};
use crate::condition::{CrdStatus, NOT_SELECTED, Reason};
use crate::crd::Crd;
use crate::engine::canary::CanaryHold;
use crate::findings::SchemaFindings;
use crate::namespaces::Namespaces;
use crate::plan::{Hold, Skip};
use crate::rbac::MissingPermissions;
use crate::report::tally::Tally;
use crate::words::counted;
use problems::{Naming, first_rejection, places, skipped, unknown, with_fields};

/// How a sentence about missing permissions begins.
pub const MISSING_PERMISSION: &str = "a permission is missing";
/// The message about a CRD whose report cannot be written, because the CRD of reports lacks one of its
/// fields.
pub const OLD_CRDS: &str = "the DefaultsReport cannot be written, because the cluster has the CRDs of an \
    older Etch; apply those of this version: `etch crds | kubectl apply -f -`";

/// Why objects of a CRD whose schema is not structural are only counted, and what is to be done.
const NON_STRUCTURAL: &str = "Etch does not write them, because the schema is not structural: make it \
    structural (condition NonStructural)";

/// The status if no object needs to be read; `None` if some do.
pub fn without_objects(crd: &Crd, settings: &Settings, findings: &SchemaFindings) -> Option<CrdStatus> {
    if !crd.gives_defaults() {
        let message = format!("the storage version {} has no defaults", crd.storage().name);
        return Some(crd_status(findings, Some(true), Reason::NoDefaults, message));
    }
    let status = |persisted, reason, message: String| Some(crd_status(findings, persisted, reason, message));
    if settings.mode == Mode::Ignore {
        let message = format!("DefaultsPolicy {} has mode: Ignore", settings.policy);
        return status(None, Reason::Ignored, message);
    }
    if let Some(shadowed) = crd.shadowed() {
        return status(Some(false), Reason::NotServed, shadowed);
    }
    if !crd.storage().served {
        let message = format!("the storage version {} is not served", crd.storage().name);
        return status(Some(false), Reason::NotServed, message);
    }
    None
}

/// The status of a CRD whose schema cannot be read at all.
pub fn unreadable(findings: &SchemaFindings) -> CrdStatus {
    let message =
        "the API server serves no objects of a CRD whose schema it cannot read; make the schema structural";
    crd_status(findings, Some(false), Reason::NonStructural, message.to_owned())
}

/// The status of a CRD whose task has panicked, until another one reports more.
pub fn panicked(findings: &SchemaFindings) -> CrdStatus {
    let message =
        "Etch failed on this CRD and tries again; its log has the panic, which is a bug of Etch: report it";
    crd_status(findings, None, Reason::InProgress, message.to_owned())
}

/// The status while the schema settles.
pub fn settling(
    findings: &SchemaFindings,
    pause: Option<&Pause>,
    missing: Option<&MissingPermissions>,
    until: Timestamp,
) -> CrdStatus {
    let mut message = format!("the schema changed; writing starts at {until:.0}");
    if let Some(missing) = missing {
        message.push_str(&format!("; {}", forbidden(missing)));
    }
    if let Some(pause) = pause {
        message.push_str(&format!("; {}", paused(pause)));
    }
    // When writing starts is not true of what may not be written.
    let nameless = missing.map(forbidden);
    CrdStatus { nameless, ..crd_status(findings, Some(false), Reason::Settling, message) }
}

/// The status while a pass is under way, or has just been paused. `hold` is the canary that keeps objects
/// from being written, and `verified` the number of objects that were re-checked.
pub fn in_progress(
    findings: &SchemaFindings,
    pause: Option<&Pause>,
    hold: Option<&CanaryHold>,
    tally: &Tally,
    verified: Option<u64>,
) -> CrdStatus {
    let counts = tally.counts();
    let mut message = match counts.objects {
        0 => "scanning objects".to_owned(),
        count => format!("{} processed, {} written", counted(count, "object"), counts.written),
    };
    if let Some(verified) = verified {
        message.push_str(&format!("; {verified} re-checked"));
    }
    match (pause, hold) {
        // What is due is not known yet.
        (Some(pause), _) => {
            let persisted = (counts.due + counts.written > 0).then_some(false);
            crd_status(findings, persisted, Reason::Paused, format!("{}; {message}", paused(pause)))
        }
        (None, Some(hold)) => {
            crd_status(findings, Some(false), hold.reason(), format!("{}; {message}", canary(hold)))
        }
        (None, None) => crd_status(findings, Some(false), Reason::InProgress, message),
    }
}

/// What is to be done about permissions that are missing.
pub fn forbidden(missing: &MissingPermissions) -> String {
    format!("{MISSING_PERMISSION}; add this rule to {}: {}", missing.place(), missing.rule())
}

/// Who has paused writes, and how.
fn paused(pause: &Pause) -> String {
    format!("writes are paused by {pause}")
}

/// The result of a canary, and how the pass continues.
pub fn canary(hold: &CanaryHold) -> String {
    let CanaryHold { crd, is_refused, written } = hold;
    let resume = format!("etch resume {crd}");
    let wrote = format!("the canary wrote {}", counted(*written, "object"));
    match is_refused {
        false => format!("{wrote}; to write the others, run: {resume}"),
        true => {
            format!("{wrote} and stopped, because a write was rejected; to write the others, run: {resume}")
        }
    }
}

/// The status after every object was processed.
pub fn of(findings: &SchemaFindings, settings: &Settings, tally: &Tally) -> CrdStatus {
    held(findings, settings, None, None, tally)
}

/// The same where a canary keeps objects from being written, or only some namespaces are read.
pub fn held(
    findings: &SchemaFindings,
    settings: &Settings,
    hold: Option<&CanaryHold>,
    within: Option<&Namespaces>,
    tally: &Tally,
) -> CrdStatus {
    let counts = tally.counts();
    // An audit writes nothing in any case.
    let is_paused = settings.pause.is_some() && settings.mode == Mode::Persist;
    let mut reasons =
        Hold::ALL.iter().filter(|reason| problems::held(tally, **reason, Naming::Nothing).is_some());
    let waiting = counts.due + counts.unproved + counts.rejected + counts.held + counts.unknown;
    let reason = match () {
        () if !findings.non_structural.is_empty() => Reason::NonStructural,
        // Held and rejected objects wait for its end too. What is proved is so in a pause as well.
        () if is_paused && waiting > 0 => Reason::Paused,
        () if let Some(hold) = hold
            && waiting > 0 =>
        {
            hold.reason()
        }
        () if counts.rejected > 0 => Reason::ObjectsRejected,
        // Of more objects than are remembered, some are held for whatever reason.
        () if counts.held > 0 => reasons.next().map_or(Reason::HiddenFields, |hold| held_reason(*hold)),
        () if counts.unknown > 0 => Reason::InProgress,
        () if settings.mode == Mode::Audit || counts.due + counts.unproved > 0 => Reason::AuditOnly,
        () if counts.too_deep > 0 => Reason::TooDeep,
        () => Reason::AllPersisted,
    };
    let persisted = match reason {
        Reason::AllPersisted => Some(true),
        Reason::AuditOnly if counts.due == 0 => None,
        Reason::TooDeep => None,
        // Nothing is known to be missing.
        Reason::Paused | Reason::CanaryWaiting if waiting == counts.unproved => None,
        _ => Some(false),
    };
    let mut breaking_defaults =
        places(tally, |held| held.reason == Hold::InvalidDefaults && !held.broken.is_empty());
    breaking_defaults.retain(|place| !findings.invalid_defaults.contains(place));
    let wording = |naming| sentences(findings, settings, hold, within, tally, naming);
    CrdStatus {
        breaking_defaults,
        nameless: Some(wording(Naming::Nothing)),
        ..crd_status(findings, persisted, reason, wording(Naming::Objects))
    }
}

/// The states of the objects, in sentences.
fn sentences(
    findings: &SchemaFindings,
    settings: &Settings,
    hold: Option<&CanaryHold>,
    within: Option<&Namespaces>,
    tally: &Tally,
    naming: Naming,
) -> String {
    let counts = tally.counts();
    let is_structural = findings.non_structural.is_empty();
    let pause = settings.pause.as_ref().filter(|_| settings.mode == Mode::Persist).map(paused);
    let stored = counts.written + counts.already_stored;
    let waiting = counts.due + counts.unproved + counts.rejected + counts.held + counts.unknown;
    let hold = hold.filter(|_| pause.is_none() && waiting > 0);
    let mut sentences: Vec<String> = hold.map(canary).into_iter().collect();
    let others = left_out(&format!("DefaultsPolicy {}", settings.policy), counts, within, naming);
    sentences.push(stored_of(stored, counts, !others.is_empty()));
    sentences.extend(others);
    let due: Vec<String> = tally.due().map(ToString::to_string).collect();
    if counts.due > 0 && !is_structural {
        sentences.push(naming.list(&due, counts.due, "with defaults that etcd lacks or may lack"));
    } else if counts.due > 0 {
        let kind = match (hold, pause) {
            (Some(_), _) => "would be written".to_owned(),
            (None, Some(pause)) => format!("would be written, but {pause}"),
            (None, None) => "would be written, but the policy has mode: Audit".to_owned(),
        };
        sentences.push(naming.list(&due, counts.due, &kind));
    } else {
        sentences.extend(pause);
    }
    if counts.unproved > 0 {
        let their = if counts.unproved == 1 { "its" } else { "their" };
        sentences.push(format!("{} may store {their} defaults, which only a write shows", counts.unproved));
    }
    if counts.rejected > 0 {
        let rejected = tally.problems().filter_map(|(identity, state)| with_fields(identity, state));
        let rejected: Vec<String> = rejected.collect();
        sentences.push(naming.list(&rejected, counts.rejected, "rejected"));
        // A user has to decide whether that matters to the others.
        sentences.extend(hold.and_then(|_| first_rejection(tally, naming)));
    }
    sentences.extend(Hold::ALL.iter().filter_map(|reason| problems::held(tally, *reason, naming)));
    sentences.extend(unknown(tally, naming));
    sentences.extend(Skip::ALL.iter().flat_map(|why| skipped(tally, *why, naming)));
    if !is_structural {
        sentences.push(NON_STRUCTURAL.to_owned());
    }
    sentences.join("; ")
}

/// What the objects of a CRD without defaults are written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// To be stored at the storage version.
    Move,
    /// To have no owner in `managedFields` at a version that is not served.
    Repair,
}

/// The status of a CRD without defaults, from what is reported about its objects while they are written for
/// this aim: its condition stays `NoDefaults`, whatever the result.
pub fn without_defaults(crd: &Crd, aim: Aim, about_objects: CrdStatus) -> CrdStatus {
    let what = match aim {
        Aim::Move => "objects are moved to it",
        Aim::Repair => "owners in managedFields are repaired",
    };
    let with_aim = |message: String| {
        let storage = &crd.storage().name;
        format!("the storage version {storage} has no defaults; {what}: {message}")
    };
    let CrdStatus { message, nameless, .. } = about_objects;
    CrdStatus {
        persisted: Some(true),
        reason: Reason::NoDefaults,
        message: with_aim(message),
        nameless: nameless.map(with_aim),
        ..about_objects
    }
}

/// The message about objects of a CRD without defaults, after a pass that wrote them for this aim.
pub fn done_without_defaults(
    findings: &SchemaFindings,
    aim: Aim,
    hold: Option<&CanaryHold>,
    within: Option<&Namespaces>,
    tally: &Tally,
) -> CrdStatus {
    let counts = tally.counts();
    let done = counts.written + counts.already_stored;
    let result = match (aim, done) {
        (Aim::Move, 1) => "is stored there",
        (Aim::Move, _) => "are stored there",
        (Aim::Repair, 1) => "names only served versions",
        (Aim::Repair, _) => "name only served versions",
    };
    let sentence = format!("{done} of {} {result}", counted(counts.objects, "object"));
    let hold = hold.filter(|_| done < counts.objects).map(canary);
    let wording = |naming| {
        let others = left_out("the policy", counts, within, naming);
        let sentences: Vec<String> = hold.iter().chain([&sentence]).chain(&others).cloned().collect();
        sentences.join("; ")
    };
    CrdStatus {
        nameless: within.map(|_| wording(Naming::Nothing)),
        ..crd_status(findings, Some(true), Reason::NoDefaults, wording(Naming::Objects))
    }
}

/// The status while changes of the objects are not noticed, by what is known of them from before.
pub fn watch_failing(known: CrdStatus, failure: &str) -> CrdStatus {
    let after = |known: &str| format!("{failure}; before that: {known}");
    let (message, nameless) = (after(&known.message), known.nameless.as_deref().map(after));
    CrdStatus { persisted: None, reason: Reason::WatchFailing, message, nameless, ..known }
}

/// The reason of a CRD for objects that are held.
fn held_reason(hold: Hold) -> Reason {
    match hold {
        Hold::HiddenFields => Reason::HiddenFields,
        Hold::Misfit => Reason::Misfit,
        Hold::InvalidDefaults => Reason::InvalidDefaults,
    }
}

/// Which objects are not selected, as far as they are counted, and which are not even read.
fn left_out(policy: &str, counts: Counts, within: Option<&Namespaces>, naming: Naming) -> Vec<String> {
    let not_selected = counts.not_selected;
    let counted = (not_selected > 0).then(|| format!("{not_selected} {NOT_SELECTED}{policy}"));
    let unread = within.map(|namespaces| {
        let (count, verb) = match namespaces.names().len() {
            1 => ("1 namespace".to_owned(), "is"),
            count => (format!("{count} namespaces"), "are"),
        };
        let read = if naming == Naming::Nothing { count } else { namespaces.to_string() };
        let others = if counted.is_none() {
            format!(", all others are {NOT_SELECTED}{policy}")
        } else {
            String::new()
        };
        format!("only {read} {verb} read{others}")
    });
    counted.clone().into_iter().chain(unread).collect()
}

/// How many objects store their defaults, of those that are selected.
fn stored_of(stored: u64, counts: Counts, leaves_out: bool) -> String {
    let all = counts.objects - counts.not_selected.min(counts.objects);
    let selected = if leaves_out { "selected " } else { "" };
    if stored == all && all > 1 {
        return format!("all {all} {selected}objects store their defaults");
    }
    let is_one = stored == 1 || all == 1;
    // The state of the others may be unknown.
    let verb = match (stored == all, is_one) {
        (true, true) => "stores its defaults",
        (true, false) => "store their defaults",
        (false, true) => "is known to store its defaults",
        (false, false) => "are known to store their defaults",
    };
    let noun = if all == 1 { "object" } else { "objects" };
    format!("{stored} of {all} {selected}{noun} {verb}")
}

/// What is wrong with the CRD itself, and this about its objects.
pub fn crd_status(
    findings: &SchemaFindings,
    persisted: Option<bool>,
    reason: Reason,
    message: String,
) -> CrdStatus {
    CrdStatus {
        non_structural: findings.non_structural.clone(),
        invalid_defaults: findings.invalid_defaults.clone(),
        breaking_defaults: Vec::new(),
        persisted,
        reason,
        message,
        nameless: None,
    }
}

#[cfg(test)]
mod tests;
