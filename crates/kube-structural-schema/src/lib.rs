//! Structural schemas of Kubernetes CRDs, as the API server reads and uses them, as pure functions over plain data.
//! Nothing here may await, read a clock, the environment or a file, hold a client, or log.

pub mod compile;
pub mod defaults;
pub mod finding;
pub mod format;
pub mod go;
pub mod json;
pub mod path;
pub mod pattern;
pub mod prune;
pub mod schema;
