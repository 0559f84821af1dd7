//! Policies do not stop `etch persist`, but it prints what contradicts them before it writes.

use anyhow::{Result, ensure};
use e2e::cluster::Patch;
use serde_json::{Value, json};

use crate::hand::Hand;

#[tokio::test(flavor = "multi_thread")]
async fn what_a_policy_says_against_it_is_said() -> Result<()> {
    let hand = Hand::with(&[("default", 3)]).await?;
    let plan = ["persist", "things", "--dry-run", "-o", "json"];
    let bare = hand.etch(&plan)?;
    ensure!(
        bare.code == Some(1) && !bare.err.contains("warning"),
        "without Etch's CRDs there is no policy: {bare:?}"
    );
    for crd in etch_admission::installed_crds::crds() {
        hand.cluster.apply_crd(&serde_json::to_value(crd)?).await?;
    }
    let empty = hand.etch(&plan)?;
    ensure!(!empty.err.contains("warning") && empty.first()?["warnings"].is_null(), "{empty:?}");
    for (spec, expected) in [
        (json!({ "mode": "Persist" }), None),
        (json!({ "mode": "Ignore" }), Some("DefaultsPolicy default has mode: Ignore")),
        (json!({ "mode": "Audit" }), Some("DefaultsPolicy default has mode: Audit")),
        (json!({ "paused": true }), Some("DefaultsPolicy default (paused) has paused writes")),
        (
            json!({ "selector": { "groups": ["other.io"] }, "pauseAll": true }),
            Some("no DefaultsPolicy selects it"),
        ),
        (json!({ "selector": { "exclude": ["things.*"] } }), Some("no DefaultsPolicy selects it")),
        (json!({ "ownership": "Own" }), Some("has ownership: Own")),
    ] {
        set(&hand, &spec).await?;
        let reported = hand.etch(&plan)?;
        let warnings = reported.first()?["warnings"].clone();
        let Some(expected) = expected else {
            ensure!(warnings.is_null() && !reported.err.contains("warning"), "{spec}: {reported:?}");
            continue;
        };
        ensure!(warnings[0].as_str().is_some_and(|warning| warning.contains(expected)), "{spec}: {warnings}");
        let line = reported.err.lines().find(|line| line.starts_with("warning: things.hand.example.com: "));
        ensure!(line.is_some_and(|line| line.contains(expected)), "{spec}: {reported:?}");
    }
    set(&hand, &json!({ "mode": "Ignore" })).await?;
    let written = hand.etch(&["persist", "things", "-o", "json"])?;
    ensure!(written.code == Some(0) && written.first()?["written"] == 3, "{written:?}");
    ensure!(written.err.contains("has mode: Ignore"), "{written:?}");
    Ok(())
}

async fn set(hand: &Hand, spec: &Value) -> Result<()> {
    let policy = json!({
        "apiVersion": "etch-operator.io/v1alpha1", "kind": "DefaultsPolicy",
        "metadata": { "name": "default" }, "spec": spec,
    });
    let path = "/apis/etch-operator.io/v1alpha1/defaultspolicies/default";
    hand.cluster.patch(path, Patch::Apply, "admin", &policy).await?.ok().map(drop)
}
