//! The namespaces to which reads of a CRD's objects are limited, where permissions do not reach further.
//! The API server decides what Etch may do.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};

use crate::condition::first;
use crate::report::versions::key;

/// At least one namespace, each once, in the order in which a list of all namespaces has their objects; cheap
/// to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespaces(Arc<[String]>);

impl Namespaces {
    /// These namespaces; `None` if there is none.
    pub fn new(names: impl IntoIterator<Item = String>) -> Option<Self> {
        // As etcd orders them: "a-b/" comes before "a/".
        let sorted: BTreeMap<_, _> = names.into_iter().map(|name| (key(&name, ""), name)).collect();
        (!sorted.is_empty()).then(|| Self(sorted.into_values().collect()))
    }

    /// Their names, in order.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// Whether a namespace is one of them.
    pub fn contains(&self, namespace: &str) -> bool {
        self.0.iter().any(|name| name == namespace)
    }

    /// Those that come after one of them.
    pub fn after(&self, namespace: &str) -> &[String] {
        let at = self.0.iter().position(|name| name == namespace);
        at.and_then(|at| self.0.get(at + 1..)).unwrap_or_default()
    }

    /// A weak reference, for code that only tracks which are in use.
    pub fn downgrade(&self) -> Weak<[String]> {
        Arc::downgrade(&self.0)
    }
}

impl fmt::Display for Namespaces {
    /// `namespace team-a`, or `namespaces team-a, team-b`: the first few of them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = if self.0.len() == 1 { "namespace" } else { "namespaces" };
        write!(f, "{noun} {}", first(&self.0, self.0.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn namespaces(names: &[&str]) -> Option<Namespaces> {
        Namespaces::new(names.iter().map(|name| (*name).to_owned()))
    }

    #[test]
    fn their_order_is_that_of_a_list_of_all_namespaces() {
        let all = namespaces(&["a", "b", "a-b", "a", "a0"]).expect("some");
        assert_eq!(all.names(), ["a-b", "a", "a0", "b"]);
        let keys: Vec<_> = all.names().iter().map(|name| key(name, "object")).collect();
        assert!(keys.is_sorted());
        assert_eq!(
            (all.after("a"), all.after("b"), all.after("none")),
            (&all.names()[2..], &[][..], &[][..])
        );
        assert!(all.contains("a0") && !all.contains("a1"));
        assert_eq!(namespaces(&[]), None);
    }

    #[test]
    fn few_are_named() {
        let named = |names: &[&str]| namespaces(names).expect("some").to_string();
        assert_eq!(named(&["web"]), "namespace web");
        assert_eq!(named(&["web", "db"]), "namespaces db, web");
        assert_eq!(named(&["a", "b", "c", "d", "e", "f", "g"]), "namespaces a, b, c, d, e and 2 more");
    }
}
