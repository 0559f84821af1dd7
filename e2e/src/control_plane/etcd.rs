//! What etcd really holds: raw keys and values, past every API server.
//!
//! It speaks etcd's own JSON gateway and interprets nothing but the key layout of custom resources.

use anyhow::{Context, Result};
use http::Request;
use k8s_openapi::ByteString;
use kube::{Client, Config, client::Body};
use kube_structural_schema::json::Json;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::kubeconfig;
use super::pki::EtcdPki;

/// A client of one etcd member. Cheap to clone.
#[derive(Clone)]
pub struct EtcdRaw {
    // Not an API server, but an HTTP client that takes and gives JSON is all that is needed.
    client: Client,
}

/// A key with what is stored under it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawValue {
    /// The whole key, `/registry/…`.
    pub key: String,
    /// The stored bytes: JSON for custom resources and CRDs, protobuf behind a `k8s\0` prefix for most
    /// built-in types.
    pub bytes: Vec<u8>,
    /// The revision of the last write, which the API shows as `metadata.resourceVersion`.
    pub mod_revision: i64,
    /// How often it was written since it was created, that write included.
    pub version: i64,
}

#[derive(Serialize)]
struct RangeRequest {
    key: ByteString,
    #[serde(skip_serializing_if = "Option::is_none")]
    range_end: Option<ByteString>,
}

#[derive(Deserialize)]
struct RangeResponse {
    /// Absent when there is none.
    #[serde(default)]
    kvs: Vec<KeyValue>,
}

#[derive(Deserialize)]
struct KeyValue {
    key: ByteString,
    /// Absent when empty.
    #[serde(default)]
    value: ByteString,
    /// The gateway writes 64-bit numbers as strings.
    mod_revision: String,
    version: String,
}

#[derive(Serialize)]
struct PutRequest {
    key: ByteString,
    value: ByteString,
}

impl EtcdRaw {
    /// A client for the endpoint `url`, as in `endpoints.json`, with the certificates that it wants. Nothing
    /// is sent yet.
    pub async fn new(url: &str, tls: Option<&EtcdPki>) -> Result<Self> {
        let mut config = match tls {
            None => Config::new(url.parse().with_context(|| format!("the etcd endpoint {url}"))?),
            Some(EtcdPki { ca, serving: _, client }) => {
                kubeconfig::of(url, ca, &kubeconfig::certificate_user(client)?).await?
            }
        };
        config.default_retry = false;
        Ok(Self { client: Client::try_from(config)? })
    }

    /// The value of one key with its revision; `None` if it does not exist.
    pub async fn get(&self, key: &str) -> Result<Option<(Vec<u8>, i64)>> {
        let found = self.range(key, None).await?.into_iter().next();
        Ok(found.map(|RawValue { bytes, mod_revision, .. }| (bytes, mod_revision)))
    }

    /// All keys that begin with `prefix`, which must not be empty, in order; in one answer.
    pub async fn list(&self, prefix: &str) -> Result<Vec<RawValue>> {
        self.range(prefix, Some(end_of_prefix(prefix))).await
    }

    /// Writes a value behind the back of every API server, which see it as a normal change.
    pub async fn put(&self, key: &str, bytes: &[u8]) -> Result<()> {
        let request = PutRequest { key: encode(key), value: ByteString(bytes.to_vec()) };
        let _: Value = self.post("put", &request).await.with_context(|| format!("put {key}"))?;
        Ok(())
    }

    /// Writes an object as API servers encode it, to the last byte: they take a write that changes nothing
    /// for one that changes something where etcd has other bytes (fact W1).
    pub async fn put_json(&self, key: &str, object: &Value) -> Result<()> {
        let mut bytes = serde_json::to_vec(object)?;
        bytes.push(b'\n');
        self.put(key, &bytes).await
    }

    /// Changes a CRD behind the back of every API server, as an older release or a careless writer leaves it;
    /// it is stored as JSON of `v1beta1` (fact R7).
    pub async fn change_crd(&self, name: &str, change: impl FnOnce(&mut Value) -> Result<()>) -> Result<()> {
        let key = format!("/registry/apiextensions.k8s.io/customresourcedefinitions/{name}");
        let (bytes, _) = self.get(&key).await?.with_context(|| format!("no CRD {name} in etcd"))?;
        let mut crd = serde_json::from_slice(&bytes)?;
        change(&mut crd)?;
        self.put_json(&key, &crd).await
    }

    /// Writes up to 128 values at once, which is what etcd takes in one transaction.
    pub async fn put_all(&self, values: impl IntoIterator<Item = (String, Vec<u8>)>) -> Result<()> {
        let puts = values.into_iter().map(|(key, bytes)| {
            json!({ "request_put": PutRequest { key: encode(&key), value: ByteString(bytes) } })
        });
        let transaction = json!({ "success": puts.collect::<Vec<_>>() });
        let _: Value = self.post("txn", &transaction).await.context("put several values")?;
        Ok(())
    }

    /// Forgets what was before a revision, as API servers have it done every five minutes.
    pub async fn compact(&self, revision: i64) -> Result<()> {
        let request = json!({ "revision": revision.to_string(), "physical": true });
        let _: Value =
            self.post("compaction", &request).await.with_context(|| format!("compact {revision}"))?;
        Ok(())
    }

    /// What is stored for a custom resource, at whatever version it is stored; `None` if there is no such
    /// object.
    ///
    /// The key is `/registry/<group>/<plural>/<namespace>/<name>`, without the namespace for cluster-scoped
    /// ones. An error if the bytes are no JSON, as for built-in types.
    pub async fn raw_object(
        &self,
        group: &str,
        plural: &str,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<Value>> {
        let key = object_key(group, plural, namespace, name);
        let Some((bytes, _)) = self.get(&key).await? else { return Ok(None) };
        let document = Json::parse(&bytes).with_context(|| format!("{key} is not stored as JSON"))?;
        Ok(Some(document.into_inner()))
    }

    /// The whole of it, as `etcdctl snapshot save` would write it to a file.
    pub async fn snapshot(&self) -> Result<Vec<u8>> {
        let request = Request::post("/v3/maintenance/snapshot").body(Body::from(b"{}".to_vec()))?;
        let answer = self.client.send(request).await?.into_body().collect_bytes().await?;
        let mut bytes = Vec::new();
        for part in answer.split(|byte| *byte == b'\n').filter(|part| !part.is_empty()) {
            let part: Value = serde_json::from_slice(part)?;
            let blob: ByteString = serde_json::from_value(part["result"]["blob"].clone()).unwrap_or_default();
            bytes.extend(blob.0);
        }
        Ok(bytes)
    }

    async fn range(&self, key: &str, range_end: Option<Vec<u8>>) -> Result<Vec<RawValue>> {
        let request = RangeRequest { key: encode(key), range_end: range_end.map(ByteString) };
        let response: RangeResponse =
            self.post("range", &request).await.with_context(|| format!("read {key}"))?;
        response.kvs.into_iter().map(KeyValue::decode).collect()
    }

    async fn post<T: DeserializeOwned>(&self, method: &str, body: &impl Serialize) -> Result<T> {
        let request = Request::post(format!("/v3/kv/{method}")).body(serde_json::to_vec(body)?)?;
        Ok(self.client.request(request).await?)
    }
}

impl KeyValue {
    fn decode(self) -> Result<RawValue> {
        Ok(RawValue {
            key: String::from_utf8(self.key.0).context("a key that is not UTF-8")?,
            bytes: self.value.0,
            mod_revision: self.mod_revision.parse().context("mod_revision")?,
            version: self.version.parse().context("version")?,
        })
    }
}

/// The key of a custom resource, as the API server lays them out.
pub fn object_key(group: &str, plural: &str, namespace: Option<&str>, name: &str) -> String {
    match namespace {
        Some(namespace) => format!("/registry/{group}/{plural}/{namespace}/{name}"),
        None => format!("/registry/{group}/{plural}/{name}"),
    }
}

fn encode(key: &str) -> ByteString {
    ByteString(key.as_bytes().to_vec())
}

/// The first key after all those that begin with `prefix`, as etcd's ranges exclude their end. UTF-8 has no
/// byte 0xff, so the last one can always be counted up.
fn end_of_prefix(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    end
}
