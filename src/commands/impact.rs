//! `etch impact`: what an upgrade of CRDs will do.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::Args;
use etch::cluster::etcd::decode;
use etch::cluster::{Cluster, Scan, Scope};
use etch::domain::audit::{Evidence, held, schema_time};
use etch::domain::crd::{Crd, Version};
use etch::domain::impact::{Changed, Effect, Problem, SchemaChanges, Upgrade, compare};
use etch::domain::json::Json;
use etch::domain::object::{IGNORE_ANNOTATION, Identity, Object};
use etch::domain::path::Path;
use etch::domain::plan::{Record, Skip, Terms, skip};
use etch::domain::schema::{DEEPEST, Schema};
use etch::report::{self, Align, Cell, Style, Table, Tone};
use etch::source;
use serde_json::{Value, json};

use super::audit::why_skipped;
use super::etcd::{Bytes, EtcdArgs, on_its_record};
use super::{none_of, one_stdin, scope};
use crate::commands::global::{Global, Output};
use crate::commands::outcome::Outcome;

/// Tells what an upgrade of CRDs will do to their objects
///
/// The defaults and fields of the storage versions are compared. Of each object it is told which values appear, which change
/// or disappear because etcd never held them, which are hidden because the new schema does not know them, and what would be
/// invalid.
///
/// With access to etcd, or to a snapshot of it, every answer is exact. Without, what etcd holds of an object that a server
/// returned is judged by its managedFields: a default that nobody owns is taken not to be stored, unless the object was written
/// since the CRD last changed. An object that no server returned is taken to be stored as it stands in its file.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  etch impact -f new.yaml --old old.yaml
  etch impact -f new.yaml --old old.yaml --objects objects/
  etch impact -f new.yaml --live -o json
  etch impact -f new.yaml --etcd-snapshot backup.db

Exit status: 0 where nothing changes, 1 where something does, 2 where the command failed.")]
pub(crate) struct Impact {
    /// The CRDs after the upgrade: files, folders, or - for standard input
    #[arg(short = 'f', long = "filename", value_name = "NEW", required = true)]
    new: Vec<PathBuf>,
    /// The CRDs before the upgrade [default: those of the cluster]
    #[arg(long, value_name = "OLD")]
    old: Vec<PathBuf>,
    /// Objects to look at: files, folders, or - for standard input
    #[arg(long, value_name = "FILE", conflicts_with = "live", num_args = 1..)]
    objects: Vec<PathBuf>,
    /// Look at all objects of the cluster
    #[arg(long)]
    live: bool,
    /// How to print it
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    #[command(flatten)]
    etcd: EtcdArgs,
}

/// What is told of one CRD.
struct Told {
    crd: String,
    old_version: Option<String>,
    new_version: String,
    schemas: SchemaChanges,
    counts: Counts,
    details: Vec<Detail>,
}

/// An object to which something happens.
struct Detail {
    identity: Identity,
    effect: Effect,
    /// Whether that is known, and not presumed from the owners.
    exact: bool,
    skipped: Option<Skip>,
}

#[derive(Default)]
struct Counts {
    total: u64,
    gaining: u64,
    changing: u64,
    losing: u64,
    hidden: u64,
    invalid: u64,
    protected: u64,
    ignored: u64,
    terminating: u64,
    /// Objects whose values would be protected if nobody asked to ignore them.
    unprotected: u64,
}

impl Impact {
    pub(crate) async fn run(self, global: &Global, out: &mut dyn Write) -> anyhow::Result<Outcome> {
        let scope = global.scope()?;
        if scope.namespace().is_some() && !self.has_objects() {
            bail!(
                "--namespace narrows objects, and only schemas are compared: add --live, --objects or access to etcd"
            );
        }
        one_stdin([&self.new, &self.old, &self.objects].into_iter().flatten())?;
        let mut stdin = io::stdin().lock();
        let mut new = crds(&self.new, &mut stdin).context("-f")?;
        left_out(&mut new, &scope)?;
        let old = crds(&self.old, &mut stdin).context("--old")?;
        let mut objects = objects(&self.objects, &new, &scope, &mut stdin).context("--objects")?;
        drop(stdin);
        let is_asked = self.live || self.old.is_empty() && self.etcd.etcd_snapshot.is_none();
        let cluster = match is_asked {
            true => Some(Cluster::connect(&global.target()).await?),
            false => None,
        };
        if let (Some(cluster), true) = (&cluster, self.live) {
            scope::exists(cluster, &scope).await?;
        }
        let bytes = Bytes::open(&self.etcd).await?;
        let mut all = Vec::new();
        for (name, new) in &new {
            let (mut document, mut read) = (None, None);
            if self.old.is_empty() {
                document = match (&cluster, &bytes) {
                    (Some(cluster), _) => {
                        cluster.crd(name).await.with_context(|| format!("the CRD {name}"))?
                    }
                    (None, Some(bytes)) => bytes.crd(name)?,
                    (None, None) => None,
                };
                let crd = document.as_ref().map(Crd::read).transpose();
                read = crd.with_context(|| format!("the CRD {name}"))?;
            }
            let old = read.as_ref().or_else(|| old.get(name));
            let mut told = Told::new(name, old, new);
            if let Some(old) = old {
                let upgrade = Upgrade::new(old, new);
                for object in objects.remove(name).unwrap_or_default() {
                    let identity = object.identity();
                    told.add(identity, upgrade.object(&object), false, Some((&object, old)));
                }
                match (&bytes, &cluster) {
                    (Some(bytes), _) => {
                        bytes
                            .each(&old.resource(), &scope, &mut |name, value| {
                                told.look(&upgrade, old, name, value)
                            })
                            .await?;
                    }
                    (None, Some(cluster)) if self.live => {
                        let evidence = Evidence {
                            record: on_its_record(cluster, old).await,
                            schema_time: document.as_ref().and_then(schema_time),
                            trust_owners: false,
                        };
                        let mut scan = Scan::new(cluster.clone(), old.resource(), scope.clone());
                        while let Some(page) =
                            scan.next().await.with_context(|| format!("{name}: the objects"))?
                        {
                            for object in page.objects {
                                let exact = evidence.proves(&object, old);
                                let effect =
                                    if exact { upgrade.proved(&object) } else { upgrade.object(&object) };
                                told.add(object.identity(), effect, exact, Some((&object, old)));
                            }
                        }
                    }
                    _ => {}
                }
            }
            // A snapshot is read in the order of its writes.
            told.details.sort_by(|a, b| a.identity.cmp(&b.identity));
            all.push(told);
        }
        match self.output {
            Output::Table => {
                scope::write(out, &scope)?;
                for told in &all {
                    told.write(out, &global.style())?;
                }
            }
            Output::Json => report::write_json(out, &document(&all, &scope))?,
            Output::Yaml => report::write_yaml(out, &document(&all, &scope))?,
        }
        Ok(if all.iter().all(Told::is_nothing) { Outcome::Clean } else { Outcome::Findings })
    }

    /// Whether objects are looked at, and not the schemas alone.
    fn has_objects(&self) -> bool {
        self.live || !self.objects.is_empty() || self.etcd.is_given()
    }
}

impl Told {
    fn new(name: &str, old: Option<&Crd>, new: &Crd) -> Self {
        let nothing = Schema::default();
        let old_schema = old.map_or(&nothing, |old| &old.storage().schema);
        Self {
            crd: name.to_owned(),
            old_version: old.map(|old| old.storage().name.clone()),
            new_version: new.storage().name.clone(),
            schemas: compare(old_schema, &new.storage().schema),
            counts: Counts::default(),
            details: Vec::new(),
        }
    }

    /// Looks at what etcd holds of an object.
    fn look(&mut self, upgrade: &Upgrade<'_>, old: &Crd, identity: Identity, value: &[u8]) {
        let wrong = |problem| Effect { problems: vec![problem], ..Effect::default() };
        let looked = match decode(value) {
            Ok(stored) => upgrade.stored(stored).map_err(Problem::Unreadable),
            Err(opaque) => Err(Problem::Opaque { why: opaque.to_string() }),
        };
        match looked {
            Ok((object, effect)) => self.add(identity, effect, true, Some((&object, old))),
            Err(problem) => self.add(identity, wrong(problem), true, None),
        }
    }

    /// Counts an object, as it is read before the upgrade where it can be read.
    fn add(&mut self, identity: Identity, mut effect: Effect, exact: bool, read: Option<(&Object, &Crd)>) {
        let counts = &mut self.counts;
        counts.total += 1;
        let skipped = read.and_then(|(object, _)| skip(object));
        match skipped {
            Some(Skip::Ignored) => counts.ignored += 1,
            Some(Skip::Terminating) => counts.terminating += 1,
            None => {}
        }
        // What `etch persist` does not write it does not protect.
        if !effect.protected.is_empty() {
            let is_held = read.is_some_and(|(object, old)| {
                held(object, old, &Terms::default(), &Record::default()).is_some()
            });
            if skipped.is_some() || is_held {
                effect.protected.clear();
                counts.unprotected += u64::from(skipped == Some(Skip::Ignored));
            }
        }
        for (count, is_so) in [
            (&mut counts.gaining, !effect.appears.is_empty()),
            (&mut counts.changing, !effect.changes.is_empty()),
            (&mut counts.losing, !effect.disappears.is_empty()),
            (&mut counts.hidden, !effect.hidden.is_empty()),
            (&mut counts.invalid, !effect.problems.is_empty()),
            (&mut counts.protected, !effect.protected.is_empty()),
        ] {
            *count += u64::from(is_so);
        }
        if !effect.is_none() {
            self.details.push(Detail { identity, effect, exact, skipped });
        }
    }

    fn is_nothing(&self) -> bool {
        self.schemas.is_none() && self.details.is_empty()
    }

    fn document(&self) -> Value {
        let SchemaChanges { defaults_added, defaults_changed, defaults_removed, fields_removed } =
            &self.schemas;
        let Counts {
            total,
            gaining,
            changing,
            losing,
            hidden,
            invalid,
            protected,
            ignored,
            terminating,
            unprotected: _,
        } = self.counts;
        json!({
            "crd": self.crd,
            "storageVersion": { "old": self.old_version, "new": self.new_version },
            "defaultsAdded": list(defaults_added, |(path, value)| json!({ "path": path.to_string(), "value": value })),
            "defaultsChanged": list(defaults_changed, |Changed { path, old, new }| {
                json!({ "path": path.to_string(), "old": old, "new": new })
            }),
            "defaultsRemoved": list(defaults_removed, |(path, old)| json!({ "path": path.to_string(), "old": old })),
            "fieldsRemoved": texts(fields_removed),
            "objects": {
                "total": total, "gaining": gaining, "changing": changing, "losing": losing,
                "hidden": hidden, "invalid": invalid, "protectedByPersist": protected,
                "ignored": ignored, "terminating": terminating,
            },
            "details": list(&self.details, |Detail { identity, effect, exact, skipped }| {
                let Effect { appears, changes, disappears, hidden, protected, problems } = effect;
                json!({
                    "namespace": identity.namespace,
                    "name": identity.name,
                    "exact": exact,
                    "ignored": *skipped == Some(Skip::Ignored),
                    "terminating": *skipped == Some(Skip::Terminating),
                    "appears": texts(appears),
                    "changes": texts(changes),
                    "disappears": texts(disappears),
                    "hidden": texts(hidden),
                    "protectedByPersist": texts(protected),
                    "problems": list(problems, |problem| Value::from(problem.to_string())),
                })
            }),
        })
    }

    fn write(&self, out: &mut dyn Write, style: &Style) -> io::Result<()> {
        let version = match &self.old_version {
            None => format!("{}, new", self.new_version),
            Some(old) if *old == self.new_version => old.clone(),
            Some(old) => format!("{old} to {}", self.new_version),
        };
        writeln!(out, "{} ({version})", style.paint(Tone::Strong, report::plain(&self.crd)))?;
        if self.is_nothing() {
            return writeln!(out, "Nothing changes.\n");
        }
        self.write_schemas(out, style)?;
        if self.counts.total > 0 {
            self.write_objects(out, style)?;
        }
        writeln!(out)
    }

    fn write_schemas(&self, out: &mut dyn Write, style: &Style) -> io::Result<()> {
        let left = |name| (name, Align::Left);
        let mut table = Table::new([left("SCHEMA"), left("PATH"), left("OLD"), left("NEW")]);
        let text = |value: &Json| Cell::new(value.to_string(), Tone::Plain);
        for (path, value) in &self.schemas.defaults_added {
            table.row(["default added".into(), path.to_string().into(), Cell::default(), text(value)]);
        }
        for Changed { path, old, new } in &self.schemas.defaults_changed {
            let change = Cell::new("default changed", Tone::Warning);
            table.row([change, path.to_string().into(), text(old), text(new)]);
        }
        for (path, value) in &self.schemas.defaults_removed {
            let change = Cell::new("default removed", Tone::Warning);
            table.row([change, path.to_string().into(), text(value), Cell::default()]);
        }
        for path in &self.schemas.fields_removed {
            table.row([Cell::new("field removed", Tone::Bad), path.to_string().into()]);
        }
        if table.is_empty() { Ok(()) } else { table.write(out, style) }
    }

    fn write_objects(&self, out: &mut dyn Write, style: &Style) -> io::Result<()> {
        let Counts { total, gaining, changing, losing, hidden, invalid, protected, unprotected, .. } =
            self.counts;
        writeln!(
            out,
            "Of {total} objects {gaining} gain values, {changing} change, {losing} lose values, {hidden} have values hidden, \
             {invalid} have problems."
        )?;
        let left = |name| (name, Align::Left);
        let mut table = Table::new([left("OBJECT"), left("EFFECT"), left("WHERE")]);
        for Detail { identity, effect, exact: _, skipped } in &self.details {
            let Effect { appears, changes, disappears, hidden, protected: _, problems } = effect;
            let name = match skipped {
                Some(why) => format!("{identity} ({})", why_skipped(*why)),
                None => identity.to_string(),
            };
            for (word, tone, paths) in [
                ("appears", Tone::Plain, appears),
                ("changes", Tone::Warning, changes),
                ("disappears", Tone::Warning, disappears),
                ("hidden", Tone::Bad, hidden),
            ] {
                if !paths.is_empty() {
                    let paths: Vec<_> = paths.iter().map(Path::to_string).collect();
                    table.row([name.clone().into(), Cell::new(word, tone), paths.join(" ").into()]);
                }
            }
            for problem in problems {
                table.row([name.clone().into(), Cell::new("problem", Tone::Bad), problem.to_string().into()]);
            }
        }
        if !table.is_empty() {
            table.write(out, style)?;
        }
        if protected > 0 {
            writeln!(
                out,
                "`etch persist {}` before the upgrade would keep values of {protected} objects as they are.",
                self.crd
            )?;
        }
        if unprotected > 0 {
            writeln!(
                out,
                "{unprotected} objects are ignored by annotation, and `etch persist` leaves them alone. To keep their values, \
                 take away {IGNORE_ANNOTATION} first."
            )?;
        }
        Ok(())
    }
}

fn document(all: &[Told], scope: &Scope) -> Value {
    scope::in_document(json!({ "crds": list(all, Told::document) }), scope)
}

fn list<T>(items: &[T], form: impl Fn(&T) -> Value) -> Value {
    Value::Array(items.iter().map(form).collect())
}

fn texts(paths: &[Path]) -> Value {
    list(paths, |path| Value::from(path.to_string()))
}

/// The CRDs among the documents, by name.
fn crds(paths: &[PathBuf], stdin: &mut dyn io::Read) -> anyhow::Result<BTreeMap<String, Crd>> {
    let mut found = BTreeMap::new();
    let documents = source::documents(paths, stdin)?;
    for document in documents.iter().filter(|document| document.is_crd()) {
        let crd = document.crd()?;
        if let Some(Version { name, .. }) =
            crd.versions().iter().find(|version| version.schema.depth() > DEEPEST)
        {
            bail!(
                "{}: the schema of version {name} is nested more than {DEEPEST} levels deep",
                document.origin
            );
        }
        if found.contains_key(crd.name()) {
            bail!("{}: {} was given before", document.origin, crd.name());
        }
        found.insert(crd.name().to_owned(), crd);
    }
    if found.is_empty() && !paths.is_empty() {
        bail!(none_of("CustomResourceDefinition", paths, documents.first().map(source::Document::what)));
    }
    Ok(found)
}

/// Takes out the CRDs that have no objects in the scope.
fn left_out(crds: &mut BTreeMap<String, Crd>, scope: &Scope) -> anyhow::Result<()> {
    let beyond = crds.extract_if(.., |_, crd| !scope::reaches(scope, crd));
    let beyond: Vec<String> = beyond.map(|(name, _)| name).collect();
    if beyond.is_empty() {
        return Ok(());
    }
    let beyond = beyond.join(", ");
    if crds.is_empty() {
        bail!(
            "-f: {beyond}: cluster-scoped, so nothing is in {}",
            scope::in_words(scope).trim_start_matches("in ")
        );
    }
    writeln!(io::stderr(), "note: left out, because their objects are in no namespace: {beyond}")?;
    Ok(())
}

/// The objects of these CRDs among the documents that are in the scope, by the CRD's name. One that names no namespace may
/// come to be in any.
fn objects(
    paths: &[PathBuf],
    crds: &BTreeMap<String, Crd>,
    scope: &Scope,
    stdin: &mut dyn io::Read,
) -> anyhow::Result<BTreeMap<String, Vec<Object>>> {
    let mut found: BTreeMap<String, Vec<Object>> = BTreeMap::new();
    let mut other = None;
    for document in source::documents(paths, stdin)? {
        let group = document.api_version().split_once('/').map_or("", |(group, _)| group);
        let crd = crds.values().find(|crd| crd.group() == group && crd.kind() == document.kind());
        match crd {
            Some(crd) => {
                let object = document.into_object()?.1;
                let found = found.entry(crd.name().to_owned()).or_default();
                if object.namespace().is_none() || scope.contains(object.namespace()) {
                    found.push(object);
                }
            }
            None => other = other.or_else(|| Some(document.what())),
        }
    }
    if found.is_empty() && !paths.is_empty() {
        bail!(none_of("object of the CRDs that are upgraded", paths, other));
    }
    Ok(found)
}
