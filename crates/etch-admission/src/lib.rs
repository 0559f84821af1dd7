//! Embedded schemas at admission: what a request lacks, what is wrong with it, and the messages for its
//! author. The caller receives requests, gathers facts and enforces answers.
//!
//! [`Compiled`] is a [`Declaration`] made ready once; [`Compiled::set_defaults`] and [`Compiled::judge`]
//! answer the two questions that an API server asks, and [`review()`] asks both in its order, as it does for
//! one request.
//!
//! # Laws
//! 1. A value that is present is never changed, but for an empty one where a default asks for that, and
//!    unknown fields go only where `unknownFields: Prune` asks for it.
//! 2. Setting defaults twice equals setting them once.
//! 3. A request is answered by what is in it: a dry run gets the same answer.
//! 4. Nothing here fails: what cannot be evaluated is an error of the request, with the reason.

pub mod accepted_keys;
pub mod admission_review;
mod answer;
pub mod api;
mod applied;
mod broken;
pub mod check_schedule;
pub mod checked_schema;
mod compile;
mod correlated;
mod empty;
mod existing;
mod facts;
mod fill;
mod former;
pub mod installed_crds;
mod judge;
mod path_key;
mod place;
mod problem;
pub mod refused_webhooks;
pub mod renewal;
mod request;
mod review;
mod run;
mod scope;
mod settings;
pub mod spec;
pub mod state;
pub mod status;
pub mod tally;
#[cfg(test)]
mod tests;
mod unchanged;
mod view;
mod webhooks;
#[cfg(test)]
mod wrong_types;

pub use answer::{Answer, FieldError};
pub use applied::{altered, is_applied, unguarded, with_injected, without_authority};
pub use broken::{BrokenDefault, broken_by_defaults};
pub use compile::Compiled;
pub use existing::{Existing, Lacking, existing};
pub use fill::Defaulted;
pub use path_key::{KEY_BYTES, KeyRing, PathKey, keys_in};
pub use problem::{Problem, unknown_fields};
pub use request::{Lookup, Named, Request, plural};
pub use review::{Review, review};
pub use settings::{FailurePolicy, MatchCondition, Webhooks};
pub use spec::{Declaration, FactObject, OnExisting, Operation};
pub use webhooks::{
    CONFIGURATION, Endpoint, GUARD, GUARDS, Injection, MANAGED_BY, MIGRATION_GUARD, SERVICE, configurations,
    is_asked_about, schema_of,
};
