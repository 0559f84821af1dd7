//! Admission over HTTPS: the API server asks, and EmbeddedSchemas answer.
//! It must not read a cluster: schemas, facts and what exists are given to it.
//!
//! ```text
//! listen (TLS, connections) -> router (size, time, concurrency) -> review (pure) <- serving (schemas and facts)
//! ```

mod certificates;
mod listen;
mod references;
mod refusal;
mod review;
mod router;
mod serving;

pub use certificates::{Authority, Certificates};
pub use listen::serve;
pub use references::{Found, Reference, References};
pub use review::{Asked, Malformed, Phase, Reviewed, review};
pub use router::Desk;
pub use serving::{Schemas, Served, Serving};
