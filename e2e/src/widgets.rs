//! Objects of one CRD that users write and delete while the CRD gains defaults, and what each of them must
//! hold.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};

use crate::cluster::{CRDS, Cluster, GUARD, Patch, crd, eventually, plural, with_spec};

/// How many writes for each object and default are borne on average: what was in flight in a crash is
/// repeated.
const WRITES: f64 = 1.05;

/// The objects of a CRD, in the namespace `default`.
pub struct Widgets {
    cluster: Cluster,
    group: String,
    kind: String,
    /// How many defaults the schema has.
    defaults: usize,
    each: Vec<Widget>,
}

/// What etcd should hold of one, and why.
struct Widget {
    /// How many defaults the API server knew when it was created, and has stored itself.
    born: usize,
    /// What users have set beside its size.
    edited: Map<String, Value>,
    /// Writes by others than Etch, creation included.
    writes: i64,
}

impl Widgets {
    /// Creates a CRD without defaults, and so many objects.
    ///
    /// # Errors
    /// The API server refuses one.
    pub async fn create(cluster: &Cluster, group: &str, kind: &str, count: usize) -> Result<Self> {
        let mut widgets = Self {
            cluster: cluster.clone(),
            group: group.to_owned(),
            kind: kind.to_owned(),
            defaults: 0,
            each: Vec::new(),
        };
        widgets.upgrade().await?;
        for index in 0..count {
            widgets.make(index).await?;
            widgets.each.push(Widget { born: 0, edited: Map::new(), writes: 1 });
        }
        Ok(widgets)
    }

    /// The name of the CRD.
    pub fn crd(&self) -> String {
        format!("{}.{}", self.plural(), self.group)
    }

    /// How many defaults the schema has.
    pub fn defaults(&self) -> usize {
        self.defaults
    }

    /// Adds a default to the schema, and waits until the API server fills it: what users write before that,
    /// it prunes.
    ///
    /// # Errors
    /// The API server refuses it, or does not fill it.
    pub async fn add_default(&mut self) -> Result<()> {
        self.defaults += 1;
        self.upgrade().await?;
        let (path, field) = (format!("{}/{}", self.collection(), name(0)), field(self.defaults));
        eventually(GUARD, "the default is filled", async || {
            Ok((!self.cluster.get(&path).await?["spec"][&field].is_null()).then_some(()))
        })
        .await
    }

    /// Users set what the newest default would have been, in some objects.
    ///
    /// # Errors
    /// The API server refuses it.
    pub async fn edit_some(&mut self) -> Result<()> {
        let field = field(self.defaults);
        for index in (self.defaults..self.each.len()).step_by(20) {
            let spec = json!({ "spec": { field.as_str(): -1 } });
            let path = format!("{}/{}", self.collection(), name(index));
            self.cluster.patch(&path, Patch::Merge, "user", &spec).await?.ok()?;
            let widget = &mut self.each[index];
            widget.edited.insert(field.clone(), json!(-1));
            widget.writes += 1;
        }
        Ok(())
    }

    /// Users delete some objects and create them again.
    ///
    /// # Errors
    /// The API server refuses it.
    pub async fn renew_some(&mut self) -> Result<()> {
        for index in (self.defaults + 10..self.each.len()).step_by(20) {
            self.cluster.delete(&format!("{}/{}", self.collection(), name(index))).await?;
            self.make(index).await?;
            // The API server may not know the newest default yet.
            let born = self.defaults.saturating_sub(1);
            self.each[index] = Widget { born, edited: Map::new(), writes: 1 };
        }
        Ok(())
    }

    /// How many objects lack the newest default in etcd.
    ///
    /// # Errors
    /// etcd does not answer.
    pub async fn missing(&self) -> Result<usize> {
        let field = field(self.defaults);
        Ok(self.raw().await?.iter().filter(|(raw, _)| raw["spec"][&field].is_null()).count())
    }

    /// Waits until some objects hold the newest default.
    ///
    /// # Errors
    /// None does.
    pub async fn some_are_stored(&self) -> Result<()> {
        eventually(GUARD, "a pass under way", async || {
            Ok((self.missing().await? < self.each.len() - 10).then_some(()))
        })
        .await
    }

    /// Waits until all objects hold the newest default, and the condition reports it.
    ///
    /// # Errors
    /// One does not, or the condition does not.
    pub async fn stored(&self) -> Result<()> {
        eventually(Duration::from_secs(90), "every default in etcd", async || {
            Ok((self.missing().await? == 0).then_some(()))
        })
        .await?;
        self.cluster.persisted(&self.crd(), "AllPersisted", GUARD).await.map(drop)
    }

    /// Nothing was created or lost, every value is the user's or the default, every owner is who it was, and
    /// each object was written once for each default that is newer.
    ///
    /// # Errors
    /// Something is otherwise.
    pub async fn keep_the_laws(&self) -> Result<()> {
        let all = self.raw().await?;
        ensure!(all.len() == self.each.len(), "{} objects of {}", all.len(), self.each.len());
        let (mut writes, mut changes) = (0, 0);
        for (raw, version) in &all {
            let index = raw["spec"]["size"].as_u64().and_then(|index| usize::try_from(index).ok());
            let index = index.with_context(|| format!("the size: {raw}"))?;
            let widget = self.each.get(index).with_context(|| format!("nobody made {}", name(index)))?;
            writes += version - widget.writes;
            changes += self.defaults - widget.born;
            let mut spec = json!({ "size": index });
            for default in 1..=self.defaults {
                spec[field(default)] = json!(default);
            }
            for (field, value) in &widget.edited {
                spec[field] = value.clone();
            }
            ensure!(raw["spec"] == spec, "{} holds {} and should hold {spec}", name(index), raw["spec"]);
            let owners: BTreeSet<&str> = raw["metadata"]["managedFields"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|entry| entry["manager"].as_str())
                .collect();
            let user = (!widget.edited.is_empty()).then_some("user");
            let expected: BTreeSet<&str> = ["owner"].into_iter().chain(user).collect();
            ensure!(owners == expected, "{} is owned by {owners:?}", name(index));
        }
        ensure!(writes as f64 <= changes as f64 * WRITES, "{writes} writes for {changes} changes");
        Ok(())
    }

    /// Deletes the CRD with all objects, and waits until it is gone.
    ///
    /// # Errors
    /// It is not deleted.
    pub async fn delete(self) -> Result<()> {
        let path = format!("{CRDS}/{}", self.crd());
        self.cluster.delete(&path).await?;
        eventually(GUARD, "the CRD is gone", async || {
            let answer = self.cluster.send("GET", &path, "application/json", Vec::new()).await?;
            Ok((answer.code == 404).then_some(()))
        })
        .await
    }

    async fn upgrade(&self) -> Result<()> {
        let mut spec = json!({ "size": { "type": "integer" } });
        for default in 1..=self.defaults {
            spec[field(default)] = json!({ "type": "integer", "default": default });
        }
        self.cluster
            .apply_crd(&crd(&self.group, &self.kind, &[("v1", true, with_spec(spec))]))
            .await
            .map(drop)
    }

    async fn make(&self, index: usize) -> Result<()> {
        let object = json!({
            "apiVersion": format!("{}/v1", self.group), "kind": self.kind,
            "metadata": { "name": name(index) }, "spec": { "size": index },
        });
        self.cluster.create(&self.collection(), "owner", &object).await.map(drop)
    }

    /// Every object with how often it was written, from etcd.
    async fn raw(&self) -> Result<Vec<(Value, i64)>> {
        let all = self.cluster.etcd().list(&format!("/registry/{}/{}/", self.group, self.plural())).await?;
        all.iter().map(|raw| Ok((serde_json::from_slice(&raw.bytes)?, raw.version))).collect()
    }

    fn collection(&self) -> String {
        format!("/apis/{}/v1/namespaces/default/{}", self.group, self.plural())
    }

    fn plural(&self) -> String {
        plural(&self.kind)
    }
}

fn field(default: usize) -> String {
    format!("default{default}")
}

fn name(index: usize) -> String {
    format!("widget-{index:03}")
}
