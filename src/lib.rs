//! Etch makes the defaults of Kubernetes CRDs stored facts.
//!
//! The API server fills `default:` values from a CRD's schema whenever it decodes an object. Until a client
//! writes the object, such a value is visible in every read and present in no etcd value. Etch finds these
//! values and has the API server store them, without taking a field from anyone.
//!
//! Data flows one way: [`cluster`] reads, [`etch_core`] decides, [`cluster`] performs, [`operator`] orders
//! the steps and records. For the commands, [`source`] reads files instead. This package does I/O, and
//! [`cluster`] is the only part of it that talks to an API server. Everything under `crates/` is pure:
//! [`etch_core`] decides about objects and CRDs, [`etch_admission`] about requests, [`etch_lint`] about
//! documents, and [`etch_answers`] what commands answer, on libraries that answer as the API server does.
//!
//! # Laws
//! 1. A value that is present and not an unwanted null is never changed, except where a policy has it follow
//!    its default or a user reverts it, and then only the old default that no manager owns. Etch never wins a
//!    race against another writer.
//! 2. Etch never creates an object and never brings a deleted one back.
//! 3. Etch takes no field from anyone and, by default, keeps none itself.
//! 4. Fields that only etcd still holds, and that `managedFields` or the last applied document name, are not
//!    destroyed unless a policy allows it.
//! 5. Etch reports "persisted" only for what was proved.
//! 6. Filling twice equals filling once, and equals what the API server does.
//! 7. One broken CRD, object, webhook or permission stops only itself, and is reported with its name and the
//!    reason.
//! 8. A restart or a crash between any two requests loses nothing and repeats at most what was in flight.
//! 9. Values of objects appear in no log, event, condition or metric; paths do, with `*` for the keys of
//!    maps.
//! 10. An unchanged cluster costs no writes, and after a restart no needless requests either.

pub mod cluster;
pub mod metrics;
pub mod operator;
pub mod server;
pub mod source;
pub mod tasks;

/// The oldest and the newest release of Kubernetes that Etch is tested on.
pub const SUPPORTED_KUBERNETES: (&str, &str) = ("1.34", "1.37");
