//! Values that nearly fit a schema, and objects made of them.
//! A wrong value now and then is the point.

use serde_json::{Map, Value, json};

use super::{Generator, words};
use simulator::random::Random;

/// How deep values follow a schema.
const DEPTH: usize = 12;

impl Generator<'_> {
    /// An object of the custom resource that a schema is for, as a server may have stored it.
    pub(super) fn object(&mut self, schema: &Value) -> Value {
        let mut object = match self.value(schema, 0) {
            Value::Object(object) => object,
            _ => Map::new(),
        };
        object.insert("apiVersion".to_owned(), "stable.example.com/v1".into());
        object.insert("kind".to_owned(), "Thing".into());
        let metadata = self.root_object_meta();
        object.insert("metadata".to_owned(), metadata);
        if self.random.chance(1) {
            // With metadata and the object itself no more than is read.
            let levels = self.random.between(100, 990);
            let (name, mut deep) = (self.name(), Value::Null);
            for _ in 0..levels {
                // json! would copy what it is given.
                deep = if self.random.chance(50) {
                    Value::Array(vec![deep])
                } else {
                    Value::Object(Map::from_iter([("a".to_owned(), deep)]))
                };
            }
            if !matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
                object.insert(name, deep);
            }
        }
        Value::Object(object)
    }

    /// A value for a schema.
    pub(super) fn value(&mut self, schema: &Value, depth: usize) -> Value {
        if self.random.chance(self.temper.noise) {
            return self.junk(0);
        }
        if schema["nullable"] == true && self.random.chance(20) || self.random.chance(1) {
            return Value::Null;
        }
        if let Some(allowed) = schema["enum"].as_array()
            && !allowed.is_empty()
            && self.random.chance(85)
        {
            return allowed[self.random.below(allowed.len())].clone();
        }
        if schema["default"] != Value::Null && self.random.chance(10) {
            return schema["default"].clone();
        }
        match schema["type"].as_str() {
            _ if depth > DEPTH => Value::Null,
            Some("object") => self.fields(schema, depth),
            Some("array") => self.list(schema, depth),
            Some("string") => self.string(schema),
            Some("integer") => self.integer(schema),
            Some("number") if self.random.chance(50) => self.integer(schema),
            Some("number") => json!(words::FLOATS[self.random.below(words::FLOATS.len())]),
            Some("boolean") => Value::Bool(self.random.chance(50)),
            _ if schema["x-kubernetes-int-or-string"] == true && self.random.chance(50) => {
                self.string(schema)
            }
            _ if schema["x-kubernetes-int-or-string"] == true => self.integer(schema),
            _ if schema["properties"].is_object() && self.random.chance(80) => self.fields(schema, depth),
            _ => self.junk(0),
        }
    }

    fn fields(&mut self, schema: &Value, depth: usize) -> Value {
        let mut fields = Map::new();
        let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let wanted = required.iter().any(|other| other.as_str() == Some(name));
            let share = if wanted { 92 } else { 60 };
            if self.random.chance(share) {
                let value = self.value(property, depth + 1);
                fields.insert(name.clone(), value);
            }
        }
        let rest = &schema["additionalProperties"];
        if rest.is_object() || *rest == true {
            for _ in 0..self.random.below(4) {
                let name = if self.random.chance(50) {
                    self.name()
                } else {
                    self.random.pick(&["k1", "k2", "a.b/c"]).to_owned()
                };
                let value = self.value(rest, depth + 1);
                fields.entry(name).or_insert(value);
            }
        }
        let keeps = schema["x-kubernetes-preserve-unknown-fields"] == true;
        if self.random.chance(if keeps { 60 } else { 8 }) {
            let (name, value) = (self.name(), self.junk(0));
            fields.entry(name).or_insert(value);
        }
        if schema["x-kubernetes-embedded-resource"] == true {
            self.type_meta(&mut fields);
            if self.random.chance(70) {
                let metadata = self.embedded_meta();
                fields.insert("metadata".to_owned(), metadata);
            }
        }
        Value::Object(fields)
    }

    fn type_meta(&mut self, fields: &mut Map<String, Value>) {
        for (name, values) in [
            (
                "apiVersion",
                [json!("v1"), json!("apps/v1"), json!("bad/x/y"), json!(""), json!(1.5), json!("/v1")],
            ),
            ("kind", [json!("Pod"), json!("pod"), json!("Foo-Bar"), json!("a.b"), json!(""), json!(3)]),
        ] {
            let usual = self.random.chance(75);
            if self.random.chance(90) {
                let choice = if usual { self.random.below(2) } else { self.random.below(values.len()) };
                fields.insert(name.to_owned(), values[choice].clone());
            }
        }
    }

    fn list(&mut self, schema: &Value, depth: usize) -> Value {
        let least = schema["minItems"].as_u64().map_or(0, |least| least.min(3) as usize);
        let items = schema.get("items").unwrap_or(&Value::Null);
        let mut list: Vec<Value> =
            (0..self.random.between(least, 3)).map(|_| self.value(items, depth + 1)).collect();
        if !list.is_empty() && self.random.chance(8) {
            let twin = list[self.random.below(list.len())].clone();
            list.push(twin);
        }
        Value::Array(list)
    }

    fn string(&mut self, schema: &Value) -> Value {
        let format = schema["format"].as_str().unwrap_or("");
        let examples = words::FORMATS.iter().find(|(name, _)| *name == format);
        let mut text = match examples {
            Some((_, examples)) if self.random.chance(90) => self.random.pick(examples).to_owned(),
            _ if self.random.chance(3) => {
                let (_, examples) = words::FORMATS[self.random.below(words::FORMATS.len())];
                self.random.pick(examples).to_owned()
            }
            _ => self.random.pick(words::STRINGS).to_owned(),
        };
        if self.random.chance(12) {
            edit(&mut self.random, &mut text);
        }
        Value::String(text)
    }

    fn integer(&mut self, schema: &Value) -> Value {
        match self.random.below(12) {
            0 => json!(words::FLOATS[self.random.below(words::FLOATS.len())]),
            1 => json!(words::INTEGERS[self.random.below(words::INTEGERS.len())]),
            2 => schema.get("minimum").or(schema.get("maximum")).cloned().unwrap_or(json!(1.0)),
            _ => json!(words::INTEGERS[self.random.below(12)]),
        }
    }

    /// Any value at all.
    pub(super) fn junk(&mut self, depth: usize) -> Value {
        let nest = usize::from(depth < 3);
        match self.random.weighted(&[3, 2, 4, 4, 2, 3 * nest, 4 * nest, 1]) {
            0 => Value::Null,
            1 => Value::Bool(self.random.chance(50)),
            2 => json!(words::INTEGERS[self.random.below(words::INTEGERS.len())]),
            3 => self.random.pick(words::STRINGS).into(),
            4 => json!(words::FLOATS[self.random.below(words::FLOATS.len())]),
            5 => (0..self.random.below(3)).map(|_| self.junk(depth + 1)).collect::<Vec<_>>().into(),
            6 => {
                let fields: Map<_, _> =
                    (0..self.random.below(4)).map(|_| (self.name(), self.junk(depth + 1))).collect();
                Value::Object(fields)
            }
            _ => json!(words::HUGE[self.random.below(words::HUGE.len())]),
        }
    }
}

/// Changes one character: drops, doubles, or replaces it.
fn edit(random: &mut Random, text: &mut String) {
    let mut characters: Vec<char> = text.chars().collect();
    if characters.is_empty() {
        return;
    }
    let place = random.below(characters.len());
    let other = ['0', 'a', 'Z', '-', '.', ':', ' ', '/', 'é', '9', '=', '\n', '%', '_', '@'];
    match random.below(4) {
        0 => drop(characters.remove(place)),
        1 => characters.insert(place, characters[place]),
        2 => characters.insert(place, other[random.below(other.len())]),
        _ => characters[place] = other[random.below(other.len())],
    }
    *text = characters.into_iter().collect();
}
