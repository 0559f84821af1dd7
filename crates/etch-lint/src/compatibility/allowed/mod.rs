//! The values that a schema allowed at a place, as far as its own keywords tell, and whether all of them fit
//! a new one. A yes is certain; a no may be something that is not worked out, such as what a clause of
//! several implies.

mod numbers;
mod place;
mod strings;
mod values;

use serde_json::Value;

pub(super) use place::Allowed;
use place::fits;

use super::keywords::{number, text};

impl Allowed<'_> {
    /// Whether every value fits a schema without parts and clauses. Nulls are not looked at.
    pub(super) fn all_fit(&self, schema: &Value) -> bool {
        let Some(keywords) = schema.as_object() else { return false };
        if self.new_default().is_some_and(|default| fits(default, schema) != Some(true)) {
            return false;
        }
        if let Some(values) = self.values() {
            return values.iter().all(|value| fits(value, schema) == Some(true));
        }
        keywords.keys().all(|keyword| self.all_fit_keyword(keyword, schema))
    }

    fn all_fit_keyword(&self, keyword: &str, schema: &Value) -> bool {
        match keyword {
            _ if schema[keyword].is_null() || !self.is_judged_by(keyword) => true,
            "type" => self.kind() == Some(text(schema, keyword)),
            "exclusiveMinimum" | "exclusiveMaximum" => true,
            "format" if ["integer", "number"].contains(&text(schema, "type")) => {
                numbers::all_fit(self, keyword, schema)
            }
            "minimum" | "maximum" | "multipleOf" => numbers::all_fit(self, keyword, schema),
            "enum" | "format" | "pattern" | "minLength" | "maxLength" => {
                strings::all_fit(self, keyword, schema)
            }
            "minItems" | "maxItems" => self.held.iter().any(|held| {
                let limits = number(held, keyword).zip(number(schema, keyword));
                limits
                    .is_some_and(|(held, new)| if keyword == "minItems" { held >= new } else { held <= new })
            }),
            _ => false,
        }
    }

    /// Whether a keyword judges values of the type.
    fn is_judged_by(&self, keyword: &str) -> bool {
        let kinds: &[&str] = match keyword {
            "minimum" | "maximum" | "multipleOf" => &["integer", "number"],
            "minLength" | "maxLength" | "pattern" => &["string"],
            "minItems" | "maxItems" => &["array"],
            "minProperties" | "maxProperties" => &["object"],
            _ => return true,
        };
        self.kind().is_none_or(|kind| kinds.contains(&kind))
    }
}

#[cfg(test)]
mod tests;
