//! `etch persist`: one pass by hand, or what it would do.

mod ask;
mod choose;
mod plan;
mod progress;
mod resume;

use std::io::Write;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use clap::{Args, ValueEnum};
use etch::cluster::{Cluster, MAX_IN_FLIGHT, Pace, Witnesses};
use etch::operator::{self, Pass};
use etch_answers::failures;
use etch_answers::failures::error_text;
use etch_answers::persist::{self as answer, CrdPass, UNSERVED, place, unrecorded};
use etch_answers::plain;
use etch_answers::scope;
use etch_core::api::Counts;
use etch_core::crd::Crd;
use etch_core::engine::by_hand::Passed;
use etch_core::plan::{Clock, HiddenFields, Ownership, Record, Terms};
use etch_core::prediction::changes_by_hand;
use etch_core::rbac::Verb;
use etch_core::report::checkpoint::on_record;
use etch_core::scope::Scope;
use etch_core::selection::Selection;
use jiff::Timestamp;
use kube_structural_schema::schema::rules::crd::judge;
use parking_lot::Mutex;

use self::choose::Chosen;
use self::progress::Line;
use super::etcd::{evidence, report_on};
use super::signals::Signals;
use super::values::LimitArg;
use super::{failure, serves_its_objects};
use crate::commands::emit::{emit, ended};
use crate::commands::global::{Global, Output};
use crate::commands::namespace;
use crate::commands::outcome::Outcome;
use crate::commands::streams::{note, stderr};
use crate::commands::values::{PaceArg, in_flight};

/// Store the defaults of existing objects, once
///
/// Run one pass by the same rules as the operator: change no existing value, create no object, change the
/// owner of no field, and hold and list objects that a write would harm. You can resume an interrupted pass.
///
/// The pass covers all namespaces unless --namespace names one; the namespace of the context does not count.
/// On a terminal, a pass over all CRDs asks for confirmation.
///
/// While a StorageVersionMigration writes the objects of a CRD, the pass waits for its end.
///
/// A pass without --ownership Own releases the fields that the manager `etch` owns because of an earlier pass
/// with it: the values stay, without an owner.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  etch persist --dry-run
  etch persist certificates.cert-manager.io
  etch persist certificates.cert-manager.io --every-object
  etch persist crontabs -n web --max-writes-per-second 20 --after web/nightly

Exit status: 0 if all defaults are stored, 1 if some are not or may not be, 2 if the command
failed. Objects that --allow names do not count.")]
pub(crate) struct Persist {
    /// The CRDs to process, named as for kubectl [default: all that have defaults]
    #[arg(value_name = "CRD")]
    crds: Vec<String>,
    /// Skip CRDs that do not exist
    #[arg(long, requires = "crds")]
    ignore_not_found: bool,
    /// Show what a pass would do to each object, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask for confirmation before processing all CRDs
    #[arg(short, long)]
    yes: bool,
    /// Resume after this object of the first CRD: NAMESPACE/NAME, or NAME for a cluster-scoped one. Do not
    /// check this object or those before it
    #[arg(long, value_name = "OBJECT", requires = "crds")]
    after: Option<String>,
    /// Ask the API server about every object, also about those that show no default or that are on record.
    /// This stores each at the storage version, and records that for `etch impact`, `etch plan` and the guard
    #[arg(long, requires = "crds", conflicts_with = "dry_run")]
    every_object: bool,
    /// Who owns the stored defaults
    #[arg(long, value_enum, ignore_case = true, default_value_t)]
    ownership: OwnershipArg,
    /// What to do with objects that have fields only in etcd
    #[arg(long, value_enum, ignore_case = true, default_value_t)]
    hidden_fields: HiddenFieldsArg,
    /// The objects that may be left as they are: they do not change the exit status
    #[arg(long, value_enum, value_name = "OBJECTS", value_delimiter = ',', ignore_case = true)]
    allow: Vec<Left>,
    /// The maximum number of writes in flight
    #[arg(long, value_name = "NUMBER", default_value_t = MAX_IN_FLIGHT, value_parser = in_flight)]
    max_in_flight: usize,
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

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum OwnershipArg {
    /// No manager; release fields that the manager `etch` owns
    #[default]
    None,
    /// The manager `etch`
    Own,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum HiddenFieldsArg {
    /// Hold them, and list them
    #[default]
    Hold,
    /// Write them, which destroys the hidden fields
    Drop,
}

/// Why a pass leaves an object as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum Left {
    /// Objects with the annotation `etch-operator.io/ignore`
    Ignored,
    /// Objects that are being deleted
    Terminating,
    /// Objects that are nested too deeply
    TooDeep,
    /// Objects that a write would harm
    Held,
    /// Objects whose writes are rejected
    Rejected,
}

impl Left {
    fn number(self, counts: &Counts) -> u64 {
        match self {
            Self::Ignored => counts.ignored,
            Self::Terminating => counts.terminating,
            Self::TooDeep => counts.too_deep,
            Self::Held => counts.held,
            Self::Rejected => counts.rejected,
        }
    }
}

/// Everything that passes over several CRDs share.
struct Work<'a> {
    cluster: &'a Cluster,
    global: &'a Global,
    scope: Scope,
    pace: Arc<Pace>,
    signals: Signals,
}

impl Persist {
    pub(crate) async fn run(self, global: &Global, out: &mut dyn Write) -> anyhow::Result<Outcome> {
        let scope = global.scope()?;
        let cluster = Cluster::connect(&global.target()).await?.paced(self.pace.into());
        namespace::exists(&cluster, &scope).await?;
        let chosen = self.choose(&cluster, &scope).await?;
        let after = self.begin_after(&cluster, &scope, chosen.first()).await?;
        self.announce(&scope, &chosen)?;
        let pace = Pace::new(self.max_in_flight, self.max_writes_per_second, self.pace.into());
        let pace = Arc::new(pace);
        let signals = if self.dry_run { Signals::default() } else { Signals::install()? };
        let work = Work { cluster: &cluster, global, scope, pace, signals };
        let mut all = Vec::new();
        for (index, Chosen { name, warnings, resource, .. }) in chosen.iter().enumerate() {
            let left: Vec<String> = chosen[index..].iter().map(|chosen| chosen.name.clone()).collect();
            let after = after.clone().filter(|_| index == 0);
            let mut crd_pass =
                CrdPass { crd: name.clone(), warnings: warnings.clone(), after, ..CrdPass::default() };
            let processed = self.process(&work, &mut crd_pass, &left, resource.as_ref().err()).await;
            if let Err(error) = processed {
                crd_pass.error = Some(error_text(&*error));
            }
            let is_ended = crd_pass.is_ended;
            if let Some(lost) = &crd_pass.passed.lost {
                writeln!(stderr(), "warning: {name}: {}", plain(lost))?;
            }
            if let Some(unrecorded) = &crd_pass.unrecorded {
                note(&format!("{name}: {unrecorded}"))?;
            }
            all.push(crd_pass);
            if is_ended {
                break;
            }
        }
        let failures = failures::lines(all.iter().filter_map(CrdPass::failure).collect(), &work.scope);
        // Where nothing at all was read there are no numbers either.
        if !all.is_empty() && all.iter().all(|crd_pass| crd_pass.is_nothing()) {
            return Err(failure(failures));
        }
        let not_begun = (chosen.len() - all.len()) as u64;
        let document = || answer::document(&all, not_begun, &work.scope, self.dry_run);
        emit(out, self.output, document, |out| match (all.is_empty(), self.crds.is_empty()) {
            (true, true) => writeln!(out, "No CRD has defaults."),
            (true, false) => writeln!(out, "No such CRD."),
            _ => {
                let limit = self.limit.of(self.output);
                answer::table(out, &global.style(), &all, not_begun, self.dry_run, limit)
            }
        })?;
        ended(
            failures,
            all.iter().all(|crd_pass| crd_pass.is_complete() && self.allows(&crd_pass.passed.counts)),
        )
    }

    /// Whether objects are left as they are only where they may be.
    fn allows(&self, counts: &Counts) -> bool {
        Left::value_variants().iter().all(|left| self.allow.contains(left) || left.number(counts) == 0)
    }

    /// The object behind which the first CRD is begun.
    async fn begin_after(
        &self,
        cluster: &Cluster,
        scope: &Scope,
        first: Option<&Chosen>,
    ) -> anyhow::Result<Option<String>> {
        let (Some(after), Some(first)) = (&self.after, first) else { return Ok(None) };
        let resource = match &first.resource {
            Ok(resource) => resource,
            Err(why) => bail!("--after {after}: {}: {why}", first.name),
        };
        let place = place::place(after, first.is_namespaced, scope)
            .map_err(|why| anyhow!("--after {after}: {why}"))?;
        let (namespace, name) = place::parts(&place);
        // If Etch may not read it, it is not needed.
        if let Ok(None) = cluster.object_named(resource, namespace, name).await {
            note(&format!("--after {after}: no such object; resuming after that name"))?;
        }
        Ok(Some(place))
    }

    /// Processes a CRD, the first of those that are left, unless it could not be read.
    async fn process(
        &self,
        work: &Work<'_>,
        crd_pass: &mut CrdPass,
        left: &[String],
        unread: Option<&String>,
    ) -> anyhow::Result<()> {
        if work.signals.ended.is_cancelled() {
            crd_pass.is_ended = true;
            crd_pass.resume = Some(self.resume(work.global, left, crd_pass.after.as_deref()));
            bail!("interrupted before it started");
        }
        if let Some(why) = unread {
            bail!(why.clone());
        }
        let name = &crd_pass.crd;
        let document = work.cluster.crd(name).await?.with_context(|| format!("CRD {name} was deleted"))?;
        let crd = Arc::new(Crd::read(&document)?);
        scope::covers(&work.scope, &crd, true)?;
        if let Some(message) = judge(&document["spec"]).message() {
            bail!(
                "the schema is not structural, so its objects are not written (etch audit counts them): \
                 {message}"
            );
        }
        serves_its_objects(work.cluster, &crd).await?;
        let verbs: &[Verb] = if self.dry_run { &[Verb::List] } else { &[Verb::Get, Verb::List, Verb::Patch] };
        // If the access review fails, try without it.
        if let Ok(Some(missing)) = work.cluster.missing_in(&crd.resource(), &work.scope, verbs).await {
            bail!("a permission is missing {}: {missing}", scope::in_words(&work.scope));
        }
        let unreadable = |error: anyhow::Error| anyhow!(failures::of_objects(&*error, &crd, &document));
        let report = report_on(work.cluster, &crd).await?;
        let mut witnesses = Witnesses::default();
        let mut record =
            evidence(work.cluster, &document, &crd, report.as_ref(), &work.scope, &mut witnesses).await;
        if self.dry_run {
            (crd_pass.passed, crd_pass.plans) =
                self.plan(work, &crd, &record, crd_pass.after.as_ref()).await.map_err(unreadable)?;
            return Ok(());
        }
        let line = Arc::new(Mutex::new(Line::new(crd.name())));
        let mut progress = {
            let line = line.clone();
            move |progress| line.lock().show(progress)
        };
        // If the operator has a record of all objects, it keeps using that.
        let of_operator = report.as_ref().map(|report| on_record(report, &crd));
        let is_on_record = !self.every_object && of_operator.is_some_and(|record| record.is_of_all());
        let proves_versions = self.every_object && !record.clock.may_lag(Timestamp::now());
        let changes = report.as_ref().map(|report| changes_by_hand(report, &crd));
        if self.every_object {
            if !proves_versions {
                crd_pass.unrecorded = Some(UNSERVED.to_owned());
            }
            record = Record { clock: Clock::default(), ..record.of_nothing() };
        }
        let pass = Pass {
            crd: crd.clone(),
            scope: work.scope.clone(),
            terms: self.terms(),
            record,
            changes: changes.unwrap_or_default(),
            proves_versions,
            after: crd_pass.after.clone(),
            pace: work.pace.clone(),
            ended: work.signals.ended.clone(),
        };
        let ended = tokio::select! {
            ended = operator::persist(work.cluster, pass, &mut progress) => Some(ended),
            () = work.signals.at_once.cancelled() => None,
        };
        drop(progress);
        let reached = line.lock().end();
        match ended {
            Some(Ok(passed)) => {
                let proved = passed.proved.as_ref().filter(|_| !is_on_record);
                if let Some(proved) = proved
                    && let Err(error) = work.cluster.set_persisted(crd.name(), crd.uid(), Some(proved)).await
                {
                    crd_pass.unrecorded = Some(unrecorded(&error, self.every_object));
                }
                crd_pass.passed = passed;
                Ok(())
            }
            Some(Err(stopped)) => {
                crd_pass.is_ended = stopped.is_ended();
                // After a failure of one CRD the others can still be processed.
                let left = if crd_pass.is_ended { left } else { &left[..1] };
                let has_begun = crd_pass.is_ended || stopped.passed.counts.objects > 0;
                let resume = || self.resume(work.global, left, stopped.upto.as_deref());
                crd_pass.resume = has_begun.then(resume);
                crd_pass.passed = stopped.passed;
                Err(unreadable(stopped.reason.into()))
            }
            None => {
                crd_pass.is_ended = true;
                crd_pass.passed =
                    Passed { counts: reached.counts, left_out: reached.left_out, ..Passed::default() };
                crd_pass.resume = Some(self.resume(work.global, left, crd_pass.after.as_deref()));
                bail!("interrupted; writes in flight may have completed")
            }
        }
    }

    fn terms(&self) -> Terms {
        Terms {
            ownership: match self.ownership {
                OwnershipArg::None => Ownership::None,
                OwnershipArg::Own => Ownership::Own,
            },
            hidden_fields: match self.hidden_fields {
                HiddenFieldsArg::Hold => HiddenFields::Hold,
                HiddenFieldsArg::Drop => HiddenFields::Drop,
            },
            moves: self.every_object,
            doubts_stored_versions: self.every_object,
            repairs: false,
            // The scope of the command decides which objects are written.
            selection: Selection::default(),
            writes_status: false,
        }
    }
}
