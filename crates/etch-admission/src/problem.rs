//! What prevents a declaration from being served.
//! For whether it compiles see `compile`.

use serde_json::Value;

use super::spec::Declaration;
use etch_core::patch::{Change, patch};

/// What is wrong with a declaration, and where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The field of the `EmbeddedSchema`: `spec.rules[3].rule`.
    pub field: String,
    /// What is wrong.
    pub problem: String,
}

/// The fields of a declaration as it was written that have no meaning: a cluster would drop them, or refuse
/// them.
pub fn unknown_fields(spec: &Value, declared: &Declaration) -> Vec<Problem> {
    let read = serde_json::to_value(declared).unwrap_or_default();
    let is_said = |path: &str| {
        let value = spec.pointer(path);
        value.is_some_and(|value| !value.is_null() && value.as_array().is_none_or(|items| !items.is_empty()))
    };
    let dropped = patch(spec, &read).into_iter().filter_map(|change| match change {
        Change::Remove { path } if is_said(&path) => Some(path),
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
