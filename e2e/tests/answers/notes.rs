//! What was found to be untrue, cluster by cluster.
//! It does not stop at the first: one run shows every kind of falsehood that it meets.

use std::collections::BTreeMap;

use parking_lot::Mutex;
use serde_json::Value;

/// The findings of a run.
#[derive(Debug, Default)]
pub(crate) struct Notes(Mutex<BTreeMap<String, Vec<String>>>);

impl Notes {
    /// Takes down that something is untrue of a cluster, which goes by the plural of its type.
    pub(crate) fn note(&self, plural: &str, finding: String) {
        let mut all = self.0.lock();
        all.entry(plural.to_owned()).or_default().push(finding);
    }

    /// Everything that was taken down.
    pub(crate) fn all(self) -> BTreeMap<String, Vec<String>> {
        self.0.into_inner()
    }
}

/// A number that must be there: what is left out counts as a wrong one.
pub(crate) fn number(document: &Value, key: &str) -> i64 {
    document[key].as_i64().unwrap_or(-1)
}

/// The sum of some numbers.
pub(crate) fn sum(document: &Value, keys: &[&str]) -> i64 {
    keys.iter().map(|key| number(document, key)).sum()
}

/// The texts of a list.
pub(crate) fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The part of a document that is about a CRD.
pub(crate) fn of<'a>(document: &'a Value, crd: &str) -> Option<&'a Value> {
    document["crds"].as_array().into_iter().flatten().find(|reported| reported["crd"] == crd)
}
