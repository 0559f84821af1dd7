//! What admission makes of an object beside what a write of Etch's does.
//! It must not take a default for such a change, nor what the server notes with every write.

use super::Write;
use crate::domain::json::{Json, copy, same};
use crate::domain::object::Object;
use crate::domain::path::Step;
use crate::domain::without::remove;

/// What the server changes with any write.
const NOTED: [&str; 3] = ["resourceVersion", "generation", "managedFields"];
/// So many changes in a row show that admission changes an object on each write, and does not put it right once and for all.
const EACH: u32 = 2;

/// How often the requests of one write changed more of the object than the write accounts for.
#[derive(Debug)]
pub(super) struct Alterations {
    /// The rest of the object as the last answer showed it.
    rest: Json,
    count: u32,
}

impl Alterations {
    /// None yet, of the object as it was read.
    pub(super) fn none(object: &Object, write: &Write) -> Self {
        Self { rest: rest(object, write), count: 0 }
    }

    /// Takes in an answer. Each request names the resource version that it is for, so nobody else has written in between.
    pub(super) fn note(&mut self, answer: &Object, write: &Write) {
        let rest = rest(answer, write);
        if !same(&rest, &self.rest) {
            self.count += 1;
            self.rest = rest;
        }
    }

    /// Whether admission changes the object on each write.
    pub(super) fn are_endless(&self) -> bool {
        self.count >= EACH
    }
}

/// The object without the places that the write is about.
fn rest(object: &Object, write: &Write) -> Json {
    let mut rest = copy(object.json());
    for field in NOTED {
        remove(&mut rest, &[Step::Field("metadata".into()), Step::Field(field.into())]);
    }
    write.missing.iter().for_each(|path| remove(&mut rest, path.steps()));
    Json::from(rest)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::domain::plan::Strategy;

    fn object(revision: &str, stamp: &str, spec: Value) -> Object {
        let metadata = json!({
            "name": "a", "resourceVersion": revision, "generation": 1, "managedFields": [{ "time": revision }],
            "annotations": { "stamp": stamp },
        });
        Object::from(json!({ "metadata": metadata, "spec": spec }))
    }

    fn endless(answers: &[Object]) -> bool {
        let missing = vec![".spec.size".parse().expect("a path")];
        let write = Write {
            strategy: Strategy::Rewrite,
            body: json!({}).into(),
            prove: true,
            missing,
            doubtful: Vec::new(),
        };
        let mut alterations = Alterations::none(&object("1", "0", json!({ "name": "n" })), &write);
        answers.iter().for_each(|answer| alterations.note(answer, &write));
        alterations.are_endless()
    }

    #[test]
    fn what_a_write_stores_and_what_the_server_notes_is_no_alteration() {
        let filled = |revision| object(revision, "0", json!({ "name": "n", "size": 1 }));
        assert!(!endless(&[filled("2"), filled("3"), filled("4")]));
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
