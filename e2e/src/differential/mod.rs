//! Differential fuzzing: random schemas and objects, answered by Etch and by the API server's own code.
//! Nothing here may know what the right answer is; the oracle does.

mod build;
mod campaign;
mod generate;
mod oracle;
mod shrink;

pub use build::{Program, Release, build};
pub use campaign::{Campaign, Mismatch, Report, Subject};
pub use generate::{SchemaUpgrade, Seeds, case, crds, schema_upgrade};
pub use oracle::{Answer, Oracle};
