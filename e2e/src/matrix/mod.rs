//! The write matrix: what each kind of request leaves in etcd, as real servers showed it, kept under
//! `matrix/RELEASE`. Everything there was observed, and nothing derived.
//!
//! An object of a [`World`] is made before its CRD has defaults, so that etcd holds none of them; then it
//! gets one request, a [`Cell`]. Six places of the schema have a default, and one request shows all six. The
//! axes that are left out do not change what a request stores: objects that hold their defaults are decoded
//! to the same view as those that do not (fact R1), and values of changed defaults are stored like others.

mod axes;
mod data;
mod manifest;
mod observe;
mod outcome;
mod reviews;

pub use axes::{Admission, Cell, Conversion, Owners, Part, Verb, World};
pub use data::Data;
pub use manifest::{GROUP, KIND, Place, S, crd, served};
pub use observe::Observer;
pub use outcome::{Entry, FollowUp, Held, Id, Outcome, Parts, Places, Stored};
