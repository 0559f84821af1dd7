//! `etch audit`: which defaults etcd holds, and which are only shown.

mod audited;
mod print;

use std::io::{self, Write};
use std::ops::ControlFlow;

use anyhow::bail;
use clap::Args;
use etch::cluster::etcd::{Etcd, Snapshot, decode, definition, identity_of, prefix_of};
use etch::cluster::{Cluster, Scan, Scope, Witnesses, crds};
use etch::operator::record_of;
use etch_core::api::DefaultsReportStatus;
use etch_core::audit::{Totals, by_view};
use etch_core::crd::Crd;
use etch_core::decode::Decoder;
use etch_core::object::Identity;
use etch_core::plan::Record;
use futures::stream::{self, StreamExt};
use kube_structural_schema::json::Json;
use kube_structural_schema::schema::rules::crd::judge;
use serde_json::{Value, json};

use self::audited::Audited;
pub(crate) use self::audited::why_skipped;
use super::etcd::{Bytes, EtcdArgs, evidence, narrowed, report_on};
use super::exact::{CONVERSIONS, converted, known};
use super::failures::{self, Failure};
use super::policy::{Known, PolicyArg, Rules, due, labels};
use super::sample::{LimitArg, Sample};
use super::{crds_named, failure, scope, serves_its_objects};
use crate::commands::emit::{emit, ended};
use crate::commands::global::{Global, Output};
use crate::commands::outcome::Outcome;

/// Show which defaults etcd holds, and which the API server only fills in
///
/// A phantom default is one that the API server fills in on each read and etcd does not hold. The API shows stored and phantom
/// defaults in the same way: a default counts as stored only if something proves it, such as a pass of Etch or a write after the CRD last
/// changed, and as unknown otherwise. With access to etcd or to a snapshot of it, every answer is exact.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  etch audit
  etch audit certificates.cert-manager.io issuers --objects
  etch audit -o json --etcd-endpoints https://127.0.0.1:2379 --etcd-cacert ca.crt --etcd-cert etcd.crt --etcd-key etcd.key
  etch audit --etcd-snapshot backup.db

Exit status: 0 if all defaults are stored, 1 if some are not or may not be, 2 if the command failed.")]
pub(crate) struct Audit {
    /// The CRDs to audit, named as for kubectl [default: all that have defaults]
    #[arg(value_name = "CRD")]
    crds: Vec<String>,
    /// List the objects by name
    #[arg(long)]
    objects: bool,
    #[command(flatten)]
    policy: PolicyArg,
    #[command(flatten)]
    limit: LimitArg,
    /// Treat owned values as stored (managedFields may be stale)
    #[arg(long)]
    trust_owners: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    #[command(flatten)]
    etcd: EtcdArgs,
}

impl Audit {
    pub(crate) async fn run(self, global: &Global, out: &mut dyn Write) -> anyhow::Result<Outcome> {
        let scope = global.scope()?;
        let policies = self.policy.read(&mut io::stdin().lock())?;
        let bytes = Bytes::open(&self.etcd).await?;
        let all = match bytes.as_ref().and_then(Bytes::snapshot) {
            Some(snapshot) => self.snapshot(snapshot, &scope, &policies.unwrap_or_default())?,
            None => {
                let cluster = Cluster::connect(&global.target()).await?;
                scope::exists(&cluster, &scope).await?;
                let policies = match policies {
                    Some(policies) => policies,
                    None => Known::of(&cluster).await?,
                };
                let all =
                    self.live(&cluster, bytes.as_ref().and_then(Bytes::etcd), &scope, &policies).await?;
                if all.iter().any(|audited| !audited.is_nothing()) {
                    policies.announce()?;
                }
                all
            }
        };
        // Where nothing at all was read there are no numbers either.
        if !all.is_empty() && all.iter().all(Audited::is_nothing) {
            return Err(failure(failed(&all, &scope)));
        }
        emit(
            out,
            self.output,
            || document(&all, &scope),
            |out| {
                scope::write(out, &scope)?;
                print::table(out, &global.style(), &all, self.objects)
            },
        )?;
        ended(failed(&all, &scope), all.iter().all(|audited| audited.totals.is_clean()))
    }

    /// Looks at the objects of a cluster, by their views or by what its etcd holds.
    async fn live(
        &self,
        cluster: &Cluster,
        etcd: Option<(&Etcd, &str)>,
        scope: &Scope,
        policies: &Known,
    ) -> anyhow::Result<Vec<Audited>> {
        let (mut all, mut witnesses) = (Vec::new(), Witnesses::default());
        for name in crds_named(cluster, &self.crds).await? {
            let document = match cluster.crd(&name).await {
                Ok(Some(document)) => document,
                // Deleted since it was listed.
                Ok(None) => continue,
                Err(error) => {
                    all.push(self.failed(&name, error.to_string()));
                    continue;
                }
            };
            let crd = match Crd::read(&document) {
                Ok(crd) => crd,
                Err(error) => {
                    all.push(self.failed(&name, error.to_string()));
                    continue;
                }
            };
            let is_named = !self.crds.is_empty();
            if !is_named && !crd.compiled().has_defaults() || !scope::covers(scope, &crd, is_named)? {
                continue;
            }
            let mut audited = self.begun(&crd, policies.rules(&crd, &labels(&document)));
            audited.non_structural = judge(&document["spec"]).message();
            let report = report_on(cluster, &crd).await;
            audited.record = record_of(report.as_ref(), &document, &crd);
            audited.due = due(report.as_ref(), &crd, &audited.rules);
            let ended = match etcd {
                Some((etcd, registry)) => compare(&mut audited, cluster, etcd, registry, &crd, scope).await,
                None => {
                    let known = (report.as_ref(), &mut witnesses);
                    self.views(cluster, &document, &crd, known, scope, &mut audited).await
                }
            };
            audited.error = ended.err().map(|error| format!("{error:#}"));
            all.push(audited);
        }
        Ok(all)
    }

    async fn views(
        &self,
        cluster: &Cluster,
        document: &Json,
        crd: &Crd,
        (report, witnesses): (Option<&DefaultsReportStatus>, &mut Witnesses),
        scope: &Scope,
        audited: &mut Audited,
    ) -> anyhow::Result<()> {
        serves_its_objects(cluster, crd).await?;
        let record = evidence(cluster, document, crd, report, scope, witnesses).await;
        let mut scan = Scan::new(cluster.clone(), crd.resource(), scope.clone());
        while let Some(page) = scan.next().await? {
            for object in page.objects {
                let missing = by_view(&object, crd, &record, self.trust_owners);
                audited.add(crd, &object, missing, Vec::new());
            }
        }
        Ok(())
    }

    /// Looks at what a snapshot holds: its CRDs, and their objects.
    fn snapshot(&self, snapshot: &Snapshot, scope: &Scope, policies: &Known) -> anyhow::Result<Vec<Audited>> {
        let mut all: Vec<(Option<Crd>, Audited)> = Vec::new();
        let crds = prefix_of(&self.etcd.etcd_prefix, &crds());
        snapshot.each(&|key| key.starts_with(crds.as_bytes()), &mut |value| {
            let name = identity_of(&crds, &value.key).map_or("", |(_, name)| name);
            let is_asked_for = self.crds.is_empty() || self.crds.iter().any(|asked| asked == name);
            if is_asked_for {
                let crd = match decode(&value.bytes).map(definition) {
                    Ok(document) => {
                        let crd = Crd::read(&document).map_err(|error| error.to_string());
                        crd.map(|crd| (crd, labels(&document), judge(&document["spec"]).message()))
                    }
                    Err(opaque) => Err(opaque.to_string()),
                };
                match crd {
                    Err(error) => all.push((None, self.failed(name, error))),
                    Ok((crd, ..)) if self.crds.is_empty() && !crd.compiled().has_defaults() => {}
                    Ok((crd, ..)) if self.crds.is_empty() && !scope::reaches(scope, &crd) => {}
                    Ok((crd, labels, non_structural)) => {
                        let audited = self.begun(&crd, policies.rules(&crd, &labels));
                        let audited = Audited { non_structural, ..audited };
                        all.push((Some(crd), audited));
                    }
                }
            }
            ControlFlow::Continue(())
        })?;
        if let Some(name) =
            self.crds.iter().find(|name| !all.iter().any(|(_, audited)| audited.crd == **name))
        {
            bail!("the snapshot has no CRD {name}; give its full name, such as crontabs.stable.example.com");
        }
        for crd in all.iter().filter_map(|(crd, _)| crd.as_ref()) {
            scope::covers(scope, crd, true)?;
        }
        all.sort_by(|(_, a), (_, b)| a.crd.cmp(&b.crd));
        let mut looks: Vec<(String, &Crd, Decoder<'_>, &mut Audited)> = all
            .iter_mut()
            .filter_map(|(crd, audited)| {
                let crd = crd.as_ref()?;
                Some((prefix_of(&self.etcd.etcd_prefix, &crd.resource()), crd, Decoder::new(crd), audited))
            })
            .collect();
        let prefixes: Vec<Vec<u8>> = looks.iter().map(|(prefix, ..)| prefix.clone().into_bytes()).collect();
        snapshot.each(&|key| prefixes.iter().any(|prefix| key.starts_with(prefix)), &mut |value| {
            if let Some((prefix, crd, decoder, audited)) =
                looks.iter_mut().find(|(prefix, ..)| value.key.starts_with(prefix.as_str()))
                && let Some((namespace, name)) = identity_of(prefix, &value.key)
                && scope.contains(namespace)
            {
                let (namespace, name) = (namespace.map(str::to_owned), name.to_owned());
                let identity = Identity { namespace, name, uid: String::new() };
                audited.take(crd, identity, known(&value.bytes, crd, decoder));
            }
            ControlFlow::Continue(())
        })?;
        Ok(all.into_iter().map(|(_, audited)| audited).collect())
    }

    fn begun(&self, crd: &Crd, rules: Rules) -> Audited {
        Audited {
            crd: crd.name().to_owned(),
            storage_version: Some(crd.storage().name.clone()),
            totals: Totals::default(),
            details: Sample::new(self.limit.of(self.output)),
            error: None,
            keep_details: self.objects,
            record: Record::default(),
            rules,
            due: None,
            non_structural: None,
        }
    }

    fn failed(&self, name: &str, error: String) -> Audited {
        Audited {
            crd: name.to_owned(),
            storage_version: None,
            totals: Totals::default(),
            details: Sample::default(),
            error: Some(error),
            keep_details: false,
            record: Record::default(),
            rules: Rules::Assumed,
            due: None,
            non_structural: None,
        }
    }
}

/// Looks at what a running etcd holds of all objects.
async fn compare(
    audited: &mut Audited,
    cluster: &Cluster,
    etcd: &Etcd,
    registry: &str,
    crd: &Crd,
    scope: &Scope,
) -> anyhow::Result<()> {
    let (prefix, decoder) = (prefix_of(registry, &crd.resource()), Decoder::new(crd));
    let mut after = None;
    loop {
        let page = etcd.page(&narrowed(&prefix, scope), after.as_ref()).await?;
        let known = stream::iter(&page.values).map(async |value| {
            let (namespace, name) = identity_of(&prefix, &value.key)?;
            let (namespace, name) = (namespace.map(str::to_owned), name.to_owned());
            let identity = Identity { namespace, name, uid: String::new() };
            let exact = match known(&value.bytes, crd, &decoder) {
                Ok(exact) if exact.unconverted => {
                    Ok(converted(exact, cluster, crd, &identity, value.revision).await)
                }
                exact => exact,
            };
            Some((identity, exact))
        });
        let mut known = std::pin::pin!(known.buffered(CONVERSIONS));
        while let Some(looked) = known.next().await {
            if let Some((identity, exact)) = looked {
                audited.take(crd, identity, exact);
            }
        }
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
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
