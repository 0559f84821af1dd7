//! What is wrong with CRDs, EmbeddedSchemas and Go types, and how it is shown.

mod checked;
pub mod document;
pub mod exceptions;
mod place;
pub mod print;
pub mod sarif;

pub use checked::{Checked, Located, name_of, target, targets};
