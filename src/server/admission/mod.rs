//! Admission over HTTPS: the API server asks, and EmbeddedSchemas answer, or who judges upgrades of CRDs.
//! It must not read a cluster: schemas, facts, what exists and the judge are given to it.
//!
//! ```text
//! listen (TLS, connections) -> router (time, concurrency) -> review (pure) <- served_schemas (schemas and facts)
//!        └─ keys                      └─ room (size)      -> upgrades      <- who judges them
//! ```

mod certificates;
mod keys;
mod listen;
mod references;
mod refusal;
mod review;
mod room;
mod router;
mod served_schemas;
mod upgrades;

pub use certificates::{Authority, Certificates, Presented, trusted, validity};
pub use keys::AcceptedKeys;
pub use listen::serve;
pub use references::{Found, Reference, References};
pub use review::{Asked, Malformed, Phase, Reviewed, review};
pub use router::AdmissionHandler;
pub use served_schemas::{Schemas, Served, ServedSchemas};
pub use upgrades::{Update, Upgrades};
