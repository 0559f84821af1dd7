//! Defaults that are valid by themselves and not in the objects that get them: how the API server answers to
//! each CRD and its objects, what `etch lint` reports of the CRD, and `etch impact` of the objects.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Cluster, documents};
use e2e::control_plane::{ControlPlane, Options};
use e2e::process::{self, Ended};
use serde::Deserialize;
use serde_json::Value;

/// What is expected of a folder of `cases`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    /// The report or the class that it is after.
    source: String,
    /// Findings, by code and place.
    lint: Vec<String>,
    /// Objects that the server refuses, and a part of its message.
    refused: BTreeMap<String, String>,
    /// Objects that it creates.
    #[serde(default)]
    created: Vec<String>,
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_server_refuses_is_found_before() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let control_plane = ControlPlane::start(Options::new(dir.path().join("cluster"))).await?;
    let cluster = Cluster::of(&control_plane).await?;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/live/cases");
    let mut cases = 0;
    for entry in std::fs::read_dir(&folder)? {
        let case = entry?.path();
        let expected = std::fs::read_to_string(case.join("expected.yaml"))?;
        let expected: Expected = serde_yaml_ng::from_str(&expected)?;
        let about = format!("{}: {}", case.display(), expected.source);
        check(&cluster, &case, &expected).await.with_context(|| about)?;
        cases += 1;
    }
    ensure!(cases == 9, "{cases} cases");
    Ok(())
}

async fn check(cluster: &Cluster, case: &Path, expected: &Expected) -> Result<()> {
    let file = case.join("crd.yaml");
    let crd = documents(&file)?.remove(0);
    cluster.apply_crd(&crd).await.context("the server refuses the CRD")?;
    let found = etch(&["lint", "-o", "json", text(&file)?])?.json()?;
    let findings = found["findings"].as_array().or(found.as_array()).context("findings")?;
    for wanted in &expected.lint {
        let is_it = |finding: &Value| {
            let part = |name: &str| finding[name].as_str().unwrap_or_default();
            format!("{} {}", part("code"), part("path")) == *wanted
        };
        ensure!(findings.iter().any(is_it), "{wanted} is missing: {found:#}");
    }
    for (object, refusal) in &expected.refused {
        let (code, wording) = create(cluster, &crd, &case.join(object)).await?;
        ensure!(code == 422 && wording.contains(refusal.as_str()), "{object}: {code} {wording}");
        ensure!(
            !problems(&file, &case.join(object))?.is_empty(),
            "{object} is invalid, and Etch does not say so"
        );
    }
    for object in &expected.created {
        let (code, wording) = create(cluster, &crd, &case.join(object)).await?;
        ensure!(code == 201, "{object}: {code} {wording}");
        let problems = problems(&file, &case.join(object))?;
        ensure!(problems.is_empty(), "{object}: {problems:?}");
    }
    Ok(())
}

/// Creates an object; what the server answers.
async fn create(cluster: &Cluster, crd: &Value, file: &Path) -> Result<(u16, String)> {
    let object = documents(file)?.remove(0);
    let (group, plural) = (&crd["spec"]["group"], &crd["spec"]["names"]["plural"]);
    let (group, plural) = (group.as_str().context("a group")?, plural.as_str().context("a plural")?);
    let path = format!("/apis/{group}/v1/namespaces/default/{plural}");
    let answer = cluster.send("POST", &path, "application/json", serde_json::to_vec(&object)?).await?;
    let wording = answer.body["message"].as_str().unwrap_or_default().to_owned();
    Ok((answer.code, wording))
}

/// What is wrong with an object by the CRD, as `etch impact` reports it for a CRD that does not change.
fn problems(crd: &Path, object: &Path) -> Result<Vec<Value>> {
    let crd = text(crd)?;
    let reported = etch(&["impact", "--old", crd, "-f", crd, "--objects", text(object)?, "-o", "json"])?;
    let details = reported.first()?["details"].as_array().cloned().unwrap_or_default();
    Ok(details.iter().flat_map(|detail| detail["problems"].as_array().cloned().unwrap_or_default()).collect())
}

fn etch(arguments: &[&str]) -> Result<Ended> {
    process::etch(Path::new("/nonexistent"), arguments)
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path")
}
