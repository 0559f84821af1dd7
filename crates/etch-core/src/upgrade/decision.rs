//! The answer to the author of an upgrade, of the deletion or of a migration of a CRD.

use super::{ALLOW_ANNOTATION, ALLOW_DELETION_ANNOTATION, ALLOW_MIGRATION_ANNOTATION, Findings, GuardMode};
use crate::warning::shortened;

/// The answer to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuardDecision {
    /// Why it is refused; `None` if it passes.
    pub refusal: Option<String>,
    /// The warnings for its author; each of a length that every client shows.
    pub warnings: Vec<String>,
}

/// What a request does with a CRD, or its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guarded<'r> {
    /// It upgrades the CRD to the schemas of this digest.
    Upgrade {
        /// See [`digest`](super::digest()).
        digest: &'r str,
    },
    /// It deletes the CRD of this uid.
    Deletion {
        /// The uid; no other CRD ever has it.
        uid: &'r str,
    },
    /// It has all objects of the CRD of this uid written.
    Migration {
        /// The uid; no other CRD ever has it.
        uid: &'r str,
    },
}

/// Decides. `allowed` is what the CRD, or the StorageVersionMigration, has under [`Guarded::annotation`].
pub fn decide(
    crd: &str,
    guarded: Guarded<'_>,
    guard_mode: GuardMode,
    findings: &Findings,
    allowed: Option<&str>,
) -> GuardDecision {
    let all = || findings.lines.iter().chain(&findings.unchecked).cloned();
    match guard_mode {
        GuardMode::Off => GuardDecision::default(),
        GuardMode::Deny if findings.does_harm && allowed.map(str::trim) != Some(guarded.value()) => {
            let listed: String = all().map(|line| format!("\n- {line}")).collect();
            GuardDecision { refusal: Some(guarded.refusal(crd, &listed)), warnings: Vec::new() }
        }
        GuardMode::Warn | GuardMode::Deny => GuardDecision {
            refusal: None,
            warnings: all().map(|line| shortened(format!("etch: {line}"))).collect(),
        },
    }
}

impl<'r> Guarded<'r> {
    /// The annotation on the CRD, or on the StorageVersionMigration, that lets such a request through.
    pub fn annotation(self) -> &'static str {
        match self {
            Self::Upgrade { .. } => ALLOW_ANNOTATION,
            Self::Deletion { .. } => ALLOW_DELETION_ANNOTATION,
            Self::Migration { .. } => ALLOW_MIGRATION_ANNOTATION,
        }
    }

    /// The value of the annotation that lets exactly this request through.
    fn value(self) -> &'r str {
        match self {
            Self::Upgrade { digest } => digest,
            Self::Deletion { uid } | Self::Migration { uid } => uid,
        }
    }

    fn refusal(self, crd: &str, listed: &str) -> String {
        let (annotation, value) = (self.annotation(), self.value());
        match self {
            Self::Upgrade { .. } => format!(
                "upgrading {crd} would harm objects:{listed}\nTo allow exactly this upgrade, set the \
                 annotation {annotation}: {value}"
            ),
            Self::Deletion { .. } => format!(
                "deleting {crd} would delete its objects:{listed}\nTo allow it, annotate the CRD first: \
                 kubectl annotate crd {crd} {annotation}={value}"
            ),
            Self::Migration { .. } => format!(
                "migrating the objects of {crd} would harm them:{listed}\nTo allow it, give the \
                 StorageVersionMigration the annotation {annotation}: {value}"
            ),
        }
    }
}
