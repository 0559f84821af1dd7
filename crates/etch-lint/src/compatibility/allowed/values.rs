//! The values themselves, where they are few.

use serde_json::{Value, json};

use super::numbers;
use super::place::{Allowed, fits};
use crate::compatibility::keywords::list;

impl Allowed<'_> {
    /// All values but null, where they are few and none of them has parts.
    pub(super) fn values(&self) -> Option<Vec<Value>> {
        let named = self.held.iter().map(|schema| list(schema, "enum")).find(|values| !values.is_empty());
        // The server converts a value to the type of what it is compared with: 97 is in an enum of "a".
        let is_own: fn(&Value) -> bool = match self.kind()? {
            "string" => Value::is_string,
            "boolean" => Value::is_boolean,
            "integer" => |value| value.is_i64() || value.is_u64(),
            _ => return None,
        };
        let mut values: Vec<Value> = match (named, self.kind()?) {
            (Some(values), _) => values.iter().filter(|value| !value.is_null()).cloned().collect(),
            (None, "boolean") => vec![json!(false), json!(true)],
            (None, "integer") => numbers::values(self)?,
            _ => return None,
        };
        if !values.iter().all(is_own) {
            return None;
        }
        if self.kind() == Some("integer") {
            // A manifest may have 1.0, which is compared as it is with a limit that is cut for 1.
            let floats: Vec<_> = values.iter().filter_map(Value::as_f64).map(|value| json!(value)).collect();
            values.extend(floats);
        }
        values.retain(|value| self.held.iter().all(|schema| fits(value, schema) != Some(false)));
        Some(values)
    }
}
