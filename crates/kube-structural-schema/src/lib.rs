#![doc = include_str!("../README.md")]
//!
//! Nothing here may await, read a clock, the environment or a file, hold a client, or log.

pub mod compile;
pub mod defaults;
pub mod finding;
pub mod format;
pub mod json;
pub mod mismatch;
pub mod names;
pub mod path;
pub mod prune;
pub mod schema;

pub use compile::{Compiled, DefaultSite};
pub use defaults::{Digest, ReadError, added, hand_over, hand_over_preserving, read, read_preserving};
pub use finding::{Finding, Kind};
pub use json::Json;
pub use path::{Path, PathError, Step, Trail, TrailStep};
pub use prune::prune;
pub use schema::rules::structural_errors;
pub use schema::{ParseError, Schema, SchemaType};
