//! Pruning the default values of a schema, as the server does once before it serves the schema.
//! It must not fill defaults into defaults; filling does.
//!
//! Upstream wraps each default into a whole object of its place, prunes and coerces that, and takes the default out again.
//! Here each default is treated where it stands, which comes to the same: only in two places does it matter what is around.
//!
//! Source: apiextensions-apiserver `pkg/apiserver/schema/defaulting/{prune,surroundingobject}.go`.

use serde_json::Value;

use super::meta::{Malformed, coerce};
use crate::domain::json::{Json, copy};
use crate::domain::path::{Step, Trail, TrailStep};
use crate::domain::prune::{prune, prune_kept};
use crate::domain::schema::{Place, Schema};

/// What is around a schema, as far as it matters to its default.
#[derive(Clone, Copy)]
pub(in crate::domain) enum Standing<'a> {
    /// The whole object.
    Root,
    /// Nothing that matters.
    Plain,
    /// An array that keeps unknown fields hands that down to its items.
    Kept,
    /// Metadata or type metadata of a whole or embedded object, which the server decodes on its own.
    Meta {
        /// The schema of the object.
        of: &'a Schema,
        /// Whether it is the root, which needs no extension to be a whole object.
        root: bool,
        /// The way from the object.
        trail: Trail<'a>,
    },
}

impl<'a> Standing<'a> {
    /// What is around the property or map value under a key.
    pub(in crate::domain) fn child(&'a self, schema: &'a Schema, key: &'a str) -> Standing<'a> {
        match self {
            Self::Meta { of, root, trail } => {
                Standing::Meta { of, root: *root, trail: trail.join(TrailStep::Field(key)) }
            }
            standing => {
                let root = matches!(standing, Self::Root);
                if (root || schema.embedded_resource) && matches!(key, "apiVersion" | "kind" | "metadata") {
                    Standing::Meta { of: schema, root, trail: Trail::ROOT.join(TrailStep::Field(key)) }
                } else {
                    Standing::Plain
                }
            }
        }
    }

    /// What is around the items of an array.
    pub(in crate::domain) fn items(&'a self, schema: &Schema) -> Standing<'a> {
        match self {
            Self::Meta { of, root, trail } => {
                Standing::Meta { of, root: *root, trail: trail.join(TrailStep::Items) }
            }
            Self::Kept => Standing::Kept,
            _ if schema.preserve_unknown_fields => Standing::Kept,
            _ => Standing::Plain,
        }
    }
}

/// The default of a schema as it is served; none if it does not survive.
pub(in crate::domain) fn pruned(schema: &Schema, standing: &Standing<'_>) -> Option<Json> {
    let mut default = copy(schema.default.as_ref()?);
    let settle = |value: &mut Value, schema: &Schema, whole: bool| {
        // Nothing is refused here, so this cannot fail.
        let _ = coerce(value, schema, whole, Malformed::Drop, &Place::root(""));
    };
    match standing {
        Standing::Root | Standing::Plain => {
            let root = matches!(standing, Standing::Root);
            settle(&mut default, schema, root);
            prune(&mut default, schema, root, &mut |_| {});
            Some(default.into())
        }
        Standing::Kept => {
            settle(&mut default, schema, false);
            prune_kept(&mut default, schema);
            Some(default.into())
        }
        Standing::Meta { of, root, trail } => {
            let path = trail.to_path();
            let mut object = path.steps().iter().rev().fold(default, wrapped);
            settle(&mut object, of, *root);
            let found = path.steps().iter().try_fold(&mut object, part).map(Value::take);
            drop(Json::from(object));
            found.filter(|found| !found.is_null()).map(Json::from)
        }
    }
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
