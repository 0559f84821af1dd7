//! What was checked, and what was found: each finding with its document.

use std::collections::{BTreeMap, BTreeSet};

use etch_lint::go_types::Packages;
use etch_lint::published::Document as OpenApi;
use etch_lint::{Finding, Part, TypeFinding};
use kube_crd_validation::crd::Release;
use kube_manifests::{At, Document, DuplicateKey, Lines, Origin};
use kube_structural_schema::json::Json;
use serde_json::Value;

use super::place::place;

/// A finding, and the CRD or EmbeddedSchema that it is about, if it is about one.
#[derive(Debug)]
pub struct Located {
    /// The line in that document's file; `None` if the output does not need it, or if it is not known.
    pub line: Option<usize>,
    /// The document; `None` if the CRD is from the cluster.
    pub origin: Option<Origin>,
    /// The name of the CRD, or what the finding is about in its place.
    pub crd: String,
    /// What was found.
    pub finding: Finding,
    /// Why the finding is accepted, if an exception accepts it.
    pub accepted: Option<String>,
}

/// The findings of a run, and why CRDs could not be checked.
#[derive(Debug, Default)]
pub struct Checked {
    /// What was found.
    pub findings: Vec<Located>,
    /// Why something could not be checked.
    pub failures: Vec<String>,
    /// How many CRDs were checked.
    pub crds: u64,
    /// How many Go packages were asked for.
    pub packages: u64,
    /// The CRDs with which Go types are compared.
    pub held: Vec<Json>,
    /// How many EmbeddedSchemas were checked.
    pub schemas: u64,
    /// How many types of OpenAPI documents were checked.
    pub types: u64,
    /// The EmbeddedSchemas that were met, until they are checked.
    pub embedded: Vec<(Json, Option<Document>)>,
    /// CRDs that can be read only once, and those of targets.
    pub known: Vec<Json>,
    /// The CRDs before, by name, and where they are.
    pub old: BTreeMap<String, (Json, Origin)>,
    /// The CRDs that were compared with those before.
    pub compared: BTreeSet<String>,
    /// The CRDs that are not among those before, with their documents.
    pub without_old: BTreeMap<String, Origin>,
    /// The releases that are asked.
    releases: Vec<Release>,
    /// Whether findings are shown beside the files, by their lines.
    with_lines: bool,
    /// The lines of the text that was checked last: a list of CRDs is one text.
    lines: Option<Lines>,
    /// Parts of CRDs that were skipped.
    pub parts: Vec<String>,
}

impl Checked {
    /// Begins a run that asks these releases, with the CRDs before.
    pub fn new(old: BTreeMap<String, (Json, Origin)>, releases: Vec<Release>, with_lines: bool) -> Self {
        Self { old, releases, with_lines, ..Self::default() }
    }

    /// What was checked, and how much of it.
    pub fn looked_at(&self) -> impl Iterator<Item = (u64, &'static str)> {
        let Self { crds, schemas, packages, types, .. } = *self;
        [(crds, "CRD"), (schemas, "EmbeddedSchema"), (packages, "Go package"), (types, "type")].into_iter()
    }

    /// Records what was found in a document, or in what a cluster has under a name.
    pub fn add(
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

    /// Checks a CRD of a document, or of a cluster.
    pub fn crd(&mut self, json: &Json, document: Option<&Document>) {
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

    /// Checks the types that an OpenAPI document of a file, or of a cluster, describes.
    pub fn openapi(&mut self, document: &OpenApi, origin: Option<&Origin>) {
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

    /// Checks Go types, and compares them with the CRDs that were read.
    pub fn go(&mut self, packages: &Packages) {
        self.packages = packages.asked().count() as u64;
        let found = etch_lint::lint_go(packages, &std::mem::take(&mut self.held)).into_iter();
        self.findings.extend(found.map(|finding| {
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

    /// Checks EmbeddedSchemas against the CRDs of their targets among those that are known. Where there are
    /// CRDs, it returns the targets that have none.
    pub fn embedded_schemas(&mut self, schemas: &[(Json, Option<Document>)], known: &[Json]) -> Vec<String> {
        for (json, document) in schemas {
            self.schemas += 1;
            let name = format!("EmbeddedSchema {}", name_of(json));
            self.add(document.as_ref(), &name, etch_lint::lint_embedded(json, known));
        }
        let with_crd: BTreeSet<_> = known.iter().map(target).collect();
        let targets = targets(schemas);
        let without = targets.difference(&with_crd).filter(|_| self.crds > 0);
        let name = |(group, resource): &(String, String)| format!("{resource}.{group}");
        without.map(|target| name(target).trim_end_matches('.').to_owned()).collect()
    }

    /// Reports the CRDs that are only among those before. What cannot be read may be one of them; and where
    /// no CRD was compared, it is likely that others were meant.
    pub fn removed(&mut self) {
        if !self.failures.is_empty() || self.compared.is_empty() {
            return;
        }
        let removed = self.old.iter().filter(|(name, _)| !self.compared.contains(*name));
        self.findings.extend(removed.map(|(name, (_, origin))| Located {
            line: None,
            // Code scanning takes no report with a finding that is in no file.
            origin: Some(origin.clone()),
            crd: name.clone(),
            finding: etch_lint::crd_removed(),
            accepted: None,
        }));
    }
}

/// Group and resource of all targets of EmbeddedSchemas.
pub fn targets(schemas: &[(Json, Option<Document>)]) -> BTreeSet<(String, String)> {
    let targets =
        schemas.iter().flat_map(|(json, _)| json["spec"]["targets"].as_array().into_iter().flatten());
    targets.map(|target| (text(&target["group"]), text(&target["resource"]))).collect()
}

/// Group and resource of a CRD.
pub fn target(crd: &Json) -> (String, String) {
    (text(&crd["spec"]["group"]), text(&crd["spec"]["names"]["plural"]))
}

/// The name of a CRD; empty if it has none.
pub fn name_of(crd: &Json) -> String {
    text(&crd["metadata"]["name"])
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
