//! Each default of one object, with what is known of it; each default that is published of a type.

mod explained;
pub mod published;

pub use explained::{Explained, rejected};
