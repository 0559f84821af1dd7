//! What `etch lint --go` reads, compared with what controller-gen and the go command make of it: each text of
//! a marker by itself, all defaults in published API packages, and build constraints. `just controller-gen`
//! records their answers. The packages are no part of this project: they are read from Go's module cache, and
//! downloaded if they are not there.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use e2e::go::go;
use etch::source;
use etch_lint::go_types::{
    Declaration, Field, Package, Packages, Shape, Source, Type, defaults, is_built, is_built_by_name,
};
use flate2::bufread::MultiGzDecoder;
use kube_structural_schema::json::same;
use serde::Deserialize;
use serde_json::Value;

/// What a marker gives.
#[derive(Deserialize)]
struct Answer {
    marker: String,
    answer: Kind,
    #[serde(default)]
    value: Value,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Value,
    /// The marker is read, and gives no default.
    None,
    /// The marker is not read.
    Unknown,
    Error,
}

/// The defaults of a package.
#[derive(Deserialize)]
struct Recorded {
    package: String,
    module: String,
    /// None of a package beside the oracle.
    #[serde(default)]
    version: String,
    types: Vec<RecordedType>,
}

/// A type with defaults, or one that controller-gen makes no schema of.
#[derive(Deserialize)]
struct RecordedType {
    r#type: String,
    #[serde(default)]
    refused: String,
    #[serde(default)]
    defaults: Vec<RecordedDefault>,
}

#[derive(Deserialize)]
struct RecordedDefault {
    path: String,
    value: Value,
}

/// The module of the oracle, whose package has markers at every place where comments can be.
const OWN: &str = "e2e/oracle/controller-gen";

/// A file, and whether the go command takes it for a part of its package.
#[derive(Deserialize)]
struct Constrained {
    name: String,
    text: String,
    built: bool,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("oracle/controller-gen")
}

fn lines<T: for<'a> Deserialize<'a>>(reader: impl Read) -> Result<Vec<T>> {
    let lines = BufReader::new(reader).lines();
    lines.map(|line| Ok(serde_json::from_str(&line?)?)).collect()
}

#[test]
fn each_text_of_a_marker_gives_the_default_that_it_gives_controller_gen() -> Result<()> {
    let file = File::open(folder().join("markers.jsonl.gz"))?;
    let answers: Vec<Answer> = lines(MultiGzDecoder::new(BufReader::new(file)))?;
    let mut text = "package a\n\ntype A struct {\n".to_owned();
    for (index, Answer { marker, .. }) in answers.iter().enumerate() {
        write!(text, "\t// {marker}\n\tF{index} string `json:\"f{index}\"`\n\n")?;
    }
    text.push_str("}\n");
    let directory = tempfile::tempdir()?;
    fs::write(directory.path().join("a.go"), text)?;
    let (packages, errors) = source::go::packages(&[directory.path().to_owned()]);
    ensure!(errors.is_empty(), "{errors:?}");
    let package = packages.asked().next().context("the package")?;
    let Some(Type::Struct(fields)) = package.types.get("A").map(|declared| &declared.kind) else {
        anyhow::bail!("no struct")
    };
    ensure!(fields.len() == answers.len(), "{} of {} fields", fields.len(), answers.len());
    let (mut wrong, mut seen) = (Vec::new(), BTreeMap::<&str, usize>::new());
    for (field, Answer { marker, answer, value }) in fields.iter().zip(&answers) {
        let own = defaults(&field.markers, &packages, &package.path);
        let own = own.iter().find(|default| default.source != Source::Declarative);
        let is_same = match (answer, own.map(|default| &default.value)) {
            (Kind::Value, Some(Ok(Some(own)))) => same(own, value),
            // A null and a reference are reported, and are no values of a schema.
            (Kind::None, Some(Ok(None) | Err(_))) | (Kind::Unknown, None) | (Kind::Error, Some(Err(_))) => {
                true
            }
            _ => false,
        };
        *seen.entry(marker.split('=').next().unwrap_or_default()).or_default() += 1;
        if !is_same {
            wrong.push(format!("{marker}: {answer:?} {value}, but {own:?}"));
        }
    }
    ensure!(seen.len() > 20, "{seen:?}");
    ensure!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), answers.len(), wrong.join("\n"));
    Ok(())
}

#[test]
fn published_types_have_the_defaults_that_controller_gen_gives_them() -> Result<()> {
    let recorded: Vec<Recorded> = lines(File::open(folder().join("packages.jsonl"))?)?;
    let published = recorded.iter().filter(|recorded| !recorded.version.is_empty());
    let mut known = download(&published.map(|recorded| recorded.module.as_str()).collect())?;
    known.insert(OWN.to_owned(), (String::new(), folder()));
    let (mut wrong, mut count, mut with_defaults) = (Vec::new(), 0, BTreeSet::new());
    for Recorded { package: path, module, version, types } in &recorded {
        let (there, root) = known.get(module.as_str()).with_context(|| module.clone())?;
        ensure!(there == version, "{module} is now at {there}: `just controller-gen`");
        let below = path.strip_prefix(module.as_str()).context("a package of its module")?;
        let (packages, errors) = source::go::packages(&[root.join(below.trim_start_matches('/'))]);
        ensure!(errors.is_empty(), "{path}: {errors:?}");
        let package = packages.asked().next().context("the package")?;
        let types: BTreeMap<&str, &RecordedType> =
            types.iter().map(|recorded| (recorded.r#type.as_str(), recorded)).collect();
        let missing = types.keys().filter(|name| !package.types.contains_key(**name));
        wrong.extend(missing.map(|name| format!("{path}.{name} is not read")));
        for (name, declaration) in &package.types {
            let recorded = types.get(name.as_str());
            // Interfaces, and types that are not meant for an API: their fields have no tags.
            if recorded.is_some_and(|recorded| !recorded.refused.is_empty()) {
                continue;
            }
            let own = own_defaults(&packages, package, declaration);
            let theirs = recorded.map(|recorded| &*recorded.defaults).unwrap_or_default();
            count += theirs.len();
            with_defaults.extend((!theirs.is_empty()).then_some(path));
            for RecordedDefault { path: at, value } in theirs {
                match own.get(at) {
                    Some(own) if same(own, value) => {}
                    own => wrong.push(format!("{path}.{name}{at}: {value}, but {own:?}")),
                }
            }
            let only_own = own.iter().filter(|(at, _)| !theirs.iter().any(|theirs| theirs.path == **at));
            wrong.extend(only_own.map(|(at, own)| format!("{path}.{name}{at}: nothing, but {own}")));
        }
    }
    ensure!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
    ensure!(count > 150 && with_defaults.len() >= 10, "{count} defaults in {with_defaults:?}");
    Ok(())
}

#[test]
fn files_belong_to_a_package_if_the_go_command_builds_them() -> Result<()> {
    let file = File::open(folder().join("constraints.jsonl.gz"))?;
    let files: Vec<Constrained> = lines(MultiGzDecoder::new(BufReader::new(file)))?;
    let wrong: Vec<String> = files
        .iter()
        .filter(|Constrained { name, text, built }| (is_built_by_name(name) && is_built(text)) != *built)
        .map(|Constrained { name, text, built }| format!("{name} {text:?}: {built}"))
        .collect();
    ensure!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), files.len(), wrong.join("\n"));
    ensure!(
        files.len() > 2000 && files.iter().any(|file| file.built) && files.iter().any(|file| !file.built)
    );
    Ok(())
}

/// Where Go has the modules that `go.mod` names, by their paths, each with its version.
fn download(modules: &BTreeSet<&str>) -> Result<BTreeMap<String, (String, PathBuf)>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct Module {
        path: String,
        version: String,
        dir: PathBuf,
    }
    let mut command = go();
    command.args(["mod", "download", "-json"]).args(modules).current_dir(folder());
    let output = command.output().context("run go")?;
    ensure!(
        output.status.success(),
        "go mod download: {}{}",
        String::from_utf8_lossy(&output.stderr),
        String::from_utf8_lossy(&output.stdout)
    );
    let found = serde_json::Deserializer::from_slice(&output.stdout).into_iter();
    found
        .map(|module| module.map(|Module { path, version, dir }| (path, (version, dir))))
        .map(|module| Ok(module?))
        .collect()
}

/// The defaults of a type by their paths, as controller-gen takes them: of types that it names there are
/// references.
fn own_defaults(
    packages: &Packages,
    package: &Package,
    declaration: &Declaration,
) -> BTreeMap<String, Value> {
    let Type::Struct(fields) = &declaration.kind else { return BTreeMap::new() };
    let value = |field: &Field| {
        let all = defaults(&field.markers, packages, &package.path);
        // It reads neither +k8s:default nor references.
        let read =
            all.into_iter().find(|default| default.source != Source::Declarative && !default.is_reference)?;
        let value = read.value.ok().flatten()?.into_inner();
        let is_empty = value.as_object().is_some_and(serde_json::Map::is_empty);
        let is_list = matches!(packages.resolve(package, &field.kind).shape, Shape::List(_));
        Some(if is_empty && is_list && read.source == Source::Kubebuilder {
            Value::Array(Vec::new())
        } else {
            value
        })
    };
    let named = fields.iter().filter_map(|field| Some((format!(".{}", field.json_name()?), value(field)?)));
    named.collect()
}
