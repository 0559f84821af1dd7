//! What is answered to whoever upgrades a CRD.

use super::{ALLOW_ANNOTATION, Findings, GuardMode};
use crate::warning::shortened;

/// The answer to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GuardDecision {
    /// Why it is refused; none where it passes.
    pub refusal: Option<String>,
    /// What its author is warned of; each of a length that every client shows.
    pub warnings: Vec<String>,
}

/// Decides. `digest` is that of the new CRD, and `allowed` the digest of the upgrade that the annotation lets
/// through.
pub fn decide(
    crd: &str,
    guard_mode: GuardMode,
    findings: &Findings,
    digest: &str,
    allowed: Option<&str>,
) -> GuardDecision {
    let all = || findings.lines.iter().chain(&findings.unchecked).cloned();
    match guard_mode {
        GuardMode::Off => GuardDecision::default(),
        GuardMode::Deny if findings.does_harm && allowed.map(str::trim) != Some(digest) => {
            let listed: String = all().map(|line| format!("\n- {line}")).collect();
            let refusal = format!(
                "upgrading {crd} would harm objects:{listed}\nTo allow exactly this upgrade, set the \
                 annotation {ALLOW_ANNOTATION}: {digest}"
            );
            GuardDecision { refusal: Some(refusal), warnings: Vec::new() }
        }
        GuardMode::Warn | GuardMode::Deny => GuardDecision {
            refusal: None,
            warnings: all().map(|line| shortened(format!("etch: {line}"))).collect(),
        },
    }
}
