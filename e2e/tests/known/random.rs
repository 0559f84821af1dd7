//! What is known about the objects of random types without access to etcd, in three situations, compared with
//! etcd.
//!
//! `TYPES` sets how many types (the usual run has 12), and `TYPES_SEED` which come first.

use std::collections::BTreeMap;
use std::io::Write as _;

use anyhow::{Context, Result, ensure};
use e2e::aged::{self, BEFORE, DEFINITIONS};
use e2e::cluster::{Cluster, Patch, crd, plural};
use e2e::environment::number;
use e2e::scene::Scene;
use fastrand::Rng;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};

use crate::{SOON, etch, scene};

const GROUP: &str = "random.example.com";
/// How many types share a control plane: it remembers a hundred events of CRDs, however long ago they were.
const TOGETHER: usize = 12;
const USUAL: usize = TOGETHER;
/// How many of them are worked on at once.
const AT_ONCE: usize = 8;
const REPORTS: &str = "/apis/etch-operator.io/v1alpha1/defaultsreports";

/// How the present default came to be stored, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Situation {
    /// `etch persist`, by a user who may patch objects and nothing else.
    ByHand,
    /// A pass of the operator, whose report is gone.
    ReportGone,
    /// Etch was never there.
    Never,
}

const SITUATIONS: [Situation; 3] = [Situation::ByHand, Situation::ReportGone, Situation::Never];

/// Where the default is.
#[derive(Clone, Copy, Debug)]
enum Place {
    Field,
    Nested,
    Map,
    ListMap,
    Atomic,
}

/// A random type.
struct Type {
    seed: u64,
    kind: String,
    situation: Situation,
    place: Place,
    /// Whether the field comes with its default, as about half of those in real upgrades do.
    is_new: bool,
    /// Whether a second version is served that is like the first.
    has_old_version: bool,
    objects: usize,
}

/// What is known about the objects of a situation.
#[derive(Debug, Default)]
struct Known {
    objects: usize,
    stored: usize,
    phantom: usize,
    unknown: usize,
    /// Those of them with a field in an atomic list that was there before its default.
    atomic: usize,
    /// Others that a user wrote between their creation and the upgrade.
    written: usize,
}

impl Known {
    /// How many in a hundred are known.
    fn share(&self) -> f64 {
        100.0 * (self.objects - self.unknown) as f64 / self.objects as f64
    }
}

impl Type {
    fn random(seed: u64, index: usize) -> Self {
        let mut rng = Rng::with_seed(seed);
        let places = [Place::Field, Place::Field, Place::Nested, Place::Map, Place::ListMap, Place::Atomic];
        Self {
            seed,
            kind: format!("Kind{index}"),
            situation: SITUATIONS[index % SITUATIONS.len()],
            place: places[rng.usize(..places.len())],
            is_new: rng.bool(),
            has_old_version: rng.u8(..4) == 0,
            objects: rng.usize(4..16),
        }
    }

    fn plural(&self) -> String {
        plural(&self.kind)
    }

    fn name(&self) -> String {
        format!("{}.{GROUP}", self.plural())
    }

    fn collection(&self) -> String {
        format!("/apis/{GROUP}/v1/namespaces/default/{}", self.plural())
    }

    fn path(&self, object: &str) -> String {
        format!("{}/{object}", self.collection())
    }

    /// The CRD, before its upgrade or after.
    fn crd(&self, is_upgraded: bool) -> Value {
        let mut inner = json!({ "name": { "type": "string" }, "b": { "type": "integer" } });
        if is_upgraded || !self.is_new {
            inner["d"] = json!({ "type": "integer" });
        }
        if is_upgraded {
            inner["d"]["default"] = 5.into();
        }
        let inner = json!({ "type": "object", "properties": inner });
        let list = |list: &str| {
            let mut items = inner.clone();
            items["required"] = json!(["name"]);
            let mut array = json!({ "type": "array", "x-kubernetes-list-type": list, "items": items });
            if list == "map" {
                array["x-kubernetes-list-map-keys"] = json!(["name"]);
            }
            array
        };
        let properties = match self.place {
            Place::Field => inner["properties"].clone(),
            Place::Nested => json!({ "in": inner }),
            Place::Map => json!({ "in": { "type": "object", "additionalProperties": inner } }),
            Place::ListMap => json!({ "in": list("map") }),
            Place::Atomic => json!({ "in": list("atomic") }),
        };
        let mut spec = json!({ "type": "object", "properties": properties });
        spec["properties"]["a"] = json!({ "type": "integer" });
        let schema = json!({ "type": "object", "properties": { "spec": spec } });
        let old = self.has_old_version.then(|| ("v1beta1", false, schema.clone()));
        let versions: Vec<_> = old.into_iter().chain([("v1", true, schema.clone())]).collect();
        crd(GROUP, &self.kind, &versions)
    }

    /// An object, with this value in the field that is to have a default.
    fn object(&self, name: &str, version: &str, d: Option<i64>) -> Value {
        let mut inner = json!({ "name": "n", "b": 1 });
        d.into_iter().for_each(|d| inner["d"] = d.into());
        let mut spec = match self.place {
            Place::Field => inner,
            Place::Nested => json!({ "in": inner }),
            Place::Map => json!({ "in": { "k": inner } }),
            Place::ListMap | Place::Atomic => json!({ "in": [inner] }),
        };
        spec["a"] = 1.into();
        json!({
            "apiVersion": format!("{GROUP}/{version}"), "kind": self.kind, "metadata": { "name": name },
            "spec": spec,
        })
    }

    /// Whether etcd holds a value in that field.
    fn is_stored(&self, raw: &Value) -> bool {
        let inside = &raw["spec"]["in"];
        let d = match self.place {
            Place::Field => &raw["spec"]["d"],
            Place::Nested => &inside["d"],
            Place::Map => &inside["k"]["d"],
            Place::ListMap | Place::Atomic => &inside[0]["d"],
        };
        d.is_number()
    }

    /// Creates the type and its objects; returns the names of those that a user wrote afterwards.
    async fn begin(&self, scene: &Scene) -> Result<Vec<String>> {
        let mut rng = Rng::with_seed(self.seed);
        let cluster = &scene.cluster;
        cluster.apply_crd(&self.crd(false)).await?;
        let mut written = Vec::new();
        for index in 0..self.objects {
            let name = format!("o{index}");
            let version = if self.has_old_version && rng.bool() { "v1beta1" } else { "v1" };
            let d = (!self.is_new && rng.u8(..4) == 0).then(|| if rng.bool() { 5 } else { 7 });
            let object = self.object(&name, version, d);
            match rng.bool() {
                true => drop(
                    cluster
                        .create(
                            &self.collection().replace("/v1/", &format!("/{version}/")),
                            "creator",
                            &object,
                        )
                        .await?,
                ),
                false => {
                    let path = self.path(&name).replace("/v1/", &format!("/{version}/"));
                    cluster.patch(&path, Patch::Apply, "creator", &object).await?.ok()?;
                }
            }
            // One in twenty is written by another user before the upgrade, and of these every third has its
            // owners cleared.
            if rng.u8(..20) == 0 {
                written.push(name.clone());
                if rng.u8(..3) == 0 {
                    let nobody = json!({ "metadata": { "managedFields": [{}] } });
                    cluster.patch(&self.path(&name), Patch::Merge, "other", &nobody).await?.ok()?;
                }
                let edit = json!({ "spec": { "a": 2 } });
                cluster.patch(&self.path(&name), Patch::Merge, "other", &edit).await?.ok()?;
            }
        }
        Ok(written)
    }

    /// What users do after the upgrade: every fifth object is written.
    async fn go_on(&self, scene: &Scene) -> Result<()> {
        let mut rng = Rng::with_seed(self.seed.rotate_left(1));
        for index in 0..self.objects {
            if rng.u8(..5) > 0 {
                continue;
            }
            let body = match rng.bool() {
                true => json!({ "metadata": { "labels": { "touched": "yes" } } }),
                false => json!({ "spec": { "a": 3 } }),
            };
            scene
                .cluster
                .patch(&self.path(&format!("o{index}")), Patch::Merge, "other", &body)
                .await?
                .ok()?;
        }
        Ok(())
    }
}

async fn upgrade(cluster: &Cluster, each: &Type) -> Result<()> {
    cluster.apply_crd(&each.crd(true)).await.map(drop)
}

/// Plays these types on a control plane of their own, and adds up what is known at the end.
async fn play(types: &[Type], known: &mut BTreeMap<Situation, Known>) -> Result<()> {
    let scene = scene(GROUP).await?;
    let cluster = &scene.cluster;
    let begun = stream::iter(types).map(|each| each.begin(&scene));
    let written: Vec<Vec<String>> = begun.buffered(AT_ONCE).try_collect().await?;
    // What is there is old, and so are the upgrades.
    for under in [format!("{GROUP}/").as_str(), DEFINITIONS] {
        aged::values(cluster, under, BEFORE).await?;
    }
    stream::iter(types).map(Ok).try_for_each_concurrent(AT_ONCE, |each| upgrade(cluster, each)).await?;
    for each in types {
        aged::crd(cluster, &each.name()).await?;
    }
    // Something with the time, as there is in every cluster.
    let other = json!({ "type": "object" });
    cluster.apply_crd(&crd("other.example.com", "Other", &[("v1", true, other)])).await?;
    stream::iter(types).map(Ok).try_for_each_concurrent(AT_ONCE, |each| each.go_on(&scene)).await?;

    let of = |situation| types.iter().filter(move |each| each.situation == situation).map(Type::name);
    let by_hand: Vec<String> = of(Situation::ByHand).collect();
    let mut arguments = vec!["persist"];
    arguments.extend(by_hand.iter().map(String::as_str));
    etch(&scene, &arguments)?;
    let gone: Vec<String> = of(Situation::ReportGone).collect();
    scene.policy("gone", json!({ "selector": { "names": gone } })).await?;
    let operator = scene.operator(&[])?;
    for name in &gone {
        let persisted = cluster.persisted(name, "AllPersisted", SOON).await;
        persisted.with_context(|| operator.log().unwrap_or_default())?;
    }
    operator.stop().await?;
    for name in &gone {
        cluster.delete(&format!("{REPORTS}/{name}")).await?;
    }

    let (reported, _) = etch(&scene, &["audit", "--objects"])?;
    for (each, written) in types.iter().zip(&written) {
        let reported = reported["crds"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|reported| reported["crd"] == each.name().as_str());
        let reported = reported.with_context(|| each.name())?;
        let details = reported["details"].as_array().context("details")?;
        let known = known.entry(each.situation).or_default();
        for index in 0..each.objects {
            let name = format!("o{index}");
            let detail = details.iter().find(|detail| detail["name"] == name.as_str());
            let state = detail.map_or("stored", |detail| detail["state"].as_str().unwrap_or_default());
            let raw = cluster.raw(GROUP, &each.plural(), Some("default"), &name).await?;
            let is_stored = each.is_stored(&raw);
            let is_false = match state {
                "stored" => !is_stored,
                "phantom" => is_stored,
                _ => false,
            };
            ensure!(!is_false, "{} {name} is called {state}: {raw}", each.name());
            let is_untouched = !written.contains(&name);
            known.objects += 1;
            match state {
                "stored" => known.stored += 1,
                "phantom" => known.phantom += 1,
                _ => {
                    known.unknown += 1;
                    let is_atomic = matches!(each.place, Place::Atomic) && !each.is_new;
                    known.atomic += usize::from(is_atomic);
                    known.written += usize::from(!is_atomic && !is_untouched);
                }
            }
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_false_is_told_of_random_types() -> Result<()> {
    let (count, seed) = (number::<u64>("TYPES")?, number("TYPES_SEED")?);
    let seed = seed.unwrap_or(if count.is_some() { fastrand::u64(..1 << 32) } else { 1 });
    let count = usize::try_from(count.unwrap_or(USUAL as u64))?;
    writeln!(std::io::stderr(), "TYPES={count} TYPES_SEED={seed}")?;
    let types: Vec<Type> =
        (0..count).map(|index| Type::random(seed.wrapping_add(index as u64), index)).collect();
    let mut known = BTreeMap::new();
    for (round, types) in types.chunks(TOGETHER).enumerate() {
        play(types, &mut known).await?;
        writeln!(std::io::stderr(), "{} types", round * TOGETHER + types.len())?;
        tell(&known)?;
    }
    // What a server remembers of CRDs is its own affair.
    let of_etch = known.iter().filter(|(situation, _)| **situation != Situation::Never);
    for (situation, known) in of_etch {
        ensure!(known.share() >= 95.0, "too little is known of {situation:?}");
    }
    Ok(())
}

fn tell(known: &BTreeMap<Situation, Known>) -> Result<()> {
    for (situation, known) in known {
        let Known { objects, stored, phantom, unknown, atomic, written } = known;
        writeln!(
            std::io::stderr(),
            "{situation:?}: {objects} objects: {stored} stored, {phantom} phantom, {unknown} unknown \
             ({atomic} in atomic lists, {written} others written before the upgrade); {:.1} % known",
            known.share()
        )?;
    }
    Ok(())
}
