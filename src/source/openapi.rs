//! OpenAPI v3 documents from files, as `kubectl get --raw /openapi/v3/…` saves them and as Kubernetes keeps
//! them.

use std::io::Read;
use std::path::PathBuf;

use super::files::failed;
use super::{Origin, Reason, SourceError, documents};
use etch_lint::published::Document;

/// A document, and where it is from.
#[derive(Debug)]
pub struct OpenApi {
    /// Where it comes from.
    pub origin: Origin,
    /// Its types.
    pub document: Document,
}

/// Reads the documents that the paths lead to; see [`documents`]. In a folder there may be some without
/// types, such as that of `/version`.
///
/// # Errors
/// The first document that is none of OpenAPI v3, and a path that leads to no type.
pub fn openapi(paths: &[PathBuf], stdin: &mut dyn Read) -> Result<Vec<OpenApi>, SourceError> {
    let mut all = Vec::new();
    for path in paths {
        let before = all.len();
        for super::Document { origin, json, .. } in documents(std::slice::from_ref(path), stdin)? {
            match Document::read(json) {
                Ok(document) if document.types().next().is_none() => {}
                Ok(document) => all.push(OpenApi { origin, document }),
                Err(error) => return Err(SourceError { origin, reason: Reason::OpenApi(error) }),
            }
        }
        if all.len() == before {
            return Err(failed(path, Reason::NoType));
        }
    }
    Ok(all)
}
