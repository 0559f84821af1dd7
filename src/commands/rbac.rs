//! `etch rbac`: the permissions that Etch needs for the objects of CRDs.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use etch::api::{DefaultsPolicy, DefaultsPolicySpec, GROUP, Mode};
use etch::cluster::{Cluster, Target, crds, policies};
use etch::domain::json::Json;
use etch::domain::rbac::{Access, Grant, role};
use etch::{report, source};
use serde_json::Value;

use super::{each, none_of};
use crate::commands::global::Format;
use crate::commands::outcome::Outcome;

/// Print the ClusterRole that Etch needs for the objects of CRDs
///
/// The rules allow exactly what Etch needs: get, list, watch and patch on these resources. A label adds them to the ClusterRole
/// etch-custom-resources, which the installation binds to Etch.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  etch rbac | kubectl apply -f -
  etch rbac crds/ --name etch-ours
  etch rbac --policy certificates
  helm template cert-manager | etch rbac -")]
pub(crate) struct Rbac {
    /// Files or folders with CRDs, or - for standard input [default: the CRDs of the cluster]
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The CRDs of the cluster, as without files
    #[arg(long, conflicts_with = "files")]
    live: bool,
    /// Only the CRDs that this DefaultsPolicy selects: a file, or the name of one in the cluster
    #[arg(long, value_name = "FILE|NAME")]
    policy: Option<String>,
    /// Leave out the permission to write: enough for reports
    #[arg(long)]
    read_only: bool,
    /// The name of the ClusterRole
    #[arg(long, default_value = "etch-crds")]
    name: String,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

impl Rbac {
    pub(crate) async fn run(&self, target: &Target, out: &mut dyn Write) -> anyhow::Result<Outcome> {
        let crds = if self.files.is_empty() { live(target).await? } else { from_files(&self.files)? };
        let policy = match &self.policy {
            Some(policy) => Some(read_policy(policy, target).await?),
            None => None,
        };
        let role = role(&self.name, crds.iter().filter_map(|crd| self.grant(crd, policy.as_ref())));
        match self.output {
            Format::Yaml => report::write_yaml(out, &role)?,
            Format::Json => report::write_json(out, &role)?,
        }
        Ok(Outcome::Clean)
    }

    /// What Etch is to be granted for a CRD; none where it has nothing to do with its objects.
    fn grant(&self, crd: &Known, policy: Option<&DefaultsPolicySpec>) -> Option<Grant> {
        let mode = match policy {
            Some(policy) => {
                policy.selector.weight(&crd.name, &crd.group, &crd.labels)?;
                policy.mode.unwrap_or_default()
            }
            None => Mode::Persist,
        };
        let access = match mode {
            Mode::Persist if !self.read_only => Access::Write,
            Mode::Persist | Mode::Audit => Access::Read,
            Mode::Ignore => return None,
        };
        Some(Grant { group: crd.group.clone(), plural: crd.plural.clone(), access })
    }
}

/// What of a CRD decides about permissions. Its schema does not: defaults may come with its next version.
struct Known {
    name: String,
    group: String,
    plural: String,
    labels: BTreeMap<String, String>,
}

impl Known {
    fn read(crd: &Json) -> anyhow::Result<Self> {
        let text = |value: &Value, field: &'static str| {
            let text = value.as_str().filter(|text| !text.is_empty());
            text.map(str::to_owned).with_context(|| format!("CustomResourceDefinition: {field} is missing"))
        };
        let labels = crd["metadata"]["labels"].as_object().into_iter().flatten();
        Ok(Self {
            name: text(&crd["metadata"]["name"], "metadata.name")?,
            group: text(&crd["spec"]["group"], "spec.group")?,
            plural: text(&crd["spec"]["names"]["plural"], "spec.names.plural")?,
            labels: labels
                .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
                .collect(),
        })
    }
}

/// The CRDs of the cluster but for Etch's own, whose objects have no defaults.
async fn live(target: &Target) -> anyhow::Result<Vec<Known>> {
    let mut found = Vec::new();
    let cluster = Cluster::connect(target).await?;
    each(&cluster, &crds(), &mut |crd| found.push(Known::read(crd.json()))).await?;
    let mut found = found.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    found.retain(|crd| crd.group != GROUP);
    Ok(found)
}

fn from_files(files: &[PathBuf]) -> anyhow::Result<Vec<Known>> {
    let documents = source::documents(files, &mut io::stdin().lock())?;
    let crds = documents.iter().filter(|document| document.is_crd());
    let found = crds
        .map(|document| Known::read(&document.json).with_context(|| document.origin.to_string()))
        .collect::<anyhow::Result<Vec<_>>>()?;
    if found.is_empty() {
        bail!(none_of("CustomResourceDefinition", files, documents.first().map(source::Document::what)));
    }
    Ok(found)
}

/// The policy in a file, if there is one of that name, or else in the cluster.
async fn read_policy(policy: &str, target: &Target) -> anyhow::Result<DefaultsPolicySpec> {
    // A policy may be called so, too; whoever means it can rename it, and a file that is not there is told as such.
    let is_file = policy.contains('/') || [".yaml", ".yml", ".json"].iter().any(|end| policy.ends_with(end));
    let documents = if is_file || Path::new(policy).exists() {
        let documents = source::documents(&[policy.into()], &mut io::empty()).context("--policy")?;
        let all = documents.into_iter().filter(|document| document.kind() == "DefaultsPolicy");
        all.map(|document| document.json).collect()
    } else {
        let mut documents = Vec::new();
        let cluster = Cluster::connect(target).await?;
        each(&cluster, &policies(), &mut |object| {
            if object.name() == policy {
                documents.push(object.json().clone());
            }
        })
        .await?;
        documents
    };
    let [document] = &documents[..] else {
        bail!(
            "--policy {policy}: found {} instead of one; name a file with one DefaultsPolicy, or one in the cluster",
            documents.len()
        );
    };
    // Serde's message may quote a value; a policy holds none of an object.
    let policy: DefaultsPolicy = serde_json::from_slice(&document.to_vec())
        .with_context(|| format!("--policy {policy} cannot be read"))?;
    Ok(policy.spec)
}
