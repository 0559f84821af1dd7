//! What an upgrade of CRDs does, and what is different between two releases of an API server.

mod crd_impact;
pub mod document;
pub mod given;
pub mod html;
mod looked;
pub mod markdown;
mod objects;
pub mod print;
pub mod published;

pub use crd_impact::{CrdImpact, Detail};
pub use looked::{Looked, settling};
pub use objects::{Found, FoundError};
