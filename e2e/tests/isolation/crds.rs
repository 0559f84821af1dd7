//! CRDs that are odd in themselves: not structural, without conditions, going away, coming back as something
//! else.

use anyhow::{Context, Result, ensure};
use e2e::cluster::{CRDS, Condition, Patch, crd, eventually};
use e2e::webhook::Webhook;
use serde_json::{Value, json};

use crate::cases;
use crate::stage::{SOON, Stage, Widgets, defaulted, plain};

const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";

cases![
    not_structural,
    unknown_fields_kept_without_a_default,
    without_conditions,
    being_deleted,
    recreated_with_another_scope,
    same_plural,
    shadowing_a_built_in_type,
    served_by_an_aggregated_api,
    names_that_are_taken
];

/// Makes the CRD one of before schemas had to be structural, with these changes of the properties of its
/// spec.
async fn keep_unknown_fields(widgets: &Widgets<'_>, change: impl FnOnce(&mut Value)) -> Result<()> {
    let change = |crd: &mut Value| {
        ensure!(crd["apiVersion"] == "apiextensions.k8s.io/v1beta1");
        crd["spec"]["preserveUnknownFields"] = json!(true);
        change(&mut crd["spec"]["validation"]["openAPIV3Schema"]["properties"]["spec"]["properties"]);
        let generation = crd["metadata"]["generation"].as_i64().context("a generation")?;
        crd["metadata"]["generation"] = json!(generation + 1);
        Ok(())
    };
    widgets.cluster.etcd().change_crd(&widgets.crd(), change).await
}

async fn not_structural(stage: &Stage, name: &'static str) -> Result<()> {
    let widgets = stage.widgets(name).await?;
    widgets.define(plain()).await?;
    widgets.create("widget").await?;
    let object = widgets.raw("widget").await?;
    keep_unknown_fields(&widgets, |properties| {
        properties["size"] = json!({ "description": "has no type", "default": 3 });
    })
    .await?;

    let servers = eventually(SOON, "NonStructuralSchema", async || {
        let condition = widgets.cluster.condition(&widgets.crd(), "NonStructuralSchema").await?;
        Ok(condition.filter(|condition| condition.status == "True"))
    })
    .await?;
    let ours = eventually(SOON, "NonStructural", async || {
        let condition = widgets.cluster.condition(&widgets.crd(), "NonStructural").await?;
        Ok(condition.filter(|condition| condition.status == "True"))
    })
    .await?;
    for violation in servers.message.trim_matches(['[', ']']).split(", spec.") {
        let violation = violation.trim_start_matches("spec.");
        ensure!(ours.message.contains(violation), "{violation:?} is missing: {}", ours.message);
    }
    // The server still fills in the default (fact D12).
    let persisted = eventually(SOON, "the widget is counted", async || {
        let condition = widgets.cluster.condition(&widgets.crd(), "DefaultsPersisted").await?;
        let is_counted = |condition: &Condition| condition.message.contains("default/widget");
        Ok(condition.filter(|condition| condition.reason == "NonStructural").filter(is_counted))
    })
    .await?;
    ensure!(persisted.status == "False", "{persisted:?}");
    ensure!(
        persisted.message.starts_with("0 of 1 object is known to store its defaults; 1 with defaults"),
        "{persisted:?}"
    );
    ensure!(widgets.cluster.get(&widgets.path("widget")).await?["spec"]["size"] == 3);
    stage.scene.barrier().await?;
    let still = widgets.cluster.condition(&widgets.crd(), "NonStructuralSchema").await?;
    ensure!(still.as_ref() == Some(&servers), "{still:?}");
    ensure!(widgets.raw("widget").await? == object);
    let writes = stage.scene.requests_to(&widgets.group, &["patch", "update", "create", "delete"])?;
    ensure!(writes == 0, "{writes} writes of an object whose schema is not structural");

    // Put right, it is like any other.
    let right = crd(&widgets.group, "Widget", &[("v1", true, defaulted())]);
    let right = json!({ "spec": { "preserveUnknownFields": false, "versions": right["spec"]["versions"] } });
    let path = format!("{CRDS}/{}", widgets.crd());
    widgets.cluster.patch(&path, Patch::Merge, "author", &right).await?.ok()?;
    widgets.persisted("AllPersisted", SOON).await?;
    ensure!(widgets.is_stored("widget").await?);
    Ok(())
}

async fn unknown_fields_kept_without_a_default(stage: &Stage, name: &'static str) -> Result<()> {
    let widgets = stage.widgets(name).await?;
    widgets.define(plain()).await?;
    widgets.create("widget").await?;
    keep_unknown_fields(&widgets, |_| {}).await?;
    let ours = eventually(SOON, "NonStructural", async || {
        let condition = widgets.cluster.condition(&widgets.crd(), "NonStructural").await?;
        Ok(condition.filter(|condition| condition.status == "True"))
    })
    .await?;
    ensure!(ours.message.contains("spec.preserveUnknownFields"), "{}", ours.message);
    let persisted = widgets.persisted("NoDefaults", SOON).await?;
    ensure!(persisted.status == "True", "{persisted:?}");
    Ok(())
}

async fn without_conditions(stage: &Stage, name: &'static str) -> Result<()> {
    let widgets = stage.widgets(name).await?;
    widgets.define(plain()).await?;
    widgets.create("widget").await?;
    widgets.define(defaulted()).await?;
    widgets.persisted("AllPersisted", SOON).await?;
    // As a restored backup or a careless writer leaves it.
    let without_conditions = |crd: &mut Value| {
        crd["status"].as_object_mut().context("a status")?.remove("conditions");
        // Etch watches only metadata, where only the owners show that conditions have changed.
        crd["metadata"].as_object_mut().context("metadata")?.remove("managedFields");
        Ok(())
    };
    widgets.cluster.etcd().change_crd(&widgets.crd(), without_conditions).await?;
    // The server does not set its own again (fact C13).
    let is_gone = async || Ok(widgets.cluster.get(&widgets.collection("v1")).await.is_err().then_some(()));
    eventually(SOON, "the widgets are not served", is_gone).await?;
    // Etch asks again where it has anything to find out, such as about a new default.
    let mut colored = defaulted();
    colored["properties"]["spec"]["properties"]["color"] = json!({ "type": "string", "default": "red" });
    let upgrade = crd(&widgets.group, "Widget", &[("v1", true, colored)]);
    let upgrade = json!({ "spec": { "versions": upgrade["spec"]["versions"] } });
    let path = format!("{CRDS}/{}", widgets.crd());
    widgets.cluster.patch(&path, Patch::Merge, "author", &upgrade).await?.ok()?;
    let condition = widgets.persisted("NotServed", SOON).await?;
    ensure!(condition.message.contains("no condition Established"), "{}", condition.message);
    // As the message advises.
    let names = json!({ "spec": { "names": { "shortNames": ["wi"] } } });
    widgets.cluster.patch(&path, Patch::Merge, "author", &names).await?.ok()?;
    widgets.persisted("AllPersisted", SOON).await.map(drop)
}

async fn being_deleted(stage: &Stage, name: &'static str) -> Result<()> {
    let widgets = stage.widgets(name).await?;
    widgets.define(plain()).await?;
    let mut stuck = widgets.widget("v1", "stuck");
    stuck["metadata"]["finalizers"] = json!(["example.com/wait"]);
    widgets.cluster.create(&widgets.collection("v1"), "owner", &stuck).await?;
    let crd = format!("{CRDS}/{}", widgets.crd());
    widgets.cluster.delete(&crd).await?;
    eventually(SOON, "the widget is being deleted", async || {
        Ok(widgets.raw("stuck").await?["metadata"]["deletionTimestamp"].is_string().then_some(()))
    })
    .await?;
    let upgrade = e2e::cluster::crd(&widgets.group, "Widget", &[("v1", true, defaulted())]);
    let upgrade = json!({ "spec": { "versions": upgrade["spec"]["versions"] } });
    widgets.cluster.patch(&crd, Patch::Merge, "author", &upgrade).await?.ok()?;
    stage.scene.barrier().await?;
    // Etcd proves nothing here: whenever the API server deletes all widgets once more, it stores their
    // defaults itself.
    let writes = stage.scene.requests_to(&widgets.group, &["patch", "update", "create", "delete"])?;
    ensure!(writes == 0, "{writes} writes of an object whose CRD is being deleted");
    let requests = widgets.requests()?;
    let condition = widgets.cluster.condition(&widgets.crd(), "DefaultsPersisted").await?;
    ensure!(
        condition.is_none_or(|condition| condition.reason == "NoDefaults"),
        "from before it was upgraded"
    );
    let free = json!({ "metadata": { "finalizers": null } });
    widgets.cluster.patch(&widgets.path("stuck"), Patch::Merge, "owner", &free).await?.ok()?;
    eventually(SOON, "the CRD is gone", async || Ok(widgets.cluster.get(&crd).await.is_err().then_some(())))
        .await?;
    stage.scene.barrier().await?;
    ensure!(widgets.requests()? == requests, "asked about what is gone");
    Ok(())
}

async fn recreated_with_another_scope(stage: &Stage, name: &'static str) -> Result<()> {
    let widgets = stage.widgets(name).await?;
    widgets.define(defaulted()).await?;
    widgets.create("widget").await?;
    let first = widgets.persisted("AllPersisted", SOON).await?;
    let path = format!("{CRDS}/{}", widgets.crd());
    widgets.cluster.delete(&path).await?;
    // What is served still is the old CRD, of which the server takes leave at its leisure.
    let collection = format!("/apis/{}/v1/widgets", widgets.group);
    eventually(SOON, "the CRD is gone, and served no more", async || {
        let is_there = widgets.cluster.get(&path).await.is_ok();
        Ok((!is_there && widgets.cluster.get(&collection).await.is_err()).then_some(()))
    })
    .await?;
    let mut second = crd(&widgets.group, "Widget", &[("v1", true, plain())]);
    second["spec"]["scope"] = json!("Cluster");
    widgets.cluster.apply_crd(&second).await?;
    widgets.cluster.create(&collection, "owner", &widgets.widget("v1", "wide")).await?;
    let mut third = crd(&widgets.group, "Widget", &[("v1", true, defaulted())]);
    third["spec"]["scope"] = json!("Cluster");
    let applied = widgets.cluster.apply_crd(&third).await?;
    let condition = widgets.persisted("AllPersisted", SOON).await?;
    ensure!(condition != first);
    let raw = widgets.cluster.raw(&widgets.group, "widgets", None, "wide").await?;
    ensure!(raw["spec"]["size"] == 3, "{raw}");
    widgets.reported("AllPersisted").await?;
    let report = stage.scene.report(&widgets.crd()).await?;
    let uid = &applied["metadata"]["uid"];
    ensure!(&report["spec"]["crdUid"] == uid, "the report is about {}", report["spec"]["crdUid"]);
    ensure!(&report["metadata"]["ownerReferences"][0]["uid"] == uid, "{}", report["metadata"]);
    ensure!(report["status"]["counts"]["objects"] == 1, "{}", report["status"]);
    Ok(())
}

/// The API server serves the built-in type under the CRD's name: the CRD's defaults are not for its objects.
async fn shadowing_a_built_in_type(stage: &Stage, name: &'static str) -> Result<()> {
    const GROUP: &str = "storage.k8s.io";
    const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";
    let cluster = &stage.scene.cluster;
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": { "name": "shadowed" },
        "provisioner": "example.com/none",
    });
    cluster.create(CLASSES, "owner", &class).await?;
    let before = cluster.get(&format!("{CLASSES}/shadowed")).await?;
    stage.scene.grant(GROUP).await?;
    let owning = json!({ "selector": { "groups": [GROUP] }, "ownership": "Own" });
    stage.scene.policy(&name.replace('_', "-"), owning).await?;
    let schema = json!({ "type": "object", "properties": {
        "allowVolumeExpansion": { "type": "boolean", "default": true },
    } });
    let mut shadow = crd(GROUP, "StorageClass", &[("v1", true, schema)]);
    shadow["metadata"]["name"] = json!("storageclasses.storage.k8s.io");
    shadow["metadata"]["annotations"] = json!({ "api-approved.kubernetes.io": "unapproved, for a test" });
    shadow["spec"]["names"] = json!({ "kind": "StorageClass", "plural": "storageclasses" });
    shadow["spec"]["scope"] = json!("Cluster");
    cluster.apply_crd(&shadow).await?;
    let condition = cluster.persisted("storageclasses.storage.k8s.io", "NotServed", SOON).await?;
    ensure!(condition.message.contains(GROUP), "{}", condition.message);
    stage.scene.barrier().await?;
    ensure!(cluster.get(&format!("{CLASSES}/shadowed")).await? == before);
    let requests = stage.scene.requests_to(GROUP, &["get", "list", "watch", "patch", "update", "create"])?;
    ensure!(requests == 0, "{requests} requests about the built-in type");
    cluster.delete(&format!("{CRDS}/storageclasses.storage.k8s.io")).await.map(drop)
}

/// Requests for the CRD's objects reach those of another API server: they are not the ones that its defaults
/// are for.
async fn served_by_an_aggregated_api(stage: &Stage, name: &'static str) -> Result<()> {
    let widgets = stage.widgets(name).await?;
    let cluster = widgets.cluster;
    let api_version = format!("{}/v1", widgets.group);
    let foreign = {
        let item = json!({ "apiVersion": api_version, "kind": "Widget", "spec": {}, "metadata": {
            "name": "foreign", "namespace": "default", "uid": "another-server", "resourceVersion": "1",
        } });
        let list = json!({ "apiVersion": api_version, "kind": "WidgetList",
                           "metadata": { "resourceVersion": "1" }, "items": [item] });
        let resources = json!({ "apiVersion": "v1", "kind": "APIResourceList", "groupVersion": api_version,
            "resources": [
            {
                "name": "widgets", "singularName": "widget", "namespaced": true, "kind": "Widget", "verbs": [
                    "list", "patch",
                ],
            },
        ] });
        move |request: &Value| match request["path"].as_str() {
            Some(path) if path.ends_with("/foreign") => item.clone(),
            Some(path) if path.ends_with("/widgets") => list.clone(),
            _ => resources.clone(),
        }
    };
    let other = Webhook::start(foreign).await?;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "other-server" },
        "spec": { "type": "ExternalName", "externalName": "localhost" },
    });
    cluster.create("/api/v1/namespaces/default/services", "owner", &service).await?;
    let api_service = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": { "name": format!("v1.{}", widgets.group) },
        "spec": {
            "group": widgets.group, "version": "v1", "groupPriorityMinimum": 1000, "versionPriority": 10,
            "service": { "namespace": "default", "name": "other-server", "port": other.port() },
            "insecureSkipTLSVerify": true,
        },
    });
    cluster.create(API_SERVICES, "owner", &api_service).await?;
    eventually(SOON, "the other server's object is served", async || {
        let list = cluster.get(&widgets.collection("v1")).await;
        Ok(list.ok().filter(|list| list["items"][0]["metadata"]["name"] == "foreign"))
    })
    .await?;

    widgets.define(defaulted()).await?;
    let condition = widgets.persisted("NotServed", SOON).await?;
    ensure!(condition.message.contains("default/other-server"), "{}", condition.message);
    stage.scene.barrier().await?;
    let verbs = ["get", "list", "watch", "patch", "update", "create"];
    let requests = stage.scene.requests_to(&widgets.group, &verbs)?;
    ensure!(requests == 0, "{requests} requests reached another server");

    // Once the API server serves the CRD itself, it is like any other.
    cluster.delete(&format!("{API_SERVICES}/v1.{}", widgets.group)).await?;
    eventually(SOON, "the CRD's objects are served", async || {
        let list = cluster.get(&widgets.collection("v1")).await;
        Ok(list.ok().filter(|list| list["items"].as_array().is_some_and(Vec::is_empty)))
    })
    .await?;
    widgets.create("widget").await?;
    let mut upgraded = defaulted();
    upgraded["properties"]["spec"]["properties"]["late"] = json!({ "type": "integer", "default": 1 });
    widgets.define(upgraded).await?;
    widgets.persisted("AllPersisted", SOON).await?;
    ensure!(widgets.raw("widget").await?["spec"]["late"] == 1);
    Ok(())
}

/// The API server does not establish a CRD whose kind another one in the group has, and serves none of its
/// objects.
async fn names_that_are_taken(stage: &Stage, name: &'static str) -> Result<()> {
    let widgets = stage.widgets(name).await?;
    widgets.define(plain()).await?;
    let mut taken = crd(&widgets.group, "Widget", &[("v1", true, defaulted())]);
    let gadgets = format!("gadgets.{}", widgets.group);
    taken["metadata"]["name"] = json!(gadgets);
    taken["spec"]["names"] = json!({ "kind": "Widget", "plural": "gadgets", "singular": "gadget" });
    widgets.cluster.create(CRDS, "author", &taken).await?;
    let condition = widgets.cluster.persisted(&gadgets, "NotServed", SOON).await?;
    ensure!(condition.message.contains("NamesAccepted"), "{}", condition.message);
    stage.scene.barrier().await?;
    ensure!(widgets.cluster.condition(&gadgets, "Established").await?.is_some_and(|it| it.status == "False"));

    // With names of its own it is like any other.
    let names = json!({ "spec": { "names": { "kind": "Gadget", "listKind": "GadgetList" } } });
    let path = format!("{CRDS}/{gadgets}");
    widgets.cluster.patch(&path, Patch::Merge, "author", &names).await?.ok()?;
    widgets.cluster.persisted(&gadgets, "AllPersisted", SOON).await.map(drop)
}

async fn same_plural(stage: &Stage, name: &'static str) -> Result<()> {
    let broken = stage.forbidden_widgets(name);
    let healthy = stage.widgets(&format!("{name}_too")).await?;
    for widgets in [&broken, &healthy] {
        widgets.define(plain()).await?;
        widgets.create("widget").await?;
        widgets.define(defaulted()).await?;
    }
    let condition = broken.persisted("Forbidden", SOON).await?;
    ensure!(condition.message.contains(&broken.group) && !condition.message.contains(&healthy.group));
    healthy.persisted("AllPersisted", SOON).await?;
    ensure!(healthy.is_stored("widget").await? && !broken.is_stored("widget").await?);
    let reports = [healthy.reported("AllPersisted").await?, broken.report().await.unwrap_or_default()];
    ensure!(reports[0]["state"] == "AllPersisted" && reports[1]["state"] != "AllPersisted", "{reports:?}");
    Ok(())
}
