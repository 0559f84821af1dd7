//! Steps about the conversion webhook: whether it comes before the CRD or after it.

use serde_json::Value;

use etch_core::shell::quoted;

use super::known::{Upgrade, Words};
use super::step::{StepKind, UpgradePlan};

pub(super) fn add(upgrade: &Upgrade<'_>, plan: &mut UpgradePlan) {
    let (before, after) = (upgrade.old.and_then(|(old, _)| webhook(old)), webhook(upgrade.new.0));
    let cluster = &upgrade.words.cluster;
    if let Some(after) = after {
        let old = upgrade.old.map(|(old, _)| old);
        let is_known = |name: &str| old.is_some_and(|old| versions(old).any(|other| other == name));
        let added: Vec<&str> = versions(upgrade.new.0).filter(|name| !is_known(name)).collect();
        // A cluster fills in and injects fields of its own, so only the address counts.
        let is_moved = before.is_none_or(|before| target(before) != target(after));
        if is_moved || !added.is_empty() {
            let versions = if added.is_empty() { versions(upgrade.new.0).collect() } else { added };
            let what = format!(
                "Deploy the conversion webhook before the CRD, and wait until it is ready: it must convert \
                 {}",
                versions.join(", ")
            );
            let why =
                vec!["without it the API server fails every request that needs a conversion".to_owned()];
            plan.before(StepKind::Webhook, what, why, ready(after, cluster));
            plan.unknown.push("whether the conversion webhook converts every object without loss".to_owned());
        }
    } else if before.is_some() {
        let what =
            "Remove the conversion webhook after the CRD, and not before: until then the API server asks it";
        let Words { cluster, .. } = upgrade.words;
        let name = upgrade.word();
        let command =
            format!("kubectl get crd {name}{cluster} --output jsonpath='{{.spec.conversion.strategy}}'");
        let why = vec!["the command prints None once no server asks the webhook".to_owned()];
        plan.after(StepKind::Webhook, what, why, Some(command));
    }
}

fn webhook(crd: &Value) -> Option<&Value> {
    let conversion = &crd["spec"]["conversion"];
    (conversion["strategy"] == "Webhook").then(|| &conversion["webhook"])
}

/// Where requests are sent to.
fn target(webhook: &Value) -> [&Value; 4] {
    let client = &webhook["clientConfig"];
    [&client["url"], &client["service"]["namespace"], &client["service"]["name"], &client["service"]["path"]]
}

/// What shows that the webhook's service has endpoints; `None` if it is reached by a URL.
fn ready(webhook: &Value, cluster: &str) -> Option<String> {
    let service = &webhook["clientConfig"]["service"];
    let (namespace, name) = (service["namespace"].as_str()?, service["name"].as_str()?);
    let (namespace, selector) = (quoted(namespace), quoted(&format!("kubernetes.io/service-name={name}")));
    Some(format!("kubectl get endpointslices --namespace {namespace}{cluster} --selector {selector}"))
}

fn versions(crd: &Value) -> impl Iterator<Item = &str> {
    let versions = crd["spec"]["versions"].as_array().into_iter().flatten();
    versions.filter(|version| version["served"] == true).filter_map(|version| version["name"].as_str())
}
