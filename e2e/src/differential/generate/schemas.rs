//! Schemas that are structural for the most part, with every keyword that the engine knows.
//! Contradictions between keywords are wanted.

use serde_json::{Map, Value, json};

use super::{Generator, words};

/// How deep schemas nest.
const DEPTH: usize = 6;

impl Generator<'_> {
    /// A schema for the root of a custom resource.
    pub(super) fn root(&mut self) -> Value {
        if self.temper.real
            && let Some(schema) = self.seeds.schema(&mut self.random)
        {
            return schema;
        }
        let mut schema = self.object_schema(0);
        if self.random.chance(10) {
            schema.insert("x-kubernetes-embedded-resource".to_owned(), Value::Bool(true));
        }
        if self.random.chance(30) {
            let properties = schema.entry("properties").or_insert_with(|| json!({}));
            if let Value::Object(properties) = properties {
                properties.insert("apiVersion".to_owned(), json!({"type": "string"}));
                properties.insert("kind".to_owned(), json!({"type": "string"}));
                let metadata = self.root_metadata();
                properties.insert("metadata".to_owned(), metadata);
            }
        }
        if self.random.chance(1) {
            return self.tall(schema);
        }
        Value::Object(schema)
    }

    fn root_metadata(&mut self) -> Value {
        match self.random.below(5) {
            0 => json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}}),
            1 => {
                json!({
                    "type": "object", "properties": {
                        "name": {"type": "string", "pattern": "^a"}, "generateName": {"type": "string"},
                    },
                })
            }
            2 => json!({"type": "object", "properties": {"labels": {"type": "object"}}}),
            _ => json!({"type": "object"}),
        }
    }

    /// A schema below a hundred others.
    fn tall(&mut self, schema: Map<String, Value>) -> Value {
        let mut schema = Value::Object(schema);
        for _ in 0..self.random.between(20, 150) {
            schema = match self.random.below(3) {
                0 => around("array", "items", schema),
                1 => around("object", "additionalProperties", schema),
                _ => around("object", "properties", property(schema)),
            };
        }
        around("object", "properties", property(schema))
    }

    pub(super) fn schema(&mut self, depth: usize) -> Value {
        self.left = self.left.saturating_sub(1);
        let nest = if depth < DEPTH && self.left > 0 { 1 } else { 0 };
        let mut schema = match self.random.weighted(&[5 * nest, 2 * nest, 3 * nest, 4, 4, 1, 2, 2, 2]) {
            0 => self.object_schema(depth),
            1 => self.map_schema(depth),
            2 => self.array_schema(depth),
            3 => self.string_schema(),
            4 => self.number_schema("integer"),
            5 => self.number_schema("number"),
            6 => keywords(json!({"type": "boolean"})),
            7 => self.int_or_string_schema(),
            _ => self.any_schema(depth),
        };
        self.generic_keywords(&mut schema, depth);
        Value::Object(schema)
    }

    pub(super) fn object_schema(&mut self, depth: usize) -> Map<String, Value> {
        let mut schema = keywords(json!({"type": "object"}));
        let mut properties = Map::new();
        let count = if depth == 0 { self.random.between(1, 4) } else { self.random.between(0, 4) };
        for _ in 0..count {
            let name = self.name();
            let property = self.schema(depth + 1);
            properties.insert(name, property);
        }
        if self.random.chance(30) {
            let mut required: Vec<_> =
                properties.keys().filter(|_| self.random.chance(50)).cloned().map(Value::from).collect();
            if self.random.chance(10) {
                required.push(self.name().into());
            }
            schema.insert("required".to_owned(), Value::Array(required));
        }
        schema.insert("properties".to_owned(), Value::Object(properties));
        if self.random.chance(6) {
            let rest = if self.random.chance(50) {
                Value::Bool(self.random.chance(50))
            } else {
                self.schema(depth + 1)
            };
            schema.insert("additionalProperties".to_owned(), rest);
        }
        if depth > 0 && self.random.chance(self.temper.embedded) {
            schema.insert("x-kubernetes-embedded-resource".to_owned(), Value::Bool(true));
            if self.random.chance(50) {
                schema.insert("x-kubernetes-preserve-unknown-fields".to_owned(), Value::Bool(true));
            }
        } else if self.random.chance(8) {
            schema.insert("x-kubernetes-preserve-unknown-fields".to_owned(), Value::Bool(true));
        }
        if self.random.chance(8) {
            let kind = self.random.pick(&["atomic", "granular"]);
            schema.insert("x-kubernetes-map-type".to_owned(), kind.into());
        }
        self.count_limits(&mut schema, "Properties");
        schema
    }

    fn map_schema(&mut self, depth: usize) -> Map<String, Value> {
        let values = match self.random.below(10) {
            0 => Value::Bool(true),
            1 => Value::Bool(false),
            _ => self.schema(depth + 1),
        };
        let mut schema = keywords(json!({"type": "object", "additionalProperties": values}));
        self.count_limits(&mut schema, "Properties");
        schema
    }

    fn array_schema(&mut self, depth: usize) -> Map<String, Value> {
        let items = if self.random.chance(35) {
            Value::Object(self.object_schema(depth + 1))
        } else {
            self.schema(depth + 1)
        };
        let mut schema = keywords(json!({"type": "array"}));
        if self.random.chance(45) {
            let kind = self.random.pick(&["atomic", "set", "set", "map", "map", "map"]);
            schema.insert("x-kubernetes-list-type".to_owned(), kind.into());
            if kind == "map" {
                let names: Vec<_> = items["properties"].as_object().into_iter().flat_map(Map::keys).collect();
                let mut keys: Vec<Value> =
                    names.into_iter().filter(|_| self.random.chance(60)).cloned().map(Value::from).collect();
                if self.random.chance(5) {
                    keys.push(self.name().into());
                }
                schema.insert("x-kubernetes-list-map-keys".to_owned(), keys.into());
            }
        }
        schema.insert("items".to_owned(), items);
        self.count_limits(&mut schema, "Items");
        if self.random.chance(2) {
            schema.insert("uniqueItems".to_owned(), Value::Bool(self.random.chance(70)));
        }
        schema
    }

    fn string_schema(&mut self) -> Map<String, Value> {
        let mut schema = keywords(json!({"type": "string"}));
        if self.random.chance(self.temper.limits) {
            self.string_limits(&mut schema);
        }
        schema
    }

    fn number_schema(&mut self, kind: &str) -> Map<String, Value> {
        let mut schema = keywords(json!({ "type": kind }));
        if self.random.chance(self.temper.limits) {
            self.number_limits(&mut schema);
        }
        schema
    }

    fn int_or_string_schema(&mut self) -> Map<String, Value> {
        let mut schema = keywords(json!({"x-kubernetes-int-or-string": true}));
        let both = json!([{"type": "integer"}, {"type": "string"}]);
        match self.random.below(8) {
            0 => drop(schema.insert("anyOf".to_owned(), both)),
            1 => drop(schema.insert("allOf".to_owned(), json!([{ "anyOf": both }]))),
            2 => drop(schema.insert("allOf".to_owned(), json!([{ "anyOf": both }, {"minimum": 1}]))),
            3 => drop(schema.insert("anyOf".to_owned(), json!([{"type": "string"}, {"type": "integer"}]))),
            4 => drop(schema.insert(
                "anyOf".to_owned(),
                json!([{"type": "integer"}, {"type": "string", "minLength": 1}]),
            )),
            _ => {}
        }
        if self.random.chance(self.temper.limits) {
            if self.random.chance(50) {
                self.string_limits(&mut schema)
            } else {
                self.number_limits(&mut schema)
            }
        }
        schema
    }

    fn any_schema(&mut self, depth: usize) -> Map<String, Value> {
        let mut schema = keywords(json!({"x-kubernetes-preserve-unknown-fields": true}));
        if self.random.chance(60) {
            let kind = self.random.pick(&["object", "object", "object", "array", "string"]);
            schema.insert("type".to_owned(), kind.into());
            if self.left > 0 && depth < DEPTH && self.random.chance(40) {
                let (name, property) = (self.name(), self.schema(depth + 1));
                schema.insert("properties".to_owned(), json!({ name: property }));
            }
            if kind == "object" && self.random.chance(self.temper.embedded) {
                schema.insert("x-kubernetes-embedded-resource".to_owned(), Value::Bool(true));
            }
        }
        schema
    }

    /// Keywords that any schema may have; the default comes last, as it should fit the rest.
    pub(super) fn generic_keywords(&mut self, schema: &mut Map<String, Value>, depth: usize) {
        if self.random.chance(18) {
            schema.insert("nullable".to_owned(), Value::Bool(self.random.chance(90)));
        }
        if self.random.chance(6) {
            let text = self.random.pick(&["text", ""]);
            schema.insert(self.random.pick(&["description", "title"]).to_owned(), text.into());
        }
        if self.random.chance(1) {
            schema.insert("example".to_owned(), json!({"a": 1}));
            schema.insert("externalDocs".to_owned(), json!({"url": "http://a.b"}));
        }
        if self.random.chance(self.temper.clauses) {
            self.add_clause(schema, depth);
        }
        if self.random.chance(self.temper.limits / 4) {
            let count = self.random.between(1, 3);
            let node = Value::Object(schema.clone());
            let values: Vec<_> = (0..count).map(|_| self.value(&node, 0)).collect();
            schema.insert("enum".to_owned(), values.into());
        }
        if self.random.chance(self.temper.rules) {
            let rules = self.rules(schema);
            schema.insert("x-kubernetes-validations".to_owned(), rules);
        }
        if self.random.chance(self.temper.defaults) {
            let default = if self.random.chance(4) {
                Value::Null
            } else {
                self.value(&Value::Object(schema.clone()), 0)
            };
            schema.insert("default".to_owned(), default);
        }
    }

    pub(super) fn string_limits(&mut self, schema: &mut Map<String, Value>) {
        match self.random.below(6) {
            0 => drop(schema.insert("maxLength".to_owned(), self.random.below(5).into())),
            1 => drop(schema.insert("minLength".to_owned(), self.random.below(4).into())),
            2 | 3 => {
                let bad = self.random.chance(4);
                let pattern = self.random.pick(if bad { words::BAD_PATTERNS } else { words::PATTERNS });
                schema.insert("pattern".to_owned(), pattern.into());
            }
            _ => {
                let (format, _) = words::FORMATS[self.random.below(words::FORMATS.len())];
                schema.insert("format".to_owned(), format.into());
            }
        }
    }

    pub(super) fn number_limits(&mut self, schema: &mut Map<String, Value>) {
        let limits: [f64; 12] =
            [0.0, 1.0, 2.0, 3.0, 5.0, 10.0, -1.0, 0.5, 2147483648.0, 9007199254740992.0, 0.1, 100.0];
        let limit = |generator: &mut Self| {
            let number = limits[generator.random.below(limits.len())];
            if number == number.trunc() && generator.random.chance(80) {
                json!(number as i64)
            } else {
                json!(number)
            }
        };
        let (keyword, exclusive) =
            [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")][self.random.below(2)];
        match self.random.below(4) {
            0 => {
                let factor = if self.random.chance(50) { json!(2) } else { limit(self) };
                schema.insert("multipleOf".to_owned(), factor);
            }
            1 => {
                let format = self.random.pick(words::NUMBER_FORMATS);
                schema.insert("format".to_owned(), format.into());
            }
            _ => {
                schema.insert(keyword.to_owned(), limit(self));
                if self.random.chance(20) {
                    schema.insert(exclusive.to_owned(), Value::Bool(self.random.chance(85)));
                }
            }
        }
    }

    fn count_limits(&mut self, schema: &mut Map<String, Value>, of: &str) {
        if self.random.chance(self.temper.limits / 3) {
            let bound = self.random.pick(&["min", "max"]);
            schema.insert(format!("{bound}{of}"), self.random.below(4).into());
        }
    }
}

/// A schema of a type with one keyword more; json! would copy the keyword's value.
fn around(kind: &str, keyword: &str, value: Value) -> Value {
    Value::Object(Map::from_iter([("type".to_owned(), kind.into()), (keyword.to_owned(), value)]))
}

fn property(schema: Value) -> Value {
    Value::Object(Map::from_iter([("a".to_owned(), schema)]))
}

/// The keywords of a literal schema.
pub(super) fn keywords(schema: Value) -> Map<String, Value> {
    match schema {
        Value::Object(keywords) => keywords,
        _ => Map::new(),
    }
}
