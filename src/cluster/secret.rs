//! The Secret with the certificates that Etch makes for admission: watched, created, and written as it was
//! read. It reads no other Secret, and must not log what is in this one.

use std::collections::BTreeMap;

use futures::{Stream, StreamExt};
use http::Method;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::runtime::watcher::{self, Event};
use serde_json::{Value, json};

use super::{CallError, Cluster, WatchHealth};
use etch_admission::MANAGED_BY;
use etch_core::ownership::MANAGER;
use etch_core::request::own::apply;
use etch_core::request::path::encoded;
use etch_core::request::send;
use kube_structural_schema::json::Json;

/// What a Secret holds, by key.
pub type SecretData = BTreeMap<String, Vec<u8>>;

impl Cluster {
    /// One Secret, for as long as the stream is polled.
    pub fn watch_secret(
        &self,
        namespace: &str,
        name: &str,
    ) -> impl Stream<Item = Event<Secret>> + Send + use<> {
        let health = WatchHealth::default();
        let api = Api::<Secret>::namespaced(self.paced_client(&health), namespace);
        let one = watcher::Config::default().fields(&format!("metadata.name={name}"));
        self.with_retries("secrets", health, move || watcher::watcher(api.clone(), one.clone()).boxed())
    }

    /// Creates a Secret of type `kubernetes.io/tls`.
    ///
    /// # Errors
    /// See [`CallError`]; 409 where there is one already.
    pub async fn create_secret(
        &self,
        namespace: &str,
        name: &str,
        data: &SecretData,
    ) -> Result<(), CallError> {
        let mut body = body(namespace, name, data);
        body["type"] = json!("kubernetes.io/tls");
        let path = format!("/api/v1/namespaces/{}/secrets?fieldManager={MANAGER}", encoded(namespace));
        self.call(send(Method::POST, &path, Json::from(body).to_vec())).await.map(drop)
    }

    /// Sets what a Secret holds under these keys, if it is still as it was at a resource version.
    ///
    /// # Errors
    /// See [`CallError`]; 409 where it has changed since.
    pub async fn write_secret(
        &self,
        namespace: &str,
        name: &str,
        resource_version: &str,
        data: &SecretData,
    ) -> Result<(), CallError> {
        let mut body = body(namespace, name, data);
        body["metadata"]["resourceVersion"] = json!(resource_version);
        let path = format!("/api/v1/namespaces/{}/secrets/{}", encoded(namespace), encoded(name));
        self.call(apply(&path, body)).await.map(drop)
    }
}

fn body(namespace: &str, name: &str, data: &SecretData) -> Value {
    let data: BTreeMap<&str, ByteString> =
        data.iter().map(|(key, value)| (key.as_str(), ByteString(value.clone()))).collect();
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": { "name": name, "namespace": namespace, "labels": { MANAGED_BY.0: MANAGED_BY.1 } },
        "data": data,
    })
}
