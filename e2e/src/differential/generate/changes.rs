//! What a release changes in a CRD: limits, defaults, rules, names, types and versions, one at a time.
//! Most of it is what authors mean to do, not only mistakes.

use serde_json::{Map, Value, json};

use super::Generator;

/// Limits at which costs and lengths turn.
const LIMITS: &[i64] = &[
    0,
    1,
    2,
    5,
    10,
    16,
    32,
    63,
    64,
    100,
    253,
    256,
    1000,
    1024,
    4096,
    10_000,
    65_536,
    1_048_576,
    2_147_483_648,
    i64::MAX,
    -1,
];

/// What replaces another text when a rule is edited.
const SWAPS: &[(&str, &str)] = &[
    ("==", "!="),
    ("!=", "=="),
    ("&&", "||"),
    ("||", "&&"),
    (">=", "<"),
    ("<=", ">"),
    ("oldSelf", "self"),
    ("self", "oldSelf"),
    ("has(", "!has("),
    ("!has(", "has("),
    (".all(", ".exists("),
    (".exists(", ".all("),
    (".exists_one(", ".filter("),
    ("true", "false"),
    ("size(", "string("),
    ("'", "\""),
    (")", ""),
    ("(", ""),
    (" ", "\n"),
    ("self.", "self.spec."),
    ("self", "self.self"),
    ("0", "'0'"),
    ("1", "1.0"),
    ("matches", "startsWith"),
    (" in ", " == "),
    ("?", "??"),
];

impl Generator<'_> {
    /// Changes one place of the schema of one version.
    pub(super) fn change_schema(&mut self, root: &mut Value) {
        let pointer = if self.random.chance(30) { self.ruled(root) } else { None };
        let pointer = pointer.unwrap_or_else(|| self.somewhere(root));
        let Some(Value::Object(node)) = root.pointer_mut(&pointer) else { return };
        if node.contains_key("x-kubernetes-validations") && self.random.chance(55) {
            return self.change_rules(node);
        }
        match self.random.below(14) {
            0 | 1 => self.change_limit(node),
            2 | 3 => self.change_rules(node),
            4 => self.change_default(node),
            5 => self.change_required(node),
            6 => self.change_property(node),
            7 => self.change_type(node),
            8 => self.change_list(node),
            9 => {
                let on = self.random.chance(80);
                node.insert("nullable".to_owned(), on.into());
            }
            10 => drop(node.insert("description".to_owned(), "another".into())),
            11 => self.string_limits(node),
            12 => self.number_limits(node),
            _ => self.generic_keywords(node, 9),
        }
    }

    /// A pointer to some schema below a root, the root included.
    pub(super) fn somewhere(&mut self, root: &Value) -> String {
        let mut pointer = String::new();
        let mut node = root;
        while self.random.chance(85) {
            let below = steps(node);
            if below.is_empty() {
                break;
            }
            let (step, child) = &below[self.random.below(below.len())];
            pointer.push_str(step);
            node = child;
        }
        pointer
    }

    /// A pointer to some schema with rules.
    fn ruled(&mut self, root: &Value) -> Option<String> {
        let mut found = Vec::new();
        collect(root, &mut String::new(), &mut found);
        (!found.is_empty()).then(|| found.swap_remove(self.random.below(found.len())))
    }

    fn change_limit(&mut self, node: &mut Map<String, Value>) {
        let keyword = match node.get("type").and_then(Value::as_str) {
            Some("array") => "maxItems",
            Some("object") => "maxProperties",
            Some("string") => self.random.pick(&["maxLength", "enum", "format", "pattern"]),
            Some("integer" | "number") => self.random.pick(&["maximum", "minimum", "format"]),
            _ => self.random.pick(&["maxLength", "maxItems", "minItems", "minProperties"]),
        };
        if node.contains_key(keyword) && self.random.chance(50) {
            node.remove(keyword);
            return;
        }
        let value = match keyword {
            "enum" => json!(["a", "b"]),
            "format" => {
                json!(self.random.pick(&["date-time", "duration", "byte", "int32", "uri", "password"]))
            }
            "pattern" => json!(self.random.pick(&["^[a-z]+$", "(", "^a{1,5}$"])),
            _ => json!(LIMITS[self.random.below(LIMITS.len())]),
        };
        node.insert(keyword.to_owned(), value);
    }

    fn change_rules(&mut self, node: &mut Map<String, Value>) {
        let about = copy_without(node, "x-kubernetes-validations");
        let rules = node.entry("x-kubernetes-validations").or_insert_with(|| json!([]));
        let Value::Array(rules) = rules else { return };
        if rules.is_empty() || self.random.chance(35) {
            let rule = self.rule(&about);
            return rules.push(rule);
        }
        let index = self.random.below(rules.len());
        if self.random.chance(8) {
            rules.remove(index);
            return;
        }
        let Value::Object(rule) = &mut rules[index] else { return };
        if self.random.chance(55) {
            let text = rule.get("rule").and_then(Value::as_str).unwrap_or_default().to_owned();
            let edited = self.edited(&text);
            rule.insert("rule".to_owned(), edited.into());
            return;
        }
        let other = self.rule(&about);
        for keyword in ["message", "messageExpression", "reason", "fieldPath", "optionalOldSelf"] {
            if self.random.chance(30) {
                match other.get(keyword) {
                    Some(value) => drop(rule.insert(keyword.to_owned(), value.clone())),
                    None => drop(rule.remove(keyword)),
                }
            }
        }
    }

    /// The text of a rule with one thing exchanged.
    fn edited(&mut self, text: &str) -> String {
        match self.random.below(8) {
            0 => return format!("!({text})"),
            1 => return format!("[1, 2].all(i, {text})"),
            2 => return format!("({text}) && ({text})"),
            _ => {}
        }
        for _ in 0..6 {
            let (from, to) = SWAPS[self.random.below(SWAPS.len())];
            let places: Vec<usize> = text.match_indices(from).map(|(place, _)| place).collect();
            if places.is_empty() {
                continue;
            }
            let place = places[self.random.below(places.len())];
            return format!("{}{to}{}", &text[..place], &text[place + from.len()..]);
        }
        text.to_owned()
    }

    fn change_default(&mut self, node: &mut Map<String, Value>) {
        if node.contains_key("default") && self.random.chance(35) {
            node.remove("default");
            return;
        }
        let about = Value::Object(node.clone());
        let value = if self.random.chance(25) { self.junk(1) } else { self.value(&about, 8) };
        node.insert("default".to_owned(), value);
    }

    fn change_required(&mut self, node: &mut Map<String, Value>) {
        let names: Vec<String> = node
            .get("properties")
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(Map::keys)
            .cloned()
            .collect();
        if names.is_empty() || self.random.chance(30) {
            node.remove("required");
            return;
        }
        let name = names[self.random.below(names.len())].clone();
        let required = node.entry("required").or_insert_with(|| json!([]));
        if let Value::Array(required) = required {
            required.push(name.into());
        }
    }

    fn change_property(&mut self, node: &mut Map<String, Value>) {
        let new_name = self.name();
        let new_schema = self.schema(5);
        let Some(Value::Object(properties)) = node.get_mut("properties") else { return };
        let names: Vec<String> = properties.keys().cloned().collect();
        if names.is_empty() || self.random.chance(30) {
            properties.insert(new_name, new_schema);
            return;
        }
        let name = &names[self.random.below(names.len())];
        let other = &names[self.random.below(names.len())];
        match self.random.below(3) {
            0 => drop(properties.remove(name)),
            1 => {
                let taken = properties.remove(name).unwrap_or_default();
                properties.insert(new_name, taken);
            }
            _ => {
                let taken = properties.get(name).cloned().unwrap_or_default();
                properties.insert(other.clone(), taken);
            }
        }
    }

    fn change_type(&mut self, node: &mut Map<String, Value>) {
        match self.random.below(6) {
            0 => {
                let kind = self.random.pick(&["string", "integer", "number", "boolean", "object", "array"]);
                node.insert("type".to_owned(), kind.into());
            }
            1 => drop(node.insert("x-kubernetes-int-or-string".to_owned(), true.into())),
            2 => drop(node.insert("x-kubernetes-preserve-unknown-fields".to_owned(), true.into())),
            3 => drop(node.insert("x-kubernetes-embedded-resource".to_owned(), true.into())),
            4 => {
                let values = self.schema(5);
                node.insert("additionalProperties".to_owned(), values);
                if self.random.chance(70) {
                    node.remove("properties");
                }
            }
            _ => {
                let kind = self.random.pick(&["atomic", "granular"]);
                node.insert("x-kubernetes-map-type".to_owned(), kind.into());
            }
        }
    }

    fn change_list(&mut self, node: &mut Map<String, Value>) {
        let kind = self.random.pick(&["atomic", "set", "map", "map"]);
        node.insert("x-kubernetes-list-type".to_owned(), kind.into());
        if kind != "map" || self.random.chance(10) {
            node.remove("x-kubernetes-list-map-keys");
            return;
        }
        let names: Vec<String> = node
            .get("items")
            .and_then(|items| items["properties"].as_object())
            .into_iter()
            .flat_map(Map::keys)
            .cloned()
            .collect();
        let mut keys: Vec<Value> = (0..self.random.between(1, 2))
            .map(|_| match names.len() {
                0 => "name".into(),
                count => names[self.random.below(count)].clone().into(),
            })
            .collect();
        if self.random.chance(60)
            && let Some(Value::Object(items)) = node.get_mut("items")
        {
            items.insert("required".to_owned(), keys.clone().into());
        }
        if self.random.chance(5) {
            keys.push(json!("nope"));
        }
        node.insert("x-kubernetes-list-map-keys".to_owned(), keys.into());
    }
}

/// A schema without one of its keywords.
pub(super) fn copy_without(node: &Map<String, Value>, keyword: &str) -> Map<String, Value> {
    let fields = node.iter().filter(|(name, _)| *name != keyword);
    fields.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The schemas right below a schema, by the part of a pointer that leads to each.
fn steps(schema: &Value) -> Vec<(String, &Value)> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let mut steps: Vec<(String, &Value)> = properties
        .map(|(name, below)| (format!("/properties/{}", name.replace('~', "~0").replace('/', "~1")), below))
        .collect();
    for keyword in ["items", "additionalProperties"] {
        if let Some(below) = schema.get(keyword).filter(|below| below.is_object()) {
            steps.push((format!("/{keyword}"), below));
        }
    }
    steps
}

fn collect(schema: &Value, at: &mut String, found: &mut Vec<String>) {
    if schema.get("x-kubernetes-validations").is_some() {
        found.push(at.clone());
    }
    if at.len() > 4_000 {
        return;
    }
    for (step, below) in steps(schema) {
        let length = at.len();
        at.push_str(&step);
        collect(below, at, found);
        at.truncate(length);
    }
}
