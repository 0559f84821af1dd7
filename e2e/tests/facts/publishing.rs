//! What the server publishes of a CRD's defaults, in OpenAPI v3 and v2 (C10 to C12).
//!
//! How Etch reads the documents is not looked at here.

use anyhow::{Context, Result, ensure};
use e2e::cluster::{GUARD, eventually};
use serde_json::{Value, json};

use crate::{
    cluster::Cluster,
    rows,
    tabs::{Tabs, defaulted, text, v1, versions},
};

rows! {
    c10: "OpenAPI v3 has the defaults of a structural schema, save those of apiVersion, kind and metadata",
    c11: "OpenAPI v2 has no default of any type",
    c12: "OpenAPI v2 has no types and fields of what may be null or keeps unknown fields, and no allOf, \
        anyOf, oneOf and not",
}

/// Defaults at each sort of place. `last` is in it so that a test knows when this schema is the one that is
/// published.
fn properties() -> Value {
    let with = |mut schema: Value, properties: Value| {
        schema["type"] = json!("object");
        schema["properties"] = properties;
        schema
    };
    json!({
        "plain": defaulted("a"),
        "object": with(json!({"default": {}}), json!({"inner": defaulted("b")})),
        "list": {
            "type": "array", "default": [{}], "items": with(json!({}), json!({"inner": defaulted("c")})),
        },
        "items": {"type": "array", "items": {"type": "string", "default": "d"}},
        "map": {"type": "object", "additionalProperties": with(json!({}), json!({"inner": defaulted("e")}))},
        "port": {"x-kubernetes-int-or-string": true, "default": "http"},
        "nothing": with(json!({"nullable": true, "default": {}}), json!({"inner": defaulted("f")})),
        "open": with(json!({"x-kubernetes-preserve-unknown-fields": true}), json!({"inner": defaulted("g")})),
        "pod": with(
            json!({"x-kubernetes-embedded-resource": true}),
            json!({
                "kind": defaulted("Pod"), "apiVersion": text(), "metadata": {"type": "object"},
                "inner": defaulted("h"),
            }),
        ),
        "last": defaulted("z"),
    })
}

/// The definition of the type in a document, once it is there and is so.
async fn published(tabs: &Tabs<'_>, path: &str, at: &str, is_so: fn(&Value) -> bool) -> Result<Value> {
    let kind = json!({"group": tabs.group, "version": "v1", "kind": "CronTab"});
    let is_meant = |schema: &&Value| {
        let kinds = schema["x-kubernetes-group-version-kind"].as_array();
        kinds.is_some_and(|kinds| kinds.contains(&kind)) && is_so(schema)
    };
    eventually(GUARD, &format!("{path} has the type as it is"), async || {
        let document = tabs.cluster.get(path).await?.ok()?;
        let definitions = document.pointer(at).and_then(Value::as_object).context("definitions")?;
        Ok(definitions.values().find(is_meant).cloned())
    })
    .await
}

async fn v3(tabs: &Tabs<'_>, is_so: fn(&Value) -> bool) -> Result<Value> {
    let path = format!("/openapi/v3/apis/{}/v1", tabs.group);
    published(tabs, &path, "/components/schemas", is_so).await
}

fn has_last(schema: &Value) -> bool {
    schema.pointer("/properties/spec/properties/last/default").is_some()
}

/// Every default that is below the spec, by its place.
fn defaults(schema: &Value, at: String, found: &mut Vec<String>) {
    if let Some(default) = schema.get("default") {
        found.push(format!("{at}={default}"));
    }
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        defaults(schema, format!("{at}.{name}"), found);
    }
    for (keyword, step) in [("items", "[]"), ("additionalProperties", "{}")] {
        if let Some(schema) = schema.get(keyword).filter(|schema| schema.is_object()) {
            defaults(schema, format!("{at}{step}"), found);
        }
    }
}

fn of_spec(schema: &Value) -> Vec<String> {
    let mut found = Vec::new();
    defaults(&schema["properties"]["spec"], String::new(), &mut found);
    found.sort();
    found
}

async fn c10(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "c10");
    tabs.define(v1(properties())).await?;
    let found = of_spec(&v3(&tabs, has_last).await?);
    let mut expected = of_spec(&json!({"properties": {"spec": {"properties": properties()}}}));
    let all = expected.len();
    expected.retain(|default| !default.starts_with(".pod.kind="));
    ensure!(all == expected.len() + 1 && found == expected, "{found:#?}\n{expected:#?}");

    // Kept from before schemas had to be structural: of such a schema nothing is published.
    let loosen = |crd: &mut Value| {
        crd["spec"]["validation"]["openAPIV3Schema"]["properties"]["loose"] = json!({"default": {}});
        Ok(())
    };
    cluster.etcd().change_crd(&tabs.crd(), loosen).await?;
    v3(&tabs, |schema| schema.get("properties").is_none()).await.map(drop)
}

async fn c11(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "c11");
    tabs.define(v1(properties())).await?;
    let is_there = |schema: &Value| schema.pointer("/properties/spec/properties/last").is_some();
    let found = of_spec(&published(&tabs, "/openapi/v2", "/definitions", is_there).await?);
    ensure!(found.is_empty(), "{found:#?}");
    let document = cluster.get("/openapi/v2").await?.ok()?;
    for (name, schema) in document["definitions"].as_object().context("definitions")? {
        let mut found = Vec::new();
        defaults(schema, name.clone(), &mut found);
        ensure!(found.is_empty(), "{found:#?}");
    }
    Ok(())
}

/// One place for each sort of loss, and one beside it that loses nothing.
async fn c12(cluster: &Cluster) -> Result<()> {
    let tabs = Tabs::new(cluster, "c12");
    let open = "x-kubernetes-preserve-unknown-fields";
    let either = json!([{"type": "integer"}, {"type": "string"}]);
    tabs.define(v1(json!({
        "may": {"type": "object", "nullable": true, "properties": {"inner": text()}},
        "list": {"type": "array", "nullable": true, "items": text()},
        "map": {"type": "object", "nullable": true, "additionalProperties": text()},
        "open": {"type": "object", open: true, "properties": {"inner": text()}},
        "port": {"x-kubernetes-int-or-string": true, "anyOf": either},
        "clauses": {
            "type": "string", "allOf": [{"minLength": 1}], "oneOf": [{"minLength": 1}], "not": {
                "maxLength": 0,
            },
        },
        "keys": {"type": "object", "required": ["may", "must"], "properties": {
            "may": {"type": "string", "nullable": true}, "must": text(),
        }},
        "pod": {"type": "object", "x-kubernetes-embedded-resource": true, open: true},
        "last": text(),
    })))
    .await?;
    let is_there = |schema: &Value| schema.pointer("/properties/spec/properties/last").is_some();
    let found = published(&tabs, "/openapi/v2", "/definitions", is_there).await?;
    let expected = json!({
        "may": {}, "list": {}, "map": {"additionalProperties": text()}, "open": {open: true},
        "port": {"x-kubernetes-int-or-string": true}, "clauses": text(),
        "keys": {"type": "object", "required": ["must"], "properties": {"may": {}, "must": text()}},
        "pod": {open: true, "x-kubernetes-embedded-resource": true}, "last": text(),
    });
    ensure!(found["properties"]["spec"]["properties"] == expected, "{found:#}");
    // OpenAPI v3 has the two types even where the schema does not.
    tabs.define(v1(json!({"either": {"x-kubernetes-int-or-string": true}, "last": text()}))).await?;
    let is_there = |schema: &Value| schema.pointer("/properties/spec/properties/either").is_some();
    let found = v3(&tabs, is_there).await?;
    let either = &found["properties"]["spec"]["properties"]["either"];
    ensure!(either["anyOf"] == json!([{"type": "integer"}, {"type": "string"}]), "{either}");
    // Of an object that keeps unknown fields, OpenAPI v2 has nothing.
    let whole = json!({"type": "object", open: true, "properties": {"whole": text()}});
    tabs.define(versions([("v1", whole)])).await?;
    let is_there = |schema: &Value| schema.pointer("/properties/whole").is_some();
    v3(&tabs, is_there).await?;
    let is_empty = |schema: &Value| schema.get("properties").is_none();
    published(&tabs, "/openapi/v2", "/definitions", is_empty).await.map(drop)
}
