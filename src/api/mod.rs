//! The two resources of Etch's own API group, `etch-operator.io/v1alpha1`.
//! They must not hold logic: they are what users write and read.

mod policy;
mod report;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;

pub use policy::{
    CrdSelector, DefaultsPolicy, DefaultsPolicySpec, HiddenFieldsPolicy, Mode, OwnershipPolicy, Settings,
};
pub use report::{
    Counts, DefaultPath, DefaultsReport, DefaultsReportSpec, DefaultsReportStatus, ObjectProblem,
};

/// The API group of Etch's own resources.
pub const GROUP: &str = "etch-operator.io";

/// The CRDs that Etch brings, as they are installed.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![DefaultsPolicy::crd(), DefaultsReport::crd()]
}
