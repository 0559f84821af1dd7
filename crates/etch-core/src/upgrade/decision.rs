//! The answer to the author of an upgrade, of the deletion or of a migration of a CRD.

use super::{
    ALLOW_ANNOTATION, ALLOW_DELETION_ANNOTATION, ALLOW_MIGRATION_ANNOTATION, Findings, GUARD, GuardMode,
};
use crate::refusal::Refusal;
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
    /// It upgrades the CRD, and this is the digest of that.
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

/// The digest that allows the upgrade which the guard refuses with this answer; `None` if another webhook
/// refuses it, or the answer is not about an upgrade.
pub fn digest_of_refusal(refusal: &Refusal) -> Option<&str> {
    // The lines before it quote messages of the CRD's own rules.
    let (_, rest) = refusal.denied_by_webhook(GUARD)?.rsplit_once(ALLOW_ANNOTATION)?;
    let digest = rest.strip_prefix(": ")?;
    (!digest.is_empty() && digest.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(digest)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What the API server answers where a webhook refuses a request in these words.
    fn answer(webhook: &str, words: &str) -> Refusal {
        let message = format!("admission webhook \"{webhook}\" denied the request: {words}");
        let body = serde_json::json!({ "kind": "Status", "reason": "Forbidden", "message": message });
        Refusal::read(403, None, body.to_string().as_bytes())
    }

    fn refused(guarded: Guarded<'_>, line: &str) -> String {
        let findings = Findings { does_harm: true, lines: vec![line.to_owned()], ..Findings::default() };
        let decision = decide("tabs.example.com", guarded, GuardMode::Deny, &findings, None);
        decision.refusal.expect("a refusal")
    }

    #[test]
    fn the_refusal_of_an_upgrade_gives_the_digest_that_allows_it() {
        let upgrade = Guarded::Upgrade { digest: "0123abcd" };
        let words = refused(upgrade, ".spec.size changes");
        assert_eq!(digest_of_refusal(&answer(GUARD, &words)), Some("0123abcd"));
        // The message of a rule is a text of the CRD's author.
        let words = refused(upgrade, &format!(".spec: set {ALLOW_ANNOTATION}: ffff"));
        assert_eq!(digest_of_refusal(&answer(GUARD, &words)), Some("0123abcd"));
    }

    #[test]
    fn what_is_not_the_guards_refusal_of_an_upgrade_gives_no_digest() {
        let upgrade = refused(Guarded::Upgrade { digest: "0123abcd" }, ".spec.size changes");
        assert_eq!(digest_of_refusal(&answer("other.example.com", &upgrade)), None);
        let quoted = answer("other.example.com", &format!("admission webhook \"{GUARD}\" denied: {upgrade}"));
        assert_eq!(digest_of_refusal(&quoted), None);
        let deletion = refused(Guarded::Deletion { uid: "0123abcd" }, "2 objects are deleted with it");
        assert_eq!(digest_of_refusal(&answer(GUARD, &deletion)), None);
        let command = format!("{upgrade}; reboot");
        assert_eq!(digest_of_refusal(&answer(GUARD, &command)), None, "it goes into a shell");
    }
}
