//! Objects as they are at one moment: what the API shows, and what etcd holds.
//! It reads etcd past the API server.

use anyhow::{Context, Result};
use kube_structural_schema::json::Json;
use serde::Deserialize;
use serde_json::Value;

use super::cast::{Actor, Field, NAMESPACE, Role};
use crate::cluster::Cluster;
use crate::control_plane::object_key;

/// An object, read twice.
#[derive(Clone, Debug)]
pub(super) struct View {
    /// Which one.
    pub(super) actor: Actor,
    /// What the API shows.
    pub(super) shown: Value,
    /// What etcd holds.
    pub(super) held: Value,
    /// The same, as the bytes that it is.
    pub(super) bytes: Vec<u8>,
    /// The revision of etcd that wrote them, which is the object's `resourceVersion`.
    pub(super) revision: i64,
}

/// All objects at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Snapshot {
    /// In the order of the cast.
    pub(super) views: Vec<View>,
}

/// Who owns fields of an object: an entry of `managedFields`.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(super) struct Owner {
    /// The manager's name.
    pub(super) manager: String,
    /// `Apply` or `Update`.
    pub(super) operation: String,
}

impl View {
    /// Reads an object from both sides.
    ///
    /// # Errors
    /// One of them does not have it, or has it in another form.
    pub(super) async fn take(cluster: &Cluster, actor: Actor) -> Result<Self> {
        let key = key(&actor);
        // A client may write in between: the two have to be of one revision to be compared.
        for _ in 0..50 {
            let shown = cluster.get(&actor.path()).await?;
            let (bytes, revision) =
                cluster.etcd().get(&key).await?.with_context(|| format!("etcd has no {key}"))?;
            if shown["metadata"]["resourceVersion"].as_str() != Some(&*revision.to_string()) {
                continue;
            }
            let held = Json::parse(&bytes).with_context(|| format!("{key} is not JSON"))?.into_inner();
            return Ok(Self { actor, shown, held, bytes, revision });
        }
        anyhow::bail!("{actor} is written too often to be read twice in between")
    }

    /// A field as the API shows it.
    pub(super) fn shown(&self, field: Field) -> Option<&Value> {
        field.of(&self.shown)
    }

    /// A field as etcd holds it.
    pub(super) fn held(&self, field: Field) -> Option<&Value> {
        field.of(&self.held)
    }

    /// `metadata.generation`.
    pub(super) fn generation(&self) -> Option<i64> {
        self.shown["metadata"]["generation"].as_i64()
    }

    /// Who owns fields of it.
    pub(super) fn owners(&self) -> Vec<Owner> {
        let entries = self.shown["metadata"]["managedFields"].as_array().into_iter().flatten();
        entries.filter_map(|entry| Owner::deserialize(entry).ok()).collect()
    }
}

impl Snapshot {
    /// Reads all of these objects.
    ///
    /// # Errors
    /// See [`View::take`].
    pub(super) async fn take(cluster: &Cluster, actors: &[Actor]) -> Result<Self> {
        let views = actors.iter().map(|actor| View::take(cluster, *actor));
        Ok(Self { views: futures::future::try_join_all(views).await? })
    }

    /// The view of an actor.
    ///
    /// # Errors
    /// The actor was not there.
    pub(super) fn of(&self, actor: &Actor) -> Result<&View> {
        let found = self.views.iter().find(|view| view.actor == *actor);
        found.with_context(|| format!("{actor} was not there"))
    }

    /// The views of all actors of a role.
    pub(super) fn role(&self, role: Role) -> impl Iterator<Item = &View> {
        self.views.iter().filter(move |view| view.actor.role == role)
    }

    /// The views of all actors whose defaults Etch is to store.
    pub(super) fn kept(&self) -> impl Iterator<Item = &View> {
        self.views.iter().filter(|view| matches!(view.actor.role, Role::Stored | Role::Chosen))
    }
}

/// Where etcd has an object.
pub(super) fn key(actor: &Actor) -> String {
    object_key(actor.kind.group, actor.kind.plural, Some(NAMESPACE), actor.name)
}
