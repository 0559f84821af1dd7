//! Steps, and plans as lists of them.

/// How many reasons a step lists; the rest is counted.
const REASONS: usize = 5;

/// The steps of an upgrade.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpgradePlan {
    /// In order.
    pub steps: Vec<Step>,
    /// What the answer does not take into account, and how it would.
    pub unknown: Vec<String>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What sort of step it is.
    pub kind: StepKind,
    /// When it is due.
    pub phase: Phase,
    /// What to do, in a sentence without a full stop.
    pub what: String,
    /// Why: places and numbers, without values of objects.
    pub why: Vec<String>,
    /// The command to run; `None` if only an author can do it.
    pub command: Option<String>,
}

/// When a step is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Before the CRD is applied.
    Before,
    /// To apply the CRD.
    Upgrade,
    /// Once the CRD is applied.
    After,
}

/// A sort of step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum StepKind {
    /// Correct a CRD that the API server refuses.
    Fix,
    /// Look at what is incompatible.
    Review,
    /// Correct objects that become invalid.
    Repair,
    /// Let `etch persist` write objects that it skips.
    Unignore,
    /// Store what the objects show now.
    Persist,
    /// Make a copy of values that become hidden.
    Save,
    /// Prevent Etch from destroying values that become hidden.
    Hold,
    /// Move objects away from a version.
    Move,
    /// Take versions out of `status.storedVersions`.
    Trim,
    /// Deploy or remove the conversion webhook.
    Webhook,
    /// Apply the CRD.
    Apply,
    /// Store the defaults of the new schema.
    Store,
}

impl UpgradePlan {
    /// Whether there is nothing to do but to apply the CRD.
    pub fn is_clean(&self) -> bool {
        self.steps.iter().all(|step| step.kind == StepKind::Apply)
    }

    pub(super) fn before(
        &mut self,
        kind: StepKind,
        what: impl Into<String>,
        why: Vec<String>,
        command: Option<String>,
    ) {
        self.steps.push(Step { kind, phase: Phase::Before, what: what.into(), why, command });
    }

    pub(super) fn after(
        &mut self,
        kind: StepKind,
        what: impl Into<String>,
        why: Vec<String>,
        command: Option<String>,
    ) {
        self.steps.push(Step { kind, phase: Phase::After, what: what.into(), why, command });
    }
}

impl StepKind {
    /// The word for it in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fix => "fix",
            Self::Review => "review",
            Self::Repair => "repair",
            Self::Unignore => "unignore",
            Self::Persist => "persist",
            Self::Save => "save",
            Self::Hold => "hold",
            Self::Move => "move",
            Self::Trim => "trim",
            Self::Webhook => "webhook",
            Self::Apply => "apply",
            Self::Store => "store",
        }
    }
}

impl Phase {
    /// The word for it in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::Upgrade => "upgrade",
            Self::After => "after",
        }
    }
}

/// The first reasons, and how many more there are.
pub(super) fn first(reasons: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut reasons: Vec<String> = reasons.into_iter().collect();
    let more = reasons.len().saturating_sub(REASONS);
    if more > 1 {
        reasons.truncate(REASONS);
        reasons.push(format!("and {more} more"));
    }
    reasons
}
