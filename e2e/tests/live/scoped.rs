//! A namespace that is named is kept to: what is outside is neither counted nor written.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use e2e::process;
use serde_json::{Value, json};

use crate::hand::{GROUP, Hand, things};

/// Bytes of objects by namespace and name, apart for the one that is meant and the others.
type Bytes = BTreeMap<String, Vec<u8>>;

const OBJECTS: usize = 30;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_outside_the_namespace_is_read_or_written() -> Result<()> {
    let hand = Hand::with(&[("web", OBJECTS), ("shop", OBJECTS)]).await?;
    hand.cluster.apply_crd(&basins(None)).await?;
    let basin = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Basin", "metadata": { "name": "b" }, "spec": {
            "note": "n",
        },
    });
    hand.cluster.create(&format!("/apis/{GROUP}/v1/basins"), "creator", &basin).await?;
    hand.cluster.apply_crd(&basins(Some(1))).await?;
    hand.shows(&format!("/apis/{GROUP}/v1/basins/b"), 1).await?;
    let before = hand.raw().await?;

    looked_at(&hand).await?;
    refused(&hand)?;
    ensure!(hand.raw().await? == before, "something was written");

    restricted(&hand, &before).await?;

    let bare = hand.etch(&["persist", "-n", "shop", "-o", "json"])?;
    ensure!(bare.code == Some(0), "{bare:?}");
    let reported = bare.json()?;
    ensure!(
        reported["crds"].as_array().is_some_and(|crds| crds.len() == 1),
        "basins are left out: {reported:#}"
    );
    ensure!(reported["namespace"] == "shop" && reported["crds"][0]["written"] == OBJECTS, "{reported:#}");
    ensure!(hand.stored().await?.len() == 2 * OBJECTS, "all are stored now");
    let raw = hand.cluster.raw(GROUP, "basins", None, "b").await?;
    ensure!(raw["spec"]["size"].is_null(), "{raw}");
    Ok(())
}

/// What looks at objects counts those of the namespace, wherever it looks.
async fn looked_at(hand: &Hand) -> Result<()> {
    let snapshot = hand.dir.path().join("snapshot.db");
    std::fs::write(&snapshot, hand.cluster.etcd().snapshot().await?)?;
    let snapshot = snapshot.to_str().context("a path")?;
    let new = hand.dir.path().join("new.json");
    std::fs::write(&new, things(Some(2)).to_string())?;
    let new = new.to_str().context("a path")?;
    let etcd = ["--etcd-endpoints", hand.control_plane.etcd_url()];
    let by_snapshot = ["--etcd-snapshot", snapshot];
    for access in [&etcd, &by_snapshot] {
        let elsewhere = hand.etch(&[&["audit", "--etcd-prefix", "/elsewhere"], &access[..]].concat())?;
        ensure!(elsewhere.code == Some(2), "{elsewhere:?}");
        ensure!(elsewhere.err.contains("has no keys under /elsewhere/; set --etcd-prefix"), "{elsewhere:?}");
    }
    for (access, is_mixed) in [(&[][..], false), (&["--live"], true)] {
        let line = [&["impact", "-f", new], &by_snapshot[..], access].concat();
        let impact = hand.etch(&line)?;
        let [taken, mixed] = [
            "A snapshot shows what was stored when it was taken.",
            "The CRDs before the upgrade are those that the cluster has now.",
        ];
        ensure!(impact.code == Some(1) && impact.out.contains(taken), "{line:?}: {impact:?}");
        ensure!(impact.out.contains(mixed) == is_mixed, "{line:?}: {impact:?}");
    }
    // All CRDs have one version.
    let versions = hand.etch(&["audit", "--stored-versions"])?;
    let skipped = "CRDs whose status.storedVersions has only the storage version.";
    ensure!(versions.code == Some(0) && versions.out.contains(skipped), "{versions:?}");
    let versions = hand.etch(&[&["audit", "--stored-versions"], &etcd[..]].concat())?;
    ensure!(versions.code == Some(0) && !versions.out.contains("Not read"), "{versions:?}");
    for (scope, expected) in [
        (&["-n", "web"][..], OBJECTS),
        (&["--namespace", "shop"], OBJECTS),
        (&["-A"], 2 * OBJECTS),
        (&[], 2 * OBJECTS),
    ] {
        let namespace = if scope.len() == 2 { json!(scope[1]) } else { Value::Null };
        for access in [&[][..], &etcd, &by_snapshot] {
            let audit =
                hand.etch(&[&["audit", "things.hand.example.com", "-o", "json"], scope, access].concat())?;
            ensure!(audit.code == Some(1), "{audit:?}");
            ensure!(audit.json()?["namespace"] == namespace, "{audit:?}");
            ensure!(audit.first()?["objects"] == expected, "{scope:?} {access:?}: {audit:?}");
            let live = if access.is_empty() { &["--live"][..] } else { access };
            let impact = hand.etch(&[&["impact", "-f", new, "-o", "json"], scope, live].concat())?;
            ensure!(impact.code == Some(1), "{impact:?}");
            ensure!(impact.json()?["namespace"] == namespace, "{impact:?}");
            ensure!(impact.first()?["objects"]["total"] == expected, "{scope:?} {access:?}: {impact:?}");
        }
        let plan = hand.etch(&[&["persist", "things", "--dry-run", "-o", "json"], scope].concat())?;
        ensure!(plan.code == Some(1) && plan.first()?["due"] == expected, "{plan:?}");
    }
    for arguments in [&["explain", "things", "t0001"][..], &["explain", "thing/t0001"]] {
        let explained = hand.etch(&[arguments, &["-n", "web", "-o", "json"]].concat())?;
        ensure!(explained.code == Some(1), "{explained:?}");
        ensure!(explained.json()?["object"] == "things.hand.example.com/web/t0001", "{explained:?}");
    }
    Ok(())
}

/// What cannot be narrowed is refused, with the reason in one line.
fn refused(hand: &Hand) -> Result<()> {
    let new = hand.dir.path().join("new.json");
    let new = new.to_str().context("a path")?;
    for (arguments, expected) in [
        (&["persist", "basins", "-n", "web"][..], "basins.hand.example.com is cluster-scoped"),
        (&["persist", "things", "basins", "-n", "web"], "basins.hand.example.com is cluster-scoped"),
        (&["audit", "basins", "-n", "web"], "basins.hand.example.com is cluster-scoped"),
        (&["explain", "basins", "b", "-n", "web"], "basins.hand.example.com is cluster-scoped"),
        (&["explain", "things", "t0001"], "in namespace \"default\""),
        (&["explain", "things", "t0001", "-A"], "--all-namespaces"),
        (&["explain", "things/t0001", "t0001"], "one object"),
        (&["explain", "things"], "name is missing"),
        (&["explain", "things", "web/t0001"], "--namespace"),
        (&["persist", "things", "-n", "web", "-A"], "cannot be combined"),
        (&["-n", "web", "persist", "things", "-A"], "cannot be combined"),
        (&["persist", "-n", "nowhere"], "namespace \"nowhere\" not found"),
        (&["audit", "-n", "nowhere"], "namespace \"nowhere\" not found"),
        (&["impact", "-f", new, "--old", new, "-n", "web"], "only schemas are compared"),
        (&["lint", new, "-n", "web"], "remove --namespace"),
        (&["crds", "-n", "web"], "remove --namespace"),
        (&["rbac", "-A"], "remove --all-namespaces"),
        (&["clean", "-n", "web"], "remove --namespace"),
        (&["version", "-n", "web"], "remove --namespace"),
        (&["run", "-n", "web"], "remove --namespace"),
    ] {
        let reported = hand.refused(arguments)?;
        ensure!(reported.contains(expected), "{arguments:?}: {reported}");
    }
    for namespace in ["", "We b", "a/b", ".."] {
        let ended = hand.etch(&["persist", "things", &format!("--namespace={namespace}")])?;
        ensure!(ended.code == Some(2) && ended.out.is_empty(), "{namespace:?}: {ended:?}");
    }
    Ok(())
}

/// With permissions in one namespace only, that namespace can be processed, and nothing else.
async fn restricted(hand: &Hand, before: &Bytes) -> Result<()> {
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let subject = json!({ "kind": "ServiceAccount", "name": "clerk", "namespace": "web" });
    let bound = |name: &str, kind: &str| {
        json!({
            "apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name,
        })
    };
    for (path, document) in [
        (
            "/api/v1/namespaces/web/serviceaccounts".to_owned(),
            json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": { "name": "clerk" } }),
        ),
        (
            format!("{rbac}/clusterroles"),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {
                    "name": "crds",
                },
                "rules": [{ "apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"],
                    "verbs": ["get", "list"] }],
            }),
        ),
        (
            format!("{rbac}/clusterrolebindings"),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                "metadata": { "name": "crds" }, "roleRef": bound("crds", "ClusterRole"), "subjects": [
                    subject,
                ],
            }),
        ),
        (
            format!("{rbac}/namespaces/web/roles"),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {
                    "name": "things",
                },
                "rules": [{
                    "apiGroups": [GROUP], "resources": ["things"], "verbs": ["get", "list", "patch"],
                }],
            }),
        ),
        (
            format!("{rbac}/namespaces/web/rolebindings"),
            json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                "metadata": { "name": "things" }, "roleRef": bound("things", "Role"), "subjects": [subject],
            }),
        ),
    ] {
        hand.cluster.create(&path, "admin", &document).await?;
    }
    let kubeconfig = hand.control_plane.service_account_kubeconfig(0, "web", "clerk").await?;
    let clerk = |arguments: &[&str]| process::etch(&kubeconfig, arguments);
    for scope in [&[][..], &["-n", "shop"]] {
        for more in [&[][..], &["--dry-run"]] {
            let reported = clerk(&[&["persist", "things"], scope, more].concat())?;
            ensure!(
                reported.code == Some(2) && reported.err.contains("a permission is missing"),
                "{reported:?}"
            );
            ensure!(
                reported.err.contains(r#"{apiGroups: ["hand.example.com"], resources: ["things"]"#),
                "{reported:?}"
            );
        }
    }
    ensure!(&hand.raw().await? == before, "something was written");
    let audit = clerk(&["audit", "things", "-n", "web", "-o", "json"])?;
    ensure!(audit.code == Some(1) && audit.first()?["objects"] == OBJECTS, "{audit:?}");
    let persisted = clerk(&["persist", "things", "-n", "web", "-o", "json"])?;
    ensure!(persisted.code == Some(0), "{persisted:?}");
    let reported = persisted.first()?;
    ensure!(
        reported["written"] == OBJECTS && reported["objects"] == OBJECTS && reported["verified"] == true,
        "{reported:#}"
    );
    let after = hand.raw().await?;
    let of = |raw: &Bytes, namespace: &str| -> Bytes {
        let prefix = format!("{namespace}/");
        raw.iter()
            .filter(|(name, _)| name.starts_with(&prefix))
            .map(|(a, b)| (a.clone(), b.clone()))
            .collect()
    };
    ensure!(of(&after, "shop") == of(before, "shop"), "another namespace was written");
    let stored = hand.stored().await?;
    ensure!(stored.len() == OBJECTS && stored.iter().all(|name| name.starts_with("web/")), "{stored:?}");
    Ok(())
}

/// A cluster-scoped CRD, with this default for `spec.size`, or none.
fn basins(default: Option<i64>) -> Value {
    let mut crd = things(default);
    crd["metadata"]["name"] = format!("basins.{GROUP}").into();
    crd["spec"]["names"] = json!({ "kind": "Basin", "plural": "basins", "singular": "basin" });
    crd["spec"]["scope"] = "Cluster".into();
    crd
}
