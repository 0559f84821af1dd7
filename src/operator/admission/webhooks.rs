//! The webhook configurations as they are in the cluster: read, and applied where they differ.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::{Value, json};
use tracing::{info, warn};

use crate::cluster::{Cluster, WebhookConfiguration};
use crate::server::admission::AcceptedKeys;
use etch_admission::refused_webhooks::{BY_AUTHOR, fields, has, keep, those_there, unnamed};
use etch_admission::status::Unserved;
use etch_admission::{
    Declaration, Endpoint, GUARDS, KeyRing, PathKey, altered, configurations, is_applied, schema_of,
    with_injected, without_authority,
};
use etch_core::call_error::CallError;
use kube_structural_schema::json::Json;

/// How API servers reach the server, and by which key it knows them.
pub(super) struct Client<'c> {
    pub(super) endpoint: &'c Endpoint,
    /// A bundle in PEM.
    pub(super) authority: Option<&'c [u8]>,
    /// Whether webhooks are only changed and taken away, and keep their bundle: this replica has no
    /// certificate, and API servers are not to ask by more of them.
    pub(super) only_there: bool,
    /// What this replica accepts; others follow what is written.
    pub(super) accepted: &'c AcceptedKeys,
    pub(super) now: Timestamp,
    /// The next key, if another one is due.
    pub(super) new_key: PathKey,
}

/// Applies the webhooks of these schemas. Those that the API server does not take come back with the fields
/// that it names: one webhook does not keep it from asking by the others. Where it refuses what an author has
/// changed, or names no field, the webhook that is there keeps that as it was; else the webhook is left out.
///
/// `guard` sets whether the API server is to ask about upgrades of CRDs; where that is not known, it stays as
/// it is.
pub(super) async fn write(
    cluster: &Cluster,
    mut declared: Vec<(String, Declaration)>,
    guard: Option<bool>,
    client: Client<'_>,
) -> Result<Unserved, CallError> {
    let Client { endpoint, authority, only_there, accepted, now, new_key } = client;
    let (mut refused, mut refused_guards) = (BTreeMap::new(), BTreeSet::new());
    let (mut altered, mut uninjected) = (BTreeMap::new(), BTreeSet::new());
    let [mutating, validating] = WebhookConfiguration::BOTH;
    let found =
        [cluster.webhook_configuration(mutating).await?, cluster.webhook_configuration(validating).await?];
    let there = found.each_ref().map(Option::as_deref);
    let keys = KeyRing::next(there, now, || new_key);
    for (index, (which, there)) in WebhookConfiguration::BOTH.into_iter().zip(found).enumerate() {
        let mut kept: BTreeSet<(String, &str)> = BTreeSet::new();
        let now = loop {
            let schemas = declared.iter().map(|(name, declared)| (name.as_str(), declared));
            let is_asked =
                |name: &str| guard.unwrap_or_else(|| there.as_ref().is_some_and(|there| has(there, name)));
            let taken = GUARDS.into_iter().filter(|name| !refused_guards.contains(name));
            let guards: Vec<&str> = taken.filter(|name| is_asked(name)).collect();
            let body = &mut configurations(schemas, &guards, endpoint, authority, &keys)[index];
            for (webhook, field) in &kept {
                keep(body, there.as_ref(), webhook, field);
            }
            if only_there {
                body["webhooks"] = those_there(body, there.as_ref());
            }
            let is_wanted = match &there {
                Some(there) => !is_applied(body, there),
                // Without webhooks, no configuration is created.
                None => body["webhooks"].as_array().is_some_and(|webhooks| !webhooks.is_empty()),
            };
            if !is_wanted {
                break there;
            }
            accepted.expect(keys.accepted());
            let Err(error) = cluster.apply_webhook_configuration(which, body.clone()).await else {
                info!(resource = which.resource(), "webhooks applied");
                let (now, differing) = without_additions(cluster, which, body).await?;
                altered.extend(differing);
                break now;
            };
            let mut named = fields(&error, body);
            let names_fields = !named.is_empty();
            if !names_fields {
                named = refused_alone(cluster, which, body, &error).await?;
            }
            if named.is_empty() {
                return Err(error);
            }
            for guard in GUARDS {
                if let Some(why) = named.remove(guard) {
                    warn!(why, guard, "the API server refuses this webhook, so Etch does not guard by it");
                    refused_guards.insert(guard);
                }
            }
            for (webhook, why) in named {
                let Some(schema) = schema_of(&webhook).map(str::to_owned) else { continue };
                let is_there = there.as_ref().is_some_and(|there| has(there, &webhook));
                let suspects = BY_AUTHOR.into_iter().filter(|field| !names_fields || why.starts_with(field));
                let of_webhook = suspects.filter(|_| is_there).map(|field| (webhook.clone(), field));
                let before = kept.len();
                kept.extend(of_webhook);
                if kept.len() == before {
                    declared.retain(|(name, _)| *name != schema);
                }
                refused.insert(schema, why);
            }
        };
        let lacking = now.iter().flat_map(|now| without_authority(now));
        uninjected.extend(lacking.filter_map(schema_of).map(str::to_owned));
    }
    Ok(Unserved::of_some(refused, altered, uninjected))
}

/// Takes out what other clients have added to webhooks: a condition there keeps the API server from asking,
/// and an apply leaves it. Returns the configuration as it is then, and the schemas whose webhooks differ
/// even so, as they do where an admission webhook changes them, with the first field of each.
async fn without_additions(
    cluster: &Cluster,
    which: WebhookConfiguration,
    body: &Value,
) -> Result<(Option<Json>, BTreeMap<String, String>), CallError> {
    let there = match cluster.webhook_configuration(which).await? {
        Some(there) if !is_applied(body, &there) => there,
        there => return Ok((there, BTreeMap::new())),
    };
    warn!(resource = which.resource(), "another client has changed the webhooks: replacing them");
    let version = there["metadata"]["resourceVersion"].as_str().unwrap_or_default();
    let now = cluster.replace_webhooks(which, version, with_injected(body, &there)).await?;
    let altered = altered(body, &now).into_iter().filter_map(|(webhook, field)| match schema_of(&webhook) {
        Some(schema) => Some((schema.to_owned(), field)),
        None => {
            warn!(
                field,
                guard = webhook,
                "another client changes this webhook, which is not as Etch needs it"
            );
            None
        }
    });
    let altered = altered.collect();
    Ok((Some(now), altered))
}

/// Which webhooks are refused one by one, where a refusal names none of them, as one by an admission policy
/// does. None of them where a configuration without webhooks is refused as well.
async fn refused_alone(
    cluster: &Cluster,
    which: WebhookConfiguration,
    body: &Value,
    error: &CallError,
) -> Result<BTreeMap<String, String>, CallError> {
    let is_about_content = |error: &CallError| matches!(error.code(), Some(400 | 422));
    let mut refused = BTreeMap::new();
    if !is_about_content(error) {
        return Ok(refused);
    }
    let mut some = body.clone();
    some["webhooks"] = json!([]);
    cluster.try_webhook_configuration(which, some.clone()).await?;
    for webhook in body["webhooks"].as_array().into_iter().flatten() {
        some["webhooks"] = json!([webhook]);
        match cluster.try_webhook_configuration(which, some.clone()).await {
            Ok(()) => {}
            Err(error) if is_about_content(&error) => {
                let name = webhook["name"].as_str().unwrap_or_default();
                refused.insert(name.to_owned(), unnamed(&error));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(refused)
}
