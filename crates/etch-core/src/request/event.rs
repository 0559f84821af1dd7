//! Requests for events of `events.k8s.io/v1`.

use http::{Method, Request};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::path::{collection, encoded};
use super::{patch, send};
use crate::crd::Resource;
use crate::event::Event;
use crate::plan::PatchKind;
use kube_structural_schema::json::Json;

/// The reporting controller: a name that no other controller has.
const CONTROLLER: &str = "etch-operator.io/etch";
/// Notes are cut at this many bytes: the server takes no more.
const LONGEST_NOTE: usize = 1024;

/// The name of this process, as far as it fits in an event.
pub fn instance_of(name: &str) -> String {
    cut(name, 128)
}

/// Creates an event.
pub fn created(event: &Event, name: &str, namespace: &str, instance: &str, now: &str) -> Request<Vec<u8>> {
    let body = body_of(event, name, namespace, instance, now);
    send(Method::POST, &path(namespace), Json::from(body).to_vec())
}

/// Changes an event that is there; a change of nothing reads it.
pub fn patched(namespace: &str, name: &str, body: &Value) -> Request<Vec<u8>> {
    let path = format!("{}/{}", path(namespace), encoded(name));
    patch(&path, PatchKind::Merge, Json::from(body.clone()).to_vec())
}

/// How often an event was published.
pub fn count(event: &Value) -> u64 {
    event["series"]["count"].as_u64().unwrap_or(1)
}

fn path(namespace: &str) -> String {
    collection(&Resource::new("events.k8s.io", "v1", "events"), Some(namespace))
}

/// `NAME.HASH`, the same for the same event whichever process publishes it.
pub fn name_of(event: &Event) -> String {
    let Event { regarding, warning, reason, action, note } = event;
    let mut hash = Sha256::new();
    for part in [regarding.uid.as_str(), &regarding.api_version, reason, action, note] {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.update([u8::from(*warning)]);
    let hash: String = hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("{}.{hash}", cut(&regarding.name, 200).trim_end_matches(['.', '-']))
}

fn body_of(event: &Event, name: &str, namespace: &str, instance: &str, now: &str) -> Value {
    let Event { regarding, warning, reason, action, note } = event;
    let mut object = json!({
        "apiVersion": regarding.api_version,
        "kind": regarding.kind,
        "name": regarding.name,
        "uid": regarding.uid,
    });
    if let Some(namespace) = &regarding.namespace {
        object["namespace"] = Value::from(namespace.as_str());
    }
    json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": { "name": name, "namespace": namespace },
        "type": if *warning { "Warning" } else { "Normal" },
        "reason": reason,
        "action": action,
        "note": cut(note, LONGEST_NOTE),
        "regarding": object,
        "eventTime": now,
        "reportingController": CONTROLLER,
        "reportingInstance": instance,
    })
}

/// As much of a text as fits.
fn cut(text: &str, most: usize) -> String {
    text[..text.floor_char_boundary(most)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Regarding;

    fn event(name: &str, note: &str) -> Event {
        Event {
            regarding: Regarding {
                api_version: "example.com/v1".to_owned(),
                kind: "Thing".to_owned(),
                namespace: Some("ns".to_owned()),
                name: name.to_owned(),
                uid: "u".to_owned(),
            },
            warning: true,
            reason: "Admission".to_owned(),
            action: "PersistDefaults",
            note: note.to_owned(),
        }
    }

    #[test]
    fn a_name_is_the_same_for_the_same_event_and_fits() {
        assert_eq!(name_of(&event("a", "x")), name_of(&event("a", "x")));
        assert_ne!(name_of(&event("a", "x")), name_of(&event("a", "y")));
        assert_ne!(name_of(&event("a", "x")), name_of(&Event { warning: false, ..event("a", "x") }));
        let long = name_of(&event(&format!("{}.{}", "a".repeat(199), "b".repeat(53)), "x"));
        assert!(long.len() <= 253 && !long.contains(".."), "{long}");
    }

    #[test]
    fn a_note_is_cut_where_a_character_ends() {
        let body = body_of(&event("a", &"ü".repeat(600)), "n", "ns", "i", "now");
        assert_eq!(body["note"].as_str().map(str::len), Some(1024));
        let body = body_of(&event("a", &format!("x{}", "ü".repeat(600))), "n", "ns", "i", "now");
        assert_eq!(body["note"].as_str().map(str::len), Some(1023));
    }
}
