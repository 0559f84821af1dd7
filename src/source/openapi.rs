//! OpenAPI v3 documents from files, as `kubectl get --raw /openapi/v3/…` saves them and as Kubernetes keeps
//! them.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::files::failed;
use super::{DistinctFiles, Origin, Reason, SourceError};
use etch_lint::published::Document;

/// A document, and where it is from.
#[derive(Debug)]
pub struct OpenApi {
    /// Where it comes from.
    pub origin: Origin,
    /// Its types.
    pub document: Document,
}

/// Reads the documents that the paths lead to; see [`documents`](super::documents). In a folder there may be
/// some without types, such as that of `/version`.
///
/// # Errors
/// The first document that is none of OpenAPI v3, and a path that leads to no type.
pub fn openapi(paths: &[PathBuf], stdin: &mut dyn Read) -> Result<Vec<OpenApi>, SourceError> {
    let (mut files, mut all) = (DistinctFiles::default(), Vec::new());
    for path in paths {
        all.extend(files.openapi(path, stdin)?);
    }
    Ok(all)
}

impl DistinctFiles {
    /// Reads the documents that a path leads to; see [`openapi`].
    ///
    /// # Errors
    /// The first document that is none of OpenAPI v3, and a path that leads to no type.
    pub fn openapi(&mut self, path: &Path, stdin: &mut dyn Read) -> Result<Vec<OpenApi>, SourceError> {
        let mut all = Vec::new();
        for super::Document { origin, json, .. } in self.documents(path, stdin)? {
            match Document::read(json) {
                Ok(document) if document.types().next().is_none() => {}
                Ok(document) => all.push(OpenApi { origin, document }),
                Err(error) => return Err(SourceError { origin, reason: Reason::OpenApi(error) }),
            }
        }
        match all.is_empty() && !self.has_repeated() {
            true => Err(failed(path, Reason::NoType)),
            false => Ok(all),
        }
    }
}
