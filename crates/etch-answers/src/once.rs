//! Documents of one name among those that are given: identical ones count once, as a chart with two copies of
//! a subchart renders them.
//! It must not choose between documents that differ.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use kube_manifests::{Document, Origin};
use kube_structural_schema::json::Json;

/// The documents so far, by their names.
#[derive(Default)]
pub struct Once(BTreeMap<String, (Origin, Json)>);

/// Two documents of one name that differ.
#[derive(Debug, thiserror::Error)]
#[error("{second}: {name} is also in {first}, with another content; give one of them")]
pub struct Ambiguous {
    name: String,
    first: Origin,
    second: Origin,
}

impl Once {
    /// Whether a document is the first one of its name, such as `CRD widgets.example.com`.
    ///
    /// # Errors
    /// The first one differs: nothing shows which of them is meant.
    pub fn is_first(&mut self, name: String, document: &Document) -> Result<bool, Ambiguous> {
        let Document { origin, json, .. } = document;
        match self.0.entry(name) {
            Entry::Vacant(new) => {
                new.insert((origin.clone(), json.clone()));
                Ok(true)
            }
            Entry::Occupied(known) if known.get().1 == *json => Ok(false),
            Entry::Occupied(known) => {
                let (name, (first, _)) = (known.key(), known.get());
                Err(Ambiguous { name: name.clone(), first: first.clone(), second: origin.clone() })
            }
        }
    }
}
