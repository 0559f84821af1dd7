//! What released API servers publish, kept under `openapi/releases`: how it is made from the pinned Go
//! modules of Kubernetes. `etch impact` compares releases.
//!
//! Kubernetes keeps the documents in its repository (`api/openapi-spec/v3`), and its own checks hold them
//! against the server. The Go module `k8s.io/kubernetes` has them, and `build/kubernetes-X.Y/go.sum` the hash
//! of that.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};

use crate::control_plane::Kubernetes;

/// The documents of one release, as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// `1.37`
    pub kubernetes: String,
    /// `v1.37.1`
    pub version: String,
    /// OpenAPI v3, with one definition a line.
    pub document: String,
}

impl Release {
    /// All supported releases, the oldest first.
    ///
    /// # Errors
    /// A module is not there and cannot be had, or its documents are not what they were.
    pub fn all() -> Result<Vec<Self>> {
        Kubernetes::supported()?.iter().map(Self::of).collect()
    }

    /// Makes the document of a release from its Go module.
    ///
    /// # Errors
    /// See [`Self::all`].
    pub fn of(kubernetes: &Kubernetes) -> Result<Self> {
        let (version, folder) = module(kubernetes)?;
        let document = united(&folder.join("api/openapi-spec/v3"), &version)
            .with_context(|| format!("the documents of Kubernetes {version}"))?;
        Ok(Self { kubernetes: kubernetes.to_string(), version, document })
    }

    /// Where the document is kept.
    pub fn path(&self) -> PathBuf {
        folder().join(format!("v{}.json", self.kubernetes))
    }
}

/// Where the documents are kept.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi/releases")
}

/// The pinned version of `k8s.io/kubernetes`, and the folder in which Go has it.
fn module(kubernetes: &Kubernetes) -> Result<(String, PathBuf)> {
    let pinned = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("build/kubernetes-{kubernetes}"));
    let mut go = Command::new("go");
    go.args(["mod", "download", "-json", "k8s.io/kubernetes"]).current_dir(&pinned);
    let output = go.output().context("go cannot be run")?;
    ensure!(output.status.success(), "go mod download: {}", String::from_utf8_lossy(&output.stdout));
    let module: Value = serde_json::from_slice(&output.stdout).context("the answer of go mod download")?;
    let text = |field: &str| module[field].as_str().with_context(|| format!("{field} of {module}"));
    Ok((text("Version")?.to_owned(), PathBuf::from(text("Dir")?)))
}

/// All documents of a folder as one, without descriptions and paths.
fn united(folder: &Path, version: &str) -> Result<String> {
    let mut schemas: BTreeMap<String, Value> = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| format!("read {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_none_or(|ending| ending != "json") {
            continue;
        }
        let document: Value = serde_json::from_slice(&fs::read(&path)?)?;
        for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
            let mut schema = schema.clone();
            undescribed(&mut schema);
            match schemas.get_mut(name) {
                None => drop(schemas.insert(name.clone(), schema)),
                Some(known) if *known == schema => {}
                Some(known) => unite(known, schema).with_context(|| name.clone())?,
            }
        }
    }
    ensure!(schemas.len() > 100, "{} has {} definitions only", folder.display(), schemas.len());
    let head = json!({"title": "Kubernetes", "version": version});
    let mut text =
        format!("{{\"openapi\":\"3.0.0\",\"info\":{head},\"paths\":{{}},\"components\":{{\"schemas\":{{\n");
    let last = schemas.len() - 1;
    for (index, (name, schema)) in schemas.iter().enumerate() {
        let comma = if index == last { "" } else { "," };
        writeln!(text, "{}:{schema}{comma}", Value::from(name.as_str()))?;
    }
    text.push_str("}}}\n");
    Ok(text)
}

/// Handles a definition that another document has as well. The options of requests name the group of their
/// document, and are otherwise the same.
fn unite(known: &mut Value, other: Value) -> Result<()> {
    const KIND: &str = "x-kubernetes-group-version-kind";
    let without = |schema: &Value| {
        let mut schema = schema.clone();
        schema.as_object_mut().and_then(|keywords| keywords.remove(KIND)).map(|_| schema)
    };
    if without(known).is_none() || without(known) != without(&other) {
        bail!("documents disagree about it");
    }
    if let (Some(known), Value::Array(others)) = (known[KIND].as_array_mut(), &other[KIND]) {
        let new: Vec<Value> = others.iter().filter(|other| !known.contains(other)).cloned().collect();
        known.extend(new);
        known.sort_by_key(Value::to_string);
    }
    Ok(())
}

/// Takes the descriptions out of a schema.
fn undescribed(schema: &mut Value) {
    let Value::Object(keywords) = schema else { return };
    keywords.remove("description");
    for (name, below) in keywords.iter_mut() {
        match (name.as_str(), below) {
            ("properties", Value::Object(properties)) => properties.values_mut().for_each(undescribed),
            ("items" | "additionalProperties" | "not", below) => undescribed(below),
            ("allOf" | "anyOf" | "oneOf", Value::Array(clauses)) => clauses.iter_mut().for_each(undescribed),
            _ => {}
        }
    }
}

/// The rows of the tables in the documentation: what a step from one release to the next changes, by the
/// answer of `etch impact -o json`. What is minor there is left out.
pub fn rows(answer: &Value) -> Vec<String> {
    let mut rows = Vec::new();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    for group in list(&answer["apiVersions"]) {
        let name = group["apiVersion"].as_str().unwrap_or_default().to_owned();
        for (field, what) in
            [("defaultsAdded", "added"), ("defaultsChanged", "changed"), ("defaultsRemoved", "removed")]
        {
            for change in list(&group[field]).iter().filter(|change| change["minor"] == false) {
                rows.push(row(&name, what, change));
            }
        }
    }
    rows
}

fn row(api_version: &str, what: &str, change: &Value) -> String {
    let definition = change["definition"].as_str().unwrap_or_default().rsplit('.').next().unwrap_or_default();
    let path = change["path"].as_str().filter(|path| *path != ".").unwrap_or_default();
    let old = Some(&change["old"]).filter(|value| !value.is_null());
    let new = [&change["value"], &change["new"]].into_iter().find(|value| !value.is_null());
    let shown = |value: Option<&Value>| value.map(|value| format!("`{value}`")).unwrap_or_default();
    let mut kinds: Vec<&str> =
        change["in"].as_array().into_iter().flatten().filter_map(|of| of["kind"].as_str()).collect();
    kinds.dedup();
    format!(
        "| {api_version} | `{definition}{path}` | {what} | {} | {} | {} |",
        shown(old),
        shown(new),
        kinds.join(", ")
    )
}

/// Kinds that come and go in a step, by API version, as rows of a table.
pub fn kinds(answer: &Value) -> Vec<String> {
    let mut rows = Vec::new();
    for group in answer["apiVersions"].as_array().into_iter().flatten() {
        let names = |field: &str| {
            let names = group[field].as_array().into_iter().flatten().filter_map(Value::as_str);
            names.collect::<Vec<_>>().join(", ")
        };
        let (added, removed) = (names("kindsAdded"), names("kindsRemoved"));
        if !added.is_empty() || !removed.is_empty() {
            rows.push(format!(
                "| {} | {added} | {removed} |",
                group["apiVersion"].as_str().unwrap_or_default()
            ));
        }
    }
    rows
}

/// How many changes of an answer need no attention.
pub fn minor(answer: &Value) -> usize {
    let groups = answer["apiVersions"].as_array().into_iter().flatten();
    let changes = groups.flat_map(|group| {
        let fields = ["defaultsAdded", "defaultsChanged", "defaultsRemoved"];
        fields.into_iter().flat_map(|field| group[field].as_array().into_iter().flatten())
    });
    changes.filter(|change| change["minor"] == true).count()
}
