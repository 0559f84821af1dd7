//! The objects of files that are of the CRDs that are upgraded.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use etch_core::crd::{Crd, Resource};
use etch_core::object::Object;
use etch_core::scope::Scope;
use kube_manifests::{Document, Origin};
use kube_structural_schema::json::DEPTH;

use super::given::Given;
use crate::documents::{self, SourceError};

/// The name of the CRD of an object, and the object's namespace and name.
type ObjectKey = (String, Option<String>, String);

/// The objects of files, by group and plural.
#[derive(Debug, Default)]
pub struct Found {
    /// The objects, each once.
    pub objects: BTreeMap<(String, String), Vec<Object>>,
    /// The place of each object among those of its resource, and the document that it is from.
    known: BTreeMap<ObjectKey, (usize, Origin)>,
    /// What the first other document is.
    pub other: Option<String>,
}

/// Why objects of files cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum FoundError {
    /// A document that cannot be read as an object.
    #[error(transparent)]
    Document(#[from] SourceError),
    /// Two documents of one object differ: nothing shows which of them the cluster has.
    #[error("{origin}: {object} is also in {first}, with another content; give one of them")]
    Ambiguous {
        /// The second document.
        origin: Origin,
        /// Kind and name.
        object: String,
        /// The first document.
        first: Origin,
    },
}

impl Found {
    /// Handles a document: an object of these CRDs counts if it is in the scope. One that names no namespace
    /// may come to be in any.
    ///
    /// # Errors
    /// See [`FoundError`].
    pub fn take(
        &mut self,
        document: Result<Document, SourceError>,
        crds: &BTreeMap<String, Given>,
        scope: &Scope,
    ) -> Result<(), FoundError> {
        let crd_of = |api_version: &str, kind: &str| {
            let group = api_version.split_once('/').map_or("", |(group, _)| group);
            let mut all = crds.values().map(|given| &given.crd);
            all.find(|crd| crd.group() == group && crd.kind() == kind)
        };
        let document = match document {
            Ok(document) => document,
            Err(error) => {
                let origin = error.origin.clone();
                let object = error.too_deep()?;
                let text = |field: &str| object.json()[field].as_str().unwrap_or_default();
                let kind = text("kind");
                match crd_of(text("apiVersion"), kind) {
                    Some(crd) => self.add(origin, object, crd, scope)?,
                    None => {
                        let what = if kind.is_empty() { "something without a kind" } else { kind };
                        let deep = || format!("{what}, nested more than {DEPTH} levels deep");
                        self.other.get_or_insert_with(deep);
                    }
                }
                return Ok(());
            }
        };
        match crd_of(document.api_version(), document.kind()) {
            Some(crd) => {
                let (origin, object) = documents::object(document)?;
                self.add(origin, object, crd, scope)?;
            }
            None => drop(self.other.get_or_insert_with(|| document.what())),
        }
        Ok(())
    }

    /// Handles an object, if it is in the scope. Another document of the same object counts once with it.
    fn add(&mut self, origin: Origin, object: Object, crd: &Crd, scope: &Scope) -> Result<(), FoundError> {
        let Resource { group, plural, .. } = crd.resource();
        let objects = self.objects.entry((group, plural)).or_default();
        if object.namespace().is_some() && !scope.contains(object.namespace()) {
            return Ok(());
        }
        let namespace = object.namespace().map(str::to_owned);
        match self.known.entry((crd.name().to_owned(), namespace, object.name().to_owned())) {
            Entry::Occupied(known) => {
                let (index, first) = known.get();
                if *objects[*index].json() != *object.json() {
                    let object = format!("{} {}", crd.kind(), object.identity());
                    return Err(FoundError::Ambiguous { origin, object, first: first.clone() });
                }
            }
            Entry::Vacant(new) => {
                new.insert((objects.len(), origin));
                objects.push(object);
            }
        }
        Ok(())
    }
}
