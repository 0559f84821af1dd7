//! Expressions outside a schema: conditions, rules, messages and computed values over variables that their
//! author declares.
//!
//! The language is that of rules, checked and evaluated by the same code. Two things differ: literals of
//! lists and maps may mix types, as a computed value often has to, and a variable without a schema is `dyn`.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Number, Value as Json};

use kube_structural_schema::schema::Schema;

use super::check::{Checked, Global, Globals, Reference, check};
use super::compare::items;
use super::data::read;
use super::estimate::{self, Roots, Sizes};
use super::eval::{Inputs, evaluate};
use super::fault::{Fault, Outcome};
use super::library::{Library, to_text};
use super::literals;
use super::model::Node;
use super::plan::Plan;
use super::problem::Problem;
use super::syntax;
use super::types::Type;
use super::value::{Key, Value};

/// How many characters, items or entries a value without a limit is taken to have by
/// [`Expression::max_cost`]: so few that going through a list once is within the budget of a request, and so
/// many that going through it for each of its items is not.
pub const ASSUMED: u64 = 2_000;

/// The variables that expressions may name, with the types of their values.
#[derive(Debug, Default)]
pub struct Variables {
    /// By name, with the place of the node that describes it.
    named: Vec<(Box<str>, usize)>,
    nodes: Vec<Node>,
}

/// What an expression has to give. One whose type is only known at run time will do for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// `true` or `false`.
    Bool,
    /// A text.
    Text,
    /// An object or a map, null, or an optional one.
    Object,
    /// Any value that JSON can hold, or an optional one.
    Any,
}

/// An expression that was checked, ready to be evaluated.
#[derive(Debug)]
pub struct Expression {
    plan: Plan,
    used: Box<[bool]>,
    max_cost: u64,
}

/// Why an expression has no value. It may quote a key, and so never belongs into a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvaluationError {
    text: Cow<'static, str>,
    misfit: bool,
    too_expensive: bool,
}

impl Variables {
    /// No variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds variables whose values a schema describes. They are of one type, so expressions can compare them.
    ///
    /// A resource root has `apiVersion`, `kind` and the names in `metadata` whatever its schema declares.
    #[must_use]
    pub fn described(mut self, names: &[&str], schema: &Schema, is_resource_root: bool) -> Self {
        self.nodes.push(Node::new(schema, is_resource_root));
        self.name(names)
    }

    /// Adds variables of which nothing is known.
    #[must_use]
    pub fn dynamic(mut self, names: &[&str]) -> Self {
        self.nodes.push(Node::dynamic());
        self.name(names)
    }

    /// Adds a variable that is an object of these fields and no others; their values have no declared types.
    #[must_use]
    pub fn object(mut self, name: &str, fields: &[&str]) -> Self {
        self.nodes.push(Node::of_fields(fields));
        self.name(&[name])
    }

    fn name(mut self, names: &[&str]) -> Self {
        let node = self.nodes.len() - 1;
        self.named.extend(names.iter().map(|name| ((*name).into(), node)));
        self
    }

    /// The place of a variable, by which values are given.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.named.iter().position(|(known, _)| **known == *name)
    }
}

impl Expression {
    /// Checks an expression.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn compile(source: &str, variables: &Variables, wanted: Wanted) -> Result<Self, String> {
        let named = variables.named.iter();
        let named =
            named.map(|(name, node)| (name.clone(), Type::of_node(&variables.nodes[*node]))).collect();
        let globals = Globals { current: Type::Dyn, old: Type::Dyn, named };
        let tree = syntax::parse(source, Library::ALL).map_err(reported)?;
        let checked = check(source, &tree, &globals, Library::ALL).map_err(reported)?;
        if let Some(name) = undeclared(&checked) {
            return Err(format!("undeclared reference to '{name}'"));
        }
        let wrong = literals::check_mixed(source, &tree, &checked);
        if !wrong.is_empty() {
            return Err(reported(wrong));
        }
        let given = checked.types[tree.root.index()].clone().unwrap_or(Type::Dyn);
        let expected = match wanted {
            Wanted::Bool => Some(Type::Bool),
            Wanted::Text => Some(Type::String),
            Wanted::Object if !may_be_object(&given) => {
                return Err(format!("the expression must evaluate to an object, not to {given}"));
            }
            Wanted::Object | Wanted::Any => None,
        };
        if let Some(expected) = expected.filter(|ty| !ty.is(&given) && !matches!(given, Type::Dyn)) {
            return Err(format!("the expression must evaluate to {expected}, not to {given}"));
        }
        let plan = Plan::new(&tree, &checked)?;
        let mut used = vec![false; variables.named.len()];
        for (reference, _) in checked.references.iter().zip(&checked.types).filter(|(_, ty)| ty.is_some()) {
            if let Reference::Global(Global::Named(place)) = reference {
                used[*place] = true;
            }
        }
        let sizes =
            Sizes { of: Roots::Variables(&variables.named, &variables.nodes), assumed: Some(ASSUMED) };
        let max_cost = estimate::max_cost(&tree, &checked, sizes, u32::MAX);
        Ok(Self { plan, used: used.into(), max_cost })
    }

    /// The most that one evaluation may cost, in the units of [`crate::RUNTIME_BUDGET`]: the estimate that
    /// the server makes of rules, by the limits of schemas. What has no limit is taken to have [`ASSUMED`]
    /// elements.
    pub fn max_cost(&self) -> u64 {
        self.max_cost
    }

    /// Whether it names the variable at this place.
    pub fn uses(&self, place: usize) -> bool {
        self.used.get(place).copied().unwrap_or_default()
    }

    /// Evaluates it to a truth, and returns what that cost. `values` are those of the variables it was
    /// compiled with, by their places; one that is `None` is absent, and naming it is an error.
    pub fn holds(
        &self,
        variables: &Variables,
        values: &[Option<&Json>],
    ) -> (Result<bool, EvaluationError>, u64) {
        self.evaluate(variables, values, |value| match value {
            Value::Bool(holds) => Ok(holds),
            _ => Err(Fault::NoOverload),
        })
    }

    /// Evaluates it to a text, and returns what that cost.
    pub fn text(
        &self,
        variables: &Variables,
        values: &[Option<&Json>],
    ) -> (Result<String, EvaluationError>, u64) {
        self.evaluate(variables, values, |value| match value {
            Value::String(text) => Ok(text.as_str().to_owned()),
            _ => Err(Fault::NoOverload),
        })
    }

    /// Evaluates it to a value, and returns what that cost. An optional without a value is `None`.
    pub fn value(
        &self,
        variables: &Variables,
        values: &[Option<&Json>],
    ) -> (Result<Option<Json>, EvaluationError>, u64) {
        self.evaluate(variables, values, |value| to_json(&value))
    }

    fn evaluate<'v, T>(
        &self,
        variables: &'v Variables,
        values: &[Option<&'v Json>],
        take: impl FnOnce(Value<'v>) -> Outcome<T>,
    ) -> (Result<T, EvaluationError>, u64) {
        let read_used = |((used, value), (_, node)): ((&bool, &Option<&'v Json>), &(_, usize))| {
            value.filter(|_| *used).map(|value| read(value, &variables.nodes[*node]))
        };
        let named = self.used.iter().zip(values).zip(&variables.named).map(read_used).collect();
        let inputs = Inputs { current: Ok(Value::Null), old: None, named };
        let (result, cost) = evaluate(&self.plan, &inputs);
        (result.and_then(take).map_err(EvaluationError::from), cost)
    }
}

impl EvaluationError {
    /// Whether it is because a value does not fit its schema.
    pub fn is_misfit(&self) -> bool {
        self.misfit
    }

    /// Whether it is because it costs more than the API server allows one expression.
    pub fn is_too_expensive(&self) -> bool {
        self.too_expensive
    }
}

impl From<Fault> for EvaluationError {
    fn from(fault: Fault) -> Self {
        let (misfit, too_expensive) = (fault.is_misfit(), matches!(fault, Fault::TooExpensive));
        let text = match fault {
            Fault::Failed(failure) => failure.plain,
            other => other.to_string().into(),
        };
        Self { text, misfit, too_expensive }
    }
}

/// Whether a value of a type may be an object, or nothing at all.
fn may_be_object(ty: &Type<'_>) -> bool {
    let (ty, _) = ty.unwrap_optional();
    matches!(ty, Type::Dyn | Type::Null | Type::Map(_) | Type::Mapping(_) | Type::Object(_))
}

/// Problems in one line.
fn reported(problems: Vec<Problem>) -> String {
    problems.into_iter().map(|problem| problem.text).collect::<Vec<_>>().join("; ")
}

/// `self` or `oldSelf` if no declaration names them: outside a schema's rule they stand for nothing.
fn undeclared(checked: &Checked<'_>) -> Option<&'static str> {
    checked.references.iter().find_map(|reference| match reference {
        Reference::Global(Global::Current) => Some("self"),
        Reference::Global(Global::Old) => Some("oldSelf"),
        _ => None,
    })
}

/// The JSON that a value is; `None` if it is an optional without one.
fn to_json(value: &Value<'_>) -> Outcome<Option<Json>> {
    Ok(Some(match value {
        Value::Null => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Int(value) => Json::from(*value),
        Value::Uint(value) => Json::from(*value),
        Value::Double(value) => {
            Number::from_f64(*value).map(Json::Number).ok_or(Fault::new("a number that JSON cannot hold"))?
        }
        Value::Bytes(_) => return Err(Fault::new("bytes are no value that JSON can hold")),
        Value::List(_) | Value::Array(_) => {
            let mut list = Vec::new();
            for item in items(value)? {
                list.extend(to_json(&item?)?);
            }
            Json::Array(list)
        }
        Value::Map(map) => {
            let mut fields = Map::new();
            for (key, value) in map.iter() {
                if let Some(value) = to_json(value)? {
                    fields.insert(to_name(key)?, value);
                }
            }
            Json::Object(fields)
        }
        Value::Object(object) => {
            let fields = object.fields.iter();
            Json::Object(fields.map(|(name, value)| (name.clone(), value.clone())).collect())
        }
        Value::Untyped(json) => (*json).clone(),
        Value::Misfit(fault) => return Err(fault.clone()),
        Value::Optional(None) => return Ok(None),
        Value::Optional(Some(value)) => return to_json(value),
        other => Json::String(to_text(other)?),
    }))
}

/// The name of a field that a map's key is.
fn to_name(key: &Key) -> Outcome<String> {
    to_text(&key.to_value())
}

impl fmt::Display for EvaluationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for EvaluationError {}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn variables() -> Variables {
        let schema = json!({ "type": "object", "properties": {
            "size": { "type": "integer" }, "name": { "type": "string" },
            "code": { "type": "string", "maxLength": 4 },
            "many": { "type": "array", "maxItems": 50_000, "items": { "type": "integer" } },
            "codes": { "type": "array", "maxItems": 5, "items": { "type": "string", "maxLength": 4 } },
            "parts": {
                "type": "array", "items": { "type": "object", "properties": { "n": { "type": "integer" } } },
            },
        }});
        Variables::new()
            .described(&["self", "oldSelf"], &Schema::parse(&schema).expect("a schema"), false)
            .dynamic(&["object"])
            .object("facts", &["id", "zone"])
    }

    fn value(source: &str) -> Result<Option<Json>, String> {
        let variables = variables();
        let expression = Expression::compile(source, &variables, Wanted::Any)?;
        let own = json!({ "size": 3, "parts": [{ "n": 1 }, { "n": 2 }], "x": 1 });
        let object = json!({ "a": { "b": [1, 2.5, "c", null, { "d": true }] }, "self": own });
        let facts = json!({ "id": "demo" });
        let values = [Some(&own), None, Some(&object), Some(&facts)];
        expression.value(&variables, &values).0.map_err(|error| error.to_string())
    }

    #[test]
    fn values_of_every_kind_are_given() {
        for (source, expected) in [
            ("facts.id + '-vnet'", json!("demo-vnet")),
            (
                "{'boot': true, 'size': 128, 'name': facts.id}",
                json!({"boot": true, "size": 128, "name": "demo"}),
            ),
            ("[1, 'a', 2.5, null]", json!([1, "a", 2.5, null])),
            ("self.parts.map(p, p.n + 1)", json!([2, 3])),
            ("self", json!({ "size": 3, "parts": [{ "n": 1 }, { "n": 2 }], "x": 1 })),
            ("facts.?zone.orValue(facts.id)", json!("demo")),
            ("object.a.b", json!([1, 2.5, "c", null, { "d": true }])),
            ("object.a.b[4].d && object.a.b[0] == 1", json!(true)),
            ("object.?a.?missing.orValue('none')", json!("none")),
            ("object.a.b.exists(i, i == 'c')", json!(true)),
            ("size(object.a.b) + self.size", json!(8)),
            ("type(object.a.b[1]) == double", json!(true)),
            ("duration('90s')", json!("90s")),
            ("{?'x': self.?name, 'y': self.?size}", json!({ "y": 3 })),
            ("'a' in object && has(object.a.b) && !has(object.a.c)", json!(true)),
        ] {
            assert_eq!(value(source), Ok(Some(expected)), "{source}");
        }
        assert_eq!(value("self.?name"), Ok(None));
    }

    #[test]
    fn what_is_wrong_is_found_when_it_is_compiled_where_types_are_known() {
        for source in ["self.sise", "self.size + 'a'", "unknown", "oldSelf.", "facts.id +", "facts.ids"] {
            assert!(Expression::compile(source, &variables(), Wanted::Any).is_err(), "{source}");
        }
        assert!(Expression::compile("self.size", &variables(), Wanted::Bool).is_err());
        assert!(Expression::compile("self", &Variables::new(), Wanted::Any).is_err());
        assert!(Expression::compile("object.x", &variables(), Wanted::Bool).is_ok());
        for (source, fits) in [
            ("self", true),
            ("{'a': 1}", true),
            ("object.x", true),
            ("null", true),
            ("self.?parts[0]", true),
            ("self.name", false),
            ("self.?name", false),
            ("[{}]", false),
        ] {
            assert_eq!(Expression::compile(source, &variables(), Wanted::Object).is_ok(), fits, "{source}");
        }
    }

    #[test]
    fn what_an_expression_may_cost_depends_on_what_is_known_of_its_variables() {
        let cost =
            |source: &str| Expression::compile(source, &variables(), Wanted::Any).expect(source).max_cost();
        let budget = crate::RUNTIME_BUDGET.cast_unsigned();
        assert!(cost("self.name + 'x'") > cost("self.code + 'x'"));
        assert_eq!(cost("self.size + 1"), cost("self.size + 2"));
        for list in ["self.parts", "self.codes", "object.a", "facts.?id.orValue([])"] {
            let once = cost(&format!("{list}.all(a, [a].size() == 1)"));
            let nested = cost(&format!("{list}.all(a, {list}.all(b, a == b))"));
            assert!(once < budget, "{list}: {once}");
            assert_eq!(nested > budget, list != "self.codes", "{list}: {nested}");
        }
        // A limit that is larger than what is assumed counts.
        assert!(cost("self.many.all(a, a > 0)") > cost("self.parts.all(a, a.n > 0)"));
    }

    #[test]
    fn what_fails_says_why() {
        assert_eq!(value("object.nothing"), Err("no such key: nothing".to_owned()));
        assert_eq!(value("oldSelf.size"), Err("no such attribute(s)".to_owned()));
        assert_eq!(value("facts.id + 1"), Err("no such overload".to_owned()));
    }

    #[test]
    fn an_expression_knows_what_it_names() {
        let variables = variables();
        let uses = |source: &str, name: &str| {
            let expression = Expression::compile(source, &variables, Wanted::Any).expect(source);
            expression.uses(variables.place(name).expect("a variable"))
        };
        assert!(uses("self == oldSelf", "oldSelf") && !uses("self.size", "oldSelf"));
        assert!(!uses("[1].all(oldSelf, oldSelf > 0)", "oldSelf"));
    }
}
