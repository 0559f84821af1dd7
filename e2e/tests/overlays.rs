//! Each overlay as it is shipped: the main job under those that allow it, no write under the one that does
//! not, and no permission that is not used.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::access::{attributes, granted_soon};
use e2e::admission::freeze;
use e2e::cluster::{CRDS, Cluster, Patch, crd, eventually, parse_documents, with_spec};
use e2e::install::kustomize;
use e2e::permissions::{Differences, Permission, compare, granted, refused, used};
use e2e::scene::{NAMESPACE, Scene, apply, apply_all, place};
use serde_json::{Value, json};

const SOON: Duration = Duration::from_secs(60);
/// Etch's own CRDs.
const OWN: usize = 3;
const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";

#[tokio::test(flavor = "multi_thread")]
async fn each_overlay_does_what_it_says_with_no_more_than_it_grants() -> Result<()> {
    let scene = Scene::installed("config/default").await?;
    let cluster = &scene.cluster;
    let base = parse_documents(&kustomize("config/default")?)?;

    // The default, with the rules that `etch rbac` prints.
    let one = Group::create(cluster, "one.example.com", 60).await?;
    frozen(cluster, &one).await?;
    apply(cluster, &rbac(&scene, &[])?).await?;
    one.is_granted(cluster, &["get", "list", "watch", "patch"]).await?;
    let operator = scene.operator(&["--max-writes-per-second=25"])?;
    one.add_default(cluster).await?;
    one.edit_ahead(cluster).await?;
    cluster.persisted(&one.crd(), "ObjectsRejected", SOON).await?;
    ensure!(one.without_default(cluster).await? == ["frozen"], "all but the frozen one are stored");
    // The same event once more raises the count of the first.
    scene.policy("default", json!({ "mode": "Ignore" })).await?;
    cluster.persisted(&one.crd(), "Ignored", SOON).await?;
    scene.policy("default", json!({ "mode": "Persist" })).await?;
    cluster.persisted(&one.crd(), "ObjectsRejected", SOON).await?;
    let roles = [base, vec![rbac(&scene, &[])?]].concat();
    eventually(SOON, "every permission is needed", async || {
        all_is_needed(&scene, &roles, |_| true).map(Some)
    })
    .await?;
    assert_eq!(refused(&scene.requests(|_| true)?), BTreeSet::<Permission>::new());

    // Every group at once.
    cluster.delete(&format!("{ROLES}/etch-crds")).await?;
    let overlay = parse_documents(&kustomize("config/cluster-wide")?)?;
    apply_all(cluster, &overlay).await?;
    let two = Group::create(cluster, "two.example.com", 60).await?;
    two.is_granted(cluster, &["get", "list", "watch", "patch"]).await?;
    two.add_default(cluster).await?;
    two.edit_ahead(cluster).await?;
    cluster.persisted(&two.crd(), "AllPersisted", SOON).await?;
    assert_eq!(two.without_default(cluster).await?, Vec::<String>::new());
    let all_groups: Vec<_> =
        overlay.into_iter().filter(|role| role["metadata"]["name"] == "etch-all-groups").collect();
    all_is_needed(&scene, &all_groups, |event| event["objectRef"]["apiGroup"] == two.group)?;

    // Reports only, with a role that would not allow more.
    cluster.delete(&format!("{ROLES}/etch-all-groups")).await?;
    apply_all(cluster, &parse_documents(&kustomize("config/audit-only")?)?).await?;
    let three = Group::create(cluster, "three.example.com", 10).await?;
    let role = rbac(&scene, &["--read-only"])?;
    // The policy gives the same rules, and one that selects other groups grants nothing.
    let mut of_policy = rbac(&scene, &["--policy", "default"])?;
    assert_eq!(of_policy["metadata"]["name"].take(), "etch-policy-default", "it replaces no other grant");
    of_policy["metadata"]["name"] = role["metadata"]["name"].clone();
    assert_eq!(of_policy, role);
    let elsewhere = scene.file(
        "elsewhere.yaml",
        "kind: DefaultsPolicy\napiVersion: etch-operator.io/v1alpha1\n\
        metadata: {name: elsewhere}\nspec: {selector: {groups: [\"*.example.org\"]}}\n",
    )?;
    let ended = scene.etch(&["rbac", "--live", "--policy", &elsewhere])?;
    assert_eq!((ended.code, &*ended.out), (Some(1), ""), "no role that would take away what another grants");
    assert_eq!(
        ended.err,
        "note: DefaultsPolicy elsewhere selects none of the CRDs, or other policies govern them; no role is \
         printed\n"
    );
    scene.policy("idle", json!({ "selector": { "groups": ["one.example.com"] }, "mode": "Ignore" })).await?;
    let ended = scene.etch(&["rbac", "--policy", "idle"])?;
    let note = "note: DefaultsPolicy idle has mode: Ignore, so Etch needs no permission";
    assert_eq!((ended.code, &*ended.out), (Some(0), ""));
    assert!(ended.err.starts_with(note), "{ended:?}");
    // Nor is it granted by the policies that govern others.
    for flags in [&["--policy", "default"][..], &[]] {
        let rules = rbac(&scene, flags)?["rules"].to_string();
        ensure!(rules.contains(three.group) && !rules.contains("one.example.com"), "{flags:?}: {rules}");
    }
    cluster.delete("/apis/etch-operator.io/v1alpha1/defaultspolicies/idle").await?;
    assert!(rbac(&scene, &["--policy", "missing"]).is_err(), "a policy that is not there");
    apply(cluster, &role).await?;
    three.is_granted(cluster, &["list", "watch"]).await?;
    three.add_default(cluster).await?;
    let condition = cluster.persisted(&three.crd(), "AuditOnly", SOON).await?;
    ensure!(condition.message.contains("10"), "{}", condition.message);
    assert_eq!(three.without_default(cluster).await?.len(), 10);
    assert_eq!(scene.requests_to(three.group, &["patch", "update", "create", "delete"])?, 0);
    let of_three = |event: &Value| event["objectRef"]["apiGroup"] == three.group;
    let mut only_three = role;
    let rules = only_three["rules"].as_array_mut().context("rules")?;
    rules.retain(|rule| rule["apiGroups"] == json!([three.group]));
    all_is_needed(&scene, &[only_three], of_three)?;
    // While an operator runs, it would come again.
    let ended = scene.etch(&["clean"])?;
    assert_eq!((ended.code, &*ended.out), (Some(2), ""), "{ended:?}");
    assert!(
        ended.err.contains(
            " renews the Lease etch-system/etch, and would create everything again; stop it first: "
        ),
        "{ended:?}"
    );
    operator.stop().await?;

    nothing_is_left(&scene).await
}

/// `etch clean` shows what it would remove, removes it, and does not change the objects.
async fn nothing_is_left(scene: &Scene) -> Result<()> {
    let conditions = async || {
        let crds = scene.cluster.get(CRDS).await?;
        let all = crds["items"].as_array().into_iter().flatten();
        let all = all.flat_map(|crd| crd["status"]["conditions"].as_array().into_iter().flatten());
        anyhow::Ok(all.filter(|condition| condition["type"] == "DefaultsPersisted").count())
    };
    let reports = "/apis/etch-operator.io/v1alpha1/defaultsreports";
    let shown = etch(scene, &["clean", "--dry-run"])?;
    // Those of the three groups, and Etch's own CRDs, which have no defaults and no report.
    assert_eq!(conditions().await?, 3 + OWN);
    assert_eq!(shown.lines().filter(|line| line.ends_with("would be removed")).count(), 6 + OWN, "{shown}");
    let done = etch(scene, &["clean"])?;
    assert_eq!(done, shown.replace("would be removed", "removed"));
    assert_eq!(conditions().await?, 0);
    assert_eq!(scene.cluster.get(reports).await?["items"], json!([]));
    assert_eq!(etch(scene, &["clean"])?, "No conditions or reports of Etch found.\n");
    Ok(())
}

/// `etch` as the administrator runs it.
fn etch(scene: &Scene, arguments: &[&str]) -> Result<String> {
    let ended = scene.etch(arguments)?;
    ensure!(ended.code == Some(0), "etch {arguments:?}: {ended:?}");
    Ok(ended.out)
}

/// The role that `etch rbac` prints for the CRDs of the cluster.
fn rbac(scene: &Scene, flags: &[&str]) -> Result<Value> {
    let documents = parse_documents(&etch(scene, &[&["rbac", "--live"], flags].concat())?)?;
    let [role] = &documents[..] else { anyhow::bail!("one role: {documents:?}") };
    Ok(role.clone())
}

/// Fails unless each permission that these roles grant was needed for some request that a filter takes, and
/// no request needed more.
fn all_is_needed(scene: &Scene, roles: &[Value], filter: impl Fn(&Value) -> bool) -> Result<()> {
    let differences = compare(&granted(roles)?, &used(&scene.requests(filter)?));
    ensure!(differences == Differences::default(), "granted and needed differ: {differences:?}");
    Ok(())
}

/// An admission policy that refuses every change of the object `frozen` of a group.
async fn frozen(cluster: &Cluster, group: &Group) -> Result<()> {
    group.make(cluster, "frozen").await?;
    let validation = json!({ "expression": "object.metadata.name != 'frozen'" });
    freeze(cluster, group.group, "widgets", &group.object("frozen"), validation).await
}

/// A CRD of its own group, with some objects.
struct Group {
    group: &'static str,
    count: usize,
}

impl Group {
    async fn create(cluster: &Cluster, group: &'static str, count: usize) -> Result<Self> {
        let made = Self { group, count };
        let schema = with_spec(json!({
            "size": { "type": "integer" } }));
        cluster.apply_crd(&crd(group, "Widget", &[("v1", true, schema)])).await?;
        for index in 0..count {
            made.make(cluster, &format!("widget-{index:03}")).await?;
        }
        Ok(made)
    }

    async fn make(&self, cluster: &Cluster, name: &str) -> Result<()> {
        let object = json!({
            "apiVersion": format!("{}/v1", self.group), "kind": "Widget",
            "metadata": { "name": name }, "spec": { "size": 1 },
        });
        cluster.create(&self.objects(), "owner", &object).await.map(drop)
    }

    async fn add_default(&self, cluster: &Cluster) -> Result<()> {
        let schema = with_spec(json!({
            "size": { "type": "integer" }, "color": { "type": "string", "default": "green" } }));
        cluster.apply_crd(&crd(self.group, "Widget", &[("v1", true, schema)])).await.map(drop)
    }

    /// Users write the last objects of a pass while its first ones are written, so that these have to be read
    /// again.
    async fn edit_ahead(&self, cluster: &Cluster) -> Result<()> {
        eventually(SOON, "a pass under way", async || {
            Ok((self.without_default(cluster).await?.len() <= self.count - 5).then_some(()))
        })
        .await?;
        for index in (self.count - 15..self.count).rev() {
            let path = self.object(&format!("widget-{index:03}"));
            cluster.patch(&path, Patch::Merge, "user", &json!({ "spec": { "size": 2 } })).await?.ok()?;
        }
        Ok(())
    }

    /// Waits until the service account may use exactly these verbs on the objects.
    async fn is_granted(&self, cluster: &Cluster, verbs: &[&str]) -> Result<()> {
        granted_soon(cluster, attributes(self.group, "widgets"), verbs).await
    }

    /// The names of the objects that hold no default in etcd.
    async fn without_default(&self, cluster: &Cluster) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for raw in cluster.etcd().list(&format!("/registry/{}/widgets/", self.group)).await? {
            let object: Value = serde_json::from_slice(&raw.bytes)?;
            if object["spec"]["color"].is_null() {
                names.push(object["metadata"]["name"].as_str().context("a name")?.to_owned());
            }
        }
        Ok(names)
    }

    fn crd(&self) -> String {
        format!("widgets.{}", self.group)
    }

    fn objects(&self) -> String {
        format!("/apis/{}/v1/namespaces/default/widgets", self.group)
    }

    fn object(&self, name: &str) -> String {
        format!("{}/{name}", self.objects())
    }
}

/// The API server puts the operator's bulk on a priority level of its own, and its Lease with other leader
/// elections.
#[tokio::test(flavor = "multi_thread")]
async fn bulk_and_lease_do_not_compete() -> Result<()> {
    let scene = Scene::installed("config/default").await?;
    let config = e2e::control_plane::read_kubeconfig(scene.kubeconfig()).await?;
    let client = kube::Client::try_from(config)?;
    let lease = format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/etch");
    for (path, schema, level) in [(CRDS, "etch", "etch"), (lease.as_str(), "etch-lease", "leader-election")] {
        let uid = async |kind: &str, name: &str| {
            let object = place(&json!({ "kind": kind, "metadata": { "name": name } }))?;
            let object = scene.cluster.get(&object).await?;
            anyhow::Ok(object["metadata"]["uid"].as_str().context("a uid")?.to_owned())
        };
        let wanted = [uid("FlowSchema", schema).await?, uid("PriorityLevelConfiguration", level).await?];
        let mut last = Vec::new();
        eventually(Duration::from_secs(20), "the flow schema is in force", async || {
            let request = http::Request::get(path).body(kube::client::Body::empty())?;
            let response = client.send(request).await?;
            let headers = ["x-kubernetes-pf-flowschema-uid", "x-kubernetes-pf-prioritylevel-uid"];
            let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
            last = headers.into_iter().filter_map(header).map(str::to_owned).collect();
            Ok((last == wanted).then_some(()))
        })
        .await
        .with_context(|| format!("{path}: {last:?}, and should be {wanted:?}"))?;
    }
    Ok(())
}
