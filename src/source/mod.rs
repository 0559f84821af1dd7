//! CRDs and objects from files, folders and standard input: YAML and JSON, of many documents, and lists; Go
//! packages. It holds one document at a time.

mod distinct;
mod files;
pub mod git;
pub mod go;
mod openapi;

use std::io::Read;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use etch_answers::documents::{Embedded, EmbeddedError, Reason, SourceError, embedded};

pub use distinct::DistinctFiles;
pub use kube_manifests::{Document, Origin};
pub use openapi::{OpenApi, openapi};

/// The maximum size of a file; a larger one is refused before it is read.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// How the file begins that Git LFS commits in place of another one. It is valid YAML.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// Reads every document that the paths lead to, and passes it to the visitor together with the errors on the
/// way, until the visitor breaks off.
///
/// A folder stands for the `.yaml`, `.yml` and `.json` files in it and below, in the order of their names;
/// hidden ones and links to folders are passed over. `-` is `stdin`. A file to which several paths lead is
/// read once. The items of a list are documents of their own. Documents that are null or empty are none.
/// After an error the rest of that file is skipped, unless the error is that a document is nested too deeply.
pub fn each(
    paths: &[PathBuf],
    stdin: &mut dyn Read,
    visit: &mut dyn FnMut(Result<Document, SourceError>) -> ControlFlow<()>,
) {
    let mut files = DistinctFiles::default();
    for path in paths {
        if files.each(path, stdin, visit).is_break() {
            return;
        }
    }
}

/// All documents that the paths lead to; see [`each`].
///
/// # Errors
/// The first one.
pub fn documents(paths: &[PathBuf], stdin: &mut dyn Read) -> Result<Vec<Document>, SourceError> {
    let (mut files, mut found) = (DistinctFiles::default(), Vec::new());
    for path in paths {
        found.extend(files.documents(path, stdin)?);
    }
    Ok(found)
}

impl DistinctFiles {
    /// Reads every document that a path leads to; see [`each`].
    pub fn each(
        &mut self,
        path: &Path,
        stdin: &mut dyn Read,
        visit: &mut dyn FnMut(Result<Document, SourceError>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        self.has_repeated = false;
        if path == Path::new("-") {
            return file("stdin", Ok(stdin), visit);
        }
        files::below(path, &mut |found| match found {
            Ok(path) if !self.is_new(path) => ControlFlow::Continue(()),
            Ok(path) => {
                let name = path.to_string_lossy();
                match files::open(path) {
                    Ok(mut opened) => file(&name, Ok(&mut opened), visit),
                    Err(reason) => file(&name, Err(reason), visit),
                }
            }
            Err(error) => visit(Err(error)),
        })
    }

    /// All documents that a path leads to.
    ///
    /// # Errors
    /// The first one.
    pub fn documents(&mut self, path: &Path, stdin: &mut dyn Read) -> Result<Vec<Document>, SourceError> {
        let mut found = Ok(Vec::new());
        // What breaks it off is the error.
        let _ = self.each(path, stdin, &mut |document| {
            match (document, &mut found) {
                (Ok(document), Ok(documents)) => documents.push(document),
                (Err(error), _) => {
                    found = Err(error);
                    return ControlFlow::Break(());
                }
                (Ok(_), Err(_)) => {}
            }
            ControlFlow::Continue(())
        });
        found
    }
}

/// Reads one file.
fn file(
    name: &str,
    reader: Result<&mut dyn Read, Reason>,
    visit: &mut dyn FnMut(Result<Document, SourceError>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    match reader.and_then(bytes) {
        Ok(bytes) => kube_manifests::read(name, bytes, &mut |document| {
            visit(document.map_err(|(origin, malformed)| SourceError { origin, reason: malformed.into() }))
        }),
        Err(reason) => visit(Err(files::failed(Path::new(name), reason))),
    }
}

fn bytes(reader: &mut dyn Read) -> Result<Vec<u8>, Reason> {
    let mut bytes = Vec::new();
    reader.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(Reason::Read)?;
    match bytes {
        bytes if bytes.len() as u64 > MAX_FILE_BYTES => Err(Reason::TooLong),
        bytes if bytes.starts_with(LFS_POINTER) => Err(Reason::LfsPointer),
        bytes => Ok(bytes),
    }
}

/// Reads all EmbeddedSchemas that the paths lead to, and passes over other documents. `-` is `stdin`.
///
/// # Errors
/// The first thing that is wrong.
pub fn embedded_schemas(paths: &[PathBuf], stdin: &mut dyn Read) -> Result<Vec<Embedded>, EmbeddedError> {
    embedded(documents(paths, stdin)?)
}

#[cfg(test)]
mod tests;
