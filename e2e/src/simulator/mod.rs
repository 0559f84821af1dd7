//! Whole clusters in one process, on virtual time.

pub mod fields;
pub mod laws;
pub mod sabotage;
pub mod server;
pub mod worlds;
mod write;
