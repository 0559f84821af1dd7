//! The cluster of the page about cert-manager: its CRD of Certificates, released and upgraded for years.

use anyhow::{Context, Result, ensure};
use e2e::cluster::{CRDS, GUARD, eventually};
use e2e::corpus::{load, story};
use serde_json::{Value, json};

use crate::stage::Stage;

/// The page.
pub(crate) const PAGE: &str = "docs/cert-manager.md";
/// What shows that the old versions are out.
pub(crate) const TRIMMED: &str =
    "kubectl get crd certificates.cert-manager.io -o jsonpath='{.status.storedVersions}'";
const CRD: &str = "certificates.cert-manager.io";

/// A cluster with cert-manager 1.6, whose first release there stored objects at `v1alpha2`.
pub(crate) async fn stage() -> Result<Stage> {
    let mut stage = Stage::bare().await?;
    let old = story("certificates-1.6.yaml")?;
    let releases = [
        ("1.5", stored_at(&old, "v1alpha2")?),
        ("1.6", old),
        ("1.7", story("certificates-1.7.yaml")?),
        ("1.18", load(&pair(1), "old.yaml")?),
        ("1.19.0", load(&pair(1), "new.yaml")?),
        ("1.19.1", load(&pair(2), "new.yaml")?),
    ];
    for (release, crd) in &releases {
        stage.file(&format!("certificates-{release}.yaml"), &serde_json::to_string_pretty(crd)?)?;
    }
    for (name, version) in [("old", "v1alpha2"), ("web", "v1")] {
        let spec = json!({
            "secretName": format!("{name}-tls"), "dnsNames": [format!("{name}.example.com")], "issuerRef": {
                "name": "ca",
            },
        });
        let object = |version: &str| {
            json!({ "apiVersion": format!("cert-manager.io/{version}"), "kind": "Certificate",
                "metadata": { "name": name, "namespace": "default" }, "spec": spec })
        };
        stage.file(&format!("{name}.yaml"), &object("v1").to_string())?;
        stage.file(&format!("{name}-created.yaml"), &object(version).to_string())?;
    }
    for file in ["certificates-1.5", "old-created", "certificates-1.6", "web-created"] {
        let created = stage.run(&format!("kubectl apply --server-side -f {file}.yaml")).await?;
        ensure!(created.code == Some(0), "{created:?}");
        let version = if file == "certificates-1.5" { "v1alpha2" } else { "v1" };
        eventually(GUARD, "Certificates are served", async || {
            let list = stage.cluster.get(&format!("/apis/cert-manager.io/{version}/certificates")).await;
            Ok(list.ok().map(drop))
        })
        .await?;
    }
    Ok(stage)
}

/// Waits until the operator has taken the old versions out; eleven minutes are over at once.
pub(crate) async fn trimmed(stage: &mut Stage) -> Result<()> {
    eventually(GUARD, "the old object is moved", async || {
        let raw = stage.cluster.raw("cert-manager.io", "certificates", Some("default"), "old").await?;
        Ok((raw["apiVersion"] == "cert-manager.io/v1").then_some(()))
    })
    .await?;
    stage.reported(CRD).await?;
    stage.verify_now(CRD).await?;
    eventually(GUARD, "the old version is taken out", async || {
        let crd = stage.cluster.get(&format!("{CRDS}/{CRD}")).await?;
        Ok((crd["status"]["storedVersions"] == json!(["v1"])).then_some(()))
    })
    .await
}

fn pair(number: usize) -> std::path::PathBuf {
    let name = format!("/corpus/pairs/cert-manager__{CRD}__{number}");
    format!("{}{name}", env!("CARGO_MANIFEST_DIR")).into()
}

/// The CRD as it was when another version was the storage version, and all were served.
fn stored_at(crd: &Value, storage: &str) -> Result<Value> {
    let mut crd = crd.clone();
    for version in crd["spec"]["versions"].as_array_mut().context("versions")? {
        version["served"] = json!(true);
        version["storage"] = json!(version["name"] == storage);
    }
    Ok(crd)
}
