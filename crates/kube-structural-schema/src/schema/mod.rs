//! The schema of one CRD version, as plain data: what the API server keeps of `openAPIV3Schema`.
//! Structural rules and value validation are elsewhere.

mod error;
mod keyword;
mod lookup;
mod parse;
mod place;
mod pool;
mod properties;
pub mod rules;

use crate::json::Json;

pub use error::ParseError;
pub use lookup::DEEPEST;
pub use place::Place;
pub use pool::Pool;
pub use properties::Properties;

/// One node of a schema, at any place.
///
/// Upstream has two types: `Structural` for what is reached through `properties`, `items` and
/// `additionalProperties`, and `NestedValueValidation` for what stands under `allOf`, `anyOf`, `oneOf` and
/// `not`. They hold the same keywords, so here they are one; the structural rules find the keywords that a
/// nested node must not have.
///
/// A keyword that is `null` in the document is unset, as in Go's decoding.
#[derive(Debug, Default)]
pub struct Schema {
    /// `type`.
    pub kind: SchemaType,
    /// `nullable`.
    pub nullable: bool,
    /// `x-kubernetes-preserve-unknown-fields`; upstream refuses `false` as a schema.
    pub preserve_unknown_fields: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded_resource: bool,
    /// `x-kubernetes-int-or-string`.
    pub int_or_string: bool,
    /// Whether there is a `title`; the text is not kept.
    pub titled: bool,
    /// Whether there is a `description`; the text is not kept.
    pub described: bool,
    /// Whether anything was set beside `type`, `default` and `properties`, be it an empty list.
    ///
    /// Two of upstream's rules compare a node with an otherwise empty one, and Go distinguishes an empty list
    /// from none.
    pub adorned: bool,
    /// `default`; never `null`.
    pub default: Option<Json>,
    /// `properties`.
    pub properties: Properties<Schema>,
    /// `items`, where it is a single schema.
    pub items: Option<Box<Schema>>,
    /// `additionalProperties`.
    pub additional: Option<Additional>,
    /// `x-kubernetes-list-type`: `atomic`, `set` or `map` in an accepted CRD.
    pub list_type: Option<Box<str>>,
    /// `x-kubernetes-list-map-keys`.
    pub list_map_keys: Box<[String]>,
    /// `x-kubernetes-map-type`: `granular` or `atomic` in an accepted CRD.
    pub map_type: Option<Box<str>>,
    /// The keywords that restrict values; `None` if none of them is set.
    pub constraints: Option<Box<Constraints>>,
    /// `x-kubernetes-validations`.
    pub rules: Box<[Rule]>,
}

/// The `type` of a schema. The server decodes any text and only its rules refuse what is not listed here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SchemaType {
    /// No `type`, or an empty one.
    #[default]
    Unset,
    /// `object`
    Object,
    /// `array`
    Array,
    /// `string`
    String,
    /// `integer`
    Integer,
    /// `number`
    Number,
    /// `boolean`
    Boolean,
    /// Anything else, as it was written.
    Other(Box<str>),
}

/// `additionalProperties`.
#[derive(Debug)]
pub enum Additional {
    /// The schema of every property that has none of its own.
    Schema(Box<Schema>),
    /// Whether other properties are allowed. Pruning treats both the same: it keeps them and empties their
    /// objects.
    Bool(bool),
}

/// The keywords that restrict values and give them no structure. Empty texts and lists are unset.
#[derive(Debug, Default)]
pub struct Constraints {
    /// `format`.
    pub format: Box<str>,
    /// `pattern`, in RE2 syntax as Go's `regexp` reads it.
    pub pattern: Box<str>,
    /// `maximum`; included unless [`Self::exclusive_maximum`].
    pub maximum: Option<f64>,
    /// `exclusiveMaximum`.
    pub exclusive_maximum: bool,
    /// `minimum`; included unless [`Self::exclusive_minimum`].
    pub minimum: Option<f64>,
    /// `exclusiveMinimum`.
    pub exclusive_minimum: bool,
    /// `multipleOf`.
    pub multiple_of: Option<f64>,
    /// `maxLength`, in code points.
    pub max_length: Option<i64>,
    /// `minLength`, in code points.
    pub min_length: Option<i64>,
    /// `maxItems`.
    pub max_items: Option<i64>,
    /// `minItems`.
    pub min_items: Option<i64>,
    /// `uniqueItems`.
    pub unique_items: bool,
    /// `maxProperties`.
    pub max_properties: Option<i64>,
    /// `minProperties`.
    pub min_properties: Option<i64>,
    /// `enum`; may hold `null`.
    pub allowed: Box<[Json]>,
    /// `required`.
    pub required: Box<[String]>,
    /// `allOf`.
    pub all_of: Box<[Schema]>,
    /// `anyOf`.
    pub any_of: Box<[Schema]>,
    /// `oneOf`.
    pub one_of: Box<[Schema]>,
    /// `not`.
    pub not: Option<Box<Schema>>,
}

/// One of the `x-kubernetes-validations`. Empty texts are unset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// `rule`: the CEL expression.
    pub rule: String,
    /// `message`.
    pub message: String,
    /// `messageExpression`.
    pub message_expression: String,
    /// `reason`.
    pub reason: Option<String>,
    /// `fieldPath`: a JSON path below the rule's place.
    pub field_path: String,
    /// `optionalOldSelf`.
    pub optional_old_self: Option<bool>,
}

impl Rule {
    /// The rule as its author would know it again: its message, or else its text.
    pub fn name(&self) -> &str {
        let text = if self.message.is_empty() { &self.rule } else { &self.message };
        text.trim()
    }
}

impl Schema {
    /// The schema of the values under a key of an object: the property's, else that of
    /// `additionalProperties`.
    pub fn child(&self, key: &str) -> Option<&Self> {
        self.properties.get(key).or_else(|| self.additional_schema())
    }

    /// The schema under `additionalProperties`, if it is one.
    pub fn additional_schema(&self) -> Option<&Self> {
        match &self.additional {
            Some(Additional::Schema(schema)) => Some(schema),
            _ => None,
        }
    }
}

impl SchemaType {
    /// The text of `type`; empty where it is unset.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Unset => "",
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Other(text) => text,
        }
    }
}

impl From<&str> for SchemaType {
    fn from(text: &str) -> Self {
        match text {
            "" => Self::Unset,
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            other => Self::Other(other.into()),
        }
    }
}

#[cfg(test)]
mod tests;
