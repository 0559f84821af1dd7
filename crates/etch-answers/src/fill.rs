//! `etch fill`: objects as an API server would read them.

use std::collections::HashMap;
use std::io::{self, Write};

use etch_core::crd::Crd;
use etch_core::object::Object;
use etch_core::words;
use etch_lint::published::{Document, TypeName};
use kube_structural_schema::compile::Compiled;
use kube_structural_schema::defaults::meta::dropped_of_object;
use kube_structural_schema::defaults::{added, hand_over, hand_over_preserving, read, read_preserving};
use kube_structural_schema::json::{Json, store_numbers};
use kube_structural_schema::path::{Path, Trail};
use serde_json::{Value, json};

use crate::{plain, write_document};

/// All types that are known.
#[derive(Debug, Default)]
pub struct Types {
    /// The CRDs.
    pub crds: Vec<Crd>,
    /// What API servers publish.
    pub documents: Vec<Document>,
    /// The schemas that were needed so far, ready for filling, by CRD and version.
    compiled: HashMap<(usize, String), Compiled>,
}

/// An object as it is read.
#[derive(Debug)]
pub struct Filled {
    object: Json,
    /// The topmost places that were filled in.
    defaults: Vec<Path>,
    /// The topmost fields that the schema does not know.
    dropped: Vec<Path>,
    /// The topmost values that metadata cannot have.
    misfits: Vec<Path>,
}

/// The type of an object.
pub fn type_of(object: &Object) -> TypeName {
    let text = |field: &str| object.json()[field].as_str().unwrap_or_default().to_owned();
    TypeName { api_version: text("apiVersion"), kind: text("kind") }
}

impl Filled {
    /// Writes it as a document of YAML; with `shows_defaults` each default is marked, and what was dropped is
    /// listed.
    ///
    /// # Errors
    /// What the writer answers.
    pub fn write_yaml(&self, out: &mut dyn Write, shows_defaults: bool) -> io::Result<()> {
        writeln!(out, "---")?;
        if !shows_defaults {
            return write_document(out, &self.object, &|_| None);
        }
        let unknown = self.dropped.iter().map(|path| (path, "the schema does not have it"));
        let misfits = self.misfits.iter().map(|path| (path, "metadata cannot have it"));
        for (path, why) in unknown.chain(misfits) {
            writeln!(out, "# dropped, because {why}: {}", plain(&path.to_string()))?;
        }
        let note = |at: &Trail<'_>| self.defaults.binary_search(&at.to_path()).is_ok().then_some("default");
        write_document(out, &self.object, &note)
    }
}

/// Objects in JSON: one by itself, and several in a List. With `shows_defaults` each is
/// `{object, defaults, dropped}`.
pub fn document(filled: Vec<Filled>, shows_defaults: bool) -> Json {
    let texts = |paths: &[Path]| paths.iter().map(Path::to_string).collect::<Vec<_>>();
    let dropped = |filled: &Filled| [texts(&filled.dropped), texts(&filled.misfits)].concat();
    let mut items: Vec<Json> = filled
        .into_iter()
        .map(|filled| match shows_defaults {
            false => filled.object,
            true => {
                let mut shown =
                    Json::from(json!({"defaults": texts(&filled.defaults), "dropped": dropped(&filled)}));
                shown["object"] = filled.object.into_inner();
                shown
            }
        })
        .collect();
    if items.len() == 1 {
        return items.remove(0);
    }
    let items = items.into_iter().map(Json::into_inner).collect();
    let mut list = Json::from(json!({"apiVersion": "v1", "kind": "List"}));
    list["items"] = Value::Array(items);
    list
}

impl Types {
    /// Whether a type is known.
    pub fn has(&self, name: &TypeName) -> bool {
        self.documents.iter().any(|document| document.describes(name))
            || self.crds.iter().any(|crd| crd.group() == name.group() && crd.kind() == name.kind)
    }

    /// The object as it is read.
    ///
    /// # Errors
    /// Why it cannot be, in a sentence.
    pub fn fill(&mut self, object: &Object) -> Result<Filled, String> {
        let name = type_of(object);
        let (mut filled, mut dropped, mut misfits) = (object.json().clone(), Vec::new(), Vec::new());
        let mut drop = |at: &Trail<'_>| dropped.push(at.to_path());
        if let Some(document) = self.documents.iter().find(|document| document.describes(&name)) {
            document.fill(&mut filled, &name, &mut drop).map_err(|error| error.to_string())?;
        } else {
            let (group, version) = name.api_version.rsplit_once('/').unwrap_or(("", &name.api_version));
            let known = self.crds.iter().position(|crd| crd.group() == group && crd.kind() == name.kind);
            let index = known.ok_or_else(|| self.unknown(&name))?;
            let crd = &self.crds[index];
            let schema = crd.version(version).map(|version| &version.schema).ok_or_else(|| {
                let versions: Vec<_> = crd.versions().iter().map(|version| version.name.as_str()).collect();
                format!("{} has no version {version}; it has {}", crd.name(), versions.join(", "))
            })?;
            let compiled =
                self.compiled.entry((index, version.to_owned())).or_insert_with(|| Compiled::new(schema));
            let read = match crd.preserves_unknown_fields() {
                true => read_preserving(&mut filled, schema, compiled)
                    .and_then(|()| hand_over_preserving(&mut filled, schema)),
                false => read(&mut filled, schema, compiled, &mut drop)
                    .and_then(|()| hand_over(&mut filled, schema, compiled, &mut drop)),
            };
            read.map_err(|error| error.to_string())?;
            let mut report = |at: &Trail<'_>| misfits.push(at.to_path());
            dropped_of_object(object.json(), &filled, schema, &mut report);
        }
        // A default of a document may be `1.0`, which a server writes as `1`.
        store_numbers(&mut filled);
        let defaults = added(object.json(), &filled);
        misfits.retain(|path| !dropped.contains(path));
        Ok(Filled { object: filled, defaults, dropped, misfits })
    }

    fn unknown(&self, name: &TypeName) -> String {
        let crds = self.crds.iter().map(|crd| format!("{} of {}", crd.kind(), crd.group()));
        let documents = self.documents.iter().flat_map(Document::types);
        let mut known: Vec<String> =
            crds.chain(documents.map(|name| format!("{} of {}", name.kind, name.api_version))).collect();
        known.sort();
        known.dedup();
        const SHOWN: usize = 8;
        if known.is_empty() {
            return format!("the cluster publishes no schema of {name}");
        }
        format!(
            "no schema for {} of {}; there are schemas for {}",
            name.kind,
            name.api_version,
            words::first(&known, known.len() as u64, SHOWN)
        )
    }
}
