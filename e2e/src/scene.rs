//! A cluster with Etch installed as it is shipped: CRDs, RBAC, the default policy.
//! The operator has no permission beyond `config/rbac` and one rule per group.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::sync::Mutex;

use crate::cluster::{CRDS, Cluster, GUARD, Patch, crd, documents, parse_documents};
use crate::control_plane::{ControlPlane, Options};
use crate::install::kustomize;
use crate::operator::{Operator, binary};
use crate::process::{self, Ended};

/// The controller that fills a role with the rules of those that its labels select, as
/// kube-controller-manager names it.
pub const AGGREGATION: &str = "clusterrole-aggregation-controller";
/// The controllers that do StorageVersionMigrations. Without the second, the first one panics.
pub const MIGRATOR: [&str; 2] = ["storage-version-migrator-controller", "garbage-collector-controller"];

/// The group of the CRD that [`Scene::barrier`] makes; its name is in the names of all that the operator
/// writes for it.
pub const BARRIER: &str = "barrier.example.com";

/// Where the operator lives.
pub const NAMESPACE: &str = "etch-system";

/// A control plane with Etch installed, and not yet running.
pub struct Scene {
    /// The cluster, as its administrator.
    pub cluster: Cluster,
    /// The control plane itself.
    pub control_plane: ControlPlane,
    kubeconfig: PathBuf,
    dir: TempDir,
    barriers: Mutex<usize>,
}

impl Scene {
    /// Starts a control plane and installs Etch, with permission for the objects of these groups.
    ///
    /// # Errors
    /// Anything that is not as it should be.
    pub async fn start(groups: &[&str]) -> Result<Self> {
        Self::start_with(groups, |_| ()).await
    }

    /// Starts a control plane that aggregates roles, and installs Etch as kustomize renders a folder of
    /// `config`, with no permission for any object.
    ///
    /// # Errors
    /// Anything that is not as it should be.
    pub async fn installed(folder: &str) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let mut options = Options::new(dir.path().join("cluster"));
        options.controllers = vec![AGGREGATION.to_owned()];
        let control_plane = ControlPlane::start(options).await?;
        let cluster = Cluster::of(&control_plane).await?;
        apply_all(&cluster, &parse_documents(&kustomize(folder)?)?).await?;
        let kubeconfig = control_plane.service_account_kubeconfig(0, NAMESPACE, "etch").await?;
        Ok(Self { cluster, control_plane, kubeconfig, dir, barriers: Mutex::default() })
    }

    /// The kubeconfig of the operator's service account.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The same, with other options for the control plane.
    ///
    /// # Errors
    /// Anything that is not as it should be.
    pub async fn start_with(groups: &[&str], adjust: impl FnOnce(&mut Options)) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let mut options = Options::new(dir.path().join("cluster"));
        adjust(&mut options);
        let control_plane = ControlPlane::start(options).await?;
        let cluster = Cluster::of(&control_plane).await?;
        install(&cluster).await?;
        let kubeconfig = control_plane.service_account_kubeconfig(0, NAMESPACE, "etch").await?;
        let scene = Self { cluster, control_plane, kubeconfig, dir, barriers: Mutex::default() };
        for group in groups {
            scene.grant(group).await?;
        }
        Ok(scene)
    }

    /// Lets the operator process the objects of a group: the rule that its users add.
    ///
    /// # Errors
    /// It is refused.
    pub async fn grant(&self, group: &str) -> Result<()> {
        let name = format!("etch-{group}");
        let role = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": { "name": name },
            "rules": [{
                "apiGroups": [group], "resources": ["*"], "verbs": ["get", "list", "watch", "patch"],
            }],
        });
        apply(&self.cluster, &role).await?;
        bind(&self.cluster, &name).await
    }

    /// Sets the time at which an operator that is stopped, or has yet to read its report, verifies the
    /// objects of a CRD to the past: as if the time had come at which no API server lags behind any more.
    ///
    /// # Errors
    /// There is no report, or the change is refused.
    pub async fn verify_now(&self, crd: &str) -> Result<()> {
        verify_now(&self.cluster, crd).await
    }

    /// Waits until the operator has done the main job once more, for a CRD and an object of its own, made
    /// when it is first called: what it had to do before that and has not done, it does not do. So absence is
    /// proved without a clock.
    ///
    /// # Errors
    /// The operator does not do it.
    pub async fn barrier(&self) -> Result<()> {
        // One at a time: a schema of fewer fields after one of more would leave a stored field that no schema
        // knows.
        let mut rounds = self.barriers.lock().await;
        let barriers = |fields: usize| {
            let fields = (0..fields)
                .map(|field| (format!("size{field}"), json!({ "type": "integer", "default": field })));
            let spec = json!({ "type": "object", "properties": fields.collect::<Map<_, _>>() });
            let schema = json!({ "type": "object", "properties": { "spec": spec } });
            crd(BARRIER, "Barrier", &[("v1", true, schema)])
        };
        if *rounds == 0 {
            self.grant(BARRIER).await?;
            self.cluster.apply_crd(&barriers(0)).await?;
            let object = json!({
                "apiVersion": format!("{BARRIER}/v1"), "kind": "Barrier",
                "metadata": { "name": "marker" }, "spec": {},
            });
            let collection = format!("/apis/{BARRIER}/v1/namespaces/default/barriers");
            self.cluster.create(&collection, "barrier", &object).await?;
        }
        *rounds += 1;
        self.cluster.apply_crd(&barriers(*rounds)).await?;
        drop(rounds);
        let crd = format!("barriers.{BARRIER}");
        self.cluster.persisted(&crd, "AllPersisted", GUARD).await.map(drop).context("a barrier")
    }

    /// Takes back what [`Self::grant`] gave.
    ///
    /// # Errors
    /// It is refused.
    pub async fn revoke(&self, group: &str) -> Result<()> {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/etch-{group}");
        self.cluster.delete(&path).await.map(drop)
    }

    /// Starts the operator with its own service account; `flags` come after a short `--settle`.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn operator(&self, flags: &[&str]) -> Result<Operator> {
        let mut all = vec!["--settle=200ms", "--listen=127.0.0.1:0"];
        all.extend(flags);
        Operator::start(&self.kubeconfig, &self.log_path(), &all)
    }

    /// Runs a command of `etch` as the administrator.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn etch(&self, arguments: &[&str]) -> Result<Ended> {
        process::etch(&self.control_plane.kubeconfig(0), arguments)
    }

    /// The same with its output in JSON: its exit status, and what it prints.
    ///
    /// # Errors
    /// It cannot be started, or prints no JSON.
    pub fn etch_json(&self, arguments: &[&str]) -> Result<(Option<i32>, Value)> {
        let ended = self.etch(&[arguments, &["-o", "json"]].concat())?;
        Ok((ended.code, ended.json()?))
    }

    /// Starts the operator as it is measured: with as few lines in its log as users have.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn measured(&self, flags: &[&str]) -> Result<Operator> {
        let is_listening = flags.iter().any(|flag| flag.starts_with("--listen="));
        let listen: &[&str] = if is_listening { &[] } else { &["--listen=127.0.0.1:0"] };
        let all = [&["--settle=200ms"], listen, flags].concat();
        Operator::start_of(binary()?, &self.kubeconfig, &self.log_path(), &all, &[("ETCH_LOG", "info")])
    }

    /// Starts one of several operators, with a log of its own: `etch-NAME.log`.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn replica(&self, name: &str, flags: &[&str]) -> Result<Operator> {
        let mut all = vec!["--settle=200ms"];
        if !flags.iter().any(|flag| flag.starts_with("--listen")) {
            all.push("--listen=127.0.0.1:0");
        }
        all.extend(flags);
        Operator::start(&self.kubeconfig, &self.dir.path().join(format!("etch-{name}.log")), &all)
    }

    /// Starts an operator of another binary, with more in its environment and a log of its own:
    /// `etch-NAME.log`.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn operator_of(&self, binary: &Path, name: &str, environment: &[(&str, &str)]) -> Result<Operator> {
        let log = self.dir.path().join(format!("etch-{name}.log"));
        let flags = ["--settle=200ms", "--listen=127.0.0.1:0"];
        Operator::start_of(binary, &self.kubeconfig, &log, &flags, environment)
    }

    /// Writes a file that is gone with the scene; its path.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn file(&self, name: &str, text: &str) -> Result<String> {
        let path = self.dir.path().join(name);
        std::fs::write(&path, text)?;
        Ok(path.display().to_string())
    }

    /// Where the operator logs to.
    pub fn log_path(&self) -> PathBuf {
        self.dir.path().join("etch.log")
    }

    /// Leaves the directory with all logs in place when this is dropped.
    pub fn keep(&mut self) {
        self.dir.disable_cleanup(true);
    }

    /// The requests of the operator's service account in the audit log, each once, that a filter takes.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn requests(&self, mut filter: impl FnMut(&Value) -> bool) -> Result<Vec<Value>> {
        let text = std::fs::read_to_string(self.control_plane.audit_log(0))?;
        let mut found = Vec::new();
        for line in text.lines() {
            let Ok(event) = serde_json::from_str::<Value>(line) else { continue };
            let ours = event["user"]["username"] == format!("system:serviceaccount:{NAMESPACE}:etch");
            let reported = matches!(event["stage"].as_str(), Some("ResponseComplete" | "ResponseStarted"));
            if ours && reported && filter(&event) {
                found.push(event);
            }
        }
        Ok(found)
    }

    /// How many requests the operator has made to the objects of a group.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn requests_to(&self, group: &str, verbs: &[&str]) -> Result<usize> {
        let wanted = |event: &Value| {
            event["objectRef"]["apiGroup"] == group && verbs.iter().any(|verb| event["verb"] == *verb)
        };
        Ok(self.requests(wanted)?.len())
    }

    /// Sets the spec of a policy, creating it if need be.
    ///
    /// # Errors
    /// It is refused.
    pub async fn policy(&self, name: &str, spec: Value) -> Result<()> {
        let policy = json!({
            "apiVersion": "etch-operator.io/v1alpha1",
            "kind": "DefaultsPolicy",
            "metadata": { "name": name },
            "spec": spec,
        });
        let path = format!("/apis/etch-operator.io/v1alpha1/defaultspolicies/{name}");
        self.cluster.patch(&path, Patch::Apply, "admin", &policy).await?.ok().map(drop)
    }

    /// The report on a CRD.
    ///
    /// # Errors
    /// There is none.
    pub async fn report(&self, crd: &str) -> Result<Value> {
        self.cluster.get(&format!("/apis/etch-operator.io/v1alpha1/defaultsreports/{crd}")).await
    }
}

/// Installs Etch as it is shipped, without the Deployment.
async fn install(cluster: &Cluster) -> Result<()> {
    for crd in etch_admission::installed_crds::crds() {
        cluster.apply_crd(&serde_json::to_value(crd)?).await?;
    }
    let config = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../config"));
    apply_file(cluster, &config.join("namespace/namespace.yaml")).await?;
    for file in [
        "service-account.yaml",
        "role.yaml",
        "role-binding.yaml",
        "lease-role.yaml",
        "lease-role-binding.yaml",
    ] {
        apply_file(cluster, &config.join("rbac").join(file)).await?;
    }
    // Without these a crowd of requests at the start can cost the Lease.
    for file in ["priority-level.yaml", "lease-flow-schema.yaml", "flow-schema.yaml"] {
        apply_file(cluster, &config.join("flowcontrol").join(file)).await?;
    }
    apply_file(cluster, &config.join("policy/policy.yaml")).await
}

/// See [`Scene::verify_now`].
///
/// # Errors
/// There is no report, or the change is refused.
pub async fn verify_now(cluster: &Cluster, crd: &str) -> Result<()> {
    let path = format!("/apis/etch-operator.io/v1alpha1/defaultsreports/{crd}/status");
    let past = json!({ "status": { "verifyAt": "2020-01-01T00:00:00Z" } });
    cluster.patch(&path, Patch::Merge, "e2e", &past).await?.ok().map(drop)
}

/// Applies objects in their order; CRDs are waited for.
///
/// # Errors
/// One is refused.
pub async fn apply_all(cluster: &Cluster, objects: &[Value]) -> Result<()> {
    for object in objects {
        if object["kind"] == "CustomResourceDefinition" {
            cluster.apply_crd(object).await?;
        } else {
            apply(cluster, object).await.with_context(|| object["metadata"]["name"].to_string())?;
        }
    }
    Ok(())
}

async fn apply_file(cluster: &Cluster, path: &Path) -> Result<()> {
    for document in documents(path)? {
        apply(cluster, &document).await?;
    }
    Ok(())
}

/// Binds a ClusterRole to the service account, under the role's name.
async fn bind(cluster: &Cluster, role: &str) -> Result<()> {
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": { "name": role },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role },
        "subjects": [{ "kind": "ServiceAccount", "name": "etch", "namespace": NAMESPACE }],
    });
    apply(cluster, &binding).await
}

/// Applies one object of a kind that the installation uses.
///
/// # Errors
/// It is refused, has a field that the API server does not know, or is of another kind.
pub async fn apply(cluster: &Cluster, object: &Value) -> Result<()> {
    let path = format!("{}?fieldManager=admin&force=true&fieldValidation=Strict", place(object)?);
    let body = serde_json::to_vec(object)?;
    cluster.send("PATCH", &path, "application/apply-patch+yaml", body).await?.ok().map(drop)
}

/// The path of an object of a kind that the installation uses.
///
/// # Errors
/// It is of another kind, or has no name.
pub fn place(object: &Value) -> Result<String> {
    let kind = object["kind"].as_str().unwrap_or_default();
    let name = object["metadata"]["name"].as_str().context("a name")?;
    let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let admission = "/apis/admissionregistration.k8s.io/v1";
    let flow_control = "/apis/flowcontrol.apiserver.k8s.io/v1";
    Ok(match kind {
        "Namespace" => format!("/api/v1/namespaces/{name}"),
        "ServiceAccount" => format!("/api/v1/namespaces/{namespace}/serviceaccounts/{name}"),
        "ClusterRole" => format!("{rbac}/clusterroles/{name}"),
        "ClusterRoleBinding" => format!("{rbac}/clusterrolebindings/{name}"),
        "Role" => format!("{rbac}/namespaces/{namespace}/roles/{name}"),
        "RoleBinding" => format!("{rbac}/namespaces/{namespace}/rolebindings/{name}"),
        "Deployment" => format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}"),
        "Service" => format!("/api/v1/namespaces/{namespace}/services/{name}"),
        "PodDisruptionBudget" => {
            format!("/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/{name}")
        }
        "PriorityClass" => format!("/apis/scheduling.k8s.io/v1/priorityclasses/{name}"),
        "NetworkPolicy" => {
            format!("/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies/{name}")
        }
        "FlowSchema" => format!("{flow_control}/flowschemas/{name}"),
        "PriorityLevelConfiguration" => format!("{flow_control}/prioritylevelconfigurations/{name}"),
        "ValidatingAdmissionPolicy" => format!("{admission}/validatingadmissionpolicies/{name}"),
        "ValidatingAdmissionPolicyBinding" => format!("{admission}/validatingadmissionpolicybindings/{name}"),
        "DefaultsPolicy" => format!("/apis/etch-operator.io/v1alpha1/defaultspolicies/{name}"),
        "CustomResourceDefinition" => format!("{CRDS}/{name}"),
        other => anyhow::bail!("{other} is not part of an installation"),
    })
}
