//! Checks CRDs and EmbeddedSchemas from files or a cluster, and collects what is found.
//! The command prints it, and decides what to leave out.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use etch::cluster::Cluster;
use etch::source::{self, At, DistinctFiles, Document, DuplicateKey, Origin};
use etch_core::request::resources::{crds, embedded_schemas};
use etch_lint::published::Document as OpenApi;
use etch_lint::{Finding, Part, TypeFinding};
use kube_crd_validation::crd::Release;
use kube_manifests::Lines;
use kube_structural_schema::json::Json;
use serde_json::Value;

use super::super::once::Once;
use super::super::openapi::Live;
use super::super::policy::first;
use super::super::skipped::{part_of_crd, without_parts};
use super::super::{Before, asynchronous, documents_before, each, none_of};
use super::place::place;
use super::publishing::Publishing;
use crate::commands::global::Global;
use crate::commands::streams::note;

/// A finding, and the CRD or EmbeddedSchema that it is about, if it is about one.
pub(super) struct Located {
    /// The line in that document's file; `None` if the output does not need it, or if it is not known.
    pub(super) line: Option<usize>,
    /// The document; `None` if the CRD is from the cluster.
    pub(super) origin: Option<Origin>,
    pub(super) crd: String,
    pub(super) finding: Finding,
    /// Why the finding is accepted, if an exception accepts it.
    pub(super) accepted: Option<String>,
}

/// The findings of a run, and why CRDs could not be checked.
#[derive(Default)]
pub(super) struct Checked {
    pub(super) findings: Vec<Located>,
    pub(super) failures: Vec<String>,
    pub(super) crds: u64,
    /// How many Go packages were asked for.
    pub(super) packages: u64,
    /// The CRDs with which Go types are compared.
    pub(super) held: Vec<Json>,
    /// How many EmbeddedSchemas were checked.
    pub(super) schemas: u64,
    /// How many types of OpenAPI documents were checked.
    pub(super) types: u64,
    /// The EmbeddedSchemas that were met, until they are checked.
    pub(super) embedded: Vec<(Json, Option<Document>)>,
    /// CRDs that can be read only once, and those of targets.
    pub(super) known: Vec<Json>,
    /// The CRDs before, by name, and where they are.
    pub(super) old: BTreeMap<String, (Json, Origin)>,
    /// The CRDs that were compared with those before.
    pub(super) compared: BTreeSet<String>,
    /// The CRDs that are not among those before, with their documents.
    pub(super) without_old: BTreeMap<String, Origin>,
    /// The releases that are asked.
    pub(super) releases: Vec<Release>,
    /// Whether findings are shown beside the files, by their lines.
    pub(super) with_lines: bool,
    /// The lines of the text that was checked last: a list of CRDs is one text.
    pub(super) lines: Option<Lines>,
    /// Parts of CRDs that were skipped.
    pub(super) parts: Vec<String>,
}

impl Checked {
    /// What was checked, and how much of it.
    pub(super) fn looked_at(&self) -> impl Iterator<Item = (u64, &'static str)> {
        let Self { crds, schemas, packages, types, .. } = *self;
        [(crds, "CRD"), (schemas, "EmbeddedSchema"), (packages, "Go package"), (types, "type")].into_iter()
    }

    /// Records what was found in a document, or in what a cluster has under a name.
    pub(super) fn add(
        &mut self,
        document: Option<&Document>,
        name: &str,
        findings: impl IntoIterator<Item = Finding>,
    ) {
        let beside = document.filter(|_| self.with_lines);
        if let Some(document) =
            beside.filter(|document| !self.lines.as_ref().is_some_and(|lines| lines.are_of(document)))
        {
            self.lines = Some(document.lines());
        }
        let line = |finding: &Finding| beside?.line(self.lines.as_ref()?, &place(finding));
        self.findings.extend(findings.into_iter().map(|finding| Located {
            line: line(&finding),
            origin: document.map(|document| document.origin.clone()),
            crd: name.to_owned(),
            finding,
            accepted: None,
        }));
    }

    fn crd(&mut self, json: &Json, document: Option<&Document>) {
        let crd = name_of(json);
        let old = self.old.get(&crd).map(|(old, _)| old);
        match old {
            Some(_) => drop(self.compared.insert(crd.clone())),
            None if self.old.is_empty() => {}
            None => self.without_old.extend(document.map(|document| (crd.clone(), document.origin.clone()))),
        }
        // The API server accepted this CRD, so it is checked as an update that changes nothing.
        let before = old.or(json["metadata"]["uid"].is_string().then_some(json));
        let mut found = Vec::new();
        // A CRD of a cluster is no document that a user applies.
        if document.is_some() {
            found = etch_lint::as_applied(json, before, &self.releases);
        }
        found.extend(old.map(|old| etch_lint::compatibility(old, json)).unwrap_or_default());
        let refusals = etch_lint::refusals(json, before, &self.releases);
        self.add(document, &crd, found);
        for DuplicateKey { place, line, is_other_type } in
            document.iter().flat_map(|document| &document.duplicates)
        {
            let part = |at: &At| match at {
                At::Field(name) => Part::Field(name.clone()),
                At::Item(index) => Part::Item(*index),
            };
            let place = place.iter().map(part).collect();
            self.add(document, &crd, [etch_lint::duplicate_key(json, place, *is_other_type)]);
            if let (Some(line), Some(last)) = (line, self.findings.last_mut()) {
                last.line = Some(*line);
            }
        }
        match etch_lint::lint(json) {
            Ok(mut findings) => {
                self.crds += 1;
                etch_lint::suggest_follow(json, &mut findings);
                self.add(document, &crd, findings.into_iter().chain(refusals));
            }
            Err(error) => {
                let place = document.map_or(crd, |document| document.origin.to_string());
                self.failures.push(format!("{place}: CustomResourceDefinition: {error}"));
            }
        }
    }

    fn openapi(&mut self, document: &OpenApi, origin: Option<&Origin>) {
        let (findings, failures) = etch_lint::lint_openapi(document);
        self.types += document.kinds().count() as u64;
        let place =
            |failure: String| origin.map_or_else(|| failure.clone(), |origin| format!("{origin}: {failure}"));
        self.failures.extend(failures.into_iter().map(place));
        self.findings.extend(findings.into_iter().map(|TypeFinding { of, finding }| Located {
            line: None,
            origin: origin.cloned(),
            crd: of.group_kind(),
            finding,
            accepted: None,
        }));
    }
}

/// Checks the CRDs in files; other documents are skipped. The CRDs are kept if there are Go types to compare.
pub(super) fn files(checked: &mut Checked, paths: &[PathBuf], with_go: bool) {
    let mut files = DistinctFiles::default();
    for path in paths {
        let (mut crds, mut others) = (0, BTreeSet::new());
        // Nothing breaks it off.
        let _ = files.each(path, &mut io::stdin().lock(), &mut |document| {
            match document {
                Ok(document) if document.is_part_of_crd() => {
                    checked.parts.push(part_of_crd(&document));
                    others.insert(document.what());
                }
                Ok(document) if document.is_crd() => {
                    crds += 1;
                    // Its version is asked for here, so that an old CRD is not taken for a malformed one.
                    match source::is_current_crd(&document) {
                        Ok(()) => {
                            checked.crd(&document.json, Some(&document));
                            if with_go {
                                checked.held.push(document.json);
                            } else if path.as_os_str() == "-" {
                                checked.known.push(document.json);
                            }
                        }
                        Err(error) => checked.failures.push(error.to_string()),
                    }
                }
                Ok(document) if document.kind() == "EmbeddedSchema" => {
                    crds += 1;
                    checked.embedded.push((document.json.clone(), Some(document)));
                }
                Ok(document) => {
                    others.insert(document.what());
                }
                Err(error) => {
                    crds += 1;
                    checked.failures.push(error.to_string());
                }
            }
            ControlFlow::Continue(())
        });
        if crds == 0 && !files.has_repeated() {
            let none = none_of("CustomResourceDefinition", std::slice::from_ref(path), others.pop_first());
            checked.failures.push(none);
        }
    }
}

/// Reports the CRDs that are only among those before, or not among them. It is a failure if no CRD was
/// compared, for then it is likely that others were meant.
pub(super) fn not_compared(checked: &mut Checked, old: &[PathBuf]) -> io::Result<()> {
    let missing = checked.without_old.iter().map(|(name, origin)| format!("{name} ({origin})"));
    let missing = first(missing);
    let gone: Vec<String> =
        checked.old.keys().filter(|name| !checked.compared.contains(*name)).cloned().collect();
    // What cannot be read may be one of them.
    if checked.failures.is_empty() && !checked.compared.is_empty() {
        for name in &gone {
            checked.add(None, name, [etch_lint::crd_removed()]);
            // Code scanning takes no report with a finding that is in no file.
            if let (Some(last), Some((_, origin))) = (checked.findings.last_mut(), checked.old.get(name)) {
                last.origin = Some(origin.clone());
            }
        }
    }
    if !missing.is_empty() && !checked.compared.is_empty() {
        return note(&format!("--old does not contain {missing}, so nothing is compared with it"));
    }
    if !missing.is_empty() {
        let found = first(checked.old.keys());
        let none = none_of("CRD that is checked", old, Some(found));
        checked.failures.push(format!("--old: {none}; it lacks {missing}"));
    }
    Ok(())
}

/// What `--openapi` checks.
const OBJECT_TYPE: &str = "type of an object: one with apiVersion, kind and metadata";

/// Checks the types that OpenAPI documents in files describe.
pub(super) fn openapi(checked: &mut Checked, paths: &[PathBuf]) {
    let mut files = DistinctFiles::default();
    for path in paths {
        match files.openapi(path, &mut io::stdin().lock()) {
            Ok(found) => found.iter().for_each(|source::OpenApi { origin, document }| {
                checked.openapi(document, Some(origin));
            }),
            Err(error) => checked.failures.push(error.to_string()),
        }
    }
    if checked.types == 0 && checked.failures.is_empty() {
        checked.failures.push(none_of(OBJECT_TYPE, paths, None));
    }
}

/// Checks the types that a cluster publishes.
pub(super) fn live_types(checked: &mut Checked, global: &Global) -> Result<()> {
    let read = async { anyhow::Ok(Live::connect(global).await?.all().await) };
    let (documents, failures) = asynchronous()?.block_on(read)?;
    checked.failures.extend(failures);
    documents.iter().for_each(|document| checked.openapi(document, None));
    if checked.types == 0 && checked.failures.is_empty() {
        checked.failures.push(format!("what the API server publishes: contains no {OBJECT_TYPE}"));
    }
    Ok(())
}

/// Checks Go types, and compares them with the CRDs that were read.
pub(super) fn go(checked: &mut Checked, patterns: &[PathBuf]) {
    let (packages, errors) = source::go::packages(patterns);
    checked.failures.extend(errors.iter().map(ToString::to_string));
    checked.packages = packages.asked().count() as u64;
    let found = etch_lint::lint_go(&packages, &std::mem::take(&mut checked.held)).into_iter();
    checked.findings.extend(found.map(|finding| {
        let place = finding.go.as_ref();
        Located {
            line: place.map(|place| place.at.line),
            origin: place.map(|place| Origin { file: place.at.file.clone(), document: 1, item: None }),
            crd: place.map(|place| place.crd.clone()).unwrap_or_default(),
            finding,
            accepted: None,
        }
    }));
}

/// Checks the CRDs of the cluster, and its EmbeddedSchemas.
pub(super) fn live(checked: &mut Checked, global: &Global) -> Result<()> {
    asynchronous()?.block_on(async {
        let cluster = Cluster::connect(&global.target()).await?;
        let there = embedded_schemas();
        let mut has_schemas = false;
        let mut publishing = Publishing::default();
        each(&cluster, &crds(), &mut |crd| {
            has_schemas |= crd.name() == format!("{}.{}", there.plural, there.group);
            checked.crd(crd.json(), None);
            publishing.add(crd.json());
        })
        .await?;
        publishing.check(&cluster, checked).await?;
        if has_schemas {
            each(&cluster, &there, &mut |schema| checked.embedded.push((schema.json().clone(), None)))
                .await?;
            for (group, resource) in targets(&checked.embedded) {
                checked.known.extend(cluster.crd(&format!("{resource}.{group}")).await?);
            }
        }
        Ok(())
    })
}

/// Checks the EmbeddedSchemas against the CRDs of their targets, if these were given. Where
/// there are CRDs, a note names the targets that have none: their names may be wrong.
pub(super) fn embedded(checked: &mut Checked, paths: &[PathBuf]) -> io::Result<()> {
    let (schemas, mut known) = (std::mem::take(&mut checked.embedded), std::mem::take(&mut checked.known));
    let targets = targets(&schemas);
    let target = |crd: &Json| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (text(&crd["spec"]["group"]), text(&crd["spec"]["names"]["plural"]))
    };
    let is_target = |crd: &Json| targets.contains(&target(crd));
    if !schemas.is_empty() {
        known.extend(checked.held.iter().cloned());
        // Once more, for one document is held at a time. What cannot be read was reported.
        let files: Vec<PathBuf> = paths.iter().filter(|path| path.as_os_str() != "-").cloned().collect();
        source::each(&files, &mut io::empty(), &mut |document| {
            let whole = |document: &Document| document.is_crd() && !document.is_part_of_crd();
            known.extend(document.ok().filter(whole).map(|document| document.json));
            known.retain(&is_target);
            ControlFlow::Continue(())
        });
    }
    let with_crd: BTreeSet<_> = known.iter().map(target).collect();
    let without: Vec<String> = targets
        .difference(&with_crd)
        .map(|(group, resource)| format!("{resource}.{group}").trim_end_matches('.').to_owned())
        .collect();
    if checked.crds > 0 && !without.is_empty() {
        note(&format!(
            "none of the CRDs is {}, so nothing shows whether these targets exist",
            first(&without)
        ))?;
    }
    for (json, document) in schemas {
        checked.schemas += 1;
        let name = format!("EmbeddedSchema {}", name_of(&json));
        checked.add(document.as_ref(), &name, etch_lint::lint_embedded(&json, &known));
    }
    Ok(())
}

/// Group and resource of all targets.
fn targets(schemas: &[(Json, Option<Document>)]) -> BTreeSet<(String, String)> {
    let targets =
        schemas.iter().flat_map(|(json, _)| json["spec"]["targets"].as_array().into_iter().flatten());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    targets.map(|target| (text(&target["group"]), text(&target["resource"]))).collect()
}

/// The CRDs before, by name, and the files that they are or were in. `new` are the files after.
pub(super) fn old(paths: &[PathBuf], new: &[PathBuf]) -> Result<BTreeMap<String, (Json, Origin)>> {
    let Before { documents, lacks } =
        documents_before(paths, new, &mut io::stdin().lock()).context("--old")?;
    let other = documents.first().map(Document::what);
    let (mut crds, mut once) = (BTreeMap::new(), Once::default());
    for document in without_parts(documents)?.into_iter().filter(Document::is_crd) {
        source::crd(&document).context("--old")?;
        let name = name_of(&document.json);
        if once.is_first(format!("CRD {name}"), &document).context("--old")? {
            crds.insert(name, (document.json, source::git::without_revision(document.origin, paths)));
        }
    }
    if crds.is_empty() && !paths.is_empty() && lacks.is_empty() {
        bail!(none_of("CustomResourceDefinition", paths, other));
    }
    Ok(crds)
}

fn name_of(crd: &Json) -> String {
    crd["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}
