//! The keys by which API servers are known, as the webhook configurations hold them: every replica follows
//! both. `etch_admission::KeyRing` decides when a key is renewed.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream::select;
use kube::runtime::watcher::Event;
use rustls::crypto::ring::default_provider;
use serde_json::Value;
use tokio::sync::watch;

use crate::cluster::{Cluster, WebhookConfiguration};
use crate::server::Readiness;
use crate::server::admission::AcceptedKeys;
use etch_admission::{KEY_BYTES, PathKey, keys_in};

/// What is known of the keys in a configuration; `None` until it has been listed.
type Known = Option<Vec<PathKey>>;

/// Accepts the keys that are in the configurations, as they change. `ready` is set as soon as both have been
/// listed, and `deleted` is notified of each configuration that is deleted.
pub(super) async fn follow(
    cluster: Cluster,
    accepted: AcceptedKeys,
    ready: Arc<Readiness>,
    deleted: watch::Sender<()>,
) {
    let [mutating, validating] = WebhookConfiguration::BOTH
        .map(|which| cluster.watch_webhook_configuration(which).map(move |event| (which, event)).boxed());
    let mut events = select(mutating, validating);
    let mut known: [Known; 2] = [None, None];
    // What a list under way has shown.
    let mut listed: [Vec<PathKey>; 2] = [Vec::new(), Vec::new()];
    while let Some((which, event)) = events.next().await {
        let index = usize::from(which == WebhookConfiguration::Validating);
        known[index] = Some(match event {
            Event::Init => {
                listed[index].clear();
                continue;
            }
            Event::InitApply(configuration) => {
                listed[index] = keys(&configuration);
                continue;
            }
            Event::InitDone => std::mem::take(&mut listed[index]),
            Event::Apply(configuration) => keys(&configuration),
            Event::Delete(_) => {
                deleted.send_replace(());
                Vec::new()
            }
        });
        let [Some(mutating), Some(validating)] = &known else { continue };
        let mut all = mutating.clone();
        all.extend(validating.iter().cloned());
        accepted.set(&all);
        ready.knows_the_keys();
    }
}

fn keys(configuration: &impl serde::Serialize) -> Vec<PathKey> {
    serde_json::to_value(configuration).map(|value: Value| keys_in(&value)).unwrap_or_default()
}

/// A new key; `None` only if the system has no randomness.
pub(super) fn make() -> Option<PathKey> {
    let mut bytes = [0; KEY_BYTES];
    default_provider().secure_random.fill(&mut bytes).ok()?;
    Some(PathKey::new(bytes))
}
