//! What commands skip in files, each with a note: what has a use for kustomize only.

use std::io;

use etch::source::Document;
use serde_json::Value;

use crate::commands::streams::note;

/// The documents without parts of CRDs.
pub(crate) fn without_parts(documents: Vec<Document>) -> io::Result<Vec<Document>> {
    let (parts, others): (Vec<_>, Vec<_>) = documents.into_iter().partition(Document::is_part_of_crd);
    parts.iter().try_for_each(|part| note_skipped(&part_of_crd(part)))?;
    Ok(others)
}

/// A part of a CRD, in the words of a note.
pub(crate) fn part_of_crd(document: &Document) -> String {
    let name = document.json.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    format!("{}: a part of the CRD {name}", document.origin)
}

pub(crate) fn note_skipped(skipped: &str) -> io::Result<()> {
    note(&format!("skipped: {skipped}"))
}
