//! An error of the API server, and its place in the document.

use serde_json::Value;

use kube_crd_validation::crd::Release;
use kube_structural_schema::finding::Kind;

/// An error of the API server, or of Etch where it is about an EmbeddedSchema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The place, in the server's spelling.
    pub field: String,
    /// The kind of error; `None` if the CRD cannot even be decoded, and for an EmbeddedSchema.
    pub kind: Option<Kind>,
    /// The server's words.
    pub detail: String,
    /// The releases that answer so, if other releases in question do not.
    pub releases: Vec<Release>,
    /// The way to the place in the document, as far as it is written there.
    pub place: Vec<Part>,
}

/// A step into a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A field.
    Field(String),
    /// An item, counted from 0.
    Item(usize),
}

/// A place in a document, as strict decoding spells it.
pub(super) fn spelled(place: &[Part]) -> String {
    let mut text = String::new();
    for part in place {
        match part {
            Part::Field(name) if text.is_empty() => text.push_str(name),
            Part::Field(name) => text.push_str(&format!(".{name}")),
            Part::Item(index) => text.push_str(&format!("[{index}]")),
        }
    }
    text
}

/// The version that a place of a CRD is in: its place in the list, and its name.
pub(super) fn version_at<'c>(crd: &'c Value, place: &[Part]) -> (Option<usize>, &'c str) {
    match place {
        [Part::Field(spec), Part::Field(versions), Part::Item(index), ..]
            if spec == "spec" && versions == "versions" =>
        {
            (Some(*index), crd["spec"]["versions"][*index]["name"].as_str().unwrap_or_default())
        }
        _ => (None, ""),
    }
}
