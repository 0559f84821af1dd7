//! What an upgrade of CRDs does, and what is different between two releases of an API server.

pub mod published;
