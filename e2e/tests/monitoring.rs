//! Documentation, alerts and dashboard are right about metrics and reasons.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Cluster, GUARD, crd, documents, eventually, with_spec};
use e2e::install::root;
use e2e::ports::free_port;
use e2e::probe::{ask, is_ok};
use e2e::scene::Scene;
use etch_core::condition::Reason;
use serde_json::{Value, json};

const GROUP: &str = "monitoring.example.com";
const SOON: Duration = GUARD;

#[tokio::test(flavor = "multi_thread")]
async fn every_metric_that_is_named_exists_and_readiness_is_earned() -> Result<()> {
    let scene = Scene::start(&[GROUP]).await?;
    let cluster = &scene.cluster;
    let (leader, waiting) = (free_port()?, free_port()?);
    let operator = scene.replica("leader", &[&format!("--listen=127.0.0.1:{leader}")])?;
    eventually(SOON, "the one at work is ready", async || Ok(is_ok(leader, "/readyz").await.then_some(())))
        .await?;
    let other = scene.replica("waiting", &[&format!("--listen=127.0.0.1:{waiting}")])?;
    eventually(SOON, "the one that waits is ready", async || {
        Ok(is_ok(waiting, "/readyz").await.then_some(()))
    })
    .await?;
    ensure!(is_ok(leader, "/livez").await && is_ok(waiting, "/livez").await, "both are alive");

    one_object_is_stored(cluster).await?;
    let scrape = ask(leader, "/metrics").await?;
    let samples: BTreeSet<&str> = scrape
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.split(['{', ' ']).next())
        .collect();
    let shown = |name: &str| {
        ["", "_bucket", "_count", "_sum"].iter().any(|end| samples.contains(format!("{name}{end}").as_str()))
    };
    let named = named_metrics()?;
    for (name, place) in &named {
        ensure!(shown(name), "{place} names {name}, which is not among {samples:?}");
    }
    // And the other way round: what is shown is documented, and explained where it is shown.
    let documented = fs::read_to_string(root().join("docs/monitoring.md"))?;
    for sample in &samples {
        let family =
            ["_bucket", "_count", "_sum"].iter().find_map(|end| sample.strip_suffix(end)).unwrap_or(sample);
        ensure!(documented.contains(&format!("`{family}`")), "docs/monitoring.md does not explain {family}");
        let name = family.trim_end_matches("_total").trim_end_matches("_info");
        ensure!(scrape.contains(&format!("# HELP {name} ")), "no HELP for {name}");
    }
    for selector in [
        "etch_crd_state{crd=\"widgets.monitoring.example.com\",reason=\"AllPersisted\"} 1",
        "etch_writes_total{outcome=\"Written\"} 1",
        "etch_leader 1",
    ] {
        ensure!(scrape.contains(selector), "{selector} is not in\n{scrape}");
    }
    let idle = ask(waiting, "/metrics").await?;
    ensure!(
        idle.contains("etch_leader 0") && !idle.contains("crd=\""),
        "who waits says nothing of CRDs: {idle}"
    );
    other.stop().await?;
    operator.stop().await?;

    // Without an API server there is nothing to be ready for.
    let alone = free_port()?;
    let mut scene = scene;
    scene.control_plane.kill_apiserver(0);
    let operator = scene.replica("alone", &[&format!("--listen=127.0.0.1:{alone}")])?;
    eventually(SOON, "it is alive", async || Ok(is_ok(alone, "/livez").await.then_some(()))).await?;
    ensure!(!is_ok(alone, "/readyz").await, "it knows nothing of its cluster");
    operator.stop().await
}

#[test]
fn every_reason_and_every_alert_has_an_entry_in_the_runbook() -> Result<()> {
    let runbook = fs::read_to_string(root().join("docs/runbook.md"))?;
    let entries: BTreeSet<&str> = runbook.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    let reasons: BTreeSet<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    assert_eq!(
        reasons.difference(&entries).collect::<Vec<_>>(),
        Vec::<&&str>::new(),
        "reasons without an entry"
    );
    let mut explained = reasons.clone();
    for alert in alerts()? {
        let name = alert["alert"].as_str().context("a name")?.to_owned();
        ensure!(entries.contains(name.as_str()), "{name} has no entry");
        let link =
            alert["annotations"]["runbook_url"].as_str().with_context(|| format!("{name} has no runbook"))?;
        let anchor = link.strip_prefix("docs/runbook.md#").context("a place in the runbook")?;
        // Its own entry, which shows how to distinguish the reasons.
        ensure!(anchor == name.to_lowercase(), "{name} leads to {link}");
        // The reasons that an alert is about are real ones.
        let expression = alert["expr"].as_str().context("an expression")?;
        let selected = expression.split("reason").skip(1).filter_map(|rest| rest.split('"').nth(1));
        for reason in selected.flat_map(|list| list.split('|')) {
            ensure!(reasons.contains(reason), "{name} is about {reason}, which is no reason");
        }
        explained.insert(Box::leak(name.into_boxed_str()));
    }
    assert_eq!(
        entries.difference(&explained).collect::<Vec<_>>(),
        Vec::<&&str>::new(),
        "entries about nothing"
    );
    Ok(())
}

/// The picture in the runbook has the states that a condition can have, and no other.
#[test]
fn every_reason_is_a_state_in_the_picture() -> Result<()> {
    let runbook = fs::read_to_string(root().join("docs/runbook.md"))?;
    let picture = runbook.split("stateDiagram-v2\n").nth(1).and_then(|rest| rest.split("```").next());
    let picture = picture.context("no picture")?;
    let states: BTreeSet<&str> = picture
        .lines()
        .filter(|line| !line.trim_start().starts_with("state "))
        .flat_map(|line| line.split(": ").next().unwrap_or_default().split("-->"))
        .map(str::trim)
        // What groups states has a name in lower case.
        .filter(|name| name.starts_with(|letter: char| letter.is_ascii_uppercase()))
        .collect();
    let reasons: BTreeSet<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    assert_eq!(states, reasons);
    Ok(())
}

/// Where one Prometheus has the metrics of several clusters, an alert is about one of them, and the dashboard
/// shows those that are chosen.
#[test]
fn alerts_and_dashboard_tell_clusters_apart() -> Result<()> {
    for alert in alerts()? {
        let expression = alert["expr"].as_str().context("an expression")?;
        for aggregate in ["sum", "max", "min", "count"] {
            let uses = expression.match_indices(aggregate).filter(|(at, word)| {
                expression[at + word.len()..].starts_with([' ', '(']) && !expression[..*at].ends_with('_')
            });
            for (at, _) in uses {
                let by_cluster = format!("{aggregate} by (cluster");
                ensure!(expression[at..].starts_with(&by_cluster), "{}: {expression}", alert["alert"]);
            }
        }
    }
    let dashboard = fs::read_to_string(root().join("config/monitoring/dashboard.json"))?;
    let dashboard: Value = serde_json::from_str(&dashboard)?;
    let panels = dashboard["panels"].as_array().context("panels")?;
    for target in panels.iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten()) {
        let expression = target["expr"].as_str().context("an expression")?;
        let selectors = expression.matches("etch_").count();
        ensure!(expression.matches("cluster=~\"$cluster\"").count() == selectors, "{expression}");
        ensure!(!expression.contains("by (crd"), "{expression} mixes CRDs of several clusters");
    }
    Ok(())
}

/// Links between the documents lead somewhere.
#[test]
fn links_in_the_documentation_lead_somewhere() -> Result<()> {
    let mut checked = 0;
    for path in texts()? {
        let text = fs::read_to_string(&path)?;
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        // Whether others' pages are there is not for a test to ask.
        for link in links.filter(|link| !link.starts_with("https://")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target =
                if file.is_empty() { path.clone() } else { path.parent().context("a folder")?.join(file) };
            ensure!(target.exists(), "{}: {link} is not there", path.display());
            if !anchor.is_empty() {
                let text = fs::read_to_string(&target)?;
                let headings = text.lines().filter(|line| line.starts_with('#'));
                ensure!(
                    headings.map(anchor_of).any(|known| known == anchor),
                    "{}: {link} leads to no heading",
                    path.display()
                );
            }
            checked += 1;
        }
    }
    ensure!(checked > 10, "only {checked} links were found");
    Ok(())
}

/// The anchor that GitHub and mdBook give to a heading: without punctuation.
fn anchor_of(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase();
    words
        .chars()
        .filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'))
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

/// The list of pages for readers and the one that mdBook reads have every page, in the same order.
#[test]
fn the_book_has_every_page() -> Result<()> {
    let listed = |name: &str| -> Result<Vec<String>> {
        let text = fs::read_to_string(root().join("docs").join(name))?;
        let lines = text.lines().filter(|line| line.starts_with("- ["));
        Ok(lines.filter_map(|line| Some(line.split(')').next()?.to_owned())).collect())
    };
    let pages = listed("README.md")?;
    assert_eq!(listed("SUMMARY.md")?, pages);
    for path in texts()?.iter().filter(|path| path.parent().is_some_and(|folder| folder.ends_with("docs"))) {
        let name = path.file_name().context("a name")?.to_string_lossy();
        let is_listed = pages.iter().any(|page| page.ends_with(&format!("]({name}")));
        ensure!(is_listed || ["README.md", "SUMMARY.md"].contains(&&*name), "{name} is in no list");
    }
    Ok(())
}

/// The alerts of config/monitoring.
fn alerts() -> Result<Vec<Value>> {
    let rules = documents(&root().join("config/monitoring/prometheus-rule.yaml"))?;
    let groups = rules[0]["spec"]["groups"].as_array().context("groups")?.clone();
    Ok(groups.iter().flat_map(|group| group["rules"].as_array().cloned().unwrap_or_default()).collect())
}

/// The README and everything in docs.
fn texts() -> Result<Vec<std::path::PathBuf>> {
    let mut found = vec![root().join("README.md")];
    for entry in fs::read_dir(root().join("docs"))? {
        found.extend(Some(entry?.path()).filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    Ok(found)
}

/// Every metric of Etch's that is named somewhere, and where.
fn named_metrics() -> Result<BTreeSet<(String, String)>> {
    let mut places = texts()?;
    for file in ["prometheus-rule.yaml", "dashboard.json"] {
        places.push(root().join("config/monitoring").join(file));
    }
    let mut found = BTreeSet::new();
    for place in places {
        let text = fs::read_to_string(&place)?;
        for (start, _) in text.match_indices("etch_") {
            let before = text[..start].chars().next_back();
            if before.is_some_and(|before| before.is_ascii_alphanumeric() || before == '_') {
                continue;
            }
            let rest = &text[start..];
            let end = rest.find(|next: char| !next.is_ascii_lowercase() && next != '_').unwrap_or(rest.len());
            found.insert((rest[..end].to_owned(), place.display().to_string()));
        }
    }
    ensure!(found.len() > 20, "only {found:?} were found");
    Ok(found)
}

async fn one_object_is_stored(cluster: &Cluster) -> Result<()> {
    cluster.apply_crd(&crd(GROUP, "Widget", &[("v1", true, with_spec(json!({})))])).await?;
    let object = json!({ "apiVersion": format!("{GROUP}/v1"), "kind": "Widget", "metadata": { "name": "one" },
                         "spec": {} });
    cluster.create(&format!("/apis/{GROUP}/v1/namespaces/default/widgets"), "user", &object).await?;
    let with = with_spec(json!({ "color": { "type": "string", "default": "green" } }));
    cluster.apply_crd(&crd(GROUP, "Widget", &[("v1", true, with)])).await?;
    cluster.persisted(&format!("widgets.{GROUP}"), "AllPersisted", SOON).await.map(drop)
}
