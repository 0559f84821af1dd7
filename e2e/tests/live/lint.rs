//! `etch lint --live`, compared with `etch lint FILE` of the same CRDs; and what it prints without
//! permissions.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{CRDS, Cluster, crd, documents, eventually, with_spec};
use e2e::control_plane::{ControlPlane, Options};
use e2e::process::{self, Ended};
use serde_json::{Value, json};

/// A real CRD without findings, and one with findings at two of its versions.
const REAL: [&str; 2] = [
    "cert-manager__certificates.cert-manager.io__1/new.yaml",
    "aws-karpenter-provider-aws__ec2nodeclasses.karpenter.k8s.aws__1/new.yaml",
];

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_checked_as_its_files_are() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let control_plane = ControlPlane::start(Options::new(dir.path().join("cluster"))).await?;
    let cluster = Cluster::of(&control_plane).await?;
    let mut files = Vec::new();
    for name in REAL {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/pairs").join(name);
        let mut crd = documents(&path)?.remove(0);
        // There is no service that it could call.
        crd["spec"].as_object_mut().context("a spec")?.remove("conversion");
        cluster.apply_crd(&crd).await?;
        files.push(path);
    }
    let planted = planted();
    cluster.apply_crd(&planted).await?;
    files.push(write(dir.path(), "planted.json", &planted)?);
    files.push(write(dir.path(), "legacy.json", &legacy(&cluster).await?)?);

    let kubeconfig = control_plane.kubeconfig(0);
    let live = lint(&kubeconfig, &["--live", "-o", "json"])?;
    ensure!(live.code == Some(1), "{live:?}");
    let mut arguments = vec!["-o", "json"];
    arguments.extend(files.iter().filter_map(|path| path.to_str()));
    let filed = lint(&kubeconfig, &arguments)?;
    ensure!(filed.code == Some(1), "{filed:?}");
    let (live, filed) = (findings(&live)?, findings(&filed)?);
    ensure!(live == filed, "the cluster: {live:#?}\nfiles: {filed:#?}");
    for code in ["ETCH001", "ETCH004", "ETCH006", "ETCH010"] {
        ensure!(live.iter().any(|finding| finding["code"] == code), "{code} is missing: {live:#?}");
    }
    ensure!(!live.iter().any(|finding| finding["crd"] == "certificates.cert-manager.io"), "{live:#?}");

    let table = lint(&kubeconfig, &["--live", "--severity", "error"])?.out;
    ensure!(table.contains("ETCH001") && table.contains("\n4 CRDs: 3 errors\n"), "{table}");

    let stranger = with_token(&dir.path().join("stranger"), &kubeconfig, "expired")?;
    let refused = lint(&stranger, &["--live"])?;
    let wording = &refused.err;
    ensure!(refused.code == Some(2) && wording.lines().count() == 1, "{wording}");
    ensure!(wording.contains("401") && wording.contains("credentials"), "{wording}");
    Ok(())
}

/// What a server takes though it is wrong, or surprises.
fn planted() -> Value {
    let low =
        json!({ "type": "object", "properties": { "n": { "type": "integer", "minimum": 1, "default": 0 } } });
    let schema = with_spec(json!({
        "none": { "type": "string", "nullable": true, "default": "x" },
        "map": { "type": "object", "additionalProperties": low },
    }));
    crd("planted.example.com", "Planted", &[("v1", true, schema)])
}

/// A CRD that is not structural, stored as it may have been before servers refused such; answered as it is
/// read at v1.
async fn legacy(cluster: &Cluster) -> Result<Value> {
    let schema = json!({ "type": "object", "properties": { "spec": { "type": "object" } } });
    let accepted = crd("legacy.example.com", "Legacy", &[("v1", true, schema)]);
    cluster.apply_crd(&accepted).await?;
    let name = "legacys.legacy.example.com";
    let loosen = |crd: &mut Value| {
        crd["spec"]["validation"]["openAPIV3Schema"]["properties"]["spec"] = json!({ "default": {} });
        Ok(())
    };
    cluster.etcd().change_crd(name, loosen).await?;
    let place = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/default";
    eventually(Duration::from_secs(20), "the CRD as it was stored", async || {
        let crd = cluster.get(&format!("{CRDS}/{name}")).await?;
        Ok(crd.pointer(place).is_some().then_some(crd))
    })
    .await
}

/// The findings without their places in files, which a cluster has not, and without what a file cannot have:
/// what is published.
fn findings(ended: &Ended) -> Result<Vec<Value>> {
    let mut findings = ended.json()?["findings"].as_array().context("findings")?.clone();
    findings.retain(|finding| finding["code"] != "ETCH021");
    for finding in &mut findings {
        let finding = finding.as_object_mut().context("a finding")?;
        finding.retain(|name, _| !["file", "document"].contains(&name.as_str()));
    }
    findings.sort_by_key(Value::to_string);
    Ok(findings)
}

fn lint(kubeconfig: &Path, arguments: &[&str]) -> Result<Ended> {
    process::etch(kubeconfig, &[&["lint"], arguments].concat())
}

fn write(folder: &Path, name: &str, document: &Value) -> Result<PathBuf> {
    let path = folder.join(name);
    std::fs::write(&path, document.to_string())?;
    Ok(path)
}

/// A kubeconfig for the same server, with a token that it does not know.
fn with_token(path: &Path, kubeconfig: &Path, token: &str) -> Result<PathBuf> {
    let mut config: Value = serde_json::from_slice(&std::fs::read(kubeconfig)?)?;
    config["users"][0]["user"] = json!({ "token": token });
    std::fs::write(path, config.to_string())?;
    Ok(path.to_path_buf())
}
