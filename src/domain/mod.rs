//! What Etch exists for: schemas, defaults, ownership and the decision, as pure functions over plain data.
//! Nothing here may await, read a clock, the environment or a file, hold a client, or log.

pub mod audit;
pub mod compile;
pub mod condition;
pub mod crd;
pub mod decode;
pub mod defaults;
pub mod finding;
pub(crate) mod go;
pub mod impact;
pub mod json;
pub mod lint;
pub mod object;
pub mod openapi;
pub mod ownership;
pub mod path;
pub mod pattern;
pub mod plan;
pub mod prune;
pub mod rbac;
pub mod schema;
pub mod validate;
