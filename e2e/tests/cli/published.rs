//! What API servers publish of their types: `etch explain`, `lint` and `impact` with `--openapi`.

use std::fs;

use anyhow::{Context, Result, ensure};
use e2e::control_plane::Kubernetes;
use e2e::releases::{Release, folder, kinds, rows};
use serde_json::{Value, json};

use crate::process::{Ended, etch, file, limited, text};

fn explain(document: &str, typed: &str, more: &[&str]) -> Result<Ended> {
    let path = file(document);
    etch(&[&["explain", "--openapi", text(&path), typed], more].concat())
}

#[test]
fn a_built_in_type_is_explained_as_kubectl_names_it() -> Result<()> {
    for typed in ["services", "Service", "service.v1", "service.spec", "service.spec.ports.protocol"] {
        let ended = explain("openapi/core-v1.json", typed, &[])?;
        let table = "\
PATH                     DEFAULT   APPLIES                   DECLARED BY
.spec.ports[].protocol   \"TCP\"     if .spec.ports is given   ServicePort
";
        let is_so = ended.code == Some(0) && ended.err.is_empty();
        ensure!(is_so && ended.out.starts_with(table), "{typed}: {ended:?}");
    }
    let shown = explain("openapi/core-v1.json", "service.spec.ports", &["-o", "json"])?.json()?;
    ensure!(shown["kind"] == "Service" && shown["apiVersion"] == "v1" && shown["place"] == ".spec.ports");
    let protocol = json!({
        "path": ".spec.ports[].protocol", "default": "TCP", "ifGiven": ".spec.ports", "nullsOnly": false,
        "definition": "io.k8s.api.core.v1.ServicePort",
    });
    ensure!(shown["defaults"].as_array().is_some_and(|all| all.contains(&protocol)), "{shown}");
    Ok(())
}

#[test]
fn a_type_that_contains_itself_is_explained() -> Result<()> {
    let ended = explain("openapi/apiextensions-v1.json", "crd", &[])?;
    ensure!(ended.code == Some(2) && ended.err.contains("CustomResourceDefinition of"), "{ended:?}");
    let ended = explain("openapi/apiextensions-v1.json", "CustomResourceDefinition", &[])?;
    ensure!(ended.code == Some(0) && ended.out.contains("zero value"), "{ended:?}");
    Ok(())
}

#[test]
fn what_cannot_be_explained_is_told() -> Result<()> {
    for (typed, says) in [
        ("secrets", "no document contains a type \"secrets\"; they contain"),
        ("service.spec.port", "Service of v1 has no field .spec.port"),
        ("service/web", "--openapi explains types: give service without a name"),
    ] {
        let ended = explain("openapi/core-v1.json", typed, &[])?;
        ensure!(
            ended.code == Some(2) && ended.err.contains(says) && ended.out.is_empty(),
            "{typed}: {ended:?}"
        );
    }
    Ok(())
}

/// Of what Kubernetes publishes of itself nothing is a mistake of the rules.
#[test]
fn all_types_of_kubernetes_are_checked() -> Result<()> {
    let release = folder().join("v1.37.json");
    let ended = etch(&["lint", "--openapi", text(&release), "-o", "json"])?;
    ensure!(ended.code == Some(1) && ended.err.is_empty(), "{ended:?}");
    let found = ended.json()?;
    let mut codes: Vec<(String, String)> = Vec::new();
    for finding in found["findings"].as_array().context("findings")? {
        let text = |field: &str| finding[field].as_str().unwrap_or_default().to_owned();
        if text("severity") != "info" {
            codes.push((text("code"), format!("{} {}", text("crd"), text("path"))));
        }
    }
    // Keys of lists that may be missing are the only mistake in them.
    let places =
        ["ResourceClaim.resource.k8s.io .status.devices[].shareID", "ServiceAccount .secrets[].name"];
    let is_known = |(code, place): &(String, String)| code == "ETCH017" && places.contains(&place.as_str());
    ensure!(codes.iter().all(is_known), "{codes:?}");
    ensure!(places.iter().all(|place| codes.iter().any(|(_, found)| found == place)), "{codes:?}");
    let table = etch(&["lint", "--openapi", text(&release)])?;
    ensure!(table.out.contains(" types: ") && table.out.contains("KIND"), "{table:?}");
    Ok(())
}

/// Places of such a type would fill the memory.
#[test]
fn a_type_that_is_nested_too_deeply_is_refused() -> Result<()> {
    let (opened, closed) = (r#"{"type":"object","default":{},"properties":{"a":"#, "}}");
    let nested = format!("{}{{}}{}", opened.repeat(400), closed.repeat(400));
    let kind = json!([{"group": "g", "version": "v1", "kind": "A"}]);
    let schema = format!(
        r#"{{"properties":{{"metadata":{{}},"spec":{nested}}},"x-kubernetes-group-version-kind":{kind}}}"#
    );
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("nested.json");
    fs::write(&path, format!(r#"{{"openapi":"3.0.0","components":{{"schemas":{{"g.A":{schema}}}}}}}"#))?;
    for command in [&["explain", "--openapi", text(&path), "a"][..], &["lint", "--openapi", text(&path)]] {
        let ended = limited(command, b"")?;
        let says = "A of g/v1: it has too many fields, or is nested too deeply";
        ensure!(ended.code == Some(2) && ended.err.contains(says), "{command:?}: {ended:?}");
    }
    let same = limited(&["impact", "--openapi", text(&path), "--openapi", text(&path)], b"")?;
    ensure!(same.code == Some(0), "{same:?}");
    Ok(())
}

#[test]
fn a_folder_of_documents_without_types_is_none() -> Result<()> {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("version_openapi.json"), r#"{"openapi": "3.0.0", "paths": {}}"#)?;
    let ended = etch(&["lint", "--openapi", text(folder.path())])?;
    ensure!(
        ended.code == Some(2) && ended.err.contains("it contains no OpenAPI v3 document with types"),
        "{ended:?}"
    );
    // Answers and lists are types, and none of objects.
    let kind = json!([{"group": "", "version": "v1", "kind": "APIGroup"}]);
    let group = json!({"properties": {"name": {"type": "string"}}, "x-kubernetes-group-version-kind": kind});
    let document = json!({"openapi": "3.0.0", "components": {"schemas": {"APIGroup": group}}});
    let path = folder.path().join("apis_openapi.json");
    fs::write(&path, document.to_string())?;
    let ended = etch(&["lint", "--openapi", text(&path)])?;
    ensure!(
        ended.code == Some(2) && ended.out.is_empty() && ended.err.contains("contains no type of an object"),
        "{ended:?}"
    );
    fs::copy(file("openapi/core-v1.json"), folder.path().join("api__v1_openapi.json"))?;
    let ended = etch(&["lint", "--openapi", text(folder.path())])?;
    ensure!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    let ended = etch(&["explain", "--openapi", text(folder.path()), "pods"])?;
    ensure!(ended.code == Some(0), "{ended:?}");
    Ok(())
}

fn impact(old: &str, new: &str, more: &[&str]) -> Result<Ended> {
    let (old, new) = (folder().join(format!("v{old}.json")), folder().join(format!("v{new}.json")));
    etch(&[&["impact", "--openapi", text(&old), "--openapi", text(&new)], more].concat())
}

#[test]
fn the_tables_of_the_documentation_are_what_impact_answers() -> Result<()> {
    let page = fs::read_to_string(file("../docs/published-defaults.md"))?;
    let releases: Vec<String> = Kubernetes::supported()?.iter().map(ToString::to_string).collect();
    let mut wrong = Vec::new();
    for step in releases.windows(2) {
        let heading = format!("## {} to {}\n", step[0], step[1]);
        let (_, section) = page.split_once(&heading).with_context(|| heading.clone())?;
        let section = section.split("\n## ").next().unwrap_or_default();
        let answer = impact(&step[0], &step[1], &["-o", "json"])?.json()?;
        let expected: Vec<String> = rows(&answer).into_iter().chain(kinds(&answer)).collect();
        let is_head = |line: &&str| line.starts_with("| API version") || line.starts_with("|---");
        let found: Vec<&str> =
            section.lines().filter(|line| line.starts_with('|') && !is_head(line)).collect();
        if found != expected {
            wrong.push(format!("{heading}{}", expected.join("\n")));
        }
        let minor = e2e::releases::minor(&answer);
        if !section.contains(&format!("{minor} more defaults")) {
            wrong.push(format!("{heading}{minor} more defaults"));
        }
    }
    ensure!(wrong.is_empty(), "docs/published-defaults.md should have:\n{}", wrong.join("\n\n"));
    Ok(())
}

#[test]
fn the_newest_release_is_what_its_module_has() -> Result<()> {
    let newest = Kubernetes::supported()?.pop().context("a release")?;
    let release = Release::of(&newest)?;
    let kept = fs::read_to_string(release.path())?;
    ensure!(kept == release.document, "run `just openapi-releases` and commit the result");
    Ok(())
}

#[test]
fn two_releases_are_compared_for_people_and_for_scripts() -> Result<()> {
    let table = impact("1.36", "1.37", &[])?;
    ensure!(table.code == Some(1) && table.err.is_empty(), "{table:?}");
    for line in [
        "storage.k8s.io/v1\n",
        "CSINode.status",
        "PodCertificateRequestSpec.maxExpirationSeconds",
        "Kinds removed: PodGroup, Workload\n",
        "-o json has them.\n",
    ] {
        ensure!(table.out.contains(line), "{line}: {table:?}");
    }
    ensure!(impact("1.36", "1.36", &[])?.out == "Nothing changes.\n");
    for (old, new, fail_on, expected) in
        [("1.36", "1.36", "any", 0), ("1.35", "1.36", "any", 1), ("1.36", "1.37", "losses", 1)]
    {
        let ended = impact(old, new, &["--fail-on", fail_on, "-o", "yaml"])?;
        ensure!(ended.code == Some(expected), "{old} {new} {fail_on}: {ended:?}");
    }
    let answer = impact("1.36", "1.37", &["-o", "json"])?.json()?;
    let all = answer["apiVersions"].as_array().context("API versions")?;
    let core = all.iter().find(|group| group["apiVersion"] == "v1").context("v1")?;
    let is_nulls = |removed: &&Value| removed["nullsOnly"] == true && removed["minor"] == true;
    ensure!(core["defaultsRemoved"].as_array().is_some_and(|all| all.iter().filter(is_nulls).count() > 100));
    let release = folder().join("v1.36.json");
    let thrice = [["--openapi", text(&release)]; 3].concat();
    let thrice = etch(&[&["impact"][..], &thrice].concat())?;
    ensure!(thrice.code == Some(2) && thrice.err.contains("give it twice"), "{thrice:?}");
    Ok(())
}
