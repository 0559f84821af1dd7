//! What admission changes in an object's metadata beyond what Etch's own write does. What a schema governs
//! does not count: a server that lags behind shows it differently.

use serde_json::{Map, Value};

use crate::object::Object;

/// What the server changes with any write.
const NOTED: [&str; 3] = ["resourceVersion", "generation", "managedFields"];
/// So many changes in a row show that admission changes an object on each write, and does not just correct it
/// once.
const EACH: u32 = 2;

/// How often the requests of one write changed metadata that no write of Etch's touches.
#[derive(Debug)]
pub(super) struct Alterations {
    /// The metadata as the last answer showed it.
    metadata: Map<String, Value>,
    count: u32,
}

impl Alterations {
    /// None yet, of the object as it was read.
    pub(super) fn none(object: &Object) -> Self {
        Self { metadata: metadata(object), count: 0 }
    }

    /// Handles an answer. Each request names the resource version that it is for, so no other client has
    /// written in between.
    pub(super) fn note(&mut self, answer: &Object) {
        let metadata = metadata(answer);
        if metadata != self.metadata {
            self.count += 1;
            self.metadata = metadata;
        }
    }

    /// Whether admission changes the object on each write.
    pub(super) fn are_endless(&self) -> bool {
        self.count >= EACH
    }
}

/// The metadata, without what the server changes with any write.
fn metadata(object: &Object) -> Map<String, Value> {
    let fields = object.json()["metadata"].as_object().into_iter().flatten();
    let others = fields.filter(|(name, _)| !NOTED.contains(&name.as_str()));
    others.map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(revision: &str, stamp: &str, spec: Value) -> Object {
        let metadata = json!({
            "name": "a", "resourceVersion": revision, "generation": 1, "managedFields": [{
                "time": revision,
            }],
            "annotations": { "stamp": stamp },
        });
        Object::from(json!({ "metadata": metadata, "spec": spec }))
    }

    fn endless(answers: &[Object]) -> bool {
        let mut alterations = Alterations::none(&object("1", "0", json!({ "name": "n" })));
        answers.iter().for_each(|answer| alterations.note(answer));
        alterations.are_endless()
    }

    #[test]
    fn what_a_write_stores_and_what_the_server_notes_is_no_alteration() {
        let filled = |revision, size| object(revision, "0", json!({ "name": "n", "size": size }));
        assert!(!endless(&[filled("2", 1), filled("3", 5), filled("4", 1)]));
    }

    #[test]
    fn what_admission_puts_right_once_is_none_that_each_write_brings() {
        let stamped = |revision| object(revision, "once", json!({ "name": "n", "size": 1 }));
        assert!(!endless(&[stamped("2"), stamped("3"), stamped("4")]));
    }

    #[test]
    fn a_change_with_each_answer_is() {
        let stamped = |stamp| object(stamp, stamp, json!({ "name": "n", "size": 1 }));
        assert!(!endless(&[stamped("2")]));
        assert!(endless(&[stamped("2"), stamped("3")]));
    }
}
