//! One object in the simulator and in a real cluster: random requests to both, and after each of them the
//! answer, the bytes in etcd, the views, the owners, and whether the resource version has moved. It must not
//! look into the simulator for what the real server should have done, but compare what both did.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Answer as Real, CRDS, Cluster, GUARD, eventually};
use etch_core::api::Mode;
use etch_core::object::Object;
use etch_core::object_machine::{Again, Machine as _, ObjectMachine, Rules, Step};
use etch_core::plan::{self, Outcome, Record, WriteMachine, changes, past, past_of};
use etch_core::report::ledger::ObjectLedger;
use fastrand::Rng;
use serde_json::{Map, Value, json};
use simulator::etcd::{Clock, Live, Resource, Server};
use simulator::patch::merge;
use simulator::server::{
    Content, Entry, GROUP, NAME, NAMESPACE, Refused, Release, Request, Verb, payload, refusal, uid,
};
use simulator::worlds::{World, request};

/// One object, in the simulator and in a cluster.
struct Twins<'a> {
    cluster: &'a Cluster,
    /// The API group in place of the simulator's.
    group: String,
    resource: Resource,
    clock: Clock,
    /// What the cluster has in place of the simulator's uids and resource versions.
    names: BTreeMap<String, String>,
    /// A request of Etch's that was made for an earlier object.
    stale: Option<Request>,
    sent: Vec<String>,
}

/// Sends a random sequence of requests to both; how many there were.
///
/// # Errors
/// They differ; the error lists all that was sent.
pub(crate) async fn compare(
    cluster: &Cluster,
    worlds: &[Arc<World>],
    seed: u64,
    steps: usize,
) -> Result<usize> {
    let mut rng = Rng::with_seed(seed);
    let world = worlds[usize::from(rng.u8(..u8::try_from(worlds.len())?))].clone();
    let name = world.name;
    let mut clock = Clock::default();
    let mut twins = Twins {
        cluster,
        group: format!("m{seed}.example.com"),
        resource: Resource::new(world, &mut clock),
        clock,
        names: BTreeMap::new(),
        stale: None,
        sent: Vec::new(),
    };
    let result = twins.run(&mut rng, steps).await;
    result.with_context(|| format!("CONFORM_SEED={seed}, {name}:\n  {}", twins.sent.join("\n  ")))?;
    Ok(twins.sent.len())
}

impl Twins<'_> {
    fn release(&self) -> &Release {
        self.resource.release()
    }

    fn live(&self) -> Option<&Live> {
        self.resource.objects.get(NAME)
    }

    async fn run(&mut self, rng: &mut Rng, steps: usize) -> Result<()> {
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
        let release = self.release();
        let versions = release.document["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let mut version = &versions[rng.usize(..versions.len())];
        let verbs =
            [Verb::Create, Verb::Apply, Verb::Apply, Verb::Force, Verb::Merge, Verb::Merge, Verb::Edit];
        let verb = verbs[rng.usize(..verbs.len())];
        // An update of a field that the storage version lacks changes the generation alone, which the
        // simulator does not know; a default of such a field is one.
        let fills_more = |name: &str| {
            let filled = release.fill(json!({ "spec": {} }), name);
            release.declares(filled, release.storage()).is_err()
        };
        if matches!(verb, Verb::Merge | Verb::Edit) && version["name"].as_str().is_some_and(fills_more) {
            version = versions.iter().find(|other| other["storage"] == true).unwrap_or(version);
        }
        let nulls = if matches!(verb, Verb::Merge | Verb::Edit) { 4 } else { 0 };
        let spec = value(&version["schema"]["openAPIV3Schema"]["properties"]["spec"], nulls, rng);
        let name = version["name"].as_str().unwrap_or_default();
        let spec = match verb {
            Verb::Merge | Verb::Edit => {
                release.convert(json!({ "spec": spec }), name, release.storage())["spec"].take()
            }
            _ => spec,
        };
        let mut request = request(verb, ["a", "b", "c"][rng.usize(..3)], name, spec);
        if release.has_status && verb != Verb::Create && rng.bool() {
            let schema = &version["schema"]["openAPIV3Schema"]["properties"]["status"];
            request.is_to_status = true;
            request.body["status"] = value(schema, nulls, rng);
        }
        request
    }

    /// Lets Etch do what it would do with the object as it is.
    async fn be_etch(&mut self) -> Result<()> {
        let Some(object) = self.shown()? else { return Ok(()) };
        let (crd, world) = (self.resource.crd().clone(), self.resource.world.clone());
        let before = self.resource.generation().checked_sub(1);
        let before = before.map(|before| past_of(&self.resource.generations[before].release.crd));
        let before = past(before.unwrap_or_default(), true, Vec::new());
        let changes = changes(&before, &crd, &world.follow);
        let ledger = ObjectLedger {
            concerns: !changes.is_empty(),
            changes: changes.into(),
            servers_may_lag: true,
            ..ObjectLedger::default()
        };
        let record = Record { versions_disagree: true, ..Record::default() };
        let rules = Rules { crd, terms: world.terms.clone(), mode: Mode::Persist, since: Arc::default() };
        let (mut machine, mut step) = ObjectMachine::begin(rules, ledger, object, Arc::new(record), false);
        loop {
            step = match step {
                Step::Write => {
                    let outcome = self.write(&machine).await?;
                    machine.wrote(outcome)
                }
                Step::ReadAgain { .. } => {
                    machine.read(self.shown()?.map_or(Again::Gone, |object| Again::Read(Box::new(object))))
                }
                Step::AskOthers(verb) => machine.may_write_others(verb, Some(true)),
                Step::Done(_) | Step::Stop(_) => return Ok(()),
            };
        }
    }

    /// Sends the requests of a write; its outcome, if the server could answer.
    async fn write(&mut self, machine: &ObjectMachine) -> Result<Option<Outcome>> {
        let Rules { crd, terms, .. } = machine.rules();
        let planned = machine.planned().context("a write is planned")?;
        let (mut write, request) = WriteMachine::begin(crd, machine.object(), planned, terms);
        let mut step = plan::Step::Send(request);
        loop {
            step = match step {
                plan::Step::Send(request) => {
                    let request = Request::of_etch(&request, &crd.storage().name);
                    let answer = self.send(&request).await?;
                    self.stale = Some(request);
                    match answer {
                        Ok(live) => {
                            let live = live.context("Etch deletes nothing")?;
                            write.answered(self.object(&live)?)
                        }
                        Err(refused) => write.refused(refusal(&refused)),
                    }
                }
                plan::Step::Done(outcome) => return Ok(Some(outcome)),
                plan::Step::Failed(_) => return Ok(None),
            };
        }
    }

    /// The object as Etch reads it.
    fn shown(&self) -> Result<Option<Object>> {
        self.live().map(|live| self.object(live)).transpose()
    }

    fn object(&self, live: &Live) -> Result<Object> {
        let shown = self.resource.shown(NAME, live, Server::Current, self.release().storage());
        shown.map_err(|refused| anyhow::anyhow!("{refused:?}"))
    }

    async fn upgrade(&mut self) -> Result<()> {
        if self.resource.upgrade(false, false, Instant::now(), &mut self.clock) {
            self.sent.push(format!("generation {}", self.resource.generation()));
            self.define().await?;
            self.agree(None).await?;
        }
        Ok(())
    }

    /// Applies the CRD, and waits until every version of it is served.
    async fn define(&self) -> Result<()> {
        let mut document: Value =
            serde_json::from_str(&self.release().document.to_string().replace(GROUP, &self.group))?;
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
            // As a migrator of objects does, once none of them is stored at a version.
            let path = format!("{CRDS}/things.{}/status", self.group);
            let body =
                serde_json::to_vec(&json!({ "status": { "storedVersions": self.still_stored(&stored) } }))?;
            self.cluster.send("PATCH", &path, "application/merge-patch+json", body).await?.ok()?;
        }
        self.cluster.apply_crd(&document).await?;
        for version in names {
            let object = json!({
                "apiVersion": format!("{}/{version}", self.group), "kind": "Thing", "metadata": {
                    "name": "probe",
                },
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
        let (before, new) = (before.storage(), self.release().storage());
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

    /// Sends a request to both; the simulator's answer.
    async fn send(&mut self, request: &Request) -> Result<Result<Option<Live>, Refused>> {
        if !self.release().has(&request.version) {
            return Ok(Err(Refused { code: 404, message: "the requested resource".to_owned() }));
        }
        let Request { manager, verb, version, is_to_status, body } = request;
        let part = if *is_to_status { " status" } else { "" };
        self.sent.push(format!("{manager} {verb:?}{part}@{version} {body}"));
        let before = self.live().cloned();
        let real = self.really(request).await?;
        let done = self.resource.process(&mut self.clock, NAME, Server::Current, request);
        if let (Verb::DryRun, Ok(Some(live)), 200) = (verb, &done, real.code) {
            let shown = self.release().view(&live.content, version).ok();
            ensure!(
                shown == Some(payload(&real.body)),
                "the simulator would show {shown:?}, the server {}",
                real.body
            );
        }
        let answered = done.as_ref().map_or_else(|refused| refused.code, |_| 200);
        let code = if real.code == 201 { 200 } else { real.code };
        // The server has two errors for a name that another object has.
        let is_alike = code == answered
            || (answered, code) == (409, 422) && real.body.to_string().contains("metadata.uid");
        ensure!(
            is_alike,
            "the simulator answers {done:?}, the server {}: {}",
            real.code,
            real.body["message"]
        );
        self.agree(Some(before.as_ref())).await?;
        Ok(done)
    }

    async fn really(&self, request: &Request) -> Result<Real> {
        let Request { version, manager, verb, is_to_status, body } = request;
        let body = self.named(body).await?;
        let (collection, object) = (self.collection(version), format!("{}/{NAME}", self.collection(version)));
        let object = if *is_to_status { format!("{object}/status") } else { object };
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
                ("PUT", object, "application/json", merge(read.body, &body))
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
        let (Some(rest), Some(live)) = (rest, self.live()) else { return Ok(path.to_owned()) };
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

    /// Whether both have the same object; `before` is what the simulator had before the request.
    async fn agree(&mut self, before: Option<Option<&Live>>) -> Result<()> {
        let raw = self.raw().await?;
        let Some(Live { content, tag, .. }) = self.live().cloned() else {
            ensure!(raw.is_none(), "the server has an object: {raw:?}");
            return Ok(());
        };
        let raw = raw.context("the server has no object")?;
        let entries = raw["metadata"]["managedFields"].as_array().into_iter().flatten();
        let mut owners: Vec<Entry> = entries.map(Entry::read).collect();
        owners.sort();
        let version = raw["apiVersion"].as_str().and_then(|text| text.rsplit('/').next()).unwrap_or_default();
        let real = Content { version: version.to_owned(), value: payload(&raw), owners };
        ensure!(*content == real, "the simulator has {content:?}\nthe server        {real:?}");
        let versions = self.release().crd.versions().iter().map(|version| version.name.clone());
        let mut revision = String::new();
        for version in versions.collect::<Vec<_>>() {
            let seen = self.cluster.get(&format!("{}/{NAME}", self.collection(&version))).await?;
            let view = self.release().view(&content, &version).ok();
            ensure!(
                view == Some(payload(&seen)),
                "at {version} the simulator shows {view:?}, the server {}",
                seen["spec"]
            );
            revision = seen["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
            let name = seen["metadata"]["uid"].as_str().unwrap_or_default();
            let known = self.names.entry(uid(tag.uid)).or_insert_with(|| name.to_owned());
            ensure!(known == name, "the simulator has the object that was there before");
        }
        let known = self.names.insert(tag.revision.to_string(), revision.clone());
        let has_moved = known.as_ref() != Some(&revision);
        let should_move = before.is_some_and(|before| before.map(|live| live.tag) != Some(tag));
        ensure!(
            has_moved == should_move,
            "the resource version: {known:?}, now {revision}, in the simulator {tag:?}"
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
