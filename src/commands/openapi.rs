//! Which published types a command works on: those of files, or of a cluster.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use etch::cluster::Cluster;
use etch::source;
use etch_lint::published::Document;
use etch_lint::published::index::OpenApiIndex;

use super::global::Global;

use crate::commands::streams::note;

/// The documents in files.
pub(crate) fn of_files(paths: &[PathBuf], stdin: &mut dyn Read) -> Result<Vec<Document>> {
    Ok(source::openapi(paths, stdin)?.into_iter().map(|found| found.document).collect())
}

/// The documents of a cluster, each read when it is asked for.
pub(crate) struct Live {
    cluster: Cluster,
    index: OpenApiIndex,
}

impl Live {
    /// Finds out which documents there are.
    pub(crate) async fn connect(global: &Global) -> Result<Self> {
        let cluster = Cluster::connect(&global.target()).await?;
        let index = cluster.openapi_index().await.context("what the API server publishes")?;
        Ok(Self { cluster, index })
    }

    /// The document of an API version; `None` if the server publishes none.
    pub(crate) async fn document(&self, api_version: &str) -> Result<Option<Document>> {
        Ok(self.cluster.openapi(&self.index, api_version).await?)
    }

    /// All documents, and why others cannot be read: the server of an aggregated API may not answer.
    pub(crate) async fn all(&self) -> (Vec<Document>, Vec<String>) {
        let (mut all, mut failures) = (Vec::new(), Vec::new());
        for api_version in self.index.api_versions() {
            match self.document(api_version).await {
                Ok(document) => all.extend(document),
                Err(error) => failures.push(error.to_string()),
            }
        }
        (all, failures)
    }

    /// The names of the CRDs. If they may not be listed there are none, and a note: their types cannot be
    /// distinguished from those of a release.
    pub(crate) async fn crds(&self) -> Result<Vec<String>> {
        match self.cluster.crd_names().await {
            Err(error) if error.code() == Some(403) => {
                let error = error.to_string();
                note(&format!("cannot list the CRDs, so their types are compared as well: {}", error))?;
                Ok(Vec::new())
            }
            answer => answer.context("cannot list the CRDs"),
        }
    }

    /// The documents with the types that a text may mean, and the text with the kind in place of what the
    /// cluster calls it: a plural or a short name.
    pub(crate) async fn called(&self, typed: &str) -> Result<(String, Vec<Document>)> {
        let (word, rest) = typed.split_at(typed.find('.').unwrap_or(typed.len()));
        let mut types = self.cluster.types_called(word).await?;
        let Some(kind) = types.first().map(|of| of.kind.clone()) else {
            bail!("the server doesn't have a resource type {word:?}");
        };
        types.retain(|of| of.kind == kind);
        let api_versions: BTreeSet<String> = types.into_iter().map(|of| of.api_version).collect();
        let mut documents = Vec::new();
        for api_version in api_versions {
            documents.extend(self.document(&api_version).await?);
        }
        Ok((format!("{kind}{rest}"), documents))
    }
}
