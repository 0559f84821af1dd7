//! A cluster with Machines, the objects that facts are taken from, and an operator that answers.

use anyhow::Result;
use e2e::cluster::{Cluster, GUARD, Patch, crd, documents, eventually};
use e2e::install::root;
use e2e::operator::Operator;
use e2e::scene::{NAMESPACE, Scene, apply};
use e2e::serving::Serving;
use serde_json::{Value, json};

/// Those with a schema here, as the name of its file has it.
pub(crate) const PLATFORMS: [&str; 4] = ["aws", "azure", "gcp", "vsphere"];

const CONFIG: &str = "config.openshift.io";

pub(crate) struct Stage {
    pub(crate) scene: Scene,
    pub(crate) serving: Serving,
}

impl Stage {
    pub(crate) async fn start() -> Result<Self> {
        let scene = Scene::start(&[]).await?;
        let cluster = &scene.cluster;
        for name in ["machines", "machinesets", "infrastructures"] {
            for crd in documents(&root().join(format!("e2e/admission/crds/{name}.yaml")))? {
                cluster.apply_crd(&crd).await?;
            }
        }
        cluster.apply_crd(&open_crd("DNS", "dnses")).await?;
        cluster.apply_crd(&open_crd("FeatureGate", "featuregates")).await?;
        for (kind, plural, more) in [
            ("Infrastructure", "infrastructures", json!({ "spec": {} })),
            ("DNS", "dnses", json!({ "spec": { "publicZone": { "id": "zone" } } })),
            ("FeatureGate", "featuregates", gates()),
        ] {
            let mut object = more;
            object["apiVersion"] = json!(format!("{CONFIG}/v1"));
            object["kind"] = json!(kind);
            object["metadata"] = json!({ "name": "cluster" });
            cluster.create(&format!("/apis/{CONFIG}/v1/{plural}"), "author", &object).await?;
        }
        infrastructure(cluster, "demo-1", &crate::aws()).await?;
        grant_facts(cluster).await?;
        let serving = Serving::prepare(&scene).await?;
        Ok(Self { scene, serving })
    }

    pub(crate) fn operator(&self) -> Result<Operator> {
        self.operator_with(&[&self.serving.mounted()])
    }

    /// With these flags for its certificates.
    pub(crate) fn operator_with(&self, flags: &[&str]) -> Result<Operator> {
        let [listen, url] = self.serving.flags();
        self.scene.operator(&[&[listen.as_str(), url.as_str()], flags].concat())
    }
}

/// The rules that the author of an EmbeddedSchema adds: its facts, and the Secrets that are to exist.
async fn grant_facts(cluster: &Cluster) -> Result<()> {
    let subjects = json!([{ "kind": "ServiceAccount", "name": "etch", "namespace": NAMESPACE }]);
    let rbac = "rbac.authorization.k8s.io";
    for (kind, name, rule) in [
        (
            "ClusterRole",
            "etch-facts",
            json!({ "apiGroups": [CONFIG], "resources": ["infrastructures", "dnses", "featuregates"],
                    "resourceNames": ["cluster"], "verbs": ["list", "watch"] }),
        ),
        ("Role", "etch-secrets", json!({ "apiGroups": [""], "resources": ["secrets"], "verbs": ["get"] })),
    ] {
        let namespace = (kind == "Role").then_some("default");
        let metadata = json!({ "name": name, "namespace": namespace });
        let api_version = format!("{rbac}/v1");
        let role = json!({
            "apiVersion": api_version, "kind": kind, "metadata": metadata, "rules": [rule],
        });
        apply(cluster, &without_nulls(role)).await?;
        let binding = json!({
            "apiVersion": api_version, "kind": format!("{kind}Binding"), "metadata": metadata,
            "roleRef": { "apiGroup": rbac, "kind": kind, "name": name }, "subjects": subjects,
        });
        apply(cluster, &without_nulls(binding)).await?;
    }
    Ok(())
}

fn without_nulls(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|_, value| !value.is_null());
    }
    object
}

/// A cluster-scoped CRD of OpenShift's configuration that takes any object: only its facts are of interest.
fn open_crd(kind: &str, plural: &str) -> Value {
    let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    let mut crd = crd(CONFIG, kind, &[("v1", true, schema)]);
    crd["metadata"]["name"] = json!(format!("{plural}.{CONFIG}"));
    crd["spec"]["scope"] = json!("Cluster");
    crd["spec"]["names"]["plural"] = json!(plural);
    crd["spec"]["versions"][0].as_object_mut().into_iter().for_each(|version| {
        version.remove("subresources");
    });
    crd
}

fn gates() -> Value {
    let enabled = json!([{ "name": "VSphereHostVMGroupZonal" }]);
    json!({ "status": { "featureGates": [{ "version": "4.20", "enabled": enabled }] } })
}

/// Sets which cluster this is, and on which platform.
pub(crate) async fn infrastructure(cluster: &Cluster, id: &str, platform: &Value) -> Result<()> {
    // What belongs to another platform goes.
    let mut wanted = json!({ "aws": null, "azure": null, "gcp": null });
    for (name, value) in platform.as_object().into_iter().flatten() {
        wanted[name] = value.clone();
    }
    let status = json!({ "status": {
        "infrastructureName": id, "platform": platform["type"], "platformStatus": wanted,
    } });
    let path = format!("/apis/{CONFIG}/v1/infrastructures/cluster/status");
    cluster.patch(&path, Patch::Merge, "author", &status).await?.ok().map(drop)
}

/// Where the schema of a platform is.
pub(crate) fn schema(platform: &str) -> String {
    format!("/apis/etch-operator.io/v1alpha1/embeddedschemas/machine-api-{platform}")
}

/// Applies the shipped schema of a platform, with a change.
pub(crate) async fn apply_schema(
    cluster: &Cluster,
    platform: &str,
    change: impl FnOnce(&mut Value),
) -> Result<()> {
    let file = root().join(format!("yaml/machine-api/{platform}.yaml"));
    let mut shipped = documents(&file)?.remove(0);
    change(&mut shipped);
    let path = format!("{}?fieldManager=author&force=true", schema(platform));
    let body = serde_json::to_vec(&shipped)?;
    cluster.send("PATCH", &path, "application/apply-patch+yaml", body).await?.ok().map(drop)
}

/// Waits until a condition of a platform's schema has a reason.
pub(crate) async fn condition(cluster: &Cluster, platform: &str, kind: &str, reason: &str) -> Result<()> {
    eventually(GUARD, &format!("{kind} of {platform} is {reason}"), async || {
        let schema = cluster.get(&schema(platform)).await?;
        let conditions = schema["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.iter().find(|condition| condition["type"] == kind);
        Ok(found.filter(|condition| condition["reason"] == reason).map(drop))
    })
    .await
}
