//! Kubeconfig files: for the admin of a control plane and for service accounts.
//!
//! They are written as JSON, which every reader of YAML takes; certificates are inside, so that a file can be
//! copied.

use std::{fs, path::Path};

use anyhow::{Context, Result};
use k8s_openapi::ByteString;
use kube::{
    Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::{Value, json};

use super::pki::Identity;

/// The user of a certificate.
pub(super) fn certificate_user(identity: &Identity) -> Result<Value> {
    Ok(json!({
        "client-certificate-data": embedded(&identity.certificate)?,
        "client-key-data": embedded(&identity.key)?,
    }))
}

/// The user of a bearer token.
pub(super) fn token_user(token: &str) -> Value {
    json!({"token": token})
}

/// Writes a kubeconfig for one API server and one user.
pub(super) fn write(path: &Path, server: &str, ca: &Path, user: &Value) -> Result<()> {
    let config = document(server, ca, user)?;
    fs::write(path, format!("{config:#}\n")).with_context(|| format!("write {}", path.display()))
}

/// What a client makes of one server and one user.
pub(super) async fn of(server: &str, ca: &Path, user: &Value) -> Result<Config> {
    let kubeconfig: Kubeconfig = serde_json::from_value(document(server, ca, user)?)?;
    Ok(Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?)
}

fn document(server: &str, ca: &Path, user: &Value) -> Result<Value> {
    let name = "etch-e2e";
    Ok(json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{
            "name": name, "cluster": {"server": server, "certificate-authority-data": embedded(ca)?},
        }],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }))
}

/// What a client makes of a kubeconfig file: kube's default, which repeats what is answered with 429 or 503.
pub async fn read(path: &Path) -> Result<Config> {
    let kubeconfig = Kubeconfig::read_from(path).with_context(|| format!("read {}", path.display()))?;
    Ok(Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?)
}

fn embedded(path: &Path) -> Result<ByteString> {
    fs::read(path).map(ByteString).with_context(|| format!("read {}", path.display()))
}
