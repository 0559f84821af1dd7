//! The CRDs, objects and files that examples name.
//! They are no more than the examples need.

use std::fs;
use std::path::Path;

use anyhow::Result;
use e2e::cluster::{crd, with_spec};
use serde_json::{Value, json};

/// The objects of the cluster, with their paths.
pub(crate) const OBJECTS: [fn() -> (String, Value); 4] =
    [|| crontab("nightly"), || crontab("hourly"), certificate, widget];

/// CronTabs, whose `replicas` may have a default.
pub(crate) fn crontabs(replicas: Option<i64>) -> Value {
    let mut fields = json!({ "schedule": { "type": "string" }, "replicas": { "type": "integer" } });
    if let Some(replicas) = replicas {
        fields["replicas"]["default"] = json!(replicas);
    }
    crd("stable.example.com", "CronTab", &[("v1", true, with_spec(&fields))])
}

/// Certificates, of which a field may have a default.
pub(crate) fn certificates(policy: Option<&str>) -> Value {
    let mut fields = json!({ "secretName": { "type": "string" }, "rotation": { "type": "string" } });
    if let Some(policy) = policy {
        fields["rotation"]["default"] = json!(policy);
    }
    crd("cert-manager.io", "Certificate", &[("v1", true, with_spec(&fields))])
}

/// Widgets, which have a field that can be taken out.
pub(crate) fn widgets() -> Value {
    let fields = json!({
        "field": { "type": "string" }, "image": {
            "type": "string", "default": "registry.example.com/widget",
        },
    });
    crd("example.com", "Widget", &[("v1", true, with_spec(&fields))])
}

/// CronTabs with a default about which a check has a finding.
fn checked() -> Value {
    let fields =
        json!({ "schedule": { "type": "string" }, "image": { "type": "string", "default": "busybox:1.37" } });
    crd("stable.example.com", "CronTab", &[("v1", true, with_spec(&fields))])
}

/// A Machine of which a provider's schema sets what is missing.
fn machine() -> Value {
    let value = json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "AWSMachineProviderConfig", "ami": {
            "id": "ami-1",
        },
    });
    json!({
        "apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine",
        "metadata": { "name": "worker", "namespace": "openshift-machine-api" },
        "spec": { "providerSpec": { "value": value } },
    })
}

fn object(group: &str, kind: &str, namespace: &str, name: &str, spec: Value) -> (String, Value) {
    let path = format!("/apis/{group}/v1/namespaces/{namespace}/{}s/{name}", kind.to_lowercase());
    let metadata = json!({ "name": name, "namespace": namespace });
    (path, json!({ "apiVersion": format!("{group}/v1"), "kind": kind, "metadata": metadata, "spec": spec }))
}

fn crontab(name: &str) -> (String, Value) {
    object("stable.example.com", "CronTab", "default", name, json!({ "schedule": "0 3 * * *" }))
}

fn certificate() -> (String, Value) {
    object("cert-manager.io", "Certificate", "default", "my-cert", json!({ "secretName": "my-cert" }))
}

fn widget() -> (String, Value) {
    object("example.com", "Widget", "default", "my-widget", json!({ "field": "x" }))
}

/// Writes the files.
pub(crate) fn write(folder: &Path) -> Result<()> {
    let write = |name: &str, document: &Value| -> Result<()> {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, serde_yaml_ng::to_string(document)?)?;
        Ok(())
    };
    write(
        "facts.json",
        &json!({ "platformStatus": { "type": "AWS" }, "clusterID": "demo", "region": "eu-west-1" }),
    )?;
    write("machine.yaml", &machine())?;
    let deployment = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web" } });
    write("deployment.yaml", &deployment)?;
    write("old.yaml", &crontabs(None))?;
    write("new.yaml", &crontabs(Some(1)))?;
    write("crds.yaml", &checked())?;
    write("crds/crds.yaml", &certificates(Some("Always")))?;
    let (_, mut nightly) = crontab("nightly");
    write("object.yaml", &nightly)?;
    nightly["metadata"]["namespace"] = json!("web");
    write("backup/nightly.yaml", &nightly)?;
    nightly["metadata"]["name"] = json!("hourly");
    write("backup/hourly.yaml", &nightly)?;
    write(
        "cert-manager/Chart.yaml",
        &json!({ "apiVersion": "v2", "name": "cert-manager", "version": "1.0.0" }),
    )?;
    fs::create_dir_all(folder.join("api/v1"))?;
    let types = "package v1\n\ntype CronTabSpec struct {\n\tSchedule string `json:\"schedule\"`\n}\n";
    fs::write(folder.join("api/v1/types.go"), types)?;
    let policy = json!({
        "apiVersion": "etch-operator.io/v1alpha1", "kind": "DefaultsPolicy", "metadata": {
            "name": "default",
        },
        "spec": { "mode": "Audit" },
    });
    write("policies.yaml", &policy)?;
    write("cert-manager/templates/crds.yaml", &certificates(Some("Never")))
}
