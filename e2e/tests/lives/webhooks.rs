//! The webhooks of all lives: two for conversions, and one for admission, which does to each type what its
//! life sets.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use e2e::webhook::{Webhook, renamed};
use k8s_openapi::ByteString;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::schema::{Conversion, GROUP};
use crate::story::Admission;

/// Fields that a policy which strips takes away.
pub(crate) const STRIPPED: [&str; 4] = ["f0", "new0", "f1", "replicas"];

pub(crate) struct Webhooks {
    new: Webhook,
    old: Webhook,
    admission: Webhook,
    habits: Arc<Mutex<BTreeMap<String, Admission>>>,
}

impl Webhooks {
    pub(crate) async fn start() -> Result<Self> {
        let habits: Arc<Mutex<BTreeMap<String, Admission>>> = Arc::default();
        let count = AtomicU64::new(0);
        let admission = Webhook::start({
            let habits = habits.clone();
            move |request| {
                let plural = request["resource"]["resource"].as_str().unwrap_or_default();
                let habits = habits.lock();
                admitted(request, habits.get(plural).copied().unwrap_or_default(), &count)
            }
        })
        .await?;
        Ok(Self {
            new: Webhook::start(renamed).await?,
            old: Webhook::start(|request| {
                converted(request, |spec| spec.retain(|name, _| !name.starts_with("new")))
            })
            .await?,
            admission,
            habits,
        })
    }

    /// The configuration with which API servers ask about the objects of these types.
    pub(crate) fn configuration(&self, plurals: &[&str]) -> Value {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": { "name": "lives" },
            "webhooks": [{
                "name": "mutate.lives.example.com", "clientConfig": self.admission.client_config(),
                "admissionReviewVersions": ["v1"], "sideEffects": "None", "matchPolicy": "Exact",
                "rules": [{ "apiGroups": [GROUP], "apiVersions": ["*"], "resources": plurals,
                    "operations": ["CREATE", "UPDATE"] }],
            }],
        })
    }

    /// What is done to each write of a type from now on.
    pub(crate) fn set(&self, plural: &str, habit: Admission) {
        let mut habits = self.habits.lock();
        habits.insert(plural.to_owned(), habit);
    }

    /// The `conversion` of a CRD.
    pub(crate) fn conversion(&self, conversion: Conversion) -> Value {
        let webhook = match conversion {
            Conversion::None => return json!({ "strategy": "None" }),
            Conversion::New => &self.new,
            Conversion::Old => &self.old,
        };
        json!({ "strategy": "Webhook", "webhook": {
            "conversionReviewVersions": ["v1"], "clientConfig": webhook.client_config() } })
    }
}

fn converted(request: &Value, drop: impl Fn(&mut serde_json::Map<String, Value>)) -> Value {
    let mut answer = renamed(request);
    for object in answer["convertedObjects"].as_array_mut().into_iter().flatten() {
        if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
            drop(spec);
        }
    }
    answer
}

fn admitted(request: &Value, habit: Admission, count: &AtomicU64) -> Value {
    let object = &request["object"];
    let metadata = |key: &str, name: &str, value: String| {
        let mut values = object["metadata"][key].as_object().cloned().unwrap_or_default();
        values.insert(name.to_owned(), json!(value));
        vec![json!({ "op": "add", "path": format!("/metadata/{key}"), "value": values })]
    };
    let patch = match habit {
        Admission::None => Vec::new(),
        Admission::Stamp if object["metadata"]["labels"]["stamped"] == "yes" => Vec::new(),
        Admission::Stamp => metadata("labels", "stamped", "yes".to_owned()),
        Admission::Count => {
            metadata("annotations", "count", count.fetch_add(1, Ordering::Relaxed).to_string())
        }
        Admission::Strip => {
            let present = STRIPPED.iter().filter(|field| object["spec"].get(**field).is_some());
            present.map(|field| json!({ "op": "remove", "path": format!("/spec/{field}") })).collect()
        }
    };
    if patch.is_empty() {
        return json!({ "allowed": true });
    }
    json!({
        "allowed": true, "patchType": "JSONPatch", "patch": ByteString(json!(patch).to_string().into_bytes()),
    })
}
