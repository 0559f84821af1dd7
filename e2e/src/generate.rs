//! Objects made up from a schema, as many kinds of them as chance gives, most of them valid.
//! The API server judges them.

use fastrand::Rng;
use serde_json::{Map, Value, json};

/// Texts that satisfy many a pattern and format, the likeliest first.
const TEXTS: [&str; 14] = [
    "a",
    "example",
    "1",
    "1h",
    "10m",
    "example.com",
    "100Mi",
    "https://example.com",
    "v1",
    "10.0.0.0/16",
    "2026-01-02T03:04:05Z",
    "a/b",
    "*/5 * * * *",
    "arn:aws:iam::123456789012:role/a",
];

/// Makes an object's parts that a schema describes: all that is required, and of the rest a part.
///
/// `plenty` is the chance, in percent, that an optional part is there.
pub fn value(schema: &Value, rng: &mut Rng, plenty: u8) -> Value {
    if let Some(allowed) = schema["enum"].as_array().filter(|allowed| !allowed.is_empty()) {
        return allowed[rng.usize(..allowed.len())].clone();
    }
    match schema["type"].as_str() {
        Some("object") => object(schema, rng, plenty),
        Some("array") => array(schema, rng, plenty),
        Some("string") => Value::from(text(schema, rng)),
        Some("integer") => Value::from(number(schema, rng) as i64),
        Some("number") => json!(number(schema, rng)),
        Some("boolean") => Value::from(rng.bool()),
        _ if schema["x-kubernetes-int-or-string"] == true => json!(rng.i64(1..9)),
        _ => json!({}),
    }
}

fn object(schema: &Value, rng: &mut Rng, plenty: u8) -> Value {
    let mut fields = Map::new();
    if schema["x-kubernetes-embedded-resource"] == true {
        fields.insert("apiVersion".to_owned(), json!("v1"));
        fields.insert("kind".to_owned(), json!("ConfigMap"));
    }
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let left_out = !required.contains(&name.as_str()) && rng.u8(..100) >= plenty;
        if left_out || matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            continue;
        }
        fields.insert(name.clone(), value(property, rng, plenty / 2));
    }
    if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
        for index in 0..rng.usize(..3) {
            fields.insert(format!("key{index}"), value(values, rng, plenty / 2));
        }
    }
    Value::Object(fields)
}

fn array(schema: &Value, rng: &mut Rng, plenty: u8) -> Value {
    let least = schema["minItems"].as_u64().unwrap_or_default() as usize;
    let most = schema["maxItems"].as_u64().map_or(2, |most| (most as usize).min(2)).max(least);
    let unique = schema["x-kubernetes-list-type"] == "map" || schema["x-kubernetes-list-type"] == "set";
    let count = if unique { least.max(1).min(most.max(least)) } else { rng.usize(least..=most) };
    Value::Array((0..count).map(|_| value(&schema["items"], rng, plenty)).collect())
}

fn text(schema: &Value, rng: &mut Rng) -> String {
    let least = schema["minLength"].as_u64().unwrap_or_default() as usize;
    let most = schema["maxLength"].as_u64().unwrap_or(u64::MAX) as usize;
    let from = match schema["format"].as_str() {
        Some("date-time") => "2026-01-02T03:04:05Z",
        Some("uri") => "https://example.com",
        Some("cidr") => "10.0.0.0/16",
        _ if schema["pattern"].is_string() => TEXTS[rng.usize(..TEXTS.len())],
        _ => TEXTS[rng.usize(..3)],
    };
    let mut text = from.to_owned();
    while text.len() < least {
        text.push('a');
    }
    text.truncate(most);
    text
}

fn number(schema: &Value, rng: &mut Rng) -> f64 {
    let least = schema["minimum"].as_f64().unwrap_or(0.0);
    let most = schema["maximum"].as_f64().unwrap_or(least + 100.0);
    (least + rng.f64() * (most - least).min(100.0)).round().clamp(least, most)
}
