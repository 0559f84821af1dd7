//! The claims of the demo, and what contradicts them.
//! It judges what others have read.

use serde_json::Value;

use super::cast::Field;
use super::view::{Snapshot, View};

/// The manager that no object may have.
const ETCH: &str = "etch";

/// A sentence, and what was found that contradicts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    /// What is claimed.
    pub(super) text: String,
    /// What contradicts it, with the object's name; it holds if there is nothing.
    pub(super) problems: Vec<String>,
}

impl Claim {
    /// A claim about every one of these objects; `contradiction` returns what contradicts it for one of them.
    pub(super) fn about<'a>(
        text: impl Into<String>,
        views: impl IntoIterator<Item = &'a View>,
        contradiction: impl Fn(&View) -> Option<String>,
    ) -> Self {
        let problems = views
            .into_iter()
            .filter_map(|view| contradiction(view).map(|problem| format!("{}: {problem}", view.actor)));
        Self { text: text.into(), problems: problems.collect() }
    }

    /// A claim about every one of these objects now and before.
    pub(super) fn since<'a>(
        text: impl Into<String>,
        views: impl IntoIterator<Item = &'a View>,
        before: &Snapshot,
        contradiction: impl Fn(&View, &View) -> Option<String>,
    ) -> Self {
        Self::about(text, views, |now| match before.of(&now.actor) {
            Ok(before) => contradiction(now, before),
            Err(error) => Some(error.to_string()),
        })
    }

    /// A claim about something else.
    pub(super) fn that(text: impl Into<String>, contradiction: Option<String>) -> Self {
        Self { text: text.into(), problems: contradiction.into_iter().collect() }
    }

    /// Whether nothing contradicts it.
    pub(super) fn holds(&self) -> bool {
        self.problems.is_empty()
    }
}

/// Contradicts "etcd holds, to the last field, what the API shows".
///
/// `resourceVersion` is etcd's revision, which is no part of what is stored.
pub(super) fn not_whole(view: &View) -> Option<String> {
    let mut shown = view.shown.clone();
    if let Some(metadata) = shown["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
    }
    (shown != view.held).then(|| "etcd does not hold what the API shows".to_owned())
}

/// Contradicts "the API shows these fields and etcd holds none of them".
pub(super) fn not_phantom(view: &View, fields: &[Field]) -> Option<String> {
    let hidden = fields.iter().find(|field| view.shown(**field).is_none());
    let held = fields.iter().find(|field| view.held(**field).is_some());
    match (hidden, held) {
        (Some(field), _) => Some(format!("the API does not show {field}")),
        (_, Some(field)) => Some(format!("etcd holds {field}")),
        (None, None) => None,
    }
}

/// Contradicts "the API shows and etcd holds this value". No value at all cannot be held.
pub(super) fn not_held(view: &View, field: Field, value: Option<&Value>) -> Option<String> {
    if value.is_none() {
        return Some(format!("there was nothing at {field}"));
    }
    let held = view.held(field);
    let unheld = (held != value).then(|| format!("etcd holds {} at {field}", named(held)));
    unheld.or_else(|| not_shown(view, field, value))
}

/// Contradicts "the API shows this value", or none.
pub(super) fn not_shown(view: &View, field: Field, value: Option<&Value>) -> Option<String> {
    let shown = view.shown(field);
    (shown != value).then(|| format!("the API shows {} at {field}", named(shown)))
}

/// Contradicts "no client has written it since": the same bytes under the same revision.
pub(super) fn written_since(now: &View, before: &View) -> Option<String> {
    if now.revision != before.revision {
        return Some(format!("its revision went from {} to {}", before.revision, now.revision));
    }
    (now.bytes != before.bytes).then(|| "etcd holds other bytes".to_owned())
}

/// Contradicts "its generation has not moved".
pub(super) fn other_generation(now: &View, before: &View) -> Option<String> {
    let (before, now) = (before.generation(), now.generation());
    (before != now).then(|| format!("its generation went from {before:?} to {now:?}"))
}

/// Contradicts "every manager has exactly the fields it had, and Etch none".
pub(super) fn other_owners(now: &View, before: &View) -> Option<String> {
    if now.owners().iter().any(|owner| owner.manager == ETCH) {
        return Some("it has a manager named etch".to_owned());
    }
    let fields = |view: &View| view.shown["metadata"]["managedFields"].clone();
    (fields(now) != fields(before)).then(|| "its managedFields are not those from before".to_owned())
}

/// A value as a contradiction names it.
pub(super) fn named(value: Option<&Value>) -> String {
    value.map_or_else(|| "nothing".to_owned(), Value::to_string)
}
