//! The control plane keeps its promises: it serves, shows what etcd holds, and leaves nothing running.
//!
//! Etch takes no part in these tests.

use std::{
    ffi::OsStr,
    fs,
    io::{BufRead, BufReader},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use e2e::cluster::{GUARD, eventually};
use e2e::control_plane::{ControlPlane, Kubernetes, Options, object_key, read_kubeconfig};
use k8s_openapi::{
    api::{
        authentication::v1::SelfSubjectReview,
        core::v1::{ConfigMap, Namespace, Secret, ServiceAccount},
        rbac::v1::{Role, RoleBinding},
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject, ListParams, Patch, PatchParams, PostParams},
    runtime::{conditions, wait::await_condition},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_share_one_etcd_and_leave_nothing_behind() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut options = Options::new(dir.path().join("cluster"));
    options.apiservers = 2;
    let mut control_plane = ControlPlane::start(options.clone()).await?;
    let dir = control_plane.dir().to_owned();

    let endpoints: Value = serde_json::from_slice(&fs::read(dir.join("endpoints.json"))?)?;
    let urls = [control_plane.url(0), control_plane.url(1)];
    assert_eq!(endpoints, json!({"etcd": [control_plane.etcd_url()], "apiservers": urls}));
    assert_eq!(control_plane.kubeconfig(0), dir.join("kubeconfig"));
    assert_eq!(control_plane.kubeconfig(1), dir.join("kubeconfig-1"));
    assert_eq!(servers(&dir), ["etcd", "kube-apiserver", "kube-apiserver"]);

    // Written through one server, seen through the other and in etcd.
    let first = control_plane.client(0).await?;
    let second = control_plane.client(1).await?;
    create_widgets(&first).await?;
    let written = create(widgets(&first), widget("one")).await?;
    // The second server may learn of the CRD a little later.
    let seen =
        eventually(GUARD, "the widget", async || Ok(widgets(&second).get_opt("one").await.ok().flatten()))
            .await?;
    assert_eq!(seen, written);
    let etcd = control_plane.etcd();
    let raw = etcd.raw_object("example.com", "widgets", Some("default"), "one").await?;
    assert_eq!(raw.context("the raw widget")?["spec"], json!({"size": 3}));
    assert_eq!(etcd.raw_object("example.com", "widgets", Some("default"), "two").await?, None);
    let key = object_key("example.com", "widgets", Some("default"), "one");
    let (bytes, revision) = etcd.get(&key).await?.context("the key of the widget")?;
    assert_eq!(Some(revision.to_string()), written.metadata.resource_version);

    // Written past the servers, which find nothing to write in what they encode alike.
    etcd.put_json(&key, &serde_json::from_slice(&bytes)?).await?;
    let (again, put) = etcd.get(&key).await?.context("the key of the widget")?;
    assert_eq!(String::from_utf8(again)?, String::from_utf8(bytes.clone())?);
    let put = put.to_string();
    eventually(GUARD, "the widget as it was put", async || {
        Ok(widgets(&first).get("one").await?.metadata.resource_version.filter(|seen| *seen == put))
    })
    .await?;
    let nothing = Patch::Merge(json!({"metadata": {"uid": written.metadata.uid}}));
    let patched = widgets(&first).patch("one", &PatchParams::default(), &nothing).await?;
    assert_eq!(patched.metadata.resource_version, Some(put));

    // Another object that one of them shows.
    let planted = object_key("example.com", "widgets", Some("default"), "two");
    etcd.put(&planted, String::from_utf8(bytes)?.replace("\"name\":\"one\"", "\"name\":\"two\"").as_bytes())
        .await?;
    let listed = etcd.list("/registry/example.com/widgets/").await?;
    assert_eq!(listed.iter().map(|value| &value.key).collect::<Vec<_>>(), [&key, &planted]);
    eventually(GUARD, "the planted widget", async || Ok(widgets(&first).get_opt("two").await?)).await?;

    // Each server keeps its own audit log, and what was answered is in it.
    assert_eq!(widgets_created(&control_plane.audit_log(0))?, 1);
    assert_eq!(widgets_created(&control_plane.audit_log(1))?, 0);

    // One server goes and comes back at the same address; the other serves on.
    control_plane.stop_apiserver(1).await?;
    control_plane.check()?;
    assert_eq!(servers(&dir), ["etcd", "kube-apiserver"]);
    assert!(second.apiserver_version().await.is_err());
    assert!(first.apiserver_version().await.is_ok());
    control_plane.start_apiserver(1).await?;
    assert!(second.apiserver_version().await.is_ok());

    // A paused server answers nothing, and goes on where it was.
    let version = || tokio::time::timeout(Duration::from_secs(1), second.apiserver_version());
    control_plane.pause_apiserver(1).await?;
    assert!(version().await.is_err());
    control_plane.resume_apiserver(1);
    assert!(second.apiserver_version().await.is_ok());

    // No other control plane may use the directory; afterwards its data can be used again.
    let refused = ControlPlane::start(options.clone()).await.err().context("the directory is in use")?;
    assert!(format!("{refused:#}").contains("in use"), "{refused:#}");
    control_plane.kill_apiserver(0);
    drop(control_plane);
    assert_eq!(running(&dir), Vec::<String>::new());
    let control_plane = ControlPlane::start(Options::new(&dir)).await?;
    let found = widgets(&control_plane.client(0).await?).list(&ListParams::default()).await?;
    assert_eq!(found.items.len(), 2);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_account_has_the_rights_that_rbac_gives() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let control_plane = ControlPlane::start(Options::new(dir.path())).await?;
    let admin = control_plane.client(0).await?;
    create::<Namespace>(Api::all(admin.clone()), json!({"metadata": {"name": "team"}})).await?;
    let robot = json!({"metadata": {"name": "robot"}});
    create::<ServiceAccount>(Api::namespaced(admin.clone(), "team"), robot).await?;
    let reader = json!({"metadata": {"name": "reader"},
                        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]});
    create::<Role>(Api::namespaced(admin.clone(), "team"), reader).await?;
    let binding = json!({"metadata": {"name": "reader"},
                         "roleRef": {
                             "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader",
                         },
                         "subjects": [{"kind": "ServiceAccount", "name": "robot", "namespace": "team"}]});
    create::<RoleBinding>(Api::namespaced(admin, "team"), binding).await?;

    let kubeconfig = control_plane.service_account_kubeconfig(0, "team", "robot").await?;
    let robot = Client::try_from(read_kubeconfig(&kubeconfig).await?)?;
    let who = create::<SelfSubjectReview>(Api::all(robot.clone()), json!({"metadata": {}})).await?;
    let user = who.status.and_then(|status| status.user_info).and_then(|user| user.username);
    assert_eq!(user.as_deref(), Some("system:serviceaccount:team:robot"));
    let configmaps = Api::<ConfigMap>::namespaced(robot.clone(), "team");
    eventually(GUARD, "the role to count", async || Ok(configmaps.list(&ListParams::default()).await.ok()))
        .await?;
    let secrets = Api::<Secret>::namespaced(robot, "team").list(&ListParams::default()).await;
    assert!(matches!(secrets, Err(kube::Error::Api(status)) if status.code == 403));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ends_early_is_reported_with_its_log() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let mut options = Options::new(dir.path());
    options.apiserver_flags.push("--no-such-flag".into());
    let error = ControlPlane::start(options).await.err().context("the API server cannot start")?;
    let error = format!("{error:#}");
    assert!(error.contains("kube-apiserver ended with") && error.contains("unknown flag"), "{error}");
    assert_eq!(running(dir.path()), Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn the_command_serves_until_it_is_told_to_stop_or_killed() -> Result<()> {
    let dir = tempfile::tempdir()?;
    for (signal, code) in [("INT", Some(0)), ("TERM", Some(0)), ("KILL", None)] {
        let mut command = start(&["--dir".as_ref(), dir.path().as_ref()])?;
        let mut output = BufReader::new(command.stdout.take().context("a pipe")?).lines();
        assert_eq!(output.next().transpose()?.as_deref(), Some("ready"));
        assert_eq!(servers(dir.path()), ["etcd", "kube-apiserver"]);
        assert!(Command::new("kill").args(["-s", signal, &command.id().to_string()]).status()?.success());
        assert_eq!(command.wait()?.code(), code, "after SIG{signal}");
        // Stopped, it has waited for its children; killed, it could not.
        if signal == "KILL" {
            let are_gone = async || Ok(running(dir.path()).is_empty().then_some(()));
            eventually(GUARD, "its children are gone", are_gone).await?;
        }
        assert_eq!(running(dir.path()), [""; 0], "after SIG{signal}");
    }
    Ok(())
}

#[test]
fn what_cannot_be_used_is_refused_with_the_reason() -> Result<()> {
    let refused = |arguments: &[&OsStr]| -> Result<String> {
        let output = start(arguments)?.wait_with_output()?;
        ensure!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
        Ok(String::from_utf8(output.stderr)?)
    };
    let error = refused(&["--dir", "unused", "--kubernetes", "1.2"].map(OsStr::new))?;
    for release in Kubernetes::supported()? {
        assert!(error.contains(&release.to_string()), "{error}");
    }

    let foreign = tempfile::tempdir()?;
    fs::write(foreign.path().join("diary.txt"), "")?;
    let error = refused(&["--dir".as_ref(), foreign.path().as_ref()])?;
    assert!(error.contains("is not empty"), "{error}");

    let newer = tempfile::tempdir()?;
    fs::write(newer.path().join("kubernetes-release"), "1.9999\n")?;
    fs::write(newer.path().join("lock"), "")?;
    let error = refused(&["--dir".as_ref(), newer.path().as_ref()])?;
    assert!(error.contains("holds the data of Kubernetes 1.9999"), "{error}");
    Ok(())
}

#[test]
fn programs_that_the_user_brings_are_used_as_they_are() -> Result<()> {
    let assets = tempfile::tempdir()?;
    for (name, script) in [("etcd", "echo this is $0; exit 3"), ("kube-apiserver", "echo Kubernetes v1.30.2")]
    {
        let program = assets.path().join(name);
        fs::write(&program, format!("#!/bin/sh\n{script}\n"))?;
        fs::set_permissions(&program, PermissionsExt::from_mode(0o755))?;
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_control-plane"));
    command.arg("--dir").arg(assets.path().join("cluster")).env("KUBEBUILDER_ASSETS", assets.path());
    let output = command.output()?;
    let error = String::from_utf8(output.stderr)?;
    let wording = format!("this is {}", assets.path().join("etcd").display());
    assert!(
        !output.status.success() && error.contains(&wording) && error.contains("Kubernetes 1.30 of"),
        "{error}"
    );
    Ok(())
}

fn start(arguments: &[&OsStr]) -> Result<Child> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_control-plane"));
    Ok(command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?)
}

/// The names of all processes whose command line names `dir`, those of the shells that watch over others
/// included.
fn running(dir: &Path) -> Vec<String> {
    let dir = dir.to_string_lossy();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
    let programs = lines.filter(|line| line.contains(&*dir)).filter_map(|line| {
        let program = Path::new(line.split('\0').next()?).file_name()?;
        Some(program.to_string_lossy().into_owned())
    });
    let mut programs: Vec<_> = programs.collect();
    programs.sort();
    programs
}

fn servers(dir: &Path) -> Vec<String> {
    running(dir).into_iter().filter(|name| ["etcd", "kube-apiserver"].contains(&name.as_str())).collect()
}

/// How many widgets an audit log saw being created.
fn widgets_created(log: &Path) -> Result<usize> {
    let log = fs::read_to_string(log)?;
    let events = log.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
    let created = |event: &&Value| {
        event["responseStatus"]["code"] == 201 && event["objectRef"]["resource"] == "widgets"
    };
    Ok(events.iter().filter(created).count())
}

async fn create<K>(api: Api<K>, object: Value) -> Result<K>
where
    K: Clone + std::fmt::Debug + DeserializeOwned + serde::Serialize,
{
    Ok(api.create(&PostParams::default(), &serde_json::from_value(object)?).await?)
}

fn widget(name: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": 3}})
}

fn widgets(client: &Client) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: "example.com".into(),
        version: "v1".into(),
        api_version: "example.com/v1".into(),
        kind: "Widget".into(),
        plural: "widgets".into(),
    };
    Api::namespaced_with(client.clone(), "default", &resource)
}

async fn create_widgets(client: &Client) -> Result<()> {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let crd = json!({"metadata": {"name": "widgets.example.com"}, "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
    }});
    let crds = Api::<CustomResourceDefinition>::all(client.clone());
    create(crds.clone(), crd).await?;
    await_condition(crds, "widgets.example.com", conditions::is_crd_established()).await?;
    // A server that is busy serves the resource a little later.
    let served = async || Ok(widgets(client).list(&ListParams::default()).await.ok().map(drop));
    eventually(GUARD, "the resource is served", served).await
}
