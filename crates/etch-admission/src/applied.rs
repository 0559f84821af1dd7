//! What a cluster holds of the webhook configurations: whether it is what `webhooks` asks for, what others
//! have added, and what is missing for API servers to ask.

use std::collections::BTreeMap;

use serde_json::Value;

use super::webhooks::{CA_BUNDLE, CONFIGURATION, GUARDS, INJECTED};

/// Whether a configuration has all that a body asks for, and its webhooks are those of the body and no
/// others. Labels and annotations may be added.
pub fn is_applied(body: &Value, configuration: &Value) -> bool {
    let has = |field: &str| covers(&configuration[field], &body[field]);
    let names = |of| webhooks(of).map(|webhook| &webhook["name"]);
    ["apiVersion", "kind", "metadata"].into_iter().all(has)
        && names(configuration).eq(names(body))
        && altered(body, configuration).is_empty()
}

/// The webhooks of a configuration that are not as a body has them, by name: the first field that differs.
///
/// A condition or a selector that the body lacks would keep API servers from asking, so it counts. Injectors
/// add a CA bundle, and a server may know fields that Etch does not.
pub fn altered(body: &Value, configuration: &Value) -> BTreeMap<String, String> {
    let field = |wanted: &Value, actual: &Value| -> Option<String> {
        let actual = without_injected(wanted, actual);
        let mut fields = wanted.as_object()?.iter();
        let differs = fields.find(|(name, wanted)| !is_same(&actual[name.as_str()], wanted));
        differs.map(|(name, _)| name.clone())
    };
    let named = webhooks(body).filter_map(|wanted| {
        let actual = webhooks(configuration).find(|actual| actual["name"] == wanted["name"])?;
        Some((wanted["name"].as_str()?.to_owned(), field(wanted, actual)?))
    });
    named.collect()
}

/// The webhooks of a body, with the CA bundles that injectors have put into a configuration.
pub fn with_injected(body: &Value, configuration: &Value) -> Value {
    let with = |wanted: &Value| {
        let actual = webhooks(configuration).find(|actual| actual["name"] == wanted["name"]);
        let bundle =
            actual.map(|actual| &actual["clientConfig"][CA_BUNDLE]).filter(|bundle| !bundle.is_null());
        let mut webhook = wanted.clone();
        if let Some(bundle) = bundle.filter(|_| wanted["clientConfig"][CA_BUNDLE].is_null()) {
            webhook["clientConfig"][CA_BUNDLE] = bundle.clone();
        }
        webhook
    };
    webhooks(body).map(with).collect()
}

/// The webhooks of a configuration that lack the CA bundle which API servers need to call them, by name. At a
/// URL without an injector, the certificate may be one that every system trusts; none has a Service's name.
pub fn without_authority(configuration: &Value) -> impl Iterator<Item = &str> {
    let is_injected = INJECTED.iter().any(|by| configuration["metadata"]["annotations"][by].is_string());
    let lacks = move |webhook: &&Value| {
        let client = &webhook["clientConfig"];
        let is_needed = is_injected || client["service"].is_object();
        is_needed && client[CA_BUNDLE].as_str().is_none_or(str::is_empty)
    };
    webhooks(configuration).filter(lacks).filter_map(|webhook| webhook["name"].as_str())
}

/// Why API servers do not ask by one of [`GUARDS`], or cannot, as far as the ValidatingWebhookConfiguration
/// shows it; `None` if they do.
pub fn unguarded(configuration: Option<&Value>) -> Option<String> {
    let there = |name: &str| webhooks(configuration?).find(|webhook| webhook["name"] == name);
    if let Some(missing) = GUARDS.into_iter().find(|name| there(name).is_none()) {
        return Some(format!(
            "the ValidatingWebhookConfiguration {CONFIGURATION} lacks the webhook {missing}: install \
             config/admission, or see in Etch's log why its leader has not added it"
        ));
    }
    let lacking = without_authority(configuration?).find(|name| GUARDS.contains(name))?;
    Some(format!(
        "the webhook {lacking} has no caBundle, so no API server can call it: set --admission-inject, or add \
         ca.crt to the certificate"
    ))
}

pub(super) fn webhooks(configuration: &Value) -> impl Iterator<Item = &Value> {
    configuration["webhooks"].as_array().into_iter().flatten()
}

/// A webhook without the CA bundle that others have put in.
fn without_injected(wanted: &Value, actual: &Value) -> Value {
    let mut actual = actual.clone();
    if let (true, Some(config)) =
        (wanted["clientConfig"][CA_BUNDLE].is_null(), actual["clientConfig"].as_object_mut())
    {
        config.remove(CA_BUNDLE);
    }
    actual
}

/// Whether a value has all that is wanted.
fn covers(actual: &Value, wanted: &Value) -> bool {
    match (actual, wanted) {
        (Value::Object(actual), Value::Object(wanted)) => {
            wanted.iter().all(|(name, wanted)| covers(actual.get(name).unwrap_or(&Value::Null), wanted))
        }
        (actual, wanted) => is_same(actual, wanted),
    }
}

/// Whether a value is what is wanted, and no more.
fn is_same(actual: &Value, wanted: &Value) -> bool {
    match (actual, wanted) {
        (Value::Object(actual), Value::Object(wanted)) => {
            let mut names = actual.keys().chain(wanted.keys());
            names.all(|name| {
                is_same(actual.get(name).unwrap_or(&Value::Null), wanted.get(name).unwrap_or(&Value::Null))
            })
        }
        (Value::Array(actual), Value::Array(wanted)) => {
            actual.len() == wanted.len()
                && actual.iter().zip(wanted).all(|(actual, wanted)| is_same(actual, wanted))
        }
        // The API server leaves out lists that are empty, and fills in selectors that are.
        (Value::Null, Value::Array(other)) | (Value::Array(other), Value::Null) => other.is_empty(),
        (Value::Null, Value::Object(other)) | (Value::Object(other), Value::Null) => other.is_empty(),
        (actual, wanted) => actual == wanted,
    }
}
