//! Other writers have precedence: between Etch's read and its write, and all the time.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Cluster, Patch, crd, with_spec};
use e2e::scene::Scene;
use etch::cluster::GenerationCheck;
use etch_core::crd::Crd;
use etch_core::object::Object;
use etch_core::plan::{Outcome, Plan, Record, Strategy, Terms, Write, decide};
use kube_structural_schema::json::Json;
use serde_json::{Value, json};
use tokio::time::Instant;

const GROUP: &str = "races.example.com";
const OBJECTS: &str = "/apis/races.example.com/v1/namespaces/default/widgets";

/// What a user does between our read and our write.
#[derive(Clone, Copy, Debug)]
enum Meanwhile {
    Edits,
    Deletes,
    Recreates,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_between_our_read_and_ours_stands() -> Result<()> {
    let scene = Scene::start(&[GROUP]).await?;
    let cluster = &scene.cluster;
    let config = scene.control_plane.config(0).await?;
    let etch = etch::cluster::Cluster::with_config(config)?;
    cluster.apply_crd(&widgets(&[("v1beta1", true, schema(false))])).await?;
    let ways = [Strategy::Apply, Strategy::Merge, Strategy::Rewrite];
    let meanwhile = [Meanwhile::Edits, Meanwhile::Deletes, Meanwhile::Recreates];
    let cases: Vec<_> = ways.into_iter().flat_map(|way| meanwhile.map(|what| (way, what))).collect();
    let name = |index: usize| format!("case-{index}");
    for (index, (way, _)) in cases.iter().enumerate() {
        create(cluster, &name(index), *way).await?;
    }
    // Rewrites are for owners at a version without the default; the others live at one version only.
    cluster.apply_crd(&widgets(&[("v1beta1", false, schema(false)), ("v1", true, schema(true))])).await?;
    for (index, (way, _)) in cases.iter().enumerate() {
        if *way != Strategy::Rewrite {
            cluster.delete(&path(&name(index))).await?;
            cluster.create(OBJECTS, "owner", &widget("v1", &name(index))).await?;
            plant_phantom(cluster, &name(index), *way).await?;
        }
    }
    let document = cluster.get(&format!("{}/widgets.{GROUP}", e2e::cluster::CRDS)).await?;
    let crd = Crd::read(&Json::from(document))?;

    for (index, (way, what)) in cases.into_iter().enumerate() {
        let context = || format!("{way:?} while somebody {what:?}");
        let name = name(index);
        let read = Object::from(cluster.get(&path(&name)).await?);
        let write = planned(&read, &crd).with_context(context)?;
        assert_eq!(write.strategy, way, "{}", context());
        meanwhile_happens(cluster, &name, what).await?;
        let before = cluster.etcd().raw_object(GROUP, "widgets", Some("default"), &name).await?;
        let (terms, check) = (Terms::default(), GenerationCheck::new(&crd, None));
        let outcome = etch.perform(&crd, &read, Instant::now(), &write, &terms, &check).await;
        ensure!(matches!(outcome, Ok(Outcome::Conflict | Outcome::Gone)), "{}: {outcome:?}", context());
        let after = cluster.etcd().raw_object(GROUP, "widgets", Some("default"), &name).await?;
        assert_eq!(before, after, "{}", context());
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_users_do_during_a_pass_stands() -> Result<()> {
    const COUNT: usize = 120;
    let scene = Scene::start(&[GROUP]).await?;
    let cluster = &scene.cluster;
    cluster.apply_crd(&widgets(&[("v1", true, schema(false))])).await?;
    let name = |index: usize| format!("widget-{index}");
    for index in 0..COUNT {
        cluster.create(OBJECTS, "owner", &widget("v1", &name(index))).await?;
    }
    let operator = scene.operator(&[])?;
    scene.barrier().await?;
    cluster.apply_crd(&widgets(&[("v1", true, schema(true))])).await?;
    for round in 0..3 {
        for index in 0..COUNT {
            let path = path(&name(index));
            match index % 3 {
                0 => drop(
                    cluster.patch(&path, Patch::Merge, "user", &json!({ "spec": { "size": round } })).await?,
                ),
                1 if round == 1 => drop(cluster.delete(&path).await?),
                2 => {
                    cluster.delete(&path).await?;
                    cluster.create(OBJECTS, "user", &sized("v1", &name(index), round)).await?;
                }
                _ => {}
            }
        }
    }
    cluster.persisted(&format!("widgets.{GROUP}"), "AllPersisted", Duration::from_secs(60)).await?;
    for index in 0..COUNT {
        let raw = cluster.etcd().raw_object(GROUP, "widgets", Some("default"), &name(index)).await?;
        if index % 3 == 1 {
            assert_eq!(raw, None, "{} stays deleted", name(index));
            continue;
        }
        let raw = raw.context(name(index))?;
        assert_eq!(raw["spec"], json!({ "size": 2, "color": "green" }), "{}", name(index));
    }
    operator.stop().await
}

fn planned(object: &Object, crd: &Crd) -> Result<Write> {
    let record = Record { versions_disagree: true, ..Record::default() };
    match decide(object, crd, &Terms::default(), &record) {
        Plan::Write(write) => Ok(write),
        other => anyhow::bail!("planned {other:?}"),
    }
}

async fn meanwhile_happens(cluster: &Cluster, name: &str, what: Meanwhile) -> Result<()> {
    let path = path(name);
    match what {
        Meanwhile::Edits => {
            cluster.patch(&path, Patch::Merge, "user", &json!({ "spec": { "size": 7 } })).await?.ok()?;
        }
        Meanwhile::Deletes => drop(cluster.delete(&path).await?),
        Meanwhile::Recreates => {
            cluster.delete(&path).await?;
            cluster.create(OBJECTS, "user", &sized("v1", name, 7)).await?;
        }
    }
    Ok(())
}

async fn create(cluster: &Cluster, name: &str, way: Strategy) -> Result<()> {
    let objects = OBJECTS.replace("/v1/", "/v1beta1/");
    cluster.create(&objects, "owner", &widget("v1beta1", name)).await?;
    if way == Strategy::Merge {
        wipe(cluster, &format!("{objects}/{name}")).await?;
    }
    Ok(())
}

/// Takes the default out of etcd, past the API server, so that the object shows it and does not hold it.
async fn plant_phantom(cluster: &Cluster, name: &str, way: Strategy) -> Result<()> {
    if way == Strategy::Merge {
        wipe(cluster, &path(name)).await?;
    }
    let key = e2e::control_plane::object_key(GROUP, "widgets", Some("default"), name);
    let (bytes, _) = cluster.etcd().get(&key).await?.context("the object")?;
    let mut raw: Value = serde_json::from_slice(&bytes)?;
    raw["spec"].as_object_mut().context("a spec")?.remove("color");
    cluster.etcd().put_json(&key, &raw).await
}

async fn wipe(cluster: &Cluster, path: &str) -> Result<()> {
    let wiped = json!({ "metadata": { "managedFields": [{}] } });
    cluster.patch(path, Patch::Merge, "owner", &wiped).await?.ok().map(drop)
}

fn widgets(versions: &[(&str, bool, Value)]) -> Value {
    crd(GROUP, "Widget", versions)
}

fn schema(with_default: bool) -> Value {
    let mut spec = json!({ "size": { "type": "integer" } });
    if with_default {
        spec["color"] = json!({ "type": "string", "default": "green" });
    }
    with_spec(spec)
}

fn widget(version: &str, name: &str) -> Value {
    sized(version, name, 1)
}

fn sized(version: &str, name: &str, size: i64) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/{version}"),
        "kind": "Widget",
        "metadata": { "name": name },
        "spec": { "size": size },
    })
}

fn path(name: &str) -> String {
    format!("{OBJECTS}/{name}")
}
