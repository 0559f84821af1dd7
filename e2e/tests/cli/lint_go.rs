//! `etch lint --go` over a package of Go types, in each of its forms.

use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::lint::CRD;
use crate::process::{etch, text};

const GO: &str = "\
package v1

type CronTabSpec struct {
\t// +kubebuilder:default=1
\tReplicas int32 `json:\"replicas\"`
\t// +kubebuilder:default=nginx
\tImage string `json:\"image,omitempty\"`
}

type CronTab struct {
\tmetav1.TypeMeta `json:\",inline\"`
\tmetav1.ObjectMeta `json:\"metadata\"`
\tSpec CronTabSpec `json:\"spec\"`
}
";

#[test]
fn go_types_are_checked_in_every_form_and_held_against_their_crd() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let package = folder.path().join("api/v1");
    fs::create_dir_all(&package)?;
    fs::write(folder.path().join("go.mod"), "module example.com/crontabs\n")?;
    let source = package.join("a type.go");
    fs::write(&source, GO)?;
    let crd = folder.path().join("crd.yaml");
    fs::write(&crd, CRD.replace("default: one", "default: 1"))?;
    let tree = folder.path().join("api/...");
    let shown = |output: &str| etch(&["lint", "-o", output, "--go", text(&tree), text(&crd)]);

    let table = shown("table")?;
    ensure!(table.code == Some(1), "{table:?}");
    let place = format!("{}:5", text(&source));
    ensure!(table.out.contains(&place) && table.out.contains("CronTabSpec.Replicas"), "{table:?}");
    ensure!(table.out.contains("1 CRD, 1 Go package: 3 warnings; 1 info not shown"), "{table:?}");

    let json = shown("json")?.json()?;
    let of_go: Vec<_> = json["findings"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|finding| finding["line"].is_u64())
        .collect();
    ensure!(of_go.len() == 2, "{json:#}");
    let expected = serde_json::json!({
        "code": "ETCH101", "rule": "go-unset-scalar", "severity": "warning", "crd": "", "version": "",
        "path": "CronTabSpec.Replicas", "file": text(&source), "line": 5,
        "package": "example.com/crontabs/api/v1",
        "message": "the default is 1, but Go clients send the zero value if they do not set the field: it \
            has no omitempty",
    });
    ensure!(*of_go[0] == expected, "{json:#}");
    let expected = serde_json::json!({
        "code": "ETCH111", "rule": "go-default-differs-from-crd", "severity": "warning",
        "crd": "crontabs.stable.example.com", "version": "v1", "path": "CronTabSpec.Image",
        "file": text(&source), "line": 7,
        "package": "example.com/crontabs/api/v1",
        "message": "the default is \"nginx\", but \"nginx:1.29\" in the CRD at .spec.image",
    });
    ensure!(*of_go[1] == expected, "{json:#}");
    let yaml: Value = serde_yaml_ng::from_str(&shown("yaml")?.out)?;
    ensure!(yaml == json, "{yaml}");

    let sarif = shown("sarif")?.json()?;
    let results = sarif["runs"][0]["results"].as_array().context("results")?;
    let result = results.iter().find(|result| result["ruleId"] == "ETCH101").context("ETCH101")?;
    let index =
        result["ruleIndex"].as_u64().and_then(|index| usize::try_from(index).ok()).context("an index")?;
    ensure!(sarif["runs"][0]["tool"]["driver"]["rules"][index]["id"] == "ETCH101", "{result}");
    let place = &result["locations"][0]["physicalLocation"];
    ensure!(place["region"]["startLine"] == 5, "{result}");
    let uri = place["artifactLocation"]["uri"].as_str().unwrap_or_default();
    ensure!(uri.ends_with("/api/v1/a%20type.go"), "{uri}");

    let github = shown("github")?.out;
    ensure!(github.contains("a type.go,line=5,title=ETCH101 go-unset-scalar::"), "{github}");

    let alone = etch(&["lint", "--allow", "go-unset-scalar", "--go", text(&tree)])?;
    ensure!(alone.code == Some(0) && alone.out == "1 Go package: nothing found\n", "{alone:?}");
    Ok(())
}

#[test]
fn what_fills_a_screen_is_summed_up_in_tables_only() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let fields: String =
        (0..40).map(|index| format!("\tF{index} Inner `json:\"f{index},omitempty\"`\n")).collect();
    let misfits: String = (0..7)
        .map(|index| format!("\t// +kubebuilder:default=a\n\tM{index} int `json:\"m{index},omitempty\"`\n"))
        .collect();
    let source = folder.path().join("types.go");
    fs::write(
        &source,
        format!("package v1\n\ntype Inner struct{{}}\n\ntype Outer struct {{\n{fields}{misfits}}}\n"),
    )?;
    let table = etch(&["lint", "--go", text(folder.path())])?;
    ensure!(
        table.out.matches("ETCH102").count() == 1 && table.out.matches("ETCH107").count() == 7,
        "{table:?}"
    );
    let parts = ["types.go:6", "Outer.F0, Outer.F1, Outer.F2 and 37 others", "-o json lists all 40"];
    ensure!(parts.iter().all(|part| table.out.contains(part)), "{table:?}");
    ensure!(table.out.contains("1 Go package: 7 errors, 40 warnings"), "{table:?}");
    let json = etch(&["lint", "-o", "json", "--go", text(folder.path())])?.json()?;
    ensure!(json["findings"].as_array().is_some_and(|findings| findings.len() == 47), "{json}");
    Ok(())
}
