//! Observes the cells of a world on a real server, past which raw etcd is read.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use futures::stream::{self, StreamExt};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::axes::{Cell, Owners, Part, Verb, World};
use super::manifest::{self, Place, S, crd, crd_before, served, without_places};
use super::outcome::{self, FollowUp, Held, Outcome, Parts, Places, Stored};
use super::reviews::Reviews;
use crate::cluster::{Answer, Cluster, GUARD, Patch, eventually};
use crate::control_plane::{ControlPlane, Kubernetes, Options};

/// How many requests are in flight.
const TOGETHER: usize = 8;
/// How many keys etcd takes at once.
const AT_ONCE: usize = 100;
/// The user that sends the requests of cells.
const USER: &str = "user";
/// The manager that owned the objects before.
const OWNER: &str = "owner";
/// The manager of Etch.
const ETCH: &str = "etch";

/// A control plane with the webhooks of all worlds.
pub struct Observer {
    cluster: Cluster,
    reviews: Reviews,
    control_plane: ControlPlane,
    uids: AtomicU64,
    _dir: TempDir,
}

/// What etcd holds of one object.
#[derive(Clone)]
struct Raw {
    bytes: Vec<u8>,
    revision: i64,
    value: Value,
}

/// The objects of a world by their names.
type Raws = BTreeMap<String, Raw>;

/// The objects of one world.
struct Stage<'a> {
    observer: &'a Observer,
    world: World,
    group: String,
}

impl Observer {
    /// Starts a control plane of a release; of the one that is meant where none is named.
    ///
    /// # Errors
    /// It does not start.
    pub async fn start(kubernetes: Option<Kubernetes>) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let mut options = Options::new(dir.path().join("cluster"));
        options.kubernetes = kubernetes;
        let control_plane = ControlPlane::start(options).await?;
        let cluster = Cluster::of(&control_plane).await?;
        let reviews = Reviews::start().await?;
        Ok(Self { cluster, reviews, control_plane, uids: AtomicU64::new(1), _dir: dir })
    }

    /// The release that runs.
    pub fn kubernetes(&self) -> &Kubernetes {
        self.control_plane.kubernetes()
    }

    /// Observes all cells of a world. Each world can be observed once.
    ///
    /// # Errors
    /// Something other than a request of a cell is refused.
    pub async fn observe(&self, world: World) -> Result<(BTreeMap<Cell, Outcome>, Parts)> {
        let stage = Stage { observer: self, world, group: format!("{world}.{}", manifest::GROUP) };
        stage.observe().await.with_context(|| world.to_string())
    }

    fn uid(&self) -> String {
        format!("00000000-0000-4000-8000-{:012}", self.uids.fetch_add(1, Ordering::Relaxed))
    }
}

impl Stage<'_> {
    async fn observe(&self) -> Result<(BTreeMap<Cell, Outcome>, Parts)> {
        let (mut outcomes, mut parts) = (BTreeMap::new(), Parts::default());
        let templates = self.templates().await?;
        for version in ["v1alpha1", "v1beta1", S] {
            self.serve(version).await?;
            if version == "v1alpha1" {
                self.configure_admission().await?;
            }
            let mut cells = self.world.cells();
            cells.retain(|cell| cell.version == version);
            outcomes.extend(self.phase(version, &cells, &templates, &mut parts).await?);
        }
        let views = self.views(S).await?;
        for (cell, outcome) in &mut outcomes {
            let (Some(before), Some(listed)) = (outcome.views.get(S), views.get(&cell.name())) else {
                continue;
            };
            if Places::of(listed) == *before {
                continue;
            }
            // A list may be behind the bytes that were put into etcd past the server.
            let now = Places::of(&self.cluster().get(&self.path(S, &cell.name())).await?);
            outcome.since = (now != *before).then_some(now);
        }
        Ok((outcomes, parts))
    }

    /// Makes an object for each kind of owners while the CRD has no defaults; what etcd holds of them.
    async fn templates(&self) -> Result<BTreeMap<Owners, Raw>> {
        let nowhere = self.observer.reviews.client_config();
        self.cluster().apply_crd(&crd_before(self.world, &self.group, "v1alpha1", &nowhere)).await?;
        self.until_stored_at("v1alpha1").await?;
        self.template(Owners::StoredV1alpha1, "v1alpha1", true).await?;
        self.cluster().apply_crd(&crd_before(self.world, &self.group, S, &nowhere)).await?;
        self.until_stored_at(S).await?;
        for (owners, version, applies) in [
            (Owners::Nobody, S, false),
            (Owners::AppliedV1, S, true),
            (Owners::UpdatedV1, S, false),
            (Owners::UpdatedV1beta1, "v1beta1", false),
            (Owners::AppliedV1alpha1, "v1alpha1", true),
            (Owners::UpdatedV1alpha1, "v1alpha1", false),
            (Owners::AppliedV0, "v0", true),
            (Owners::UpdatedV0, "v0", false),
        ] {
            self.template(owners, version, applies).await?;
        }
        let nobody = json!({ "metadata": { "managedFields": [{}] } });
        let path = self.path(S, &template_name(Owners::Nobody));
        self.cluster().patch(&path, Patch::Merge, OWNER, &nobody).await?.ok()?;
        let raws = self.raws().await?;
        let owners = Owners::ALL.iter().copied();
        Ok(owners.filter_map(|owners| Some((owners, raws.get(&template_name(owners))?.clone()))).collect())
    }

    async fn template(&self, owners: Owners, version: &str, applies: bool) -> Result<()> {
        let name = template_name(owners);
        let object = manifest::object(&self.group, version, &name);
        if applies {
            let answer =
                self.cluster().patch(&self.path(version, &name), Patch::Apply, OWNER, &object).await?;
            answer.ok().map(drop)
        } else {
            self.cluster().create(&self.path(version, ""), OWNER, &object).await.map(drop)
        }
        .with_context(|| name)
    }

    /// Waits until new objects are stored at this version.
    async fn until_stored_at(&self, version: &str) -> Result<()> {
        let mut tries = 0;
        eventually(GUARD, "the storage version", async || {
            tries += 1;
            let name = format!("probe-{version}-{tries}");
            let mut object = manifest::object(&self.group, version, &name);
            object["metadata"]["finalizers"] = json!([]);
            self.cluster().create(&self.path(version, ""), USER, &object).await?;
            let raw = self.cluster().raw(&self.group, "things", Some("default"), &name).await?;
            self.cluster().delete(&self.path(version, &name)).await?;
            Ok((outcome::version(&raw) == version).then_some(()))
        })
        .await
    }

    /// Has the CRD with the defaults served at the versions at which it is while requests at this one are
    /// sent.
    async fn serve(&self, version: &str) -> Result<()> {
        let document = crd(self.world, &self.group, served(version), &self.observer.reviews.client_config());
        self.cluster().apply_crd(&document).await?;
        eventually(GUARD, "the schema with defaults", async || {
            for unserved in ["v0", "v1alpha1", "v1beta1"] {
                if served(version).contains(&unserved) {
                    continue;
                }
                let path = format!("{}?limit=1", self.path(unserved, ""));
                if self.cluster().send("GET", &path, "application/json", Vec::new()).await?.code != 404 {
                    return Ok(None);
                }
            }
            let probe = self.probe().await?;
            Ok(Places::of(&probe).0.contains(&Place::Nested).then_some(()))
        })
        .await
    }

    /// What a dry run of a create shows.
    async fn probe(&self) -> Result<Value> {
        let path = format!("{}?dryRun=All", self.path(S, ""));
        let object = manifest::object(&self.group, S, "probe");
        self.cluster().send("POST", &path, "application/json", serde_json::to_vec(&object)?).await?.ok()
    }

    async fn configure_admission(&self) -> Result<()> {
        let Some(configuration) = self.observer.reviews.admission(self.world, &self.group) else {
            return Ok(());
        };
        let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
        self.cluster().create(path, USER, &configuration).await?;
        eventually(GUARD, "mutating admission", async || {
            self.probe().await?;
            Ok(self.observer.reviews.has_seen(&self.group).then_some(()))
        })
        .await
    }

    /// Sends the requests of these cells, all at one version, and reads what they leave.
    async fn phase(
        &self,
        version: &str,
        cells: &[Cell],
        templates: &BTreeMap<Owners, Raw>,
        parts: &mut Parts,
    ) -> Result<BTreeMap<Cell, Outcome>> {
        let mut planted = Vec::new();
        for cell in cells {
            let Some(template) = templates.get(&cell.owners) else { continue };
            let uid = template.value["metadata"]["uid"].as_str().context("a template without a uid")?;
            let text = String::from_utf8(template.bytes.clone())?;
            let text = text.replace(&template_name(cell.owners), &cell.name());
            planted.push((cell.name(), text.replace(uid, &self.observer.uid()).into_bytes()));
        }
        self.plant(planted).await?;
        let before = self.raws().await?;
        let answers = self.each(cells, &async |cell| self.request(cell).await).await?;
        let after = self.raws().await?;
        let mut views = BTreeMap::new();
        for version in served(version) {
            views.insert((*version).to_owned(), self.views(version).await?);
        }
        let existing: Vec<Cell> =
            cells.iter().copied().filter(|cell| after.contains_key(&cell.name())).collect();
        let mut identities = self.follow_up(Verb::Identity, &existing, &after).await?;
        let mut empties = self.follow_up(Verb::Empty, &existing, &after).await?;

        let mut outcomes = BTreeMap::new();
        for cell in cells {
            let name = cell.name();
            let (before, after) = (before.get(&name), after.get(&name));
            let uid = uid_of(before.or(after));
            let answer = answers.get(&name).context("an answer")?;
            let (answer, answered) = outcome::answer(answer, &self.group, &name, &uid);
            let view = views.get(S).and_then(|views| views.get(&name));
            let generation = |raw: Option<&Raw>| {
                raw.and_then(|raw| raw.value["metadata"]["generation"].as_i64()).unwrap_or_default()
            };
            let outcome = Outcome {
                answer,
                answered,
                raw: after.map(|raw| Stored::of(&raw.value, &self.group, parts)),
                views: views
                    .iter()
                    .filter_map(|(version, views)| Some((version.clone(), Places::of(views.get(&name)?))))
                    .collect(),
                view: view.map(|view| parts.body(view, &self.group)),
                since: None,
                generation: generation(after) - generation(before),
                written: before.map(|raw| raw.revision) != after.map(|raw| raw.revision),
                before: before.map(|raw| parts.owners(&raw.value)).unwrap_or_default(),
                after: after.map(|raw| parts.owners(&raw.value)).unwrap_or_default(),
                identity: identities.remove(&name),
                empty: empties.remove(&name),
            };
            outcomes.insert(*cell, outcome);
        }
        Ok(outcomes)
    }

    /// Sends a request of Etch's twice, reads what each leaves, and puts back what was there before.
    async fn follow_up(
        &self,
        verb: Verb,
        cells: &[Cell],
        before: &Raws,
    ) -> Result<BTreeMap<String, FollowUp>> {
        let send = async |cell: Cell| {
            let name = cell.name();
            self.etch(verb, S, Part::Main, &name, &uid_of(before.get(&name))).await
        };
        let first = self.each(cells, &send).await?;
        let then = self.raws().await?;
        let views = self.views(S).await?;
        let second = self.each(cells, &send).await?;
        let last = self.raws().await?;
        let names = cells.iter().map(|cell| cell.name());
        self.plant(names.filter_map(|name| Some((name.clone(), before.get(&name)?.bytes.clone()))).collect())
            .await?;
        let mut found = BTreeMap::new();
        for cell in cells {
            let name = cell.name();
            let uid = uid_of(before.get(&name));
            let answer = |answers: &BTreeMap<String, Answer>| -> Result<String> {
                Ok(outcome::answer(answers.get(&name).context("an answer")?, &self.group, &name, &uid).0)
            };
            let moved = |one: &Raws, other: &Raws| {
                one.get(&name).map(|raw| raw.revision) != other.get(&name).map(|raw| raw.revision)
            };
            let raw = Held::of(then.get(&name).map(|raw| &raw.value));
            let raw_then = Held::of(last.get(&name).map(|raw| &raw.value));
            let follow_up = FollowUp {
                answer: answer(&first)?,
                written: moved(before, &then),
                shows: views.get(&name).map(Places::of).unwrap_or_default(),
                repeat: answer(&second)?,
                rewritten: moved(&then, &last),
                raw_then: (raw_then != raw).then_some(raw_then),
                raw,
            };
            found.insert(name, follow_up);
        }
        Ok(found)
    }

    /// The request of a cell.
    async fn request(&self, cell: Cell) -> Result<Answer> {
        let Cell { verb, part, version, owners: _ } = cell;
        let name = cell.name();
        let path = self.part(version, &name, part);
        // A field that no object has, or one that every Scale has.
        let (pointer, value) = match part {
            Part::Main => ("/spec/note", json!("x")),
            Part::Status => ("/status", json!({ "message": "x" })),
            Part::Scale => ("/spec/replicas", json!(3)),
        };
        let body = || {
            let mut body = json!({});
            let mut fields = pointer.split('/').skip(1).peekable();
            let mut at = &mut body;
            while let Some(field) = fields.next() {
                at[field] = if fields.peek().is_some() { json!({}) } else { value.clone() };
                at = &mut at[field];
            }
            body
        };
        let user = |path: &str| {
            let sign = if path.contains('?') { '&' } else { '?' };
            format!("{path}{sign}fieldManager={USER}")
        };
        let uid = || async {
            let raw = self.cluster().raw(&self.group, "things", Some("default"), &name).await?;
            anyhow::Ok(raw["metadata"]["uid"].as_str().unwrap_or_default().to_owned())
        };
        match verb {
            Verb::Create | Verb::CreateByApply => {
                let mut object = manifest::object(&self.group, version, &name);
                object["status"] = json!({ "message": "x" });
                if verb == Verb::CreateByApply {
                    return self.cluster().patch(&path, Patch::Apply, USER, &object).await;
                }
                let path = user(&self.path(version, ""));
                self.cluster().send("POST", &path, "application/json", serde_json::to_vec(&object)?).await
            }
            Verb::Update | Verb::Replace => {
                let read = self.cluster().send("GET", &path, "application/json", Vec::new()).await?;
                if read.code != 200 {
                    return Ok(read);
                }
                let mut object = read.body;
                if verb == Verb::Replace {
                    object = without_places(object);
                }
                let mut changed = body();
                unite(&mut object, &mut changed);
                self.cluster()
                    .send("PUT", &user(&path), "application/json", serde_json::to_vec(&object)?)
                    .await
            }
            Verb::JsonPatch => {
                // Of the status it sets the whole: at v1alpha1 there is none yet.
                let operations = json!([{ "op": "add", "path": pointer, "value": value }]);
                self.cluster().patch(&path, Patch::Json, USER, &operations).await
            }
            Verb::Remove => {
                let operations = json!([{ "op": "remove", "path": Place::Spec.pointer() }]);
                self.cluster().patch(&path, Patch::Json, USER, &operations).await
            }
            Verb::MergePatch => self.cluster().patch(&path, Patch::Merge, USER, &body()).await,
            Verb::Apply => {
                let mut object = body();
                let (group, kind) = match part {
                    Part::Scale => ("autoscaling/v1".to_owned(), "Scale"),
                    _ => (format!("{}/{version}", self.group), manifest::KIND),
                };
                let mut identity = json!({
                    "apiVersion": group, "kind": kind, "metadata": { "name": name, "namespace": "default" },
                });
                unite(&mut object, &mut identity);
                let path = user(&format!("{path}?force=true"));
                let body = serde_json::to_vec(&object)?;
                self.cluster().send("PATCH", &path, "application/apply-patch+yaml", body).await
            }
            Verb::Identity | Verb::Empty => self.etch(verb, version, part, &name, &uid().await?).await,
            Verb::Delete => self.cluster().send("DELETE", &path, "application/json", Vec::new()).await,
        }
    }

    /// A request as Etch sends it.
    async fn etch(&self, verb: Verb, version: &str, part: Part, name: &str, uid: &str) -> Result<Answer> {
        let path = self.part(version, name, part);
        if verb == Verb::Empty {
            let body = json!({ "metadata": { "uid": uid } });
            return self.cluster().patch(&path, Patch::Merge, ETCH, &body).await;
        }
        let body = json!({
            "apiVersion": format!("{}/{version}", self.group), "kind": manifest::KIND,
            "metadata": { "name": name, "namespace": "default", "uid": uid },
        });
        self.cluster().patch(&path, Patch::Apply, ETCH, &body).await
    }

    async fn each(
        &self,
        cells: &[Cell],
        send: &impl AsyncFn(Cell) -> Result<Answer>,
    ) -> Result<BTreeMap<String, Answer>> {
        let answers = stream::iter(cells.iter().copied())
            .map(|cell| async move { (cell, send(cell).await) })
            .buffer_unordered(TOGETHER)
            .collect::<Vec<_>>()
            .await;
        let answers = answers.into_iter();
        answers.map(|(cell, answer)| Ok((cell.name(), answer.with_context(|| cell.to_string())?))).collect()
    }

    /// Puts bytes into etcd, past the server.
    async fn plant(&self, values: Vec<(String, Vec<u8>)>) -> Result<()> {
        let key = |name: &str| crate::control_plane::object_key(&self.group, "things", Some("default"), name);
        for values in values.chunks(AT_ONCE) {
            let values = values.iter().map(|(name, bytes)| (key(name), bytes.clone()));
            self.cluster().etcd().put_all(values).await?;
        }
        Ok(())
    }

    async fn raws(&self) -> Result<Raws> {
        let prefix = format!("/registry/{}/things/default/", self.group);
        let found = self.cluster().etcd().list(&prefix).await?;
        found
            .into_iter()
            .map(|raw| {
                let name = raw.key.rsplit('/').next().unwrap_or_default().to_owned();
                let value = serde_json::from_slice(&raw.bytes)?;
                Ok((name, Raw { bytes: raw.bytes, revision: raw.mod_revision, value }))
            })
            .collect()
    }

    async fn views(&self, version: &str) -> Result<BTreeMap<String, Value>> {
        let mut list = self.cluster().get(&self.path(version, "")).await?;
        let items = list["items"].as_array_mut().context("a list")?;
        let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        Ok(items.drain(..).map(|object| (name(&object), object)).collect())
    }

    fn path(&self, version: &str, name: &str) -> String {
        let separator = if name.is_empty() { "" } else { "/" };
        format!("/apis/{}/{version}/namespaces/default/things{separator}{name}", self.group)
    }

    fn part(&self, version: &str, name: &str, part: Part) -> String {
        let path = self.path(version, name);
        match part {
            Part::Main => path,
            Part::Status | Part::Scale => format!("{path}/{}", part.word()),
        }
    }

    fn cluster(&self) -> &Cluster {
        &self.observer.cluster
    }
}

fn template_name(owners: Owners) -> String {
    format!("template-{}", owners.word())
}

fn uid_of(raw: Option<&Raw>) -> String {
    raw.and_then(|raw| raw.value["metadata"]["uid"].as_str()).unwrap_or("no uid").to_owned()
}

/// Moves the fields of one object into another.
fn unite(object: &mut Value, other: &mut Value) {
    let Some(fields) = other.as_object_mut() else { return };
    for (name, mut value) in std::mem::take(fields) {
        if object[&name].is_object() && value.is_object() {
            unite(&mut object[&name], &mut value);
        } else {
            object[&name] = value;
        }
    }
}
