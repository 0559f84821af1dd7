//! The shipped files can be installed unchanged: a real API server takes every file, and RBAC grants what the
//! files list.
//!
//! The control plane runs no pods, so the operator runs outside. Of the controllers it runs the one that
//! aggregates roles.

mod chart;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::access::{attributes, granted_soon};
use e2e::cluster::{Answer, Cluster, GUARD, crd, documents, eventually, parse_documents};
use e2e::control_plane::{ControlPlane, Options};
use e2e::install::{Generated, Tool, helm, kube_score, kustomize, root, versioned};
use e2e::operator::Operator;
use e2e::scene::{AGGREGATION, NAMESPACE, apply, place};
use serde_json::{Value, json};
use tempfile::TempDir;

const GROUP: &str = "stable.example.com";
/// Those that install the operator.
const OVERLAYS: [&str; 6] =
    ["default", "cluster-wide", "audit-only", "admission", "admission-self-managed", "admission-service-ca"];
const CRONTABS: &str = "crontabs.stable.example.com";
/// What Etch may be granted on custom resources.
const GRANTED: [&str; 4] = ["get", "list", "watch", "patch"];

#[test]
fn generated_files_are_what_they_are_made_from() -> Result<()> {
    for file in versioned()? {
        let found = std::fs::read_to_string(file.path)?;
        ensure!(found == file.text, "{} has another version; run `just generate` and commit it", file.name);
    }
    for file in Generated::ALL {
        let found = std::fs::read_to_string(file.path()).with_context(|| file.name())?;
        ensure!(found == file.text()?, "{} is out of date; run `just generate` and commit it", file.name());
    }
    Ok(())
}

/// An image that is set in `config/manager` is in every overlay: to apply another one does not bring the old
/// image back. One that is set in an overlay is in that one.
#[test]
fn every_overlay_keeps_the_image_that_is_set() -> Result<()> {
    let program = Tool::Kustomize.program()?;
    let copy = || -> Result<TempDir> {
        let copy = tempfile::tempdir()?;
        let status = Command::new("cp").arg("-r").arg(root().join("config")).arg(copy.path()).status()?;
        ensure!(status.success());
        Ok(copy)
    };
    let set = |folder: &Path, image: &str| -> Result<()> {
        let mut edit = Command::new(&program);
        edit.args(["edit", "set", "image", &format!("etch={image}")]).current_dir(folder);
        let status = edit.status()?;
        ensure!(status.success(), "{}: {status}", folder.display());
        Ok(())
    };
    for image in
        ["registry.example.com/etch:9.9.9", "registry.example.com:5000/a/etch@sha256:0123456789abcdef"]
    {
        let copy = copy()?;
        let config = copy.path().join("config");
        set(&config.join("manager"), image)?;
        let mut with_image = BTreeSet::new();
        for folder in std::fs::read_dir(&config)? {
            let folder = folder?.path();
            if folder.join("kustomization.yaml").exists() {
                let images = images(&folder)?;
                ensure!(images.iter().all(|found| found == image), "{}: {images:?}", folder.display());
                with_image.extend(images.first().and(folder.file_name()).map(OsStr::to_owned));
            }
        }
        for overlay in OVERLAYS {
            ensure!(with_image.contains(OsStr::new(overlay)), "{overlay} installs no Deployment");
        }
    }
    let (copy, image) = (copy()?, "registry.example.com/etch:9.9.9");
    for overlay in OVERLAYS {
        let folder = copy.path().join("config").join(overlay);
        set(&folder, image)?;
        assert_eq!(images(&folder)?, [image], "{overlay}");
    }
    Ok(())
}

/// The images of what an overlay installs.
fn images(folder: &Path) -> Result<Vec<String>> {
    let documents = parse_documents(&kustomize(folder.to_str().context("a path")?)?)?;
    let deployments = documents.iter().filter(|document| document["kind"] == "Deployment");
    let image = |deployment: &Value| deployment["spec"]["template"]["spec"]["containers"][0]["image"].clone();
    deployments.map(|deployment| Ok(serde_json::from_value(image(deployment))?)).collect()
}

#[test]
fn kube_score_finds_nothing_in_what_is_installed() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let scored = |name: &str, manifests: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, manifests)?;
        kube_score(&file)
    };
    for overlay in OVERLAYS {
        let (passed, wording) = scored(overlay, &kustomize(&format!("config/{overlay}"))?)?;
        ensure!(passed, "{overlay}:\n{wording}");
    }
    let everything = "monitoring.enabled=true,admission.enabled=true,rbac.clusterWide=true,rbac.groups={stable.example.com}";
    let (passed, wording) = scored("chart", &helm(&["--set", everything])?)?;
    ensure!(passed, "the chart:\n{wording}");
    let careless = kustomize("config/default")?.replace("readOnlyRootFilesystem: true", "privileged: true");
    ensure!(!scored("careless", &careless)?.0, "a privileged container is found");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shipped_files_install_and_grant_what_they_say() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut options = Options::new(dir.path().join("cluster"));
    options.controllers = vec![AGGREGATION.to_owned()];
    let control_plane = ControlPlane::start(options).await?;
    let cluster = Cluster::of(&control_plane).await?;

    let deployment = install(&cluster).await?;
    pods_are_admitted(&cluster, &deployment).await?;
    policies_are_checked(&cluster).await?;
    only_its_own_affairs_are_granted(&cluster).await?;
    let kubeconfig = control_plane.service_account_kubeconfig(0, NAMESPACE, "etch").await?;
    a_missing_rule_is_named_and_then_used(&cluster, &deployment, &kubeconfig, dir.path()).await?;
    all_groups_are_granted_by_the_overlay_only(&cluster).await?;
    installed_again_nothing_is_taken_away(&cluster).await
}

/// Applies `yaml/install.yaml`, document by document in its order; the Deployment comes back.
async fn install(cluster: &Cluster) -> Result<Value> {
    let documents = documents(&Generated::Install.path())?;
    let kinds: Vec<_> = documents.iter().map(|document| document["kind"].as_str().unwrap_or("")).collect();
    let (last, before) = kinds.split_last().context("an empty installation")?;
    // What needs the CRDs comes after everything else, so that one refusal leaves an operator that does
    // nothing yet.
    assert_eq!((kinds[0], *last), ("Namespace", "DefaultsPolicy"));
    assert!(!before.contains(last), "{kinds:?}");
    for document in &documents {
        if document["kind"] == "CustomResourceDefinition" {
            cluster.apply_crd(document).await?;
            let name = document["metadata"]["name"].as_str().context("a name")?;
            for wanted in ["Established", "NamesAccepted"] {
                eventually(GUARD, &format!("{name} {wanted}"), async || {
                    let condition = cluster.condition(name, wanted).await?;
                    Ok(condition.filter(|condition| condition.status == "True"))
                })
                .await?;
            }
            assert_eq!(cluster.condition(name, "NonStructuralSchema").await?, None, "{name}");
        } else {
            apply(cluster, document).await.with_context(|| document["metadata"]["name"].to_string())?;
        }
    }
    let deployment = documents.into_iter().find(|document| document["kind"] == "Deployment");
    deployment.context("no Deployment")
}

/// The namespace enforces the restricted Pod Security Standard, and the Deployment's pods meet it.
async fn pods_are_admitted(cluster: &Cluster, deployment: &Value) -> Result<()> {
    let template = &deployment["spec"]["template"];
    let answer = dry_run(cluster, template).await?;
    assert_eq!(answer.code, 201, "{}", answer.body);
    let (pod, container) = ("/spec/securityContext", "/spec/containers/0/securityContext");
    // Each of these settings is needed: without it the same pod is refused.
    for (place, field, instead) in [
        (pod, "runAsNonRoot", json!(false)),
        (pod, "runAsUser", json!(0)),
        (pod, "seccompProfile", json!({"type": "Unconfined"})),
        (container, "allowPrivilegeEscalation", json!(true)),
        (container, "capabilities", json!({"drop": []})),
    ] {
        let mut weaker = template.clone();
        weaker.pointer_mut(place).context(place)?[field] = instead;
        let answer = dry_run(cluster, &weaker).await?;
        let message = answer.body["message"].as_str().unwrap_or_default();
        assert!(answer.code == 403 && message.contains("PodSecurity \"restricted"), "{field}: {message}");
    }
    // Not part of the standard, but of ours.
    let context = template.pointer(container).context("a security context")?;
    assert_eq!(context["readOnlyRootFilesystem"], true);
    Ok(())
}

async fn dry_run(cluster: &Cluster, template: &Value) -> Result<Answer> {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "spec": template["spec"]});
    pod["metadata"] = json!({"name": "etch-dry-run", "labels": template["metadata"]["labels"]});
    let path = format!("/api/v1/namespaces/{NAMESPACE}/pods?dryRun=All");
    cluster.send("POST", &path, "application/json", serde_json::to_vec(&pod)?).await
}

/// The shipped policy is in force as it is written, and a policy with a mistake is refused with its place.
async fn policies_are_checked(cluster: &Cluster) -> Result<()> {
    let policies = "/apis/etch-operator.io/v1alpha1/defaultspolicies";
    let default = cluster.get(&format!("{policies}/default")).await?;
    assert_eq!(default["spec"], json!({"mode": "Persist", "selector": {}}));
    for policy in documented_policies()? {
        let path = format!("{policies}?fieldValidation=Strict&dryRun=All");
        cluster.send("POST", &path, "application/json", serde_json::to_vec(&policy)?).await?.ok()?;
    }
    for (spec, field) in [
        (json!({"settle": "soon"}), "spec.settle"),
        (json!({"mode": "Perhaps"}), "spec.mode"),
        (json!({"ownership": "Mine"}), "spec.ownership"),
        (json!({"hiddenFields": "Keep"}), "spec.hiddenFields"),
        (json!({"maxWritesPerSecond": 0}), "spec.maxWritesPerSecond"),
        (json!({"stopAfterRejected": 0}), "spec.stopAfterRejected"),
        (json!({"selector": {"groups": GROUP}}), "spec.selector.groups"),
        (json!({"setle": "10s"}), "spec.setle"),
    ] {
        let policy = json!({
            "apiVersion": "etch-operator.io/v1alpha1",
            "kind": "DefaultsPolicy",
            "metadata": {"name": "mistaken"},
            "spec": spec,
        });
        // As kubectl sends it.
        let path = format!("{policies}?fieldValidation=Strict");
        let answer = cluster.send("POST", &path, "application/json", serde_json::to_vec(&policy)?).await?;
        let message = answer.body["message"].as_str().unwrap_or_default();
        assert!(matches!(answer.code, 400 | 422) && message.contains(field), "{field}: {answer:?}");
    }
    Ok(())
}

/// The policies that the README shows, and the samples.
fn documented_policies() -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(root().join("README.md"))?;
    let blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
    let mut policies = blocks.map(parse_documents).collect::<Result<Vec<_>>>()?.concat();
    ensure!(!policies.is_empty(), "the README shows no policy");
    let operations = std::fs::read_to_string(root().join("docs/operations.md"))?;
    for file in std::fs::read_dir(root().join("config/samples"))? {
        let file = file?;
        let name = file.file_name().to_string_lossy().into_owned();
        if name.starts_with("policy-") || name == "pause.yaml" {
            policies.extend(documents(&file.path())?);
            ensure!(operations.contains(&format!("](../config/samples/{name})")), "{name} is not documented");
        }
    }
    for (number, policy) in policies.iter_mut().enumerate() {
        // There may be one of that name.
        policy["metadata"]["name"] = json!(format!("documented-{number}"));
    }
    Ok(policies)
}

/// Right after the installation the service account may do what its own work needs, and nothing to users'
/// objects.
async fn only_its_own_affairs_are_granted(cluster: &Cluster) -> Result<()> {
    for (group, resource, verbs) in [
        ("apiextensions.k8s.io", "customresourcedefinitions", &["get", "list", "watch"][..]),
        ("apiextensions.k8s.io", "customresourcedefinitions/status", &["patch"]),
        ("apiregistration.k8s.io", "apiservices", &["get"]),
        ("storagemigration.k8s.io", "storageversionmigrations", &["list"]),
        ("etch-operator.io", "defaultspolicies", &["list", "watch"]),
        ("etch-operator.io", "defaultsreports", &["create", "get", "patch"]),
        ("etch-operator.io", "defaultsreports/status", &["patch"]),
        ("authorization.k8s.io", "selfsubjectaccessreviews", &["create"]),
        ("authorization.k8s.io", "selfsubjectrulesreviews", &["create"]),
        ("events.k8s.io", "events", &["create", "patch"]),
        ("coordination.k8s.io", "leases", &[]),
        (GROUP, "crontabs", &[]),
        ("", "secrets", &[]),
        ("apps", "deployments", &[]),
        ("rbac.authorization.k8s.io", "clusterroles", &[]),
    ] {
        granted_soon(cluster, attributes(group, resource), verbs).await?;
    }
    for (name, verbs) in [("etch", &["create", "get", "update"][..]), ("another", &["create"])] {
        let mut lease = attributes("coordination.k8s.io", "leases");
        lease["namespace"] = json!(NAMESPACE);
        lease["name"] = json!(name);
        granted_soon(cluster, lease, verbs).await?;
    }
    Ok(())
}

/// Run as the Deployment runs it, Etch names the rule that it lacks; given the sample's rules, it does the
/// job.
async fn a_missing_rule_is_named_and_then_used(
    cluster: &Cluster,
    deployment: &Value,
    kubeconfig: &Path,
    dir: &Path,
) -> Result<()> {
    let spec = json!({"type": "object", "properties": {"replicas": {"type": "integer", "default": 1}}});
    let without = json!({"type": "object", "properties": {"spec": {
        "type": "object", "properties": {"replicas": {"type": "integer"}}}}});
    let with = json!({"type": "object", "properties": {"spec": spec}});
    cluster.apply_crd(&crd(GROUP, "CronTab", &[("v1", true, without)])).await?;
    let object = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "CronTab",
                        "metadata": {"name": "nightly"}, "spec": {}});
    let collection = format!("/apis/{GROUP}/v1/namespaces/default/crontabs");
    cluster.create(&collection, "user", &object).await?;
    cluster.apply_crd(&crd(GROUP, "CronTab", &[("v1", true, with)])).await?;

    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let args: Vec<_> = strings(&container["args"]);
    let (command, flags) = args.split_first().context("no arguments")?;
    ensure!(command == "run", "{args:?}");
    let mut flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    flags.extend(["--settle=100ms", "--listen=127.0.0.1:0"]);
    let operator = Operator::start(kubeconfig, &dir.join("etch.log"), &flags)?;
    let condition = cluster.persisted(CRONTABS, "Forbidden", Duration::from_secs(20)).await?;
    let rule = format!(
        r#"{{apiGroups: ["{GROUP}"], resources: ["crontabs"], verbs: ["get", "list", "watch", "patch"]}}"#
    );
    assert!(condition.message.contains(&rule), "{}", condition.message);
    for own in ["defaultspolicies.etch-operator.io", "defaultsreports.etch-operator.io"] {
        let reason = cluster.condition(own, "DefaultsPersisted").await?.map(|condition| condition.reason);
        ensure!(reason.is_none_or(|reason| reason == "NoDefaults"), "Etch has no work with {own}");
    }

    let sample = documents(&root().join("config/samples/grant.yaml"))?;
    let [role] = &sample[..] else { anyhow::bail!("one role: {sample:?}") };
    apply(cluster, role).await?;
    granted_soon(cluster, attributes(GROUP, "crontabs"), &GRANTED).await?;
    for (group, resource) in [(GROUP, "crontabs/status"), (GROUP, "others"), ("", "secrets")] {
        granted_soon(cluster, attributes(group, resource), &[]).await?;
    }
    cluster.persisted(CRONTABS, "AllPersisted", Duration::from_secs(40)).await?;
    let raw = cluster.raw(GROUP, "crontabs", Some("default"), "nightly").await?;
    assert_eq!(raw["spec"], json!({"replicas": 1}));
    operator.stop().await
}

/// `config/cluster-wide` is the installation and one role, which grants the same verbs on everything.
async fn all_groups_are_granted_by_the_overlay_only(cluster: &Cluster) -> Result<()> {
    let installed = documents(&Generated::Install.path())?;
    let mut overlay = parse_documents(&kustomize("config/cluster-wide")?)?;
    overlay.retain(|document| !installed.contains(document));
    let [role] = &overlay[..] else { anyhow::bail!("one role more: {overlay:?}") };
    apply(cluster, role).await?;
    for (group, resource) in [(GROUP, "crontabs"), ("example.org", "anything"), ("", "secrets")] {
        granted_soon(cluster, attributes(group, resource), &GRANTED).await?;
    }
    Ok(())
}

/// An upgrade applies the same files once more. They do not own the aggregated rules.
async fn installed_again_nothing_is_taken_away(cluster: &Cluster) -> Result<()> {
    let installed = documents(&Generated::Install.path())?;
    let is_collecting = |document: &&Value| document["aggregationRule"].is_object();
    let collecting = installed.iter().find(is_collecting).context("a role that collects")?;
    let path = place(collecting)?;
    let before = cluster.get(&path).await?["rules"].clone();
    apply(cluster, collecting).await?;
    assert_eq!(cluster.get(&path).await?["rules"], before);
    assert_eq!(before.as_array().map(Vec::len), Some(2), "the rules of two roles: {before}");
    Ok(())
}

fn strings(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(|item| item.as_str().map(str::to_owned)).collect()
}
