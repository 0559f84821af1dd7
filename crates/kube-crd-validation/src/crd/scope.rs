//! What rules know about the place they stand at: its declaration, and how often its values can be there.
//!
//! Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/cel_validation.go`, `CELSchemaContext`.

use std::cell::OnceCell;

use super::props::Props;
use kube_structural_schema::schema::{Additional, Schema};
use kube_validation_rules::{Decl, Declared};

/// The place of a node.
#[derive(Debug)]
pub(super) struct Scope<'w> {
    /// The node's schema as the server uses it from here on.
    pub(super) schema: &'w Schema,
    parent: Option<(&'w Scope<'w>, Step<'w>)>,
    /// Whether there are rules here or above.
    has_rules: bool,
    server_minor: u32,
    /// The declaration of this schema alone, made when it is first needed.
    own: OnceCell<Option<Declared>>,
    /// How often values of this place can be there; `None` if nothing limits that.
    pub(super) cardinality: Option<u64>,
}

/// The way from a node to one below it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step<'w> {
    Property(&'w str),
    /// Items, or values under `additionalProperties`.
    Element,
}

/// Why there is no declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Undeclared {
    /// The schema cannot be declared.
    Schema,
    /// The parent's declaration has nothing for this place.
    Element,
}

impl<'w> Scope<'w> {
    pub(super) fn root(schema: &'w Schema, server_minor: u32) -> Self {
        let has_rules = !schema.rules.is_empty();
        Self { schema, parent: None, has_rules, server_minor, own: OnceCell::new(), cardinality: Some(1) }
    }

    /// The place of a child; `None` if the child is not part of the structure.
    pub(super) fn child<'c>(
        &'c self,
        parent: &Props<'_>,
        child: &Props<'_>,
        step: Step<'c>,
    ) -> Option<Scope<'c>>
    where
        'w: 'c,
    {
        let schema = match step {
            Step::Property(name) => self.schema.properties.get(name)?,
            Step::Element if parent.values().is_some_and(|values| std::ptr::eq(values, child)) => {
                self.schema.additional_schema()?
            }
            Step::Element => self.schema.items.as_deref()?,
        };
        Some(Scope {
            schema,
            parent: Some((self, step)),
            has_rules: self.has_rules || !schema.rules.is_empty(),
            server_minor: self.server_minor,
            own: OnceCell::new(),
            cardinality: max_elements(self.schema)
                .and_then(|max| Some(self.cardinality?.saturating_mul(max))),
        })
    }

    /// The declaration that rules are compiled for: the part of the parent's for this place, or the schema's
    /// own.
    pub(super) fn declaration(&self) -> Result<Decl<'_>, Undeclared> {
        if let Some((parent, step)) = self.parent.filter(|(parent, _)| parent.has_rules) {
            let above = parent.declaration()?;
            match step {
                Step::Property(name) => {
                    if let Some(property) = above.property(name) {
                        return Ok(property);
                    }
                }
                Step::Element => return above.element().ok_or(Undeclared::Element),
            }
        }
        let is_resource = self.parent.is_none() || self.schema.embedded_resource;
        let own = self.own.get_or_init(|| Declared::of(self.schema, is_resource, self.server_minor));
        own.as_ref().map(Declared::root).ok_or(Undeclared::Schema)
    }
}

/// How many values a node's children can have for each of its own.
fn max_elements(schema: &Schema) -> Option<u64> {
    let limit = |max: Option<i64>| max.map(|max| max.max(0).cast_unsigned());
    let constraints = schema.constraints.as_deref();
    match schema.kind.as_str() {
        "object" if matches!(schema.additional, Some(Additional::Bool(_) | Additional::Schema(_))) => {
            limit(constraints?.max_properties)
        }
        "array" => limit(constraints?.max_items),
        _ => Some(1),
    }
}
