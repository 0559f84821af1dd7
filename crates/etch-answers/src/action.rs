//! What is done, or would be done, to objects, by name and in numbers.

use std::collections::{BTreeMap, BTreeSet};

use etch_core::object::Identity;
use kube_structural_schema::path::Path;
use serde_json::{Value, json};

use crate::{Cell, Tone};

/// What is done, or would be done, to an object at some places.
#[derive(Debug)]
pub struct Action {
    /// What is done.
    pub word: &'static str,
    /// Why, where that is not clear from the word.
    pub reason: Option<&'static str>,
    /// The places in the object; none where the action is about the whole.
    pub paths: Vec<Path>,
}

/// How many objects an action is about, by its place in the schema; `None` where it is about no place.
#[derive(Debug, Default)]
pub struct Places(BTreeMap<Place, u64>);

type Place = (&'static str, Option<&'static str>, Option<Path>);

impl Action {
    /// For programs.
    pub fn document(&self, identity: &Identity) -> Value {
        let Identity { namespace, name, uid: _ } = identity;
        let Self { word, reason, paths } = self;
        let paths = in_words(paths);
        json!({ "namespace": namespace, "name": name, "action": word, "reason": reason, "paths": paths })
    }

    /// For people: the object, the action, its reason, and the places with notes.
    pub fn cells(&self, identity: &Identity, tone: Tone, notes: impl Iterator<Item = String>) -> [Cell; 4] {
        let places: Vec<String> = in_words(&self.paths).into_iter().chain(notes).collect();
        let (action, reason) = (Cell::new(self.word, tone), self.reason.unwrap_or_default().into());
        [identity.to_string().into(), action, reason, places.join(" ").into()]
    }
}

impl Places {
    /// Counts an action on an object.
    pub fn add(&mut self, action: &Action) {
        let paths: BTreeSet<Path> = action.paths.iter().map(Path::to_schema).collect();
        let nowhere = paths.is_empty().then_some(None);
        for path in paths.into_iter().map(Some).chain(nowhere) {
            *self.0.entry((action.word, action.reason, path)).or_default() += 1;
        }
    }

    /// Whether an object has this action.
    pub fn has(&self, word: &str) -> bool {
        self.0.keys().any(|(known, ..)| *known == word)
    }

    /// Whether an object has this action at a place of the schema.
    pub fn has_at(&self, word: &'static str, reason: &'static str, path: &Path) -> bool {
        self.0.contains_key(&(word, Some(reason), Some(path.clone())))
    }

    /// For programs.
    pub fn document(&self) -> Value {
        let place = |((word, reason, path), objects): (&Place, &u64)| {
            let path = path.as_ref().map(Path::to_string);
            json!({ "action": word, "reason": reason, "path": path, "objects": objects })
        };
        self.0.iter().map(place).collect()
    }

    /// For people: how many objects, the action, its reason and its place.
    pub fn rows(&self, tone: impl Fn(&str) -> Tone) -> impl Iterator<Item = [Cell; 4]> {
        self.0.iter().map(move |((word, reason, path), objects)| {
            let path = path.as_ref().map(Path::to_string).unwrap_or_default();
            let reason = reason.unwrap_or_default().into();
            [objects.to_string().into(), Cell::new(word, tone(word)), reason, path.into()]
        })
    }
}

/// Paths as people write them.
pub fn in_words(paths: &[Path]) -> Vec<String> {
    paths.iter().map(Path::to_string).collect()
}
