//! The values themselves, where they are few.

use serde_json::{Value, json};

use super::numbers;
use super::place::{Allowed, fits};
use crate::compatibility::keywords::list;

impl Allowed<'_> {
    /// All values, where they are few and none of them has parts. A null is not among them.
    pub(super) fn values(&self) -> Option<Vec<Value>> {
        let named = self.held.iter().map(|schema| list(schema, "enum")).find(|values| !values.is_empty());
        let mut values = match (named, self.kind()) {
            (Some(values), _) => values.to_vec(),
            (None, Some("boolean")) => vec![json!(false), json!(true)],
            (None, Some("integer")) => numbers::values(self)?,
            _ => return None,
        };
        values.retain(|value| {
            !value.is_null() && self.held.iter().all(|schema| fits(value, schema) != Some(false))
        });
        (!values.iter().any(|value| value.is_object() || value.is_array())).then_some(values)
    }
}
