//! What is known of an upgrade, before there is a plan for it.

use std::time::Duration;

use etch_core::api::Canary;
use etch_core::crd::Crd;
use etch_core::impact::{EffectKind, Place, Problem, SchemaChanges, Tally, compare};
use etch_core::plan::{Change, Terms, changes, past_of};
use etch_core::shell::quoted;
use etch_core::words::counted;
use kube_structural_schema::json::Json;
use kube_structural_schema::path::Path;
use serde_json::Value;

use super::dry_run::DryRun;
use crate::rule::Finding;

/// What is known of the upgrade of one CRD.
#[derive(Clone, Debug)]
pub struct Upgrade<'a> {
    /// The CRD before, as it is written and as it is read; `None` if it is new.
    pub old: Option<(&'a Json, &'a Crd)>,
    /// The CRD after.
    pub new: (&'a Json, &'a Crd),
    /// What API servers refuse it for.
    pub refusals: &'a [Finding],
    /// What the API server of the cluster answers.
    pub dry_run: &'a DryRun,
    /// What is incompatible between the two.
    pub incompatible: &'a [Finding],
    /// What changes in the storage version.
    pub schemas: &'a SchemaChanges,
    /// What happens to the objects of the cluster; `None` if they were not read.
    pub objects: Option<&'a Tally>,
    /// What Etch may write, and who decides so.
    pub policy: Policy<'a>,
    /// How the commands begin and what they are about.
    pub words: &'a Words,
}

/// The policy that governs the CRD after the upgrade, as far as it matters for the steps.
#[derive(Clone, Debug, Default)]
pub struct Policy<'a> {
    /// Its name; `None` if no policy governs the CRD, or none was read.
    pub name: Option<&'a str>,
    /// Whether the operator writes objects under it.
    pub writes: bool,
    /// Why it writes none, without a full stop; `None` if it does, or no policy was read.
    pub idle: Option<String>,
    /// What writes may do.
    pub terms: Terms,
    /// The places where it asks stored values to follow a changed default (`onChange`).
    pub follow: &'a [Path],
    /// How long it waits after a schema has changed.
    pub settle: Duration,
    /// How many objects it writes before all others.
    pub canary: Option<Canary>,
}

impl Policy<'_> {
    /// Whether the operator takes old versions out of `status.storedVersions` by itself: it does so once each
    /// object is stored at the storage version.
    pub(super) fn trims(&self) -> bool {
        self.writes && self.terms.moves && !self.selects_some()
    }

    /// Whether the operator leaves alone what `objects` does not select.
    pub(super) fn selects_some(&self) -> bool {
        self.terms.selection.selector().is_some()
    }

    /// For how long `kubectl wait` waits for a pass: up to one hour longer than the policy does.
    pub(super) fn timeout(&self) -> String {
        format!("{}h", self.settle.as_secs() / 3600 + 1)
    }
}

/// The words of commands, ready for a shell.
#[derive(Clone, Debug, Default)]
pub struct Words {
    /// How Etch is called.
    pub etch: String,
    /// The files after the upgrade, each behind `-f`.
    pub new: String,
    /// The files with the CRDs, each behind `-f`, as kubectl takes them; `None` where they were piped in.
    pub apply: Option<String>,
    /// The command with which `etch lint` shows what is refused and what is incompatible.
    pub lint: String,
    /// The options that lead to the cluster, with a space before each.
    pub cluster: String,
    /// What `etch impact` compares with, with a space before each option.
    pub old: String,
    /// The flags with which `etch persist` writes on the terms of the policy, with a space before each.
    pub persist: String,
}

impl<'a> Upgrade<'a> {
    pub(super) fn name(&self) -> &str {
        self.new.1.name()
    }

    /// The CRD's name, ready for a shell.
    pub(super) fn word(&self) -> String {
        quoted(self.name())
    }

    /// Whether it is known that there are no objects.
    pub(super) fn has_no_objects(&self) -> bool {
        self.old.is_none() || self.objects.is_some_and(|objects| objects.counts.total == 0)
    }

    /// The command that stores the present defaults and verifies it, with more options, a space before each.
    pub(super) fn persist(&self, options: &str) -> String {
        let Words { etch, cluster, persist, .. } = self.words;
        format!("{etch} persist {}{options}{persist}{cluster}", self.word())
    }

    /// `--all-namespaces`, with a space before it, where the objects are in namespaces.
    pub(super) fn everywhere(&self) -> &'static str {
        if self.new.0["spec"]["scope"] == "Cluster" { "" } else { " --all-namespaces" }
    }

    /// Whether the upgrade changes the storage version.
    pub(super) fn moves(&self) -> bool {
        self.old.is_some_and(|(_, old)| old.storage().name != self.new.1.storage().name)
    }

    /// Whether it does, and a webhook converts to the new one.
    pub(super) fn is_moved_by_webhook(&self) -> bool {
        self.moves() && self.new.1.is_converted_by_webhook()
    }

    /// What changes in the version at which objects are stored before the upgrade, by whose schema they are
    /// read (fact R2). Nothing, if the upgrade takes that version out, for then none of them can be read.
    pub(super) fn of_stored(&self) -> SchemaChanges {
        let Some((_, old)) = self.old.filter(|_| self.moves()) else { return self.schemas.clone() };
        let before = old.storage();
        let after = self.new.1.version(&before.name);
        after.map(|after| compare(&before.schema, &after.schema)).unwrap_or_default()
    }

    /// The places where `etch persist` keeps no value, because none that is stored before the upgrade is read
    /// after it: fields that go, and defaults that the operator has stored values follow.
    pub(super) fn not_kept(&self) -> Vec<Path> {
        let mut places = self.of_stored().fields_removed;
        if !self.is_moved_by_webhook() {
            places.extend(self.schemas.fields_removed.iter().cloned());
        }
        if let (Some((_, old)), true) = (self.old, self.policy.writes) {
            let changes = changes(&past_of(old), self.new.1, self.policy.follow);
            places.extend(changes.iter().filter(|change| change.is_followed()).map(Change::path).cloned());
        }
        places
    }

    /// The versions that the upgrade takes out of the CRD, and at which objects may be stored.
    pub(super) fn going(&self) -> Vec<&'a str> {
        let Some((document, _)) = self.old else { return Vec::new() };
        let stored = stored(document);
        let is_stored =
            |name: &str| stored.as_ref().is_none_or(|stored| stored.iter().any(|other| other == name));
        let is_kept = |name: &str| names(self.new.0).any(|other| other == name);
        names(document).filter(|name| !is_kept(name) && is_stored(name)).collect()
    }

    /// The problems that objects no longer have once each is stored at the storage version.
    pub(super) fn of_place_in_etcd(&self) -> Vec<Problem> {
        self.old.into_iter().flat_map(|(_, old)| Problem::of_place_in_etcd(old, self.new.1)).collect()
    }

    /// The problems of objects with owners at a version that the upgrade takes out.
    pub(super) fn of_owners(&self) -> Vec<Problem> {
        self.old.into_iter().flat_map(|(_, old)| Problem::of_owners(old, self.new.1)).collect()
    }

    /// What happens at some places of the schema, and to how many objects.
    pub(super) fn places(&self, is_meant: impl Fn(&Place) -> bool) -> Vec<String> {
        let summary = self.objects.into_iter().flat_map(|objects| &objects.summary);
        let meant = summary.filter(|(place, _)| is_meant(place)).map(|(place, objects)| {
            let word = if place.is_open { place.effect.as_possibility() } else { place.effect.as_str() };
            match place.effect {
                EffectKind::Problem
                    if place.is_open && matches!(place.problem, Some(Problem::Invalid { .. })) =>
                {
                    format!("{}: {word}: {}", counted(*objects, "object"), place.text)
                }
                EffectKind::Problem => format!("{}: {}", counted(*objects, "object"), place.text),
                _ => format!("{}: {} {word}", counted(*objects, "object"), place.text),
            }
        });
        meant.collect()
    }
}

/// The names of the versions.
pub(super) fn names(document: &Value) -> impl Iterator<Item = &str> {
    let versions = document["spec"]["versions"].as_array().into_iter().flatten();
    versions.filter_map(|version| version["name"].as_str())
}

/// `status.storedVersions`; `None` if the document does not have it, such as one from a file.
pub(super) fn stored(document: &Value) -> Option<Vec<String>> {
    let stored = document["status"]["storedVersions"].as_array()?;
    let stored: Vec<String> = stored.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect();
    (!stored.is_empty()).then_some(stored)
}
