//! `etch fill`: objects as an API server would read them.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use etch::source::{self, DistinctFiles, Origin};
use etch_answers::documents;
use etch_answers::fill::{Filled, Types, document, type_of};
use etch_answers::once::Once;
use etch_core::object::Object;
use etch_lint::published::TypeName;
use tokio::runtime::Runtime;

use super::openapi::{self, Live};
use super::skipped::{note_skipped, without_parts};
use super::{asynchronous, none_of, one_stdin};
use crate::commands::emit::{emit_object, ended};
use crate::commands::global::{Format, Global};
use crate::commands::outcome::Outcome;

/// Print objects as the API server reads them
///
/// Drop unknown fields and nulls, and fill in defaults, by the schema of the version in the object's
/// apiVersion, without conversion. Built-in types get only their published defaults: the server does not
/// publish those that it sets in Go code, such as a Deployment's replicas.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  etch fill --crd crds.yaml object.yaml
  etch fill --crd crds.yaml --show-defaults object.yaml
  kubectl get crontabs -A -o yaml | etch fill --crd crds.yaml -o json -
  kubectl get --raw /openapi/v3/apis/apps/v1 > apps-v1.json
  etch fill --openapi apps-v1.json deployment.yaml
  etch fill --live --show-defaults deployment.yaml")]
pub(crate) struct Fill {
    /// The objects: files, folders, or - for standard input
    #[arg(value_name = "OBJECT", required = true)]
    objects: Vec<PathBuf>,
    /// A file or folder with CRDs; repeatable
    #[arg(long, value_name = "FILE", required_unless_present_any = ["openapi", "live"])]
    crd: Vec<PathBuf>,
    /// A file or folder with OpenAPI v3 documents of an API server; repeatable
    #[arg(long, value_name = "FILE")]
    openapi: Vec<PathBuf>,
    /// For types that are in no file, use the documents that the cluster publishes
    #[arg(long)]
    live: bool,
    /// Mark the values that come from the schema, and list the dropped fields. In JSON, print {object,
    /// defaults, dropped}
    #[arg(long)]
    show_defaults: bool,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// The types of files, and of a cluster if it is asked.
struct Known {
    types: Types,
    live: Option<(Runtime, Live)>,
    /// Of which API versions it was asked.
    asked: BTreeSet<String>,
}

impl Fill {
    pub(crate) fn run(self, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
        one_stdin([&self.objects, &self.crd, &self.openapi].into_iter().flatten())?;
        let types = read(&self.crd, &self.openapi)?;
        let mut known = Known { types, live: None, asked: BTreeSet::new() };
        if self.live {
            let runtime = asynchronous()?;
            let live = runtime.block_on(Live::connect(global))?;
            known.live = Some((runtime, live));
        }
        let (mut failures, mut skipped, mut printed) = (Vec::new(), Vec::new(), Vec::new());
        let mut broken = Ok(());
        let mut files = DistinctFiles::default();
        for path in &self.objects {
            let (mut is_empty, mut other) = (true, None);
            let flow = files.each(path, &mut io::stdin().lock(), &mut |document| {
                if let Ok(document) = &document
                    && document.is_for_kustomize()
                {
                    other = Some("something for kustomize only".to_owned());
                    skipped.push(format!("{}: for kustomize only", document.origin));
                    return ControlFlow::Continue(());
                }
                is_empty = false;
                let filled = document
                    .and_then(documents::manifest)
                    .map_err(|error| error.to_string())
                    .and_then(|(origin, object)| known.fill(&origin, &object));
                match filled {
                    Ok(filled) if self.output == Format::Yaml => {
                        broken = filled.write_yaml(out, self.show_defaults);
                        if broken.is_err() {
                            return ControlFlow::Break(());
                        }
                    }
                    Ok(filled) => printed.push(filled),
                    Err(failure) => failures.push(failure),
                }
                ControlFlow::Continue(())
            });
            if flow.is_break() {
                break;
            }
            if is_empty && !files.has_repeated() {
                failures.push(none_of("Kubernetes object", std::slice::from_ref(path), other));
            }
        }
        broken?;
        skipped.iter().try_for_each(|document: &String| note_skipped(document))?;
        if self.output == Format::Json && (failures.is_empty() || !printed.is_empty()) {
            emit_object(out, Format::Json, &document(printed, self.show_defaults))?;
        }
        ended(failures, true)
    }
}

impl Known {
    /// The object as it is read, or why it cannot be.
    fn fill(&mut self, origin: &Origin, object: &Object) -> Result<Filled, String> {
        self.ask(&type_of(object)).map_err(|error| format!("{origin}: {error:#}"))?;
        self.types.fill(object).map_err(|why| format!("{origin}: {why}"))
    }

    /// Reads a type that is in no file from the cluster.
    fn ask(&mut self, name: &TypeName) -> Result<()> {
        let Some((runtime, live)) = &self.live else { return Ok(()) };
        if !self.types.has(name) && self.asked.insert(name.api_version.clone()) {
            self.types.documents.extend(runtime.block_on(live.document(&name.api_version))?);
        }
        Ok(())
    }
}

fn read(crds: &[PathBuf], documents: &[PathBuf]) -> Result<Types> {
    let mut types = Types::default();
    let mut stdin = io::stdin().lock();
    let stdin: &mut dyn Read = &mut stdin;
    let (mut files, mut once) = (DistinctFiles::default(), Once::default());
    for path in crds {
        let mut has_repeated = false;
        let found = files.documents(path, stdin)?;
        let before = types.crds.len();
        let other = found.first().map(source::Document::what);
        for document in without_parts(found)?.iter().filter(|document| document.is_crd()) {
            let crd = documents::crd(document)?;
            if once.is_first(format!("the CRD of {} of {}", crd.kind(), crd.group()), document)? {
                types.crds.push(crd);
            } else {
                has_repeated = true;
            }
        }
        if types.crds.len() == before && !has_repeated && !files.has_repeated() {
            bail!(none_of("CustomResourceDefinition", std::slice::from_ref(path), other));
        }
    }
    types.documents = openapi::of_files(documents, stdin)?;
    Ok(types)
}
