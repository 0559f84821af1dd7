//! What prevents a declaration from being served.
//! For whether it compiles see `compile`.

use serde::Deserialize;
use serde_json::{Value, json};

use super::spec::Declaration;
use etch_core::patch::{Change, patch};
use kube_structural_schema::mismatch::without_values;

/// What is wrong with a declaration, and where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The field of the `EmbeddedSchema`: `spec.rules[3].rule`.
    pub field: String,
    /// What is wrong.
    pub problem: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { field, problem } = self;
        write!(f, "{field}: {problem}")
    }
}

/// How serde begins its text about a field that has to be there.
const MISSING: &str = "missing field ";

impl Declaration {
    /// Reads the `spec` of an `EmbeddedSchema`.
    ///
    /// # Errors
    /// The fields that are malformed, in words without values.
    pub fn read(spec: &Value) -> Result<Self, Vec<Problem>> {
        Self::deserialize(spec).map_err(|error| {
            let problem =
                |field: &str, problem: &str| Problem { field: field.into(), problem: problem.into() };
            let Some(fields) = spec.as_object() else { return vec![problem("spec", "must be an object")] };
            let mut found = Vec::new();
            // Field by field, since the first error of the whole has no place.
            for (name, value) in fields.iter().filter(|(name, value)| *name != "targets" || !value.is_null())
            {
                let problem = |value: &Value| {
                    let mut alone = json!({ "targets": [] });
                    alone[name] = value.clone();
                    Self::deserialize(alone).err().map(|error| without_values(&error))
                };
                narrow(value, format!("spec.{name}"), &problem, &mut found);
            }
            if spec["targets"].is_null() {
                found.push(problem("spec.targets", "names no resource"));
            }
            if found.is_empty() { vec![problem("spec", &without_values(&error))] } else { found }
        })
    }
}

/// Finds what makes a value unreadable, at the deepest place that is to blame. `problem` is what is wrong
/// with the declaration if this value stands there.
fn narrow(
    value: &Value,
    field: String,
    problem: &dyn Fn(&Value) -> Option<String>,
    found: &mut Vec<Problem>,
) {
    let Some(first) = problem(value) else { return };
    let before = found.len();
    match value {
        Value::Array(items) if problem(&Value::Array(Vec::new())).is_none() => {
            for (index, item) in items.iter().enumerate() {
                let alone = |item: &Value| problem(&Value::from(vec![item.clone()]));
                narrow(item, format!("{field}[{index}]"), &alone, found);
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
                let Some(value) = rest.remove(&name) else { break };
                let in_place = |value: &Value| {
                    let mut all = rest.clone();
                    all.insert(name.clone(), value.clone());
                    problem(&all.into())
                };
                narrow(&value, format!("{field}.{name}"), &in_place, found);
            }
        }
        _ => {}
    }
    if found.len() == before {
        found.push(Problem { field, problem: first });
    }
}

/// The fields of a declaration as it was written that have no meaning: a cluster would drop them, or refuse
/// them.
pub fn unknown_fields(spec: &Value, declared: &Declaration) -> Vec<Problem> {
    let read = serde_json::to_value(declared).unwrap_or_default();
    let is_worded = |path: &str| {
        let value = spec.pointer(path);
        value.is_some_and(|value| !value.is_null() && value.as_array().is_none_or(|items| !items.is_empty()))
    };
    let dropped = patch(spec, &read).into_iter().filter_map(|change| match change {
        Change::Remove { path } if is_worded(&path) => Some(path),
        _ => None,
    });
    let problem = |path: String| Problem {
        field: format!("spec{}", field(&path)),
        problem: "there is no such field".to_owned(),
    };
    dropped.map(problem).collect()
}

/// A JSON pointer as fields are written: `.defaults[0].wher`.
fn field(pointer: &str) -> String {
    let segment = |segment: &str| match segment.parse::<usize>() {
        Ok(index) => format!("[{index}]"),
        Err(_) => format!(".{}", segment.replace("~1", "/").replace("~0", "~")),
    };
    pointer.split('/').skip(1).map(segment).collect()
}
