//! Which part of a cluster a command works on, by the namespace that was named.

use std::io::{self, Write};

use anyhow::bail;
use etch::cluster::Cluster;
use etch_core::crd::Crd;
use etch_core::scope::Scope;
use serde_json::Value;

use crate::commands::streams::note;

/// Fails if the namespace does not exist. If Etch may not read it, assumes that it does.
pub(crate) async fn exists(cluster: &Cluster, scope: &Scope) -> anyhow::Result<()> {
    if let Some(namespace) = scope.namespace()
        && !cluster.has_namespace(namespace).await?
    {
        bail!("namespace {namespace:?} not found");
    }
    Ok(())
}

/// Whether objects of a CRD can be in the scope.
///
/// # Errors
/// They cannot, although the CRD was named.
pub(crate) fn covers(scope: &Scope, crd: &Crd, is_named: bool) -> anyhow::Result<bool> {
    match scope.namespace() {
        Some(namespace) if !crd.is_namespaced() && is_named => {
            bail!("{} is cluster-scoped: remove --namespace {namespace}", crd.name())
        }
        _ => Ok(reaches(scope, crd)),
    }
}

/// Whether objects of a CRD can be in the scope.
pub(crate) fn reaches(scope: &Scope, crd: &Crd) -> bool {
    scope.namespace().is_none() || crd.is_namespaced()
}

/// Writes for people which namespace what follows is about.
pub(crate) fn write(out: &mut dyn Write, scope: &Scope) -> io::Result<()> {
    scope.namespace().map_or(Ok(()), |namespace| writeln!(out, "Namespace: {namespace}\n"))
}

/// Notes that a snapshot contains no object of the CRDs in the namespace that was named, which may be
/// mistyped.
pub(crate) fn note_no_objects(scope: &Scope) -> io::Result<()> {
    scope.namespace().map_or(Ok(()), |namespace| {
        note(&format!("no objects of these CRDs found in namespace {namespace:?} of the snapshot"))
    })
}

/// What is printed for programs, with the namespace that it is about.
pub(crate) fn in_document(mut document: Value, scope: &Scope) -> Value {
    if let Some(namespace) = scope.namespace() {
        document["namespace"] = namespace.into();
    }
    document
}

/// The scope in words, as the end of a sentence.
pub(crate) fn in_words(scope: &Scope) -> String {
    match scope.namespace() {
        Some(namespace) => format!("in namespace {namespace}"),
        None => "in all namespaces".to_owned(),
    }
}
