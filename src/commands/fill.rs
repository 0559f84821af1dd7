//! `etch fill`: objects as an API server would read them.

use std::collections::{BTreeSet, HashMap};
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Args;
use etch::source::{self, DistinctFiles, Origin};
use etch_answers::documents;
use etch_answers::once::Once;
use etch_answers::{plain, write_document};
use etch_core::crd::Crd;
use etch_core::object::Object;
use etch_core::words;
use etch_lint::published::{Document, TypeName};
use kube_structural_schema::compile::Compiled;
use kube_structural_schema::defaults::meta::dropped_of_object;
use kube_structural_schema::defaults::{added, hand_over, hand_over_preserving, read, read_preserving};
use kube_structural_schema::json::{Json, store_numbers};
use kube_structural_schema::path::{Path, Trail};
use serde_json::json;
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

/// All types that are known.
#[derive(Default)]
struct Types {
    crds: Vec<Crd>,
    documents: Vec<Document>,
    /// The cluster, if it is asked, and of which API versions it was asked.
    live: Option<(Runtime, Live)>,
    asked: BTreeSet<String>,
    /// The schemas that were needed so far, ready for filling, by CRD and version.
    compiled: HashMap<(usize, String), Compiled>,
}

/// An object as it is read.
struct Filled {
    object: Json,
    /// The topmost places that were filled in.
    defaults: Vec<Path>,
    /// The topmost fields that the schema does not know.
    dropped: Vec<Path>,
    /// The topmost values that metadata cannot have.
    misfits: Vec<Path>,
}

impl Fill {
    pub(crate) fn run(self, global: &Global, out: &mut dyn Write) -> Result<Outcome> {
        one_stdin([&self.objects, &self.crd, &self.openapi].into_iter().flatten())?;
        let mut types = Types::read(&self.crd, &self.openapi)?;
        if self.live {
            let runtime = asynchronous()?;
            let live = runtime.block_on(Live::connect(global))?;
            types.live = Some((runtime, live));
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
                    .and_then(|(origin, object)| types.fill(&origin, &object));
                match filled {
                    Ok(filled) if self.output == Format::Yaml => {
                        broken = self.yaml(&filled, out);
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
            self.json(printed, out)?;
        }
        ended(failures, true)
    }

    fn yaml(&self, filled: &Filled, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "---")?;
        if !self.show_defaults {
            return write_document(out, &filled.object, &|_| None);
        }
        let unknown = filled.dropped.iter().map(|path| (path, "the schema does not have it"));
        let misfits = filled.misfits.iter().map(|path| (path, "metadata cannot have it"));
        for (path, why) in unknown.chain(misfits) {
            writeln!(out, "# dropped, because {why}: {}", plain(&path.to_string()))?;
        }
        let note = |at: &Trail<'_>| filled.defaults.binary_search(&at.to_path()).is_ok().then_some("default");
        write_document(out, &filled.object, &note)
    }

    fn json(&self, filled: Vec<Filled>, out: &mut dyn Write) -> io::Result<()> {
        let texts = |paths: &[Path]| paths.iter().map(Path::to_string).collect::<Vec<_>>();
        let dropped = |filled: &Filled| [texts(&filled.dropped), texts(&filled.misfits)].concat();
        let mut items: Vec<Json> = filled
            .into_iter()
            .map(|filled| match self.show_defaults {
                false => filled.object,
                true => {
                    let mut shown =
                        Json::from(json!({"defaults": texts(&filled.defaults), "dropped": dropped(&filled)}));
                    shown["object"] = filled.object.into_inner();
                    shown
                }
            })
            .collect();
        if items.len() == 1 {
            return emit_object(out, Format::Json, &items.remove(0));
        }
        let items = items.into_iter().map(Json::into_inner).collect();
        let mut list = Json::from(json!({"apiVersion": "v1", "kind": "List"}));
        list["items"] = serde_json::Value::Array(items);
        emit_object(out, Format::Json, &list)
    }
}

impl Types {
    fn read(crds: &[PathBuf], documents: &[PathBuf]) -> Result<Self> {
        let mut types = Self::default();
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

    /// The object as it is read, or why it cannot be.
    fn fill(&mut self, origin: &Origin, object: &Object) -> Result<Filled, String> {
        let text = |field: &str| object.json()[field].as_str().unwrap_or_default().to_owned();
        let name = TypeName { api_version: text("apiVersion"), kind: text("kind") };
        let (mut filled, mut dropped, mut misfits) = (object.json().clone(), Vec::new(), Vec::new());
        let mut drop = |at: &Trail<'_>| dropped.push(at.to_path());
        let place = |problem: String| format!("{origin}: {problem}");
        self.ask(&name).map_err(|error| place(format!("{error:#}")))?;
        if let Some(document) = self.documents.iter().find(|document| document.describes(&name)) {
            document.fill(&mut filled, &name, &mut drop).map_err(|error| place(error.to_string()))?;
        } else {
            let (group, version) = name.api_version.rsplit_once('/').unwrap_or(("", &name.api_version));
            let known = self.crds.iter().position(|crd| crd.group() == group && crd.kind() == name.kind);
            let index = known.ok_or_else(|| place(self.unknown(&name)))?;
            let crd = &self.crds[index];
            let schema = crd.version(version).map(|version| &version.schema).ok_or_else(|| {
                let versions: Vec<_> = crd.versions().iter().map(|version| version.name.as_str()).collect();
                place(format!("{} has no version {version}; it has {}", crd.name(), versions.join(", ")))
            })?;
            let compiled =
                self.compiled.entry((index, version.to_owned())).or_insert_with(|| Compiled::new(schema));
            let read = match crd.preserves_unknown_fields() {
                true => read_preserving(&mut filled, schema, compiled)
                    .and_then(|()| hand_over_preserving(&mut filled, schema)),
                false => read(&mut filled, schema, compiled, &mut drop)
                    .and_then(|()| hand_over(&mut filled, schema, compiled, &mut drop)),
            };
            read.map_err(|error| place(error.to_string()))?;
            let mut report = |at: &Trail<'_>| misfits.push(at.to_path());
            dropped_of_object(object.json(), &filled, schema, &mut report);
        }
        // A default of a document may be `1.0`, which a server writes as `1`.
        store_numbers(&mut filled);
        let defaults = added(object.json(), &filled);
        misfits.retain(|path| !dropped.contains(path));
        Ok(Filled { object: filled, defaults, dropped, misfits })
    }

    /// Reads a type that is in no file from the cluster.
    fn ask(&mut self, name: &TypeName) -> Result<()> {
        let Some((runtime, live)) = &self.live else { return Ok(()) };
        let is_given = self.documents.iter().any(|document| document.describes(name))
            || self.crds.iter().any(|crd| crd.group() == name.group() && crd.kind() == name.kind);
        if !is_given && self.asked.insert(name.api_version.clone()) {
            self.documents.extend(runtime.block_on(live.document(&name.api_version))?);
        }
        Ok(())
    }

    fn unknown(&self, name: &TypeName) -> String {
        let crds = self.crds.iter().map(|crd| format!("{} of {}", crd.kind(), crd.group()));
        let documents = self.documents.iter().flat_map(Document::types);
        let mut known: Vec<String> =
            crds.chain(documents.map(|name| format!("{} of {}", name.kind, name.api_version))).collect();
        known.sort();
        known.dedup();
        const SHOWN: usize = 8;
        if known.is_empty() {
            return format!("the cluster publishes no schema of {name}");
        }
        format!(
            "no schema for {} of {}; there are schemas for {}",
            name.kind,
            name.api_version,
            words::first(&known, known.len() as u64, SHOWN)
        )
    }
}
