//! What a cluster publishes of its types, as the commands read it; and which defaults of a CRD are not in it.

use anyhow::{Context, Result, ensure};
use e2e::cluster::{CRDS, GUARD, crd, eventually};
use serde_json::{Value, json};

use crate::hand::Hand;

#[tokio::test(flavor = "multi_thread")]
async fn what_a_cluster_publishes_is_read_by_its_index() -> Result<()> {
    let hand = Hand::empty().await?;
    // By a short name, which no document has.
    let shown = hand.etch(&["explain", "--live", "svc.spec.ports"])?;
    let row = ".spec.ports[].protocol   \"TCP\"     if .spec.ports is given";
    ensure!(shown.code == Some(0) && shown.out.contains(row), "{shown:?}");
    let reported = hand.refused(&["explain", "--live", "widgets"])?;
    ensure!(reported.contains("the server doesn't have a resource type \"widgets\""), "{reported}");

    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "a", "namespace": "default"},
        "spec": {"ports": [{"port": 80}]}});
    let file = hand.dir.path().join("service.json");
    std::fs::write(&file, service.to_string())?;
    let file = file.to_str().context("a path")?;
    let filled = hand.etch(&["fill", "--live", file, "-o", "json", "--show-defaults"])?.json()?;
    let defaults = filled["defaults"].as_array().context("defaults")?;
    ensure!(defaults.contains(&json!(".spec.ports[0].protocol")), "{filled}");
    let made = hand.cluster.create("/api/v1/namespaces/default/services", "admin", &service).await?;
    ensure!(made["spec"]["ports"][0]["protocol"] == filled["object"]["spec"]["ports"][0]["protocol"]);

    // The documents that are kept of the release are what its server publishes, of the APIs that it serves.
    let types = hand.etch(&["lint", "--openapi", "--live", "-o", "json"])?;
    ensure!(types.code == Some(1) && types.err.is_empty(), "{types:?}");
    let release = hand.control_plane.kubernetes().to_string();
    let kept = e2e::releases::folder().join(format!("v{release}.json"));
    let changes =
        hand.etch(&["impact", "--openapi", kept.to_str().context("a path")?, "-o", "json"])?.json()?;
    for group in changes["apiVersions"].as_array().context("API versions")? {
        let is_empty = |field: &str| group[field].as_array().is_some_and(Vec::is_empty);
        let is_contained = ["defaultsChanged", "defaultsRemoved", "kindsRemoved"].into_iter().all(is_empty);
        ensure!(is_contained, "{group}");
    }
    // An aggregated API whose server does not answer stops only itself, once the index has it.
    let gone = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {
            "name": "v1.gone.example.com",
        },
        "spec": {
            "group": "gone.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 100,
            "insecureSkipTLSVerify": true, "service": {"name": "gone", "namespace": "default"},
        },
    });
    hand.cluster.create("/apis/apiregistration.k8s.io/v1/apiservices", "admin", &gone).await?;
    let again = hand.etch(&["lint", "--openapi", "--live", "-o", "json"])?;
    ensure!(again.json()? == types.json()?, "{again:?}");
    ensure!(again.code == Some(1) || again.err.contains("gone.example.com/v1"), "{again:?}");
    Ok(())
}

/// A CRD whose embedded resource has a default that no document has, and one that is not structural.
#[tokio::test(flavor = "multi_thread")]
async fn defaults_that_are_not_published_are_named() -> Result<()> {
    let hand = Hand::empty().await?;
    let text = json!({"type": "string", "default": "a"});
    let pod = json!({"type": "object", "x-kubernetes-embedded-resource": true, "properties": {
        "kind": text, "apiVersion": {"type": "string"}, "metadata": {"type": "object"}, "extra": text,
    }});
    let spec = json!({"type": "object", "default": {}, "properties": {
        "plain": text, "pod": pod, "list": {
            "type": "array", "items": {"type": "string", "default": "b", "nullable": true},
        },
        "port": {"x-kubernetes-int-or-string": true, "default": "http"},
        "open": {
            "type": "object", "nullable": true, "x-kubernetes-preserve-unknown-fields": true, "properties": {
                "a": text,
            },
        },
    }});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    hand.cluster
        .apply_crd(&crd(
            "published.example.com",
            "Pub",
            &[("v1beta1", false, schema.clone()), ("v1", true, schema)],
        ))
        .await?;
    // The command waits for a server that is behind, but not without end.
    let found = |wanted: &'static [(&'static str, &'static str, &'static str)]| {
        let hand = &hand;
        eventually(GUARD, "what is not published", async move || {
            let answer = hand.etch(&["lint", "--live", "-o", "json"])?.json()?;
            let all = answer["findings"].as_array().context("findings")?.clone();
            let own: Vec<&Value> = all.iter().filter(|finding| finding["code"] == "ETCH021").collect();
            let is = |finding: &&Value, (version, path, says): (&str, &str, &str)| {
                finding["version"] == version
                    && finding["path"] == path
                    && finding["message"].as_str().is_some_and(|message| message.ends_with(says))
            };
            let is_so = own.len() == wanted.len()
                && wanted.iter().all(|wanted| own.iter().any(|finding| is(finding, *wanted)));
            ensure!(is_so, "{own:#?}");
            Ok(Some(()))
        })
    };
    const REPLACED: &str = "the server publishes its own schema of apiVersion, kind and metadata";
    found(&[("v1beta1", ".spec.pod.kind", REPLACED), ("v1", ".spec.pod.kind", REPLACED)]).await?;

    // No release of Kubernetes has the CRD, and none removes it.
    let name = "pubs.published.example.com";
    let release = e2e::releases::folder().join(format!("v{}.json", hand.control_plane.kubernetes()));
    let impact = hand.etch(&["impact", "--openapi", release.to_str().context("a path")?, "-o", "json"])?;
    let note = format!("note: left out: 1 installed CRD, which these documents do not have: {name}\n");
    ensure!(impact.err == note && !impact.out.contains("published.example.com"), "{impact:?}");

    let loosen = |crd: &mut Value| {
        crd["spec"]["validation"]["openAPIV3Schema"] = json!({"properties": {"spec": {"default": {}}}});
        Ok(())
    };
    hand.cluster.etcd().change_crd(name, loosen).await?;
    eventually(GUARD, "the CRD as it was stored", async || {
        let crd = hand.cluster.get(&format!("{CRDS}/{name}")).await?;
        Ok(crd.pointer("/spec/versions/0/schema/openAPIV3Schema/type").is_none().then_some(()))
    })
    .await?;
    const LOOSE: &str = "the schema is not structural, so the server publishes none of it";
    found(&[("v1beta1", ".spec", LOOSE), ("v1", ".spec", LOOSE)]).await
}
