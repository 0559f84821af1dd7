//! Reads what permissions are needed for, from files or a cluster.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use etch::cluster::{Cluster, Target};
use etch::source;
use etch_answers::policy::counted;
use etch_answers::rbac::{Known, Needed, declaration};
use etch_core::api::{DefaultsPolicy, DefaultsPolicySpec, GROUP, Policies};
use etch_core::crd::Resource;
use etch_core::object::Object;
use etch_core::request::resources::{crds, embedded_schemas, policies};
use kube_structural_schema::json::Json;
use kube_structural_schema::mismatch::without_values;

use super::super::policy::from_files as from_policy_files;
use super::super::skipped::without_parts;
use super::super::{each, none_of};

/// A policy that was named.
pub(super) struct Named {
    pub(super) name: String,
    pub(super) spec: DefaultsPolicySpec,
    /// With all others of the cluster, unless it is of a file.
    pub(super) policies: Option<Policies>,
}

/// The EmbeddedSchemas and policies of the cluster, and its CRDs except Etch's own, whose objects have no
/// defaults.
pub(super) async fn live(target: &Target) -> anyhow::Result<Needed> {
    let mut crds_found = Vec::new();
    let cluster = Cluster::connect(target).await?;
    each(&cluster, &crds(), &mut |crd| crds_found.push(Known::read(crd.json()))).await?;
    let mut crds = crds_found.into_iter().collect::<Result<Vec<_>, _>>()?;
    let is_there =
        |there: &Resource| crds.iter().any(|crd| crd.group == there.group && crd.plural == there.plural);
    let policies = if is_there(&policies()) { Some(counted(&all_policies(&cluster).await?)) } else { None };
    let mut schemas = Vec::new();
    let there = embedded_schemas();
    if is_there(&there) {
        let mut read = |object: Object| {
            let name = format!("EmbeddedSchema {}", object.name());
            schemas.push(
                declaration(object.json()).context(name).map(|declared| (object.name().to_owned(), declared)),
            );
        };
        each(&cluster, &there, &mut read).await?;
    }
    crds.retain(|crd| crd.group != GROUP);
    Ok(Needed { crds, schemas: schemas.into_iter().collect::<anyhow::Result<_>>()?, policies })
}

pub(super) fn from_files(files: &[PathBuf]) -> anyhow::Result<Needed> {
    let mut found = Needed::default();
    let documents = source::documents(files, &mut io::stdin().lock())?;
    let other = documents.first().map(source::Document::what);
    for document in &without_parts(documents)? {
        let origin = || document.origin.to_string();
        if document.is_crd() {
            found.crds.push(Known::read(&document.json).with_context(origin)?);
        } else if document.kind() == "EmbeddedSchema" {
            let name = document.json["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            found.schemas.push((name, declaration(&document.json).with_context(origin)?));
        }
    }
    if found.crds.is_empty() && found.schemas.is_empty() {
        bail!(none_of("CustomResourceDefinition", files, other));
    }
    // What Etch may do with its own policies is fixed.
    found.crds.retain(|crd| crd.group != GROUP);
    Ok(found)
}

/// The policy in a file, if there is one of that name, or else in the cluster, by its name.
pub(super) async fn read_policy(policy: &str, target: &Target) -> anyhow::Result<Named> {
    // A policy may have such a name, too, and can be renamed; for a missing file, the error shows that the
    // file is missing.
    let is_file = policy.contains('/') || [".yaml", ".yml", ".json"].iter().any(|end| policy.ends_with(end));
    let found = |count: usize| {
        format!(
            "--policy {policy}: found {count} instead of one; name a file with one DefaultsPolicy, or one in \
             the cluster"
        )
    };
    if is_file || Path::new(policy).exists() {
        let mut read = from_policy_files(&[policy.into()], &mut io::empty()).context("--policy")?;
        return match (read.len(), read.pop_first()) {
            (1, Some((name, spec))) => Ok(Named { name, spec, policies: None }),
            (count, _) => bail!(found(count)),
        };
    }
    let documents = all_policies(&Cluster::connect(target).await?).await?;
    let named = documents.iter().find(|document| document["metadata"]["name"] == policy);
    let Some(document) = named else { bail!(found(0)) };
    let read: DefaultsPolicy = serde_json::from_slice(&document.to_vec())
        .map_err(|error| anyhow!("--policy {policy} cannot be read: {}", without_values(&error)))?;
    Ok(Named { name: policy.to_owned(), spec: read.spec, policies: Some(counted(&documents)) })
}

async fn all_policies(cluster: &Cluster) -> anyhow::Result<Vec<Json>> {
    let mut documents = Vec::new();
    each(cluster, &policies(), &mut |object| documents.push(object.json().clone())).await?;
    Ok(documents)
}
