//! What Etch exists for: schemas, defaults, ownership and the decision, as pure functions over plain data.
//! Nothing here may await, read a clock, the environment or a file, hold a client, or log.

mod absent;
pub mod admission;
pub mod audit;
pub mod bloom_filter;
pub mod breakable;
pub mod condition;
pub mod crd;
pub mod decode;
pub(crate) mod described;
pub mod duration;
pub mod field;
pub mod go;
pub mod impact;
pub mod lint;
pub mod mismatch;
pub mod object;
pub mod object_state;
pub mod openapi;
pub mod ownership;
pub mod plan;
pub mod rbac;
pub mod refusal;
pub mod upgrade;
mod without;
pub(crate) mod words;

/// Validation as the API server does it: of values, by `kube_crd_validation`, and of rules, by `kube_validation_rules`.
pub mod validate {
    pub use kube_crd_validation::*;
    pub use kube_validation_rules as cel;
}

pub use kube_structural_schema::{compile, defaults, finding, format, json, path, prune, schema};
