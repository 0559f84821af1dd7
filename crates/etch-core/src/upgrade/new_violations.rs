//! Violations in the CRD itself that an upgrade brings and the API server nevertheless accepts.

use crate::crd::Crd;
use crate::findings::SchemaFindings;
use kube_structural_schema::json::Json;
use kube_structural_schema::schema::rules::crd::judge;

/// What is wrong with the new state of a CRD and was not with the old one, each as a document and as it was
/// read; `None` if it cannot be read.
pub fn new_violations(old: (&Json, Option<&Crd>), new: (&Json, Option<&Crd>)) -> SchemaFindings {
    let [before, after] = [old.0, new.0].map(|crd| judge(&crd["spec"]).texts());
    let places = |crd: Option<&Crd>| -> Vec<String> {
        crd.into_iter().flat_map(Crd::invalid_defaults).map(ToString::to_string).collect()
    };
    let (known, found) = (places(old.1), places(new.1));
    SchemaFindings {
        non_structural: after.into_iter().filter(|violation| !before.contains(violation)).collect(),
        invalid_defaults: found.into_iter().filter(|place| !known.contains(place)).collect(),
    }
}
