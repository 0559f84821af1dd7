//! A refusal in the words of the API server.
//! It must not decide what is refused.
//!
//! Source: `NewInvalid` and `field.Error` in apimachinery.

use serde_json::{Value, json};

use crate::domain::admission::Fault;

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
pub(super) fn refusal(about: About<'_>, errors: &[Fault]) -> Value {
    let About { group, kind, name } = about;
    let listed: Vec<String> =
        errors.iter().map(|fault| format!("{}: {}", fault.field, body(fault))).collect();
    let listed = match &listed[..] {
        [one] => one.clone(),
        all => format!("[{}]", all.join(", ")),
    };
    let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
    let causes = errors
        .iter()
        .map(|fault| json!({ "reason": fault.kind.as_str(), "message": body(fault), "field": fault.field }));
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

/// An error without its field.
fn body(fault: &Fault) -> String {
    let kind = fault.kind.problem();
    match &*fault.detail {
        "" => kind.to_owned(),
        // Details of schemas are in the server's words, which may begin so.
        detail if detail.starts_with(kind) => detail.to_owned(),
        detail => format!("{kind}: {detail}"),
    }
}
