//! `etch audit`: which defaults etcd holds, and which are only shown.

mod audited;
mod definitions;
mod print;
mod unknown;
mod versions;

use std::io::{self, Write};

use clap::Args;
use etch::cluster::etcd::{Opaque, decode};
use etch::cluster::{Cluster, ObjectSource, Scope, Shown, Witnesses};
use etch_core::audit::{Exact, by_bytes, by_view};
use etch_core::crd::Crd;
use etch_core::decode::Decoder;
use etch_core::etcd::RawValue;
use etch_core::object::Identity;
use etch_core::plan::Record;
use etch_core::prediction::record_of;
use futures::stream::{self, StreamExt, TryStreamExt};
use jiff::Timestamp;
use kube_structural_schema::json::Json;
use kube_structural_schema::schema::rules::crd::judge;
use serde_json::{Value, json};

use self::audited::Audited;
pub(crate) use self::audited::why_skipped;
use super::etcd::{EtcdArgs, evidence, report_on};
use super::failures::{self, Failure};
use super::policy::{Known, PolicyArg, Rules, due, labels};
use super::sample::{LimitArg, Sample};
use super::{crds_named, error_text, failure, scope, serves_its_objects};
use crate::commands::emit::{emit, ended};
use crate::commands::global::{Global, Output};
use crate::commands::outcome::Outcome;

/// Show which defaults etcd holds, and which the API server only fills in
///
/// A phantom default is one that the API server fills in on each read and etcd does not hold. The API shows
/// stored and phantom defaults in the same way: a default counts as stored only if something proves it, such
/// as a pass of Etch or a write after the CRD last changed, and as unknown otherwise. With access to etcd or
/// to a snapshot of it, every answer is exact.
#[derive(Args, Debug)]
#[command(mut_arg("limit", |limit| limit.requires("objects")))]
#[command(after_help = "Examples:
  etch audit
  etch audit certificates.cert-manager.io issuers --objects
  etch audit --etcd-endpoints https://127.0.0.1:2379 --etcd-cacert ca.crt --etcd-cert c.crt --etcd-key c.key
  etch audit --etcd-snapshot backup.db
  etch audit --stored-versions

Exit status: 0 if all defaults are stored, 1 if some are not or may not be, 2 if the command
failed. With --stored-versions: 0 if all objects are stored at the storage version and
status.storedVersions has no other, 1 if not, 2 if the command failed.")]
pub(crate) struct Audit {
    /// The CRDs to audit, named as for kubectl [default: all that have defaults]
    #[arg(value_name = "CRD")]
    crds: Vec<String>,
    /// List the objects by name
    #[arg(long)]
    objects: bool,
    /// Show at which versions objects are stored, and which versions could go out of status.storedVersions
    /// [default: for all CRDs that have an old version there; with access to etcd, also for those with
    /// objects at another version]
    #[arg(long, conflicts_with_all = ["files", "trust_owners"])]
    stored_versions: bool,
    #[command(flatten)]
    policy: PolicyArg,
    #[command(flatten)]
    limit: LimitArg,
    /// Treat owned values as stored (managedFields may be stale)
    #[arg(long, conflicts_with_all = ["etcd_endpoints", "etcd_snapshot"])]
    trust_owners: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    #[command(flatten)]
    etcd: EtcdArgs,
}

/// How many objects the server is asked to convert at once.
const CONVERSIONS: usize = 8;

/// A CRD whose objects are looked at.
struct Look<'a> {
    crd: &'a Crd,
    decoder: Decoder<'a>,
    /// What proves objects to be stored that are shown as the API server reads them.
    proof: Record,
    audited: &'a mut Audited,
}

impl Audit {
    pub(crate) async fn run(self, global: &Global, out: &mut dyn Write) -> anyhow::Result<Outcome> {
        if self.stored_versions {
            return self.stored_versions(global, out).await;
        }
        let scope = global.scope()?;
        let policies = self.policy.read(&mut io::stdin().lock())?;
        let all = match self.etcd.open().await? {
            Some(snapshot @ ObjectSource::Snapshot(..)) => {
                let all = self.snapshot(&snapshot, &scope, &policies.unwrap_or_default()).await?;
                if all.iter().all(|audited| audited.totals.objects == 0) {
                    scope::note_no_objects(&scope)?;
                }
                all
            }
            etcd => {
                let cluster = Cluster::connect(&global.target()).await?;
                scope::exists(&cluster, &scope).await?;
                let policies = match policies {
                    Some(policies) => policies,
                    None => Known::of(&cluster).await?,
                };
                let all = self.live(&cluster, etcd, &scope, &policies).await?;
                if all.iter().any(|audited| !audited.is_nothing()) {
                    policies.announce()?;
                }
                all
            }
        };
        // If nothing at all was read, there are no numbers either.
        if !all.is_empty() && all.iter().all(Audited::is_nothing) {
            return Err(failure(failed(&all, &scope)));
        }
        emit(
            out,
            self.output,
            || self.etcd.in_document(document(&all, &scope)),
            |out| {
                scope::write(out, &scope)?;
                let of_snapshot = self.etcd.of_snapshot(false);
                print::table(out, &global.style(), &all, self.objects, of_snapshot.is_some())?;
                of_snapshot.iter().try_for_each(|sentence| writeln!(out, "{sentence}"))
            },
        )?;
        ended(failed(&all, &scope), all.iter().all(|audited| audited.totals.is_clean()))
    }

    /// Looks at the objects of a cluster, by their views or by what its etcd holds.
    async fn live(
        &self,
        cluster: &Cluster,
        etcd: Option<ObjectSource>,
        scope: &Scope,
        policies: &Known,
    ) -> anyhow::Result<Vec<Audited>> {
        let (mut all, mut witnesses) = (Vec::new(), Witnesses::default());
        let is_by_view = etcd.is_none();
        let source = etcd.unwrap_or_else(|| ObjectSource::from(cluster.clone()));
        for name in crds_named(cluster, &self.crds).await? {
            let (crd, document) = match definitions::in_cluster(cluster, &name).await {
                Ok(Some(read)) => read,
                // Deleted since it was listed.
                Ok(None) => continue,
                Err(error) => {
                    all.push(Audited::failed(&name, error));
                    continue;
                }
            };
            let is_named = !self.crds.is_empty();
            if !is_named && !crd.gives_defaults() || !scope::covers(scope, &crd, is_named)? {
                continue;
            }
            let mut audited = self.begun(&crd, policies.rules(&crd, &labels(&document)));
            audited.non_structural = judge(&document["spec"]).message();
            let report = match report_on(cluster, &crd).await {
                Ok(report) => report,
                Err(error) => {
                    all.push(Audited::failed(&name, error_text(&error)));
                    continue;
                }
            };
            audited.record = record_of(report.as_ref(), &document, &crd, Timestamp::now());
            audited.due = due(report.as_ref(), &crd, &audited.rules);
            audited.report.clone_from(&report);
            let ended = async {
                let mut proof = Record::default();
                if is_by_view {
                    serves_its_objects(cluster, &crd).await?;
                    proof = evidence(cluster, &document, &crd, report.as_ref(), scope, &mut witnesses).await;
                    audited.record.clock = proof.clock.clone();
                }
                let look = Look { crd: &crd, decoder: Decoder::new(&crd), proof, audited: &mut audited };
                self.look(&source, Some(cluster), vec![look], scope).await
            };
            let ended = ended.await;
            audited.error = ended.err().map(|error| failures::of_objects(&error, &crd, &document));
            all.push(audited);
        }
        Ok(all)
    }

    /// Looks at all objects of CRDs.
    async fn look(
        &self,
        source: &ObjectSource,
        cluster: Option<&Cluster>,
        mut looks: Vec<Look<'_>>,
        scope: &Scope,
    ) -> anyhow::Result<()> {
        let resources = looks.iter().map(|look| look.crd.resource()).collect();
        let mut pages = source.pages(resources, scope);
        while let Some(page) = pages.try_next().await.map_err(failures::of_list)? {
            let Look { crd, decoder, proof, audited } = &mut looks[page.of];
            let (crd, decoder, proof) = (*crd, &*decoder, &*proof);
            let known = stream::iter(page.objects).map(async |shown| match shown {
                Shown::View(object) | Shown::Written(object) => {
                    let missing = by_view(&object, crd, proof, self.trust_owners);
                    (object.identity(), Ok(Exact { object, missing, hidden: Vec::new(), unconverted: false }))
                }
                Shown::Stored(identity, value) => {
                    let exact = match (known(&identity, &value, crd, decoder), cluster) {
                        (Ok(exact), Some(cluster)) if exact.unconverted => {
                            Ok(converted(exact, cluster, crd, &identity, value.revision).await)
                        }
                        (exact, _) => exact,
                    };
                    (identity, exact)
                }
            });
            let mut known = std::pin::pin!(known.buffered(CONVERSIONS));
            while let Some((identity, exact)) = known.next().await {
                audited.take(crd, identity, exact);
            }
        }
        Ok(())
    }

    /// Looks at what a snapshot holds: its CRDs, and their objects.
    async fn snapshot(
        &self,
        snapshot: &ObjectSource,
        scope: &Scope,
        policies: &Known,
    ) -> anyhow::Result<Vec<Audited>> {
        let is_named = !self.crds.is_empty();
        let begin = |crd: &Crd, document: &Json| {
            let is_wanted = is_named || crd.gives_defaults() && scope::reaches(scope, crd);
            if !is_wanted {
                return Ok(None);
            }
            scope::covers(scope, crd, is_named)?;
            let audited = self.begun(crd, policies.rules(crd, &labels(document)));
            Ok(Some(Audited { non_structural: judge(&document["spec"]).message(), ..audited }))
        };
        let mut all = definitions::in_snapshot(snapshot, &self.crds, begin, Audited::failed).await?;
        let looks = all.iter_mut().filter_map(|(crd, audited)| {
            let (crd, proof) = (crd.as_ref()?, Record::default());
            Some(Look { crd, decoder: Decoder::new(crd), proof, audited })
        });
        self.look(snapshot, None, looks.collect(), scope).await?;
        Ok(all.into_iter().map(|(_, audited)| audited).collect())
    }

    fn begun(&self, crd: &Crd, rules: Rules) -> Audited {
        Audited {
            crd: crd.name().to_owned(),
            storage_version: Some(crd.storage().name.clone()),
            details: Sample::new(self.limit.of(self.output)),
            keep_details: self.objects,
            rules,
            ..Audited::default()
        }
    }
}

/// What the bytes in etcd prove of an object, or why they prove nothing.
fn known(identity: &Identity, value: &RawValue, crd: &Crd, decoder: &Decoder<'_>) -> Result<Exact, String> {
    let stored = match decode(&value.bytes) {
        Err(Opaque::TooDeep) => return Ok(Exact::too_deep(identity, &value.bytes)),
        stored => stored.map_err(|opaque| opaque.to_string())?,
    };
    by_bytes(&stored, crd, decoder).map_err(|unreadable| unreadable.to_string())
}

/// Has the server ask the webhook what it makes of an object. Where that fails, or the object has changed
/// meanwhile, what is open stays open.
async fn converted(
    exact: Exact,
    cluster: &Cluster,
    crd: &Crd,
    Identity { namespace, name, .. }: &Identity,
    revision: u64,
) -> Exact {
    let view = cluster.object_named(&crd.resource(), namespace.as_deref(), name).await;
    match view.ok().flatten().filter(|view| view.revision() == Some(revision)) {
        Some(view) => exact.seen(view, crd),
        None => exact,
    }
}

/// What went wrong with each CRD.
fn failed(all: &[Audited], scope: &Scope) -> Vec<String> {
    let failures = all.iter().filter_map(|audited| {
        let error = audited.error.clone()?;
        Some(Failure { crd: audited.crd.clone(), error, resume: String::new() })
    });
    failures::lines(failures.collect(), scope)
}

fn document(all: &[Audited], scope: &Scope) -> Value {
    scope::in_document(json!({ "crds": all.iter().map(Audited::document).collect::<Vec<_>>() }), scope)
}
