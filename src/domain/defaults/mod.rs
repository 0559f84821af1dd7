//! What the API server makes of an object on its way from etcd to the reader.
//! It must not know who owns a value or whether it should be stored.

mod digest;
mod fill;
mod find;
mod tree;

pub use digest::Digest;
pub use fill::fill;
pub use find::{filled, gaps};
pub use tree::Node;
