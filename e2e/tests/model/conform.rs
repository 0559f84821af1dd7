//! The model's server held against a real one: random requests to both, and after each of them the answer,
//! the bytes in etcd, the views, the owners, and whether the resource version has moved. It must not look
//! into the model for what the real server should have done, but compare what both did.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Answer as Real, CRDS, Cluster, GUARD, eventually};
use e2e::simulator::etcd::{Clock, Live, Resource, Server};
use etch_core::api::Mode;
use etch_core::object::Object;
use etch_core::object_machine::{Again, ObjectMachine, Rules, Step};
use etch_core::ownership::MANAGER;
use etch_core::plan::{self, Outcome, PatchKind, Record, WriteMachine, changes, past, past_of};
use etch_core::report::ledger::ObjectLedger;
use fastrand::Rng;
use serde_json::{Map, Value, json};

use crate::server::{Content, Entry, GROUP, NAME, NAMESPACE, Refused, Request, Verb, payload, refusal, uid};
use crate::worlds::{World, request};

/// One object, in the model and in a cluster.
pub(crate) struct Twins<'a> {
    cluster: &'a Cluster,
    /// The API group that stands for the model's.
    group: String,
    resource: Resource,
    clock: Clock,
    /// What the cluster has in place of the model's uids and resource versions.
    names: BTreeMap<String, String>,
    /// A request of Etch's that was made for an earlier object.
    stale: Option<Request>,
    told: Vec<String>,
}

/// Lives a random life of an object in both.
///
/// # Errors
/// They differ; the error tells all that was done.
pub(crate) async fn live(cluster: &Cluster, worlds: &[Arc<World>], seed: u64, steps: usize) -> Result<usize> {
    let mut rng = Rng::with_seed(seed);
    let world = worlds[rng.usize(..worlds.len())].clone();
    let name = world.name;
    let mut clock = Clock::default();
    let resource = Resource::new(world, &mut clock);
    let group = format!("m{seed}.example.com");
    let mut twins =
        Twins { cluster, group, resource, clock, names: BTreeMap::new(), stale: None, told: Vec::new() };
    let lived = twins.live(&mut rng, steps).await;
    lived.with_context(|| format!("MODEL_SEED={seed}, {name}:\n  {}", twins.told.join("\n  ")))?;
    Ok(twins.told.len())
}

impl Twins<'_> {
    async fn live(&mut self, rng: &mut Rng, steps: usize) -> Result<()> {
        self.define().await?;
        for _ in 0..steps {
            match rng.u8(..20) {
                0..5 => self.be_etch().await?,
                5 if self.stale.is_some() => {
                    if let Some(request) = self.stale.take() {
                        self.send(&request).await.map(drop)?;
                    }
                }
                6..9 => self.upgrade().await?,
                9..14 => {
                    let menu = &self.resource.world.menu;
                    let request = menu[rng.usize(..menu.len())].clone();
                    self.send(&request).await.map(drop)?;
                }
                _ => {
                    let request = self.random(rng);
                    self.send(&request).await.map(drop)?;
                }
            }
        }
        Ok(())
    }

    /// A request that a user may have made up.
    fn random(&self, rng: &mut Rng) -> Request {
        let release = self.resource.release();
        let versions = release.document["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let version = &versions[rng.usize(..versions.len())];
        let verbs =
            [Verb::Create, Verb::Apply, Verb::Apply, Verb::Force, Verb::Merge, Verb::Merge, Verb::Edit];
        let verb = verbs[rng.usize(..verbs.len())];
        let nulls = if matches!(verb, Verb::Merge | Verb::Edit) { 4 } else { 0 };
        let spec = value(&version["schema"]["openAPIV3Schema"]["properties"]["spec"], nulls, rng);
        let name = version["name"].as_str().unwrap_or_default();
        request(verb, ["a", "b", "c"][rng.usize(..3)], name, spec)
    }

    /// The object as the model has it.
    fn live_object(&self) -> Option<Live> {
        self.resource.objects.get(NAME).cloned()
    }

    fn shown(&self, live: &Live) -> Result<Object, Refused> {
        let version = &self.resource.crd().storage().name;
        self.resource.shown(NAME, live, Server::Current, version)
    }

    /// Lets Etch do what it would do with the object as it is.
    async fn be_etch(&mut self) -> Result<()> {
        let Some(object) = self.live_object().and_then(|live| self.shown(&live).ok()) else { return Ok(()) };
        let crd = self.resource.crd().clone();
        let World { terms, follow, .. } = &*self.resource.world;
        let before = self.resource.generations.iter().rev().nth(1);
        let history = before.map(|before| past(past_of(&before.release.crd), true, Vec::new()));
        let known = ObjectLedger {
            changes: changes(&history.unwrap_or_default(), &crd, follow).into(),
            concerns: true,
            servers_may_lag: true,
            ..ObjectLedger::default()
        };
        let record = Arc::new(Record { versions_disagree: true, ..Record::default() });
        let rules = Rules { crd, terms: *terms, mode: Mode::Persist, since: Arc::default() };
        let (mut machine, mut step) = ObjectMachine::begin(rules, known, object, record, false);
        loop {
            step = match step {
                Step::Write => {
                    let outcome = self.write(&machine).await?;
                    machine.wrote(outcome)
                }
                Step::ReadAgain { .. } => {
                    let object = self.live_object().and_then(|live| self.shown(&live).ok());
                    machine.read(object.map_or(Again::Gone, |object| Again::Read(Box::new(object))))
                }
                Step::AskOthers(verb) => machine.may_write_others(verb, true),
                Step::Done(_) | Step::Stop(_) => return Ok(()),
            };
        }
    }

    /// Sends the requests of a write.
    async fn write(&mut self, machine: &ObjectMachine) -> Result<Option<Outcome>> {
        let write = machine.planned().context("a write is planned")?;
        let Rules { crd, terms, .. } = machine.rules();
        let (mut writes, mut request) = WriteMachine::begin(crd, machine.object(), write, terms);
        loop {
            let verb = match request.kind {
                PatchKind::Apply => Verb::Apply,
                PatchKind::Merge => Verb::Merge,
                PatchKind::Json => Verb::Json,
                PatchKind::DryRun | PatchKind::ApplyDryRun => Verb::DryRun,
            };
            let (version, manager) = (crd.storage().name.clone(), MANAGER.to_owned());
            let sent = Request { version, manager, verb, body: request.body.into_inner() };
            let answer = self.send(&sent).await?;
            self.stale = Some(sent);
            let step = match answer.and_then(|live| match live {
                Some(live) => self.shown(&live),
                None => Err(Refused { code: 404, message: "not found".to_owned() }),
            }) {
                Ok(object) => writes.answered(object),
                Err(refused) => writes.refused(refusal(&refused)),
            };
            request = match step {
                plan::Step::Send(next) => next,
                plan::Step::Done(outcome) => return Ok(Some(outcome)),
                plan::Step::Failed(_) => return Ok(None),
            };
        }
    }

    async fn upgrade(&mut self) -> Result<()> {
        if !self.resource.upgrade(false, false, Instant::now(), &mut self.clock) {
            return Ok(());
        }
        self.told.push(format!("release {}", self.resource.generation()));
        self.define().await?;
        self.compare(None).await
    }

    /// Applies the CRD, and waits until every version of it is served.
    async fn define(&self) -> Result<()> {
        let release = self.resource.release();
        let mut document: Value =
            serde_json::from_str(&release.document.to_string().replace(GROUP, &self.group))?;
        let stored = document["status"]["storedVersions"].take();
        document["status"] = Value::Null;
        for field in ["uid", "generation"] {
            document["metadata"].as_object_mut().context("metadata")?.remove(field);
        }
        document.as_object_mut().context("a CRD")?.remove("status");
        let probe = format!("probe{}", self.resource.generation());
        let versions = document["spec"]["versions"].as_array_mut().context("versions")?;
        for version in versions.iter_mut() {
            version["schema"]["openAPIV3Schema"]["properties"][&probe] = json!({ "type": "string" });
        }
        let names: Vec<String> =
            versions.iter().filter_map(|version| version["name"].as_str().map(str::to_owned)).collect();
        if self.resource.generation() > 0 {
            // As whoever migrates objects does, once none of them is stored at a version.
            let path = format!("{CRDS}/things.{}/status", self.group);
            let body =
                serde_json::to_vec(&json!({ "status": { "storedVersions": self.still_stored(&stored) } }))?;
            self.cluster.send("PATCH", &path, "application/merge-patch+json", body).await?.ok()?;
        }
        self.cluster.apply_crd(&document).await?;
        for version in names {
            let object = json!({
                "apiVersion": format!("{}/{version}", self.group), "kind": "Thing", "metadata": { "name": "probe" },
                (&probe): "x",
            });
            let path = format!("{}?dryRun=All&fieldValidation=Strict", self.collection(&version));
            let body = serde_json::to_vec(&object)?;
            eventually(GUARD, &format!("{path} serves {probe}"), async || {
                let answer = self.cluster.send("POST", &path, "application/json", body.clone()).await?;
                ensure!(answer.code == 201, "{}", answer.body);
                Ok(Some(()))
            })
            .await?;
        }
        Ok(())
    }

    /// The versions at which objects were stored before, as far as the CRD still has them.
    fn still_stored(&self, stored: &Value) -> Value {
        let before = &self.resource.generations[self.resource.generation() - 1].release;
        let (before, new) = (before.storage(), self.resource.release().storage());
        let all = stored.as_array().into_iter().flatten().filter_map(Value::as_str);
        let mut kept: Vec<&str> = all.filter(|name| *name != new || *name == before).collect();
        if kept.is_empty() {
            kept.push(before);
        }
        json!(kept)
    }

    fn collection(&self, version: &str) -> String {
        format!("/apis/{}/{version}/namespaces/{NAMESPACE}/things", self.group)
    }

    /// Sends a request to both; the object in the model.
    async fn send(&mut self, request: &Request) -> Result<Result<Option<Live>, Refused>> {
        if !self.resource.release().has(&request.version) {
            return Ok(Err(Refused { code: 404, message: "the requested resource".to_owned() }));
        }
        self.told
            .push(format!("{} {:?}@{} {}", request.manager, request.verb, request.version, request.body));
        let real = self.really(request).await?;
        let before = self.live_object();
        let done = self.resource.process(&mut self.clock, NAME, Server::Current, request);
        if let (Verb::DryRun, Ok(Some(live)), 200) = (request.verb, &done, real.code) {
            let shown = self.resource.release().view(&live.content, &request.version).ok();
            ensure!(
                shown == Some(payload(&real.body)),
                "the model would show {shown:?}, the server {}",
                real.body
            );
        }
        let said = match &done {
            Ok(_) => 200,
            Err(refused) => refused.code,
        };
        let code = if real.code == 201 { 200 } else { real.code };
        // The server says in two ways that another object has the name.
        let is_alike =
            code == said || (said, code) == (409, 422) && real.body.to_string().contains("metadata.uid");
        ensure!(is_alike, "the model says {done:?}, the server {}: {}", real.code, real.body["message"]);
        self.compare(Some(before)).await?;
        Ok(done)
    }

    async fn really(&self, request: &Request) -> Result<Real> {
        let Request { version, manager, verb, body } = request;
        let body = self.named(body).await?;
        let (collection, object) = (self.collection(version), format!("{}/{NAME}", self.collection(version)));
        let (method, path, media_type, body) = match verb {
            Verb::Create => ("POST", collection, "application/json", body),
            Verb::Delete => ("DELETE", object, "application/json", Value::Null),
            Verb::Merge => ("PATCH", object, "application/merge-patch+json", body),
            Verb::Json => ("PATCH", object, "application/json-patch+json", body),
            Verb::DryRun => ("PATCH", format!("{object}?dryRun=All"), "application/json-patch+json", body),
            Verb::Apply => ("PATCH", object, "application/apply-patch+yaml", body),
            Verb::Force => ("PATCH", format!("{object}?force=true"), "application/apply-patch+yaml", body),
            Verb::Edit => {
                let read = self.cluster.send("GET", &object, "application/json", Vec::new()).await?;
                if read.code == 404 {
                    return Ok(read);
                }
                ("PUT", object, "application/json", crate::server::merge(read.body, &body))
            }
        };
        let sign = if path.contains('?') { '&' } else { '?' };
        let body = if body.is_null() { Vec::new() } else { serde_json::to_vec(&body)? };
        self.cluster.send(method, &format!("{path}{sign}fieldManager={manager}"), media_type, body).await
    }

    /// A body with the cluster's own names.
    async fn named(&self, body: &Value) -> Result<Value> {
        let text = body.to_string().replace(GROUP, &self.group);
        let mut body: Value = serde_json::from_str(&text)?;
        let rename = |value: &mut Value| {
            let known = value.as_str().and_then(|text| self.names.get(text));
            if let Some(known) = known {
                *value = json!(known);
            }
        };
        for pointer in ["/metadata/uid", "/metadata/resourceVersion"] {
            body.pointer_mut(pointer).into_iter().for_each(&rename);
        }
        for operation in body.as_array_mut().into_iter().flatten() {
            match operation["path"].as_str() {
                Some("/metadata/uid" | "/metadata/resourceVersion") => rename(&mut operation["value"]),
                Some(path) => operation["path"] = json!(self.place(path).await?),
                None => {}
            }
        }
        Ok(body)
    }

    /// A place in `managedFields`: the server has its entries in another order.
    async fn place(&self, path: &str) -> Result<String> {
        let rest = path.strip_prefix("/metadata/managedFields/");
        let (Some(rest), Some(live)) = (rest, self.live_object()) else { return Ok(path.to_owned()) };
        let (index, rest) = rest.split_once('/').map_or((rest, ""), |(index, rest)| (index, rest));
        let entry = live.content.owners.get(index.parse::<usize>()?);
        let raw = self.raw().await?.unwrap_or_default();
        let entries = raw["metadata"]["managedFields"].as_array().map(Vec::as_slice).unwrap_or_default();
        let real = entries.iter().position(|other| Some(&Entry::read(other)) == entry);
        let rest = if rest.is_empty() { String::new() } else { format!("/{rest}") };
        Ok(format!(
            "/metadata/managedFields/{}{rest}",
            real.map_or(index.to_owned(), |index| index.to_string())
        ))
    }

    async fn raw(&self) -> Result<Option<Value>> {
        self.cluster.etcd().raw_object(&self.group, "things", Some(NAMESPACE), NAME).await
    }

    /// Compares the object in both; `before` is what the model had before the request.
    async fn compare(&mut self, before: Option<Option<Live>>) -> Result<()> {
        let raw = self.raw().await?;
        let Some(Live { content, tag, .. }) = self.live_object() else {
            ensure!(raw.is_none(), "the server has an object: {raw:?}");
            return Ok(());
        };
        let raw = raw.context("the server has no object")?;
        let entries = raw["metadata"]["managedFields"].as_array().into_iter().flatten();
        let mut owners: Vec<Entry> = entries.map(Entry::read).collect();
        owners.sort();
        let version = raw["apiVersion"].as_str().and_then(|text| text.rsplit('/').next()).unwrap_or_default();
        let real = Content { version: version.to_owned(), value: payload(&raw), owners };
        ensure!(*content == real, "the model has {content:?}\nthe server   {real:?}");
        let release = self.resource.release();
        let versions = release.crd.versions().iter().map(|version| version.name.clone());
        let mut revision = String::new();
        for version in versions.collect::<Vec<_>>() {
            let seen = self.cluster.get(&format!("{}/{NAME}", self.collection(&version))).await?;
            let view = release.view(&content, &version).ok();
            ensure!(
                view == Some(payload(&seen)),
                "at {version} the model shows {view:?}, the server {}",
                seen["spec"]
            );
            revision = seen["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
            let name = seen["metadata"]["uid"].as_str().unwrap_or_default();
            let known = self.names.entry(uid(tag.uid)).or_insert_with(|| name.to_owned());
            ensure!(known == name, "the model has the object that was there before");
        }
        let known = self.names.insert(tag.revision.to_string(), revision.clone());
        let has_moved = known.as_ref() != Some(&revision);
        let should_move = before.is_some_and(|before| before.map(|live| live.tag) != Some(tag));
        ensure!(
            has_moved == should_move,
            "the resource version: {known:?}, now {revision}, in the model {tag:?}"
        );
        Ok(())
    }
}

/// A value of a schema; `nulls` of 16 members are null.
fn value(schema: &Value, nulls: u8, rng: &mut Rng) -> Value {
    match schema["type"].as_str() {
        Some("object") => {
            let members = schema["properties"].as_object().into_iter().flatten();
            let chosen = members.filter(|_| rng.bool()).collect::<Vec<_>>();
            let members = chosen.into_iter().map(|(name, schema)| {
                let member = if rng.u8(..16) < nulls { Value::Null } else { value(schema, nulls, rng) };
                (name.clone(), member)
            });
            Value::Object(members.collect::<Map<_, _>>())
        }
        Some("integer") => json!([1, 5, 7, 80][rng.usize(..4)]),
        _ => json!(["x", "red", "blue", "n"][rng.usize(..4)]),
    }
}
