//! Admission over HTTPS: the API server asks, and EmbeddedSchemas answer, or who judges upgrades of CRDs.
//! It must not read a cluster: schemas, facts, what exists and the judge are given to it.
//!
//! ```text
//! listen (TLS, connections) -> router (size, time, concurrency) -> review (pure) <- serving (schemas and facts)
//!                                                               -> upgrades      <- who judges them
//! ```

mod certificates;
mod listen;
mod references;
mod refusal;
mod review;
mod router;
mod serving;
mod upgrades;

pub use certificates::{Authority, Certificates, Presented, trusted, validity};
pub use listen::serve;
pub use references::{Found, Reference, References};
pub use review::{Asked, Malformed, Phase, Reviewed, review};
pub use router::Desk;
pub use serving::{Schemas, Served, Serving};
pub use upgrades::{Update, Upgrades};
