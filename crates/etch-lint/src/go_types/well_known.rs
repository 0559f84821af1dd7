//! Types that every API uses and that write their JSON themselves, or whose name does not show what they are.

use super::format::Format;
use super::shape::{Shape, Whole};

/// A type, as far as it is known without its source.
#[derive(Clone, Debug)]
pub(super) struct WellKnown {
    pub(super) shape: Shape<'static>,
    /// The form of its strings.
    pub(super) format: Option<Format>,
    /// What its zero value is written as, where it writes its JSON itself.
    pub(super) zero: Option<Zero>,
    /// Whether `omitempty` omits it, for it is no struct.
    pub(super) is_omitted: bool,
    /// Whether a struct inherits how it writes its JSON, which is in a method.
    pub(super) is_inherited: bool,
    /// Whether it is a struct that is an object in JSON, whatever its fields are.
    pub(super) is_object: bool,
}

/// The JSON of the zero value of a type that writes it itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Zero {
    /// `null`
    Null,
    /// A text.
    Text(&'static str),
    /// The number 0.
    Number,
    /// Whatever its method writes.
    Written,
    /// That, or null, or nothing.
    Unknown,
}

/// Strings of `k8s.io/api/core/v1` that other APIs take over.
const CORE_TEXTS: [&str; 26] = [
    "ConditionStatus",
    "DNSPolicy",
    "FinalizerName",
    "HostPathType",
    "IPFamily",
    "IPFamilyPolicy",
    "MountPropagationMode",
    "NodeSelectorOperator",
    "PersistentVolumeAccessMode",
    "PersistentVolumeMode",
    "PersistentVolumeReclaimPolicy",
    "PodFSGroupChangePolicy",
    "PreemptionPolicy",
    "ProcMountType",
    "Protocol",
    "PullPolicy",
    "ResourceName",
    "RestartPolicy",
    "SecretType",
    "ServiceAffinity",
    "ServiceType",
    "StorageMedium",
    "TaintEffect",
    "TerminationMessagePolicy",
    "TolerationOperator",
    "URIScheme",
];

/// Structs of `k8s.io/api/core/v1` that other APIs take over. None has methods for JSON.
const CORE_STRUCTS: [&str; 64] = [
    "Affinity",
    "Capabilities",
    "ConfigMapEnvSource",
    "ConfigMapKeySelector",
    "ConfigMapProjection",
    "ConfigMapVolumeSource",
    "Container",
    "ContainerPort",
    "EmptyDirVolumeSource",
    "EnvFromSource",
    "EnvVar",
    "EnvVarSource",
    "ExecAction",
    "GRPCAction",
    "HTTPGetAction",
    "HTTPHeader",
    "HostAlias",
    "HostPathVolumeSource",
    "KeyToPath",
    "Lifecycle",
    "LifecycleHandler",
    "LoadBalancerStatus",
    "LocalObjectReference",
    "NodeAffinity",
    "NodeSelector",
    "NodeSelectorTerm",
    "ObjectFieldSelector",
    "ObjectReference",
    "PersistentVolumeClaim",
    "PersistentVolumeClaimSpec",
    "PersistentVolumeClaimTemplate",
    "PersistentVolumeClaimVolumeSource",
    "PodAffinity",
    "PodAffinityTerm",
    "PodAntiAffinity",
    "PodDNSConfig",
    "PodSecurityContext",
    "PodSpec",
    "PodTemplateSpec",
    "Probe",
    "ProbeHandler",
    "ResourceClaim",
    "ResourceFieldSelector",
    "ResourceRequirements",
    "SELinuxOptions",
    "SeccompProfile",
    "SecretEnvSource",
    "SecretKeySelector",
    "SecretProjection",
    "SecretReference",
    "SecretVolumeSource",
    "SecurityContext",
    "ServicePort",
    "ServiceSpec",
    "TCPSocketAction",
    "Taint",
    "Toleration",
    "TopologySpreadConstraint",
    "TypedLocalObjectReference",
    "TypedObjectReference",
    "Volume",
    "VolumeMount",
    "VolumeResourceRequirements",
    "VolumeSource",
];

/// Those of `k8s.io/apimachinery/pkg/apis/meta/v1`.
const META_STRUCTS: [&str; 9] = [
    "Condition",
    "GroupKind",
    "GroupResource",
    "GroupVersionKind",
    "GroupVersionResource",
    "LabelSelector",
    "LabelSelectorRequirement",
    "ObjectMeta",
    "OwnerReference",
];

/// A type by the import path of its package and its name.
///
/// Sources: the `MarshalJSON` or `MarshalText` of each, in k8s.io/apimachinery v0.37,
/// k8s.io/apiextensions-apiserver v0.37 and Go 1.26.
pub(super) fn well_known(package: &str, name: &str) -> Option<WellKnown> {
    const META: &str = "k8s.io/apimachinery/pkg/apis/meta/v1";
    let plain = |shape| WellKnown {
        shape,
        format: None,
        zero: None,
        is_omitted: false,
        is_inherited: false,
        is_object: false,
    };
    let object = || WellKnown { is_object: true, ..plain(Shape::Unknown) };
    let own = |shape, zero| WellKnown { zero: Some(zero), is_inherited: true, ..plain(shape) };
    let text = |format, zero| WellKnown { format: Some(format), ..own(Shape::Text, zero) };
    Some(match (package, name) {
        (META, "Duration") => text(Format::Duration, Zero::Text("0s")),
        (META, "Time") => text(Format::Time, Zero::Null),
        (META, "MicroTime") => text(Format::MicroTime, Zero::Null),
        (META, "FieldsV1")
        | ("k8s.io/apimachinery/pkg/runtime", "RawExtension")
        | ("k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1", "JSON") => {
            own(Shape::Custom, Zero::Null)
        }
        (META, "ConditionStatus" | "LabelSelectorOperator")
        | ("k8s.io/apimachinery/pkg/types", "UID" | "NodeName") => plain(Shape::Text),
        ("k8s.io/apimachinery/pkg/api/resource", "Quantity") => {
            WellKnown { format: Some(Format::Quantity), ..own(Shape::IntegerOrText, Zero::Text("0")) }
        }
        ("k8s.io/apimachinery/pkg/util/intstr", "IntOrString") => own(Shape::IntegerOrText, Zero::Number),
        ("k8s.io/api/core/v1", name) if CORE_TEXTS.contains(&name) => plain(Shape::Text),
        ("k8s.io/api/core/v1", name) if CORE_STRUCTS.contains(&name) => object(),
        (META, name) if META_STRUCTS.contains(&name) => object(),
        // The encoder knows it; it has no method.
        ("encoding/json", "Number") => {
            WellKnown { zero: Some(Zero::Number), is_omitted: true, ..plain(Shape::Unknown) }
        }
        ("time", "Duration") => plain(Shape::Integer(Whole::LONG)),
        ("time", "Time") => text(Format::Time, Zero::Text("0001-01-01T00:00:00Z")),
        ("net", "IP") => WellKnown { is_omitted: true, ..text(Format::Ip, Zero::Text("")) },
        ("net/netip", "Addr") => text(Format::Addr, Zero::Text("")),
        ("net/netip", "AddrPort") => own(Shape::Text, Zero::Text("")),
        ("net/netip", "Prefix") => text(Format::Prefix, Zero::Text("")),
        _ => return None,
    })
}

/// Whether a type that was not read has no methods for JSON: no other one in these packages has any.
pub(super) fn is_plain(package: &str, name: &str) -> bool {
    match package {
        "k8s.io/apimachinery/pkg/apis/meta/v1" => {
            name != "GroupVersion" && well_known(package, name).is_none_or(|known| known.is_object)
        }
        _ => package.starts_with("k8s.io/api/"),
    }
}
