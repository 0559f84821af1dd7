//! The sentence about a CRD, from what became of its objects.
//! It must not name values, nor more than a few objects.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::judge::Judged;
use super::tally::Tally;
use super::trouble::Trouble;
use crate::api::{Mode, Pause, Settings};
use crate::cluster::Missing;
use crate::domain::condition::{Reason, Verdict, list};
use crate::domain::crd::Crd;
use crate::domain::plan::{Held, Hold};

/// How a sentence about missing permissions begins.
pub(super) const MISSING: &str = "a permission is missing";

/// What there is to say where no object needs to be looked at; none where some do, or where there is nothing to say.
pub(super) fn without_objects(crd: &Crd, settings: &Settings, judged: &Judged) -> Option<Verdict> {
    let defaults = crd.compiled().has_defaults();
    let said = |persisted, reason, message: String| Some(verdict(judged, persisted, reason, message));
    if !judged.non_structural.is_empty() {
        return Some(unreadable(judged));
    }
    if !defaults && !judged.invalid_defaults.is_empty() {
        return said(Some(true), Reason::NoDefaults, String::new());
    }
    if !defaults {
        return None;
    }
    if settings.mode == Mode::Ignore {
        let message = format!("DefaultsPolicy {} says that these objects are left alone", settings.policy);
        return said(None, Reason::Ignored, message);
    }
    if !crd.storage().served {
        let message = format!("the storage version {} is not served", crd.storage().name);
        return said(Some(false), Reason::NotServed, message);
    }
    None
}

/// What there is to say of a CRD whose schema is not structural, or cannot be read at all.
pub(super) fn unreadable(judged: &Judged) -> Verdict {
    let message = "the API server applies no defaults to the objects of a CRD whose schema is not structural";
    verdict(judged, Some(false), Reason::NonStructural, message.to_owned())
}

/// While the schema is given time.
pub(super) fn settling(
    judged: &Judged,
    pause: Option<&Pause>,
    missing: Option<&Missing>,
    until: Timestamp,
) -> Verdict {
    let mut message = format!("the schema has changed; objects are written from {until:.0} on");
    if let Some(missing) = missing {
        message.push_str(&format!("; {}", forbidden(missing)));
    }
    if let Some(pause) = pause {
        message.push_str(&format!("; {}", paused(pause)));
    }
    verdict(judged, Some(false), Reason::Settling, message)
}

/// While a pass is under way, or has just been paused. `verified` is the number of objects that were looked at once more.
pub(super) fn in_progress(
    judged: &Judged,
    pause: Option<&Pause>,
    tally: &Tally,
    verified: Option<u64>,
) -> Verdict {
    let counts = tally.counts();
    let mut message = match counts.objects {
        0 => "the objects are being looked at".to_owned(),
        objects => format!("{objects} objects looked at, {} written", counts.written),
    };
    if let Some(verified) = verified {
        message.push_str(&format!("; {verified} looked at once more"));
    }
    match pause {
        // Nobody can know yet what is due.
        Some(pause) => {
            let persisted = (counts.due + counts.written > 0).then_some(false);
            verdict(judged, persisted, Reason::Paused, format!("{}; {message}", paused(pause)))
        }
        None => verdict(judged, Some(false), Reason::InProgress, message),
    }
}

/// What is to be done about permissions that are missing.
pub(super) fn forbidden(missing: &Missing) -> String {
    format!("{MISSING}; add this rule to a role of Etch's: {missing}")
}

/// Who has paused writes, and how.
fn paused(pause: &Pause) -> String {
    format!("writes are paused by {pause}")
}

/// After every object was seen to.
pub(super) fn of(judged: &Judged, settings: &Settings, tally: &Tally) -> Verdict {
    let counts = tally.counts();
    // An audit writes nothing anyhow.
    let pause = settings.pause.as_ref().filter(|_| settings.mode == Mode::Persist).map(paused);
    let named = |wanted: fn(&Trouble) -> bool| -> Vec<String> {
        tally
            .troubles()
            .filter(|(_, trouble)| wanted(trouble))
            .map(|(identity, _)| identity.to_string())
            .collect()
    };
    let rejected = named(|trouble| matches!(trouble, Trouble::Rejected(_)));
    let hidden = named(|trouble| matches!(trouble, Trouble::Held(Held { reason: Hold::HiddenFields, .. })));
    let misfit = named(|trouble| matches!(trouble, Trouble::Held(Held { reason: Hold::Misfit, .. })));
    let invalid =
        named(|trouble| matches!(trouble, Trouble::Held(Held { reason: Hold::InvalidDefaults, .. })));
    let unknown = named(|trouble| matches!(trouble, Trouble::Unknown));
    let stored = counts.written + counts.already_stored;
    let mut sentences = vec![format!("{stored} of {} objects store their defaults", counts.objects)];
    if counts.due > 0 {
        let why = pause.as_deref().unwrap_or("the policy asks for an audit only");
        let due: Vec<String> = tally.due().map(ToString::to_string).collect();
        sentences.push(list(&due, &format!("{} would be written, but {why}", counts.due)));
    } else {
        sentences.extend(pause.clone());
    }
    if counts.rejected > 0 {
        sentences.push(list(&rejected, &format!("{} refused", counts.rejected)));
    }
    if !hidden.is_empty() {
        sentences.push(list(&hidden, "held for fields that only etcd still has"));
    }
    if !invalid.is_empty() {
        let others = hidden.len() + misfit.len();
        let number = if others == 0 { counts.held } else { invalid.len() as u64 };
        let mut places = places(tally, |_| true);
        let more = if places.len() > 3 { " and more" } else { "" };
        places.truncate(3);
        let places = places.join(", ");
        let what =
            format!("{number} held, since they would be invalid with their defaults at {places}{more}");
        sentences.push(list(&invalid, &what));
    }
    if !misfit.is_empty() {
        sentences.push(list(&misfit, "held for values of another type than the schema's"));
    }
    if !unknown.is_empty() {
        sentences.push(list(&unknown, "could not be seen to since they changed, and are tried again"));
    }
    if counts.skipped > 0 {
        sentences.push(format!("{} left alone", counts.skipped));
    }
    let reason = match () {
        // Nothing becomes of the others' troubles either until it ends.
        () if pause.is_some() => Reason::Paused,
        () if counts.rejected > 0 => Reason::ObjectsRejected,
        () if !hidden.is_empty() => Reason::HiddenFields,
        () if !misfit.is_empty() => Reason::Misfit,
        () if !invalid.is_empty() => Reason::InvalidDefaults,
        // Of more objects than are remembered, some are held for whatever reason.
        () if counts.held > 0 => Reason::HiddenFields,
        () if counts.unknown > 0 => Reason::InProgress,
        () if settings.mode == Mode::Audit || counts.due > 0 => Reason::AuditOnly,
        () => Reason::AllPersisted,
    };
    let persisted = match reason {
        Reason::AllPersisted => Some(true),
        Reason::AuditOnly if counts.due == 0 => None,
        Reason::Paused if counts.due + counts.rejected + counts.held + counts.unknown == 0 => None,
        _ => Some(false),
    };
    Verdict {
        breaking_defaults: places(tally, |held| !held.broken.is_empty()),
        ..verdict(judged, persisted, reason, sentences.join("; "))
    }
}

/// The places in the schema of the defaults that objects are held for, where the objects are `wanted`.
fn places(tally: &Tally, wanted: fn(&Held) -> bool) -> Vec<String> {
    let held = tally.troubles().filter_map(|(_, trouble)| match trouble {
        Trouble::Held(held) if held.reason == Hold::InvalidDefaults && wanted(held) => Some(&held.paths),
        _ => None,
    });
    let places: BTreeSet<String> = held.flatten().map(|path| path.to_schema().to_string()).collect();
    places.into_iter().collect()
}

/// What is wrong with the CRD itself, and this about its objects.
pub(super) fn verdict(judged: &Judged, persisted: Option<bool>, reason: Reason, message: String) -> Verdict {
    Verdict {
        non_structural: judged.non_structural.clone(),
        invalid_defaults: judged.invalid_defaults.clone(),
        breaking_defaults: Vec::new(),
        persisted,
        reason,
        message,
    }
}
