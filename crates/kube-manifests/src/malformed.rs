//! Why a text is not a manifest, without values of it.

use kube_structural_schema::json::{DEPTH, Json};

/// What a document may need in memory. A text of some bytes may need a hundred times as many, and an alias
/// any number.
pub(crate) const MEMORY: usize = 160 << 20;
/// The parser of YAML holds what is open, and Go's decoder of JSON, through which every object goes, stops
/// here.
pub(crate) const OPEN: usize = 10_000;

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// Neither YAML nor JSON.
    #[error("is not text in UTF-8, nor in UTF-16 with a byte order mark")]
    Binary,
    /// Text that Helm renders, and that is neither YAML nor JSON before.
    #[error("line {line}: is a Helm template; render it first")]
    Template {
        /// Counted from 1.
        line: usize,
    },
    /// Text that is not YAML, or YAML that has no form in JSON.
    #[error("line {line}: {problem}")]
    Yaml {
        /// Counted from 1.
        line: usize,
        /// What is wrong there.
        problem: String,
    },
    /// Text that is not JSON.
    #[error("is not JSON: {0}")]
    Json(String),
    /// A document that needs more memory than is given to any, such as an alias of aliases of aliases.
    #[error("holds a document that is too large (over {} MiB in memory); split it", MEMORY >> 20)]
    TooLarge,
    /// YAML that is nested more deeply than Kubernetes reads.
    #[error("is nested more than {} levels deep", OPEN)]
    Endless,
    /// An item of a list that is a list itself. kubectl refuses all of the document.
    #[error("is a list in a list, which kubectl refuses; put its items into the outer list")]
    ListInList,
    /// An item of a list that is null, a list or a scalar. kubectl refuses all of the document.
    #[error("is no object, which kubectl refuses in a list; remove it")]
    NoObject,
    /// A list with something else in place of its items, such as null. kubectl refuses it.
    #[error("is a list without a list of items, which kubectl refuses; write items: []")]
    NoItems,
    /// A document that is nested too deeply; the others of the file are read. This is its outline.
    #[error("{} is nested more than {DEPTH} levels deep", named(.0))]
    TooDeep(Json),
}

/// What an outline is of.
fn named(outline: &Json) -> String {
    let text = |pointer: &str| outline.pointer(pointer).and_then(|text| text.as_str()).unwrap_or_default();
    match (text("/kind"), text("/metadata/namespace"), text("/metadata/name")) {
        (_, _, "") => "a document without a name".to_owned(),
        (kind, "", name) => format!("{kind} {name}"),
        (kind, namespace, name) => format!("{kind} {namespace}/{name}"),
    }
}
