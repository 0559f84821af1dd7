//! The model's server compared with a real one: random requests to both, and after each of them the answer,
//! the bytes in etcd, the views, the owners, and whether the resource version has moved. It must not look
//! into the model for what the real server should have done, but compare what both did.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use e2e::cluster::{Answer as Real, CRDS, Cluster, GUARD, eventually};
use fastrand::Rng;
use serde_json::{Map, Value, json};

use crate::object::{Begun, NextStep};
use crate::parts::{Answer, Known, Next, Parts, Seen};
use crate::server::{
    Content, Entry, GROUP, NAME, NAMESPACE, Refused, Request, Revision, Tag, Uid, Verb, payload, uid,
};
use crate::tables::Id;
use crate::worlds::request;

/// One object, in the model and in a cluster.
pub(crate) struct Twins<'a> {
    cluster: &'a Cluster,
    parts: &'a Parts,
    world: u8,
    /// The API group in place of the model's.
    group: String,
    crd: u8,
    live: Option<(Id, Tag)>,
    revision: Revision,
    uids: Uid,
    /// What the cluster has in place of the model's uids and resource versions.
    names: BTreeMap<String, String>,
    /// A request of Etch's that was made for an earlier object.
    stale: Option<Request>,
    told: Vec<String>,
}

/// Lives a random life of an object in both.
///
/// # Errors
/// They differ; the error lists all that was done.
pub(crate) async fn live(cluster: &Cluster, parts: &Parts, seed: u64, steps: usize) -> Result<usize> {
    let mut rng = Rng::with_seed(seed);
    let world = rng.u8(..u8::try_from(parts.worlds.len())?);
    let mut twins = Twins {
        cluster,
        parts,
        world,
        group: format!("m{seed}.example.com"),
        crd: 0,
        live: None,
        revision: 1,
        uids: 0,
        names: BTreeMap::new(),
        stale: None,
        told: Vec::new(),
    };
    let lived = twins.live(&mut rng, steps).await;
    let told = || {
        format!("MODEL_SEED={seed}, {}:\n  {}", parts.worlds[world as usize].name, twins.told.join("\n  "))
    };
    lived.with_context(told)?;
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
                    let menu = &self.parts.worlds[self.world as usize].menu;
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
        let release = &self.parts.worlds[self.world as usize].releases[self.crd as usize];
        let versions = release.document["spec"]["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
        let version = &versions[rng.usize(..versions.len())];
        let verbs =
            [Verb::Create, Verb::Apply, Verb::Apply, Verb::Force, Verb::Merge, Verb::Merge, Verb::Edit];
        let verb = verbs[rng.usize(..verbs.len())];
        let nulls = if matches!(verb, Verb::Merge | Verb::Edit) { 4 } else { 0 };
        let spec = value(&version["schema"]["openAPIV3Schema"]["properties"]["spec"], nulls, rng);
        let name = version["name"].as_str().unwrap_or_default();
        // An update of a field that the storage version lacks changes the generation alone, which the model does
        // not know.
        let spec = match verb {
            Verb::Merge | Verb::Edit => {
                release.convert(json!({ "spec": spec }), name, release.storage())["spec"].take()
            }
            _ => spec,
        };
        request(verb, ["a", "b", "c"][rng.usize(..3)], name, spec)
    }

    /// Lets Etch do what it would do with the object as it is.
    async fn be_etch(&mut self) -> Result<()> {
        let Some((content, tag)) = self.live else { return Ok(()) };
        let stand = self.parts.begin(Begun {
            world: self.world,
            release: self.crd,
            seen: Seen { by: self.crd, content, tag },
            known: Known { versions_disagree: true, ..Known::default() },
            past: [(self.crd > 0).then(|| (self.crd - 1, true)), None, None],
            follows: true,
            may_lag: true,
        });
        let NextStep::Write(mut machine) = stand.next else { return Ok(()) };
        loop {
            let request = (*self.parts.requests.get(self.parts.pending(machine).request)).clone();
            let answer = match self.send(&request).await? {
                Ok(content) => {
                    let (_, tag) = self.live.context("an object that was written is there")?;
                    let content = content.context("an answer with an object")?;
                    Answer::Object(Seen { by: self.crd, content, tag })
                }
                Err(refused) => Answer::Refused(refused),
            };
            self.stale = Some(request);
            match self.parts.answered(machine, answer) {
                Next::Send(next) => machine = next,
                Next::Done(_) | Next::Failed => return Ok(()),
            }
        }
    }

    async fn upgrade(&mut self) -> Result<()> {
        let releases = &self.parts.worlds[self.world as usize].releases;
        let Some(next) = releases.get(self.crd as usize + 1) else { return Ok(()) };
        if self.live.is_some_and(|(content, _)| !next.has(&self.parts.contents.get(content).version)) {
            return Ok(());
        }
        self.told.push(format!("release {}", self.crd + 1));
        self.crd += 1;
        self.define().await?;
        self.compare(self.live, None).await
    }

    /// Applies the CRD, and waits until every version of it is served.
    async fn define(&self) -> Result<()> {
        let release = &self.parts.worlds[self.world as usize].releases[self.crd as usize];
        let mut document: Value =
            serde_json::from_str(&release.document.to_string().replace(GROUP, &self.group))?;
        let stored = document["status"]["storedVersions"].take();
        document["status"] = Value::Null;
        for field in ["uid", "generation"] {
            document["metadata"].as_object_mut().context("metadata")?.remove(field);
        }
        document.as_object_mut().context("a CRD")?.remove("status");
        let probe = format!("probe{}", self.crd);
        let versions = document["spec"]["versions"].as_array_mut().context("versions")?;
        for version in versions.iter_mut() {
            version["schema"]["openAPIV3Schema"]["properties"][&probe] = json!({ "type": "string" });
        }
        let names: Vec<String> =
            versions.iter().filter_map(|version| version["name"].as_str().map(str::to_owned)).collect();
        if self.crd > 0 {
            // As a migrator of objects does, once none of them is stored at a version.
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
        let releases = &self.parts.worlds[self.world as usize].releases;
        let before = releases[self.crd as usize - 1].storage();
        let all = stored.as_array().into_iter().flatten().filter_map(Value::as_str);
        let new = releases[self.crd as usize].storage();
        let mut kept: Vec<&str> = all.filter(|name| *name != new || *name == before).collect();
        if kept.is_empty() {
            kept.push(before);
        }
        json!(kept)
    }

    fn collection(&self, version: &str) -> String {
        format!("/apis/{}/{version}/namespaces/{NAMESPACE}/things", self.group)
    }

    /// Sends a request to both; what the model makes of the object.
    async fn send(&mut self, request: &Request) -> Result<Result<Option<Id>, Refused>> {
        let release = &self.parts.worlds[self.world as usize].releases[self.crd as usize];
        if !release.has(&request.version) {
            return Ok(Err(Refused { code: 404, message: "the requested resource".to_owned() }));
        }
        self.told
            .push(format!("{} {:?}@{} {}", request.manager, request.verb, request.version, request.body));
        let before = self.live;
        let real = self.really(request).await?;
        let done = self.parts.handle(self.world, self.crd, before, self.parts.requests.id(request.clone()));
        if request.verb == Verb::DryRun {
            if let (Ok(Some(content)), 200) = (&done, real.code) {
                let shown = release.view(&self.parts.contents.get(*content), &request.version).ok();
                ensure!(
                    shown == Some(payload(&real.body)),
                    "the model would show {shown:?}, the server {}",
                    real.body
                );
            }
        } else if let Ok(after) = &done {
            let is_same = matches!((before, after), (Some((before, _)), Some(after)) if before == *after);
            if !is_same {
                self.revision += 1;
                self.uids += Uid::from(before.is_none());
                let number = before.map_or(self.uids, |(_, tag)| tag.uid);
                self.live = after.map(|content| (content, Tag { uid: number, revision: self.revision }));
            }
        }
        let said = match &done {
            Ok(_) => 200,
            Err(refused) => refused.code,
        };
        let code = if real.code == 201 { 200 } else { real.code };
        // The server has two errors for a name that another object has.
        let is_alike =
            code == said || (said, code) == (409, 422) && real.body.to_string().contains("metadata.uid");
        ensure!(is_alike, "the model says {done:?}, the server {}: {}", real.code, real.body["message"]);
        self.compare(self.live, Some(before)).await?;
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
        let (Some(rest), Some((content, _))) = (rest, self.live) else { return Ok(path.to_owned()) };
        let (index, rest) = rest.split_once('/').map_or((rest, ""), |(index, rest)| (index, rest));
        let content = self.parts.contents.get(content);
        let entry = content.owners.get(index.parse::<usize>()?);
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
    async fn compare(&mut self, live: Option<(Id, Tag)>, before: Option<Option<(Id, Tag)>>) -> Result<()> {
        let raw = self.raw().await?;
        let Some((content, tag)) = live else {
            ensure!(raw.is_none(), "the server has an object: {raw:?}");
            return Ok(());
        };
        let raw = raw.context("the server has no object")?;
        let entries = raw["metadata"]["managedFields"].as_array().into_iter().flatten();
        let mut owners: Vec<Entry> = entries.map(Entry::read).collect();
        owners.sort();
        let version = raw["apiVersion"].as_str().and_then(|text| text.rsplit('/').next()).unwrap_or_default();
        let real = Content { version: version.to_owned(), value: payload(&raw), owners };
        let content = self.parts.contents.get(content);
        ensure!(*content == real, "the model has {content:?}\nthe server   {real:?}");
        let release = &self.parts.worlds[self.world as usize].releases[self.crd as usize];
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
        let should_move = before.is_some_and(|before| before != live);
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
