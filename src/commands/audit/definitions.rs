//! The CRDs that are audited, and why one cannot be read.

use anyhow::bail;
use etch::cluster::{Cluster, ObjectSource, Shown};
use etch_core::crd::Crd;
use etch_core::object::Identity;
use etch_core::request::resources::crds;
use etch_core::scope::Scope;
use etch_core::stored::{decode, definition};
use futures::TryStreamExt;
use kube_structural_schema::json::Json;

/// A CRD of the cluster, with its document; `None` if there is none.
pub(super) async fn in_cluster(cluster: &Cluster, name: &str) -> Result<Option<(Crd, Json)>, String> {
    let Some(document) = cluster.crd(name).await.map_err(|error| error.to_string())? else { return Ok(None) };
    Ok(Some((Crd::read(&document).map_err(|error| error.to_string())?, document)))
}

/// The CRDs of a snapshot by name: these, or all. `begin` returns what is known of one before its objects are
/// read, or `None` to leave it out, and `failed` what is known of one that cannot be read.
pub(super) async fn in_snapshot<T>(
    snapshot: &ObjectSource,
    names: &[String],
    begin: impl Fn(&Crd, &Json) -> anyhow::Result<Option<T>>,
    failed: impl Fn(&str, String) -> T,
) -> anyhow::Result<Vec<(Option<Crd>, T)>> {
    let mut all = Vec::new();
    let mut pages = snapshot.pages(vec![crds()], &Scope::All);
    while let Some(page) = pages.try_next().await? {
        for shown in page.objects {
            let Shown::Stored(Identity { name, .. }, value) = shown else { continue };
            if !names.is_empty() && !names.contains(&name) {
                continue;
            }
            let document = decode(&value.bytes).map(definition).map_err(|opaque| opaque.to_string());
            let read = document.and_then(|document| {
                Ok((Crd::read(&document).map_err(|error| error.to_string())?, document))
            });
            match read {
                Err(error) => all.push((name.clone(), None, failed(&name, error))),
                Ok((crd, document)) => {
                    let begun = begin(&crd, &document)?;
                    all.extend(begun.map(|begun| (name, Some(crd), begun)));
                }
            }
        }
    }
    if let Some(name) = names.iter().find(|name| !all.iter().any(|(known, ..)| known == *name)) {
        bail!("the snapshot has no CRD {name}; give its full name, such as crontabs.stable.example.com");
    }
    all.sort_by(|(a, ..), (b, ..)| a.cmp(b));
    Ok(all.into_iter().map(|(_, crd, begun)| (crd, begun)).collect())
}
