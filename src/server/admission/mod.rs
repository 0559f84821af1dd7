//! Admission over HTTPS: the API server asks, and EmbeddedSchemas answer, or the judge of CRD upgrades.
//! It reads no cluster: the caller passes schemas, facts, what exists and the judge.
//!
//! ```text
//! listen (TLS, connections) -> router (time, concurrency) -> etch_admission: review (pure) <- served_schemas
//!        └─ keys                      └─ room (size)      -> upgrades      <- what judges them
//! ```

mod certificates;
mod keys;
mod listen;
mod references;
mod room;
mod router;
mod served_schemas;
mod upgrades;

pub use etch_admission::admission_review::upgrade::{CrdRequest, Migration, Update};
pub use etch_admission::admission_review::{Asked, Malformed, Phase, Reviewed, Served, review};

pub use certificates::{Authority, Certificates, Presented, trusted, validity};
pub use keys::AcceptedKeys;
pub use listen::serve;
pub use references::{Answers, Found, Reference, References};
pub use router::AdmissionHandler;
pub use served_schemas::ServedSchemas;
pub use upgrades::Upgrades;
