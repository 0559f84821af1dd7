//! Lists: how large a page is to be, and what a page holds.

pub mod budget;
pub mod page;
