//! Inputs after public reports, in `cases`: `source.txt` names the report, and `expected.txt` has the answer
//! of a real API server. Etch reads them as kubectl does, and finds what the server refuses or warns of.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::process::{etch, file, text};

/// A case, the exit status of `etch lint`, and each what it must print.
const CASES: [(&str, i32, &[&str]); 18] = [
    ("allof-cel", 1, &["ETCH015", "must be undefined to be structural", "must be empty to be structural"]),
    ("bool-keys", 1, &["ETCH015", "the server cannot decode it"]),
    (
        "case-keys",
        1,
        &["ETCH401", "unknown field \"Default\"", "unknown field \"Type\"", "unknown field \"DEFAULT\""],
    ),
    ("doc-markers", 1, &["3 CRDs", "multias.bugs.test", "multibs.bugs.test"]),
    ("dup-description", 1, &["ETCH406", "properties.a.default", "properties.a.description"]),
    ("dup-rules-ssa", 1, &["ETCH402", "duplicate entries for key"]),
    ("helm-template", 2, &["line 1", "is a Helm template", "helm template CHART | etch lint -"]),
    (
        "int-formats",
        1,
        &[
            "ETCH404",
            "unrecognized format \"hostname2\"",
            "unrecognized format \"uint8\"",
            "unrecognized format \"int-or-string\"",
        ],
    ),
    ("json-crd", 1, &["ETCH406", "ETCH002", "must be of type integer"]),
    ("key-11", 0, &["1 CRD: nothing found"]),
    ("scalar-binary", 0, &["1 CRD: nothing found"]),
    (
        "set-of-atomic-maps",
        1,
        &["ETCH405", "x-kubernetes-list-type: set for items of type \"object\" is not supported"],
    ),
    (
        "unknown-below-items",
        1,
        &[
            "items.defualt",
            "additionalProperties.propertyNames",
            "the API server drops it here and reports nothing",
            "1 CRD: 2 errors\n",
        ],
    ),
    ("unknown-field", 1, &["ETCH401", "unknown field \"defualt\"", "did you mean default?"]),
    ("utf16", 1, &["ETCH002", "should be greater than or equal to 1"]),
    ("yaml-anchors", 0, &["1 CRD: nothing found"]),
    ("yaml-bools", 1, &["ETCH002", "must be of type string"]),
    ("kustomize-patches", 1, &["1 CRD", "note: skipped: ", "a part of the CRD listmapdups.bugs.test"]),
];

#[test]
fn cases_are_answered_as_kubectl_and_the_server_do() -> Result<()> {
    let mut wrong = Vec::new();
    for (name, code, parts) in CASES {
        let folder = file("tests/cli/cases").join(name);
        let input = if name == "kustomize-patches" { folder.join("config") } else { folder.join("crd.yaml") };
        let ended = etch(&["lint", text(&input)])?;
        let all = format!("{}{}", ended.out, ended.err);
        let missing: Vec<_> = parts.iter().filter(|part| !all.contains(**part)).collect();
        // Keys with defaults of a list are a matter of style, which the kustomize case happens to have.
        let is_ended = ended.code == Some(code) || name == "kustomize-patches" && ended.code == Some(0);
        if !is_ended || !missing.is_empty() {
            wrong.push(format!("{name}: exit {:?}, without {missing:?}:\n{all}", ended.code));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn what_is_for_kustomize_is_skipped_by_every_command_that_reads_crds() -> Result<()> {
    let config = file("tests/cli/cases/kustomize-patches/config");
    let patches = config.join("crd/patches");
    let objects = tempfile::tempdir()?;
    let write = |name: &str, content: &str| fs::write(objects.path().join(name), content);
    write(
        "a.yaml",
        "apiVersion: bugs.test/v1\nkind: ListMapDup\nmetadata: {name: a}\nspec: {ports: [{port: 1}]}\n",
    )?;
    write("kustomization.yaml", "resources: [a.yaml]\n")?;
    write("patch.yaml", "- {op: add, path: /spec/a, value: 1}\n")?;
    let (config, patches, objects) = (text(&config), text(&patches), text(objects.path()));
    let commands: [(&[&str], usize, &str); 6] = [
        (&["fill", "--crd", config, objects], 3, "protocol: TCP"),
        (&["rbac", config], 1, "listmapdups"),
        (&["impact", "-f", config, "--old", config], 2, "listmapdups.bugs.test"),
        (&["impact", "-f", config, "--old", config, "--objects", objects], 2, "listmapdups.bugs.test"),
        (&["plan", "-f", config, "--old", config], 2, "listmapdups.bugs.test"),
        (&["lint", "--old", config, config], 2, "1 CRD"),
    ];
    for (command, notes, shown) in commands {
        let ended = etch(command)?;
        let of = |line: &&str| line.starts_with("note: skipped: ");
        ensure!(ended.err.lines().filter(of).count() == notes, "{command:?}: {ended:?}");
        ensure!(ended.err.contains("a part of the CRD listmapdups.bugs.test"), "{command:?}: {ended:?}");
        ensure!(ended.code.is_some_and(|code| code < 2), "{command:?}: {ended:?}");
        ensure!(ended.out.contains(shown), "{command:?}: {ended:?}");
    }
    let commands: [&[&str]; 4] = [
        &["fill", "--crd", patches, objects],
        &["rbac", patches],
        &["impact", "-f", patches, "--old", config],
        &["lint", patches],
    ];
    for command in commands {
        let ended = etch(command)?;
        let found = "contains no CustomResourceDefinition: found a part of a CustomResourceDefinition";
        ensure!(ended.code == Some(2) && ended.err.contains(found), "{command:?}: {ended:?}");
    }
    Ok(())
}

/// A case of Go types: the findings as fields and their codes.
const GO_CASES: [(&str, &[&str]); 6] = [
    (
        "go-types",
        &[
            "Item.Name ETCH113",
            "Level ETCH112",
            "Spec.Args ETCH107",
            "Spec.Items ETCH105",
            "Spec.Level ETCH113",
        ],
    ),
    ("go-103-advice", &["Deep.Replicas ETCH101"]),
    ("go-buildtags", &[]),
    (
        "go-duration",
        &["Spec.Period ETCH101", "Spec.Plain ETCH101", "Spec.Size ETCH101", "Spec.Surge ETCH101"],
    ),
    (
        "go-hex",
        &[
            "Spec.AB ETCH106",
            "Spec.J ETCH106",
            "Spec.K ETCH106",
            "Spec.O ETCH107",
            "Spec.S ETCH112",
            "Spec.U ETCH112",
            "Spec.V ETCH112",
            "Spec.W ETCH112",
            "Spec.X ETCH112",
            "Spec.Z ETCH108",
        ],
    ),
    (
        "go-odd",
        &[
            "Box.Size ETCH101",
            "Consts.Broken ETCH106",
            "Consts.BrokenBrace ETCH106",
            "Consts.BrokenKb ETCH106",
            "Consts.Missing ETCH106",
            "Consts.Nothing ETCH106",
            "Consts.Nothing2 ETCH106",
            "Consts.Wrong ETCH107",
            "MapAlias ETCH112",
            "Outer.Inner ETCH102",
            "Outer.Inner ETCH103",
            "Outer.Inner.Y ETCH107",
            "Rec.Next ETCH107",
            "Rec.V ETCH101",
            "UsesAlias.N ETCH107",
            "UsesGenerics.Arr ETCH101",
            "UsesGenerics.Arr ETCH107",
            "UsesGenerics.B ETCH102",
            "UsesGenerics.B ETCH104",
        ],
    ),
];

#[test]
fn go_types_are_read_as_controller_gen_and_go_read_them() -> Result<()> {
    let mut wrong = Vec::new();
    for (name, expected) in GO_CASES {
        let folder = file("tests/cli/cases").join(name).join("v1");
        let ended = etch(&["lint", "-o", "json", "--go", text(&folder)])?;
        let json = ended.json()?;
        let findings = json["findings"].as_array().context("findings")?;
        let mut found: Vec<String> = findings
            .iter()
            .map(|finding| {
                let part = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
                format!("{} {}", part("path"), part("code"))
            })
            .collect();
        found.sort();
        if found != expected || ended.code != Some(i32::from(!expected.is_empty())) {
            wrong.push(format!("{name}: exit {:?}, {found:#?}", ended.code));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn objects_get_the_defaults_that_the_server_gives_them() -> Result<()> {
    for (name, expected) in [("key-11", r#"".inf": 1"#), ("scalar-binary", r#""a": "hello""#)] {
        let folder = file("tests/cli/cases").join(name);
        let (crd, object) = (folder.join("crd.yaml"), folder.join("object.yaml"));
        let ended = etch(&["fill", "--crd", text(&crd), text(&object), "-o", "json"])?;
        ensure!(ended.out.contains(expected), "{name}: {ended:?}");
    }
    Ok(())
}

#[test]
fn an_upgrade_is_compared_and_exceptions_are_accepted() -> Result<()> {
    let folder = file("tests/cli/cases/pattern-added");
    let (old, new) = (folder.join("old.yaml"), folder.join("crd.yaml"));
    let arguments = ["lint", "--old", text(&old), text(&new), "--severity", "error"];
    let ended = etch(&arguments)?;
    ensure!(ended.code == Some(1), "{ended:?}");
    for code in ["ETCH302", "ETCH305", "ETCH306"] {
        ensure!(
            ended.out.contains(code) && ended.out.contains(".status.conditions[].reason"),
            "{code}: {ended:?}"
        );
    }
    let directory = tempfile::tempdir()?;
    let exceptions = directory.path().join("exceptions.yaml");
    let all: Vec<_> = ["ETCH302", "length-narrowed", "ETCH306", "ETCH301"]
        .iter()
        .map(|code| {
            format!(
                "- {{code: {code}, path: \".status.conditions[].reason\", reason: no reason was \
            ever empty}}\n"
            )
        })
        .collect();
    std::fs::write(&exceptions, format!("exceptions:\n{}", all.concat()))?;
    let arguments: Vec<_> = arguments.into_iter().chain(["--exceptions", text(&exceptions)]).collect();
    let ended = etch(&arguments)?;
    ensure!(ended.code == Some(0) && ended.out.contains("3 findings accepted"), "{ended:?}");
    ensure!(ended.err.contains("no finding needs the exception ETCH301"), "{ended:?}");
    let json = etch(&arguments.into_iter().chain(["-o", "json"]).collect::<Vec<_>>())?.json()?;
    let findings = json["findings"].as_array().context("findings")?;
    ensure!(findings.iter().all(|finding| finding["accepted"] == "no reason was ever empty"), "{json}");
    Ok(())
}
