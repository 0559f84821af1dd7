//! The canary of a policy: the objects that a pass writes before all others.
//! `engine::canary` decides when it is over.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::amount::Amount;

/// The annotation of a CRD with the generation whose pass goes on after its canary: `etch resume` sets it.
pub const RESUME_ANNOTATION: &str = "etch-operator.io/resume";

/// How many objects a pass writes before all others, and what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Canary {
    /// A number of objects, such as `5`, or a percentage of the CRD's objects, such as `1%`: at least one.
    /// They are the first in the order of the list that a write changes.
    pub objects: Amount,
    /// What follows once etcd holds the defaults of these objects. `Wait` (the default): Etch writes no other
    /// object before `etch resume`. `Continue`: Etch goes on. If a write of one of them is rejected, Etch
    /// waits in any case.
    #[serde(default)]
    pub then: AfterCanary,
}

/// What follows a canary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum AfterCanary {
    /// Nothing, until a user resumes the pass.
    #[default]
    Wait,
    /// The rest of the pass.
    Continue,
}

/// How far the canary of a generation has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CanaryProgress {
    /// The CRD's generation whose canary it is.
    #[serde(default)]
    pub generation: i64,
    /// `Running`: Etch writes the first objects. `Waiting`: they are written, and Etch waits for
    /// `etch resume`. `Rejected`: a write of one of them was rejected, and Etch waits as well. `Passed`: Etch
    /// writes all objects.
    #[serde(default)]
    pub state: CanaryState,
    /// How many objects it has written.
    #[serde(default)]
    pub written: u64,
}

/// The state of a canary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CanaryState {
    /// Its objects are being written.
    #[default]
    Running,
    /// They are written, and the others wait.
    Waiting,
    /// One of them was rejected, and the others wait.
    Rejected,
    /// The others are written too.
    Passed,
}
