//! Where etcd holds custom resources, how a member of it is addressed, and why it cannot be read.

mod endpoint;
mod error;
mod range;

pub use endpoint::{Endpoint, EndpointError};
pub use error::EtcdError;
pub use range::{After, EtcdPage, range_of};

use crate::crd::Resource;

/// The prefix under which API servers keep everything, unless `--etcd-prefix` sets another one.
pub const REGISTRY: &str = "/registry";

/// A key with what is stored under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawValue {
    /// The whole key, `/registry/…`.
    pub key: String,
    /// The stored bytes.
    pub bytes: Vec<u8>,
    /// The revision of the last write, which the API shows as `metadata.resourceVersion`; 0 where it is not
    /// known.
    pub revision: u64,
}

/// The prefix of all keys of a resource below that of the API server:
/// `/registry/stable.example.com/crontabs/`.
///
/// Source: apiextensions-apiserver `pkg/apiserver/customresource_handler.go`, `crdStorageMap`.
pub fn prefix_of(registry: &str, resource: &Resource) -> String {
    format!("{registry}/{}/{}/", resource.group, resource.plural)
}

/// Namespace and name of the object under a key; `None` if the key has neither.
pub fn identity_of<'k>(prefix: &str, key: &'k str) -> Option<(Option<&'k str>, &'k str)> {
    let rest = key.strip_prefix(prefix)?;
    match rest.split_once('/') {
        Some((namespace, name)) => Some((Some(namespace), name)),
        None => Some((None, rest)),
    }
}
