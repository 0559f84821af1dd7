//! The output of commands about a cluster that does not have, or does not grant, what they were asked for;
//! and how much they print of one that has much.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Cluster, crd, with_spec};
use e2e::control_plane::{ControlPlane, Options, object_key};
use e2e::operator::binary;
use e2e::scene::apply;
use serde_json::{Value, json};

use crate::flags::is_one_line;
use crate::process::{Ended, run, text};

const GROUP: &str = "stable.example.com";
/// Far more than a table names.
const OBJECTS: usize = 60;

/// A control plane with widgets that lack a default, and files in a folder.
struct Stage {
    control_plane: ControlPlane,
    dir: tempfile::TempDir,
}

impl Stage {
    async fn start() -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let control_plane = ControlPlane::start(Options::new(dir.path().join("cluster"))).await?;
        let cluster = Cluster::of(&control_plane).await?;
        cluster.apply_crd(&widgets(&json!({ "type": "integer" }))).await?;
        for number in 0..OBJECTS {
            let collection = format!("/apis/{GROUP}/v1/namespaces/default/widgets");
            cluster.create(&collection, "creator", &widget(&format!("w-{number:04}"))).await?;
        }
        cluster.apply_crd(&widgets(&json!({ "type": "integer", "default": 1 }))).await?;
        let metadata = json!({ "name": "nobody", "namespace": "default" });
        apply(&cluster, &json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata }))
            .await?;
        let stage = Self { control_plane, dir };
        stage.file("old.json", &widgets(&json!({ "type": "integer" })))?;
        stage.file("now.json", &widgets(&json!({ "type": "integer", "default": 1 })))?;
        stage.file("new.json", &widgets(&json!({ "type": "integer", "default": 5 })))?;
        stage.file("gone.json", &widgets(&json!({ "type": "integer" })))?;
        stage.file(
            "gadgets.json",
            &crd(GROUP, "Gadget", &[("v1", true, schema(&json!({ "type": "integer" })))]),
        )?;
        let more = schema(&json!({ "type": "integer", "default": 1 }));
        stage.file("more.json", &crd(GROUP, "Gadget", &[("v1", true, more)]))?;
        let old = schema(&json!({ "type": "integer" }));
        stage.file("v0.json", &crd(GROUP, "Widget", &[("v0", true, old)]))?;
        Ok(stage)
    }

    fn file(&self, name: &str, document: &Value) -> Result<()> {
        Ok(std::fs::write(self.dir.path().join(name), document.to_string())?)
    }

    /// Runs it as the administrator.
    fn etch(&self, line: &[&str]) -> Result<Ended> {
        self.etch_as(&self.control_plane.kubeconfig(0), line)
    }

    fn etch_as(&self, kubeconfig: &Path, line: &[&str]) -> Result<Ended> {
        let mut command = Command::new(binary()?);
        command.args(["--kubeconfig", text(kubeconfig)]).args(line).current_dir(self.dir.path());
        run(command, b"")
    }

    /// Expects one line with this text, and nothing else.
    fn fails(&self, kubeconfig: &Path, line: &[&str], says: &str) -> Result<()> {
        let ended = self.etch_as(kubeconfig, line)?;
        let line: Vec<String> = line.iter().map(ToString::to_string).collect();
        is_one_line(&line, &ended)?;
        ensure!(ended.err.contains(says), "{line:?} does not say {says:?}: {ended:?}");
        ensure!(ended.out.is_empty(), "{line:?}: {ended:?}");
        Ok(())
    }
}

fn schema(a: &Value) -> Value {
    with_spec(json!({ "a": a, "b": { "type": "string" } }))
}

fn widgets(a: &Value) -> Value {
    crd(GROUP, "Widget", &[("v1", true, schema(a))])
}

fn widget(name: &str) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Widget",
        "metadata": { "name": name, "namespace": "default" }, "spec": { "b": "x" },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_is_asked_for_what_it_has() -> Result<()> {
    let stage = Stage::start().await?;
    what_is_not_there_is_told_in_one_line(&stage)?;
    what_is_not_granted_is_told_in_one_line(&stage).await?;
    etcd_is_named_as_for_etcdctl(&stage)?;
    a_crd_that_is_not_there_has_no_objects(&stage)?;
    a_crd_that_is_not_there_is_skipped_where_that_was_asked_for(&stage).await?;
    what_fails_is_what_was_asked_for(&stage)?;
    many_objects_are_summed_up(&stage)?;
    markdown_is_bounded(&stage)?;
    an_upgrade_is_planned(&stage)?;
    the_policy_is_named(&stage)?;
    a_storage_version_that_is_not_served_is_named(&stage).await?;
    what_the_api_server_cannot_read_is_named(&stage).await
}

/// What a plan learns from a cluster: the API server's answer, the objects and the versions that are stored.
fn an_upgrade_is_planned(stage: &Stage) -> Result<()> {
    let steps = |file: &str| -> Result<(Option<i32>, Vec<String>, Value)> {
        let ended = stage.etch(&["plan", "-f", file, "--live", "-o", "json"])?;
        let planned = ended.json()?["crds"][0].clone();
        let steps = planned["steps"].as_array().into_iter().flatten();
        let steps = steps.map(|step| step["step"].as_str().unwrap_or_default().to_owned()).collect();
        Ok((ended.code, steps, planned))
    };
    let (code, steps_of_new, planned) = steps("new.json")?;
    ensure!(code == Some(1) && steps_of_new.contains(&"persist".to_owned()), "{planned:#}");
    ensure!(planned["objects"]["protectedByPersist"] == OBJECTS, "{planned:#}");
    ensure!(
        planned["dryRun"]["answer"] != "refused" && planned["dryRun"]["answer"].is_string(),
        "{planned:#}"
    );
    // Nothing was applied.
    let (code, steps_of_same, planned) = steps("now.json")?;
    ensure!(planned["dryRun"]["answer"] == "same" && steps_of_same.is_empty(), "{planned:#}");
    ensure!(code == Some(0), "{planned:#}");
    let mut refused = widgets(&json!({ "type": "integer", "default": 1 }));
    refused["spec"]["scope"] = "Cluster".into();
    stage.file("refused.json", &refused)?;
    let (code, steps_of_refused, planned) = steps("refused.json")?;
    ensure!(code == Some(1) && steps_of_refused[0] == "fix", "{planned:#}");
    ensure!(planned["dryRun"]["answer"] == "refused", "{planned:#}");
    let ended = stage.etch(&["plan", "-f", "new.json", "--live", "-n", "default"])?;
    ensure!(ended.code == Some(2) && ended.err.contains("objects of all namespaces"), "{ended:?}");
    Ok(())
}

/// A comment on a pull request has the values of defaults, a few objects and the number of the others.
fn markdown_is_bounded(stage: &Stage) -> Result<()> {
    let line = ["impact", "-f", "new.json", "--live", "-o", "markdown"];
    let ended = stage.etch(&line)?;
    for says in [
        "## What the CRD upgrade changes in all namespaces\n\n### `widgets.stable.example.com` (`v1`)\n",
        "| default changed | `.spec.a` | `1` → `5` |\n",
        "**60 objects, 60 affected:**\n\n| Objects | Effect | Where |\n|---|---|---|\n| 60 | changes | \
         `.spec.a` |\n",
        "| `default/w-0000` | changes | `.spec.a` |\n",
        "\nand 50 more objects\n\n</details>\n",
        "`etch persist widgets.stable.example.com` before the upgrade keeps values of 60 objects as they \
         are.",
    ] {
        ensure!(ended.out.contains(says), "{says:?}: {}", ended.out);
    }
    ensure!(ended.code == Some(1) && ended.out.lines().count() < 45, "{}", ended.out);
    Ok(())
}

/// Under which policy a command decides: none if Etch is not installed, or those of a file.
fn the_policy_is_named(stage: &Stage) -> Result<()> {
    let policy = json!({
        "apiVersion": "etch-operator.io/v1alpha1", "kind": "DefaultsPolicy", "metadata": { "name": "all" },
        "spec": { "mode": "Audit" },
    });
    stage.file("policies.json", &policy)?;
    for line in [
        &["audit", "widgets"][..],
        &["explain", "widgets", "w-0001"],
        &["impact", "-f", "new.json", "--live"],
    ] {
        let ended = stage.etch(line)?;
        let note = "note: Etch's CRDs are not installed; assuming a policy without settings (see --policy)\n";
        ensure!(
            ended.out.contains("Policy: none read; assuming one without settings\n") && ended.err == note,
            "{ended:?}"
        );
        let line = [line, &["--policy", "policies.json"]].concat();
        let ended = stage.etch(&line)?;
        ensure!(ended.out.contains("Policy: all (mode: Audit)\n") && ended.err.is_empty(), "{ended:?}");
        let json = stage.etch(&[&line[..], &["-o", "json"]].concat())?.json()?;
        let policy = if line[0] == "explain" { &json["policy"] } else { &json["crds"][0]["policy"] };
        ensure!(policy["name"] == "all" && policy["mode"] == "Audit", "{json:#}");
    }
    Ok(())
}

fn what_is_not_there_is_told_in_one_line(stage: &Stage) -> Result<()> {
    let admin = stage.control_plane.kubeconfig(0);
    for (line, says) in [
        (&["audit", "nosuch"][..], "\"nosuch\""),
        (&["persist", "nosuch"], "\"nosuch\""),
        (&["persist", "nosuch", "--dry-run"], "\"nosuch\""),
        (&["explain", "nosuch", "a"], "\"nosuch\""),
        (&["explain", "widgets", "nosuch"], "nosuch"),
        (&["explain", "widgets", "w-0001", "-n", "nosuch"], "nosuch"),
        (
            &["rbac", "now.json", "--policy", "nosuch"],
            "Etch's CRDs are not installed: `etch crds | kubectl apply -f -`",
        ),
        (&["impact", "-f", "new.json", "--old", "v0.json", "--live"], "the cluster does not serve v0"),
        (&["audit", "a\nb"], "a"),
    ] {
        stage.fails(&admin, line, says)?;
    }
    Ok(())
}

/// No request reaches its objects: the answer of the API server, 404, names neither the reason nor a way out.
async fn a_storage_version_that_is_not_served_is_named(stage: &Stage) -> Result<()> {
    let cluster = Cluster::of(&stage.control_plane).await?;
    let defaulted = schema(&json!({ "type": "integer", "default": 1 }));
    let mut gizmos = crd(GROUP, "Gizmo", &[("v1", false, defaulted.clone()), ("v2", true, defaulted)]);
    gizmos["spec"]["versions"][1]["served"] = false.into();
    cluster.apply_crd(&gizmos).await?;
    stage.file("gizmos.json", &gizmos)?;
    let says = "the storage version v2 is not served, so its objects cannot be read there: serve it, or make \
        a served version the storage version";
    let admin = stage.control_plane.kubeconfig(0);
    for line in [
        &["audit", "gizmos"][..],
        &["audit", "gizmos", "--stored-versions"],
        &["explain", "gizmos", "a"],
        &["revert", "gizmos"],
        &["impact", "-f", "gizmos.json", "--live"],
    ] {
        stage.fails(&admin, line, says)?;
    }
    let ended = stage.etch(&["persist", "gizmos"])?;
    ensure!(ended.code == Some(2) && ended.err.contains(says), "{ended:?}");
    Ok(())
}

/// A conversion webhook that does not answer is named once with the cause and its place, and a value in etcd
/// that cannot be decoded with its key; no value is.
async fn what_the_api_server_cannot_read_is_named(stage: &Stage) -> Result<()> {
    let cluster = Cluster::of(&stage.control_plane).await?;
    let webhook = json!({ "strategy": "Webhook", "webhook": {
        "conversionReviewVersions": ["v1"], "clientConfig": { "url": "https://127.0.0.1:1/convert" },
    } });
    let (old, new) =
        (schema(&json!({ "type": "integer" })), schema(&json!({ "type": "integer", "default": 1 })));
    for kind in ["Cog", "Rod"] {
        cluster.apply_crd(&crd(GROUP, kind, &[("v1beta1", true, old.clone())])).await?;
        let object = json!({ "apiVersion": format!("{GROUP}/v1beta1"), "kind": kind,
                             "metadata": { "name": "a" }, "spec": { "b": "hunter2" } });
        let plural = e2e::cluster::plural(kind);
        cluster
            .create(&format!("/apis/{GROUP}/v1beta1/namespaces/default/{plural}"), "creator", &object)
            .await?;
        let mut document = crd(GROUP, kind, &[("v1beta1", false, old.clone()), ("v1", true, new.clone())]);
        if kind == "Cog" {
            document["spec"]["conversion"] = webhook.clone();
        }
        cluster.apply_crd(&document).await?;
        stage.file(&format!("{plural}.json"), &document)?;
    }
    let key = object_key(GROUP, "rods", Some("default"), "a");
    cluster.etcd().put(&key, br#"{"apiVersion":"stable.example.com/v1","kind":"Rod",hunter2}"#).await?;
    let failed = "(the conversion webhook failed: connection refused); check the webhook in spec.conversion \
        of the CRD, https://127.0.0.1:1/convert";
    let corrupt = "(etcd holds a value that the API server cannot decode); correct or delete the value of \
        default/a: its key in etcd ends with /stable.example.com/rods/default/a";
    for (plural, what) in [("cogs", failed), ("rods", corrupt)] {
        let file = format!("{plural}.json");
        for (line, begin) in [
            (&["audit", plural][..], "cannot list the objects: "),
            (&["persist", plural], "cannot list the objects: "),
            (&["persist", plural, "--dry-run"], "cannot list the objects: "),
            (&["impact", "-f", &file, "--live"], "cannot list the objects: "),
            (&["explain", plural, "a"], "cannot get "),
        ] {
            let ended = stage.etch(line)?;
            let once = ended.err.matches("the API server answered").count() == 1;
            let is_named = ended.err.contains(begin) && ended.err.contains(what);
            ensure!(ended.code == Some(2) && once && is_named, "{line:?}: {ended:?}");
            ensure!(!format!("{ended:?}").contains("hunter2"), "{line:?}: {ended:?}");
        }
    }
    Ok(())
}

/// A user without permissions gets an error that names the missing permission, and for what.
async fn what_is_not_granted_is_told_in_one_line(stage: &Stage) -> Result<()> {
    let nobody = stage.control_plane.service_account_kubeconfig(0, "default", "nobody").await?;
    let crds = "customresourcedefinitions.apiextensions.k8s.io";
    for (line, verb, resource) in [
        (&["audit"][..], "list", crds),
        (&["audit", "widgets"], "get", crds),
        (&["persist", "widgets"], "get", crds),
        (&["persist", "widgets", "--dry-run"], "get", crds),
        (&["explain", "widgets", "w-0001"], "get", crds),
        (&["impact", "-f", "new.json", "--live"], "get", crds),
        (&["plan", "-f", "new.json", "--live"], "get", crds),
        (&["impact", "-f", "new.json", "--old", "old.json", "--live"], "get", crds),
        (&["lint", "--live"], "list", crds),
        (&["rbac"], "list", crds),
        (&["rbac", "now.json", "--policy", "default"], "list", "defaultspolicies.etch-operator.io"),
    ] {
        stage.fails(&nobody, line, &format!("no permission to {verb} {resource}"))?;
    }
    // What is in the way of one thing keeps no other.
    let ended = stage.etch_as(&nobody, &["clean"])?;
    let refused = [
        ("get", "mutatingwebhookconfigurations.admissionregistration.k8s.io"),
        ("get", "validatingwebhookconfigurations.admissionregistration.k8s.io"),
        ("list", crds),
        ("list", "defaultsreports.etch-operator.io"),
    ];
    let says = |(verb, resource)| ended.err.contains(&format!("no permission to {verb} {resource}"));
    ensure!(ended.code == Some(2) && refused.into_iter().all(says), "{ended:?}");
    Ok(())
}

fn etcd_is_named_as_for_etcdctl(stage: &Stage) -> Result<()> {
    let url = stage.control_plane.etcd_url();
    let plain = url.strip_prefix("http://").context("an etcd without TLS")?;
    for endpoint in [url, plain, &format!("localhost:1,{plain}")] {
        let ended = stage.etch(&["audit", "widgets", "--etcd-endpoints", endpoint, "-o", "json"])?;
        ensure!(ended.code == Some(1), "{endpoint}: {ended:?}");
        ensure!(ended.json()?["crds"][0]["phantom"] == OBJECTS, "{endpoint}: {ended:?}");
    }
    let admin = stage.control_plane.kubeconfig(0);
    stage.fails(&admin, &["audit", "--etcd-endpoints", plain, "--etcd-prefix", "/x\n"], "set --etcd-prefix")
}

fn a_crd_that_is_not_there_has_no_objects(stage: &Stage) -> Result<()> {
    let line = ["impact", "-f", "more.json", "--old", "gadgets.json", "--live"];
    let ended = stage.etch(&line)?;
    ensure!(ended.code == Some(1) && ended.err.is_empty(), "{ended:?}");
    for says in
        ["The cluster does not have this CRD, so there are no objects to check.", "default added   .spec.a"]
    {
        ensure!(ended.out.contains(says), "{says:?}: {ended:?}");
    }
    let reported = stage.etch(&[&line[..], &["-o", "json"]].concat())?.json()?;
    let reported = &reported["crds"][0];
    ensure!(reported["inCluster"] == false && reported["objects"]["total"] == 0, "{reported:#}");
    ensure!(reported["defaultsAdded"][0]["path"] == ".spec.a", "{reported:#}");
    let ended = stage.etch(&["impact", "-f", "gadgets.json", "--old", "gadgets.json", "--live"])?;
    ensure!(ended.code == Some(0) && ended.out.contains("Nothing changes."), "{ended:?}");
    Ok(())
}

/// With `--ignore-not-found` a CRD that does not exist is skipped, and no other is processed in its place.
async fn a_crd_that_is_not_there_is_skipped_where_that_was_asked_for(stage: &Stage) -> Result<()> {
    let ended = stage.etch(&["persist", "nosuch", "--ignore-not-found"])?;
    ensure!(ended.code == Some(0) && ended.out == "No such CRD.\n", "{ended:?}");
    ensure!(ended.err == "note: the server doesn't have a resource type \"nosuch\": skipped\n", "{ended:?}");
    let line = ["persist", "nosuch", "widgets", "--ignore-not-found", "--dry-run", "-o", "json"];
    let ended = stage.etch(&line)?;
    let totals = &ended.json()?["totals"];
    ensure!(ended.code == Some(1) && totals["crds"] == 1 && totals["due"] == OBJECTS, "{ended:?}");
    // What cannot be found out is not taken for missing.
    let admin = stage.control_plane.kubeconfig(0);
    stage.fails(&admin, &["persist", "pods", "--ignore-not-found"], "is not a custom resource")?;
    let nobody = stage.control_plane.service_account_kubeconfig(0, "default", "nobody").await?;
    let line = ["persist", "nosuch.example.com", "--ignore-not-found"];
    stage.fails(&nobody, &line, "no permission to get customresourcedefinitions.apiextensions.k8s.io")
}

/// `--fail-on` distinguishes additions from changes and losses; JSON has the same words.
fn what_fails_is_what_was_asked_for(stage: &Stage) -> Result<()> {
    for (old, new, kinds, codes) in [
        ("now.json", "now.json", &[][..], [0, 0, 0]),
        ("old.json", "now.json", &["addition"], [1, 0, 0]),
        ("now.json", "new.json", &["change"], [1, 1, 0]),
        ("now.json", "gone.json", &["loss"], [1, 1, 1]),
    ] {
        for (what, code) in ["any", "changes", "losses"].iter().zip(codes) {
            let line = ["impact", "-f", new, "--old", old, "--fail-on", what, "-o", "json"];
            let ended = stage.etch(&line)?;
            ensure!(ended.code == Some(code), "{line:?}: {ended:?}");
            ensure!(ended.json()?["crds"][0]["kinds"] == json!(kinds), "{line:?}: {ended:?}");
        }
    }
    // For objects too: the schema comparison has it, and each of them.
    let ended = stage.etch(&["impact", "-f", "new.json", "--live", "--fail-on", "losses", "-o", "json"])?;
    let reported = &ended.json()?["crds"][0];
    ensure!(ended.code == Some(0) && reported["kinds"] == json!(["change"]), "{:?}", reported["kinds"]);
    ensure!(reported["details"][0]["kinds"] == json!(["change"]), "{:#}", reported["details"][0]);
    Ok(())
}

fn many_objects_are_summed_up(stage: &Stage) -> Result<()> {
    let ended = stage.etch(&["impact", "-f", "new.json", "--live"])?;
    for says in [
        // The API server remembers that the CRD had no such default when they were created.
        "60 objects, 60 affected:\nOBJECTS   EFFECT    WHERE\n     60   changes   .spec.a\n",
        "OBJECT           EFFECT    WHERE\ndefault/w-0000   changes   .spec.a\n",
        "and 50 more; --limit 0 lists all\n",
        "`etch persist widgets.stable.example.com` before the upgrade keeps values of 60 objects as they \
         are.",
    ] {
        ensure!(ended.out.contains(says), "{says:?}: {}", ended.out);
    }
    ensure!(ended.out.lines().count() < 30, "{}", ended.out);
    let lines = |limit: &str| -> Result<usize> {
        let ended = stage.etch(&["impact", "-f", "new.json", "--live", "--limit", limit])?;
        Ok(ended.out.lines().filter(|line| line.starts_with("default/w-")).count())
    };
    ensure!((lines("3")?, lines("0")?) == (3, OBJECTS));
    let ended = stage.etch(&["persist", "widgets", "--dry-run"])?;
    for says in [
        "OBJECTS   ACTION   WHERE\nwidgets.stable.example.com        60   apply    .spec.a\n",
        "and 50 more; --limit 0 lists all\n",
        "60 objects of 1 CRD: 60 to be written.",
    ] {
        ensure!(ended.out.contains(says), "{says:?}: {}", ended.out);
    }
    ensure!(ended.out.lines().count() < 20, "{}", ended.out);
    let ended = stage.etch(&["audit", "widgets", "--objects", "--limit", "4"])?;
    let named = ended.out.lines().filter(|line| line.contains("default/w-")).count();
    ensure!(named == 4 && ended.out.contains("\nand 56 more; --limit 0 lists all\n"), "{}", ended.out);
    // Nothing is to be noted of any CRD.
    ensure!(!ended.out.contains("NOTE"), "{}", ended.out);
    for (line, list) in [
        (&["audit", "widgets", "--objects", "-o", "json"][..], "details"),
        (&["persist", "widgets", "--dry-run", "--limit", "4", "-o", "json"], "plans"),
    ] {
        let reported = stage.etch(line)?.json()?;
        ensure!(reported["crds"][0][list].as_array().map(Vec::len) == Some(OBJECTS), "{line:?}");
    }
    let json = stage.etch(&["impact", "-f", "new.json", "--live", "--limit", "3", "-o", "json"])?.json()?;
    ensure!(
        json["crds"][0]["details"].as_array().map(Vec::len) == Some(OBJECTS),
        "programs are told everything"
    );
    ensure!(
        json["crds"][0]["summary"]
            == json!([{ "effect": "changes", "where": ".spec.a", "objects": OBJECTS, "known": true }])
    );
    Ok(())
}
