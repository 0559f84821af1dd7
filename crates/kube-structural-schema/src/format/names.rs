//! Formats that are names: of hosts, and of Kubernetes objects.
//! The checks of `metadata` have other limits.

use std::sync::LazyLock;

use crate::names::is_dns_label;
use go_text::regexp::Pattern;

/// What one node of a host name may be; its length is counted in bytes elsewhere. Letters and symbols of any
/// script count.
static NODE: LazyLock<Option<Pattern>> =
    LazyLock::new(|| Pattern::new(r"^[a-zA-Z0-9\pS\pL]([-a-zA-Z0-9\pS\pL]*[a-zA-Z0-9\pS\pL])?$").ok());
/// A name of a single node has at most one hyphen, as its second character.
static ONLY_NODE: LazyLock<Option<Pattern>> =
    LazyLock::new(|| Pattern::new(r"^[a-zA-Z0-9\pS\pL]-?[a-zA-Z0-9\pS\pL]*$").ok());
static TOP_LEVEL: LazyLock<Option<Pattern>> = LazyLock::new(|| Pattern::new(r"^[a-zA-Z\pL]{2,63}$").ok());

/// `hostname`
pub(super) fn hostname(text: &str) -> bool {
    let fits =
        |pattern: &Option<Pattern>, node: &str| pattern.as_ref().is_some_and(|pattern| pattern.matches(node));
    if text.len() > 255 || text.split('.').any(|node| node.len() > 63) {
        return false;
    }
    match text.rsplit_once('.') {
        None => fits(&ONLY_NODE, text),
        Some((nodes, top)) => fits(&TOP_LEVEL, top) && nodes.split('.').all(|node| fits(&NODE, node)),
    }
}

/// `k8s-short-name`: small letters, digits and inner hyphens, at most 63 of them.
pub(super) fn short(text: &str) -> bool {
    text.len() <= 63 && is_dns_label(text)
}

/// `k8s-long-name`: such names joined by dots, at most 253 characters together, each of any length.
pub(super) fn long(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_dns_label)
}
