//! What is sent of webhooks that the API server refuses: which it names, and what of them stays as it is.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::applied::with_injected;
use etch_core::call_error::CallError;
use kube_structural_schema::json::Json;

/// The fields of a webhook that an author decides about, and that the API server alone, or its admission, can
/// check.
pub const BY_AUTHOR: [&str; 3] = ["matchConditions", "namespaceSelector", "rules"];

/// Whether a configuration has a webhook of this name.
pub fn has(configuration: &Value, name: &str) -> bool {
    webhook(configuration, name).is_some()
}

fn webhook<'c>(configuration: &'c Value, name: &str) -> Option<&'c Value> {
    configuration["webhooks"].as_array()?.iter().find(|webhook| webhook["name"] == name)
}

/// Gives a field of a webhook the value that it has in the cluster.
pub fn keep(body: &mut Value, there: Option<&Json>, name: &str, field: &str) {
    let known = there.and_then(|there| webhook(there, name)).and_then(|webhook| webhook.get(field));
    let webhooks = body["webhooks"].as_array_mut().into_iter().flatten();
    for webhook in webhooks.filter_map(Value::as_object_mut).filter(|webhook| webhook["name"] == name) {
        match known {
            Some(known) => webhook.insert(field.to_owned(), known.clone()),
            None => webhook.remove(field),
        };
    }
}

/// The webhooks of a body that a configuration has already, with its CA bundles.
pub fn those_there(body: &Value, there: Option<&Json>) -> Value {
    let Some(there) = there else { return json!([]) };
    let mut webhooks = with_injected(body, there);
    if let Some(webhooks) = webhooks.as_array_mut() {
        webhooks.retain(|webhook| has(there, webhook["name"].as_str().unwrap_or_default()));
    }
    webhooks
}

/// Why the API server refuses webhooks, by their names: the field that it names first for each is invalid.
pub fn fields(error: &CallError, body: &Value) -> BTreeMap<String, String> {
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
        if let Some(webhook) = webhook.and_then(|webhook| webhook["name"].as_str()) {
            let field = rest.trim_start_matches('.');
            named.entry(webhook.to_owned()).or_insert_with(|| format!("{field} is invalid"));
        }
    }
    named
}

/// Why a webhook is refused by an answer that names no field of it: an admission policy or webhook may refuse
/// it.
pub fn unnamed(error: &CallError) -> String {
    let by = match error {
        CallError::Refused(refusal) => refusal.refused_by(),
        _ => None,
    };
    by.map_or_else(|| "a field that is not named is invalid".to_owned(), |by| format!("{by} refuses it"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::GUARD;
    use etch_core::refusal::Refusal;

    #[test]
    fn what_is_refused_is_named_by_its_webhook() {
        let status = json!({
            "kind": "Status", "code": 422, "reason": "Invalid", "message": "no",
            "details": { "causes": [
                { "field": "webhooks[1].matchConditions[0].expression" },
                { "field": "webhooks[1].matchConditions[1].expression" },
                { "field": "webhooks[2].rules" },
                { "field": "webhooks[9].name" },
                { "field": "metadata.name" },
            ] },
        });
        let names = ["a.etch-operator.io", "b.etch-operator.io", GUARD];
        let body = json!({ "webhooks": names.map(|name| json!({ "name": name })) });
        let body_of_refusal = status.to_string();
        let refusal =
            |code: u16| CallError::Refused(Box::new(Refusal::read(code, None, body_of_refusal.as_bytes())));
        let expected = [(names[1], "matchConditions[0].expression is invalid"), (GUARD, "rules is invalid")];
        let expected = expected.map(|(name, field)| (name.to_owned(), field.to_owned()));
        assert_eq!(fields(&refusal(422), &body), expected.into());
        assert_eq!(fields(&refusal(409), &body), BTreeMap::new());
        let by_policy =
            json!({ "kind": "Status", "code": 422, "message": "validatingwebhookconfigurations \"etch\" is \
            forbidden: ValidatingAdmissionPolicy 'etch-webhook-guard' with binding 'b' denied request: no" })
            .to_string();
        let by_policy = CallError::Refused(Box::new(Refusal::read(422, None, by_policy.as_bytes())));
        assert_eq!(unnamed(&by_policy), "ValidatingAdmissionPolicy etch-webhook-guard refuses it");
        assert_eq!(unnamed(&refusal(422)), "a field that is not named is invalid");
    }
}
