//! A refusal in the words of the API server.
//!
//! Source: `NewInvalid` and `field.Error` in apimachinery.

use serde_json::{Value, json};

use crate::answer::FieldError;

/// The object that is refused.
#[derive(Clone, Copy, Debug)]
pub(super) struct About<'r> {
    /// The group of its kind; empty for the core group.
    pub(super) group: &'r str,
    pub(super) kind: &'r str,
    /// Empty where the API server is to make one up.
    pub(super) name: &'r str,
}

/// What the API server itself answers to an object that is invalid.
pub(super) fn refusal(about: About<'_>, errors: &[FieldError]) -> Value {
    let About { group, kind, name } = about;
    let listed: Vec<String> =
        errors.iter().map(|error| format!("{}: {}", error.field, error.body())).collect();
    let listed = match &listed[..] {
        [one] => one.clone(),
        all => format!("[{}]", all.join(", ")),
    };
    let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
    let causes = errors
        .iter()
        .map(|error| json!({ "reason": error.kind.as_str(), "message": error.body(), "field": error.field }));
    json!({
        "apiVersion": "v1",
        "kind": "Status",
        "metadata": {},
        "status": "Failure",
        "message": format!("{qualified} {name:?} is invalid: {listed}"),
        "reason": "Invalid",
        "details": { "name": name, "group": group, "kind": kind, "causes": causes.collect::<Vec<_>>() },
        "code": 422,
    })
}
