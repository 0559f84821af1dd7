//! Mutating and validating admission: webhooks that change what is written, or refuse it.
//!
//! They run after the owners of a write are known, so what they set is owned by none; and after a change of
//! theirs the server fills in defaults once more (fact D13).

use serde_json::{Value, json};

/// The value of `.spec.size` of which a webhook refuses what Etch sends.
pub const REFUSED: i64 = 7;

/// What a webhook makes of the objects of a CRD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It sets a note where there is none, and another value in place of a default.
    Sets,
    /// It changes the note with every write.
    Counts,
    /// It refuses what Etch sends for objects with a certain value.
    Refuses,
}

impl Admission {
    /// Changes an object at the version of the request; whether it did.
    pub fn change(self, object: &mut Value) -> bool {
        let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return false };
        match self {
            Self::Sets => {
                let other = match spec.get("size").and_then(Value::as_i64) {
                    Some(1) => Some(2),
                    Some(5) => Some(6),
                    _ => None,
                };
                if let Some(size) = other {
                    spec.insert("size".to_owned(), json!(size));
                }
                let has_no_note = !spec.contains_key("note");
                if has_no_note {
                    spec.insert("note".to_owned(), json!("set"));
                }
                other.is_some() || has_no_note
            }
            Self::Counts => {
                let count = spec.get("note").and_then(Value::as_str).and_then(|note| note.parse().ok());
                spec.insert("note".to_owned(), json!((count.unwrap_or(0_u64) + 1).to_string()));
                true
            }
            Self::Refuses => false,
        }
    }

    /// Whether it refuses a write of Etch's to an object that holds this.
    pub fn refuses(self, value: &Value) -> bool {
        self == Self::Refuses && value["spec"]["size"] == json!(REFUSED)
    }
}
