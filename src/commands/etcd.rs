//! Where commands take what etcd holds from: a running etcd, or a snapshot.
//! It must not interpret the values.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use etch::cluster::etcd::{
    After, Endpoint, Etcd, EtcdTarget, REGISTRY, RawValue, Snapshot, decode, definition, identity_of,
    prefix_of,
};
use etch::cluster::{Cluster, Scope, Witnesses, crds};
use etch::operator::record_of;
use etch_core::api::DefaultsReportStatus;
use etch_core::crd::{Crd, Resource};
use etch_core::object::Identity;
use etch_core::plan::Record;
use kube_structural_schema::json::Json;

/// Where the bytes are.
#[derive(Args, Debug)]
#[command(next_help_heading = "Access to etcd")]
pub(crate) struct EtcdArgs {
    /// Read etcd directly: URLs, or hosts with ports, separated by commas
    #[arg(long, value_name = "ENDPOINT", value_delimiter = ',')]
    pub(crate) etcd_endpoints: Vec<Endpoint>,
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
    #[arg(long, value_name = "PREFIX", default_value = REGISTRY)]
    pub(crate) etcd_prefix: String,
}

impl EtcdArgs {
    /// Whether they name anything.
    pub(crate) fn is_given(&self) -> bool {
        self.etcd_snapshot.is_some() || !self.etcd_endpoints.is_empty()
    }
}

/// The longest file that is read as PEM; bundles of all public authorities have a quarter of it.
const MAX_PEM_BYTES: u64 = 1 << 20;

/// Makes sure that a file is no device and no disk image, since it is read as a whole, and that it holds something in PEM that
/// is called so: whatever else it holds is passed over without a word.
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

/// Access to the bytes.
pub(crate) struct Bytes {
    prefix: String,
    source: Source,
}

enum Source {
    Etcd(Etcd),
    Snapshot(Snapshot),
}

impl Bytes {
    /// What the arguments give access to; none if they name nothing.
    pub(crate) async fn open(args: &EtcdArgs) -> anyhow::Result<Option<Self>> {
        let source = if let Some(path) = &args.etcd_snapshot {
            Source::Snapshot(Snapshot::open(path).with_context(|| path.display().to_string())?)
        } else if args.etcd_endpoints.is_empty() {
            return Ok(None);
        } else {
            let files = [
                ("--etcd-cacert", &args.etcd_cacert, "CERTIFICATE"),
                ("--etcd-cert", &args.etcd_cert, "CERTIFICATE"),
                ("--etcd-key", &args.etcd_key, "PRIVATE KEY"),
            ];
            for (option, path, label) in files {
                path.as_deref().map_or(Ok(()), |path| holds_pem(path, label)).context(option)?;
            }
            let target = EtcdTarget {
                endpoints: args.etcd_endpoints.clone(),
                cacert: args.etcd_cacert.clone(),
                cert: args.etcd_cert.clone(),
                key: args.etcd_key.clone(),
            };
            let etcd = Etcd::connect(&target).await?;
            etcd.check(&format!("{}/", args.etcd_prefix.trim_end_matches('/'))).await?;
            Source::Etcd(etcd)
        };
        Ok(Some(Self { prefix: args.etcd_prefix.clone(), source }))
    }

    /// The snapshot, if it is one.
    pub(crate) fn snapshot(&self) -> Option<&Snapshot> {
        match &self.source {
            Source::Snapshot(snapshot) => Some(snapshot),
            Source::Etcd(_) => None,
        }
    }

    /// The running etcd and the prefix of its keys, if it is one.
    pub(crate) fn etcd(&self) -> Option<(&Etcd, &str)> {
        match &self.source {
            Source::Etcd(etcd) => Some((etcd, &self.prefix)),
            Source::Snapshot(_) => None,
        }
    }

    /// Visits what is stored for each object of a resource that is in the scope, a page at a time.
    pub(crate) async fn each(
        &self,
        resource: &Resource,
        scope: &Scope,
        visit: &mut (dyn FnMut(Identity, &[u8]) + Send),
    ) -> anyhow::Result<()> {
        let prefix = prefix_of(&self.prefix, resource);
        let wanted = narrowed(&prefix, scope);
        let mut visit = |key: &str, bytes: &[u8]| {
            if let Some((namespace, name)) = identity_of(&prefix, key) {
                let (namespace, name) = (namespace.map(str::to_owned), name.to_owned());
                visit(Identity { namespace, name, uid: String::new() }, bytes);
            }
        };
        match &self.source {
            Source::Snapshot(snapshot) => {
                let wanted = |key: &[u8]| key.starts_with(wanted.as_bytes());
                snapshot.each(&wanted, &mut |value| {
                    visit(&value.key, &value.bytes);
                    ControlFlow::Continue(())
                })?;
            }
            Source::Etcd(etcd) => {
                let mut after: Option<After> = None;
                loop {
                    let page = etcd.page(&wanted, after.as_ref()).await?;
                    page.values.iter().for_each(|value| visit(&value.key, &value.bytes));
                    after = page.next;
                    if after.is_none() {
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// What is stored for one object; none if there is none.
    pub(crate) async fn object(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        name: &str,
    ) -> anyhow::Result<Option<RawValue>> {
        let prefix = prefix_of(&self.prefix, resource);
        let key = match namespace {
            Some(namespace) => format!("{prefix}{namespace}/{name}"),
            None => format!("{prefix}{name}"),
        };
        match &self.source {
            Source::Etcd(etcd) => Ok(etcd.value(&key).await?),
            Source::Snapshot(snapshot) => of_snapshot(snapshot, &key),
        }
    }

    /// A CRD of a snapshot, in the form in which servers serve it; none if there is none, or this is a running etcd.
    pub(crate) fn crd(&self, name: &str) -> anyhow::Result<Option<Json>> {
        let Source::Snapshot(snapshot) = &self.source else { return Ok(None) };
        let key = format!("{}{name}", prefix_of(&self.prefix, &crds()));
        let Some(value) = of_snapshot(snapshot, &key)? else { return Ok(None) };
        let document = decode(&value.bytes).with_context(|| format!("the CRD {name} in the snapshot"))?;
        Ok(Some(definition(document)))
    }
}

/// The prefix of the keys of the objects in a scope, of that of all.
pub(crate) fn narrowed(prefix: &str, scope: &Scope) -> String {
    match scope.namespace() {
        Some(namespace) => format!("{prefix}{namespace}/"),
        None => prefix.to_owned(),
    }
}

fn of_snapshot(snapshot: &Snapshot, key: &str) -> anyhow::Result<Option<RawValue>> {
    let mut found = None;
    snapshot.each(&|other| other == key.as_bytes(), &mut |value| {
        found = Some(value);
        ControlFlow::Break(())
    })?;
    Ok(found)
}

/// What proves objects of a CRD to be stored, before they are read: what is on record, and what else in the cluster tells when they were
/// written, as far as it can be read.
pub(crate) async fn evidence(
    cluster: &Cluster,
    document: &Json,
    crd: &Crd,
    report: Option<&DefaultsReportStatus>,
    scope: &Scope,
    witnesses: &mut Witnesses,
) -> Record {
    let mut record = record_of(report, document, crd);
    if record.through.is_none() && crd.compiled().has_defaults() {
        witnesses.tell(cluster, &crd.resource(), scope, &mut record.clock).await;
        record.history = witnesses.history(cluster, crd).await;
    }
    record
}

/// The report on a CRD; none where there is none, or it cannot be read.
pub(crate) async fn report_on(cluster: &Cluster, crd: &Crd) -> Option<DefaultsReportStatus> {
    cluster.report(crd.name(), crd.uid()).await.ok().flatten()?.status
}
