//! What etcd holds of one object, made into an answer. It must not guess: what the bytes leave open stays
//! open, unless the server answers what a webhook makes of them.

use etch::cluster::Cluster;
use etch::cluster::etcd::{Opaque, decode};
use etch_core::audit::{Exact, Unreadable, by_bytes};
use etch_core::crd::Crd;
use etch_core::decode::Decoder;
use etch_core::object::Identity;

/// How many objects the server is asked to convert at once.
pub(super) const CONVERSIONS: usize = 8;

/// What the bytes in etcd prove of an object, or why they prove nothing.
pub(super) fn known(value: &[u8], crd: &Crd, decoder: &Decoder<'_>) -> Result<Exact, String> {
    let stored = decode(value).map_err(|opaque: Opaque| opaque.to_string())?;
    by_bytes(&stored, crd, decoder).map_err(|unreadable: Unreadable| unreadable.to_string())
}

/// Has the server ask the webhook what it makes of an object. Where that fails, or the object has changed
/// meanwhile, what is open stays open.
pub(super) async fn converted(
    exact: Exact,
    cluster: &Cluster,
    crd: &Crd,
    identity: &Identity,
    revision: u64,
) -> Exact {
    let Identity { namespace, name, .. } = identity;
    let view = cluster.object_named(&crd.resource(), namespace.as_deref(), name).await;
    match view.ok().flatten().filter(|view| view.revision() == Some(revision)) {
        Some(view) => exact.seen(view, crd),
        None => exact,
    }
}
