//! The paths of what an API server serves.

use super::resources::crds;
use crate::crd::Resource;

/// The path of a collection.
pub fn collection(resource: &Resource, namespace: Option<&str>) -> String {
    let Resource { group, version, plural } = resource;
    let root = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", encoded(group)) };
    let (version, plural) = (encoded(version), encoded(plural));
    match namespace {
        Some(namespace) => format!("{root}/{version}/namespaces/{}/{plural}", encoded(namespace)),
        None => format!("{root}/{version}/{plural}"),
    }
}

/// The path of one object.
pub fn named(resource: &Resource, namespace: Option<&str>, name: &str) -> String {
    format!("{}/{}", collection(resource, namespace), encoded(name))
}

/// The path of a CRD.
pub fn crd_path(name: &str) -> String {
    named(&crds(), None, name)
}

/// Text made fit for one segment of a path or one value of a query.
pub fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
