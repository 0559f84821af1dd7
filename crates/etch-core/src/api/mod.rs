//! `DefaultsPolicy` and `DefaultsReport` of Etch's own API group, `etch-operator.io/v1alpha1`: what users
//! write and read.
//!
//! `EmbeddedSchema`, the third resource, stands beside what it declares, in `etch_admission::api`.

mod amount;
mod assign;
mod canary;
mod change;
mod counts;
mod policy;
mod report;
mod selector;

pub use amount::Amount;
pub use assign::{Assignment, Labels, Policies, assign, counting, labels, pause};
pub use canary::{AfterCanary, Canary, CanaryProgress, CanaryState, RESUME_ANNOTATION};
pub use change::{ChangeAction, ChangeRule, follow_line};
pub use counts::Counts;
pub use policy::{
    DefaultsPolicy, DefaultsPolicySpec, DefaultsPolicyStatus, ManagedFields, Mode, Pause, PolicyConflict,
    RefusedObjects, Settings, StoredVersions,
};
pub use report::{
    ChangedDefault, ClearedObject, DefaultPath, DefaultValue, DefaultsReport, DefaultsReportSpec,
    DefaultsReportStatus, DroppedField, Exceptions, FormerDefault, KeptVersion, LostOwners, ObjectProblem,
    PreviousDefaults, ServedVersion, StoredVersionsReport,
};
pub use selector::CrdSelector;

/// The API group of Etch's own resources.
pub const GROUP: &str = "etch-operator.io";
