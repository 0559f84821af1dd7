//! `etch audit --stored-versions`: at which versions etcd holds objects, and which versions could go out of
//! `status.storedVersions`. It does not change that list.

use std::io::Write;

use etch::cluster::{Cluster, ObjectSource, Shown, Witnesses};
use etch_answers::audit::versions::{Versions, document, failed, lag, of_bytes, table};
use etch_answers::{failures, scope};
use etch_core::crd::Crd;
use etch_core::plan::{Record, Witness};
use etch_core::prediction::record_of;
use etch_core::scope::Scope;
use etch_core::stored_versions::Whereabouts;
use futures::TryStreamExt;
use jiff::Timestamp;
use kube_structural_schema::json::Json;

use super::super::etcd::report_on;
use super::super::{crds_named, failure, serves_its_objects};
use super::{Audit, definitions};
use crate::commands::emit::{emit, ended};
use crate::commands::global::Global;
use crate::commands::namespace;
use crate::commands::outcome::Outcome;

/// What is reported of all CRDs.
#[derive(Default)]
struct Looked {
    all: Vec<Versions>,
    /// How many CRDs were skipped because of what their `status.storedVersions` lists.
    skipped: u64,
}

/// A CRD whose objects are looked at.
struct Look<'a> {
    crd: &'a Crd,
    /// What proves where objects are that are shown as the API server reads them.
    record: Record,
    versions: &'a mut Versions,
}

impl Audit {
    pub(super) async fn stored_versions(
        &self,
        global: &Global,
        out: &mut dyn Write,
    ) -> anyhow::Result<Outcome> {
        let scope = global.scope()?;
        let source = self.etcd.open().await?;
        let by_bytes = source.is_some();
        let mut looked = match source {
            Some(snapshot @ ObjectSource::Snapshot(..)) => {
                let looked = self.versions_in_snapshot(&snapshot, &scope).await?;
                if looked.all.iter().all(|versions| versions.tally.objects() == 0) {
                    namespace::note_no_objects(&scope)?;
                }
                looked
            }
            etcd => {
                let cluster = Cluster::connect(&global.target()).await?;
                namespace::exists(&cluster, &scope).await?;
                self.versions_in_cluster(&cluster, etcd, &scope).await?
            }
        };
        let is_nothing = !looked.all.is_empty() && looked.all.iter().all(Versions::is_nothing);
        if self.crds.is_empty() {
            looked.all.retain(|versions| !versions.is_clean() || versions.error.is_some());
        }
        let Looked { all, skipped } = looked;
        if is_nothing {
            return Err(failure(failed(&all, &scope)));
        }
        let document = || self.etcd.in_document(document(&all, skipped, self.objects, &scope));
        emit(out, self.output, document, |out| {
            scope::write(out, &scope)?;
            table(out, &global.style(), &all, skipped, (self.objects, by_bytes))?;
            self.etcd.of_snapshot(false).iter().try_for_each(|sentence| writeln!(out, "{sentence}"))
        })?;
        ended(failed(&all, &scope), all.iter().all(Versions::is_clean))
    }

    /// Looks at the objects of a cluster, by their views or by what its etcd holds.
    async fn versions_in_cluster(
        &self,
        cluster: &Cluster,
        etcd: Option<ObjectSource>,
        scope: &Scope,
    ) -> anyhow::Result<Looked> {
        let (mut looked, mut witnesses) = (Looked::default(), Witnesses::default());
        let all = &mut looked.all;
        let is_by_view = etcd.is_none();
        let source = etcd.unwrap_or_else(|| ObjectSource::from(cluster.clone()));
        let is_named = !self.crds.is_empty();
        for name in crds_named(cluster, &self.crds).await? {
            let (crd, document) = match definitions::in_cluster(cluster, &name).await {
                Ok(Some(read)) => read,
                // Deleted since it was listed.
                Ok(None) => continue,
                Err(error) => {
                    all.push(Versions::failed(&name, error));
                    continue;
                }
            };
            if !scope::covers(scope, &crd, is_named)? {
                continue;
            }
            // Only etcd shows whether its list was shortened by hand.
            if is_by_view && !is_named && !crd.stored_elsewhere() {
                looked.skipped += 1;
                continue;
            }
            let mut versions = self.versions_of(&crd);
            let read = async {
                let mut record = Record::default();
                if is_by_view {
                    serves_its_objects(cluster, &crd).await?;
                    let report = report_on(cluster, &crd).await?;
                    record = record_of(report.as_ref(), &document, &crd, Timestamp::now());
                    witnesses.feed(cluster, &crd.resource(), scope, &mut record.clock).await;
                }
                look(&source, vec![Look { crd: &crd, record, versions: &mut versions }], scope).await
            };
            let read = read.await;
            versions.error = read.err().map(|error| failures::of_objects(&*error, &crd, &document));
            versions.conclude(&crd, scope, lag(&document, &crd, Timestamp::now()));
            all.push(versions);
        }
        Ok(looked)
    }

    /// Looks at what a snapshot holds: its CRDs, and their objects.
    async fn versions_in_snapshot(&self, snapshot: &ObjectSource, scope: &Scope) -> anyhow::Result<Looked> {
        let is_named = !self.crds.is_empty();
        let begin = |crd: &Crd, _: &Json| {
            let is_in_scope = is_named || scope::reaches(scope, crd);
            Ok((is_in_scope && scope::covers(scope, crd, is_named)?).then(|| self.versions_of(crd)))
        };
        let mut all = definitions::in_snapshot(snapshot, &self.crds, begin, Versions::failed).await?;
        let looks = all.iter_mut().filter_map(|(crd, versions)| {
            Some(Look { crd: crd.as_ref()?, record: Record::default(), versions })
        });
        look(snapshot, looks.collect(), scope).await?;
        for (crd, versions) in &mut all {
            if let Some(crd) = crd {
                versions.conclude(crd, scope, None);
            }
        }
        Ok(Looked { all: all.into_iter().map(|(_, versions)| versions).collect(), skipped: 0 })
    }

    fn versions_of(&self, crd: &Crd) -> Versions {
        Versions::new(crd, self.limit.of(self.output))
    }
}

/// Looks at all objects of CRDs.
async fn look(source: &ObjectSource, mut looks: Vec<Look<'_>>, scope: &Scope) -> anyhow::Result<()> {
    let resources = looks.iter().map(|look| look.crd.resource()).collect();
    let mut pages = source.pages(resources, scope);
    while let Some(page) = pages.try_next().await? {
        let Look { crd, record, versions } = &mut looks[page.of];
        for shown in page.objects {
            let (identity, whereabouts) = match shown {
                Shown::View(object) | Shown::Written(object) => {
                    Witness::of(&object).into_iter().for_each(|witness| record.clock.add_witness(witness));
                    (object.identity(), Whereabouts::of_view(&object, crd, record))
                }
                Shown::Stored(identity, value) => (identity, of_bytes(&value.bytes, crd)),
            };
            versions.add(identity, whereabouts);
        }
    }
    Ok(())
}
