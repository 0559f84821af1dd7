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
    let (passed, wording) = promtool_test_rules([beside(dir.path(), &rules, &tests()?)?.as_path()])?;
    ensure!(passed, "{wording}");

    // An alert that never fires, one that always does, and one that does not wait.
    let changes = [("expr", json!("vector(0) > 0")), ("expr", json!("vector(1)")), ("for", json!("0s"))];
    let mut files = Vec::new();
    for alert in alerts(&rules)? {
        for (field, instead) in &changes {
            if alert[field].is_string() {
                let folder = dir.path().join(files.len().to_string());
                fs::create_dir(&folder)?;
                let mut changed = alert.clone();
                changed[field] = instead.clone();
                // Nothing but that alert and what is looked for of it: Prometheus evaluates each rule for
                // each minute.
                let alone = json!({"groups": [{"name": "changed", "rules": [changed]}]});
                files.push(beside(&folder, &alone, &only(tests()?, &alert["alert"])?)?);
            }
        }
    }
    let (_, wording) = promtool_test_rules(files.iter().map(PathBuf::as_path))?;
    assert_eq!(wording.matches("FAILED:").count(), files.len(), "{wording}");
    assert!(!wording.contains("SUCCESS"), "{wording}");
    Ok(())
}

#[test]
fn each_alert_is_seen_to_fire_and_to_be_silent() -> Result<()> {
    let alerts = alerts(&rules()?)?;
    let names: BTreeSet<&str> = alerts.iter().filter_map(|alert| alert["alert"].as_str()).collect();
    let tests = tests()?;
    let tests = tests["tests"].as_array().context("tests")?;
    let looks = tests.iter().flat_map(|test| test["alert_rule_test"].as_array().into_iter().flatten());
    let (fires, silent): (Vec<_>, Vec<_>) = looks.partition(|look| look["exp_alerts"].is_array());
    for (what, looks) in [("fire", fires), ("be silent", silent)] {
        let seen: BTreeSet<&str> = looks.iter().filter_map(|look| look["alertname"].as_str()).collect();
        assert_eq!(seen, names, "seen to {what}");
    }
    Ok(())
}

/// Writes rules and tests of them into a folder; the path of the tests.
fn beside(folder: &Path, rules: &Value, tests: &Value) -> Result<PathBuf> {
    fs::write(folder.join("alerts.yaml"), serde_json::to_string(rules)?)?;
    let path = folder.join("alerts.test.yaml");
    fs::write(&path, serde_json::to_string(tests)?)?;
    Ok(path)
}

/// The part of the tests about one alert.
fn only(mut tests: Value, alert: &Value) -> Result<Value> {
    let all = tests["tests"].as_array_mut().context("tests")?;
    for test in &mut *all {
        let looks = test["alert_rule_test"].as_array_mut().context("alert_rule_test")?;
        looks.retain(|look| look["alertname"] == *alert);
    }
    all.retain(|test| test["alert_rule_test"] != json!([]));
    Ok(tests)
}

/// What the Prometheus operator takes out of the PrometheusRule.
fn rules() -> Result<Value> {
    Ok(documents(&config().join("prometheus-rule.yaml"))?[0]["spec"].clone())
}

fn tests() -> Result<Value> {
    Ok(documents(&config().join("alerts.test.yaml"))?[0].clone())
}

fn alerts(rules: &Value) -> Result<Vec<Value>> {
    let groups = rules["groups"].as_array().context("groups")?;
    let alerts: Vec<_> =
        groups.iter().flat_map(|group| group["rules"].as_array().cloned().unwrap_or_default()).collect();
    ensure!(!alerts.is_empty(), "there are no alerts");
    Ok(alerts)
}

fn config() -> PathBuf {
    root().join("config/monitoring")
}
