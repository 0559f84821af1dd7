//! What a cluster holds, worked out only from raw bytes and schemas, by the shortest code that does it. It
//! must not use Etch: Etch's answers are compared with this model, and the model with the API server's reads.

use serde_json::{Map, Value};

/// The parts of an object that a schema describes.
const PARTS: [&str; 2] = ["spec", "status"];

/// One state of a CRD: its versions by name, which of them is the storage version, and their schemas.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    pub(crate) versions: Vec<(String, bool, Value)>,
}

/// What is so of one object, given its bytes and its CRD.
#[derive(Clone, Debug, Default)]
pub(crate) struct Truth {
    /// What a reader sees at the storage version: `spec` and `status`.
    pub(crate) view: Value,
    /// The topmost defaults that the bytes lack, in order.
    pub(crate) missing: Vec<String>,
    /// The topmost fields that only the bytes have, in order.
    pub(crate) hidden: Vec<String>,
    /// The topmost values of another type than the schema's.
    pub(crate) misfits: Vec<String>,
    pub(crate) ignored: bool,
    pub(crate) terminating: bool,
    /// Whether admission refuses every write of it.
    pub(crate) refused: bool,
}

impl Phase {
    /// The storage version's name.
    pub(crate) fn storage(&self) -> &str {
        self.versions.iter().find(|(_, storage, _)| *storage).map_or("", |(name, ..)| name)
    }

    /// The schema of a version.
    pub(crate) fn schema(&self, version: &str) -> Option<&Value> {
        self.versions.iter().find(|(name, ..)| name == version).map(|(.., schema)| schema)
    }

    /// Whether the storage version has defaults.
    pub(crate) fn has_defaults(&self) -> bool {
        self.schema(self.storage()).is_some_and(|schema| schema.to_string().contains("\"default\":"))
    }

    /// What is so of an object with these bytes.
    pub(crate) fn truth(&self, raw: &Value) -> Truth {
        let at = raw["apiVersion"].as_str().and_then(|text| text.rsplit('/').next()).unwrap_or_default();
        let storage = self.schema(self.storage()).unwrap_or(&Value::Null);
        let stored = self.schema(at).unwrap_or(storage);
        let mut view = parts(raw);
        let mut hidden = Vec::new();
        prune(stored, &mut view, "", &mut hidden);
        fill(stored, &mut view);
        if at != self.storage() {
            let mut dropped = Vec::new();
            prune(storage, &mut view, "", &mut dropped);
            // A value that only the other version's default gave was never there.
            let mut unknown = parts(raw);
            let mut lost = Vec::new();
            prune(storage, &mut unknown, "", &mut lost);
            hidden.extend(dropped.into_iter().filter(|path| lost.contains(path)));
        }
        hidden.sort();
        let mut filled = view.clone();
        fill(storage, &mut filled);
        let mut missing = Vec::new();
        lacking(storage, &filled, &parts(raw), "", &mut missing);
        missing.sort();
        let mut misfits = Vec::new();
        unfit(storage, &view, "", &mut misfits);
        let metadata = &raw["metadata"];
        Truth {
            view,
            missing,
            hidden,
            misfits,
            ignored: metadata["annotations"]["etch-operator.io/ignore"] == "true",
            terminating: metadata["deletionTimestamp"].is_string(),
            refused: metadata["labels"]["refuse"] == "true",
        }
    }
}

impl Truth {
    /// Whether etcd holds every default of the object.
    pub(crate) fn is_stored(&self) -> bool {
        self.missing.is_empty()
    }

    /// Whether it breaks the rule that some schemas have, with values that its bytes hold.
    pub(crate) fn is_broken(&self) -> bool {
        let spec = &self.view["spec"];
        let breaks = spec["min"].as_i64().zip(spec["max"].as_i64()).is_some_and(|(min, max)| min > max);
        breaks && !self.missing.iter().any(|path| path == ".spec.max")
    }

    /// Whether it is not to be written.
    pub(crate) fn is_left_alone(&self) -> bool {
        self.ignored || self.terminating
    }
}

/// `spec` and `status` of an object.
pub(crate) fn parts(object: &Value) -> Value {
    let parts = PARTS.iter().filter_map(|part| Some(((*part).to_owned(), object.get(part)?.clone())));
    Value::Object(parts.collect::<Map<_, _>>())
}

/// The managers of an object, each with its operation and subresource.
pub(crate) fn managers(raw: &Value) -> Vec<String> {
    let entries = raw["metadata"]["managedFields"].as_array().into_iter().flatten();
    let mut all: Vec<String> = entries
        .map(|entry| {
            let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
            format!("{} {} {}", text("manager"), text("operation"), text("subresource"))
        })
        .collect();
    all.sort();
    // Entries that become the same at one version are united.
    all.dedup();
    all
}

/// A schema with a default.
pub(crate) fn with(mut schema: Value, default: Option<&Value>) -> Value {
    if let Some(default) = default {
        schema["default"] = default.clone();
    }
    schema
}

/// The step to a member of an object, as Etch writes it.
fn member(schema: &Value, path: &str, name: &str) -> String {
    match schema["properties"].get(name) {
        None if schema["additionalProperties"].is_object() => format!("{path}[{name:?}]"),
        _ => format!("{path}.{name}"),
    }
}

/// The schema of a member; null if the schema does not know it.
fn below<'a>(schema: &'a Value, name: &str) -> &'a Value {
    schema["properties"].get(name).unwrap_or(&schema["additionalProperties"])
}

/// Takes out what a schema does not know.
pub(crate) fn prune(schema: &Value, value: &mut Value, path: &str, gone: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let known: Map<_, _> = std::mem::take(fields)
                .into_iter()
                .filter_map(|(name, mut value)| {
                    let (at, schema) = (member(schema, path, &name), below(schema, &name));
                    if !schema.is_object() {
                        gone.push(at);
                        return None;
                    }
                    prune(schema, &mut value, &at, gone);
                    Some((name, value))
                })
                .collect();
            *fields = known;
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                prune(&schema["items"], item, &format!("{path}[{index}]"), gone);
            }
        }
        _ => {}
    }
}

/// Fills in defaults.
pub(crate) fn fill(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                if let Some(default) = property.get("default")
                    && !fields.contains_key(name)
                {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in fields {
                fill(below(schema, name), value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill(&schema["items"], item)),
        _ => {}
    }
}

/// The topmost places of `whole` that `part` does not have.
pub(crate) fn lacking(schema: &Value, whole: &Value, part: &Value, path: &str, found: &mut Vec<String>) {
    match whole {
        Value::Object(fields) => {
            for (name, whole) in fields {
                let at = member(schema, path, name);
                match part.get(name) {
                    None => found.push(at),
                    Some(part) => lacking(below(schema, name), whole, part, &at, found),
                }
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                lacking(&schema["items"], item, &part[index], &format!("{path}[{index}]"), found);
            }
        }
        _ => {}
    }
}

/// The topmost places whose value has another type than the schema's.
fn unfit(schema: &Value, value: &Value, path: &str, found: &mut Vec<String>) {
    let fits = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        _ => true,
    };
    match value {
        _ if !fits => found.push(path.to_owned()),
        Value::Object(fields) => {
            for (name, value) in fields {
                unfit(below(schema, name), value, &member(schema, path, name), found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                unfit(&schema["items"], item, &format!("{path}[{index}]"), found);
            }
        }
        _ => {}
    }
}

/// How two views of one object differ: the topmost places.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Difference {
    pub(crate) appears: Vec<String>,
    pub(crate) changes: Vec<String>,
    pub(crate) goes: Vec<String>,
}

impl Difference {
    /// From one view to another, with the schemas that name the places of each.
    pub(crate) fn between(old: (&Value, &Value), new: (&Value, &Value)) -> Self {
        let mut difference = Self::default();
        difference.collect(old, new, "");
        difference.appears.sort();
        difference.changes.sort();
        difference.goes.sort();
        difference
    }

    fn collect(&mut self, (old_schema, old): (&Value, &Value), (schema, new): (&Value, &Value), path: &str) {
        match (old, new) {
            (Value::Object(before), Value::Object(after)) => {
                for (name, value) in before {
                    let at = member(old_schema, path, name);
                    match after.get(name) {
                        None => self.goes.push(at),
                        Some(other) => {
                            let (old, new) = (below(old_schema, name), below(schema, name));
                            self.collect((old, value), (new, other), &at);
                        }
                    }
                }
                let appears = after.keys().filter(|name| !before.contains_key(*name));
                self.appears.extend(appears.map(|name| member(schema, path, name)));
            }
            (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
                for (index, (old, new)) in before.iter().zip(after).enumerate() {
                    let at = format!("{path}[{index}]");
                    self.collect((&old_schema["items"], old), (&schema["items"], new), &at);
                }
            }
            _ if old != new => self.changes.push(path.to_owned()),
            _ => {}
        }
    }
}

/// Whether some manager of those that are meant, by name and `apiVersion`, names a place, or something above
/// or below it.
pub(crate) fn is_claimed(raw: &Value, path: &str, is_meant: impl Fn(&str, &str) -> bool) -> bool {
    let first = path.split(['.', '[']).filter(|part| !part.is_empty()).take(2);
    let pointer: String = first.map(|part| format!("/f:{part}")).collect();
    let entries = raw["metadata"]["managedFields"].as_array().into_iter().flatten();
    let text = |entry: &Value, name| entry[name].as_str().unwrap_or_default().to_owned();
    let mut meant = entries.filter(|entry| is_meant(&text(entry, "manager"), &text(entry, "apiVersion")));
    meant.any(|entry| entry["fieldsV1"].pointer(&pointer).is_some())
}

/// Whether a place has a value.
pub(crate) fn holds(value: &Value, path: &str) -> bool {
    let mut names = Vec::new();
    for part in path.split(['.', '[']).filter(|part| !part.is_empty()) {
        names.push(part.trim_end_matches(']').trim_matches('"'));
    }
    let found = names.iter().try_fold(value, |value, name| match value {
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        value => value.get(name),
    });
    found.is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn phase() -> Phase {
        let nested = |default: Value| {
            let mut nested =
                json!({ "type": "object", "properties": { "x": { "type": "integer", "default": 1 } } });
            if !default.is_null() {
                nested["default"] = default;
            }
            nested
        };
        let schema =
            |fields: Value| json!({ "properties": { "spec": { "type": "object", "properties": fields } } });
        let old =
            schema(json!({ "o": nested(json!({})), "l": { "type": "array", "items": nested(Value::Null) } }));
        let mut now = old.clone();
        now["properties"]["spec"]["properties"]["m"] =
            json!({ "type": "object", "additionalProperties": nested(Value::Null) });
        now["properties"]["spec"]["properties"]["s"] = json!({ "type": "string", "default": "s" });
        Phase { versions: vec![("v1alpha1".into(), false, old), ("v1".into(), true, now)] }
    }

    #[test]
    fn what_the_bytes_lack_is_found_at_its_topmost_place() {
        let raw = |version: &str, spec: Value| json!({ "apiVersion": format!("g/{version}"), "spec": spec });
        let truth = phase().truth(&raw("v1", json!({ "l": [{}, { "x": 2 }], "m": { "k": {} }, "old": 1 })));
        assert_eq!(truth.missing, [".spec.l[0].x", ".spec.m[\"k\"].x", ".spec.o", ".spec.s"]);
        assert_eq!(truth.hidden, [".spec.old"]);
        let truth = phase().truth(&raw("v1alpha1", json!({ "o": {} })));
        assert_eq!(truth.missing, [".spec.o.x", ".spec.s"]);
        // A reader does not see what only the storage version gives.
        assert_eq!(truth.view, json!({ "spec": { "o": { "x": 1 } } }));
        assert!(phase().truth(&raw("v1", json!({ "o": { "x": 0 }, "s": "t" }))).is_stored());
    }

    #[test]
    fn a_difference_is_told_by_its_topmost_places() {
        let phase = phase();
        let schema = phase.schema("v1").unwrap_or(&Value::Null);
        let (old, new) = (
            json!({ "spec": { "o": { "x": 1 }, "s": "s" } }),
            json!({ "spec": { "o": { "x": 2 }, "m": { "k": {} } } }),
        );
        let found = Difference::between((schema, &old), (schema, &new));
        assert_eq!(found.appears, [".spec.m"]);
        assert_eq!(found.changes, [".spec.o.x"]);
        assert_eq!(found.goes, [".spec.s"]);
        assert!(holds(&new, ".spec.m[\"k\"]") && !holds(&new, ".spec.m[\"k\"].x"));
    }
}
