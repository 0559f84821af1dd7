//! Pruning the default values of a schema, as the server does once before it serves the schema.
//! Filling fills defaults into defaults.
//!
//! Upstream wraps each default into a whole object of its place, prunes and coerces that, and takes the
//! default out again. Where nothing around the default matters, it is pruned alone here, which comes to the
//! same.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/schema/defaulting/{prune,surroundingobject}.go`.

use serde_json::Value;

use super::meta::{Malformed, coerce};
use crate::json::Json;
use crate::path::{Step, Trail, TrailStep};
use crate::prune::{Pruner, prune};
use crate::schema::{Place, Schema};

/// What is around a schema, as far as it matters to its default.
#[derive(Clone, Copy)]
pub(crate) enum Standing<'a> {
    /// The whole object.
    Root,
    /// Nothing that matters.
    Plain,
    /// An array that keeps unknown fields hands that down to its items.
    Kept,
    /// An object that has to be pruned together with the default.
    Within {
        /// The schema of the object.
        of: &'a Schema,
        /// Whether it is the root, which needs no extension to be a whole object.
        root: bool,
        /// The way from the object to the default.
        trail: Trail<'a>,
    },
}

/// The name under which upstream puts the default of a map's values into an object.
const ANY: &str = "*";

impl<'a> Standing<'a> {
    /// What is around a property. The server decodes metadata and type metadata on its own.
    pub(crate) fn property(&'a self, schema: &'a Schema, name: &'a str) -> Self {
        let whole = matches!(self, Self::Root) || schema.embedded_resource;
        self.down(schema, TrailStep::Field(name), whole && matches!(name, "apiVersion" | "kind" | "metadata"))
    }

    /// What is around the values of a map. Upstream prunes them by the schema of a property with their name,
    /// if there is one.
    pub(crate) fn values(&'a self, schema: &'a Schema) -> Self {
        self.down(schema, TrailStep::Field(ANY), schema.properties.contains(ANY))
    }

    /// What is around the items of an array.
    pub(crate) fn items(&'a self, schema: &'a Schema) -> Self {
        match self.down(schema, TrailStep::Items, false) {
            Self::Plain if matches!(self, Self::Kept) || schema.preserve_unknown_fields => Self::Kept,
            standing => standing,
        }
    }

    fn down(&'a self, schema: &'a Schema, step: TrailStep<'a>, together: bool) -> Self {
        match self {
            Self::Within { of, root, trail } => Self::Within { of, root: *root, trail: trail.join(step) },
            _ if together => {
                Self::Within { of: schema, root: matches!(self, Self::Root), trail: Trail::ROOT.join(step) }
            }
            _ => Self::Plain,
        }
    }
}

/// The default of a schema as it is served; none if it does not survive.
pub(crate) fn pruned(schema: &Schema, standing: &Standing<'_>) -> Option<Json> {
    let mut default = schema.default.as_ref()?.clone();
    match standing {
        Standing::Root => settle(&mut default, schema, true),
        Standing::Plain => settle(&mut default, schema, false),
        Standing::Kept => {
            drop_malformed(&mut default, schema, false);
            Pruner::keeping(schema).prune(&mut default, &Trail::ROOT, &mut |_| {});
        }
        Standing::Within { of, root, trail } => {
            let path = trail.to_path();
            let mut object = Json::from(path.steps().iter().rev().fold(default.into_inner(), wrapped));
            settle(&mut object, of, *root);
            default = path.steps().iter().try_fold(&mut *object, part)?.take().into();
        }
    }
    Some(default).filter(|default| !default.is_null())
}

fn settle(value: &mut Value, schema: &Schema, whole: bool) {
    drop_malformed(value, schema, whole);
    prune(value, schema, whole, &mut |_| {});
}

fn drop_malformed(value: &mut Value, schema: &Schema, whole: bool) {
    // Nothing is refused, so there is no error.
    let _ = coerce(value, schema, whole, Malformed::Drop, &Place::root(""));
}

fn wrapped(value: Value, step: &Step) -> Value {
    match step {
        Step::Field(name) => Value::Object([(name.clone(), value)].into_iter().collect()),
        _ => Value::Array(vec![value]),
    }
}

fn part<'a>(value: &'a mut Value, step: &Step) -> Option<&'a mut Value> {
    match step {
        Step::Field(name) => value.get_mut(name),
        _ => value.get_mut(0),
    }
}
