//! Fields that a schema does not know: of those that an owner names, and of those that a document sets.

use std::collections::BTreeSet;

use serde_json::Value;

use kube_structural_schema::defaults::meta::is_field;
use kube_structural_schema::path::{Path, Trail, TrailStep};
use kube_structural_schema::prune::{Field, Pruner};

/// The topmost fields of a set of owned ones that a schema does not know.
pub(super) fn unknown_owned(fields: &Value, pruner: Pruner<'_>, at: &Trail<'_>, found: &mut BTreeSet<Path>) {
    let Value::Object(elements) = fields else { return };
    for (element, inner) in elements {
        if let Some(name) = element.strip_prefix("f:") {
            match pruner.field(name) {
                Field::Kept if is_embedded(name, pruner) => {
                    let elements = inner.as_object().into_iter().flatten();
                    let names = elements.filter_map(|(element, _)| element.strip_prefix("f:"));
                    no_metadata(names, &at.join(TrailStep::Field(name)), found);
                }
                Field::Kept => {}
                Field::Pruned(inside) => {
                    unknown_owned(inner, inside, &at.join(pruner.step(name)), found);
                }
                Field::Removed => drop(found.insert(at.join(TrailStep::Field(name)).to_path())),
            }
        } else if element != "."
            && let Some(item) = pruner.item()
        {
            unknown_owned(inner, item, &at.join(TrailStep::Items), found);
        }
    }
}

/// Whether a name of what is kept is the metadata of an embedded resource, and not of the object. Where
/// unknown fields are kept it may be any field of that name.
fn is_embedded(name: &str, pruner: Pruner<'_>) -> bool {
    name == "metadata" && pruner.schema().is_some_and(|schema| schema.embedded_resource)
}

/// The names that metadata does not have, of an embedded resource: a read drops what has one, and so does a
/// write (`kube_structural_schema::defaults::meta::coerce`).
fn no_metadata<'n>(names: impl Iterator<Item = &'n str>, at: &Trail<'_>, found: &mut BTreeSet<Path>) {
    found.extend(names.filter(|name| !is_field(name)).map(|name| at.join(TrailStep::Field(name)).to_path()));
}

/// The same of what a document sets.
pub(super) fn unknown_values(value: &Value, pruner: Pruner<'_>, at: &Trail<'_>, found: &mut BTreeSet<Path>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match pruner.field(name) {
                    Field::Kept if is_embedded(name, pruner) => {
                        let names = value.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
                        no_metadata(names, &at.join(TrailStep::Field(name)), found);
                    }
                    Field::Kept => {}
                    Field::Pruned(inside) => {
                        unknown_values(value, inside, &at.join(pruner.step(name)), found)
                    }
                    Field::Removed => drop(found.insert(at.join(TrailStep::Field(name)).to_path())),
                }
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                if let Some(item) = pruner.item() {
                    unknown_values(value, item, &at.join(TrailStep::Index(index)), found);
                }
            }
        }
        _ => {}
    }
}
