//! A schema as a CRD states it, with all the keywords that its type has, the forbidden ones too.
//! The server's further checks are on `kube_structural_schema::Schema`.
//!
//! Source: apiextensions-apiserver `pkg/apis/apiextensions/types_jsonschema.go` and `v1/marshal.go`.

use serde_json::Value;

use super::malformed::Malformed;
use super::read::{Fields, Read};
use crate::allowed::is_same;
use kube_structural_schema::schema::{Place, Rule};

/// `JSONSchemaProps`.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Props<'d> {
    /// Where all of it was read from; what is equal in all else is the same schema.
    pub(super) document: Document<'d>,
    pub(super) id: &'d str,
    pub(super) schema: &'d str,
    pub(super) reference: Option<&'d str>,
    pub(super) description: &'d str,
    pub(super) kind: &'d str,
    pub(super) nullable: bool,
    pub(super) format: &'d str,
    pub(super) title: &'d str,
    pub(super) default: Option<Literal<'d>>,
    pub(super) maximum: Option<f64>,
    pub(super) exclusive_maximum: bool,
    pub(super) minimum: Option<f64>,
    pub(super) exclusive_minimum: bool,
    pub(super) max_length: Option<i64>,
    pub(super) min_length: Option<i64>,
    pub(super) pattern: &'d str,
    pub(super) max_items: Option<i64>,
    pub(super) min_items: Option<i64>,
    pub(super) unique_items: bool,
    pub(super) multiple_of: Option<f64>,
    pub(super) allowed: Given<Vec<Literal<'d>>>,
    pub(super) max_properties: Option<i64>,
    pub(super) min_properties: Option<i64>,
    pub(super) required: Given<Vec<&'d str>>,
    pub(super) items: Option<Items<'d>>,
    pub(super) all_of: Given<Vec<Props<'d>>>,
    pub(super) one_of: Given<Vec<Props<'d>>>,
    pub(super) any_of: Given<Vec<Props<'d>>>,
    pub(super) not: Option<Box<Props<'d>>>,
    pub(super) properties: Given<Vec<(&'d str, Props<'d>)>>,
    pub(super) additional_properties: Option<Additional<'d>>,
    pub(super) pattern_properties: Given<Vec<(&'d str, Props<'d>)>>,
    pub(super) dependencies: Given<Vec<(&'d str, Dependency<'d>)>>,
    pub(super) additional_items: Option<Additional<'d>>,
    pub(super) definitions: Given<Vec<(&'d str, Props<'d>)>>,
    pub(super) external_docs: Option<(&'d str, &'d str)>,
    pub(super) example: Option<Literal<'d>>,
    pub(super) preserve_unknown_fields: Option<bool>,
    pub(super) embedded_resource: bool,
    pub(super) int_or_string: bool,
    pub(super) list_map_keys: Given<Vec<&'d str>>,
    pub(super) list_type: Option<&'d str>,
    pub(super) map_type: Option<&'d str>,
    pub(super) rules: Given<Vec<Rule>>,
}

/// The document of a schema. All are equal.
#[derive(Clone, Copy, Debug)]
pub(super) struct Document<'d>(pub(super) &'d Value);

/// A value as it is written. An integer and a float are two.
#[derive(Clone, Copy, Debug)]
pub(super) struct Literal<'d>(&'d Value);

/// A list or map, and whether there was one: Go distinguishes an empty one from none, but takes both for
/// equal.
#[derive(Debug, Default)]
pub(super) struct Given<T> {
    value: T,
    given: bool,
}

/// `items`: one schema, several, or nothing.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Items<'d> {
    pub(super) schema: Option<Box<Props<'d>>>,
    pub(super) schemas: Vec<Props<'d>>,
}

/// `additionalProperties` and `additionalItems`.
#[derive(Debug, PartialEq)]
pub(super) struct Additional<'d> {
    pub(super) allows: bool,
    pub(super) schema: Option<Box<Props<'d>>>,
}

/// An entry of `dependencies`.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Dependency<'d> {
    pub(super) schema: Option<Box<Props<'d>>>,
    properties: Vec<&'d str>,
}

impl Default for Document<'_> {
    fn default() -> Self {
        Self(&Value::Null)
    }
}

impl PartialEq for Document<'_> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl PartialEq for Literal<'_> {
    fn eq(&self, other: &Self) -> bool {
        is_same(self.0, other.0)
    }
}

impl<T: PartialEq> PartialEq for Given<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T> std::ops::Deref for Given<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> Given<T> {
    /// Whether there is a list or map, be it an empty one.
    pub(super) fn is_given(&self) -> bool {
        self.given
    }
}

impl<T: Default> From<Option<T>> for Given<T> {
    fn from(value: Option<T>) -> Self {
        Self { given: value.is_some(), value: value.unwrap_or_default() }
    }
}

impl<'d> Props<'d> {
    /// Reads a schema.
    pub(super) fn read(value: &'d Value, at: &Place<'_>) -> Read<Self> {
        let fields = Fields::of(value, at)?;
        Ok(Self {
            document: Document(value),
            id: fields.text("id")?,
            schema: fields.text("$schema")?,
            reference: fields.optional_text("$ref")?,
            description: fields.text("description")?,
            kind: fields.text("type")?,
            nullable: fields.flag("nullable")?,
            format: fields.text("format")?,
            title: fields.text("title")?,
            default: fields.get("default").map(Literal),
            maximum: fields.number("maximum")?,
            exclusive_maximum: fields.flag("exclusiveMaximum")?,
            minimum: fields.number("minimum")?,
            exclusive_minimum: fields.flag("exclusiveMinimum")?,
            max_length: fields.integer("maxLength")?,
            min_length: fields.integer("minLength")?,
            pattern: fields.text("pattern")?,
            max_items: fields.integer("maxItems")?,
            min_items: fields.integer("minItems")?,
            unique_items: fields.flag("uniqueItems")?,
            multiple_of: fields.number("multipleOf")?,
            allowed: fields.each("enum", |value, _| Ok(Literal(value)))?.into(),
            max_properties: fields.integer("maxProperties")?,
            min_properties: fields.integer("minProperties")?,
            required: fields.texts("required")?.into(),
            items: fields.read("items", Items::read)?,
            all_of: fields.each("allOf", Self::read)?.into(),
            one_of: fields.each("oneOf", Self::read)?.into(),
            any_of: fields.each("anyOf", Self::read)?.into(),
            not: fields.read("not", Self::boxed)?,
            properties: fields.entries("properties", Self::read)?.into(),
            additional_properties: fields.read("additionalProperties", Additional::read)?,
            pattern_properties: fields.entries("patternProperties", Self::read)?.into(),
            dependencies: fields.entries("dependencies", Dependency::read)?.into(),
            additional_items: fields.read("additionalItems", Additional::read)?,
            definitions: fields.entries("definitions", Self::read)?.into(),
            external_docs: fields.read("externalDocs", |docs, at| {
                let docs = Fields::of(docs, at)?;
                Ok((docs.text("description")?, docs.text("url")?))
            })?,
            example: fields.get("example").map(Literal),
            preserve_unknown_fields: fields.optional_flag("x-kubernetes-preserve-unknown-fields")?,
            embedded_resource: fields.flag("x-kubernetes-embedded-resource")?,
            int_or_string: fields.flag("x-kubernetes-int-or-string")?,
            list_map_keys: fields.texts("x-kubernetes-list-map-keys")?.into(),
            list_type: fields.optional_text("x-kubernetes-list-type")?,
            map_type: fields.optional_text("x-kubernetes-map-type")?,
            rules: fields.each("x-kubernetes-validations", rule)?.into(),
        })
    }

    fn boxed(value: &'d Value, at: &Place<'_>) -> Read<Box<Self>> {
        Self::read(value, at).map(Box::new)
    }

    /// Whether this schema or any within it is of some kind, wherever a schema can stand.
    pub(super) fn any(&self, is: &mut impl FnMut(&Self) -> bool) -> bool {
        is(self) || self.children().into_iter().any(|child| child.any(is))
    }

    /// Calls back for this schema and all within it.
    pub(super) fn each<'s>(&'s self, seen: &mut impl FnMut(&'s Self)) {
        seen(self);
        self.children().into_iter().for_each(|child| child.each(seen));
    }

    /// The schema of further properties, if there is one.
    pub(super) fn values(&self) -> Option<&Self> {
        self.additional_properties.as_ref()?.schema.as_deref()
    }

    fn children(&self) -> Vec<&Self> {
        let mut children: Vec<&Self> = Vec::new();
        if let Some(items) = &self.items {
            children.extend(items.schema.as_deref());
            children.extend(&items.schemas);
        }
        children.extend(self.all_of.iter().chain(&*self.any_of).chain(&*self.one_of));
        children.extend(self.not.as_deref());
        let named = self.properties.iter().chain(&*self.pattern_properties).chain(&*self.definitions);
        children.extend(named.map(|(_, schema)| schema));
        for additional in [&self.additional_properties, &self.additional_items].into_iter().flatten() {
            children.extend(additional.schema.as_deref());
        }
        children.extend(self.dependencies.iter().filter_map(|(_, entry)| entry.schema.as_deref()));
        children
    }
}

impl<'d> Items<'d> {
    /// Texts, numbers and booleans decode to nothing.
    fn read(value: &'d Value, at: &Place<'_>) -> Read<Self> {
        Ok(match value {
            Value::Object(_) => Self { schema: Some(Props::boxed(value, at)?), schemas: Vec::new() },
            Value::Array(items) => {
                let items = items.iter().enumerate();
                let schemas = items.map(|(index, item)| Props::read(item, &at.index(index)));
                Self { schema: None, schemas: schemas.collect::<Read<_>>()? }
            }
            _ => Self::default(),
        })
    }
}

impl<'d> Additional<'d> {
    fn read(value: &'d Value, at: &Place<'_>) -> Read<Self> {
        match value {
            Value::Object(_) => Ok(Self { allows: true, schema: Some(Props::boxed(value, at)?) }),
            Value::Bool(allows) => Ok(Self { allows: *allows, schema: None }),
            _ => Err(Malformed::new(at, "a boolean or a schema")),
        }
    }
}

impl<'d> Dependency<'d> {
    fn read(value: &'d Value, at: &Place<'_>) -> Read<Self> {
        Ok(match value {
            Value::Object(_) => Self { schema: Some(Props::boxed(value, at)?), properties: Vec::new() },
            Value::Array(_) => {
                let texts = value.as_array().into_iter().flatten().map(|item| match item {
                    Value::Null => Ok(""),
                    Value::String(text) => Ok(text.as_str()),
                    _ => Err(Malformed::new(at, "a list of strings")),
                });
                Self { schema: None, properties: texts.collect::<Read<_>>()? }
            }
            _ => Self::default(),
        })
    }
}

fn rule(value: &Value, at: &Place<'_>) -> Read<Rule> {
    let fields = Fields::of(value, at)?;
    Ok(Rule {
        rule: fields.text("rule")?.to_owned(),
        message: fields.text("message")?.to_owned(),
        message_expression: fields.text("messageExpression")?.to_owned(),
        reason: fields.optional_text("reason")?.map(str::to_owned),
        field_path: fields.text("fieldPath")?.to_owned(),
        optional_old_self: fields.optional_flag("optionalOldSelf")?,
    })
}
