//! What the API server makes of an object on its way from etcd to the reader.

mod added;
mod digest;
mod fill;
mod find;
pub mod meta;
mod nulls;
mod prune_defaults;
mod read;
mod tree;

pub use added::added;
pub use digest::Digest;
pub(crate) use fill::{fill, fits};
pub(crate) use find::{Below, filled, gaps, places};
pub(crate) use prune_defaults::{Standing, pruned};
pub use read::{ReadError, hand_over, hand_over_preserving, read, read_preserving};
pub(crate) use tree::Node;

#[cfg(test)]
mod laws;
#[cfg(test)]
mod published;
#[cfg(test)]
mod tests;
