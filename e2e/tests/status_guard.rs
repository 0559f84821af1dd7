//! `config/status-guard` on a real API server: what Etch's service account may change in the status of a CRD,
//! and in webhook configurations.

use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use e2e::cluster::{CRDS, Cluster, Patch, crd, eventually, parse_documents, with_spec};
use e2e::install::kustomize;
use e2e::scene::{Scene, apply_all};
use etch_admission::{Declaration, Endpoint, GUARDS, Injection, KEY_BYTES, KeyRing, PathKey, configurations};
use jiff::Timestamp;
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(60);
const GROUP: &str = "guarded.example.com";
const CRD: &str = "apps.guarded.example.com";

/// A CRD of two versions, with a default or without.
fn apps(storage: &str, has_default: bool) -> Value {
    let size =
        if has_default { json!({ "type": "integer", "default": 1 }) } else { json!({ "type": "integer" }) };
    let schema = with_spec(json!({ "size": size }));
    crd(GROUP, "App", &["v1alpha1", "v1"].map(|version| (version, version == storage, schema.clone())))
}

/// A condition that states of a CRD what only the API server knows.
fn established(status: &str) -> Value {
    json!({
        "type": "Established", "status": status, "reason": "Mine", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

/// What is not Etch's in the status of the CRD.
async fn of_others(cluster: &Cluster) -> Result<Value> {
    let mut status = cluster.get(&format!("{CRDS}/{CRD}")).await?["status"].take();
    let conditions = status["conditions"].as_array_mut().context("conditions")?;
    let own = ["NonStructural", "InvalidDefaults", "DefaultsPersisted"];
    conditions.retain(|condition| !own.iter().any(|own| condition["type"] == *own));
    Ok(status)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_account_can_change_its_own_conditions_and_nothing_else_of_a_crd() -> Result<()> {
    let scene = Scene::start(&[GROUP]).await?;
    let cluster = &scene.cluster;
    let account = cluster.with_kubeconfig(scene.kubeconfig()).await?;
    // Objects may be stored at both.
    cluster.apply_crd(&apps("v1alpha1", false)).await?;
    cluster.apply_crd(&apps("v1", false)).await?;
    let object = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "App", "metadata": { "name": "one" }, "spec": {},
    });
    cluster.create(&format!("/apis/{GROUP}/v1/namespaces/default/apps"), "user", &object).await?;
    let status = format!("{CRDS}/{CRD}/status");
    let harmful = json!({ "status": { "conditions": [established("False")] } });
    // A dry run: a condition that is taken away can stay away, and a patch that changes nothing is allowed.
    let dry = format!("{status}?dryRun=All");
    let attempt = async || {
        account.send("PATCH", &dry, "application/merge-patch+json", serde_json::to_vec(&harmful)?).await
    };
    ensure!(attempt().await?.code == 200, "RBAC alone refuses it");
    apply_all(cluster, &parse_documents(&kustomize("config/status-guard")?)?).await?;
    eventually(SOON, "the policy is in force", async || Ok((attempt().await?.code == 403).then_some(())))
        .await?;
    let before = eventually(SOON, "the CRD is in service", async || {
        let status = of_others(cluster).await?;
        let conditions = status["conditions"].as_array().context("conditions")?;
        let is = |name: &str| {
            conditions.iter().any(|condition| condition["type"] == name && condition["status"] == "True")
        };
        Ok((is("Established") && is("NamesAccepted")).then_some(status))
    })
    .await?;

    let forced = format!("{status}?force=true");
    let identity = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {
            "name": CRD,
        },
    });
    let applied = |status: Value| {
        let mut body = identity.clone();
        body["status"] = status;
        body
    };
    let names = json!({ "plural": "x", "kind": "X" });
    let refused = [
        (
            &status,
            Patch::Merge,
            json!({ "status": { "acceptedNames": names, "conditions": [established("False")] } }),
        ),
        (&status, Patch::Merge, json!({ "status": { "acceptedNames": names } })),
        (&status, Patch::Merge, harmful.clone()),
        (&status, Patch::Merge, json!({ "status": { "conditions": [] } })),
        (&status, Patch::Merge, json!({ "status": { "storedVersions": ["v1"] } })),
        (&status, Patch::Merge, json!({ "status": null })),
        (&status, Patch::Json, json!([{ "op": "add", "path": "/status/storedVersions/-", "value": "v1" }])),
        (&status, Patch::Json, json!([{ "op": "remove", "path": "/status/conditions/0" }])),
        (
            &status,
            Patch::Json,
            json!([{
                "op": "add", "path": "/status/conditions/-", "value": { "type": "Other", "status": "True" },
            }]),
        ),
    ];
    for (path, kind, body) in refused {
        let answer = account.patch(path, kind, "etch", &body).await?;
        let text = answer.body["message"].as_str().unwrap_or_default();
        // The API server itself refuses a status that no CRD can have.
        let is_refused = answer.code == 422 || answer.code == 403 && text.contains("Etch may change");
        ensure!(is_refused, "{body}: {} {text}", answer.code);
        assert_eq!(of_others(cluster).await?, before, "{body}");
    }
    let apply = applied(json!({ "conditions": [established("False")] }));
    let answer = account
        .send(
            "PATCH",
            &format!("{forced}&fieldManager=etch"),
            "application/apply-patch+yaml",
            serde_json::to_vec(&apply)?,
        )
        .await?;
    ensure!(answer.code == 403, "{answer:?}");

    // Others are not concerned.
    let mine = json!([{
        "op": "add", "path": "/status/conditions/-", "value": { "type": "Other", "status": "True" },
    }]);
    cluster.patch(&status, Patch::Json, "admin", &mine).await?.ok()?;

    // And Etch does its work: conditions come, change and go.
    let operator = scene.operator(&[])?;
    cluster.persisted(CRD, "NoDefaults", SOON).await?;
    cluster.apply_crd(&apps("v1", true)).await?;
    cluster.persisted(CRD, "AllPersisted", SOON).await?;
    scene.policy("default", json!({ "selector": { "groups": ["other.example.com"] } })).await?;
    eventually(SOON, "its conditions are gone", async || {
        Ok(cluster.condition(CRD, "DefaultsPersisted").await?.is_none().then_some(()))
    })
    .await?;
    let conditions = of_others(cluster).await?["conditions"].clone();
    ensure!(
        conditions.as_array().is_some_and(|all| all.iter().any(|condition| condition["type"] == "Other")),
        "{conditions}"
    );
    operator.stop().await
}

/// The bodies that Etch applies with one schema and both guards.
fn webhooks(group: &str) -> Result<[Value; 2]> {
    let target = json!({ "group": group, "version": "v1", "resource": "apps", "path": ".spec" });
    let default = json!({ "path": ".zone", "value": "'a'" });
    let declared = Declaration::read(&json!({ "targets": [target], "defaults": [default] }));
    let declared = declared.map_err(|problems| anyhow!("{problems:?}"))?;
    let endpoint = Endpoint { namespace: "etch-system".to_owned(), url: None, inject: Injection::None };
    let keys = KeyRing::next([None, None], Timestamp::UNIX_EPOCH, || PathKey::new([7; KEY_BYTES]));
    Ok(configurations([("one", &declared)], &GUARDS, &endpoint, None, &keys))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_account_can_have_the_api_server_ask_etch_about_custom_resources_and_nothing_else()
-> Result<()> {
    let scene = Scene::start(&[]).await?;
    let cluster = &scene.cluster;
    let account = cluster.with_kubeconfig(scene.kubeconfig()).await?;
    let of_admission = parse_documents(&kustomize("config/admission")?)?.into_iter().filter(|object| {
        object["metadata"]["name"] == "etch-admission"
            && object["kind"].as_str().is_some_and(|kind| kind.starts_with("ClusterRole"))
    });
    apply_all(cluster, &of_admission.collect::<Vec<_>>()).await?;
    let resources = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];
    let attempt = async |index: usize, body: &Value| {
        let resource: &str = resources[index];
        let path = format!(
            "/apis/admissionregistration.k8s.io/v1/{resource}/etch?fieldManager=etch&force=true&dryRun=All"
        );
        account.send("PATCH", &path, "application/apply-patch+yaml", serde_json::to_vec(body)?).await
    };
    let bodies = webhooks(GROUP)?;
    let with = |index: usize, pointer: &str, value: Value| -> Result<(usize, Value)> {
        let mut body = bodies[index].clone();
        *body.pointer_mut(pointer).with_context(|| pointer.to_owned())? = value;
        Ok((index, body))
    };
    let elsewhere = json!({ "url": "https://attacker.example.com/" });
    let another = |name: &str, namespace: &str| {
        json!({
            "service": { "name": name, "namespace": namespace, "path": "/" },
        })
    };
    let groups = "/webhooks/0/rules/0/apiGroups";
    let mut harmful = Vec::new();
    for index in [0, 1] {
        harmful.push(with(index, "/webhooks/0/clientConfig", elsewhere.clone())?);
        harmful.push(with(index, "/webhooks/0/clientConfig", another("etch-admission", "default"))?);
        harmful.push(with(index, "/webhooks/0/clientConfig", another("mine", "etch-system"))?);
        for group in ["*", "", "apps", "rbac.authorization.k8s.io"] {
            harmful.push(with(index, groups, json!([group]))?);
        }
    }
    // The guard's webhook cannot change a CRD.
    harmful.push(with(0, groups, json!(["apiextensions.k8s.io"]))?);
    harmful.push(with(1, "/webhooks/1/rules/0/apiGroups", json!(["*"]))?);
    for (index, body) in &harmful {
        let answer = eventually(SOON, "RBAC alone refuses none", async || {
            Ok(Some(attempt(*index, body).await?).filter(|answer| answer.code != 403))
        })
        .await?;
        ensure!(matches!(answer.code, 200 | 201), "{body}: {answer:?}");
    }
    apply_all(cluster, &parse_documents(&kustomize("config/status-guard")?)?).await?;
    let (index, body) = &harmful[0];
    eventually(SOON, "the policy is in force", async || {
        Ok((attempt(*index, body).await?.code == 422).then_some(()))
    })
    .await?;
    for (index, body) in &harmful {
        let answer = attempt(*index, body).await?;
        let text = answer.body["message"].as_str().unwrap_or_default();
        ensure!(answer.code == 422 && text.contains("Etch's webhooks may"), "{body}: {} {text}", answer.code);
    }
    for (index, body) in bodies.iter().enumerate() {
        let answer = attempt(index, body).await?;
        ensure!(matches!(answer.code, 200 | 201), "{body}: {answer:?}");
    }
    Ok(())
}
