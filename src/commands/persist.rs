//! `etch persist`: one pass by hand, or what it would do.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use etch::cluster::{Cluster, Pace, Scan};
use etch::controller::{self, Pass, Passed, Progress};
use etch::domain::crd::Crd;
use etch::domain::path::Path;
use etch::domain::plan::{HiddenFields, Ownership, Plan, Record, Skip, Strategy, Terms, decide};
use etch::domain::schema::rules::crd::judge;
use etch::report::{self, Align, Cell, Style, Table, Tone};
use serde_json::{Value, json};

use super::etcd::on_its_record;
use super::failure;
use crate::commands::global::{Global, Output};
use crate::commands::outcome::Outcome;

/// Has the defaults of existing objects stored, once
///
/// This is one pass of the operator's, by the same laws: no value that is there is changed, no object is created, no field
/// changes hands, and what would do harm is left alone and named. A pass that was interrupted can be gone on with.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  etch persist --dry-run
  etch persist certificates.cert-manager.io
  etch persist crontabs --max-writes-per-second 20 --after web/nightly

Exit status: 0 where all defaults are stored, 1 where some objects are left, or would be written, 2 where the command failed.")]
pub(crate) struct Persist {
    /// The CRDs to see to, as kubectl takes types [default: all that have defaults]
    #[arg(value_name = "CRD")]
    crds: Vec<String>,
    /// Print what would be done to each object, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Go on behind this object of the first CRD: namespace/name, or /name where there are no namespaces
    #[arg(long, value_name = "OBJECT", requires = "crds")]
    after: Option<String>,
    /// Who owns the defaults that are stored
    #[arg(long, value_enum, default_value_t)]
    ownership: OwnershipArg,
    /// What is done about objects with fields that only etcd holds
    #[arg(long, value_enum, default_value_t)]
    hidden_fields: HiddenFieldsArg,
    /// How many writes may be under way at once
    #[arg(long, default_value_t = 16)]
    max_in_flight: usize,
    /// How many writes may begin per second [default: no limit]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    max_writes_per_second: Option<u32>,
    /// How to print the result
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum OwnershipArg {
    /// Nobody
    #[default]
    None,
    /// The manager `etch`
    Own,
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
enum HiddenFieldsArg {
    /// They are left alone and named
    #[default]
    Hold,
    /// They are written, which destroys the hidden fields
    Drop,
}

/// What is told of one CRD.
struct Told {
    crd: String,
    passed: Passed,
    plans: Vec<Planned>,
    error: Option<String>,
}

/// What would be done to one object.
struct Planned {
    namespace: Option<String>,
    name: String,
    action: &'static str,
    reason: Option<&'static str>,
    paths: Vec<Path>,
}

impl Persist {
    pub(crate) async fn run(self, global: &Global, out: &mut dyn Write) -> anyhow::Result<Outcome> {
        let cluster = Cluster::connect(&global.target()).await?;
        let mut names = Vec::new();
        for name in &self.crds {
            names.push(cluster.resolve(name).await?);
        }
        if names.is_empty() {
            names = cluster.crd_names().await.context("the CRDs cannot be listed")?;
        }
        let pace = Pace::new(self.max_in_flight, self.max_writes_per_second);
        let mut all = Vec::new();
        for (index, name) in names.iter().enumerate() {
            let after = self.after.clone().filter(|_| index == 0);
            match self.see_to(&cluster, &pace, name, &names[index..], after).await {
                Ok(told) => all.extend(told),
                Err(error) => all.push(Told {
                    crd: name.clone(),
                    passed: Passed::default(),
                    plans: Vec::new(),
                    error: Some(format!("{error:#}")),
                }),
            }
        }
        match self.output {
            Output::Table if self.dry_run => table_of_plans(out, &global.style(), &all)?,
            Output::Table => table(out, &global.style(), &all)?,
            Output::Json => report::write_json(out, &self.document(&all))?,
            Output::Yaml => report::write_yaml(out, &self.document(&all))?,
        }
        let failures = all.iter().filter_map(|told| Some(format!("{}: {}", told.crd, told.error.as_ref()?)));
        let failures: Vec<_> = failures.collect();
        if !failures.is_empty() {
            out.flush()?;
            return Err(failure(failures));
        }
        Ok(if all.iter().all(Told::is_clean) { Outcome::Clean } else { Outcome::Findings })
    }

    /// Sees to the first of the CRDs that are left; nothing is told of one without defaults that was not asked for.
    async fn see_to(
        &self,
        cluster: &Cluster,
        pace: &Pace,
        name: &str,
        left: &[String],
        after: Option<String>,
    ) -> anyhow::Result<Option<Told>> {
        let Some(document) = cluster.crd(name).await? else { return Ok(None) };
        let crd = Crd::read(&document)?;
        let is_asked_for = !self.crds.is_empty();
        if !crd.compiled().has_defaults() && !is_asked_for {
            return Ok(None);
        }
        if let Some(message) = judge(&document["spec"]).message() {
            bail!("the schema is not structural, so the server applies no defaults: {message}");
        }
        let told = |passed, plans| Told { crd: name.to_owned(), passed, plans, error: None };
        let record = on_its_record(cluster, &crd).await;
        if self.dry_run {
            let (passed, plans) = self.plan(cluster, &crd, &record).await?;
            return Ok(Some(told(passed, plans)));
        }
        let passed = self.persist(cluster, pace, &crd, record, left, after).await?;
        Ok(Some(told(passed, Vec::new())))
    }

    async fn persist(
        &self,
        cluster: &Cluster,
        pace: &Pace,
        crd: &Crd,
        record: Record,
        left: &[String],
        after: Option<String>,
    ) -> anyhow::Result<Passed> {
        let reached = Arc::new(Mutex::new(after.clone()));
        let mut line = Line::new(crd.name());
        let mut progress = {
            let reached = reached.clone();
            move |progress: Progress| {
                line.show(&progress);
                if !progress.verifies {
                    *reached.lock().unwrap_or_else(PoisonError::into_inner) = progress.upto;
                }
            }
        };
        let pass = Pass { crd, terms: self.terms(), record, after, pace };
        let ended = tokio::select! {
            ended = controller::persist(cluster, pass, &mut progress) => ended.map_err(anyhow::Error::from),
            _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted")),
        };
        drop(progress);
        ended.map_err(|error| {
            let reached = reached.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let after = reached.map(|object| format!(" --after {object}")).unwrap_or_default();
            error.context(format!("to go on: etch persist {}{after}", left.join(" ")))
        })
    }

    /// What a pass would do to each object.
    async fn plan(
        &self,
        cluster: &Cluster,
        crd: &Crd,
        record: &Record,
    ) -> anyhow::Result<(Passed, Vec<Planned>)> {
        let (mut passed, mut plans) = (Passed { verified: true, ..Passed::default() }, Vec::new());
        let mut scan = Scan::new(cluster.clone(), crd.resource());
        while let Some(page) = scan.next().await? {
            for object in page.objects {
                let counts = &mut passed.counts;
                counts.objects += 1;
                let (action, reason, paths) = match decide(&object, crd, &self.terms(), record) {
                    Plan::Stored => {
                        counts.already_stored += 1;
                        continue;
                    }
                    Plan::Skip(why) => {
                        counts.skipped += 1;
                        ("skip", Some(skipped(why)), Vec::new())
                    }
                    Plan::Hold(held) => {
                        counts.held += 1;
                        ("hold", Some(held.reason.as_str()), held.paths)
                    }
                    Plan::Write(write) => {
                        counts.due += 1;
                        (sent(write.strategy), None, write.missing)
                    }
                };
                let (namespace, name) = (object.namespace().map(str::to_owned), object.name().to_owned());
                plans.push(Planned { namespace, name, action, reason, paths });
            }
        }
        Ok((passed, plans))
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
        }
    }

    fn document(&self, all: &[Told]) -> Value {
        json!({ "crds": all.iter().map(|told| told.document(self.dry_run)).collect::<Vec<_>>() })
    }
}

/// The word for a way of writing.
fn sent(strategy: Strategy) -> &'static str {
    match strategy {
        Strategy::Apply => "apply",
        Strategy::Merge => "merge",
        Strategy::Rewrite => "rewrite",
        Strategy::Follow => "follow",
    }
}

fn skipped(why: Skip) -> &'static str {
    match why {
        Skip::Terminating => "Terminating",
        Skip::OptedOut => "OptedOut",
    }
}

impl Told {
    fn is_clean(&self) -> bool {
        let counts = self.passed.counts;
        counts.held + counts.rejected + counts.unknown + counts.due == 0 && self.passed.verified
    }

    fn document(&self, dry_run: bool) -> Value {
        let counts = self.passed.counts;
        let mut document = json!({
            "crd": self.crd,
            "objects": counts.objects,
            "alreadyStored": counts.already_stored,
            "held": counts.held,
            "skipped": counts.skipped,
        });
        if dry_run {
            document["due"] = counts.due.into();
            document["plans"] = self.plans.iter().map(Planned::document).collect();
        } else {
            document["written"] = counts.written.into();
            document["rejected"] = counts.rejected.into();
            document["unknown"] = counts.unknown.into();
            document["verified"] = self.passed.verified.into();
            document["problems"] = self.passed.problems.iter().map(|problem| json!(problem)).collect();
        }
        if let Some(error) = &self.error {
            document["error"] = Value::from(error.as_str());
        }
        document
    }
}

impl Planned {
    fn document(&self) -> Value {
        let Self { namespace, name, action, reason, paths } = self;
        let paths: Vec<_> = paths.iter().map(Path::to_string).collect();
        json!({ "namespace": namespace, "name": name, "action": action, "reason": reason, "paths": paths })
    }
}

fn table(out: &mut dyn Write, style: &Style, all: &[Told]) -> io::Result<()> {
    let (left, right) = (|name| (name, Align::Left), |name| (name, Align::Right));
    let mut table = Table::new([
        left("CRD"),
        right("OBJECTS"),
        right("WRITTEN"),
        right("STORED"),
        right("HELD"),
        right("REJECTED"),
        right("SKIPPED"),
        right("UNKNOWN"),
        left("NOTE"),
    ]);
    for told in all {
        let counts = told.passed.counts;
        let numbers = [
            counts.objects,
            counts.written,
            counts.already_stored,
            counts.held,
            counts.rejected,
            counts.skipped,
            counts.unknown,
        ];
        let note = match &told.error {
            Some(error) => Cell::new(error, Tone::Bad),
            None if !told.passed.verified => Cell::new("not verified: run it again", Tone::Warning),
            None => Cell::default(),
        };
        let numbers = numbers.iter().map(|number| Cell::from(number.to_string()));
        table.row([Cell::from(told.crd.as_str())].into_iter().chain(numbers).chain([note]));
    }
    table.write(out, style)?;
    let mut problems = Table::new([left("CRD"), left("OBJECT"), left("REASON"), left("WHY")]);
    for told in all {
        for problem in &told.passed.problems {
            let name = named(problem.namespace.as_deref(), &problem.name);
            let why = format!("{} {}", problem.message, problem.paths.join(" "));
            problems.row([told.crd.as_str().into(), name.into(), problem.reason.as_str().into(), why.into()]);
        }
    }
    if problems.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    problems.write(out, style)
}

fn table_of_plans(out: &mut dyn Write, style: &Style, all: &[Told]) -> io::Result<()> {
    let left = |name| (name, Align::Left);
    let mut table = Table::new([left("CRD"), left("OBJECT"), left("ACTION"), left("REASON"), left("WHERE")]);
    for told in all {
        if let Some(error) = &told.error {
            table.row([
                told.crd.as_str().into(),
                Cell::default(),
                Cell::new("failed", Tone::Bad),
                error.as_str().into(),
            ]);
        }
        for plan in &told.plans {
            let paths: Vec<_> = plan.paths.iter().map(Path::to_string).collect();
            table.row([
                told.crd.as_str().into(),
                named(plan.namespace.as_deref(), &plan.name).into(),
                plan.action.into(),
                plan.reason.unwrap_or_default().into(),
                paths.join(" ").into(),
            ]);
        }
    }
    if table.is_empty() {
        return writeln!(out, "Nothing is to be done.");
    }
    table.write(out, style)
}

fn named(namespace: Option<&str>, name: &str) -> String {
    namespace.map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"))
}

/// One line on a terminal that is written over; nothing elsewhere.
struct Line {
    crd: String,
    shown: bool,
}

impl Line {
    fn new(crd: &str) -> Self {
        Self { crd: crd.to_owned(), shown: false }
    }

    fn show(&mut self, progress: &Progress) {
        if !io::stderr().is_terminal() {
            return;
        }
        self.shown = true;
        let counts = progress.counts;
        let doing = if progress.verifies { "verified" } else { "seen to" };
        let _ = write!(
            io::stderr(),
            "\r\u{1b}[K{}: {} objects {doing}, {} written",
            report::plain(&self.crd),
            counts.objects,
            counts.written
        );
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
    }
}
