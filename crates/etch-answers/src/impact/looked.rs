//! What an upgrade of one CRD does, with what it was compared with.

use etch_core::crd::Crd;
use etch_core::impact::Problem;
use kube_structural_schema::json::Json;

use super::crd_impact::CrdImpact;
use super::given::Given;

/// What an upgrade of one CRD does, and the CRDs that were compared.
pub struct Looked {
    /// What it does.
    pub impact: CrdImpact,
    /// The CRD after the upgrade.
    pub new: Given,
    /// The CRD as the cluster or the snapshot has it.
    pub present: Option<(Json, Crd)>,
    /// The options of `etch persist` that have it settle before the upgrade what etcd holds, with a space
    /// before each. `None` where it writes no object: no version gives defaults.
    pub settling: Option<&'static str>,
    /// The option that limits a command to the namespace that was looked at, with a space before it.
    pub within: String,
}

/// See [`Looked::settling`].
pub fn settling(impact: &CrdImpact, old: &Crd, new: &Crd) -> Option<&'static str> {
    let of_place_in_etcd: Vec<Problem> = Problem::of_place_in_etcd(old, new).collect();
    match impact.tally.summary.keys().any(|place| place.is_one_of(&of_place_in_etcd)) {
        true => Some(" --every-object"),
        false => old.gives_defaults().then_some(""),
    }
}
