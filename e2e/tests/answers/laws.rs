//! What no write of Etch's may do, whichever command or operator made it.

use e2e::paths::{is_below, of_schema};
use serde_json::Value;

use crate::model::{Difference, is_claimed, managers};
use crate::random::Plan;
use crate::stage::Raw;

/// What a write was allowed to do.
pub(crate) struct Allowed {
    /// The places, in the schema's terms, whose value may follow a default.
    pub(crate) follow: Vec<String>,
    /// Whether fields that the schema does not know may be lost.
    pub(crate) drop: bool,
    /// Whether the manager `etch` may own something.
    pub(crate) own: bool,
}

/// The ids of the objects of a cluster whose bytes are others.
pub(crate) fn changed<'a>(plan: &Plan, before: &'a Raw, after: &Raw) -> Vec<&'a String> {
    let (before, after) = (&before[&plan.plural], &after[&plan.plural]);
    before.iter().filter(|(id, raw)| after.get(*id) != Some(raw)).map(|(id, _)| id).collect()
}

/// Holds the bytes of one object before and after against each other.
pub(crate) fn judge(
    plan: &Plan,
    phase: usize,
    (before, after): (&Value, &Value),
    allowed: &Allowed,
    note: &dyn Fn(String),
) {
    let phase = &plan.phases[phase];
    let schema = phase.schema(phase.storage()).unwrap_or(&Value::Null);
    let (old, new) = (phase.truth(before), phase.truth(after));
    let difference = Difference::between((schema, &old.view), (schema, &new.view));
    let is_free = |path: &String| {
        let place = of_schema(path);
        allowed.follow.iter().any(|follow| is_below(&place, follow) || is_below(follow, &place))
    };
    for path in difference.changes.iter().chain(&difference.goes).filter(|path| !is_free(path)) {
        note(format!("the value at {path} was changed"));
    }
    // Where no other manager names it there is no hint of what only etcd holds; a default that Etch stored is
    // none.
    let lost: Vec<_> = old
        .hidden
        .iter()
        .filter(|path| !new.hidden.contains(path) && is_claimed(before, path, |manager, _| manager != "etch"))
        .collect();
    if new.is_broken() && !old.is_broken() {
        note("a default was stored that breaks a rule".to_owned());
    }
    let bad = |path: &&String| old.misfits.contains(path) && !new.missing.contains(path);
    if let Some(path) = old.missing.iter().find(bad) {
        note(format!("the default stored at {path} is itself invalid"));
    }
    let named = managers(before);
    if !lost.is_empty() && !allowed.drop {
        note(format!("{lost:?} were destroyed"));
    }
    let now = managers(after);
    let is_ours = |manager: &&String| manager.starts_with("etch ");
    let others = |managers: &[String]| {
        managers.iter().filter(|manager| !is_ours(manager)).cloned().collect::<Vec<_>>()
    };
    if others(&now) != others(&named) && !(named.is_empty() && allowed.own) {
        note(format!("its owners were {named:?}, and are {now:?}"));
    }
    // What Etch owns under one policy it gives up under another, and takes nothing more.
    if !allowed.own && now.iter().filter(is_ours).count() > named.iter().filter(is_ours).count() {
        note(format!("Etch owns a part of it: {now:?}"));
    }
    if before["metadata"]["uid"] != after["metadata"]["uid"] {
        note("it is another object".to_owned());
    }
}
