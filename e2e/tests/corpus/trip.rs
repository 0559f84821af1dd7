//! After an upgrade whose defaults are stored: old versions go, and the upgrade is taken back and made again.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use e2e::cluster::{GUARD, eventually};
use e2e::corpus::{load_file, storage_version};
use serde_json::{Value, json};

use crate::plan::Plan;
use crate::release::Release;
use crate::values::all_kept;

pub(crate) struct Trip<'t> {
    pub(crate) release: &'t Release<'t>,
    pub(crate) pair: &'t Path,
    /// The objects before the upgrade.
    pub(crate) before: &'t [Value],
}

impl Trip<'_> {
    /// Has a policy take old versions out, some minutes sooner than it would; whether there were any.
    pub(crate) async fn trimmed_by_policy(&self) -> Result<bool> {
        let Self { release, .. } = self;
        let listed = release.listed().await?;
        if listed.as_array().is_none_or(|listed| listed.len() < 2) {
            return Ok(false);
        }
        release.left_alone().await?;
        release.scene.verify_now(&release.name).await?;
        release.policy(json!({ "mode": "Persist", "storedVersions": "Trim" })).await?;
        let alone = json!([storage_version(&release.new)?]);
        eventually(GUARD, "old versions are taken out", async || {
            Ok((release.listed().await? == alone).then_some(()))
        })
        .await?;
        Ok(true)
    }

    /// Takes the upgrade back and makes it again, by the commands of plans; returns what was done.
    pub(crate) async fn there_and_back(&self) -> Result<Vec<&'static str>> {
        let Self { release, pair, before } = self;
        let (old, new) = (&release.old, &release.new);
        let after = release.read(new).await?;
        release.audit_only().await?;
        let mut done = Vec::new();
        let back = Plan::of(release, &pair.join("old.yaml"))?;
        if back.takes_two_steps() {
            // The first has both versions, so that objects can be moved.
            self.step(&self.with_versions_of_both()?).await.context("a release with the versions of both")?;
            done.push("in two steps");
        }
        let is_written = self.step(&pair.join("old.yaml")).await.context("the old release")?;
        all_kept(before, &release.read(old).await?).context("taken back")?;
        if back.takes_two_steps() {
            release.is_stored_at(old).await?;
        }
        self.step(&pair.join("new.yaml")).await.context("the new release again")?;
        let again = release.read(new).await?;
        all_kept(before, &again).context("made again")?;
        if !back.takes_two_steps() && !is_written {
            // No write has gone through the old schema, so that nothing of the new one is lost.
            all_kept(&after, &again).context("made again")?;
        }
        for (object, shown) in release.objects.iter().zip(&again) {
            release.is_stored(object, shown).await.with_context(|| object.name.clone())?;
        }
        done.push("back and again");
        Ok(done)
    }

    /// Applies a file as a plan says; whether objects were written after that, with no regard to fields that
    /// the CRD no longer has.
    async fn step(&self, file: &Path) -> Result<bool> {
        let Self { release, .. } = self;
        let crd = load_file(file)?;
        let plan = Plan::of(release, file)?;
        plan.run(release, "before", &[]).await.context("before")?;
        release.cluster().apply_crd(&crd).await?;
        release.seen(&crd).await?;
        let (pass, _) = plan.run(release, "after", &["--hidden-fields", "Drop"]).await.context("after")?;
        Ok(pass.is_some())
    }

    /// The old CRD, at whose version objects are to be stored, with the versions that only the new one has.
    fn with_versions_of_both(&self) -> Result<PathBuf> {
        let Self { release, .. } = self;
        let mut both = release.old.clone();
        let versions = both["spec"]["versions"].as_array_mut().context("versions")?;
        for version in release.new["spec"]["versions"].as_array().context("versions")? {
            if !versions.iter().any(|other| other["name"] == version["name"]) {
                let mut version = version.clone();
                version["storage"] = json!(false);
                versions.push(version);
            }
        }
        ensure!(versions.len() > 1, "one version");
        Ok(release.scene.file("both.yaml", &both.to_string())?.into())
    }
}
