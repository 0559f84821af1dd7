//! The variables that expressions have, by what they are about.

use serde_json::Value;

use super::place::{Part, Place};
use kube_structural_schema::schema::Schema;
use kube_validation_rules::{ASSUMED, Expression, Variables, Wanted};

/// The places of variables, the same in every scope; a scope without an extension ends before `self`.
pub(super) const OBJECT: usize = 0;
pub(super) const OLD_OBJECT: usize = 1;
pub(super) const FACTS: usize = 2;
pub(super) const SELF: usize = 3;
pub(super) const OLD_SELF: usize = 4;
const INDEX: usize = 5;
const ITEM: usize = 6;

/// What the expressions of one scope may name.
#[derive(Debug)]
pub(super) struct Scope {
    variables: Variables,
    has_self: bool,
    /// How many items there may be, for each of which an expression is evaluated.
    items: Option<u64>,
}

/// An expression, and where its variables are declared.
#[derive(Debug)]
pub(super) struct Scoped {
    pub(super) expression: Expression,
    /// The place of its scope among those of the declaration.
    pub(super) scope: usize,
}

/// The values of the variables.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bound<'v> {
    pub(super) object: Option<&'v Value>,
    pub(super) old_object: Option<&'v Value>,
    pub(super) facts: Option<&'v Value>,
    pub(super) own: Option<&'v Value>,
    pub(super) old: Option<&'v Value>,
    pub(super) index: Option<&'v Value>,
    pub(super) item: Option<&'v Value>,
}

impl Scope {
    /// The scope of an object that holds extensions.
    pub(super) fn of_object(facts: &[&str]) -> Self {
        let variables = Variables::new().dynamic(&["object", "oldObject"]).object("facts", facts);
        Self { variables, has_self: false, items: None }
    }

    /// The scope of `when`: an object, and one of its extensions or null.
    pub(super) fn of_when(facts: &[&str]) -> Self {
        let scope = Self::of_object(facts);
        Self { variables: scope.variables.dynamic(&["extension"]), has_self: true, items: None }
    }

    /// The scope of an extension. A schema makes the types of its fields known.
    pub(super) fn of_extension(facts: &[&str], schema: Option<&Schema>) -> Self {
        let scope = Self::of_object(facts);
        let names = ["self", "oldSelf"];
        let variables = match schema {
            Some(schema) => scope.variables.described(&names, schema, false),
            None => scope.variables.dynamic(&names),
        };
        Self { variables, has_self: true, items: None }
    }

    /// The scope of each value at a place with `[*]`: of the extension, or of the object if there is no
    /// schema.
    pub(super) fn of_items(self, place: &Place, schema: Option<&Schema>) -> Self {
        let variables = if self.has_self { self.variables } else { self.variables.dynamic(&["", ""]) };
        let variables = variables.dynamic(&["index"]);
        let variables = match schema.and_then(|schema| below(schema, place)) {
            Some(schema) => variables.described(&["item"], schema, false),
            None => variables.dynamic(&["item"]),
        };
        Self { variables, has_self: true, items: Some(most(schema, place)) }
    }

    /// How often an expression is evaluated at most, for one extension or one object.
    pub(super) fn evaluations(&self) -> u64 {
        self.items.unwrap_or(1)
    }

    pub(super) fn compile(&self, source: &str, wanted: Wanted) -> Result<Expression, String> {
        Expression::compile(source, &self.variables, wanted)
    }

    pub(super) fn variables(&self) -> &Variables {
        &self.variables
    }
}

/// The schema of what stands at a place.
fn below<'s>(schema: &'s Schema, place: &Place) -> Option<&'s Schema> {
    place.parts().iter().try_fold(schema, child)
}

fn child<'s>(schema: &'s Schema, part: &Part) -> Option<&'s Schema> {
    match part {
        Part::Field(name) => schema.child(name),
        Part::Each => schema.items.as_deref().or_else(|| schema.additional_schema()),
    }
}

/// How many values there may be at a place with `[*]`, by the limits of the lists and maps on the way.
fn most(schema: Option<&Schema>, place: &Place) -> u64 {
    let mut at = schema;
    place.parts().iter().fold(1, |most: u64, part| {
        let limits = at.and_then(|schema| schema.constraints.as_ref());
        at = at.and_then(|schema| child(schema, part));
        match part {
            Part::Field(_) => most,
            Part::Each => {
                let limit = limits.and_then(|limits| limits.max_items.or(limits.max_properties));
                most.saturating_mul(limit.map_or(ASSUMED, |limit| limit.max(0).cast_unsigned()))
            }
        }
    })
}

impl<'v> Bound<'v> {
    /// By the places of the variables.
    pub(super) fn values(&self) -> [Option<&'v Value>; 7] {
        let mut values = [None; 7];
        values[OBJECT] = self.object;
        values[OLD_OBJECT] = self.old_object;
        values[FACTS] = self.facts;
        values[SELF] = self.own;
        values[OLD_SELF] = self.old;
        values[INDEX] = self.index;
        values[ITEM] = self.item;
        values
    }
}
