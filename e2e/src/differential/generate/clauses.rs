//! `allOf`, `anyOf`, `oneOf` and `not`: schemas that restrict values and give no structure.
//! They have no structure of their own, except the mistakes that structural rules are there to find.

use serde_json::{Map, Value, json};

use super::Generator;

/// How deep clauses nest in clauses.
const DEPTH: usize = 3;

impl Generator<'_> {
    /// Adds a clause about the schema it is added to.
    pub(super) fn add_clause(&mut self, schema: &mut Map<String, Value>, depth: usize) {
        let keyword = self.random.pick(&["allOf", "anyOf", "oneOf", "not"]);
        let clause = if keyword == "not" {
            self.clause(schema, depth, 0)
        } else {
            (0..self.random.between(1, 3)).map(|_| self.clause(schema, depth, 0)).collect::<Vec<_>>().into()
        };
        schema.entry(keyword).or_insert(clause);
    }

    fn clause(&mut self, about: &Map<String, Value>, depth: usize, level: usize) -> Value {
        let mut clause = Map::new();
        let kind = about.get("type").and_then(Value::as_str).unwrap_or("");
        match kind {
            "object" => self.object_clause(&mut clause, about, depth, level),
            "array" => match (about.get("items"), self.random.below(3)) {
                (Some(Value::Object(items)), 0) => {
                    clause.insert("items".to_owned(), self.clause(items, depth, level + 1));
                }
                (_, bound) => {
                    let keyword = if bound == 1 { "minItems" } else { "maxItems" };
                    clause.insert(keyword.to_owned(), self.random.below(3).into());
                }
            },
            "integer" | "number" => self.number_limits(&mut clause),
            "string" => self.string_limits(&mut clause),
            _ if self.random.chance(50) => self.string_limits(&mut clause),
            _ => self.number_limits(&mut clause),
        }
        if self.random.chance(15) {
            let values: Vec<_> = (0..self.random.between(1, 2))
                .map(|_| self.value(&Value::Object(about.clone()), 0))
                .collect();
            clause.insert("enum".to_owned(), values.into());
        }
        if level < DEPTH && self.random.chance(12) {
            let inner = self.clause(about, depth, level + 1);
            let keyword = self.random.pick(&["allOf", "anyOf", "oneOf", "not"]);
            let inner = if keyword == "not" { inner } else { json!([inner]) };
            clause.insert(keyword.to_owned(), inner);
        }
        if self.random.chance(3) {
            self.forbidden(&mut clause);
        }
        Value::Object(clause)
    }

    fn object_clause(
        &mut self,
        clause: &mut Map<String, Value>,
        about: &Map<String, Value>,
        depth: usize,
        level: usize,
    ) {
        let properties: Vec<_> =
            about.get("properties").and_then(Value::as_object).into_iter().flatten().collect();
        let rest = about.get("additionalProperties").and_then(Value::as_object);
        match self.random.below(4) {
            0 | 1 => {
                let mut names: Vec<Value> = properties
                    .iter()
                    .filter(|_| self.random.chance(50))
                    .map(|(name, _)| name.as_str().into())
                    .collect();
                if names.is_empty() {
                    names.push(self.name().into());
                }
                clause.insert("required".to_owned(), names.into());
            }
            2 if !properties.is_empty() && level < DEPTH => {
                let (name, property) = properties[self.random.below(properties.len())];
                let name = if self.random.chance(4) { self.name() } else { name.clone() };
                let inner = property.as_object().map(|about| self.clause(about, depth, level + 1));
                clause.insert("properties".to_owned(), json!({ name: inner }));
            }
            2 if rest.is_some() && self.random.chance(20) => {
                let inner = rest.map(|about| self.clause(about, depth, level + 1));
                clause.insert("additionalProperties".to_owned(), json!(inner));
            }
            _ => {
                let keyword = self.random.pick(&["minProperties", "maxProperties"]);
                clause.insert(keyword.to_owned(), self.random.below(3).into());
            }
        }
    }

    /// Keywords that are forbidden in a clause.
    fn forbidden(&mut self, clause: &mut Map<String, Value>) {
        let choices = [
            ("type", json!("string")),
            ("default", json!(1)),
            ("title", json!("text")),
            ("description", json!("text")),
            ("nullable", json!(true)),
            ("additionalProperties", json!({"minimum": 1})),
            ("additionalProperties", json!(true)),
            ("additionalProperties", json!(false)),
            ("x-kubernetes-preserve-unknown-fields", json!(true)),
            ("x-kubernetes-embedded-resource", json!(true)),
            ("x-kubernetes-int-or-string", json!(true)),
            ("x-kubernetes-list-type", json!("set")),
            ("x-kubernetes-list-map-keys", json!(["a"])),
            ("x-kubernetes-map-type", json!("atomic")),
            ("x-kubernetes-validations", json!([{"rule": "true"}])),
            ("properties", json!({"metadata": {}})),
            ("properties", json!({"nowhere": {"minimum": 1}})),
            ("items", json!({"maxLength": 1})),
            ("example", json!(1)),
        ];
        let (keyword, value) = &choices[self.random.below(choices.len())];
        clause.insert((*keyword).to_owned(), value.clone());
    }
}
