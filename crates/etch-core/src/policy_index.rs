//! CRDs × policies: what there is in the cluster, and which policy governs which CRD.
//! It keeps a few words of metadata of each CRD, and no schema, however many CRDs there are.
//!
//! Both are listed, and then watched: a list begins, shows what there is, and ends; what it has not shown is
//! gone.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use kube::core::{DynamicObject, ObjectMeta};
use serde::Deserialize;
use serde_json::Value;

use crate::api::{
    Assignment, DefaultsPolicySpec, DefaultsPolicyStatus, Mode, Pause, Policies, RESUME_ANNOTATION, Settings,
    assign, counting, labels, pause,
};
use crate::crd::Crd;
use crate::engine::status::CrdRevision;
use crate::ownership::MANAGER;
use crate::policy::{Policy, Scope, counted, statuses};
use crate::upgrade::GuardMode;
use kube_structural_schema::mismatch::without_values;

/// The settings of the policy that governs one CRD.
#[derive(Clone, Debug, PartialEq)]
pub struct GoverningPolicy {
    /// The settings of the policy that governs it.
    pub settings: Settings,
    /// What that policy asks for when the CRD is upgraded.
    pub guard_mode: GuardMode,
}

/// The status that a policy should have.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyStatus {
    /// The name of the policy.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The status.
    pub status: DefaultsPolicyStatus,
}

/// What is known of all CRDs and policies.
#[derive(Debug, Default)]
pub struct Index {
    crds: Listed<CrdEntry>,
    policies: Listed<Policy>,
    /// What counts of them.
    counted: Policies,
}

/// What is known of one CRD.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CrdEntry {
    /// Its uid.
    pub uid: String,
    /// Its generation.
    pub generation: i64,
    /// How often that has fallen: etcd was restored, or an API server that lags behind has answered.
    pub generation_falls: u64,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// The generation that a user has resumed after its canary.
    pub resumed: Option<i64>,
    /// Its resource version, and our conditions.
    pub revision: CrdRevision,
    /// A hash of who has edited `status.storedVersions`, and when, as managedFields name them.
    pub version_edits: u64,
}

/// What an event has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing that matters.
    Nothing,
    /// Something about this CRD.
    Crd(String),
    /// This CRD is gone, or about to go.
    Gone(String),
    /// The status of a policy, which is ours to write.
    PolicyStatus,
    /// A policy, or everything at once.
    All,
}

impl Index {
    /// Whether all CRDs and policies have been listed once.
    pub fn is_complete(&self) -> bool {
        self.crds.complete && self.policies.complete
    }

    /// The names of all CRDs, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.crds.items.keys().map(String::as_str)
    }

    /// What is known of a CRD; `None` if there is none, or it is being deleted.
    pub fn crd(&self, name: &str) -> Option<&CrdEntry> {
        self.crds.items.get(name)
    }

    /// The policy that governs a CRD; `None` if no policy selects it, or there is no such CRD.
    pub fn assignment(&self, name: &str, settle: Duration) -> Option<Assignment> {
        let known = self.crds.items.get(name)?;
        assign(&self.counted, name, group(name), &known.labels, settle)
    }

    /// The policy that governs a CRD with these labels, whether it is known or not.
    fn guarded(
        &self,
        name: &str,
        labels: &BTreeMap<String, String>,
        settle: Duration,
    ) -> Option<GoverningPolicy> {
        let Assignment { settings, .. } = assign(&self.counted, name, group(name), labels, settle)?;
        let guard_mode = self.counted.get(&settings.policy)?.guard_mode();
        Some(GoverningPolicy { settings, guard_mode })
    }

    /// The policy that governs a CRD as this document has it, labels included; `None` if no policy selects
    /// it.
    pub fn governing(&self, crd: &Value, settle: Duration) -> Option<GoverningPolicy> {
        self.guarded(crd["metadata"]["name"].as_str()?, &labels(crd), settle)
    }

    /// The policy that governs a CRD by the labels that it was last seen with; `None` if there is no such
    /// CRD, or no policy selects it.
    pub fn governing_known(&self, name: &str, settle: Duration) -> Option<GoverningPolicy> {
        self.guarded(name, &self.crd(name)?.labels, settle)
    }

    /// Why nothing may be written to the objects of a CRD as this document has it, as a reason and a
    /// sentence; `None` if they may be written, also if no policy selects the CRD.
    pub fn withheld(&self, crd: &Value, settle: Duration) -> Option<(&'static str, String)> {
        if !self.is_complete() {
            return Some(("Incomplete", "the policies are not known yet".to_owned()));
        }
        let Some(GoverningPolicy { settings, .. }) = self.governing(crd, settle) else {
            let pause = self.pause_all()?;
            return Some(("Paused", format!("writes are paused by {pause}")));
        };
        let Settings { policy, mode, pause, .. } = settings;
        match (mode, pause) {
            (_, Some(pause)) => Some(("Paused", format!("writes are paused by {pause}"))),
            (Mode::Persist, None) => None,
            (Mode::Audit, None) => Some(("AuditOnly", format!("DefaultsPolicy {policy} has mode: Audit"))),
            (Mode::Ignore, None) => Some(("Ignored", format!("DefaultsPolicy {policy} has mode: Ignore"))),
        }
    }

    /// The pause of all writes, whichever CRD they are for; `None` if there is none.
    fn pause_all(&self) -> Option<Pause> {
        // No policy has an empty name: only those with `pauseAll` count.
        pause(&self.counted, "")
    }

    /// Whether any policy asks for upgrades to be checked; `None` while policies have not been listed.
    pub fn asks_for_guard(&self) -> Option<bool> {
        let asks = || self.counted.values().any(|policy| policy.guard_mode() != GuardMode::Off);
        self.policies.complete.then(asks)
    }

    /// Which policy governs each CRD.
    pub fn assignments(&self, settle: Duration) -> Vec<(&str, Assignment)> {
        let assigned = self.names().filter_map(|name| Some((name, self.assignment(name, settle)?)));
        assigned.collect()
    }

    /// The status that each policy should have, if it has another, and the conditions that it has. `crd`
    /// finds a CRD by its name; `None` if it is not known.
    pub fn policy_statuses<'a>(
        &'a self,
        assignments: &'a [(&'a str, Assignment)],
        crd: &'a dyn Fn(&str) -> Option<&'a Crd>,
        now: Timestamp,
    ) -> Vec<PolicyStatus> {
        let assigned = assignments.iter().map(|(name, assignment)| (*name, assignment));
        let scope = Scope { policies: &self.policies.items, counted: &self.counted, crd };
        let wanted = statuses(scope, assigned, now).into_iter().map(|(name, status)| {
            let uid = self.policies.items[&name].uid.clone();
            PolicyStatus { name, uid, status }
        });
        wanted.collect()
    }

    /// How many policies have values that this version does not support.
    pub fn unreadable_policies(&self) -> usize {
        self.policies.items.values().filter(|policy| policy.spec.is_none()).count()
    }

    /// The status that a policy has.
    pub fn policy_status(&self, name: &str) -> Option<&DefaultsPolicyStatus> {
        self.policies.items.get(name).map(|policy| &policy.status)
    }

    /// A list of all CRDs begins.
    pub fn list_crds(&mut self) {
        self.crds.begin();
    }

    /// That list has ended.
    pub fn crds_listed(&mut self) -> Change {
        self.crds.end();
        Change::All
    }

    /// A CRD is gone.
    pub fn crd_deleted(&mut self, name: String) -> Change {
        self.crds.items.remove(&name);
        Change::Gone(name)
    }

    /// A CRD is there, with this metadata.
    pub fn crd_applied(&mut self, crd: &ObjectMeta) -> Change {
        let name = crd.name.clone().unwrap_or_default();
        if crd.deletion_timestamp.is_some() {
            return self.crd_deleted(name);
        }
        let before = self.crds.items.get(&name);
        let generation = crd.generation.unwrap_or_default();
        let generation_falls =
            before.map_or(0, |before| before.generation_falls + u64::from(before.generation > generation));
        let resumed = crd.annotations.as_ref().and_then(|annotations| annotations.get(RESUME_ANNOTATION));
        let known = CrdEntry {
            uid: crd.uid.clone().unwrap_or_default(),
            generation,
            generation_falls,
            labels: crd.labels.clone().unwrap_or_default(),
            resumed: resumed.and_then(|generation| generation.parse().ok()),
            revision: CrdRevision {
                version: crd.resource_version.clone().unwrap_or_default(),
                entry: conditions(crd),
            },
            version_edits: version_edits(crd),
        };
        let is_new = self.crds.items.get(&name) != Some(&known);
        self.crds.insert(&name, known);
        if is_new { Change::Crd(name) } else { Change::Nothing }
    }

    /// A list of all policies begins.
    pub fn list_policies(&mut self) {
        self.policies.begin();
    }

    /// That list has ended.
    pub fn policies_listed(&mut self) -> Change {
        self.policies.end();
        self.policy_changed(true)
    }

    /// A policy is gone.
    pub fn policy_deleted(&mut self, name: &str) -> Change {
        let is_new = self.policies.items.remove(name).is_some();
        self.policy_changed(is_new)
    }

    /// A policy is there. Returns also why its spec cannot be read, without values: what it governs is not
    /// written then.
    pub fn policy_applied(&mut self, policy: &DynamicObject) -> (Change, Option<String>) {
        let (is_new, unread) = self.take_policy(policy);
        (self.policy_changed(is_new), unread)
    }

    fn policy_changed(&mut self, is_new: bool) -> Change {
        if self.policies.is_listing() {
            return Change::Nothing;
        }
        if !is_new {
            return Change::PolicyStatus;
        }
        self.counted = counted(&self.policies.items);
        Change::All
    }

    /// Takes a policy in: whether its spec is new, and why it cannot be read.
    fn take_policy(&mut self, object: &DynamicObject) -> (bool, Option<String>) {
        let (name, uid) = (object.name_any(), object.uid().unwrap_or_default());
        let generation = object.metadata.generation.unwrap_or_default();
        let status = DefaultsPolicyStatus::deserialize(&object.data["status"]).unwrap_or_default();
        // After a restore of etcd the same generation may have another content, so a list reads every policy
        // again.
        if !self.policies.is_listing()
            && let Some(known) = self.policies.items.get_mut(&name)
            && (&known.uid, known.generation) == (&uid, generation)
            && generation > 0
        {
            known.status = status;
            return (false, None);
        }
        let (spec, unread) = match DefaultsPolicySpec::deserialize(&object.data["spec"]) {
            Ok(spec) => (Some(spec), None),
            Err(error) => (None, Some(without_values(&error))),
        };
        let counts = counting(&object.data["spec"]);
        self.policies.insert(&name, Policy { uid, generation, spec, counts, status });
        (true, unread)
    }
}

/// The group of a CRD: the server demands that it is named `plural.group`, and a plural has no dots.
fn group(name: &str) -> &str {
    name.split_once('.').map_or("", |(_, group)| group)
}

/// What changes when our conditions on a CRD do.
fn conditions(crd: &ObjectMeta) -> Option<u64> {
    let ours = crd.managed_fields.iter().flatten();
    let ours = ours.filter(|entry| entry.manager.as_deref() == Some(MANAGER));
    ours.filter_map(|entry| serde_json::to_value(entry).ok()).find_map(|entry| CrdRevision::entry(&entry))
}

/// A hash that changes when a client removes versions from `status.storedVersions`: only the API server
/// itself adds one, and with a new generation.
fn version_edits(crd: &ObjectMeta) -> u64 {
    let mut hasher = DefaultHasher::new();
    for entry in crd.managed_fields.iter().flatten() {
        let fields = entry.fields_v1.as_ref().map(|fields| &fields.0["f:status"]["f:storedVersions"]);
        if fields.is_some_and(|fields| !fields.is_null()) {
            (&entry.manager, entry.time.as_ref().map(|time| time.0.as_second())).hash(&mut hasher);
        }
    }
    hasher.finish()
}

/// Objects by name, from a watcher that lists and then watches.
#[derive(Debug)]
struct Listed<T> {
    items: BTreeMap<String, T>,
    /// The names in a list that is under way.
    relisted: Option<Vec<String>>,
    /// Whether a list has ever been complete.
    complete: bool,
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self { items: BTreeMap::new(), relisted: None, complete: false }
    }
}

impl<T> Listed<T> {
    fn begin(&mut self) {
        self.relisted = Some(Vec::new());
    }

    fn is_listing(&self) -> bool {
        self.relisted.is_some()
    }

    fn insert(&mut self, name: &str, item: T) {
        self.seen(name);
        self.items.insert(name.to_owned(), item);
    }

    fn seen(&mut self, name: &str) {
        if let Some(relisted) = &mut self.relisted {
            relisted.push(name.to_owned());
        }
    }

    /// Ends a list: what it did not name is gone.
    fn end(&mut self) {
        if let Some(mut names) = self.relisted.take() {
            names.sort();
            self.items.retain(|name, _| names.binary_search(name).is_ok());
        }
        self.complete = true;
    }
}

#[cfg(test)]
mod tests;
