//! How many writes are to be under way, and how they follow each other. The caller holds the slots and waits.

pub mod limits;
pub mod strain;
