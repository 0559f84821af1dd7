//! What etcd is taken to hold of an object, by what its owners name.
//! It must not be taken for proof: a claim outlives its field, and a value may be stored without an owner.

use serde_json::Value;

use crate::domain::crd::Crd;
use crate::domain::json::{Json, level};
use crate::domain::object::Object;
use crate::domain::ownership::{Owner, is_covered, is_named, owners};
use crate::domain::path::{Path, Step, Trail};
use crate::domain::schema::Schema;
use crate::domain::without::remove;

/// The object without the values that its defaults give and that no owner names.
pub fn presumed(object: &Object, crd: &Crd) -> Json {
    let mut stored = object.json().clone();
    let presumption = Presumption {
        object: object.json(),
        schema: &crd.storage().schema,
        owners: owners(object).filter(|owner| crd.names_fields_alike(owner.version())).collect(),
    };
    let mut phantoms = Vec::new();
    crd.compiled().filled(object.json(), &mut |at: &Trail<'_>, value: &Value| {
        presumption.collect(value, at.to_path(), &mut phantoms);
    });
    for path in phantoms {
        remove(&mut stored, path.steps());
    }
    stored
}

struct Presumption<'a> {
    object: &'a Value,
    schema: &'a Schema,
    owners: Vec<Owner<'a>>,
}

impl Presumption<'_> {
    /// The topmost places here and below that no owner names.
    fn collect(&self, value: &Value, path: Path, phantoms: &mut Vec<Path>) {
        let owners = self.owners.iter().copied();
        if is_covered(owners.clone(), self.object, self.schema, path.steps()) {
            return;
        }
        if !is_named(owners, self.object, self.schema, path.steps()) {
            return phantoms.push(path);
        }
        // Named, and not in whole: somebody wrote a part of it.
        match value {
            Value::Object(fields) => level(|| {
                for (name, value) in fields {
                    self.collect(value, path.join(Step::Field(name.clone())), phantoms);
                }
            }),
            Value::Array(items) => level(|| {
                for (index, item) in items.iter().enumerate() {
                    if item.is_object() || item.is_array() {
                        self.collect(item, path.join(Step::Index(index)), phantoms);
                    }
                }
            }),
            _ => phantoms.push(path),
        }
    }
}
