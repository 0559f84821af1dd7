//! The subcommands, one file each.
//! They connect what was typed with the library, which decides.

pub(crate) mod admit;
pub(crate) mod audit;
pub(crate) mod clean;
pub(crate) mod completions;
pub(crate) mod crds;
mod emit;
mod etcd;
pub(crate) mod explain;
pub(crate) mod fill;
pub(crate) mod global;
pub(crate) mod impact;
pub(crate) mod lint;
pub(crate) mod man;
mod namespace;
mod openapi;
pub(crate) mod outcome;
pub(crate) mod persist;
pub(crate) mod plan;
mod policy;
mod program;
pub(crate) mod rbac;
pub(crate) mod resume;
pub(crate) mod revert;
pub(crate) mod run;
mod signals;
mod skipped;
pub(crate) mod status;
pub(crate) mod streams;
mod values;
pub(crate) mod version;

use std::io;
use std::path::{Path, PathBuf};

use crate::commands::streams::note;
use anyhow::{Context, Result, bail};
use etch::cluster::{Cluster, ObjectSource, ReadError};
use etch::source::{self, Document};
use etch_core::crd::{Crd, Resource};
use etch_core::object::Object;
use etch_core::scope::Scope;
use futures::TryStreamExt;
use kube_structural_schema::json::DEPTH;

/// The stack of every thread that reads objects: a walk through a document recurses, and the deepest one that
/// is read ([`DEPTH`]) takes a third of it in a build that is not optimized.
pub(crate) const STACK: usize = 16 << 20;

/// What runs requests.
pub(crate) fn asynchronous() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().thread_stack_size(STACK).enable_all().build()
}

/// The names of the CRDs that were typed, each once, or of all where none was.
pub(crate) async fn crds_named(cluster: &Cluster, typed: &[String]) -> Result<Vec<String>> {
    if typed.is_empty() {
        return cluster.crd_names().await.context("cannot list the CRDs");
    }
    let mut names = Vec::new();
    for typed in typed {
        let name = cluster.resolve(typed).await?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Visits every object of a resource; holds a page of them at a time. It fails at one that is nested too
/// deeply.
pub(crate) async fn each(
    cluster: &Cluster,
    resource: &Resource,
    visit: &mut dyn FnMut(Object),
) -> Result<()> {
    let source = ObjectSource::from(cluster.clone());
    let mut pages = source.pages(vec![resource.clone()], &Scope::All);
    while let Some(page) = pages.try_next().await.with_context(|| format!("list {resource}"))? {
        for object in page.views() {
            if object.is_too_deep() {
                bail!("{resource} {} is nested more than {DEPTH} levels deep", object.identity());
            }
            visit(object);
        }
    }
    Ok(())
}

/// Makes sure that the API server answers requests at the storage version, and with the CRD's own objects. If
/// Etch may not read APIServices, the latter is taken for granted.
pub(crate) async fn serves_its_objects(cluster: &Cluster, crd: &Crd) -> Result<()> {
    if !crd.storage().served {
        bail!(
            "the storage version {} is not served, so its objects cannot be read there: serve it, or make a \
             served version the storage version",
            crd.storage().name
        );
    }
    if let Some(shadowed) = crd.shadowed() {
        bail!("{shadowed}");
    }
    match cluster.served_elsewhere(&crd.into()).await {
        Ok(Some(elsewhere)) => bail!("{elsewhere}"),
        Err(error) if error.code() != Some(403) => {
            Err(error).context("cannot read the APIServices of its group")
        }
        Ok(None) | Err(_) => Ok(()),
    }
}

/// The documents before an upgrade.
pub(crate) struct Before {
    pub(crate) documents: Vec<Document>,
    /// The paths after the upgrade at which a revision has nothing: what is there now is new.
    pub(crate) lacks: Vec<PathBuf>,
}

/// The documents before an upgrade: those of files, or of a revision at the paths of the files after it.
/// Paths at which the revision has nothing are noted.
pub(crate) fn documents_before(
    paths: &[PathBuf],
    new: &[PathBuf],
    stdin: &mut dyn io::Read,
) -> Result<Before> {
    let revisions = paths.iter().filter_map(|path| source::git::revision(path)).collect::<Vec<_>>();
    let revision = match (&revisions[..], paths.len()) {
        ([], _) => return Ok(Before { documents: source::documents(paths, stdin)?, lacks: Vec::new() }),
        ([revision], 1) => revision,
        _ => bail!("git:REVISION takes the place of files: give --old once"),
    };
    let (documents, lacks) = source::git::documents(revision, new)?;
    for path in &lacks {
        let path = path.display().to_string();
        note(&format!("git:{revision} has no manifest at {}: its CRDs count as new", path))?;
    }
    Ok(Before { documents, lacks })
}

/// The error that the files contain none of what was asked for, with what they contain instead.
pub(crate) fn none_of(what: &str, paths: &[PathBuf], found: Option<String>) -> String {
    let name = |path: &PathBuf| match path == Path::new("-") {
        true => "stdin".to_owned(),
        false => path.display().to_string(),
    };
    let paths: Vec<_> = paths.iter().map(name).collect();
    let found = found.map(|found| format!(": found {found}")).unwrap_or_default();
    format!("{}: contains no {what}{found}", paths.join(", "))
}

/// Fails if more than one argument is `-`.
pub(crate) fn one_stdin<'a>(paths: impl IntoIterator<Item = &'a PathBuf>) -> Result<()> {
    if paths.into_iter().filter(|path| *path == Path::new("-")).count() > 1 {
        bail!("- can be read only once");
    }
    Ok(())
}

/// The error that objects cannot be listed.
pub(crate) fn of_list(error: ReadError) -> anyhow::Error {
    match error {
        ReadError::Call(error) => anyhow::Error::from(error).context("cannot list the objects"),
        error => error.into(),
    }
}

/// Several failures as one error; each of them is printed on a line of its own.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub(crate) struct Failures(pub(crate) Vec<String>);

/// Several failures as one error.
pub(crate) fn failure(failures: Vec<String>) -> anyhow::Error {
    Failures(failures).into()
}

#[cfg(test)]
mod tests {
    use etch_answers::failures::error_text;
    use etch_core::call_error::CallError;
    use etch_core::refusal::Refusal;

    use super::*;

    #[test]
    fn an_error_of_a_list_names_its_cause() {
        let refused = CallError::Refused(Box::new(Refusal::read(500, None, b"{}")));
        let error = of_list(ReadError::Call(refused));
        assert_eq!(error_text(&*error), "cannot list the objects: the API server answered 500");
        assert!(error.chain().any(|cause| cause.is::<CallError>()));
    }
}
