//! `etch explain`: of one object, each default that applies, and what is known of it; of a type, each default
//! that is published.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, anyhow, bail, ensure};
use clap::Args;
use etch::cluster::{Cluster, ObjectSource, Witnesses};
use etch_answers::explain::{Explained, published, rejected};
use etch_answers::failures::remedy;
use etch_answers::scope;
use etch_core::api::labels;
use etch_core::audit::{self, by_bytes, by_view, explain};
use etch_core::crd::Crd;
use etch_core::decode::Decoder;
use etch_core::object::Object;
use etch_core::obstacle::{Obstacle, rejection};
use etch_core::prediction::{deciding, record_of};
use etch_core::scope::Scope;
use etch_core::stored::{Opaque, decode};
use etch_lint::published::{Document, Named, named};
use jiff::Timestamp;
use kube_crd_validation::is_object_name;
use kube_structural_schema::json::Json;

use super::etcd::{EtcdArgs, OF_SNAPSHOT, evidence, report_on};
use super::policy::{self, PolicyArg};
use super::{one_stdin, openapi, serves_its_objects};
use crate::commands::emit::{emit, ended};
use crate::commands::global::{Global, Output};
use crate::commands::outcome::Outcome;

/// Explain each default of one object, or of a published type
///
/// Show where each value comes from, who owns it, whether etcd holds it, and why Etch stores it or not.
/// Without access to etcd nothing may show whether it does: the state is then `unknown`.
///
/// With --openapi or --live, show the defaults that an API server publishes for a type, built-in or not, and
/// when each of them applies. The server does not publish defaults that it sets in Go code.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  etch explain certificates my-cert -n web
  etch explain certificates/my-cert -n web
  etch explain clusterissuer main -o json
  kubectl get --raw /openapi/v3/apis/apps/v1 > apps-v1.json
  etch explain --openapi apps-v1.json deployment.spec.template
  etch explain --live svc.spec.ports

Exit status: 0 if all defaults are stored, 1 if some are not or may not be, 2 if the command
failed.")]
pub(crate) struct Explain {
    /// The type, named as for kubectl: plural, singular, short name, kind, or plural.group; or TYPE/NAME.
    /// With --openapi or --live you can append fields, as in deployment.spec.template
    #[arg(value_name = "TYPE")]
    kind: String,
    /// The object's name, unless given as TYPE/NAME
    #[arg(value_name = "NAME", conflicts_with_all = ["openapi", "live"])]
    name: Option<String>,
    /// Explain the type by an OpenAPI v3 document of an API server: a file, a folder, or - for standard
    /// input. Repeatable
    #[arg(long, value_name = "FILE", conflicts_with_all = ["files", "etcd_endpoints", "etcd_snapshot"])]
    openapi: Vec<PathBuf>,
    /// Explain the type by the documents that the cluster publishes
    #[arg(long, conflicts_with_all = ["openapi", "files", "etcd_endpoints", "etcd_snapshot"])]
    live: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    #[command(flatten)]
    policy: PolicyArg,
    #[command(flatten)]
    etcd: EtcdArgs,
}

impl Explain {
    pub(crate) async fn run(self, global: &Global, out: &mut dyn Write) -> anyhow::Result<Outcome> {
        if self.live || !self.openapi.is_empty() {
            self.explain_type(global, out).await?;
            return Ok(Outcome::Clean);
        }
        let (kind, name) = self.typed()?;
        let policies = self.policy.read(&mut io::stdin().lock())?;
        let bytes = self.etcd.open().await?;
        let cluster = Cluster::connect(&global.target()).await?;
        let crd = cluster.resolve(kind).await?;
        let document = cluster.crd(&crd).await?.with_context(|| format!("CRD {crd} was deleted"))?;
        let crd = Crd::read(&document).with_context(|| format!("the CRD {crd}"))?;
        serves_its_objects(&cluster, &crd).await?;
        scope::covers(&global.scope()?, &crd, true)?;
        let namespace = global.namespace_of_one(crd.is_namespaced(), cluster.default_namespace())?;
        let object = cluster
            .object_named(&crd.resource(), namespace, name)
            .await
            .map_err(|error| {
                let remedy = remedy(&error, &crd, &document);
                anyhow!("cannot get {} {name:?}{}: {error}{remedy}", crd.kind(), within(namespace))
            })?
            .with_context(|| format!("{} {name:?} not found{}", crd.kind(), within(namespace)))?;
        let policies = match policies {
            Some(policies) => policies,
            None => policy::of(&cluster).await?,
        };
        let rules = policies.rules(&crd, &labels(&document));
        let report = report_on(&cluster, &crd).await?;
        let within = namespace.map_or(Scope::All, |namespace| Scope::Namespace(namespace.to_owned()));
        let record = match &bytes {
            Some(_) => record_of(report.as_ref(), &document, &crd, Timestamp::now()),
            None => {
                let mut witnesses = Witnesses::default();
                evidence(&cluster, &document, &crd, report.as_ref(), &within, &mut witnesses).await
            }
        };
        let (missing, exact) = match stored(bytes.as_ref(), &crd, namespace, &object).await? {
            Some((stored, revision)) => {
                let exact = by_bytes(&stored, &crd, &Decoder::new(&crd)).context("what etcd holds of it")?;
                let is_of_these_bytes = object.revision() == Some(revision);
                let exact = match exact.unconverted && is_of_these_bytes {
                    true => exact.seen(object.clone(), &crd),
                    false => exact,
                };
                (exact.missing, true)
            }
            None => (by_view(&object, &crd, &record, false), false),
        };
        let due = rules.due(report.as_ref(), &crd);
        let idle = rules.idle().or_else(|| {
            let obstacle = Obstacle::of(&document, &crd, report.as_ref(), rules.settings());
            obstacle.map(|obstacle| obstacle.in_words(&rules.grant(&global.flags_of_cluster())))
        });
        let idle = idle.or_else(|| rejection(report.as_ref(), &crd, &object).map(rejected));
        let rules_of_object = audit::Rules {
            terms: &rules.terms(),
            record: &record,
            deciding: &deciding(&record, report.as_ref()),
            changes: due.as_ref().map_or(&[], |due| due.of(&object)),
            idle: idle.as_deref(),
        };
        let explanations = explain(&object, &crd, &rules_of_object, &missing, exact);
        policy::announce(&policies)?;
        let explained = Explained { object: &object, crd: &crd, rules: &rules, defaults: &explanations };
        let document = || self.etcd.in_document(explained.document());
        emit(out, self.output, document, |out| explained.table(out, &global.style()))?;
        if matches!(bytes, Some(ObjectSource::Snapshot(..))) && self.output == Output::Table {
            writeln!(out, "{OF_SNAPSHOT}")?;
        }
        ended(Vec::new(), missing.is_empty())
    }

    async fn explain_type(&self, global: &Global, out: &mut dyn Write) -> anyhow::Result<()> {
        global.has_no_scope("a type has no namespace")?;
        if let Some((kind, _)) = self.kind.split_once('/') {
            let flag = if self.live { "--live" } else { "--openapi" };
            bail!("{flag} explains types: give {kind} without a name");
        }
        if self.live {
            let (typed, documents) = openapi::Live::connect(global).await?.called(&self.kind).await?;
            return self.published(&typed, &documents, global, out);
        }
        one_stdin(&self.openapi)?;
        let documents = openapi::of_files(&self.openapi, &mut io::stdin().lock())?;
        self.published(&self.kind, &documents, global, out)
    }

    /// Prints the defaults of the type, or of the field in it, that was typed.
    fn published(
        &self,
        typed: &str,
        documents: &[Document],
        global: &Global,
        out: &mut dyn Write,
    ) -> anyhow::Result<()> {
        let Named { document, of, place } = named(typed, documents)?;
        let defaults = document.published(of, &place).with_context(|| of.to_string())?;
        let programs = || published::document(of, &place, &defaults);
        emit(out, self.output, programs, |out| published::table(out, &global.style(), &defaults))?;
        Ok(())
    }

    /// Type and name as they were typed: `TYPE NAME`, or `TYPE/NAME`.
    fn typed(&self) -> anyhow::Result<(&str, &str)> {
        let (kind, name) = match (self.kind.split_once('/'), &self.name) {
            (None, Some(name)) => (self.kind.as_str(), name.as_str()),
            (Some((kind, name)), None) => (kind, name),
            (None, None) => bail!("the object's name is missing: give TYPE NAME, or TYPE/NAME"),
            (Some(_), Some(_)) => bail!("explain takes one object: give TYPE NAME, or TYPE/NAME"),
        };
        if !is_object_name(name) {
            bail!("{name:?} is not a valid object name; give the namespace with --namespace");
        }
        Ok((kind, name))
    }
}

fn within(namespace: Option<&str>) -> String {
    namespace.map(|namespace| format!(" in namespace {namespace:?}")).unwrap_or_default()
}

/// The stored value of the object and its revision, with access to etcd. A snapshot may hold an earlier
/// object of the same name.
async fn stored(
    bytes: Option<&ObjectSource>,
    crd: &Crd,
    namespace: Option<&str>,
    object: &Object,
) -> anyhow::Result<Option<(Json, u64)>> {
    let Some(bytes) = bytes else { return Ok(None) };
    let value = bytes.stored(&crd.resource(), namespace, object.name()).await?;
    let value = value.context(match bytes {
        ObjectSource::Snapshot(..) => {
            "the snapshot has no such object: it may be older than the object, or \
            have other keys (--etcd-prefix)"
        }
        _ => "etcd has no such object; see --etcd-prefix",
    })?;
    match decode(&value.bytes) {
        // etcd shows no more of it than the read view.
        Err(Opaque::TooDeep) => Ok(None),
        stored => {
            let stored = stored.context("what etcd holds of it")?;
            let uid = stored["metadata"]["uid"].as_str().unwrap_or_default();
            ensure!(uid == object.uid(), "etcd holds another object of this name, with uid {uid:?}");
            Ok(Some((stored, value.revision)))
        }
    }
}
