//! CEL expressions of a wanted type, grown over the schema that has them: paths, operators, functions and
//! macros, nested. Now and then a name is unknown or a type is wrong.

use serde_json::{Map, Value, json};

use super::Generator;
use super::rules::escape;

/// How deep expressions nest.
const DEPTH: usize = 4;

/// What an expression may name, and what is known about it.
pub(super) type Variable = (String, Value);

/// The types that expressions are grown for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    Bool,
    Int,
    Double,
    Text,
    Bytes,
    Time,
    Span,
    List,
    Map,
    Object,
    Dyn,
}

impl Generator<'_> {
    /// A boolean expression about a schema's values.
    pub(super) fn grown(&mut self, schema: &Map<String, Value>, about_change: bool) -> String {
        let schema = Value::Object(schema.clone());
        let mut scope = vec![("self".to_owned(), schema.clone())];
        if about_change {
            scope.push(("oldSelf".to_owned(), schema));
        }
        let depth = self.random.between(1, DEPTH);
        self.grow(Want::Bool, &mut scope, depth)
    }

    /// A text about a schema's values.
    pub(super) fn grown_message(&mut self, schema: &Map<String, Value>) -> String {
        let mut scope = vec![("self".to_owned(), Value::Object(schema.clone()))];
        self.grow(Want::Text, &mut scope, 2)
    }

    pub(super) fn grow(&mut self, want: Want, scope: &mut Vec<Variable>, depth: usize) -> String {
        // A wrong type in some places, so that the check has something to find.
        let want = if self.random.chance(1) { self.any_want() } else { want };
        if want != Want::Bool && self.random.chance(if depth == 0 { 75 } else { 45 })
            || want == Want::Bool && self.random.chance(8)
        {
            for _ in 0..4 {
                let (text, schema) = self.reach(scope);
                if want_of(&schema) == want {
                    return text;
                }
            }
        }
        match want {
            Want::Bool => self.condition(scope, depth),
            Want::Int => self.integer_expression(scope, depth),
            Want::Double => self.double_expression(scope, depth),
            Want::Text => self.text_expression(scope, depth),
            Want::Bytes if depth > 0 => format!("bytes({})", self.grow(Want::Text, scope, depth - 1)),
            Want::Bytes => "b'ab'".to_owned(),
            Want::Time if depth > 0 && self.random.chance(40) => {
                format!(
                    "({} + {})",
                    self.grow(Want::Time, scope, depth - 1),
                    self.grow(Want::Span, scope, depth - 1)
                )
            }
            Want::Time => self
                .random
                .pick(&["timestamp('2024-01-01T00:00:00Z')", "timestamp(0)", "timestamp('now')"])
                .to_owned(),
            Want::Span if depth > 0 && self.random.chance(30) => format!(
                "({} - {})",
                self.grow(Want::Time, scope, depth - 1),
                self.grow(Want::Time, scope, depth - 1)
            ),
            Want::Span => {
                self.random.pick(&["duration('1h')", "duration('90s')", "duration('x')"]).to_owned()
            }
            Want::List => self.list_expression(scope, depth).0,
            Want::Map => self.map_expression(scope, depth).0,
            Want::Object | Want::Dyn => self.reach(scope).0,
        }
    }

    pub(super) fn any_want(&mut self) -> Want {
        let all = [
            Want::Bool,
            Want::Int,
            Want::Double,
            Want::Text,
            Want::Bytes,
            Want::Time,
            Want::Span,
            Want::List,
            Want::Map,
            Want::Object,
            Want::Dyn,
        ];
        all[self.random.below(all.len())]
    }

    /// Something below a variable, and its schema.
    pub(super) fn reach(&mut self, scope: &[Variable]) -> Variable {
        let (mut text, mut schema) = scope[self.random.below(scope.len())].clone();
        for _ in 0..self.random.between(0, 5) {
            match want_of(&schema) {
                Want::Object => {
                    let Some((name, below)) = self.property_of(&schema) else { break };
                    let optional = self.random.chance(3);
                    let dot = if optional { ".?" } else { "." };
                    text = format!("{text}{dot}{}", escape(&name));
                    schema = if optional { json!({}) } else { below };
                }
                Want::List => {
                    let index = self.random.pick(&["[0]", "[0]", "[1]", "[-1]", "[?0]", "[5]"]);
                    text.push_str(index);
                    schema = schema["items"].clone();
                }
                Want::Map => {
                    let key = self.random.pick(&["['a']", "['k1']", ".a", "[?'a']", "['']"]);
                    text.push_str(key);
                    schema = schema["additionalProperties"].clone();
                }
                _ => break,
            }
        }
        if self.random.chance(1) {
            text.push_str(".nope");
        }
        (text, schema)
    }

    fn property_of(&mut self, schema: &Value) -> Option<(String, Value)> {
        let properties = schema["properties"].as_object()?;
        if properties.is_empty() {
            return None;
        }
        let (name, below) = properties.iter().nth(self.random.below(properties.len()))?;
        Some((name.clone(), below.clone()))
    }

    /// The presence of something: `has()`, or as much for optionals and maps.
    fn presence(&mut self, scope: &[Variable]) -> String {
        for _ in 0..3 {
            let (text, schema) = self.reach(scope);
            match want_of(&schema) {
                Want::Object => {
                    if let Some((name, _)) = self.property_of(&schema) {
                        let name = escape(&name);
                        return match self.random.below(5) {
                            0 => format!("{text}.?{name}.hasValue()"),
                            1 => format!("!has({text}.{name})"),
                            _ => format!("has({text}.{name})"),
                        };
                    }
                }
                Want::Map => return format!("'k1' in {text}"),
                _ => {}
            }
        }
        "true".to_owned()
    }

    fn condition(&mut self, scope: &mut Vec<Variable>, depth: usize) -> String {
        if depth == 0 {
            return match self.random.below(4) {
                0 => self.random.pick(&["true", "false"]).to_owned(),
                1 => self.presence(scope),
                _ => {
                    let (text, schema) = self.reach(scope);
                    self.about(&text, &schema)
                }
            };
        }
        let below = depth - 1;
        match self.random.weighted(&[3, 3, 2, 2, 6, 4, 4, 8, 4, 3, 1, 2]) {
            0 => format!("{} && {}", self.part(scope, below), self.part(scope, below)),
            1 => format!("{} || {}", self.part(scope, below), self.part(scope, below)),
            2 => format!("!{}", self.part(scope, below)),
            3 => format!(
                "{} ? {} : {}",
                self.part(scope, below),
                self.part(scope, below),
                self.part(scope, below)
            ),
            4 => {
                let kinds = [Want::Int, Want::Text, Want::Double, Want::Time, Want::Span, Want::Int];
                let kind = kinds[self.random.below(kinds.len())];
                let operator = self.random.pick(&["<", "<=", ">", ">=", "==", "!="]);
                format!("{} {operator} {}", self.grow(kind, scope, below), self.grow(kind, scope, below))
            }
            5 => {
                let kind = self.any_want();
                let operator = self.random.pick(&["==", "!="]);
                format!("{} {operator} {}", self.grow(kind, scope, below), self.grow(kind, scope, below))
            }
            6 => self.presence(scope),
            7 => self.quantified(scope, below),
            8 => self.about_text(scope, below),
            9 => match self.random.below(3) {
                0 => {
                    format!(
                        "{} in {}",
                        self.grow(Want::Text, scope, below),
                        self.list_expression(scope, below).0
                    )
                }
                1 => {
                    format!(
                        "{} in {}",
                        self.grow(Want::Text, scope, below),
                        self.map_expression(scope, below).0
                    )
                }
                _ => {
                    let function = self.random.pick(&["contains", "equivalent", "intersects"]);
                    let (one, other) =
                        (self.list_expression(scope, below).0, self.list_expression(scope, below).0);
                    format!("sets.{function}({one}, {other})")
                }
            },
            10 => self.library_call(false),
            _ => {
                let kind = self.any_want();
                let value = self.grow(kind, scope, below);
                let name = variable(scope);
                scope.push((name.clone(), sample(kind)));
                let body = self.grow(Want::Bool, scope, below);
                scope.pop();
                format!("cel.bind({name}, {value}, {body})")
            }
        }
    }

    /// A condition that can stand beside an operator.
    fn part(&mut self, scope: &mut Vec<Variable>, depth: usize) -> String {
        let text = self.grow(Want::Bool, scope, depth);
        if self.random.chance(92) { format!("({text})") } else { text }
    }

    /// A condition about a value of a schema.
    fn about(&mut self, text: &str, schema: &Value) -> String {
        match want_of(schema) {
            Want::Bool => text.to_owned(),
            Want::Int => format!("{text} {} {}", self.random.pick(&["<", ">=", "=="]), self.random.below(9)),
            Want::Double => format!("{text} > 1.5"),
            Want::Text => self
                .random
                .pick(&["X == 'a'", "X.size() < 3", "X.startsWith('a')", "X != ''"])
                .replace('X', text),
            Want::List => self.random.pick(&["size(X) > 0", "X.size() <= 2", "X == []"]).replace('X', text),
            Want::Map => self.random.pick(&["size(X) > 0", "'a' in X", "X == {}"]).replace('X', text),
            _ => format!("{text} == {text}"),
        }
    }

    fn quantified(&mut self, scope: &mut Vec<Variable>, depth: usize) -> String {
        let macros = self.random.pick(&["all", "exists", "exists_one", "all"]);
        if self.random.chance(30) {
            let (range, values) = self.map_expression(scope, depth);
            let key = variable(scope);
            scope.push((key.clone(), json!({"type": "string"})));
            let text = if self.random.chance(40) {
                let value = variable(scope);
                scope.push((value.clone(), values));
                let body = self.grow(Want::Bool, scope, depth);
                scope.pop();
                format!("{range}.{macros}({key}, {value}, {body})")
            } else {
                let body = self.grow(Want::Bool, scope, depth);
                format!("{range}.{macros}({key}, {body})")
            };
            scope.pop();
            return text;
        }
        let (range, items) = self.list_expression(scope, depth);
        let item = variable(scope);
        if self.random.chance(15) {
            scope.push((item.clone(), json!({"type": "integer"})));
            let value = variable(scope);
            scope.push((value.clone(), items));
            let body = self.grow(Want::Bool, scope, depth);
            scope.truncate(scope.len() - 2);
            return format!("{range}.{macros}({item}, {value}, {body})");
        }
        scope.push((item.clone(), items));
        let body = self.grow(Want::Bool, scope, depth);
        scope.pop();
        format!("{range}.{macros}({item}, {body})")
    }

    fn about_text(&mut self, scope: &mut Vec<Variable>, depth: usize) -> String {
        let subject = self.grow(Want::Text, scope, depth);
        let other = self.grow(Want::Text, scope, 0);
        let templates = [
            "X.startsWith(Y)",
            "X.endsWith(Y)",
            "X.contains(Y)",
            "X.matches('^[a-z]+$')",
            "X.matches(Y)",
            "isURL(X)",
            "isIP(X)",
            "isCIDR(X)",
            "isQuantity(X)",
            "isSemver(X)",
            "X.find('[0-9]+') == Y",
            "url(X).getHost() == Y",
            "quantity(X).isGreaterThan(quantity(Y))",
            "!format.dns1123Label().validate(X).hasValue()",
            "ip(X).family() == 4",
            "cidr(X).containsIP(Y)",
            "X == Y",
            "X.split(',').all(p, p.size() < 9)",
            "optional.ofNonZeroValue(X).hasValue()",
            "optional.of(X).orValue(Y) == Y",
        ];
        fill(self.random.pick(&templates), &subject, &other)
    }
}

/// A name that is not taken.
pub(super) fn variable(scope: &[Variable]) -> String {
    format!("v{}", scope.len())
}

/// A schema of a type, where nothing more is known.
pub(super) fn sample(kind: Want) -> Value {
    match kind {
        Want::Bool => json!({"type": "boolean"}),
        Want::Int => json!({"type": "integer"}),
        Want::Double => json!({"type": "number"}),
        Want::Text => json!({"type": "string"}),
        Want::Bytes => json!({"type": "string", "format": "byte"}),
        Want::Time => json!({"type": "string", "format": "date-time"}),
        Want::Span => json!({"type": "string", "format": "duration"}),
        _ => json!({}),
    }
}

/// The type of a schema's values in expressions.
pub(super) fn want_of(schema: &Value) -> Want {
    if schema["x-kubernetes-int-or-string"] == true {
        return Want::Dyn;
    }
    match (schema["type"].as_str(), schema["format"].as_str()) {
        (Some("boolean"), _) => Want::Bool,
        (Some("integer"), _) => Want::Int,
        (Some("number"), _) => Want::Double,
        (Some("string"), Some("byte")) => Want::Bytes,
        (Some("string"), Some("date" | "date-time")) => Want::Time,
        (Some("string"), Some("duration")) => Want::Span,
        (Some("string"), _) => Want::Text,
        (Some("array"), _) => Want::List,
        (Some("object"), _) if schema["additionalProperties"].is_object() => Want::Map,
        (Some("object"), _) => Want::Object,
        _ => Want::Dyn,
    }
}

/// A template with a subject for `X` and an argument for `Y`.
pub(super) fn fill(template: &str, subject: &str, other: &str) -> String {
    let mut text = String::new();
    for character in template.chars() {
        match character {
            'X' => text.push_str(subject),
            'Y' => text.push_str(other),
            character => text.push(character),
        }
    }
    text
}
