//! The webhooks of the matrix: conversion, and mutating admission.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Result;
use k8s_openapi::ByteString;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::axes::{Admission, Conversion, World};
use crate::webhook::{Webhook, renamed};

/// One server for all worlds: it knows them by their groups.
pub(super) struct Reviews {
    webhook: Webhook,
    seen: Arc<Mutex<BTreeSet<String>>>,
}

impl Reviews {
    pub(super) async fn start() -> Result<Self> {
        let seen = Arc::<Mutex<BTreeSet<String>>>::default();
        let asked = Arc::clone(&seen);
        let webhook = Webhook::start(move |request| {
            if request.get("desiredAPIVersion").is_some() {
                return convert(request);
            }
            let group = request["resource"]["group"].as_str().unwrap_or_default();
            asked.lock().insert(group.to_owned());
            admit(request, group)
        })
        .await?;
        Ok(Self { webhook, seen })
    }

    pub(super) fn client_config(&self) -> Value {
        self.webhook.client_config()
    }

    /// Whether admission has asked about an object of this group.
    pub(super) fn has_seen(&self, group: &str) -> bool {
        self.seen.lock().contains(group)
    }

    /// The configuration of a world's mutating admission; `None` if it has none.
    pub(super) fn admission(&self, world: World, group: &str) -> Option<Value> {
        let versions = match world.admission {
            Admission::None => return None,
            Admission::Stamps => "*",
            Admission::Strips => "v1",
        };
        let rule = json!({
            "apiGroups": [group], "apiVersions": [versions], "resources": ["things", "things/status"],
            "operations": ["CREATE", "UPDATE"], "scope": "*",
        });
        Some(json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": { "name": world.to_string() },
            "webhooks": [{
                "name": format!("{world}.{group}"), "clientConfig": self.client_config(), "rules": [rule],
                "failurePolicy": "Fail", "sideEffects": "None", "timeoutSeconds": 30,
                "admissionReviewVersions": ["v1"],
            }],
        }))
    }
}

/// The world of a group: its first label.
fn world(group: &str) -> Option<World> {
    group.split('.').next()?.parse().ok()
}

fn convert(request: &Value) -> Value {
    let mut answer = renamed(request);
    for object in answer["convertedObjects"].as_array_mut().into_iter().flatten() {
        let group = object["apiVersion"].as_str().and_then(|text| text.split('/').next()).unwrap_or_default();
        if world(group).is_some_and(|world| world.conversion == Conversion::Old) {
            forget(object);
        }
    }
    answer
}

/// What a program does that reads objects into the Go types of the release before. Those of metadata have a
/// name.
fn forget(object: &mut Value) {
    let mut remove = |parent: &str, field: &str| {
        if let Some(parent) = object.pointer_mut(parent).and_then(Value::as_object_mut) {
            parent.remove(field);
        }
    };
    remove("/spec", "color");
    remove("/spec", "nested");
    remove("/status", "state");
    remove("/spec/items/0", "kind");
    remove("/spec/map/one", "mode");
}

fn admit(request: &Value, group: &str) -> Value {
    let object = &request["object"];
    let patch = match world(group).map(|world| world.admission) {
        Some(Admission::Stamps) if object["metadata"]["annotations"].is_object() => json!([]),
        Some(Admission::Stamps) => {
            json!([{ "op": "add", "path": "/metadata/annotations", "value": { "stamp": "yes" } }])
        }
        Some(Admission::Strips) if object["spec"].get("color").is_some() => {
            json!([{ "op": "remove", "path": "/spec/color" }])
        }
        _ => json!([]),
    };
    let patch = ByteString(patch.to_string().into_bytes());
    json!({ "allowed": true, "patchType": "JSONPatch", "patch": patch })
}
