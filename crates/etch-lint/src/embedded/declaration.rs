//! ETCH201 and ETCH202: what keeps a declaration from being served.

use serde_json::Value;

use super::super::rule::{Finding, Rule, Severity};
use super::at::at;
use super::targets::TWICE;
use etch_admission::{Declaration, Problem, unknown_fields};
use kube_structural_schema::mismatch::without_values;

pub(super) const MALFORMED: Rule = Rule {
    code: "ETCH201",
    name: "embedded-malformed",
    severity: Severity::Error,
    summary: "an EmbeddedSchema cannot be served",
    help: "\
A field of the EmbeddedSchema is unknown or malformed: a path that cannot be parsed, a fact without a value, a schema
that is not structural or has an invalid default, a resource that no target has. The operator goes on serving the last
generation that it can serve, and reports Ready=False.

Correct the field that the finding names.",
    check: None,
};

pub(super) const EXPRESSION: Rule = Rule {
    code: "ETCH202",
    name: "embedded-expression",
    severity: Severity::Error,
    summary: "an expression of an EmbeddedSchema does not compile",
    help: "\
An expression uses a name that does not exist, mixes types, or is not CEL. The fields of `self` and `item` are those of the
schema, and `facts` has only the declared facts, so this rule finds a mistyped name before any request.

The functions are those of CRD validation rules in Kubernetes 1.37. Etch does not serve such a generation.",
    check: None,
};

/// The fields that hold expressions.
const EXPRESSIONS: [&str; 7] = [
    ".rule",
    ".value",
    ".when",
    ".messageExpression",
    ".namespace",
    ".expression",
    ".x-kubernetes-validations",
];

/// How serde begins its text about a field that has to be there.
const MISSING: &str = "missing field ";

/// What no generation of the operator can read.
pub(super) fn unreadable(spec: &Value, found: &mut Vec<Finding>) {
    if !spec.is_object() {
        found.push(at(&MALFORMED, "spec", "must be an object"));
        return;
    }
    // Field by field, since the first error of the whole has no place.
    let known = serde_json::json!({ "targets": [] });
    for (name, value) in spec.as_object().into_iter().flatten() {
        let problem = |value: &Value| {
            let mut alone = known.clone();
            alone[name] = value.clone();
            serde_json::from_value::<Declaration>(alone).err().map(|error| without_values(&error))
        };
        narrow(value, format!("spec.{name}"), &problem, found);
    }
    if spec["targets"].is_null() {
        found.push(at(&MALFORMED, "spec.targets", "names no resource"));
    }
}

/// Reports what makes a value unreadable at the deepest place that is to blame. `problem` is what is wrong with
/// the declaration if this value stands there.
fn narrow(
    value: &Value,
    place: String,
    problem: &dyn Fn(&Value) -> Option<String>,
    found: &mut Vec<Finding>,
) {
    let Some(first) = problem(value) else { return };
    let before = found.len();
    match value {
        Value::Array(items) if problem(&Value::Array(Vec::new())).is_none() => {
            for (index, item) in items.iter().enumerate() {
                let alone = |item: &Value| problem(&Value::from(vec![item.clone()]));
                narrow(item, format!("{place}[{index}]"), &alone, found);
            }
        }
        Value::Object(fields) => {
            let mut rest = fields.clone();
            while let Some(wrong) = problem(&rest.clone().into()) {
                let is_to_blame = |name: &&String| {
                    let mut others = rest.clone();
                    others.remove(*name);
                    let without = problem(&others.into());
                    let is_needed =
                        wrong.starts_with(MISSING) && without == Some(format!("{MISSING}`{name}`"));
                    without.as_ref() != Some(&wrong) && !is_needed
                };
                let Some(name) = rest.keys().find(is_to_blame).cloned() else { break };
                let Some(field) = rest.remove(&name) else { break };
                let in_place = |field: &Value| {
                    let mut all = rest.clone();
                    all.insert(name.clone(), field.clone());
                    problem(&all.into())
                };
                narrow(&field, format!("{place}.{name}"), &in_place, found);
            }
        }
        _ => {}
    }
    if found.len() == before {
        found.push(at(&MALFORMED, place, first));
    }
}

/// What is wrong with a declaration that can be read; what keeps it from being compiled is `broken`.
pub(super) fn check(
    spec: &Value,
    declared: &Declaration,
    broken: Option<&Vec<Problem>>,
    found: &mut Vec<Finding>,
) {
    let unknown = unknown_fields(spec, declared);
    for Problem { field, problem } in unknown.iter().chain(broken.into_iter().flatten()) {
        let is_expression = EXPRESSIONS.iter().any(|end| field.ends_with(end));
        let target = field.strip_prefix("spec.targets[").and_then(|rest| rest.strip_suffix(']'));
        let is_target = target.is_some_and(|index| index.parse::<usize>().is_ok());
        let rule = match (is_expression, is_target) {
            (true, _) => &EXPRESSION,
            (_, true) => &TWICE,
            _ => &MALFORMED,
        };
        found.push(at(rule, field, problem));
    }
}
