//! `etch revert`: removes what passes have stored, after a CRD was rolled back, or shows what it would
//! remove.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;
use etch::cluster::{Cluster, MAX_IN_FLIGHT, Pace};
use etch::operator::{Reversion, revert};
use etch_answers::failures::way_out;
use etch_answers::impact::given::Given;
use etch_answers::revert::{self as answer, CrdRevert, Tally, lacked};
use etch_answers::scope;
use etch_core::crd::Crd;
use etch_core::plan::Unstorable;
use etch_core::prediction::record_of;
use etch_core::rbac::Verb;
use etch_core::report::recorded_defaults::recorded_defaults;
use jiff::Timestamp;
use kube_structural_schema::schema::rules::crd::judge;

use super::impact::gather::given;
use super::serves_its_objects;
use super::signals::Signals;
use super::values::LimitArg;
use crate::commands::emit::{emit, ended};
use crate::commands::global::{Global, Output};
use crate::commands::namespace;
use crate::commands::outcome::Outcome;
use crate::commands::streams::stderr;
use crate::commands::values::PaceArg;

/// Remove defaults that Etch stored, after a CRD was rolled back
///
/// Show what would be removed; with --yes, remove it. What goes is what the CRD's DefaultsReport shows that a
/// pass stored, what is still that value, and what no field manager owns. Everything else stays, and the
/// output says why.
///
/// While a version of the CRD has a default at a path, nothing can be removed there: the API server fills it
/// in. Roll back the CRD first, then run this command.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  etch revert certificates.cert-manager.io
  etch revert certificates.cert-manager.io --to old.yaml
  etch revert crontabs -n web --yes

Exit status: 0 if nothing is left to remove, 1 if something is or may be, or --to lacks a default
that the CRD of the cluster still has, 2 if the command failed.")]
pub(crate) struct Revert {
    /// The CRD, named as for kubectl
    #[arg(value_name = "CRD")]
    crd: String,
    /// The CRD to which you rolled back: a file, a folder, or - for standard input. Defaults that it lacks
    /// and the cluster still has are named [default: the CRD of the cluster]
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Remove the values instead of showing them
    #[arg(short, long)]
    yes: bool,
    /// The maximum number of writes per second [default: no limit]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    max_writes_per_second: Option<u32>,
    /// How to share the API server with other clients
    #[arg(long, value_enum, default_value_t)]
    pace: PaceArg,
    #[command(flatten)]
    limit: LimitArg,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

impl Revert {
    pub(crate) async fn run(self, global: &Global, out: &mut dyn Write) -> anyhow::Result<Outcome> {
        let scope = global.scope()?;
        let to = self.to.as_ref().map(|path| given(std::slice::from_ref(path), &mut io::stdin().lock()));
        let to = to.transpose().context("--to")?;
        let cluster = Cluster::connect(&global.target()).await?.paced(self.pace.into());
        namespace::exists(&cluster, &scope).await?;
        let name = cluster.resolve(&self.crd).await?;
        let document = cluster.crd(&name).await?.with_context(|| format!("CRD {name} was deleted"))?;
        let crd = Arc::new(Crd::read(&document)?);
        scope::covers(&scope, &crd, true)?;
        let to = to.map(|to| self.among(to, &name)).transpose()?;
        if let Some(message) = judge(&document["spec"]).message() {
            bail!("{name}: the schema is not structural, so its objects are not written: {message}");
        }
        serves_its_objects(&cluster, &crd).await?;
        let report =
            cluster.report(&name, crd.uid()).await.with_context(|| format!("{name}: its DefaultsReport"))?;
        let status = report.and_then(|report| report.status).with_context(|| {
            format!(
                "{name}: it has no DefaultsReport, so nothing shows what Etch stored: only passes of the \
                 operator are on record"
            )
        })?;
        let verbs: &[Verb] = if self.yes { &[Verb::Get, Verb::List, Verb::Patch] } else { &[Verb::List] };
        // If the access review fails, try without it.
        if let Ok(Some(missing)) = cluster.missing_in(&crd.resource(), &scope, verbs).await {
            let error = format!("a permission is missing {}: {missing}", scope::in_words(&scope));
            bail!("{name}: {error}{}", way_out(&error, &scope));
        }
        let (recorded, more_defaults) = recorded_defaults(&status, &crd);
        let hidden = record_of(Some(&status), &document, &crd, Timestamp::now()).hidden;
        let unstorable = Arc::new(Unstorable::new(recorded, &crd).knowing(hidden));
        let wanted = to.map(|to| lacked(&unstorable, &to)).unwrap_or_default();
        let signals = if self.yes { Signals::install()? } else { Signals::default() };
        let pace = Pace::new(MAX_IN_FLIGHT, self.max_writes_per_second, self.pace.into());
        let reversion = Reversion {
            crd: crd.clone(),
            scope: scope.clone(),
            unstorable: unstorable.clone(),
            removes: self.yes,
            pace: Arc::new(pace),
            ended: signals.ended.clone(),
        };
        let verb = if self.yes { "Removing stored defaults from" } else { "Planning for" };
        writeln!(stderr(), "{verb} {name}, {}.", scope::in_words(&scope))?;
        let mut tally = Tally::new(self.limit.of(self.output));
        let done = {
            let mut each = |identity, reverted| tally.add(identity, reverted);
            let work = revert(&cluster, &reversion, &mut each);
            tokio::select! {
                done = work => done.map_err(|error| error.to_string()),
                () = signals.at_once.cancelled() => Err("interrupted; writes were in flight".to_owned()),
            }
        };
        let error = done.err();
        let reverted = CrdRevert { crd, unstorable, more_defaults, wanted, removes: self.yes, tally, error };
        let document = || scope::in_document(answer::document(&reverted), &scope);
        emit(out, self.output, document, |out| answer::table(out, &global.style(), &reverted))?;
        let failures =
            reverted.error.as_ref().map(|error| format!("{name}: {error}{}", way_out(error, &scope)));
        ended(failures.into_iter().collect(), reverted.is_clean())
    }

    /// The CRD of this name among those of `--to`.
    fn among(&self, mut given: BTreeMap<String, Given>, name: &str) -> anyhow::Result<Crd> {
        if let Some(given) = given.remove(name) {
            return Ok(given.crd);
        }
        let file = self.to.as_deref().unwrap_or(Path::new("-")).display();
        let others: Vec<String> = given.into_keys().collect();
        bail!("--to {file}: contains no CRD {name}: found {}", others.join(", "))
    }
}
