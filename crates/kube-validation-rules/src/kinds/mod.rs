//! The types that Kubernetes adds to CEL, each with the functions of its values.
//! `library` ties them to the language's values and functions.

mod named_format;
mod net;
mod quantity;
mod semver;
mod url;

pub(crate) use named_format::{FORMATS, NamedFormat};
pub(crate) use net::{Cidr, is_global_unicast, is_link_local_multicast, is_link_local_unicast, parse_ip};
pub(crate) use quantity::Quantity;
pub(crate) use semver::{Version, normalized};
