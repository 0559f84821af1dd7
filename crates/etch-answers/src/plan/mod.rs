//! The steps of a CRD upgrade, and how they are shown.

mod planned;
pub mod print;
mod typed;

pub use planned::Planned;
pub use typed::Typed;
