//! The Helm chart: by default it is `yaml/install.yaml`, its values are the overlays, and other values add
//! what they name and nothing else.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{documents, parse_documents};
use e2e::install::{Generated, helm, helm_template, kustomize, named, root};
use etch_core::rbac::{Access, Grant, role};
use serde_json::{Value, json};

use crate::GROUP;

/// What users add to an installation.
const EXTRAS: &str = r#"{
    "commonLabels": { "team": "platform" },
    "deploymentAnnotations": { "on": "the Deployment" },
    "podLabels": { "on": "pods" },
    "podAnnotations": { "on": "pods" },
    "serviceAnnotations": { "on": "the Service" },
    "serviceAccount": { "annotations": { "on": "the service account" } },
    "extraEnv": [{ "name": "ETCH_LOG", "value": "debug" }]
}"#;

fn rendered(flags: &[&str]) -> Result<Vec<Value>> {
    let mut documents = parse_documents(&helm(flags)?)?;
    in_one_order(&mut documents);
    Ok(documents)
}

/// What kustomize makes of a folder, without the namespace, which Helm makes.
fn overlay(folder: &str) -> Result<Vec<Value>> {
    let mut documents = parse_documents(&kustomize(folder)?)?;
    in_one_order(&mut documents);
    Ok(documents)
}

/// Objects by kind and name, variables by name, and no empty lists of volumes.
fn in_one_order(documents: &mut Vec<Value>) {
    documents.retain(|document| document["kind"] != "Namespace");
    documents.sort_by_key(|document| format!("{} {}", document["kind"], document["metadata"]["name"]));
    for document in documents.iter_mut().filter(|document| document["kind"] == "Deployment") {
        let pod = &mut document["spec"]["template"]["spec"];
        without_empty(pod, "volumes");
        let container = &mut pod["containers"][0];
        without_empty(container, "volumeMounts");
        if let Some(variables) = container["env"].as_array_mut() {
            variables.sort_by_key(|variable| variable["name"].to_string());
        }
    }
}

fn without_empty(object: &mut Value, field: &str) {
    if let Some(fields) = object.as_object_mut()
        && fields.get(field).is_some_and(|list| *list == json!([]))
    {
        fields.remove(field);
    }
}

#[test]
fn the_chart_is_the_installation() -> Result<()> {
    let mut installed = documents(&Generated::Install.path())?;
    in_one_order(&mut installed);
    assert_eq!(rendered(&[])?, installed);
    for (values, folder) in [
        ("rbac.clusterWide=true", "config/cluster-wide"),
        ("policy.mode=Audit", "config/audit-only"),
        ("admission.enabled=true", "config/admission-self-managed"),
        ("admission.enabled=true,admission.certificates=CertManager", "config/admission"),
        ("admission.enabled=true,admission.certificates=ServiceCA", "config/admission-service-ca"),
    ] {
        assert_eq!(rendered(&["--set", values])?, overlay(folder)?, "{folder}");
    }
    for (values, folder) in [
        ("monitoring.enabled=true", "config/monitoring"),
        ("statusGuard.enabled=true", "config/status-guard"),
    ] {
        let mut expected = installed.clone();
        expected.extend(overlay(folder)?);
        in_one_order(&mut expected);
        assert_eq!(rendered(&["--set", values])?, expected, "{folder}");
    }
    Ok(())
}

/// The guard is about the service account of the release, in whichever namespace that is.
#[test]
fn the_status_guard_is_about_the_service_account_of_the_release() -> Result<()> {
    let objects = rendered(&["--set", "statusGuard.enabled=true", "--namespace", "platform"])?;
    for name in ["etch-status-guard", "etch-webhook-guard"] {
        let guard = named(&objects, "ValidatingAdmissionPolicy", name)?;
        assert_eq!(
            guard["spec"]["matchConditions"][0]["expression"],
            "request.userInfo.username == 'system:serviceaccount:platform:etch'"
        );
        ensure!(!guard.to_string().contains("etch-system"), "{guard}");
    }
    Ok(())
}

/// A Secret that another controller keeps up to date is mounted, and Etch writes its CA into the webhooks.
#[test]
fn any_secret_has_the_certificate() -> Result<()> {
    let values = "admission.enabled=true,admission.certificates=Secret,admission.secret=mine";
    let objects = rendered(&["--set", values])?;
    let pod = &named(&objects, "Deployment", "etch")?["spec"]["template"]["spec"];
    assert_eq!(pod["volumes"][0]["secret"]["secretName"], "mine");
    let variables = pod["containers"][0]["env"].as_array().context("env")?;
    ensure!(variables.iter().all(|variable| variable["name"] != "ETCH_ADMISSION_INJECT"), "{variables:?}");
    for (kind, name) in [("Certificate", "etch-admission"), ("Role", "etch-admission-certificates")] {
        ensure!(named(&objects, kind, name).is_err(), "nobody needs {kind} {name}");
    }
    Ok(())
}

/// Taken away again, all of what users add leaves the installation as it was.
#[test]
fn what_users_add_is_where_they_want_it_and_nowhere_else() -> Result<()> {
    let everything =
        "monitoring.enabled=true,admission.enabled=true,rbac.clusterWide=true,rbac.groups={a.example.com}";
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), EXTRAS)?;
    let path = file.path().to_str().context("a path")?;
    let plain = rendered(&["--set", everything])?;
    let mut extended = rendered(&["--set", everything, "--values", path])?;
    for object in &mut extended {
        let what = format!("{} {}", object["kind"], object["metadata"]["name"]);
        if object["kind"] == "CustomResourceDefinition" {
            continue;
        }
        taken(&mut object["metadata"]["labels"], "team", "platform").context(what.clone())?;
        let added = match (object["kind"].as_str(), object["metadata"]["name"].as_str()) {
            (Some("Deployment"), _) => Some("the Deployment"),
            (Some("Service"), Some("etch")) => Some("the Service"),
            (Some("ServiceAccount"), _) => Some("the service account"),
            _ => None,
        };
        if let Some(added) = added {
            taken(&mut object["metadata"]["annotations"], "on", added).context(what)?;
            without_none(&mut object["metadata"], "annotations");
        }
        if object["kind"] == "Deployment" {
            let template = &mut object["spec"]["template"];
            taken(&mut template["metadata"]["labels"], "team", "platform")?;
            taken(&mut template["metadata"]["labels"], "on", "pods")?;
            taken(&mut template["metadata"]["annotations"], "on", "pods")?;
            let variables = template["spec"]["containers"][0]["env"].as_array_mut().context("env")?;
            let index = variables.iter().position(|variable| variable["name"] == "ETCH_LOG");
            variables.remove(index.context("no ETCH_LOG")?);
        }
    }
    assert_eq!(extended, plain);
    Ok(())
}

/// Takes a text out of a map.
fn taken(map: &mut Value, key: &str, expected: &str) -> Result<()> {
    let found = map.as_object_mut().and_then(|map| map.remove(key)).with_context(|| format!("no {key}"))?;
    ensure!(found == expected, "{key}: {found}");
    Ok(())
}

fn without_none(object: &mut Value, field: &str) {
    if let Some(fields) = object.as_object_mut()
        && fields.get(field).is_some_and(|map| *map == json!({}))
    {
        fields.remove(field);
    }
}

#[test]
fn policies_are_values() -> Result<()> {
    let values = "policy.spec.guard=Deny,policies.databases.selector.groups={db.example.com},\
                  policies.databases.settle=24h";
    let objects = rendered(&["--set", values])?;
    let default = named(&objects, "DefaultsPolicy", "default")?;
    assert_eq!(default["spec"], json!({ "selector": {}, "mode": "Persist", "guard": "Deny" }));
    let databases = named(&objects, "DefaultsPolicy", "databases")?;
    assert_eq!(databases["spec"], json!({ "selector": { "groups": ["db.example.com"] }, "settle": "24h" }));
    let own = "policy.create=false,policies.default.selector.groups={db.example.com}";
    let objects = rendered(&["--set", own])?;
    let default = named(&objects, "DefaultsPolicy", "default")?;
    assert_eq!(default["spec"], json!({ "selector": { "groups": ["db.example.com"] } }));
    Ok(())
}

/// The schema of the values has the fields that a policy has.
#[test]
fn policies_in_values_have_the_fields_of_policies() -> Result<()> {
    let schema = std::fs::read_to_string(root().join("config/chart/values.schema.json"))?;
    let schema: Value = serde_json::from_str(&schema)?;
    let crds = documents(&Generated::Crds.path())?;
    let policy = named(&crds, "CustomResourceDefinition", "defaultspolicies.etch-operator.io")?;
    let spec =
        &policy["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    let fields = |object: &Value| -> Vec<String> {
        object.as_object().into_iter().flatten().map(|(field, _)| field.clone()).collect()
    };
    let ours = &schema["definitions"]["policySpec"]["properties"];
    let (mut ours_sorted, mut theirs) = (fields(ours), fields(spec));
    ours_sorted.sort();
    theirs.sort();
    assert_eq!(ours_sorted, theirs);
    for (field, schema) in ours.as_object().into_iter().flatten() {
        assert_eq!(schema["enum"], spec[field]["enum"], "{field}");
    }
    Ok(())
}

#[test]
fn mistakes_in_values_are_refused() -> Result<()> {
    for refused in [
        "policy.mode=Perhaps",
        "replica=3",
        "rbac.groups={*}",
        "rbac.groups={*.example.com}",
        "rbac.groups={etch-operator.io}",
        "rbac.groups={apps}",
        "rbac.groups={a.example.com,rbac.authorization.k8s.io}",
        "rbac.groups={flowcontrol.apiserver.k8s.io}",
        "admission.certificates=Mine",
        "policies.databases.setle=24h",
        "policies.databases.settle=24h",
        "policy.spec.mode=Audit",
        "policies.default.selector.groups={db.example.com}",
        "podLabels.app\\.kubernetes\\.io/name=mine",
        "extraEnv[0].value=nameless",
        "networkPolicy.apiServerPorts={}",
        "networkPolicy.metricsFrom[0].cidr=192.0.2.0/28",
        "monitoring.labels.app\\.kubernetes\\.io/name=mine",
        "statusGuard.enabled=true,policy.spec.storedVersions=Trim",
        "statusGuard.enabled=true,args={--admission-url=https://etch.example.com}",
        "statusGuard.enabled=true,policies.a.selector.groups={a.example.com},policies.a.storedVersions=Trim",
    ] {
        assert!(helm(&["--set", refused]).is_err(), "{refused} should be refused");
    }
    for (mode, reason) in [
        ("policy.mode=persist", "'/policy/mode': value must be one of 'Persist', 'Audit', 'Ignore'"),
        (
            "policy.spec.mode=persist",
            "'/policy/spec/mode': value must be one of 'Persist', 'Audit', 'Ignore'",
        ),
        ("policy.spec.mode=Audit", "policy.spec.mode: set policy.mode instead, to Persist, Audit or Ignore"),
    ] {
        let refused = helm(&["--set", mode]).err().map(|error| format!("{error:#}")).unwrap_or_default();
        assert!(refused.contains(reason) && !refused.contains("false schema"), "{mode}: {refused}");
    }
    Ok(())
}

#[test]
fn the_network_policy_has_the_ports_and_peers_of_the_values() -> Result<()> {
    let values = json!({ "admission": { "enabled": true }, "networkPolicy": {
        "apiServerPorts": [7443],
        "extraEgress": [{ "ports": [{ "port": 53, "protocol": "UDP" }] }],
        "metricsFrom": [{ "namespaceSelector": { "matchLabels": { "a": "b" } } }],
        "admissionFrom": [{ "ipBlock": { "cidr": "192.0.2.0/28" } }],
    } });
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), values.to_string())?;
    let path = file.path().to_str().context("a path")?;
    let port = |port: u16| json!([{ "port": port, "protocol": "TCP" }]);
    let asked = &values["networkPolicy"];
    let objects = rendered(&["--values", path])?;
    let policy = &named(&objects, "NetworkPolicy", "etch")?["spec"];
    let ingress = json!([
        { "ports": port(8080), "from": asked["metricsFrom"] },
        { "ports": port(8443), "from": asked["admissionFrom"] },
    ]);
    assert_eq!(policy["ingress"], ingress);
    assert_eq!(policy["egress"], json!([{ "ports": port(7443) }, asked["extraEgress"][0]]));
    // Without admission no pod may connect to its port, and a peer of one port is none of the other.
    let objects = rendered(&["--values", path, "--set", "admission.enabled=false"])?;
    let policy = &named(&objects, "NetworkPolicy", "etch")?["spec"];
    assert_eq!(policy["ingress"], json!([{ "ports": port(8080), "from": asked["metricsFrom"] }]));
    let objects = rendered(&["--values", path, "--set", "networkPolicy.metricsFrom=null"])?;
    let policy = &named(&objects, "NetworkPolicy", "etch")?["spec"];
    assert_eq!(policy["ingress"][0], json!({ "ports": port(8080) }));
    assert_eq!(policy["ingress"][1]["from"], asked["admissionFrom"]);
    Ok(())
}

#[test]
fn pods_are_placed_and_scrapes_selected_by_values() -> Result<()> {
    let values = "monitoring.enabled=true,monitoring.labels.release=prometheus,priorityClassName=,\
                  topologySpreadConstraints=null";
    let objects = rendered(&["--set", values])?;
    for (kind, label) in [
        ("ServiceMonitor", json!("prometheus")),
        ("PrometheusRule", json!("prometheus")),
        ("Service", Value::Null),
    ] {
        let labels = &named(&objects, kind, "etch")?["metadata"]["labels"];
        assert_eq!(
            (&labels["release"], &labels["app.kubernetes.io/name"]),
            (&label, &json!("etch")),
            "{kind}"
        );
    }
    let pod = &named(&objects, "Deployment", "etch")?["spec"]["template"]["spec"];
    ensure!(pod["priorityClassName"].is_null() && pod["topologySpreadConstraints"].is_null(), "{pod}");
    let objects = rendered(&["--set", "priorityClassName=system-cluster-critical"])?;
    let pod = &named(&objects, "Deployment", "etch")?["spec"]["template"]["spec"];
    assert_eq!(pod["priorityClassName"], "system-cluster-critical");
    Ok(())
}

/// CRDs may be in a group that ends as those of Kubernetes do.
#[test]
fn groups_of_crds_can_be_granted() -> Result<()> {
    for group in ["gateway.networking.k8s.io", "snapshot.storage.k8s.io", "a.io", "stable.example.com"] {
        helm(&["--set", &format!("rbac.groups={{{group}}}")]).context(group)?;
    }
    Ok(())
}

/// What Helm prints after an installation with these flags. `helm template` renders no notes, so a copy of
/// the chart has them in an object.
fn notes(flags: &[&str]) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let status = Command::new("cp").arg("-r").arg(root().join("config/chart")).arg(folder.path()).status()?;
    ensure!(status.success(), "{status}");
    let chart = folder.path().join("chart");
    let text = std::fs::read_to_string(chart.join("templates/NOTES.txt"))?;
    let object = "kind: Notes\nmetadata: { name: notes }\ntext: {{ include \"notes\" . | toJson }}\n";
    let template = format!("{{{{- define \"notes\" }}}}{text}{{{{- end }}}}{object}");
    std::fs::write(chart.join("templates/shown-notes.yaml"), template)?;
    let objects = parse_documents(&helm_template(&chart, flags)?)?;
    let text = named(&objects, "Notes", "notes")?["text"].as_str().context("no text")?;
    Ok(text.to_owned())
}

/// The notes say what the values have granted and what they ask for, and no command undoes it.
#[test]
fn notes_fit_the_values() -> Result<()> {
    let (write, read) = ("etch rbac --live | kubectl apply", "etch rbac --live --read-only | kubectl apply");
    for (values, shown, hidden) in [
        (
            "",
            &[
                "no access",
                write,
                "the mode Persist",
                "enforce=restricted",
                "wait --for=delete pod",
                "etch clean &&",
            ][..],
            &[read, "Fail"][..],
        ),
        (
            "rbac.clusterWide=true",
            &["read and patch the objects of every API group"],
            &["no access", "etch rbac"],
        ),
        (
            "rbac.groups={a.example.com,b.example.com}",
            &["a.example.com, b.example.com", write],
            &["no access"],
        ),
        (
            "rbac.readOnly=true,policy.mode=Audit",
            &["no access", read, "the mode Audit", "writes no object"],
            &[write, "WARNING", "patch the objects"],
        ),
        (
            "rbac.readOnly=true,policy.mode=Audit,rbac.clusterWide=true",
            &["may read the objects of every API group"],
            &["read and patch", "etch rbac"],
        ),
        ("rbac.readOnly=true", &["WARNING"], &[write]),
        ("policy.create=false", &["No policy selects a CRD yet"], &["`default`"]),
        (
            "policy.create=false,policies.databases.selector.groups={db.example.com}",
            &["policies select: databases."],
            &["`default`", "No policy"],
        ),
        ("admission.enabled=true", &["the webhook configurations `etch` stay", "Fail"], &[]),
    ] {
        let notes = notes(&["--set", values])?;
        for text in shown {
            ensure!(notes.contains(text), "{values}: no {text:?} in\n{notes}");
        }
        for text in hidden {
            ensure!(!notes.contains(text), "{values}: {text:?} in\n{notes}");
        }
        ensure!(notes.contains("namespace etch-system"), "{values}: {notes}");
        ensure!(!notes.contains("--service-account"), "{values}: {notes}");
    }
    ensure!(
        notes(&["--namespace", "platform"])?.contains("etch rbac --live --service-account platform:etch |")
    );
    Ok(())
}

/// With `rbac.readOnly` no value grants a write, whichever other values grant access.
#[test]
fn read_only_is_read_only_whatever_else_is_granted() -> Result<()> {
    let values = "rbac.readOnly=true,rbac.clusterWide=true,rbac.groups={a.example.com},policy.mode=Audit";
    let objects = rendered(&["--set", values])?;
    for name in ["etch-all-groups", "etch-groups"] {
        let rules = named(&objects, "ClusterRole", name)?["rules"].as_array().context("rules")?;
        ensure!(!rules.is_empty(), "{name} grants nothing");
        for rule in rules {
            assert_eq!(rule["verbs"], json!(["list", "watch"]), "{name}");
        }
    }
    Ok(())
}

/// The groups of the chart's values are granted as `etch rbac` would print it, and aggregated in the same
/// way.
#[test]
fn the_chart_grants_what_etch_rbac_prints() -> Result<()> {
    for (access, flags) in [(Access::Write, ""), (Access::Read, ",rbac.readOnly=true")] {
        let grant = Grant { group: GROUP.to_owned(), plural: "*".to_owned(), name: None, access };
        let expected = serde_json::to_value(role("etch-groups", [grant]))?;
        let objects = rendered(&["--set", &format!("rbac.groups={{{GROUP}}}{flags}")])?;
        let found = named(&objects, "ClusterRole", "etch-groups")?;
        assert_eq!(found["rules"], expected["rules"]);
        for (label, value) in expected["metadata"]["labels"].as_object().context("labels")? {
            assert_eq!(&found["metadata"]["labels"][label], value, "{label}");
        }
    }
    Ok(())
}
