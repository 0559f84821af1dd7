//! The schemas of the workloads, and what the API server makes of a value by one of them.
//! It must not use Etch's own code, with which it is compared.

use serde_json::{Value, json};

/// Which defaults there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Defaults {
    /// That of `size`; none: no default of any field but `late`.
    pub(crate) size: Option<i64>,
    /// Whether `late` has one.
    pub(crate) late: bool,
    /// Whether the schema has the field `legacy`.
    pub(crate) legacy: bool,
}

/// A schema with these defaults.
pub(crate) fn schema(defaults: Defaults) -> Value {
    let text = json!({ "type": "string" });
    let mut all = json!({
        "note": text, "old": text, "empty": text, "zero": { "type": "integer" }, "off": { "type": "boolean" },
        "list": { "type": "array", "items": text },
        "map": { "type": "object", "additionalProperties": text },
        "nothing": { "type": "string", "nullable": true },
        "maybe": { "type": "integer", "nullable": true },
        "size": { "type": "integer" },
        "late": { "type": "integer" },
        "nested": { "type": "object", "properties": { "depth": { "type": "integer" } } },
    });
    if let Some(size) = defaults.size {
        all["size"]["default"] = json!(size);
        // Users have set all of these, to nothing or to null.
        all["empty"]["default"] = json!("full");
        all["zero"]["default"] = json!(1);
        all["off"]["default"] = json!(true);
        all["list"]["default"] = json!(["item"]);
        all["map"]["default"] = json!({ "key": "value" });
        all["maybe"]["default"] = json!(7);
        all["nested"]["default"] = json!({});
        all["nested"]["properties"]["depth"]["default"] = json!(2);
    }
    if defaults.late {
        all["late"]["default"] = json!(4);
    }
    if defaults.legacy {
        all["legacy"] = text;
    }
    let status = json!({ "phase": { "type": "string" }, "count": { "type": "integer" } });
    json!({ "type": "object", "properties": {
        "spec": { "type": "object", "properties": all },
        "status": { "type": "object", "properties": status },
    } })
}

/// A value with all defaults of its schema.
pub(crate) fn filled(schema: &Value, mut value: Value) -> Value {
    let properties = schema["properties"].as_object();
    for (name, property) in properties.into_iter().flatten() {
        let Some(fields) = value.as_object_mut() else { break };
        let is_unwanted = |value: &Value| value.is_null() && property["nullable"] != true;
        if let Some(default) = property.get("default")
            && fields.get(name).is_none_or(is_unwanted)
        {
            fields.insert(name.clone(), default.clone());
        }
        if let Some(inner) = fields.get_mut(name) {
            *inner = filled(property, inner.take());
        }
    }
    value
}

/// Whether an object in etcd lacks nothing of what the storage version of a CRD in etcd would fill in.
pub(crate) fn is_filled(crd: &Value, raw: &Value) -> bool {
    let versions = crd["spec"]["versions"].as_array();
    let Some(storage) = versions.into_iter().flatten().find(|version| version["storage"] == true) else {
        return false;
    };
    // CRDs are stored as v1beta1, which keeps a schema that all versions have outside of them.
    let own = &storage["schema"]["openAPIV3Schema"];
    let schema = if own.is_null() { &crd["spec"]["validation"]["openAPIV3Schema"] } else { own };
    let is_at_storage = raw["apiVersion"].as_str().unwrap_or_default().rsplit('/').next();
    is_at_storage == storage["name"].as_str() && !schema.is_null() && filled(schema, raw.clone()) == *raw
}

#[test]
fn a_schema_fills_what_is_absent_and_nothing_else() {
    let all = Defaults { size: Some(1), late: false, legacy: false };
    let schema = schema(all);
    let user =
        json!({ "spec": { "empty": "", "zero": 0, "off": false, "list": [], "map": {}, "maybe": null } });
    let mut expected = user.clone();
    expected["spec"]["size"] = json!(1);
    expected["spec"]["nested"] = json!({ "depth": 2 });
    assert_eq!(filled(&schema, user), expected);
    assert_eq!(filled(&schema, expected.clone()), expected);
    assert_eq!(filled(&schema, json!({ "spec": { "size": null } }))["spec"]["size"], 1);
}
