//! Etcd behind TLS, and values that the API server encrypts: they are named as unreadable, and never guessed.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Cluster, crd, eventually, with_spec};
use e2e::control_plane::{ControlPlane, EtcdPki, Options, object_key};
use e2e::process::Ended;
use serde_json::{Value, json};

use crate::stage::etch;

const GROUP: &str = "sealed.example.com";
const VAULTS: &str = "vaults.sealed.example.com";
const SAFES: &str = "safes.sealed.example.com";

#[tokio::test(flavor = "multi_thread")]
async fn encrypted_values_are_named_and_etcd_is_read_over_tls() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut options = Options::new(dir.path().join("cluster"));
    options.etcd_tls = true;
    let encryption = dir.path().join("encryption.json");
    std::fs::write(&encryption, encryption_config().to_string())?;
    options.apiserver_flags = vec![format!("--encryption-provider-config={}", encryption.display())];
    let control_plane = ControlPlane::start(options).await?;
    let cluster = Cluster::of(&control_plane).await?;
    set(&cluster).await?;

    let kubeconfig = control_plane.kubeconfig(0);
    let url = control_plane.etcd_url();
    let EtcdPki { ca, client, .. } = control_plane.etcd_tls().context("etcd speaks TLS")?;
    let tls = [
        ["--etcd-endpoints", url],
        ["--etcd-cacert", text(ca)?],
        ["--etcd-cert", text(&client.certificate)?],
        ["--etcd-key", text(&client.key)?],
    ];
    let snapshot = dir.path().join("snapshot.db");
    std::fs::write(&snapshot, cluster.etcd().snapshot().await?)?;
    let snapshot = [["--etcd-snapshot", text(&snapshot)?]];

    for access in [&tls[..], &snapshot] {
        let access = access.concat();
        let audit = etch(&kubeconfig, &[&["audit", VAULTS, SAFES, "--objects"], &access[..]].concat())?;
        unreadable(&found(&audit)?).with_context(|| format!("{access:?}"))?;
        let file = dir.path().join("new.json");
        std::fs::write(&file, vaults(Some(2)).to_string())?;
        let impact = etch(&kubeconfig, &[&["impact", "--live", "-f", text(&file)?], &access[..]].concat())?;
        not_predicted(&found(&impact)?).with_context(|| format!("{access:?}"))?;
    }
    let explained = etch(&kubeconfig, &[&["explain", "vaults", "sealed-0"], &tls.concat()[..]].concat())?;
    refused(&explained, &["encrypted"])?;
    let presumed = found(&etch(&kubeconfig, &["audit", VAULTS])?)?;
    let of = |state: &str| presumed["crds"][0][state].as_u64().unwrap_or_default();
    // Through the API they are objects like any other: those that no client has written since the default was
    // added lack it.
    ensure!(of("unknown") + of("phantom") == 5 && of("unreadable") == 0, "{presumed:#}");

    strangers_are_told_why(&kubeconfig, &control_plane)
}

/// Objects that are encrypted in two ways, and two plain ones among them, all from before there was a
/// default.
async fn set(cluster: &Cluster) -> Result<()> {
    for crd in [vaults(None), safes(None)] {
        cluster.apply_crd(&crd).await?;
    }
    for (kind, plural, provider) in [("Vault", "vaults", "secretbox"), ("Safe", "safes", "aescbc")] {
        for index in 0..3 {
            let name = format!("sealed-{index}");
            let object = object(kind, &name, json!({ "note": "x" }));
            let collection = format!("/apis/{GROUP}/v1/namespaces/default/{plural}");
            cluster.create(&collection, "creator", &object).await?;
            let key = object_key(GROUP, plural, Some("default"), &name);
            let (bytes, _) = cluster.etcd().get(&key).await?.context("the object")?;
            let mark = format!("k8s:enc:{provider}:v1:");
            ensure!(bytes.starts_with(mark.as_bytes()), "{plural} are not encrypted by {provider}");
        }
    }
    // As they were stored before encryption was turned on.
    for (name, spec) in [("plain", json!({ "note": "x" })), ("stored", json!({ "size": 1 }))] {
        let mut object = object("Vault", name, spec);
        object["metadata"]["namespace"] = "default".into();
        object["metadata"]["uid"] = name.into();
        object["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
        let key = object_key(GROUP, "vaults", Some("default"), name);
        cluster.etcd().put_json(&key, &object).await?;
    }
    for crd in [vaults(Some(1)), safes(Some(1))] {
        cluster.apply_crd(&crd).await?;
    }
    eventually(Duration::from_secs(60), "the default is served", async || {
        let vault = cluster.get(&format!("/apis/{GROUP}/v1/namespaces/default/vaults/plain")).await?;
        let safe = cluster.get(&format!("/apis/{GROUP}/v1/namespaces/default/safes/sealed-0")).await?;
        Ok((vault["spec"]["size"] == 1 && safe["spec"]["size"] == 1).then_some(()))
    })
    .await
}

fn unreadable(audit: &Value) -> Result<()> {
    let fields = ["crd", "objects", "stored", "phantom", "unknown", "unreadable"];
    let counts: Vec<Value> =
        [0, 1].iter().map(|index| json!(fields.map(|field| &audit["crds"][index][field]))).collect();
    ensure!(counts.contains(&json!([VAULTS, 5, 1, 1, 0, 3])), "{audit:#}");
    ensure!(counts.contains(&json!([SAFES, 3, 0, 0, 0, 3])), "{audit:#}");
    let details = (0..2).flat_map(|index| audit["crds"][index]["details"].as_array().into_iter().flatten());
    let sealed: Vec<&Value> = details.filter(|detail| detail["name"] != "plain").collect();
    ensure!(sealed.len() == 6, "{sealed:?}");
    for detail in sealed {
        let is_named = detail["state"] == "unreadable" && detail["unreadable"] == "encrypted";
        ensure!(is_named && detail["defaults"] == json!([]), "{detail:#}");
    }
    Ok(())
}

fn not_predicted(impact: &Value) -> Result<()> {
    let crd = &impact["crds"][0];
    let objects = &crd["objects"];
    ensure!((&objects["total"], &objects["changing"]) == (&json!(5), &json!(1)), "{crd:#}");
    for detail in crd["details"].as_array().context("details")? {
        let (path, problems) = match detail["name"].as_str() {
            Some("plain") => (json!([".spec.size"]), json!([])),
            _ => (json!([]), json!(["not checked: its value in etcd is encrypted"])),
        };
        ensure!(detail["changes"] == path && detail["problems"] == problems, "{detail:#}");
    }
    Ok(())
}

/// A user with the wrong certificates gets one clear line and exit 2, in time, and nothing is printed about
/// the objects.
fn strangers_are_told_why(kubeconfig: &Path, control_plane: &ControlPlane) -> Result<()> {
    let url = control_plane.etcd_url();
    let plain = url.replace("https://", "http://");
    let EtcdPki { ca, client, .. } = control_plane.etcd_tls().context("etcd speaks TLS")?;
    let (ca, other_ca) = (text(ca)?, text(control_plane.ca())?);
    let own = ["--etcd-cert", text(&client.certificate)?, "--etcd-key", text(&client.key)?];
    let pki = control_plane.dir().join("pki");
    let (certificate, key) = (pki.join("admin.crt"), pki.join("admin.key"));
    let others = ["--etcd-cert", text(&certificate)?, "--etcd-key", text(&key)?];
    let cases = [
        (
            "another authority",
            vec!["--etcd-endpoints", url, "--etcd-cacert", other_ca],
            &own[..],
            "--etcd-cacert",
        ),
        ("no authority", vec!["--etcd-endpoints", url], &own, "--etcd-cacert"),
        ("no certificate", vec!["--etcd-endpoints", url, "--etcd-cacert", ca], &[], "--etcd-cert"),
        ("another's certificate", vec!["--etcd-endpoints", url, "--etcd-cacert", ca], &others, "--etcd-cert"),
        ("no TLS", vec!["--etcd-endpoints", &plain, "--etcd-cacert", ca], &own, "https"),
        (
            "a missing file",
            vec!["--etcd-endpoints", url, "--etcd-cacert", "/no/such/ca.crt"],
            &own,
            "--etcd-cacert: /no/such/ca.crt",
        ),
    ];
    for (case, access, certificates, hint) in cases {
        for command in [&["audit", VAULTS, SAFES][..], &["explain", "vaults", "plain"]] {
            let begun = std::time::Instant::now();
            let ended = etch(kubeconfig, &[command, &access[..], certificates].concat())?;
            // A file that cannot be read is no endpoint's affair.
            let endpoint = if hint.contains("/no/such") { "" } else { access[1] };
            refused(&ended, &[endpoint, hint]).with_context(|| format!("{case}: {command:?}"))?;
            ensure!(begun.elapsed() < Duration::from_secs(60), "{case}: {:?}", begun.elapsed());
        }
    }
    Ok(())
}

/// What a command found.
fn found(ended: &Ended) -> Result<Value> {
    ensure!(ended.code == Some(1), "{ended:?}");
    ended.json()
}

/// The command failed, and printed why in one line that contains these words.
fn refused(ended: &Ended, words: &[&str]) -> Result<()> {
    let wording = &ended.err;
    ensure!(ended.code == Some(2) && ended.out.is_empty(), "{ended:?}");
    ensure!(wording.lines().count() == 1 && wording.starts_with("error: "), "not one line: {wording}");
    ensure!(words.iter().all(|word| wording.contains(word)), "{words:?} are not in: {wording}");
    Ok(())
}

fn encryption_config() -> Value {
    // 32 bytes in base64; they protect nothing.
    let keys =
        json!({ "keys": [{ "name": "one", "secret": "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=" }] });
    json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "EncryptionConfiguration",
        "resources": [
            { "resources": [VAULTS], "providers": [{ "secretbox": keys }, { "identity": {} }] },
            { "resources": [SAFES], "providers": [{ "aescbc": keys }, { "identity": {} }] },
        ],
    })
}

fn vaults(default: Option<i64>) -> Value {
    crd(GROUP, "Vault", &[("v1", true, schema(default))])
}

fn safes(default: Option<i64>) -> Value {
    crd(GROUP, "Safe", &[("v1", true, schema(default))])
}

fn schema(default: Option<i64>) -> Value {
    let mut size = json!({ "type": "integer" });
    if let Some(default) = default {
        size["default"] = default.into();
    }
    with_spec(json!({ "note": { "type": "string" }, "size": size }))
}

fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({ "apiVersion": format!("{GROUP}/v1"), "kind": kind, "metadata": { "name": name }, "spec": spec })
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path")
}
