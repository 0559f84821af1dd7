//! Reads CRDs, EmbeddedSchemas and Go types, from files or a cluster, and has them checked.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use etch::cluster::Cluster;
use etch::source::{self, DistinctFiles, Document, Origin};
use etch_answers::lint::exceptions::{self, Exception};
use etch_answers::lint::{Checked, name_of, target, targets};
use etch_answers::once::Once;
use etch_answers::{documents, first};
use etch_core::request::resources::{crds, embedded_schemas};
use kube_structural_schema::json::Json;

use super::super::openapi::Live;
use super::super::skipped::{part_of_crd, without_parts};
use super::super::{Before, asynchronous, documents_before, each, none_of};
use super::publishing::Publishing;
use crate::commands::global::Global;
use crate::commands::streams::note;

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
                    match documents::is_current_crd(&document) {
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
    checked.removed();
    let missing = checked.without_old.iter().map(|(name, origin)| format!("{name} ({origin})"));
    let missing = first(missing);
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

/// Checks the Go types of packages.
pub(super) fn go(checked: &mut Checked, patterns: &[PathBuf]) {
    let (packages, errors) = source::go::packages(patterns);
    checked.failures.extend(errors.iter().map(ToString::to_string));
    checked.go(&packages);
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
    let without = checked.embedded_schemas(&schemas, &known);
    if !without.is_empty() {
        note(&format!(
            "none of the CRDs is {}, so nothing shows whether these targets exist",
            first(&without)
        ))?;
    }
    Ok(())
}

/// The CRDs before, by name, and the files that they are or were in. `new` are the files after.
pub(super) fn old(paths: &[PathBuf], new: &[PathBuf]) -> Result<BTreeMap<String, (Json, Origin)>> {
    let Before { documents, lacks } =
        documents_before(paths, new, &mut io::stdin().lock()).context("--old")?;
    let other = documents.first().map(Document::what);
    let (mut crds, mut once) = (BTreeMap::new(), Once::default());
    for document in without_parts(documents)?.into_iter().filter(Document::is_crd) {
        documents::crd(&document).context("--old")?;
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

/// The exceptions in files.
pub(super) fn accepted(paths: &[PathBuf]) -> Result<Vec<Exception>> {
    let mut all = Vec::new();
    for document in source::documents(paths, &mut io::stdin().lock())? {
        all.extend(exceptions::read(&document.json).with_context(|| document.origin.to_string())?);
    }
    Ok(all)
}
