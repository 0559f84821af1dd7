//! Each alert fires on what it should and is silent on what it should not, as Prometheus itself judges.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use e2e::cluster::documents;
use e2e::install::{promtool_test_rules, root};
use serde_json::{Value, json};

#[test]
fn alerts_fire_on_what_they_should_and_any_change_of_one_is_noticed() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let rules = rules()?;
    let (passed, said) = promtool_test_rules([beside(dir.path(), &rules)?.as_path()])?;
    ensure!(passed, "{said}");

    // An alert that never fires, one that always does, and one that does not wait.
    let changes = [("expr", json!("vector(0) > 0")), ("expr", json!("vector(1)")), ("for", json!("0s"))];
    let mut tests = Vec::new();
    for (group, rule) in places(&rules)? {
        for (field, instead) in &changes {
            let mut changed = rules.clone();
            let rule = &mut changed["groups"][group]["rules"][rule];
            if rule[field].is_string() {
                rule[field] = instead.clone();
                let folder = dir.path().join(tests.len().to_string());
                fs::create_dir(&folder)?;
                tests.push(beside(&folder, &changed)?);
            }
        }
    }
    let (_, said) = promtool_test_rules(tests.iter().map(PathBuf::as_path))?;
    assert_eq!(said.matches("FAILED:").count(), tests.len(), "{said}");
    assert!(!said.contains("SUCCESS"), "{said}");
    Ok(())
}

#[test]
fn each_alert_is_seen_to_fire_and_to_be_silent() -> Result<()> {
    let rules = rules()?;
    let names =
        places(&rules)?.into_iter().map(|(group, rule)| &rules["groups"][group]["rules"][rule]["alert"]);
    let names: BTreeSet<&str> = names.filter_map(Value::as_str).collect();
    let tests = documents(&config().join("alerts.test.yaml"))?;
    let tests = tests[0]["tests"].as_array().context("tests")?;
    let looks = tests.iter().flat_map(|test| test["alert_rule_test"].as_array().into_iter().flatten());
    let (fires, silent): (Vec<_>, Vec<_>) = looks.partition(|look| look["exp_alerts"].is_array());
    for (what, looks) in [("fire", fires), ("be silent", silent)] {
        let seen: BTreeSet<&str> = looks.iter().filter_map(|look| look["alertname"].as_str()).collect();
        assert_eq!(seen, names, "seen to {what}");
    }
    Ok(())
}

/// Writes rules and the tests of the alerts into a folder; the tests' path.
fn beside(folder: &Path, rules: &Value) -> Result<PathBuf> {
    fs::write(folder.join("alerts.yaml"), serde_json::to_string(rules)?)?;
    let tests = folder.join("alerts.test.yaml");
    fs::copy(config().join("alerts.test.yaml"), &tests)?;
    Ok(tests)
}

/// What the Prometheus operator takes out of the PrometheusRule.
fn rules() -> Result<Value> {
    Ok(documents(&config().join("prometheus-rule.yaml"))?[0]["spec"].clone())
}

/// Where the alerts are: the number of the group and that of the rule in it.
fn places(rules: &Value) -> Result<Vec<(usize, usize)>> {
    let groups = rules["groups"].as_array().context("groups")?.iter().enumerate();
    let rules = |group: &Value| group["rules"].as_array().map_or(0, Vec::len);
    let places: Vec<_> =
        groups.flat_map(|(index, group)| (0..rules(group)).map(move |rule| (index, rule))).collect();
    ensure!(!places.is_empty(), "there are no alerts");
    Ok(places)
}

fn config() -> PathBuf {
    root().join("config/monitoring")
}
