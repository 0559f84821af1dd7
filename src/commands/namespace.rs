//! Whether the namespace that was named is there.

use std::io;

use anyhow::bail;
use etch::cluster::Cluster;
use etch_core::scope::Scope;

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

/// Notes that a snapshot contains no object of the CRDs in the namespace that was named, which may be
/// mistyped.
pub(crate) fn note_no_objects(scope: &Scope) -> io::Result<()> {
    scope.namespace().map_or(Ok(()), |namespace| {
        note(&format!("no objects of these CRDs found in namespace {namespace:?} of the snapshot"))
    })
}
