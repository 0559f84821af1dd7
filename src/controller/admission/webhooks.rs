//! The webhook configurations as they are in the cluster: read, and applied where they differ.
//! It must not decide what is served.

use std::collections::BTreeMap;

use serde_json::Value;
use tracing::info;

use super::status::Unserved;
use crate::cluster::{CallError, Cluster, WebhookConfiguration};
use crate::domain::admission::{Declaration, Endpoint, GUARD, configurations, is_applied, schema_of};
use crate::domain::json::Json;

/// Applies the webhooks of these schemas. Those that the API server does not take are left out, and come back with the fields
/// that it names: one schema must not keep the others from being asked.
///
/// `guard` says whether the API server is to ask about upgrades of CRDs; where that is not known, it stays as it is.
pub(super) async fn write(
    cluster: &Cluster,
    mut declared: Vec<(String, Declaration)>,
    guard: Option<bool>,
    endpoint: &Endpoint,
    authority: Option<&[u8]>,
) -> Result<Unserved, CallError> {
    let mut refused = BTreeMap::new();
    for (index, which) in WebhookConfiguration::BOTH.into_iter().enumerate() {
        let there = cluster.webhook_configuration(which).await?;
        loop {
            let schemas = declared.iter().map(|(name, declared)| (name.as_str(), declared));
            let guard = guard.unwrap_or_else(|| there.as_ref().is_some_and(has_guard));
            let body = &configurations(schemas, guard, endpoint, authority)[index];
            let is_wanted = match &there {
                Some(there) => !is_applied(body, there),
                // Nothing is made for nothing.
                None => body["webhooks"].as_array().is_some_and(|webhooks| !webhooks.is_empty()),
            };
            if !is_wanted {
                break;
            }
            let Err(error) = cluster.apply_webhook_configuration(which, body.clone()).await else {
                info!(resource = which.resource(), "webhooks applied");
                break;
            };
            let named = fields(&error, body);
            if named.is_empty() {
                return Err(error);
            }
            declared.retain(|(name, _)| !named.contains_key(name));
            refused.extend(named);
        }
    }
    Ok(Unserved::refused(refused))
}

fn has_guard(configuration: &Json) -> bool {
    let webhooks = configuration["webhooks"].as_array().into_iter().flatten();
    webhooks.into_iter().any(|webhook| webhook["name"] == GUARD)
}

/// What the API server finds invalid in webhooks, by the names of their schemas: the field that it names first for each.
fn fields(error: &CallError, body: &Value) -> BTreeMap<String, String> {
    let CallError::Refused(refusal) = error else { return BTreeMap::new() };
    if refusal.code != 422 {
        return BTreeMap::new();
    }
    let mut named = BTreeMap::new();
    for field in &refusal.fields {
        let Some((index, rest)) = field.strip_prefix("webhooks[").and_then(|field| field.split_once(']'))
        else {
            continue;
        };
        let webhook = index.parse::<usize>().ok().and_then(|index| body["webhooks"].get(index));
        let schema = webhook.and_then(|webhook| schema_of(webhook["name"].as_str()?));
        if let Some(schema) = schema {
            let field = rest.trim_start_matches('.').to_owned();
            named.entry(schema.to_owned()).or_insert(field);
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::refusal::Refusal;

    #[test]
    fn what_is_refused_is_told_by_its_schema() {
        let status = json!({
            "kind": "Status", "code": 422, "reason": "Invalid", "message": "no",
            "details": { "causes": [
                { "field": "webhooks[1].matchConditions[0].expression" },
                { "field": "webhooks[1].matchConditions[1].expression" },
                { "field": "webhooks[9].name" },
                { "field": "metadata.name" },
            ] },
        });
        let body =
            json!({ "webhooks": [{ "name": "a.etch-operator.io" }, { "name": "b.etch-operator.io" }] });
        let body_of_refusal = status.to_string();
        let refusal =
            |code: u16| CallError::Refused(Box::new(Refusal::read(code, None, body_of_refusal.as_bytes())));
        let expected = [("b".to_owned(), "matchConditions[0].expression".to_owned())];
        assert_eq!(fields(&refusal(422), &body), expected.into());
        assert_eq!(fields(&refusal(409), &body), BTreeMap::new());
    }
}
