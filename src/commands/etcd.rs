//! Where commands take what etcd holds from: a running etcd, or a snapshot.

use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use clap::{ArgGroup, Args};
use etch::cluster::etcd::{Etcd, EtcdTarget, Snapshot};
use etch::cluster::{Cluster, ObjectSource, Witnesses};
use etch_core::api::DefaultsReportStatus;
use etch_core::crd::Crd;
use etch_core::etcd::{Endpoint, EtcdError, REGISTRY};
use etch_core::plan::Record;
use etch_core::prediction::record_of;
use etch_core::scope::Scope;
use jiff::Timestamp;
use kube_structural_schema::json::Json;
use serde_json::Value;

/// Where the bytes are.
#[derive(Args, Debug)]
#[command(next_help_heading = "Access to etcd")]
#[command(group = ArgGroup::new("access_to_etcd").args(["etcd_endpoints", "etcd_snapshot"]))]
pub(crate) struct EtcdArgs {
    /// Read etcd directly: URLs, or hosts with ports, separated by commas
    #[arg(long, value_name = "ENDPOINT", value_delimiter = ',')]
    etcd_endpoints: Vec<Endpoint>,
    /// The certificate authority of etcd, in PEM
    #[arg(long, value_name = "FILE", requires = "etcd_endpoints")]
    etcd_cacert: Option<PathBuf>,
    /// The client certificate for etcd, in PEM
    #[arg(long, value_name = "FILE", requires_all = ["etcd_endpoints", "etcd_key"])]
    etcd_cert: Option<PathBuf>,
    /// The client key for etcd, in PEM
    #[arg(long, value_name = "FILE", requires_all = ["etcd_endpoints", "etcd_cert"])]
    etcd_key: Option<PathBuf>,
    /// Read a snapshot of etcd, as `etcdctl snapshot save` writes it
    #[arg(long, value_name = "FILE", conflicts_with = "etcd_endpoints")]
    pub(crate) etcd_snapshot: Option<PathBuf>,
    /// The prefix of the API server's keys
    #[arg(
        long,
        value_name = "PREFIX",
        default_value = REGISTRY,
        value_parser = prefix,
        requires = "access_to_etcd"
    )]
    etcd_prefix: String,
}

/// What an answer from a snapshot is about.
pub(crate) const OF_SNAPSHOT: &str = "A snapshot shows what was stored when it was taken.";

impl EtcdArgs {
    /// Whether they name anything.
    pub(crate) fn is_given(&self) -> bool {
        self.etcd_snapshot.is_some() || !self.etcd_endpoints.is_empty()
    }

    /// What an answer is about that is from a snapshot, and compared with the CRDs of a cluster if there
    /// `is_cluster`; `None` if there is no snapshot.
    pub(crate) fn of_snapshot(&self, is_cluster: bool) -> Option<String> {
        self.etcd_snapshot.as_ref()?;
        Some(match is_cluster {
            true => format!("{OF_SNAPSHOT} The CRDs before the upgrade are those that the cluster has now."),
            false => OF_SNAPSHOT.to_owned(),
        })
    }

    /// A document that shows whether a snapshot was read.
    pub(crate) fn in_document(&self, mut document: Value) -> Value {
        if self.etcd_snapshot.is_some() {
            document["snapshot"] = Value::Bool(true);
        }
        document
    }

    /// What they give access to; `None` if they name nothing.
    pub(crate) async fn open(&self) -> anyhow::Result<Option<ObjectSource>> {
        if let Some(path) = &self.etcd_snapshot {
            let snapshot = Snapshot::open(path)?;
            let holds_keys = snapshot.holds(&self.keys())?;
            ensure!(holds_keys, "{}: {}", path.display(), EtcdError::Empty(self.keys()));
            return Ok(Some(ObjectSource::Snapshot(Arc::new(snapshot), self.etcd_prefix.clone())));
        }
        if self.etcd_endpoints.is_empty() {
            return Ok(None);
        }
        let files = [
            ("--etcd-cacert", &self.etcd_cacert, "CERTIFICATE"),
            ("--etcd-cert", &self.etcd_cert, "CERTIFICATE"),
            ("--etcd-key", &self.etcd_key, "PRIVATE KEY"),
        ];
        for (option, path, label) in files {
            path.as_deref().map_or(Ok(()), |path| holds_pem(path, label)).context(option)?;
        }
        let target = EtcdTarget {
            endpoints: self.etcd_endpoints.clone(),
            cacert: self.etcd_cacert.clone(),
            cert: self.etcd_cert.clone(),
            key: self.etcd_key.clone(),
        };
        let etcd = Etcd::connect(&target).await?;
        etcd.check(&self.keys()).await?;
        Ok(Some(ObjectSource::Etcd(etcd, self.etcd_prefix.clone())))
    }

    /// What the API server's keys begin with.
    fn keys(&self) -> String {
        format!("{}/", self.etcd_prefix)
    }
}

/// A prefix as the API server reads its own flag: keys begin with a slash, whether or not the prefix does.
///
/// Source: apiserver `pkg/storage/etcd3/store.go`.
fn prefix(text: &str) -> Result<String, Infallible> {
    Ok(text.split('/').filter(|part| !part.is_empty()).map(|part| format!("/{part}")).collect())
}

/// The longest file that is read as PEM; bundles of all public authorities have a quarter of it.
const MAX_PEM_BYTES: u64 = 1 << 20;

/// Makes sure that a file is no device and no disk image, since it is read as a whole, and that it holds a
/// PEM block with this label: the reader skips everything else in it without an error.
fn holds_pem(path: &Path, label: &str) -> anyhow::Result<()> {
    let metadata = fs::metadata(path).with_context(|| path.display().to_string())?;
    if !metadata.is_file() || metadata.len() > MAX_PEM_BYTES {
        bail!("{}: not a PEM file", path.display());
    }
    let text = fs::read(path).with_context(|| path.display().to_string())?;
    let begins =
        |line: &str| line.starts_with("-----BEGIN ") && line.trim_end().ends_with(&format!("{label}-----"));
    if !String::from_utf8_lossy(&text).lines().any(begins) {
        bail!("{}: no {} in PEM", path.display(), label.to_lowercase());
    }
    Ok(())
}

/// What proves objects of a CRD to be stored, before they are read: what is on record, and what else in the
/// cluster shows when they were written, as far as it can be read.
pub(crate) async fn evidence(
    cluster: &Cluster,
    document: &Json,
    crd: &Crd,
    report: Option<&DefaultsReportStatus>,
    scope: &Scope,
    witnesses: &mut Witnesses,
) -> Record {
    let mut record = record_of(report, document, crd, Timestamp::now());
    if record.through.is_none() && crd.gives_defaults() {
        witnesses.feed(cluster, &crd.resource(), scope, &mut record.clock).await;
        record.history = witnesses.history(cluster, crd).await;
    }
    record
}

/// The report on a CRD; `None` if there is none.
///
/// # Errors
/// It cannot be read: it may be all that names hidden fields, which a write destroys.
pub(crate) async fn report_on(cluster: &Cluster, crd: &Crd) -> anyhow::Result<Option<DefaultsReportStatus>> {
    match cluster.report(crd.name(), crd.uid()).await {
        Ok(report) => Ok(report.and_then(|report| report.status)),
        // Who may not read reports is refused also where Etch is not installed, and none can be.
        Err(error) if error.code() == Some(403) && !cluster.has_etch().await? => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read the DefaultsReport {}", crd.name())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_that_of_the_api_server_however_it_is_written() {
        for (text, expected) in [
            ("/registry", "/registry"),
            ("/registry/", "/registry"),
            ("kubernetes.io", "/kubernetes.io"),
            ("a//b/", "/a/b"),
            ("/", ""),
        ] {
            assert_eq!(prefix(text), Ok(expected.to_owned()), "{text}");
        }
    }
}
