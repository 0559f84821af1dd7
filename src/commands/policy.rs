//! Which DefaultsPolicy a command decides under: those of the cluster, or of files.
//! [`assign`] chooses one, for the operator too.

mod rules;
#[cfg(test)]
mod tests;

use std::io::{self, Read};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use etch::cluster::Cluster;
use etch::source;
use etch_admission::installed_crds;
use etch_answers::plain;
use etch_core::api::{DefaultsPolicySpec, DefaultsReportStatus, GROUP, Policies, assign, counting};
use etch_core::crd::Crd;
use etch_core::duration;
use etch_core::object::Object;
use etch_core::prediction::{PendingChanges, pending_changes};
use kube_structural_schema::json::Json;
use kube_structural_schema::mismatch::without_values;
use kube_structural_schema::path::{Path, Trail};
use kube_structural_schema::prune;
use serde::Deserialize;
use serde_json::Value;

pub(crate) use etch_core::api::{Labels, labels};

pub(crate) use self::rules::{Rules, first, write_all};
use super::none_of;
use super::once::Once;

use crate::commands::streams::note;

/// Which policies to decide under.
#[derive(Args, Clone, Debug)]
pub(crate) struct PolicyArg {
    /// Use the DefaultsPolicies in this file or folder, or - for standard input, instead of those of the
    /// cluster. Repeatable
    #[arg(long = "policy", value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
}

/// The policies to decide under, or why they could not be read.
#[derive(Default)]
pub(crate) struct Known {
    policies: Option<Policies>,
    unread: Option<Unread>,
}

/// Why the policies of a cluster were not read.
pub(crate) enum Unread {
    /// Etch's CRDs are not installed.
    NotInstalled,
    /// The server refused, in these words.
    Refused(String),
}

impl PolicyArg {
    /// The policies in the files; `None` if no file is named.
    ///
    /// # Errors
    /// A file cannot be read, or holds no policy, or one that this version cannot read.
    pub(crate) fn read(&self, stdin: &mut dyn Read) -> anyhow::Result<Option<Known>> {
        if self.files.is_empty() {
            return Ok(None);
        }
        let policies = from_files(&self.files, stdin).context("--policy")?;
        Ok(Some(Known { policies: Some(policies), unread: None }))
    }
}

impl Known {
    /// The policies of a cluster. Where Etch's CRDs are not installed, or policies may not be read, there are
    /// none.
    ///
    /// # Errors
    /// The cluster does not answer.
    pub(crate) async fn of(cluster: &Cluster) -> anyhow::Result<Self> {
        let unread = match cluster.all_policies().await {
            Ok(Some(documents)) => {
                let policies = counted(documents.iter().map(Object::json));
                return Ok(Self { policies: Some(policies), unread: None });
            }
            Ok(None) => Unread::NotInstalled,
            Err(error) if error.code() == Some(403) => Unread::Refused(error.to_string()),
            Err(error) => return Err(error).context("cannot read DefaultsPolicies"),
        };
        Ok(Self { policies: None, unread: Some(unread) })
    }

    /// Why the policies of the cluster were not read; `None` if they were, or were not wanted.
    pub(crate) fn unread(&self) -> Option<&Unread> {
        self.unread.as_ref()
    }

    /// Writes to standard error why the policies of the cluster were not read, if they were not.
    pub(crate) fn announce(&self) -> io::Result<()> {
        let why = match &self.unread {
            None => return Ok(()),
            Some(Unread::NotInstalled) => "Etch's CRDs are not installed".to_owned(),
            Some(Unread::Refused(error)) => {
                format!("cannot read DefaultsPolicies: {}", plain(error))
            }
        };
        note(&format!("{why}; assuming a policy without settings (see --policy)"))
    }

    /// The policies; `None` if they were not read.
    pub(crate) fn policies(&self) -> Option<&Policies> {
        self.policies.as_ref()
    }

    /// How the operator treats the objects of a CRD.
    pub(crate) fn rules(&self, crd: &Crd, labels: &Labels) -> Rules {
        let Some(policies) = &self.policies else { return Rules::Assumed };
        let assigned = assign(policies, crd.name(), crd.group(), labels, Duration::ZERO);
        assigned.map_or(Rules::Unselected, |assigned| Rules::Governed(assigned.settings, assigned.ties))
    }
}

/// The changed defaults whose old values the operator has still to look for, by the last report.
pub(crate) fn due(report: Option<&DefaultsReportStatus>, crd: &Crd, rules: &Rules) -> Option<PendingChanges> {
    let settings = rules.settings().filter(|_| !rules.is_ignored())?;
    Some(pending_changes(report?, crd, settings))
}

/// What counts of each policy of a cluster.
pub(crate) fn counted<'a>(documents: impl IntoIterator<Item = &'a Json>) -> Policies {
    let name = |policy: &Json| policy["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    documents.into_iter().map(|policy| (name(policy), counting(&policy["spec"]))).collect()
}

/// The policies in files. A field that no policy has is an error there, at any depth, as it is for kubectl:
/// the policy without it may select everything.
///
/// # Errors
/// A file cannot be read, or holds no policy, or one that a server refuses or this version cannot read.
pub(crate) fn from_files(files: &[PathBuf], stdin: &mut dyn Read) -> anyhow::Result<Policies> {
    let schema = schema()?;
    let documents = source::documents(files, stdin)?;
    let (mut found, mut once) = (Policies::new(), Once::default());
    for document in documents.iter().filter(|document| is_policy(document)) {
        let origin = &document.origin;
        let name = document.json["metadata"]["name"].as_str().filter(|name| !name.is_empty());
        let name = name.with_context(|| format!("{origin}: metadata.name is missing"))?;
        let spec = read_spec(&document.json, &schema).with_context(|| origin.to_string())?;
        if once.is_first(format!("DefaultsPolicy {name}"), document)? {
            found.insert(name.to_owned(), spec);
        }
    }
    if found.is_empty() {
        bail!(none_of("DefaultsPolicy", files, documents.first().map(source::Document::what)));
    }
    Ok(found)
}

fn is_policy(document: &source::Document) -> bool {
    let group = document.api_version().split_once('/').map(|(group, _)| group);
    document.kind() == "DefaultsPolicy" && group == Some(GROUP)
}

/// DefaultsPolicy as it is installed.
fn schema() -> anyhow::Result<Crd> {
    let crds = installed_crds::crds();
    let crd = crds.iter().find(|crd| crd.spec.names.kind == "DefaultsPolicy").context("DefaultsPolicy")?;
    Ok(Crd::read(&serde_json::to_value(crd)?.into())?)
}

/// The spec of a policy without a field that no policy has.
fn read_spec(document: &Json, crd: &Crd) -> anyhow::Result<DefaultsPolicySpec> {
    let spec = &document["spec"];
    let fields = spec.as_object().context("spec is missing, or no object")?;
    let mut unknown: Option<Path> = None;
    prune(&mut document.clone(), &crd.storage().schema, true, &mut |at: &Trail<'_>| {
        unknown.get_or_insert_with(|| at.to_path());
    });
    if let Some(unknown) = unknown {
        bail!("{}: unknown field", unknown.to_string().trim_start_matches('.'));
    }
    // Field by field, since the first error of the whole has no place.
    for (name, value) in fields {
        let alone = serde_json::Map::from_iter([(name.clone(), value.clone())]);
        if let Err(error) = DefaultsPolicySpec::deserialize(&Value::Object(alone)) {
            bail!("spec.{name} cannot be read: {}", without_values(&error));
        }
    }
    let read =
        DefaultsPolicySpec::deserialize(spec).map_err(|error| anyhow!("spec: {}", without_values(&error)))?;
    if let Some(settle) = &read.settle {
        duration::parse(settle).context("spec.settle")?;
    }
    Ok(read)
}
