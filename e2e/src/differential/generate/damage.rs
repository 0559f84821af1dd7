//! Damage to finished schemas: what people and tools get wrong, and what Go decodes in its own way.

use serde_json::{Map, Value, json};

use super::{Generator, schemas::keywords, words};

impl Generator<'_> {
    /// Changes one place of a schema.
    pub(super) fn damage(&mut self, schema: &mut Value) {
        let mut node = schema;
        // Each step borrows the parent away, so where to stop is decided before going down.
        while self.random.chance(70) {
            let below = children(node);
            if below.is_empty() {
                break;
            }
            let pointer = &below[self.random.below(below.len())];
            match node.pointer_mut(pointer) {
                Some(child) => node = child,
                None => return,
            }
        }
        self.damage_node(node);
    }

    fn damage_node(&mut self, node: &mut Value) {
        let Value::Object(schema) = node else { return };
        match self.random.below(12) {
            0 => drop(schema.remove("type")),
            1 => {
                let kind =
                    self.random.pick(&["object", "array", "string", "integer", "", "null", "any", "Object"]);
                schema.insert("type".to_owned(), kind.into());
            }
            2 if !schema.is_empty() => {
                let names: Vec<_> = schema.keys().cloned().collect();
                schema.remove(&names[self.random.below(names.len())]);
            }
            3 if !schema.is_empty() => {
                let names: Vec<_> = schema.keys().cloned().collect();
                let name = names[self.random.below(names.len())].clone();
                let value = if self.random.chance(40) { Value::Null } else { self.junk(1) };
                schema.insert(name, value);
            }
            4 => self.unsupported(schema),
            5 => {
                let copy = Value::Object(schema.clone());
                let keyword = self.random.pick(&["allOf", "anyOf", "oneOf"]);
                schema.insert(keyword.to_owned(), json!([copy]));
            }
            6 => drop(schema.insert("items".to_owned(), self.misplaced_items())),
            7 => {
                let value = self.junk(1);
                schema.insert("default".to_owned(), value);
            }
            8 => {
                let pattern = self.random.pick(words::BAD_PATTERNS);
                schema.insert("pattern".to_owned(), pattern.into());
            }
            9 => {
                let mut metadata =
                    keywords(json!({"type": self.random.pick(&["object", "object", "string"])}));
                self.generic_keywords(&mut metadata, 9);
                let properties = schema.entry("properties").or_insert_with(|| json!({}));
                if let Value::Object(properties) = properties {
                    let name = self.random.pick(&["metadata", "kind", "apiVersion"]);
                    properties.insert(name.to_owned(), Value::Object(metadata));
                }
            }
            _ => self.extension(schema),
        }
    }

    fn unsupported(&mut self, schema: &mut Map<String, Value>) {
        let choices = [
            ("$ref", json!("#/definitions/a")),
            ("$ref", json!("")),
            ("id", json!("a")),
            ("$schema", json!("http://json-schema.org/draft-04/schema#")),
            ("schema", json!("a")),
            ("patternProperties", json!({"^a": {"type": "string"}})),
            ("patternProperties", json!({})),
            ("dependencies", json!({"a": ["b"]})),
            ("dependencies", json!({"a": {"type": "object"}})),
            ("additionalItems", json!(false)),
            ("additionalItems", json!({"type": "string"})),
            ("definitions", json!({"a": {}})),
            ("definitions", json!({})),
            ("const", json!(1)),
            ("x-kubernetes-group-version-kind", json!([])),
            ("readOnly", json!(true)),
            ("externalDocs", json!({"url": 1})),
            ("Type", json!("string")),
        ];
        let (keyword, value) = &choices[self.random.below(choices.len())];
        schema.insert((*keyword).to_owned(), value.clone());
    }

    fn misplaced_items(&mut self) -> Value {
        match self.random.below(6) {
            0 => json!([]),
            1 => json!([{"type": "string"}]),
            2 => json!(true),
            3 => json!("a"),
            4 => json!({}),
            _ => json!({"type": "string"}),
        }
    }

    fn extension(&mut self, schema: &mut Map<String, Value>) {
        let choices = [
            ("x-kubernetes-preserve-unknown-fields", json!(true)),
            ("x-kubernetes-preserve-unknown-fields", json!(false)),
            ("x-kubernetes-embedded-resource", json!(true)),
            ("x-kubernetes-int-or-string", json!(true)),
            ("x-kubernetes-int-or-string", json!(true)),
            ("x-kubernetes-list-type", json!("set")),
            ("x-kubernetes-list-type", json!("bogus")),
            ("x-kubernetes-list-type", json!("map")),
            ("x-kubernetes-list-map-keys", json!(["a", "name"])),
            ("x-kubernetes-list-map-keys", json!([])),
            ("x-kubernetes-map-type", json!("bogus")),
            ("x-kubernetes-validations", json!([{"rule": "true"}])),
            ("x-kubernetes-validations", json!([])),
            ("x-kubernetes-validations", json!([{}])),
            ("nullable", json!(true)),
            ("additionalProperties", json!(true)),
            ("additionalProperties", json!(false)),
            ("additionalProperties", json!({"type": "string", "default": "a"})),
            ("enum", json!([])),
            ("enum", json!([null])),
            ("required", json!([])),
            ("required", json!(["metadata"])),
            ("multipleOf", json!(0)),
            ("multipleOf", json!(-1)),
            ("minLength", json!(-1)),
            ("maxItems", json!(9007199254740993_i64)),
            ("maximum", json!(1e300)),
            ("minimum", json!("1")),
            ("maxLength", json!(1.5)),
            ("exclusiveMinimum", json!(5)),
            ("properties", json!({})),
            ("allOf", json!([])),
            ("anyOf", json!([{}])),
            ("anyOf", json!([null])),
            ("not", json!({})),
            ("uniqueItems", json!(true)),
            ("format", json!("int32")),
        ];
        let (keyword, value) = &choices[self.random.below(choices.len())];
        schema.insert((*keyword).to_owned(), value.clone());
    }
}

/// JSON pointers to the schemas right below a schema.
fn children(schema: &Value) -> Vec<String> {
    let mut pointers = Vec::new();
    for keyword in ["items", "additionalProperties", "not"] {
        if schema[keyword].is_object() {
            pointers.push(format!("/{keyword}"));
        }
    }
    for (name, _) in schema["properties"].as_object().into_iter().flatten() {
        pointers.push(format!("/properties/{}", name.replace('~', "~0").replace('/', "~1")));
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for index in 0..schema[keyword].as_array().map_or(0, Vec::len) {
            pointers.push(format!("/{keyword}/{index}"));
        }
    }
    pointers
}
