//! Where Etch's own resources are, and those of Kubernetes that it reads.

use crate::api::GROUP;
use crate::crd::Resource;

/// Where policies are.
pub fn policies() -> Resource {
    Resource::new(GROUP, "v1alpha1", "defaultspolicies")
}

/// Where EmbeddedSchemas are.
pub fn embedded_schemas() -> Resource {
    Resource::new(GROUP, "v1alpha1", "embeddedschemas")
}

/// Where reports are.
pub fn reports() -> Resource {
    Resource::new(GROUP, "v1alpha1", "defaultsreports")
}

/// Where CRDs are.
pub fn crds() -> Resource {
    Resource::new("apiextensions.k8s.io", "v1", "customresourcedefinitions")
}

/// Where APIServices are read.
pub fn api_services() -> Resource {
    Resource::new("apiregistration.k8s.io", "v1", "apiservices")
}

/// Where Leases are.
pub fn leases() -> Resource {
    Resource::new("coordination.k8s.io", "v1", "leases")
}
