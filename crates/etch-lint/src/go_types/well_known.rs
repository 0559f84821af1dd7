//! Types that every API uses and that write their JSON themselves, or whose name does not show what they are.

use super::shape::Shape;

/// A type, as far as it is known without its source.
#[derive(Clone, Copy, Debug)]
pub(super) struct WellKnown {
    pub(super) shape: Shape<'static>,
    /// What its zero value is written as, where it writes its JSON itself.
    pub(super) zero: Option<Zero>,
}

/// The JSON of the zero value of a struct that writes it itself. `omitempty` never omits one.
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

/// A type by the import path of its package and its name.
///
/// Sources: the `MarshalJSON` or `MarshalText` of each, in k8s.io/apimachinery v0.37,
/// k8s.io/apiextensions-apiserver v0.37 and Go 1.26.
pub(super) fn well_known(package: &str, name: &str) -> Option<WellKnown> {
    let own = |shape, zero| Some(WellKnown { shape, zero: Some(zero) });
    let plain = |shape| Some(WellKnown { shape, zero: None });
    match (package, name) {
        ("k8s.io/apimachinery/pkg/apis/meta/v1", "Duration") => own(Shape::Text, Zero::Text("0s")),
        ("k8s.io/apimachinery/pkg/apis/meta/v1", "Time" | "MicroTime") => own(Shape::Text, Zero::Null),
        ("k8s.io/apimachinery/pkg/apis/meta/v1", "FieldsV1")
        | ("k8s.io/apimachinery/pkg/runtime", "RawExtension")
        | ("k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1", "JSON") => {
            own(Shape::Custom, Zero::Null)
        }
        ("k8s.io/apimachinery/pkg/apis/meta/v1", "ConditionStatus" | "LabelSelectorOperator")
        | ("k8s.io/apimachinery/pkg/types", "UID" | "NodeName") => plain(Shape::Text),
        ("k8s.io/apimachinery/pkg/api/resource", "Quantity") => own(Shape::IntegerOrText, Zero::Text("0")),
        ("k8s.io/apimachinery/pkg/util/intstr", "IntOrString") => own(Shape::IntegerOrText, Zero::Number),
        ("k8s.io/api/core/v1", name) if CORE_TEXTS.contains(&name) => plain(Shape::Text),
        ("time", "Duration") => plain(Shape::Integer),
        ("time", "Time") => own(Shape::Text, Zero::Text("0001-01-01T00:00:00Z")),
        ("net", "IP") => plain(Shape::Text),
        ("net/netip", "Addr" | "AddrPort" | "Prefix") => own(Shape::Text, Zero::Text("")),
        _ => None,
    }
}
