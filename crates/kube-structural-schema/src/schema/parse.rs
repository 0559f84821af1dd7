//! From the document to the schema, as the API server does: Go's decoding of `JSONSchemaProps`, then
//! `NewStructural`. It refuses what these two refuse: unknown keywords are skipped, odd values of `items`
//! mean none.
//!
//! Source: apiextensions-apiserver `pkg/apis/apiextensions/v1/{types_jsonschema,marshal,conversion}.go` and
//! `pkg/apiserver/schema/convert.go`.

use serde_json::{Map, Value};

use super::keyword::{decoded, each, flag, integer, number, present, text, texts};
use super::{Additional, Constraints, ParseError, Place, Properties, Rule, Schema, SchemaType};

impl Schema {
    /// Reads an `openAPIV3Schema`.
    ///
    /// # Errors
    /// Exactly if the API server refuses to decode the schema or to make it structural.
    pub fn parse(document: &Value) -> Result<Self, ParseError> {
        schema(document, Position::Structural, &Place::root("openAPIV3Schema"))
    }
}

type Parsed<T> = Result<T, ParseError>;

/// Which of upstream's two types a node becomes there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Structural,
    Nested,
}

const PRESERVE: &str = "x-kubernetes-preserve-unknown-fields";

fn schema(document: &Value, position: Position, at: &Place<'_>) -> Parsed<Schema> {
    match document {
        // A null leaves a Go struct unchanged: the empty schema.
        Value::Null => Ok(Schema::default()),
        Value::Object(keywords) => node(keywords, position, at),
        _ => Err(ParseError::malformed(at, "a schema")),
    }
}

/// Errors come in the order in which upstream meets them, as far as it has one.
fn node(keywords: &Map<String, Value>, position: Position, at: &Place<'_>) -> Parsed<Schema> {
    refuse_unsupported(keywords, at)?;
    let mut schema = Schema::default();
    let mut constraints = Constraints::default();
    let mut constrained = false;
    for (name, value) in keywords.iter().filter(|(_, value)| !value.is_null()) {
        let here = at.child(name);
        schema.adorned |= plain_keyword(&mut schema, name, value, &here)?;
        constrained |= restriction(&mut constraints, name, value, &here)?;
    }
    if let Some(clause) = present(keywords, "not") {
        constraints.not = Some(Box::new(self::schema(clause, Position::Nested, &at.child("not"))?));
        constrained = true;
    }
    constraints.all_of = clauses(keywords, "allOf", at)?;
    constraints.any_of = clauses(keywords, "anyOf", at)?;
    constraints.one_of = clauses(keywords, "oneOf", at)?;
    constrained |=
        [&constraints.all_of, &constraints.any_of, &constraints.one_of].iter().any(|of| !of.is_empty());
    if let Some(value) = present(keywords, PRESERVE) {
        schema.preserve_unknown_fields = flag(value, &at.child(PRESERVE))?;
        if !schema.preserve_unknown_fields {
            return Err(ParseError::unsupported(
                at,
                format!("internal error: '{PRESERVE}' must be true or undefined"),
            ));
        }
    }
    schema.items = items(keywords, position, at)?;
    schema.properties = properties(keywords, position, at)?;
    schema.additional = additional(keywords, position, at)?;
    schema.adorned |= constrained
        || schema.preserve_unknown_fields
        || schema.items.is_some()
        || match schema.additional {
            Some(Additional::Bool(false)) => position == Position::Structural,
            Some(_) => true,
            None => false,
        }
        // NewStructural drops a map without entries, newNestedValueValidation keeps it.
        || position == Position::Nested && schema.properties.is_empty() && present(keywords, "properties").is_some();
    if constrained {
        schema.constraints = Some(Box::new(constraints));
    }
    Ok(schema)
}

/// `validateUnsupportedFields`: empty values pass.
fn refuse_unsupported(keywords: &Map<String, Value>, at: &Place<'_>) -> Parsed<()> {
    let refusal =
        |shown: &str| ParseError::unsupported(at, format!("OpenAPIV3Schema '{shown}' is not supported"));
    for (name, shown) in [("id", "id"), ("$schema", "schema"), ("$ref", "$ref")] {
        if let Some(value) = present(keywords, name)
            && !text(value, &at.child(name))?.is_empty()
        {
            return Err(refusal(shown));
        }
    }
    for name in ["patternProperties", "dependencies", "additionalItems", "definitions"] {
        match present(keywords, name) {
            None => {}
            Some(Value::Object(entries)) if entries.is_empty() && name != "additionalItems" => {}
            Some(Value::Bool(_)) if name == "additionalItems" => return Err(refusal(name)),
            Some(Value::Object(_)) => return Err(refusal(name)),
            Some(_) => return Err(ParseError::malformed(&at.child(name), "an object")),
        }
    }
    Ok(())
}

/// Reads a keyword that holds no schema and restricts no value; returns whether it adorns the node.
fn plain_keyword(schema: &mut Schema, name: &str, value: &Value, at: &Place<'_>) -> Parsed<bool> {
    Ok(match name {
        "type" => {
            schema.kind = SchemaType::from(text(value, at)?);
            false
        }
        "default" => {
            schema.default = Some(decoded(value));
            false
        }
        "title" => set(&mut schema.titled, !text(value, at)?.is_empty()),
        "description" => set(&mut schema.described, !text(value, at)?.is_empty()),
        "nullable" => set(&mut schema.nullable, flag(value, at)?),
        "x-kubernetes-embedded-resource" => set(&mut schema.embedded_resource, flag(value, at)?),
        "x-kubernetes-int-or-string" => set(&mut schema.int_or_string, flag(value, at)?),
        "x-kubernetes-list-type" => set(&mut schema.list_type, Some(text(value, at)?.into())),
        "x-kubernetes-map-type" => set(&mut schema.map_type, Some(text(value, at)?.into())),
        "x-kubernetes-list-map-keys" => {
            schema.list_map_keys = texts(value, at)?;
            true
        }
        "x-kubernetes-validations" => {
            schema.rules = each(value, at, rule)?;
            true
        }
        "externalDocs" => {
            external_docs(value, at)?;
            true
        }
        "example" => true,
        _ => false,
    })
}

/// Reads a keyword that restricts values; returns whether it is one and set.
fn restriction(to: &mut Constraints, name: &str, value: &Value, at: &Place<'_>) -> Parsed<bool> {
    Ok(match name {
        "format" => set(&mut to.format, text(value, at)?.into()),
        "pattern" => set(&mut to.pattern, text(value, at)?.into()),
        "maximum" => set(&mut to.maximum, Some(number(value, at)?)),
        "minimum" => set(&mut to.minimum, Some(number(value, at)?)),
        "multipleOf" => set(&mut to.multiple_of, Some(number(value, at)?)),
        "exclusiveMaximum" => set(&mut to.exclusive_maximum, flag(value, at)?),
        "exclusiveMinimum" => set(&mut to.exclusive_minimum, flag(value, at)?),
        "uniqueItems" => set(&mut to.unique_items, flag(value, at)?),
        "maxLength" => set(&mut to.max_length, Some(integer(value, at)?)),
        "minLength" => set(&mut to.min_length, Some(integer(value, at)?)),
        "maxItems" => set(&mut to.max_items, Some(integer(value, at)?)),
        "minItems" => set(&mut to.min_items, Some(integer(value, at)?)),
        "maxProperties" => set(&mut to.max_properties, Some(integer(value, at)?)),
        "minProperties" => set(&mut to.min_properties, Some(integer(value, at)?)),
        "enum" => {
            to.allowed = each(value, at, |item, _| Ok(decoded(item)))?;
            !to.allowed.is_empty()
        }
        "required" => {
            to.required = texts(value, at)?;
            true
        }
        _ => false,
    })
}

/// Sets a field; returns whether it differs from Go's zero value now.
fn set<T: Default + PartialEq>(field: &mut T, value: T) -> bool {
    *field = value;
    *field != T::default()
}

fn clauses(keywords: &Map<String, Value>, name: &str, at: &Place<'_>) -> Parsed<Box<[Schema]>> {
    match present(keywords, name) {
        Some(value) => each(value, &at.child(name), |clause, at| schema(clause, Position::Nested, at)),
        None => Ok(Box::default()),
    }
}

/// `JSONSchemaPropsOrArray`: text, numbers and booleans decode to nothing.
fn items(keywords: &Map<String, Value>, position: Position, at: &Place<'_>) -> Parsed<Option<Box<Schema>>> {
    let here = at.child("items");
    match present(keywords, "items") {
        Some(value @ Value::Object(_)) => Ok(Some(Box::new(schema(value, position, &here)?))),
        Some(Value::Array(schemas)) if !schemas.is_empty() => Err(ParseError::unsupported(
            at,
            "OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned(),
        )),
        _ => Ok(None),
    }
}

fn properties(
    keywords: &Map<String, Value>,
    position: Position,
    at: &Place<'_>,
) -> Parsed<Properties<Schema>> {
    let here = at.child("properties");
    match present(keywords, "properties") {
        Some(Value::Object(properties)) => properties
            .iter()
            .map(|(name, value)| Ok((name.as_str().into(), schema(value, position, &here.key(name))?)))
            .collect(),
        Some(_) => Err(ParseError::malformed(&here, "an object of schemas")),
        None => Ok(Properties::default()),
    }
}

/// `JSONSchemaPropsOrBool`
fn additional(
    keywords: &Map<String, Value>,
    position: Position,
    at: &Place<'_>,
) -> Parsed<Option<Additional>> {
    let here = at.child("additionalProperties");
    match present(keywords, "additionalProperties") {
        Some(value @ Value::Object(_)) => {
            Ok(Some(Additional::Schema(Box::new(schema(value, position, &here)?))))
        }
        Some(Value::Bool(allowed)) => Ok(Some(Additional::Bool(*allowed))),
        Some(_) => Err(ParseError::malformed(&here, "a boolean or a schema")),
        None => Ok(None),
    }
}

fn rule(document: &Value, at: &Place<'_>) -> Parsed<Rule> {
    let mut rule = Rule::default();
    let keywords = match document {
        Value::Null => return Ok(rule),
        Value::Object(keywords) => keywords,
        _ => return Err(ParseError::malformed(at, "a validation rule")),
    };
    for (name, value) in keywords.iter().filter(|(_, value)| !value.is_null()) {
        let here = at.child(name);
        match name.as_str() {
            "rule" => text(value, &here)?.clone_into(&mut rule.rule),
            "message" => text(value, &here)?.clone_into(&mut rule.message),
            "messageExpression" => text(value, &here)?.clone_into(&mut rule.message_expression),
            "reason" => rule.reason = Some(text(value, &here)?.to_owned()),
            "fieldPath" => text(value, &here)?.clone_into(&mut rule.field_path),
            "optionalOldSelf" => rule.optional_old_self = Some(flag(value, &here)?),
            _ => {}
        }
    }
    Ok(rule)
}

fn external_docs(document: &Value, at: &Place<'_>) -> Parsed<()> {
    let Value::Object(keywords) = document else {
        return Err(ParseError::malformed(at, "an object"));
    };
    for name in ["description", "url"] {
        if let Some(value) = present(keywords, name) {
            text(value, &at.child(name))?;
        }
    }
    Ok(())
}
