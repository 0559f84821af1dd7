//! Why a text is no manifest, without values of it.

/// What a document may need in memory. A text of some bytes may ask for a hundred times as many, and an alias
/// for any.
pub(crate) const MEMORY: usize = 160 << 20;
/// Go's decoder of JSON, through which every object goes, stops here.
pub(crate) const DEPTH: usize = 10_000;

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
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
    /// Text that is no YAML, or YAML that has no form in JSON.
    #[error("line {line}: {problem}")]
    Yaml {
        /// Counted from 1.
        line: usize,
        /// What is wrong there.
        problem: String,
    },
    /// Text that is no JSON.
    #[error("is not JSON: {0}")]
    Json(String),
    /// A document that needs more memory than is given to any, such as an alias of aliases of aliases.
    #[error("holds a document that is too large (over {} MiB in memory); split it", MEMORY >> 20)]
    TooLarge,
    /// Nested more deeply than Kubernetes reads.
    #[error("is nested more than {} levels deep", DEPTH)]
    TooDeep,
}
