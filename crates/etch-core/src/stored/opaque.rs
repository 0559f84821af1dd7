//! What a stored value is that cannot be read.

use kube_structural_schema::json::DEPTH;

/// Why a value cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
pub enum Opaque {
    /// The API server encrypts what it stores; only it has the key.
    #[error("encrypted")]
    Encrypted,
    /// Neither JSON nor CBOR.
    #[error("neither JSON nor CBOR")]
    Unknown,
    /// It is nested deeper than [`DEPTH`].
    #[error("nested more than {DEPTH} levels deep")]
    TooDeep,
}
