//! What Etch reports on a CRD: three conditions, each with a reason and a message.
//! It must not hold a value of any object, nor use a type of the server's own (fact C2).

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::words::words;
use kube_structural_schema::json::Json;

/// The condition types, always written together (fact C1).
pub const TYPES: [&str; 3] = ["NonStructural", "InvalidDefaults", PERSISTED];

/// The type of the condition about stored defaults.
pub const PERSISTED: &str = "DefaultsPersisted";

/// How a message counts objects that the policy does not select, at its beginning: what it claims is not
/// about these.
pub const NOT_SELECTED: &str = "not selected by ";

/// Messages are cut at this many bytes.
pub const MAX_MESSAGE: usize = 1024;

/// One condition in the form of `status.conditions`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// One of [`TYPES`].
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One word.
    #[serde(default)]
    pub reason: String,
    /// A sentence for people.
    #[serde(default)]
    pub message: String,
    /// The CRD's generation that was judged. Servers before 1.35 do not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When `status` last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<String>,
}

words! {
    /// Why `DefaultsPersisted` is what it is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Reason {
        /// The storage version has no defaults.
        NoDefaults,
        /// Every object holds its defaults in etcd.
        AllPersisted,
        /// A pass is under way.
        InProgress,
        /// The schema has changed, and must stay unchanged for a time before objects are written.
        Settling,
        /// Writes of some objects were rejected.
        ObjectsRejected,
        /// Some objects hold fields that a write would destroy.
        HiddenFields,
        /// Some objects would get a default that is itself invalid.
        InvalidDefaults,
        /// The schema is not structural: the server fills in its defaults, and Etch writes no object.
        NonStructural,
        /// Some objects do not fit the storage version's schema by type.
        Misfit,
        /// Some objects are nested more deeply than Etch reads; every other one holds its defaults in etcd.
        TooDeep,
        /// A permission is missing.
        Forbidden,
        /// A policy has paused all writes.
        Paused,
        /// The first objects are written, and the others wait for a user to resume the pass.
        CanaryWaiting,
        /// A write of one of the first objects was rejected, and the others wait as well.
        CanaryRejected,
        /// The policy asks for reports only.
        AuditOnly,
        /// The policy asks for nothing.
        Ignored,
        /// Objects cannot be read at the storage version.
        ConversionFailed,
        /// Objects cannot be read: etcd holds a value that the API server cannot decode.
        ObjectsUnreadable,
        /// Changes of the objects are not noticed: the watch fails.
        WatchFailing,
        /// The storage version is not served.
        NotServed,
    }
}

/// The type of an event, as Kubernetes has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// For information.
    Normal,
    /// A user has to look.
    Warning,
}

/// Everything that Etch reports about a CRD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrdStatus {
    /// Violations of the structural schema rules, as places and the server's words.
    pub non_structural: Vec<String>,
    /// Places of defaults that are themselves invalid.
    pub invalid_defaults: Vec<String>,
    /// Places of defaults with which objects would be invalid that are valid without them.
    pub breaking_defaults: Vec<String>,
    /// Whether the defaults are stored; unknown if none.
    pub persisted: Option<bool>,
    /// Why.
    pub reason: Reason,
    /// The same in a sentence.
    pub message: String,
    /// The sentence without names of objects; `None` if it has none.
    pub nameless: Option<String>,
}

impl Reason {
    /// The reason that a condition gives; none if it is not one of ours.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|reason| reason.as_str() == word)
    }

    /// Whether a pause or a canary keeps objects from being written.
    pub fn is_pause_or_canary(self) -> bool {
        matches!(self, Self::Paused | Self::CanaryWaiting | Self::CanaryRejected)
    }

    /// The type of the event when a CRD's `DefaultsPersisted` gets this reason; `None` if it warrants no
    /// event.
    pub fn event(self) -> Option<EventType> {
        match self {
            // A step on the way, or nothing to do; a schema that is not structural has a condition and an
            // event of its own.
            Self::InProgress | Self::NoDefaults | Self::Ignored | Self::NonStructural => None,
            Self::AllPersisted | Self::AuditOnly | Self::Paused | Self::CanaryWaiting | Self::Settling => {
                Some(EventType::Normal)
            }
            Self::CanaryRejected
            | Self::ObjectsRejected
            | Self::HiddenFields
            | Self::InvalidDefaults
            | Self::Misfit
            | Self::TooDeep
            | Self::Forbidden
            | Self::ConversionFailed
            | Self::ObjectsUnreadable
            | Self::WatchFailing
            | Self::NotServed => Some(EventType::Warning),
        }
    }
}

impl CrdStatus {
    /// The conditions for this status, for a CRD of this generation whose conditions are `present`.
    ///
    /// `now` (RFC 3339) becomes the transition time of those whose status changes.
    pub fn conditions(&self, generation: i64, present: &[Condition], now: &str) -> Vec<Condition> {
        let [non_structural, invalid_defaults, persisted] = TYPES;
        let truth = |value: bool| if value { "True" } else { "False" };
        let wording = [
            (
                non_structural,
                match &self.non_structural[..] {
                    [] => ("False", "Structural", String::new()),
                    found => ("True", "Violations", list(found, "the schema is not structural")),
                },
            ),
            (invalid_defaults, self.invalid()),
            (
                persisted,
                (self.persisted.map_or("Unknown", truth), self.reason.as_str(), self.message.clone()),
            ),
        ];
        wording
            .into_iter()
            .map(|(name, (status, reason, message))| {
                let before = present.iter().find(|condition| condition.r#type == name);
                let kept = before.filter(|before| before.status == status);
                Condition {
                    r#type: name.to_owned(),
                    status: status.to_owned(),
                    reason: reason.to_owned(),
                    message: cut(message),
                    observed_generation: Some(generation),
                    last_transition_time: kept
                        .and_then(|before| before.last_transition_time.clone())
                        .or_else(|| Some(now.to_owned())),
                }
            })
            .collect()
    }
}

impl CrdStatus {
    /// The sentence for users who may not see the objects: events about CRDs are in the namespace `default`.
    pub fn without_names(&self) -> &str {
        self.nameless.as_deref().unwrap_or(&self.message)
    }

    /// Adds to the sentence what names no object.
    pub fn append(&mut self, more: &str) {
        for sentence in std::iter::once(&mut self.message).chain(&mut self.nameless) {
            sentence.push_str("; ");
            sentence.push_str(more);
        }
    }

    /// Status, reason and message of the condition about the defaults themselves.
    fn invalid(&self) -> (&'static str, &'static str, String) {
        let found = [
            (&self.invalid_defaults, "defaults are themselves invalid"),
            (&self.breaking_defaults, "defaults make objects invalid"),
        ];
        let wording = found.iter().filter(|(places, _)| !places.is_empty());
        let sentences: Vec<String> = wording.map(|(places, kind)| list(places, kind)).collect();
        match sentences.is_empty() {
            true => ("False", "Valid", String::new()),
            false => ("True", "InvalidDefaults", sentences.join("; ")),
        }
    }
}

/// Our conditions among those that a CRD carries.
pub fn present(crd: &Json) -> Vec<Condition> {
    let conditions = crd.get("status").and_then(|status| status.get("conditions"));
    let all = conditions.and_then(serde_json::Value::as_array).into_iter().flatten();
    all.filter_map(|condition| Condition::deserialize(condition).ok())
        .filter(|condition| TYPES.contains(&condition.r#type.as_str()))
        .collect()
}

/// A merge patch that takes our conditions off a CRD as it was read; `None` if it has none.
///
/// Not an apply: that takes away only what `managedFields` names as ours, and a client may have cleared
/// these.
pub fn removal(crd: &Json) -> Option<Json> {
    let (metadata, all) = (&crd["metadata"], crd["status"]["conditions"].as_array()?);
    let others: Vec<_> =
        all.iter().filter(|condition| TYPES.iter().all(|ours| condition["type"] != *ours)).collect();
    let body = json!({
        "metadata": { "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"] },
        "status": { "conditions": others },
    });
    (others.len() < all.len()).then(|| body.into())
}

/// Whether two sets of conditions agree. The generation does not count where the server does not keep it.
pub fn same(wording: &[Condition], present: &[Condition]) -> bool {
    wording.len() == present.len()
        && wording.iter().all(|condition| {
            present.iter().any(|other| {
                (&condition.r#type, &condition.status, &condition.reason, &condition.message)
                    == (&other.r#type, &other.status, &other.reason, &other.message)
                    && (other.observed_generation.is_none()
                        || other.observed_generation == condition.observed_generation)
            })
        })
}

/// A sentence and the first few of these, as many as leave room for more in a message.
pub fn list(found: &[String], kind: &str) -> String {
    first_of(found, found.len() as u64, kind)
}

/// The same, where there are `count` of them, of which these are known by name.
pub fn first_of(found: &[String], count: u64, kind: &str) -> String {
    format!("{kind}: {}", few(found, count, kind.len() + 2))
}

/// The first few of `count`, of which these are known by name, as many as leave room for more in a message.
pub fn first(found: &[String], count: u64) -> String {
    few(found, count, 0)
}

/// The same, behind a text of a length.
fn few(found: &[String], count: u64, behind: usize) -> String {
    const SHOWN: usize = 5;
    const ROOM: usize = 300;
    let mut text = String::new();
    let mut shown = 0;
    for item in found.iter().take(SHOWN) {
        if shown > 0 && behind + text.len() + item.len() > ROOM {
            break;
        }
        if shown > 0 {
            text.push_str(", ");
        }
        text.push_str(&shortened(item, ROOM - behind.min(ROOM / 3)));
        shown += 1;
    }
    match count - shown {
        0 => {}
        more if shown == 0 => text.push_str(&more.to_string()),
        more => text.push_str(&format!(" and {more} more")),
    }
    text
}

/// A text with its middle left out, if it is longer than `room` bytes.
fn shortened(text: &str, room: usize) -> String {
    if text.len() <= room {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(room / 2 - 3);
    let tail = text.ceil_char_boundary(text.len() - room / 2);
    format!("{}…{}", &text[..head], &text[tail..])
}

fn cut(mut message: String) -> String {
    if message.len() > MAX_MESSAGE {
        message.truncate(message.floor_char_boundary(MAX_MESSAGE - 3));
        message.push('…');
    }
    message
}

#[cfg(test)]
mod tests;
