//! What users do to objects and CRDs, at a moment of their own or of a plan's choosing.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use e2e::cluster::{Cluster, Patch};
use serde_json::json;

use crate::schema::{filled, schema};
use crate::workload::{GROUP, State, Subject, Workload, has_finalizer, name};

/// What a user does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Deed {
    /// Sets a field that has a default to another value.
    Edit,
    /// Takes a field over from its owner, by force.
    Take,
    /// Writes the status.
    Status,
    /// Deletes an object.
    Delete,
    /// Deletes an object and creates another of its name.
    Recreate,
    /// Deletes an object that a finalizer holds.
    Mark,
    /// Gives the CRD one more default.
    Upgrade,
}

pub(crate) const DEEDS: [Deed; 7] =
    [Deed::Edit, Deed::Take, Deed::Status, Deed::Delete, Deed::Recreate, Deed::Mark, Deed::Upgrade];

impl Deed {
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Edit => "user edits",
            Self::Take => "user takes over",
            Self::Status => "user writes status",
            Self::Delete => "user deletes",
            Self::Recreate => "user recreates",
            Self::Mark => "user deletes, finalizer",
            Self::Upgrade => "CRD upgrade",
        }
    }

    /// Whether it can be done to an object.
    pub(crate) fn fits(self, index: usize) -> bool {
        match self {
            Self::Delete | Self::Recreate => !has_finalizer(index),
            Self::Mark => has_finalizer(index),
            Self::Edit | Self::Take | Self::Status | Self::Upgrade => true,
        }
    }
}

impl Subject {
    /// Users act on objects just after the upgrade.
    pub(crate) async fn users_at_once(&self, cluster: &Cluster, state: &mut State) -> Result<()> {
        for (index, deed) in [Deed::Edit, Deed::Delete, Deed::Recreate].into_iter().enumerate() {
            self.act_on(cluster, state, deed, &name(index)).await?;
        }
        Ok(())
    }

    /// Users act on objects while Etch watches them.
    pub(crate) async fn users_later(&self, cluster: &Cluster, state: &mut State) -> Result<()> {
        for (index, deed) in [(2, Deed::Recreate), (3, Deed::Status), (4, Deed::Take)] {
            self.act_on(cluster, state, deed, &name(index)).await?;
        }
        Ok(())
    }

    /// Users write some objects at the version before: that drops what only the storage version knows.
    pub(crate) async fn users_at_old_version(&self, cluster: &Cluster, state: &mut State) -> Result<()> {
        let names: Vec<String> = state.objects.keys().take(2).cloned().collect();
        for name in names {
            let edit = json!({ "spec": { "old": "client" } });
            let path = format!("{}/{name}", self.collection("v1"));
            let answer = cluster.patch(&path, Patch::Merge, "old-client", &edit).await?.ok()?;
            let before = state.revisions.clone();
            state.wrote(&answer);
            state.setbacks.extend(state.revisions.difference(&before).copied().collect::<Vec<_>>());
            if let Some(expected) = state.objects.get_mut(&name) {
                expected.values["old"] = json!("client");
                expected.owners.insert("old-client".to_owned());
                // It is stored at the storage version: one patch stores what is lacking and moves the owner.
                expected.writes += 1;
            }
        }
        Ok(())
    }

    /// A user acts.
    pub(crate) async fn act(&self, cluster: &Cluster, deed: Deed, name: &str) -> Result<()> {
        let mut state = self.state.lock().await;
        if deed == Deed::Upgrade {
            let more = self.workload.writes();
            state.objects.values_mut().for_each(|expected| expected.writes += more);
            return self.define(cluster, &mut state, |state| state.defaults.late = true).await;
        }
        self.act_on(cluster, &mut state, deed, name).await
    }

    async fn act_on(&self, cluster: &Cluster, state: &mut State, deed: Deed, name: &str) -> Result<()> {
        let collection = self.collection(state.version);
        let path = format!("{collection}/{name}");
        let mut expected = state.objects.get(name).with_context(|| format!("no {name}"))?.clone();
        // Where one write takes several requests, it may have to be begun again. A user's own write stores
        // the defaults.
        expected.writes += self.workload.writes().saturating_sub(1);
        // The server lists no owners of an object that had none, until a user applies it.
        let is_unowned = self.workload == Workload::Unowned;
        let answer = match deed {
            Deed::Edit => {
                expected.values["size"] = json!(-1);
                expected.owners.extend((!is_unowned).then(|| "user".to_owned()));
                let edit = json!({ "spec": { "size": -1 } });
                cluster.patch(&path, Patch::Merge, "user", &edit).await?.ok()?
            }
            Deed::Take => {
                expected.values["note"] = json!("taken");
                expected.owners.insert("taker".to_owned());
                expected.owners.extend(is_unowned.then(|| "before-first-apply".to_owned()));
                let object = self.object(state.version, name, &json!({ "note": "taken" }));
                let path = format!("{path}?fieldManager=taker&force=true");
                let body = serde_json::to_vec(&object)?;
                cluster.send("PATCH", &path, "application/apply-patch+yaml", body).await?.ok()?
            }
            Deed::Status => {
                expected.owners.extend((!is_unowned).then(|| "user".to_owned()));
                let edit = json!({ "status": { "count": 3 } });
                cluster.patch(&format!("{path}/status"), Patch::Merge, "user", &edit).await?.ok()?
            }
            Deed::Mark => {
                expected.is_terminating = true;
                cluster.delete(&path).await?
            }
            Deed::Delete => {
                cluster.delete(&path).await?;
                state.deleted.insert(name.to_owned());
                state.objects.remove(name);
                return Ok(());
            }
            Deed::Recreate => {
                cluster.delete(&path).await?;
                state.deleted.insert(name.to_owned());
                let values = json!({ "note": "again", "list": [] });
                let object = self.object(state.version, name, &values);
                let made = cluster.create(&collection, "user", &object).await?;
                // The creator of an object owns what the server fills in.
                expected.values = filled(&schema(state.defaults)["properties"]["spec"], values);
                expected.owners = BTreeSet::from(["user".to_owned()]);
                expected.uid = made["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
                made
            }
            Deed::Upgrade => anyhow::bail!("not of an object"),
        };
        state.objects.insert(name.to_owned(), expected);
        state.wrote(&answer);
        Ok(())
    }

    /// Any user may set a default's value to another, without force; what is wrong otherwise.
    pub(crate) async fn not_free(
        &self,
        cluster: &Cluster,
        state: &State,
        name: &str,
    ) -> Result<Option<String>> {
        let expected = &state.objects[name];
        let mut spec = json!({ "nested": { "depth": 9 }, "late": 9 });
        // What a user has set is the user's.
        if !expected.owners.contains("user") {
            spec["size"] = json!(9);
        }
        let mut object = self.object(state.version, name, &spec);
        object["apiVersion"] = json!(format!("{GROUP}/{}", state.version));
        let path = format!("{}/{name}?dryRun=All&fieldManager=stranger", self.collection(state.version));
        let body = serde_json::to_vec(&object)?;
        let answer = cluster.send("PATCH", &path, "application/apply-patch+yaml", body).await?;
        Ok((answer.code != 200)
            .then(|| format!("{name}: a stranger's apply is answered with {}", answer.code)))
    }
}
