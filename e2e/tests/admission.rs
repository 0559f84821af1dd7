//! The EmbeddedSchemas of real providers, compared with the answers of the providers' own webhooks.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use e2e::conformance::admission::{Schemas, broken_laws, each_line, run};
use etch_core::patch::patch;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn schemas() -> Result<Schemas> {
    Schemas::read(&[root().join("yaml/machine-api")])
}

fn vectors() -> [PathBuf; 1] {
    [root().join("e2e/admission")]
}

#[test]
fn the_providers_schemas_answer_as_the_providers_webhooks() -> Result<()> {
    let mut report = Vec::new();
    let tally = run(&schemas()?, &vectors(), &mut report)?;
    let report = String::from_utf8_lossy(&report);
    ensure!(tally.failed == 0, "{report}");
    ensure!(tally.passed > 1_900, "only {} vectors were answered: {report}", tally.passed);
    Ok(())
}

#[test]
fn no_answer_breaks_a_law_of_defaulting() -> Result<()> {
    let schemas = schemas()?;
    let (mut broken, mut lines) = (Vec::new(), 0);
    each_line(&vectors(), &mut |line| {
        lines += 1;
        broken.extend(broken_laws(&schemas, &line).into_iter().map(|law| format!("{}: {law}", line.id)));
    })?;
    ensure!(lines > 2_000, "only {lines} vectors were found");
    ensure!(broken.is_empty(), "{}", broken.join("\n"));
    Ok(())
}

#[test]
fn a_patch_has_nothing_but_what_was_set() -> Result<()> {
    let schemas = schemas()?;
    let mut wrong = Vec::new();
    each_line(&vectors(), &mut |line| {
        let Some(object) = schemas.review(&line, &line.object).object else { return };
        for change in patch(&line.object, &object) {
            let change = serde_json::to_value(change).unwrap_or_default();
            let at = change["path"].as_str().unwrap_or_default().to_owned();
            let before = line.object.pointer(&at);
            let is_set = match change["op"].as_str() {
                Some("add") => before.is_none(),
                Some("replace") => before.is_some_and(|value| {
                    value.is_null() || value == "" || value == 0 || *value == serde_json::json!([])
                }),
                _ => false,
            };
            if !is_set {
                wrong.push(format!("{}: {at}", line.id));
            }
        }
    })?;
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}
