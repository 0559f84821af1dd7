//! `etch clean`: what a cluster has of Etch, and what has to stay.

use etch_admission::MANAGED_BY;
use etch_core::api::RESUME_ANNOTATION;
use etch_core::condition;
use etch_core::crd::Crd;
use etch_core::engine::lease;
use etch_core::object::Object;
use etch_core::plan::{PERSISTED_ANNOTATION, shown_former};
use serde_json::Value;

/// That an operator leads, and how to stop it. `flags` lead to the cluster, with a space before each.
pub fn running(namespace: &str, instance: &str, flags: &str) -> String {
    format!(
        "Etch is running: {instance} renews the Lease {namespace}/{}, and would create everything \
         again; stop it first: kubectl -n {namespace}{flags} scale deployment etch --replicas=0",
        lease::NAME
    )
}

/// Why something is not removed. `flags` lead to the cluster, with a space before each.
pub fn stays(name: &str, flags: &str) -> String {
    format!(
        "{name} stays: it alone names fields that once had a default, and whose values etcd may still hold; \
         to remove it as well: etch clean --force{flags}"
    )
}

/// Whether a report names fields that once had a default.
pub fn names_former_defaults(report: &Object) -> bool {
    report.json()["status"]["formerDefaults"].as_array().is_some_and(|former| !former.is_empty())
}

/// What a CRD has of Etch.
#[derive(Debug)]
pub struct Marked {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Whether it has Etch's conditions.
    pub conditions: bool,
    /// Whether it has the annotation of `etch persist`.
    pub persisted: bool,
    /// Whether the annotation of `etch persist` names fields that once had a default, or may.
    pub names_former: bool,
    /// Whether it has the annotation of `etch resume`.
    pub resumed: bool,
}

impl Marked {
    /// What a CRD has of Etch; `None` if it has nothing.
    pub fn read(crd: &Object) -> Option<Self> {
        let conditions = !condition::present(crd.json()).is_empty();
        let annotations = &crd.json()["metadata"]["annotations"];
        let [persisted, resumed] =
            [PERSISTED_ANNOTATION, RESUME_ANNOTATION].map(|annotation| annotations.get(annotation).is_some());
        let of_defaults = |known: Crd| !shown_former(crd.json(), &known).is_empty();
        let names_former = || persisted && Crd::read(crd.json()).map_or(true, of_defaults);
        (conditions || persisted || resumed).then(|| Self {
            name: crd.name().to_owned(),
            uid: crd.uid().to_owned(),
            conditions,
            persisted,
            names_former: names_former(),
            resumed,
        })
    }
}

/// The uid of a webhook configuration with Etch's name; `None` if it is another application's.
pub fn uid_of_own(there: &Value) -> Option<String> {
    let text = |pointer: &str| there.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let manager = text(&format!("/metadata/labels/{}", MANAGED_BY.0.replace('/', "~1")));
    (manager == MANAGED_BY.1).then(|| text("/metadata/uid").to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operator_is_stopped_in_the_cluster_that_was_named() {
        let command = "kubectl -n etch-system --context=prod scale deployment etch --replicas=0";
        assert!(running("etch-system", "a", " --context=prod").ends_with(command));
    }
}
