//! The CRDs of files before and after an upgrade, and what they are in a cluster.

use std::collections::BTreeMap;

use etch_core::api::{Labels, labels};
use etch_core::crd::{Crd, Version};
use kube_manifests::{Document, Origin};
use kube_structural_schema::json::Json;
use kube_structural_schema::schema::DEEPEST;
use serde_json::{Value, json};

use crate::documents::{self, SourceError};
use crate::first;
use crate::once::{Ambiguous, Once};

/// A CRD from a file.
#[derive(Debug)]
pub struct Given {
    /// The CRD.
    pub crd: Crd,
    /// Its labels.
    pub labels: Labels,
    /// The document.
    pub written: Json,
    /// Where the document is.
    pub origin: Origin,
}

/// Why files give no CRDs.
#[derive(Debug, thiserror::Error)]
pub enum GivenError {
    /// A document that cannot be read as a CRD.
    #[error(transparent)]
    Document(#[from] SourceError),
    /// Two that differ.
    #[error(transparent)]
    Ambiguous(#[from] Ambiguous),
    /// A schema that is nested too deeply.
    #[error("{origin}: the schema of version {version} is nested more than {DEEPEST} levels deep")]
    TooDeep {
        /// The document.
        origin: Origin,
        /// The version.
        version: String,
    },
}

/// A CRD of `--old` whose objects the cluster does not serve.
#[derive(Debug, thiserror::Error)]
#[error(
    "{crd}: the cluster does not serve {version}, the storage version of --old; without --old the CRD of the \
     cluster is the one that is compared"
)]
pub struct NotServed {
    crd: String,
    version: String,
}

/// The CRDs among documents, by name.
///
/// # Errors
/// See [`GivenError`].
pub fn among(documents: Vec<Document>) -> Result<BTreeMap<String, Given>, GivenError> {
    let (mut found, mut once) = (BTreeMap::new(), Once::default());
    for document in documents.into_iter().filter(Document::is_crd) {
        let crd = documents::crd(&document)?;
        if !once.is_first(format!("CRD {}", crd.name()), &document)? {
            continue;
        }
        if let Some(Version { name, .. }) =
            crd.versions().iter().find(|version| version.schema.depth() > DEEPEST)
        {
            return Err(GivenError::TooDeep { origin: document.origin, version: name.clone() });
        }
        let labels = labels(&document.json);
        let Document { json: written, origin, .. } = document;
        found.insert(crd.name().to_owned(), Given { crd, labels, written, origin });
    }
    Ok(found)
}

/// The CRDs that only the old files have.
pub fn gone(old: Option<&BTreeMap<String, Given>>, new: &BTreeMap<String, Given>) -> Vec<String> {
    let gone = old.into_iter().flat_map(BTreeMap::keys).filter(|name| !new.contains_key(*name));
    gone.cloned().collect()
}

/// What their absence may mean: where a tool prunes what its manifests no longer have, it is their end.
pub fn about_gone(gone: &[String]) -> Option<String> {
    let names = first(gone);
    let means = "which --old has: a tool that prunes deletes such a CRD with all its objects";
    (!gone.is_empty()).then(|| format!("-f lacks {names}, {means}"))
}

/// The CRD of a file as the cluster has it before the upgrade, with the versions at which objects may be
/// stored. Only `status.storedVersions` shows these: where it lists none, as in manifests, any served version
/// is one.
pub fn before_upgrade(written: &Json, present: Option<&Json>) -> Json {
    let mut crd = match present {
        Some(present) => with_status(written, present),
        None => written.clone(),
    };
    if crd["status"]["storedVersions"].as_array().is_none_or(Vec::is_empty) {
        let versions = written["spec"]["versions"].as_array().into_iter().flatten();
        let is_stored = |version: &&Value| version["served"] == true || version["storage"] == true;
        let names: Vec<Value> = versions.filter(is_stored).map(|version| version["name"].clone()).collect();
        crd["status"] = json!({ "storedVersions": names });
    }
    crd
}

/// A CRD from a file with the status that the cluster has.
pub fn with_status(crd: &Json, installed: &Json) -> Json {
    let mut crd = crd.clone();
    if let Some(fields) = crd.as_object_mut() {
        fields.insert("status".to_owned(), installed["status"].clone());
    }
    crd
}

/// The labels that a CRD has after the upgrade: those of the cluster stay, except where the upgrade has
/// others.
pub fn labels_after(present: Option<&Json>, new: &Labels) -> Labels {
    let mut labels = present.map(|present| labels(present)).unwrap_or_default();
    labels.extend(new.clone());
    labels
}

/// Makes sure that the cluster serves objects in the terms of the old CRD, where that came from a file.
///
/// # Errors
/// It does not.
pub fn is_served(old: &Crd, served: &Crd) -> Result<(), NotServed> {
    let version = &old.storage().name;
    match served.version(version).is_some_and(|version| version.served) {
        true => Ok(()),
        false => Err(NotServed { crd: old.name().to_owned(), version: version.clone() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_versions_that_may_be_stored_are_those_of_the_cluster_or_else_all_that_are_served() {
        let version = |name: &str, served: bool, storage: bool| {
            let schema = json!({ "openAPIV3Schema": { "type": "object" } });
            json!({ "name": name, "served": served, "storage": storage, "schema": schema })
        };
        let versions =
            [version("v1alpha1", false, false), version("v1beta1", true, false), version("v1", true, true)];
        let file = Json::from(json!({
            "metadata": { "name": "things.example.com" },
            "spec": {
                "group": "example.com", "names": { "kind": "Thing", "plural": "things" },
                "versions": versions,
            },
        }));
        let elsewhere = |file: &Json, present: Option<&Json>| {
            let crd = Crd::read(&before_upgrade(file, present)).expect("a CRD");
            crd.versions_elsewhere().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(elsewhere(&file, None), ["v1beta1"]);
        let with = |stored: Value| {
            let mut crd = file.clone();
            crd["status"] = json!({ "storedVersions": stored });
            crd
        };
        let (only, old) = (with(json!(["v1"])), with(json!(["v1alpha1", "v1"])));
        assert_eq!(elsewhere(&with(json!([])), None), ["v1beta1"], "as older controller-gen writes it");
        assert_eq!(elsewhere(&only, None), [""; 0]);
        assert_eq!(elsewhere(&file, Some(&old)), ["v1alpha1"]);
        assert_eq!(elsewhere(&only, Some(&old)), ["v1alpha1"], "the cluster knows better than the file");
    }
}
