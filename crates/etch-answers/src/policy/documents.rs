//! DefaultsPolicies in documents, and in the cluster.

use etch_admission::installed_crds;
use etch_core::api::{DefaultsPolicySpec, GROUP, Policies, counting};
use etch_core::crd::Crd;
use etch_core::duration;
use kube_manifests::{Document, Origin};
use kube_structural_schema::json::Json;
use kube_structural_schema::mismatch::without_values;
use kube_structural_schema::path::{Path, Trail};
use kube_structural_schema::prune;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::once::{Ambiguous, Once};

/// Why documents give no policies.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// One is none that a server takes, or that this version can read.
    #[error("{0}: {1}")]
    Unreadable(Origin, String),
    /// Two of one name differ.
    #[error(transparent)]
    Ambiguous(#[from] Ambiguous),
}

/// What counts of each policy of a cluster.
pub fn counted<'a>(documents: impl IntoIterator<Item = &'a Json>) -> Policies {
    let name = |policy: &Json| policy["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    documents.into_iter().map(|policy| (name(policy), counting(&policy["spec"]))).collect()
}

/// The policies among documents of files. A field that no policy has is an error there, at any depth, as it
/// is for kubectl: the policy without it may select everything.
///
/// # Errors
/// The first policy that a server refuses or this version cannot read.
pub fn of_documents(documents: &[Document]) -> Result<Policies, PolicyError> {
    let schema = schema();
    let (mut found, mut once) = (Policies::new(), Once::default());
    for document in documents.iter().filter(|document| is_policy(document)) {
        let unreadable = |why| PolicyError::Unreadable(document.origin.clone(), why);
        let name = document.json["metadata"]["name"].as_str().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| unreadable("metadata.name is missing".to_owned()))?;
        let spec = read_spec(&document.json, &schema).map_err(unreadable)?;
        if once.is_first(format!("DefaultsPolicy {name}"), document)? {
            found.insert(name.to_owned(), spec);
        }
    }
    Ok(found)
}

fn is_policy(document: &Document) -> bool {
    let group = document.api_version().split_once('/').map(|(group, _)| group);
    document.kind() == "DefaultsPolicy" && group == Some(GROUP)
}

/// DefaultsPolicy as it is installed.
fn schema() -> Crd {
    let crds = installed_crds::crds();
    let crd = crds.iter().find(|crd| crd.spec.names.kind == "DefaultsPolicy");
    let document = serde_json::to_value(crd).expect("a CRD is JSON");
    Crd::read(&document.into()).expect("it is installed")
}

/// The spec of a policy without a field that no policy has; or what is wrong with it.
fn read_spec(document: &Json, crd: &Crd) -> Result<DefaultsPolicySpec, String> {
    let spec = &document["spec"];
    let fields = spec.as_object().ok_or("spec is missing, or no object")?;
    let mut unknown: Option<Path> = None;
    prune(&mut document.clone(), &crd.storage().schema, true, &mut |at: &Trail<'_>| {
        unknown.get_or_insert_with(|| at.to_path());
    });
    if let Some(unknown) = unknown {
        return Err(format!("{}: unknown field", unknown.to_string().trim_start_matches('.')));
    }
    // Field by field, since the first error of the whole has no place.
    for (name, value) in fields {
        let alone = Map::from_iter([(name.clone(), value.clone())]);
        if let Err(error) = DefaultsPolicySpec::deserialize(&Value::Object(alone)) {
            return Err(format!("spec.{name} cannot be read: {}", without_values(&error)));
        }
    }
    let read =
        DefaultsPolicySpec::deserialize(spec).map_err(|error| format!("spec: {}", without_values(&error)))?;
    if let Some(settle) = &read.settle {
        duration::parse(settle).map_err(|error| format!("spec.settle: {error}"))?;
    }
    Ok(read)
}
