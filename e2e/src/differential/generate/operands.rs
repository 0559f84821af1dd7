//! The operands of grown expressions: numbers, texts, lists and maps.
//! `expressions` grows the conditions.

use serde_json::{Value, json};

use super::Generator;
use super::expressions::{Variable, Want, fill, sample, variable, want_of};

impl Generator<'_> {
    pub(super) fn integer_expression(&mut self, scope: &mut Vec<Variable>, depth: usize) -> String {
        if depth == 0 {
            return self.random.pick(&["0", "1", "2", "10", "-1", "65536", "9223372036854775807"]).to_owned();
        }
        let below = depth - 1;
        match self.random.below(11) {
            0 | 1 => {
                let operator = self.random.pick(&["+", "-", "*", "/", "%"]);
                format!(
                    "({} {operator} {})",
                    self.grow(Want::Int, scope, below),
                    self.grow(Want::Int, scope, below)
                )
            }
            2 => format!("size({})", self.grow(Want::Text, scope, below)),
            3 => format!("{}.size()", self.list_expression(scope, below).0),
            4 => format!("size({})", self.map_expression(scope, below).0),
            5 => {
                let (subject, other) = (self.grow(Want::Text, scope, below), self.grow(Want::Text, scope, 0));
                fill(self.random.pick(&["X.indexOf(Y)", "X.lastIndexOf(Y)", "int(X)"]), &subject, &other)
            }
            6 => {
                let (list, _) = self.list_expression(scope, below);
                let item = variable(scope);
                let function = self.random.pick(&["sum", "min", "max"]);
                format!("{list}.map({item}, 1).{function}()")
            }
            7 => format!("{}.getFullYear()", self.grow(Want::Time, scope, below)),
            8 => format!("{}.getSeconds()", self.grow(Want::Span, scope, below)),
            9 => format!("(-{})", self.grow(Want::Int, scope, below)),
            _ => format!(
                "({} ? {} : {})",
                self.grow(Want::Bool, scope, below),
                self.grow(Want::Int, scope, below),
                self.grow(Want::Int, scope, below)
            ),
        }
    }

    pub(super) fn double_expression(&mut self, scope: &mut Vec<Variable>, depth: usize) -> String {
        if depth == 0 || self.random.chance(30) {
            return self.random.pick(&["0.0", "1.5", "-2.5", "1e308"]).to_owned();
        }
        let (one, other) =
            (self.grow(Want::Int, scope, depth - 1), self.grow(Want::Double, scope, depth - 1));
        fill(
            self.random.pick(&[
                "double(X)",
                "(double(X) * Y)",
                "(Y / 3.0)",
                "math.least(Y, 1.0)",
                "double('1.5')",
                "quantity('1k').asApproximateFloat()",
            ]),
            &one,
            &other,
        )
    }

    pub(super) fn text_expression(&mut self, scope: &mut Vec<Variable>, depth: usize) -> String {
        if depth == 0 {
            return self
                .random
                .pick(&["'a'", "''", "'abc'", "'x,y'", "'é'", "'10.0.0.1'", "'1Gi'"])
                .to_owned();
        }
        let below = depth - 1;
        let subject = self.grow(Want::Text, scope, below);
        match self.random.below(6) {
            0 => format!("string({})", self.grow(Want::Int, scope, below)),
            1 => {
                let (list, _) = self.list_expression(scope, below);
                let item = variable(scope);
                format!("{list}.map({item}, 'a').join({subject})")
            }
            2 => format!(
                "({} ? {subject} : {})",
                self.grow(Want::Bool, scope, below),
                self.grow(Want::Text, scope, below)
            ),
            3 => {
                let kind = self.any_want();
                format!("'%s'.format([{}])", self.grow(kind, scope, below))
            }
            _ => {
                let other = self.grow(Want::Text, scope, 0);
                let templates = [
                    "(X + Y)",
                    "X.lowerAscii()",
                    "X.upperAscii()",
                    "X.replace('a', Y)",
                    "X.replace(Y, 'abc', 3)",
                    "X.substring(1)",
                    "X.substring(0, 2)",
                    "X.split(',')[0]",
                    "X.trim()",
                    "X.charAt(0)",
                    "X.find('[a-z]+')",
                    "X.reverse()",
                    "string(X)",
                    "url(X).getHostname()",
                    "string(ip(X))",
                    "X.split(Y, 2)[1]",
                ];
                fill(self.random.pick(&templates), &subject, &other)
            }
        }
    }

    /// A list, and the schema of its items.
    pub(super) fn list_expression(&mut self, scope: &mut Vec<Variable>, depth: usize) -> (String, Value) {
        if self.random.chance(if depth == 0 { 80 } else { 60 }) {
            for _ in 0..5 {
                let (text, schema) = self.reach(scope);
                if want_of(&schema) == Want::List {
                    return (text, schema["items"].clone());
                }
            }
        }
        let text = || json!({"type": "string"});
        if depth == 0 {
            return match self.random.below(3) {
                0 => ("[1, 2, 3]".to_owned(), json!({"type": "integer"})),
                1 => ("['a', 'b']".to_owned(), text()),
                _ => ("[]".to_owned(), json!({})),
            };
        }
        let below = depth - 1;
        match self.random.below(9) {
            0 => (format!("{}.split(',')", self.grow(Want::Text, scope, below)), text()),
            1 => (format!("{}.findAll('[a-z]+')", self.grow(Want::Text, scope, below)), text()),
            2 => {
                let (list, items) = self.list_expression(scope, below);
                let item = variable(scope);
                scope.push((item.clone(), items.clone()));
                let body = self.grow(Want::Bool, scope, below);
                scope.pop();
                (format!("{list}.filter({item}, {body})"), items)
            }
            3 => {
                let (list, items) = self.list_expression(scope, below);
                let item = variable(scope);
                scope.push((item.clone(), items));
                let kinds = [Want::Int, Want::Text, Want::Bool];
                let kind = kinds[self.random.below(kinds.len())];
                let body = self.grow(kind, scope, below);
                scope.pop();
                (format!("{list}.map({item}, {body})"), sample(kind))
            }
            4 => {
                let (map, _) = self.map_expression(scope, below);
                let key = variable(scope);
                (format!("{map}.map({key}, {key})"), text())
            }
            5 => {
                let (list, items) = self.list_expression(scope, below);
                let function = self.random.pick(&[
                    "slice(0, 1)",
                    "distinct()",
                    "sort()",
                    "reverse()",
                    "flatten()",
                    "slice(1, 0)",
                ]);
                (format!("{list}.{function}"), items)
            }
            6 => {
                let (one, items) = self.list_expression(scope, below);
                let (other, _) = self.list_expression(scope, below);
                (format!("({one} + {other})"), items)
            }
            7 => ("lists.range(3)".to_owned(), json!({"type": "integer"})),
            _ => {
                let (one, other) = (self.grow(Want::Text, scope, below), self.grow(Want::Text, scope, below));
                (format!("[{one}, {other}]"), text())
            }
        }
    }

    /// A map, and the schema of its values.
    pub(super) fn map_expression(&mut self, scope: &mut Vec<Variable>, depth: usize) -> (String, Value) {
        for _ in 0..4 {
            let (text, schema) = self.reach(scope);
            if want_of(&schema) == Want::Map {
                return (text, schema["additionalProperties"].clone());
            }
        }
        if depth == 0 {
            return ("{'a': 1}".to_owned(), json!({"type": "integer"}));
        }
        let (list, _) = self.list_expression(scope, depth - 1);
        let item = variable(scope);
        let value = self.grow(Want::Int, scope, depth - 1);
        match self.random.below(3) {
            0 => (format!("{list}.transformMap(i, {item}, {value})"), json!({"type": "integer"})),
            1 => (format!("{{'a': {value}}}"), json!({"type": "integer"})),
            _ => (format!("{list}.transformMapEntry(i, {item}, {{i: {item}}})"), json!({})),
        }
    }
}
