//! The steps of `etch plan`, each by the command that it gives.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use e2e::cluster::{CRDS, Patch};
use serde_json::Value;

use crate::release::Release;

/// What is planned for one CRD.
pub(crate) struct Plan(Value);

/// What `etch persist` has done.
pub(crate) struct Pass(pub(crate) Value);

impl Plan {
    /// Plans what a file is about.
    pub(crate) fn of(release: &Release<'_>, file: &Path) -> Result<Self> {
        let file = file.to_str().context("a path")?;
        let (_, plan) = release.scene.etch_json(&["plan", "--live", "-f", file])?;
        Ok(Self(plan["crds"][0].clone()))
    }

    /// Whether the API server refuses the CRD.
    pub(crate) fn is_refused(&self) -> bool {
        self.0["dryRun"]["answer"] == "refused"
    }

    /// Whether the CRD has to be upgraded in two steps, because the version that objects are stored at goes.
    pub(crate) fn takes_two_steps(&self) -> bool {
        self.steps("before").any(|step| {
            step["step"] == "fix"
                && step["what"].as_str().is_some_and(|what| what.starts_with("Upgrade in two steps"))
        })
    }

    fn steps(&self, phase: &str) -> impl Iterator<Item = &Value> {
        let steps = self.0["steps"].as_array().into_iter().flatten();
        steps.filter(move |step| step["phase"] == phase)
    }

    /// Does what is due before the upgrade, or after it: stores defaults, moves objects, takes versions out
    /// of `status.storedVersions`. What only a person can do is left. Returns what was stored last, and
    /// whether versions were taken out.
    pub(crate) async fn run(
        &self,
        release: &Release<'_>,
        phase: &str,
        more: &[&str],
    ) -> Result<(Option<Pass>, bool)> {
        let (mut pass, mut last, mut is_trimmed) = (None, None, false);
        for step in self.steps(phase) {
            let kind = step["step"].as_str().unwrap_or_default();
            match kind {
                "persist" | "store" | "move" => {
                    pass = Some(persist(release, command(step)?, more)?);
                    last = Some(step);
                }
                "trim" => {
                    // Until no API server lags behind, a pass does not prove where objects are stored.
                    release.age_crd().await?;
                    if let Some(last) = last {
                        persist(release, command(last)?, more)?;
                    }
                    trim(release, command(step)?).await.with_context(|| step["what"].to_string())?;
                    is_trimmed = true;
                }
                "review" | "repair" | "save" | "fix" | "webhook" => {}
                _ => bail!("{phase} the upgrade, a step that the test does not know: {step}"),
            }
        }
        Ok((pass, is_trimmed))
    }
}

fn command(step: &Value) -> Result<&str> {
    step["command"].as_str().with_context(|| format!("no command: {step}"))
}

/// Runs a command that is `etch persist`.
fn persist(release: &Release<'_>, command: &str, more: &[&str]) -> Result<Pass> {
    // It begins with the path of the program, which is not on the PATH.
    let words = command.split_whitespace().skip_while(|word| *word != "persist");
    let arguments: Vec<&str> = words.chain(more.iter().copied()).collect();
    let (code, document) = release.scene.etch_json(&arguments)?;
    // With 1 it lists objects that it has not written.
    ensure!(matches!(code, Some(0 | 1)), "{command}: {document:#}");
    ensure!(document["crds"][0]["error"].is_null(), "{command}: {document:#}");
    Ok(Pass(document["crds"][0].clone()))
}

/// Runs a command that is `kubectl patch crd NAME --subresource status`, once `etch audit` shows that the
/// versions could go.
async fn trim(release: &Release<'_>, command: &str) -> Result<()> {
    let audit = ["audit", "--stored-versions", &release.name, "--objects"];
    let (_, audit) = release.scene.etch_json(&audit)?;
    let old = audit["crds"][0]["oldVersions"].as_array().context("old versions")?;
    ensure!(old.iter().all(|version| version["removable"] == true), "{audit:#}");
    let rest =
        command.strip_prefix(&format!("kubectl patch crd {} --subresource status --type ", release.name));
    let (kind, patch) = rest.and_then(|rest| rest.split_once(" --patch ")).context("a patch")?;
    let kind = match kind {
        "json" => Patch::Json,
        "merge" => Patch::Merge,
        _ => bail!("{command}"),
    };
    let patch: Value = serde_json::from_str(patch.trim_matches('\''))?;
    let path = format!("{CRDS}/{}/status", release.name);
    release.cluster().patch(&path, kind, "kubectl", &patch).await?.ok().map(drop)
}
